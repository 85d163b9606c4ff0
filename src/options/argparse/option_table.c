/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/argparse/option_table.h"

#include "base/text.h"

bool option_is_positional(const struct option_definition *definition) {
    return definition->names[0] == NULL;
}

bool option_takes_value(const struct option_definition *definition) {
    switch (definition->kind) {
    case OPTION_TEXT:
    case OPTION_INTEGER:
    case OPTION_FLOAT:
    case OPTION_COMMA_LIST:
    case OPTION_COMPLETION:
        return !option_is_positional(definition);
    case OPTION_FLAG:
    case OPTION_HELP:
    case OPTION_VERSION:
        break;
    }
    return false;
}

size_t option_table_find(const struct option_table *table, const char *destination) {
    size_t index = 0;
    while (index < table->definition_count &&
           !text_equals(table->definitions[index].destination, destination)) {
        index++;
    }
    return index;
}

char *option_display_name(const struct option_definition *definition) {
    if (option_is_positional(definition)) {
        return text_format("%s", definition->destination);
    }
    struct text name = {0};
    for (size_t i = 0; i < OPTION_MAXIMUM_NAMES && definition->names[i] != NULL; i++) {
        text_append_format(&name, "%s%s", i == 0 ? "" : "/", definition->names[i]);
    }
    return text_take(&name);
}

static void append_capitals(struct text *out, const char *string) {
    for (; *string != '\0'; string++) {
        char capital = *string >= 'a' && *string <= 'z' ? (char)(*string - 'a' + 'A') : *string;
        text_append_bytes(out, &capital, 1);
    }
}

char *option_variable_name(
    const struct option_table *table, const struct option_definition *definition) {
    if (!definition->reads_environment || table->environment_prefix == NULL) {
        return NULL;
    }
    struct text name = {0};
    text_append(&name, table->environment_prefix);
    append_capitals(&name, definition->destination);
    return text_take(&name);
}

char *option_placeholder(const struct option_definition *definition) {
    struct text placeholder = {0};
    if (definition->choices != NULL) {
        for (size_t i = 0; definition->choices[i] != NULL; i++) {
            text_append_format(&placeholder, "%s%s", i == 0 ? "{" : ",", definition->choices[i]);
        }
        text_append(&placeholder, "}");
    } else if (option_is_positional(definition)) {
        text_append(&placeholder, definition->destination);
    } else {
        append_capitals(&placeholder, definition->destination);
    }
    return text_take(&placeholder);
}
