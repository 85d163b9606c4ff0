/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/argparse/option_parser.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "options/argparse/option_table.h"

/* Decides whether an argument is an option, and which one: by whole name, by prefix, as a short
 * option with its value attached. Numbers below zero are no options. Looks at one argument alone.
 * Matches Lib/argparse.py ArgumentParser._parse_optional and _get_option_tuples (Python 3.14). */

/* Strings belong to the table and to the argument. */
struct option_match {
    size_t index;         /* of the definition; definition_count: the option is unknown */
    const char *name;     /* in the table's spelling */
    bool has_equals_sign; /* "=" stands before the attached value */
    const char *attached; /* the value or further short options in the same argument; NULL: none */
    bool is_one_option;   /* all names that the argument may mean are of this option */
};

/* Walks over each name of each option in the table's order, as argparse's map of option strings
 * does. */
struct name_cursor {
    const struct option_table *table;
    size_t index;
    size_t name;
};

static const char *next_name(struct name_cursor *cursor, size_t *out_index) {
    while (cursor->index < cursor->table->definition_count) {
        const char *const *names = cursor->table->definitions[cursor->index].names;
        if (cursor->name < OPTION_MAXIMUM_NAMES && names[cursor->name] != NULL) {
            *out_index = cursor->index;
            return names[cursor->name++];
        }
        cursor->index++;
        cursor->name = 0;
    }
    return NULL;
}

/* Finds the option whose name is exactly the first `length` characters. */
static bool find_exact(const struct option_table *table, const char *argument, size_t length,
    struct option_match *out_match) {
    struct name_cursor cursor = {.table = table};
    size_t index;
    for (const char *name; (name = next_name(&cursor, &index)) != NULL;) {
        if (strlen(name) == length && strncmp(name, argument, length) == 0) {
            *out_match = (struct option_match){.index = index, .name = name};
            return true;
        }
    }
    return false;
}

/* A long option matches when the argument up to "=" is a prefix of its name. A short option matches
 * its letter; the text behind the letter is its value. */
static bool matches_loosely(
    const char *name, const char *argument, size_t prefix_length, struct option_match *out_match) {
    bool is_short = argument[1] != '-';
    if (is_short && strlen(name) == 2 && name[1] == argument[1]) {
        *out_match = (struct option_match){.name = name, .attached = argument + 2};
        return true;
    }
    if (strncmp(name, argument, prefix_length) != 0) {
        return false;
    }
    bool has_equals_sign = argument[prefix_length] == '=';
    *out_match = (struct option_match){.name = name,
        .has_equals_sign = has_equals_sign,
        .attached = has_equals_sign ? argument + prefix_length + 1 : NULL};
    return true;
}

static size_t find_abbreviated(const struct option_table *table, const char *argument,
    bool is_addition, struct option_match *out_first, struct text *out_names) {
    size_t prefix_length = strcspn(argument, "=");
    struct name_cursor cursor = {.table = table};
    size_t index;
    size_t count = 0;
    for (const char *name; (name = next_name(&cursor, &index)) != NULL;) {
        struct option_match match;
        if (table->definitions[index].is_addition != is_addition ||
            !matches_loosely(name, argument, prefix_length, &match)) {
            continue;
        }
        if (count == 0) {
            *out_first = match;
            out_first->index = index;
            out_first->is_one_option = true;
        }
        out_first->is_one_option = out_first->is_one_option && out_first->index == index;
        if (out_names != NULL) {
            text_append_format(out_names, "%s%s", count == 0 ? "" : ", ", name);
        }
        count++;
    }
    return count;
}

static size_t find_loosely(const struct option_table *table, const char *argument,
    struct option_match *out_first, struct text *out_names) {
    size_t count = find_abbreviated(table, argument, false, out_first, out_names);
    return count > 0 ? count : find_abbreviated(table, argument, true, out_first, out_names);
}

static bool looks_like_negative_number(const char *argument) {
    const char *digit = argument[1] == '.' ? argument + 2 : argument + 1;
    return text_is_digit(*digit);
}

/* The number of names of options that the argument may mean. `out_first` gets the first of them.
 * `out_names`, unless NULL, gets all their names, separated by ", ". */
static size_t option_match_find(const struct option_table *table, const char *argument,
    struct option_match *out_first, struct text *out_names) {
    size_t length = strlen(argument);
    if (find_exact(table, argument, length, out_first)) {
        return 1;
    }
    size_t prefix_length = strcspn(argument, "=");
    if (prefix_length < length && find_exact(table, argument, prefix_length, out_first)) {
        out_first->has_equals_sign = true;
        out_first->attached = argument + prefix_length + 1;
        return 1;
    }
    size_t count = find_loosely(table, argument, out_first, out_names);
    if (count == 0) {
        *out_first = (struct option_match){.index = table->definition_count, .name = argument};
        return 1;
    }
    return count;
}

/* Whether the argument looks like an option, known or unknown. */
static bool option_match_is_option(const struct option_table *table, const char *argument) {
    if (argument[0] != '-' || argument[1] == '\0') {
        return false;
    }
    struct option_match match;
    size_t count = option_match_find(table, argument, &match, NULL);
    if (count > 1 || match.index < table->definition_count) {
        return true;
    }
    return !looks_like_negative_number(argument) && strchr(argument, ' ') == NULL;
}

/* The definition of the one-letter option "-`letter`"; definition_count when there is none. */
static size_t option_match_letter(
    const struct option_table *table, char letter, const char **out_name) {
    const char name[] = {'-', letter, '\0'};
    struct option_match match;
    if (!find_exact(table, name, 2, &match)) {
        return table->definition_count;
    }
    *out_name = match.name;
    return match.index;
}

/* Option bundle. */

/* Reads one argument that is an option completely before any of it takes effect: a long option, or
 * a bundle of one-letter flags that may end in an option with a value ("-mt3", "-m -t 3"). Matches
 * consume_optional of Lib/argparse.py ArgumentParser._parse_known_args (Python 3.14). */

/* Definitions are given by index; definition_count means none. */
struct option_bundle {
    size_t *flags; /* options without value, in order */
    size_t flag_count;
    size_t flag_capacity;
    size_t valued;       /* the option with a value at the end of the bundle */
    const char *value;   /* belongs to the arguments */
    char *unknown;       /* the part that no option matches, "-x"; NULL: none */
    struct text mistake; /* why the argument is invalid; empty: it is valid */
    size_t mistaken;     /* the option that the mistake is about */
    size_t end;          /* position of the first argument behind the option and its value */
};

static void add_flag(struct option_bundle *bundle, size_t index) {
    bundle->flags = memory_reserve(
        bundle->flags, &bundle->flag_capacity, bundle->flag_count + 1, sizeof *bundle->flags);
    bundle->flags[bundle->flag_count++] = index;
}

static void refuse_attached(struct option_bundle *bundle, const struct option_match *match) {
    bundle->mistaken = match->index;
    text_append(&bundle->mistake, "ignored explicit argument ");
    python_repr_append(&bundle->mistake, match->attached);
}

/* Moves `match` to the next letter of a bundle after a flag. False when there is no further letter,
 * or when no option has that letter. */
static bool next_letter(
    const struct option_table *table, struct option_bundle *bundle, struct option_match *match) {
    const char *rest = match->attached;
    if (rest == NULL) {
        return false;
    }
    if (match->has_equals_sign || *rest == '-') {
        refuse_attached(bundle, match);
        return false;
    }
    match->index = option_match_letter(table, *rest, &match->name);
    if (match->index == table->definition_count) {
        bundle->unknown = text_format("-%s", rest);
        return false;
    }
    rest++;
    match->has_equals_sign = *rest == '=';
    match->attached = *rest == '\0' ? NULL : rest + match->has_equals_sign;
    return true;
}

/* The value is the argument after the option, if that argument may be a value. */
static void take_following(
    struct option_bundle *bundle, size_t index, const char *argument, char letter) {
    if (letter != 'A') {
        bundle->mistaken = index;
        text_append(&bundle->mistake, "expected one argument");
        return;
    }
    bundle->valued = index;
    bundle->value = argument;
    bundle->end++;
}

static void read_matched(const struct option_table *table, const struct text_list *arguments,
    const char *pattern, struct option_match match, struct option_bundle *bundle) {
    do {
        if (option_takes_value(&table->definitions[match.index])) {
            if (match.attached == NULL) {
                size_t following = bundle->end;
                take_following(
                    bundle, match.index, arguments->items[following], pattern[following]);
            } else {
                bundle->valued = match.index;
                bundle->value = match.attached;
            }
            return;
        }
        if (match.attached != NULL && (match.name[1] == '-' || *match.attached == '\0')) {
            refuse_attached(bundle, &match);
            return;
        }
        add_flag(bundle, match.index);
    } while (next_letter(table, bundle, &match));
}

/* Reads the option at `position`. `pattern` has a letter for each argument: 'O' an option, '-' the
 * first "--", 'A' any other. To the letter, as argparse does, a prefix of two spellings of one
 * option is ambiguous; otherwise it means the option. The caller clears the bundle. */
static void option_bundle_read(const struct option_table *table, const struct text_list *arguments,
    const char *pattern, size_t position, bool is_to_the_letter, struct option_bundle *out_bundle) {
    const char *argument = arguments->items[position];
    *out_bundle = (struct option_bundle){.valued = table->definition_count,
        .mistaken = table->definition_count,
        .end = position + 1};
    struct option_match match;
    struct text names = {0};
    bool is_one = option_match_find(table, argument, &match, &names) == 1;
    if (!is_one && (is_to_the_letter || !match.is_one_option)) {
        text_append_format(&out_bundle->mistake, "ambiguous option: %s could match %s", argument,
            text_string(&names));
    } else if (match.index == table->definition_count) {
        out_bundle->unknown = memory_duplicate_string(argument);
    } else {
        read_matched(table, arguments, pattern, match, out_bundle);
    }
    text_clear(&names);
}

static void option_bundle_clear(struct option_bundle *bundle) {
    free(bundle->flags);
    free(bundle->unknown);
    text_clear(&bundle->mistake);
    *bundle = (struct option_bundle){0};
}

/* Positional match. */

/* How many arguments each waiting positional takes from a run of arguments. argparse writes one
 * regular expression for all of them and lets it backtrack; the few patterns it can produce are
 * matched here directly. Matches Lib/argparse.py ArgumentParser._match_arguments_partial and
 * _get_nargs_pattern (Python 3.14). */

#define POSITIONAL_MAXIMUM_COUNT 8

/* The most arguments this arity may hold at all. */
static size_t most_values(enum option_arity arity) {
    return arity == OPTION_ARITY_ONE || arity == OPTION_ARITY_OPTIONAL ? 1 : (size_t)-1;
}

static size_t fewest_values(enum option_arity arity) {
    return arity == OPTION_ARITY_ONE || arity == OPTION_ARITY_SOME ? 1 : 0;
}

/* The longest run at the start of `pattern` that holds no option and at most that many values; a
 * "--" inside costs nothing. */
static size_t longest_run(enum option_arity arity, const char *pattern, size_t *out_values) {
    if (arity == OPTION_ARITY_REMAINDER) {
        *out_values = 0;
        return strlen(pattern);
    }
    size_t length = 0;
    size_t values = 0;
    while (pattern[length] == '-' || (pattern[length] == 'A' && values < most_values(arity))) {
        values += pattern[length] == 'A';
        length++;
    }
    *out_values = values;
    return length;
}

static bool match_all(
    const enum option_arity *arities, size_t arity_count, const char *pattern, size_t *taken) {
    if (arity_count == 0) {
        return true;
    }
    size_t values;
    size_t length = longest_run(arities[0], pattern, &values);
    while (values >= fewest_values(arities[0])) {
        if (match_all(arities + 1, arity_count - 1, pattern + length, taken + 1)) {
            taken[0] = length;
            return true;
        }
        if (length == 0) {
            break;
        }
        length--;
        values -= pattern[length] == 'A' && values > 0;
    }
    return false;
}

/* `pattern` has a letter for each argument from here on: 'O' an option, 'A' another argument, '-'
 * the first "--". Matches as many of the positionals, in order, as can be, each taking all it can.
 * Writes the arguments each takes to `out_taken` and returns how many positionals matched; at most
 * POSITIONAL_MAXIMUM_COUNT are looked at. */
static size_t positional_match(
    const enum option_arity *arities, size_t arity_count, const char *pattern, size_t *out_taken) {
    if (arity_count > POSITIONAL_MAXIMUM_COUNT) {
        arity_count = POSITIONAL_MAXIMUM_COUNT;
    }
    for (; arity_count > 0; arity_count--) {
        if (match_all(arities, arity_count, pattern, out_taken)) {
            break;
        }
    }
    size_t end = 0;
    for (size_t i = 0; i < arity_count; i++) {
        end += out_taken[i];
    }
    if (pattern[end] == 'O') { /* those that took nothing wait for what follows the option */
        while (arity_count > 0 && out_taken[arity_count - 1] == 0) {
            arity_count--;
        }
    }
    return arity_count;
}

/* Option suggestion. */

/* Longer words are not compared: no option is that long. */
#define LONGEST_WORD 64
/* One in so many characters may be wrong. */
#define CHARACTERS_PER_MISTAKE 3

static size_t smallest(size_t left, size_t middle, size_t right) {
    size_t least = left < middle ? left : middle;
    return least < right ? least : right;
}

/* "-" and "_" are the same in names of options. */
static char plain(char character) {
    char lower = character >= 'A' && character <= 'Z' ? (char)(character - 'A' + 'a') : character;
    return lower == '-' ? '_' : lower;
}

static bool is_same(char left, char right) {
    return plain(left) == plain(right);
}

/* How many characters have to be changed, added or left out to get from one word to the other
 * (Levenshtein). Both words have at most LONGEST_WORD characters. */
static size_t distance_between(
    const char *word, size_t word_length, const char *name, size_t name_length) {
    size_t row[LONGEST_WORD + 1];
    for (size_t j = 0; j <= name_length; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= word_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= name_length; j++) {
            size_t above = row[j];
            row[j] = smallest(
                above + 1, row[j - 1] + 1, diagonal + (is_same(word[i - 1], name[j - 1]) ? 0 : 1));
            diagonal = above;
        }
    }
    return row[name_length];
}

bool option_suggestion_is_better(
    const char *word, size_t length, const char *candidate, size_t *best) {
    size_t bound = *best > 0 ? *best : length / CHARACTERS_PER_MISTAKE + 1;
    size_t candidate_length = strlen(candidate);
    if (length > LONGEST_WORD || candidate_length > LONGEST_WORD) {
        return false;
    }
    size_t distance = distance_between(word, length, candidate, candidate_length);
    if (distance >= bound) {
        return false;
    }
    *best = distance > 0 ? distance : 1;
    return true;
}

/* "-np", "-np=4", "-n4". */
static const char *of_other_launchers(const struct option_table *table, const char *argument) {
    for (const struct option_stranger *stranger = table->strangers;
         stranger != NULL && stranger->word != NULL; stranger++) {
        size_t length = strlen(stranger->word);
        char next = argument[strncmp(argument, stranger->word, length) == 0 ? length : 0];
        if (next == '=' || (argument[0] == '-' && argument[1] != '-' && text_is_digit(next)) ||
            text_equals(argument, stranger->word)) {
            return stranger->name;
        }
    }
    return NULL;
}

/* The long name that is most like the argument (whatever follows its "="), or NULL where none is
 * like it; of a word of another launcher's, what it is called here. The name belongs to the table.
 */
static const char *option_suggest(const struct option_table *table, const char *argument) {
    const char *found = of_other_launchers(table, argument);
    size_t length = strcspn(argument, "=");
    size_t best = 0;
    if (found != NULL || !text_starts_with(argument, "--")) {
        return found;
    }
    for (size_t i = 0; i < table->definition_count; i++) {
        for (size_t n = 0; n < OPTION_MAXIMUM_NAMES; n++) {
            const char *name = table->definitions[i].names[n];
            if (name != NULL && text_starts_with(name, "--") &&
                option_suggestion_is_better(argument, length, name, &best)) {
                found = name;
            }
        }
    }
    return found;
}

/* Option parser. */

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
