/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/argparse/option_parser.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "options/argparse/option_bundle.h"
#include "options/argparse/option_completion.h"
#include "options/argparse/option_conversion.h"
#include "options/argparse/option_help.h"
#include "options/argparse/option_match.h"
#include "options/argparse/option_suggestion.h"
#include "options/argparse/positional_match.h"

/* The state of one walk over the arguments. */
struct reading {
    struct option_result *result;
    const struct text_list *arguments;
    char *pattern;           /* per argument: 'O' option, 'A' other, '-' the first "--" */
    bool *is_seen;           /* per definition */
    struct text_list extras; /* arguments that matched nothing */
    size_t waiting[POSITIONAL_MAXIMUM_COUNT]; /* definitions of positionals not yet filled */
    size_t waiting_count;
};

static bool is_reading(const struct reading *reading) {
    return reading->result->outcome == OPTION_OUTCOME_VALUES;
}

static const struct option_definition *definition_at(const struct reading *reading, size_t index) {
    return &reading->result->table->definitions[index];
}

static void set_value(
    struct reading *reading, size_t index, const char *text, enum option_source source) {
    const struct option_definition *definition = definition_at(reading, index);
    struct option_value *value = &reading->result->values[index];
    struct text reason = {0};
    value->source = source;
    if (option_convert(definition, text, value, &reason) != FAILURE_NONE) {
        option_result_reject(reading->result, definition->destination, "%s", text_string(&reason));
    }
    text_clear(&reason);
}

static void print_version(struct option_result *result) {
    option_result_print(result, text_format("muster %s\n", MUSTER_VERSION));
}

static void print_help(struct option_result *result) {
    struct text help = {0};
    option_help_format(result->table, result->program, result->columns, &help);
    option_result_print(result, text_take(&help));
}

static void print_completion(struct option_result *result, const char *shell) {
    struct text script = {0};
    option_completion_format(result->table, result->program, shell, &script);
    option_result_print(result, text_take(&script));
}

/* Executes one option. `text` is NULL for an option without a value. */
static void take_option(struct reading *reading, size_t index, const char *text) {
    if (!is_reading(reading)) {
        return;
    }
    reading->is_seen[index] = true;
    switch (definition_at(reading, index)->kind) {
    case OPTION_FLAG:
        set_value(reading, index, "1", OPTION_SOURCE_COMMAND_LINE);
        break;
    case OPTION_HELP:
        print_help(reading->result);
        break;
    case OPTION_VERSION:
        print_version(reading->result);
        break;
    case OPTION_COMPLETION:
        set_value(reading, index, text, OPTION_SOURCE_COMMAND_LINE);
        if (is_reading(reading)) {
            print_completion(reading->result, text);
        }
        break;
    case OPTION_TEXT:
    case OPTION_INTEGER:
    case OPTION_FLOAT:
    case OPTION_COMMA_LIST:
        set_value(reading, index, text, OPTION_SOURCE_COMMAND_LINE);
        break;
    }
}

/* Executes the option at `position`. Returns the position after the option and its value. */
static size_t consume_option(struct reading *reading, size_t position) {
    const struct option_table *table = reading->result->table;
    struct option_bundle bundle;
    option_bundle_read(table, reading->arguments, reading->pattern, position,
        option_result_is_torchrun(reading->result), &bundle);
    size_t end = bundle.end;
    if (bundle.mistake.length > 0) {
        const char *destination = bundle.mistaken < table->definition_count
                                      ? table->definitions[bundle.mistaken].destination
                                      : NULL;
        option_result_reject(reading->result, destination, "%s", text_string(&bundle.mistake));
    }
    for (size_t i = 0; i < bundle.flag_count; i++) {
        take_option(reading, bundle.flags[i], NULL);
    }
    if (bundle.valued < table->definition_count) {
        take_option(reading, bundle.valued, bundle.value);
    }
    if (bundle.unknown != NULL) {
        text_list_add(&reading->extras, bundle.unknown);
    }
    option_bundle_clear(&bundle);
    return end;
}

static void take_positional(struct reading *reading, size_t index, size_t start, size_t count) {
    const struct option_definition *definition = definition_at(reading, index);
    struct option_value *value = &reading->result->values[index];
    reading->is_seen[index] = definition->arity != OPTION_ARITY_OPTIONAL || count > 0;
    bool holds_one =
        definition->arity == OPTION_ARITY_ONE || definition->arity == OPTION_ARITY_OPTIONAL;
    for (size_t i = start; i < start + count && is_reading(reading); i++) {
        const char *argument = reading->arguments->items[i];
        if (reading->pattern[i] == '-' && definition->arity != OPTION_ARITY_REMAINDER) {
            continue;
        }
        if (holds_one) {
            set_value(reading, index, argument, OPTION_SOURCE_COMMAND_LINE);
            continue;
        }
        text_list_add(&value->list, argument);
        value->is_set = true;
        value->source = OPTION_SOURCE_COMMAND_LINE;
    }
}

static size_t consume_positionals(struct reading *reading, size_t position) {
    enum option_arity arities[POSITIONAL_MAXIMUM_COUNT];
    size_t taken[POSITIONAL_MAXIMUM_COUNT] = {0};
    for (size_t i = 0; i < reading->waiting_count; i++) {
        arities[i] = definition_at(reading, reading->waiting[i])->arity;
    }
    size_t matched =
        positional_match(arities, reading->waiting_count, reading->pattern + position, taken);
    for (size_t i = 0; i < matched; i++) {
        take_positional(reading, reading->waiting[i], position, taken[i]);
        position += taken[i];
    }
    reading->waiting_count -= matched;
    memmove(reading->waiting, reading->waiting + matched,
        reading->waiting_count * sizeof *reading->waiting);
    return position;
}

static void add_extras(struct reading *reading, size_t start, size_t end) {
    for (size_t i = start; i < end; i++) {
        text_list_add(&reading->extras, reading->arguments->items[i]);
    }
}

/* Consumes positionals and options in turn, until the last option has been read. */
static void consume_arguments(struct reading *reading) {
    const char *last = strrchr(reading->pattern, 'O');
    size_t options_end = last == NULL ? 0 : (size_t)(last - reading->pattern) + 1;
    size_t position = 0;
    while (position < options_end && is_reading(reading)) {
        size_t next = position + strcspn(reading->pattern + position, "O");
        if (position < next) {
            size_t end = consume_positionals(reading, position);
            if (end > position) {
                position = end;
                continue;
            }
            add_extras(reading, position, next);
        }
        position = consume_option(reading, next);
    }
    if (is_reading(reading)) {
        position = consume_positionals(reading, position);
        add_extras(reading, position, reading->arguments->count);
    }
}

/* Sets the value of an entry that no argument gave: from the environment, or the default. */
static void set_fallback(
    struct reading *reading, size_t index, const struct text_list *environment) {
    const struct option_definition *definition = definition_at(reading, index);
    char *variable = option_variable_name(reading->result->table, definition);
    const char *given = variable == NULL ? NULL : text_list_variable(environment, variable);
    free(variable);
    if (given != NULL) {
        set_value(reading, index, given, OPTION_SOURCE_ENVIRONMENT);
    } else if (definition->default_text != NULL) {
        set_value(reading, index, definition->default_text, OPTION_SOURCE_DEFAULT);
    }
}

static bool is_required(const struct option_definition *definition) {
    return option_is_positional(definition) &&
           (definition->arity == OPTION_ARITY_ONE || definition->arity == OPTION_ARITY_SOME);
}

/* What the first unknown option was probably meant to be; argparse knows no suggestions. */
static void append_suggestion(const struct reading *reading, struct text *out) {
    const char *name = NULL;
    for (size_t i = 0; i < reading->extras.count && name == NULL; i++) {
        name = option_suggest(reading->result->table, reading->extras.items[i]);
    }
    if (name != NULL && !option_result_is_torchrun(reading->result)) {
        text_append_format(out, " (did you mean %s?)", name);
    }
}

/* Handles entries that were not given, and arguments that matched nothing. */
static void settle(struct reading *reading, const struct text_list *environment) {
    struct text missing = {0};
    for (size_t i = 0; i < reading->result->table->definition_count && is_reading(reading); i++) {
        const struct option_definition *definition = definition_at(reading, i);
        if (reading->is_seen[i]) {
            continue;
        }
        if (is_required(definition)) {
            text_append_format(
                &missing, "%s%s", missing.length == 0 ? "" : ", ", definition->destination);
        } else {
            set_fallback(reading, i, environment);
        }
    }
    if (missing.length > 0) {
        append_suggestion(reading, &missing);
        option_result_reject(reading->result, NULL, "the following arguments are required: %s",
            text_string(&missing));
    }
    text_clear(&missing);
    if (!is_reading(reading) || reading->extras.count == 0) {
        return;
    }
    struct text extras = {0};
    for (size_t i = 0; i < reading->extras.count; i++) {
        text_append_format(&extras, "%s%s", i == 0 ? "" : " ", reading->extras.items[i]);
    }
    append_suggestion(reading, &extras);
    option_result_reject(reading->result, NULL, "unrecognized arguments: %s", text_string(&extras));
    text_clear(&extras);
}

/* Marks which arguments are options. After the first "--" no argument is one. */
static char *classify(const struct option_table *table, const struct text_list *arguments) {
    char *pattern = memory_allocate(arguments->count + 1);
    bool has_ended = false;
    for (size_t i = 0; i < arguments->count; i++) {
        if (!has_ended && text_equals(arguments->items[i], "--")) {
            pattern[i] = '-';
            has_ended = true;
        } else {
            bool is_option = !has_ended && option_match_is_option(table, arguments->items[i]);
            pattern[i] = is_option ? 'O' : 'A';
        }
    }
    return pattern;
}

static void gather_positionals(struct reading *reading) {
    const struct option_table *table = reading->result->table;
    for (size_t i = 0; i < table->definition_count; i++) {
        if (option_is_positional(&table->definitions[i]) &&
            reading->waiting_count < POSITIONAL_MAXIMUM_COUNT) {
            reading->waiting[reading->waiting_count++] = i;
        }
    }
}

void option_parse(const struct option_table *table, const char *program,
    const struct text_list *arguments, const struct text_list *environment,
    struct option_result *out_result) {
    option_result_init(out_result, table, program, environment);
    struct reading reading = {
        .result = out_result,
        .arguments = arguments,
        .pattern = classify(table, arguments),
        .is_seen = memory_allocate(table->definition_count * sizeof *reading.is_seen),
    };
    gather_positionals(&reading);
    consume_arguments(&reading);
    if (is_reading(&reading)) {
        settle(&reading, environment);
    }
    free(reading.pattern);
    free(reading.is_seen);
    text_list_clear(&reading.extras);
}
