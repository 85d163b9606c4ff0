/* SPDX-License-Identifier: BSD-3-Clause */
/* Text: a growable NUL-terminated string, lists of strings shaped like argv, and the number
 * grammars of Python's int() and float(), which TorchElastic's options are read with. */
#ifndef MUSTER_BASE_TEXT_H
#define MUSTER_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"

/* A zeroed struct is a valid empty text; `data` is NULL until something is appended. */
struct text {
    char *data;
    size_t length;
    size_t capacity;
};

void text_clear(struct text *text);
void text_append(struct text *text, const char *string);
void text_append_bytes(struct text *text, const char *data, size_t length);
/* Drops what comes before the last `length` bytes, once there are twice as many. */
void text_keep_end(struct text *text, size_t length);
__attribute__((format(printf, 2, 3))) void text_append_format(
    struct text *text, const char *format, ...);
__attribute__((format(printf, 2, 0))) void text_append_arguments(
    struct text *text, const char *format, va_list arguments);
/* The string, never NULL; belongs to the text. */
const char *text_string(const struct text *text);
/* Returns the string, which the caller then frees with free(). The text is empty afterwards. */
char *text_take(struct text *text);

/* A formatted string; the caller frees it. */
__attribute__((format(printf, 1, 2))) char *text_format(const char *format, ...);

/* An owned list of strings; `items` is always NULL-terminated once something was added, so it can
 * be argv or envp. A zeroed struct is a valid empty list. */
struct text_list {
    char **items;
    size_t count;
    size_t capacity;
};

void text_list_clear(struct text_list *list);
/* Copies the string. */
void text_list_add(struct text_list *list, const char *string);
/* Takes the string. */
void text_list_add_taken(struct text_list *list, char *string_taken);
void text_list_add_all(struct text_list *list, const struct text_list *other);
/* For lists of NAME=VALUE: replaces the first entry of that name, or adds one. */
void text_list_set_variable(struct text_list *list, const char *name, const char *value);
/* For lists of NAME=VALUE: the value (belongs to the list), or NULL. */
const char *text_list_variable(const struct text_list *list, const char *name);

/* Whether the character is an ASCII digit. Takes any char or byte. */
bool text_is_digit(int character);

bool text_equals(const char *left, const char *right);
bool text_starts_with(const char *whole, const char *start);

/* Python's int(text) in base 10: surrounding blanks, a sign and single underscores between digits
 * are fine. FAILURE_MALFORMED for other text, FAILURE_LIMIT outside int64_t. */
__attribute__((warn_unused_result)) enum failure_code text_parse_integer(
    const char *string, int64_t *out_value);
/* Python's float(text), without infinities and NaN (FAILURE_MALFORMED). */
__attribute__((warn_unused_result)) enum failure_code text_parse_float(
    const char *string, double *out_value);

/* How Python shows a string in a message: repr(). Errors in the command line are worded as argparse
 * words them, so quotes and escapes are part of what users and their scripts expect. */

/* Appends repr(string): quoted, with control characters escaped. A byte that is not UTF-8 is
 * written as the lone surrogate that Python uses for it ("\udcff"). */
void python_repr_append(struct text *out, const char *string);

/* Templates with `$name`, `${name}` and `$$`, exactly as Python's string.Template.safe_substitute
 * reads them: names are ASCII identifiers; an unknown name, an unfinished brace and a lone dollar
 * stay as they are. Worker arguments and log line prefixes are written in it
 * (torch/distributed/elastic/agent/server/local_elastic_agent.py, api.py macros). */

/* A name and the value that replaces it. Names are case-sensitive. */
struct template_value {
    const char *name;
    const char *value;
};

/* Returns the template with the given values put in; the caller frees it. Values are not
 * substituted again. The result is at most as long as the template times the longest value, so a
 * caller whose templates come from outside must check that size first. */
char *template_substitute(
    const char *template, const struct template_value *values, size_t value_count);

/* Appends each name of the template that `values` does not know, once, in order of appearance. */
void template_unknown_names(const char *template, const struct template_value *values,
    size_t value_count, struct text_list *out_names);

#endif
