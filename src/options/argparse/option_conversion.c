/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/argparse/option_conversion.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/python_repr.h"

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

void option_split_commas(const char *text, struct text_list *out_items) {
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
        text_list_clear(&value->list);
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
