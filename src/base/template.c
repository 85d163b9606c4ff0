/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/template.h"

#include <stdbool.h>
#include <string.h>

/* One dollar sign of the template and what follows it. */
struct placeholder {
    const char *name; /* NULL: "$$" (length 2), or a dollar sign that is plain text (length 1) */
    size_t name_length;
    size_t length; /* of the whole placeholder, dollar sign and braces included */
};

static bool starts_name(char character) {
    return character == '_' || (character >= 'a' && character <= 'z') ||
           (character >= 'A' && character <= 'Z');
}

static bool continues_name(char character) {
    return starts_name(character) || text_is_digit(character);
}

static size_t length_of_name(const char *text) {
    if (!starts_name(*text)) {
        return 0;
    }
    size_t length = 1;
    while (continues_name(text[length])) {
        length++;
    }
    return length;
}

static struct placeholder read_placeholder(const char *dollar) {
    if (dollar[1] == '$') {
        return (struct placeholder){.length = 2};
    }
    bool is_braced = dollar[1] == '{';
    const char *name = dollar + (is_braced ? 2 : 1);
    size_t name_length = length_of_name(name);
    if (name_length == 0 || (is_braced && name[name_length] != '}')) {
        return (struct placeholder){.length = 1};
    }
    return (struct placeholder){name, name_length, name_length + (is_braced ? 3 : 1)};
}

static const char *find_value(const struct placeholder *placeholder,
    const struct template_value *values, size_t value_count) {
    for (size_t i = 0; i < value_count; i++) {
        if (strlen(values[i].name) == placeholder->name_length &&
            memcmp(values[i].name, placeholder->name, placeholder->name_length) == 0) {
            return values[i].value;
        }
    }
    return NULL;
}

char *template_substitute(
    const char *template, const struct template_value *values, size_t value_count) {
    struct text result = {0};
    const char *rest = template;
    while (*rest != '\0') {
        size_t plain = strcspn(rest, "$");
        text_append_bytes(&result, rest, plain);
        rest += plain;
        if (*rest == '\0') {
            break;
        }
        struct placeholder placeholder = read_placeholder(rest);
        const char *value = NULL;
        if (placeholder.name != NULL) {
            value = find_value(&placeholder, values, value_count);
        } else if (placeholder.length == 2) {
            value = "$";
        }
        if (value != NULL) {
            text_append(&result, value);
        } else {
            text_append_bytes(&result, rest, placeholder.length);
        }
        rest += placeholder.length;
    }
    return text_take(&result);
}

static bool list_contains(const struct text_list *list, const struct placeholder *placeholder) {
    for (size_t i = 0; i < list->count; i++) {
        if (strlen(list->items[i]) == placeholder->name_length &&
            memcmp(list->items[i], placeholder->name, placeholder->name_length) == 0) {
            return true;
        }
    }
    return false;
}

void template_unknown_names(const char *template, const struct template_value *values,
    size_t value_count, struct text_list *out_names) {
    const char *rest = strchr(template, '$');
    while (rest != NULL) {
        struct placeholder placeholder = read_placeholder(rest);
        if (placeholder.name != NULL && find_value(&placeholder, values, value_count) == NULL &&
            !list_contains(out_names, &placeholder)) {
            struct text name = {0};
            text_append_bytes(&name, placeholder.name, placeholder.name_length);
            text_list_add_taken(out_names, text_take(&name));
        }
        rest = strchr(rest + placeholder.length, '$');
    }
}
