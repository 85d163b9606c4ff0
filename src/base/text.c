/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

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
