/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

void text_clear(struct text *text) {
    free(text->data);
    *text = (struct text){0};
}

void text_append_bytes(struct text *text, const char *data, size_t length) {
    text->data = memory_reserve(text->data, &text->capacity, text->length + length + 1, 1);
    if (length > 0) {
        memcpy(text->data + text->length, data, length);
    }
    text->length += length;
    text->data[text->length] = '\0';
}

void text_keep_end(struct text *text, size_t length) {
    if (text->length > 2 * length) {
        memmove(text->data, text->data + text->length - length, length + 1);
        text->length = length;
    }
}

void text_append(struct text *text, const char *string) {
    text_append_bytes(text, string, strlen(string));
}

void text_append_arguments(struct text *text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length > 0) {
        size_t needed = (size_t)length + 1;
        text->data = memory_reserve(text->data, &text->capacity, text->length + needed, 1);
        vsnprintf(text->data + text->length, needed, format, again);
        text->length += (size_t)length;
    }
    va_end(again);
}

void text_append_format(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    text_append_arguments(text, format, arguments);
    va_end(arguments);
}

const char *text_string(const struct text *text) {
    return text->data == NULL ? "" : text->data;
}

char *text_take(struct text *text) {
    char *taken = text->data == NULL ? memory_duplicate_string("") : text->data;
    *text = (struct text){0};
    return taken;
}

char *text_format(const char *format, ...) {
    struct text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_append_arguments(&text, format, arguments);
    va_end(arguments);
    return text_take(&text);
}

void text_list_clear(struct text_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    *list = (struct text_list){0};
}

void text_list_add_taken(struct text_list *list, char *string_taken) {
    list->items =
        memory_reserve(list->items, &list->capacity, list->count + 2, sizeof *list->items);
    list->items[list->count++] = string_taken;
    list->items[list->count] = NULL;
}

void text_list_add(struct text_list *list, const char *string) {
    text_list_add_taken(list, memory_duplicate_string(string));
}

void text_list_add_all(struct text_list *list, const struct text_list *other) {
    for (size_t i = 0; i < other->count; i++) {
        text_list_add(list, other->items[i]);
    }
}

static char **find_variable(const struct text_list *list, const char *name) {
    size_t length = strlen(name);
    for (size_t i = 0; i < list->count; i++) {
        if (strncmp(list->items[i], name, length) == 0 && list->items[i][length] == '=') {
            return &list->items[i];
        }
    }
    return NULL;
}

void text_list_set_variable(struct text_list *list, const char *name, const char *value) {
    char *assignment = text_format("%s=%s", name, value);
    char **found = find_variable(list, name);
    if (found == NULL) {
        text_list_add_taken(list, assignment);
        return;
    }
    free(*found);
    *found = assignment;
}

const char *text_list_variable(const struct text_list *list, const char *name) {
    char **found = find_variable(list, name);
    return found == NULL ? NULL : *found + strlen(name) + 1;
}

bool text_equals(const char *left, const char *right) {
    return strcmp(left, right) == 0;
}

bool text_starts_with(const char *whole, const char *start) {
    return strncmp(whole, start, strlen(start)) == 0;
}

static bool is_blank(char character) {
    return character == ' ' || (character >= '\t' && character <= '\r');
}

bool text_is_digit(int character) {
    return character >= '0' && character <= '9';
}

/* The text without surrounding blanks and without the underscores Python allows between two digits,
 * or NULL. */
static char *bare_number(const char *string) {
    while (is_blank(*string)) {
        string++;
    }
    size_t length = strlen(string);
    while (length > 0 && is_blank(string[length - 1])) {
        length--;
    }
    struct text bare = {0};
    for (size_t i = 0; i < length; i++) {
        if (string[i] != '_') {
            text_append_bytes(&bare, &string[i], 1);
            continue;
        }
        if (i == 0 || i + 1 == length || !text_is_digit(string[i - 1]) ||
            !text_is_digit(string[i + 1])) {
            text_clear(&bare);
            return NULL;
        }
    }
    return text_take(&bare);
}

static enum failure_code parse_digits(const char *digits, int64_t *out_value) {
    bool is_negative = *digits == '-';
    if (*digits == '-' || *digits == '+') {
        digits++;
    }
    if (*digits == '\0') {
        return FAILURE_MALFORMED;
    }
    int64_t value = 0; /* negative until the end, because -INT64_MIN does not exist */
    bool is_too_large = false;
    for (; *digits != '\0'; digits++) {
        if (!text_is_digit(*digits)) {
            return FAILURE_MALFORMED;
        }
        int64_t digit = *digits - '0';
        if (value < (INT64_MIN + digit) / 10) {
            is_too_large = true;
        } else {
            value = value * 10 - digit;
        }
    }
    if (is_too_large || (!is_negative && value == INT64_MIN)) {
        return FAILURE_LIMIT;
    }
    *out_value = is_negative ? value : -value;
    return FAILURE_NONE;
}

enum failure_code text_parse_integer(const char *string, int64_t *out_value) {
    char *bare = bare_number(string);
    if (bare == NULL) {
        return FAILURE_MALFORMED;
    }
    enum failure_code code = parse_digits(bare, out_value);
    free(bare);
    return code;
}

/* strtod also accepts hexadecimal, "inf" and "nan"; this accepts decimal numbers only. */
static bool looks_decimal(const char *string) {
    return *string != '\0' && string[strspn(string, "0123456789.eE+-")] == '\0';
}

enum failure_code text_parse_float(const char *string, double *out_value) {
    char *bare = bare_number(string);
    if (bare == NULL) {
        return FAILURE_MALFORMED;
    }
    enum failure_code code = FAILURE_MALFORMED;
    if (looks_decimal(bare)) {
        char *end;
        double value = strtod(bare, &end);
        if (*end == '\0' && value - value == 0) {
            *out_value = value;
            code = FAILURE_NONE;
        }
    }
    free(bare);
    return code;
}

/* Python repr. */

static void append_single_byte(struct text *out, char byte, char quote) {
    if (byte == quote || byte == '\\') {
        text_append_format(out, "\\%c", byte);
    } else if (byte == '\n') {
        text_append(out, "\\n");
    } else if (byte == '\r') {
        text_append(out, "\\r");
    } else if (byte == '\t') {
        text_append(out, "\\t");
    } else if (byte < ' ' || byte == 0x7f) {
        text_append_format(out, "\\x%02x", (unsigned)byte);
    } else {
        text_append_bytes(out, &byte, 1);
    }
}

/* C1 controls, the no-break space and the soft hyphen: not printable for Python. */
static bool is_hidden_latin(const unsigned char *bytes) {
    return bytes[0] == 0xc2 && (bytes[1] <= 0xa0 || bytes[1] == 0xad);
}

void python_repr_append(struct text *out, const char *string) {
    char quote = strchr(string, '\'') != NULL && strchr(string, '"') == NULL ? '"' : '\'';
    text_append_bytes(out, &quote, 1);
    const char *end = string + strlen(string);
    while (string < end) {
        const unsigned char *bytes = (const unsigned char *)string;
        size_t length = utf8_character_length(bytes, (size_t)(end - string));
        if (length == 0) {
            text_append_format(out, "\\udc%02x", bytes[0]);
            length = 1;
        } else if (length == 1) {
            append_single_byte(out, *string, quote);
        } else if (is_hidden_latin(bytes)) {
            text_append_format(out, "\\x%02x", bytes[1]);
        } else {
            text_append_bytes(out, string, length);
        }
        string += length;
    }
    text_append_bytes(out, &quote, 1);
}

/* Template. */

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
