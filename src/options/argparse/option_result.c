/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/argparse/option_result.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "options/argparse/option_table.h"

#define DEFAULT_COLUMNS 80
#define MAXIMUM_COLUMNS 10000

static size_t columns_from(const struct text_list *environment) {
    const char *given = text_list_variable(environment, "COLUMNS");
    int64_t columns;
    if (given == NULL || text_parse_integer(given, &columns) != FAILURE_NONE || columns <= 0) {
        return DEFAULT_COLUMNS;
    }
    return columns > MAXIMUM_COLUMNS ? MAXIMUM_COLUMNS : (size_t)columns;
}

void option_result_init(struct option_result *result, const struct option_table *table,
    const char *program, const struct text_list *environment) {
    *result = (struct option_result){
        .table = table,
        .program = memory_duplicate_string(program),
        .columns = columns_from(environment),
        .values = memory_allocate(table->definition_count * sizeof *result->values),
    };
}

void option_result_clear(struct option_result *result) {
    for (size_t i = 0; result->values != NULL && i < result->table->definition_count; i++) {
        free(result->values[i].text);
        text_list_clear(&result->values[i].list);
    }
    free(result->values);
    free(result->program);
    free(result->text);
    *result = (struct option_result){0};
}

const struct option_value *option_result_value(
    const struct option_result *result, const char *destination) {
    static const struct option_value nothing;
    size_t index = option_table_find(result->table, destination);
    return index < result->table->definition_count ? &result->values[index] : &nothing;
}

const char *option_result_text(const struct option_result *result, const char *destination) {
    const char *text = option_result_value(result, destination)->text;
    return text == NULL ? "" : text;
}

void option_result_supply(struct option_result *result, const char *destination, const char *text) {
    size_t index = option_table_find(result->table, destination);
    if (index == result->table->definition_count) {
        return;
    }
    struct option_value *value = &result->values[index];
    char *copy = memory_duplicate_string(text);
    free(value->text);
    value->text = copy;
    value->is_set = true;
    value->source = OPTION_SOURCE_SUPPLIED;
}

void option_result_print(struct option_result *result, char *text_taken) {
    free(result->text);
    result->text = text_taken;
    result->outcome = OPTION_OUTCOME_PRINT;
}

static void append_subject(
    struct text *out, const struct option_result *result, const char *destination) {
    size_t index = option_table_find(result->table, destination);
    if (index < result->table->definition_count) {
        char *name = option_display_name(&result->table->definitions[index]);
        text_append_format(out, "argument %s: ", name);
        free(name);
    }
}

static void append_origin(
    struct text *out, const struct option_result *result, const char *destination) {
    if (option_result_value(result, destination)->source != OPTION_SOURCE_ENVIRONMENT) {
        return;
    }
    size_t index = option_table_find(result->table, destination);
    char *variable = option_variable_name(result->table, &result->table->definitions[index]);
    text_append_format(out, " (from the environment variable %s)", variable);
    free(variable);
}

bool option_result_is_torchrun(const struct option_result *result) {
    return text_equals(result->program, "torchrun");
}

void option_result_reject(
    struct option_result *result, const char *destination, const char *format, ...) {
    if (result->outcome == OPTION_OUTCOME_MISTAKE) {
        return;
    }
    struct text text = {0};
    if (option_result_is_torchrun(result)) {
        option_help_usage(result->table, result->program, result->columns, &text);
    }
    text_append_format(&text, "%s: error: ", result->program);
    if (destination != NULL) {
        append_subject(&text, result, destination);
    }
    va_list arguments;
    va_start(arguments, format);
    text_append_arguments(&text, format, arguments);
    va_end(arguments);
    if (destination != NULL) {
        append_origin(&text, result, destination);
    }
    text_append(&text, "\n");
    if (!option_result_is_torchrun(result)) {
        option_help_hint(result->table, result->program, &text);
    }
    free(result->text);
    result->text = text_take(&text);
    result->outcome = OPTION_OUTCOME_MISTAKE;
}

enum failure_code option_result_settle(struct option_result *result, const char *destination,
    enum failure_code code, struct text *reason) {
    if (code != FAILURE_NONE) {
        option_result_reject(result, destination, "%s", text_string(reason));
    }
    text_clear(reason);
    return code;
}

/* Option conversion. */

static enum failure_code refuse(struct text *out_reason, const char *what, const char *text) {
    text_append(out_reason, what);
    python_repr_append(out_reason, text);
    return FAILURE_INVALID;
}

static enum failure_code convert_integer(
    const char *text, int64_t *out_integer, struct text *out_reason) {
    enum failure_code code = text_parse_integer(text, out_integer);
    if (code == FAILURE_NONE) {
        return FAILURE_NONE;
    }
    const char *what = code == FAILURE_LIMIT ? "int value out of range: " : "invalid int value: ";
    return refuse(out_reason, what, text);
}

static enum failure_code check_choice(
    const struct option_definition *definition, const char *text, struct text *out_reason) {
    if (definition->choices == NULL) {
        return FAILURE_NONE;
    }
    for (size_t i = 0; definition->choices[i] != NULL; i++) {
        if (text_equals(definition->choices[i], text)) {
            return FAILURE_NONE;
        }
    }
    (void)refuse(out_reason, "invalid choice: ", text);
    for (size_t i = 0; definition->choices[i] != NULL; i++) {
        text_append(out_reason, i == 0 ? " (choose from " : ", ");
        python_repr_append(out_reason, definition->choices[i]);
    }
    text_append(out_reason, ")");
    return FAILURE_INVALID;
}

/* Splits at commas. Two commas in a row mean one comma inside an item. "" is one empty item. */
static void option_split_commas(const char *text, struct text_list *out_items) {
    struct text item = {0};
    for (; *text != '\0'; text++) {
        if (*text != ',') {
            text_append_bytes(&item, text, 1);
        } else if (text[1] == ',') {
            text_append(&item, ",");
            text++;
        } else {
            text_list_add_taken(out_items, text_take(&item));
        }
    }
    text_list_add_taken(out_items, text_take(&item));
}

static void store_text(struct option_value *value, const char *text) {
    char *copy = memory_duplicate_string(text);
    free(value->text);
    value->text = copy;
}

enum failure_code option_convert(const struct option_definition *definition, const char *text,
    struct option_value *value, struct text *out_reason) {
    enum failure_code code = FAILURE_NONE;
    int64_t integer = value->integer;
    switch (definition->kind) {
    case OPTION_INTEGER:
        code = convert_integer(text, &value->integer, out_reason);
        break;
    case OPTION_FLAG:
        code = convert_integer(text, &integer, out_reason);
        value->flag = code == FAILURE_NONE ? integer != 0 : value->flag;
        break;
    case OPTION_FLOAT:
        if (text_parse_float(text, &value->number) != FAILURE_NONE) {
            code = refuse(out_reason, "invalid float value: ", text);
        }
        break;
    case OPTION_COMMA_LIST:
        if (!definition->is_repeatable) {
            text_list_clear(&value->list);
        }
        option_split_commas(text, &value->list);
        break;
    case OPTION_TEXT:
    case OPTION_COMPLETION:
        code = check_choice(definition, text, out_reason);
        break;
    case OPTION_HELP:
    case OPTION_VERSION:
        break;
    }
    if (code == FAILURE_NONE) {
        value->is_set = true;
        store_text(value, text);
    }
    return code;
}
