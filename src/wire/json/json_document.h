/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts JSON text to a tree of values and back. No other module uses the JSON library. Reading
 * accepts what Python's json module accepts (lone surrogates, NUL in strings, NaN and Infinity). It
 * also accepts invalid UTF-8, because a worker may die half-way through a character. Lone
 * surrogates and such bytes become U+FFFD, NaN becomes null, and Infinity the largest number.
 * Writing follows Python's json.dumps: separators ", " and
 * ": ", ASCII only. */
#ifndef MUSTER_WIRE_JSON_JSON_DOCUMENT_H
#define MUSTER_WIRE_JSON_JSON_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

/* Appends plain text, with U+FFFD in place of each NUL and each byte that is not part of a UTF-8
 * character. */
void json_repair_text(struct slice input, struct text *out);

/* Input with deeper nesting is refused before the parser sees it. */
#define JSON_DOCUMENT_MAXIMUM_DEPTH 64

struct json_document;
/* A value in a document; it belongs to the document. */
struct json_value;

/* FAILURE_MALFORMED with a reason in `out_reason` (one line, may be NULL), or FAILURE_LIMIT for
 * text longer than `ceiling` or nested too deep, or for which there is no memory. */
__attribute__((warn_unused_result)) enum failure_code json_document_parse(struct slice input,
    size_t ceiling, struct json_document **out_document, struct text *out_reason);
void json_document_free(struct json_document *document);

struct json_value *json_document_root(struct json_document *document);

bool json_value_is_object(const struct json_value *value);
bool json_value_is_array(const struct json_value *value);
/* The member's value, or NULL when `object` is not an object or has no such member. */
struct json_value *json_value_member(const struct json_value *object, const char *name);
/* The item, or NULL when `array` is not an array or is shorter. */
struct json_value *json_value_item(const struct json_value *array, size_t index);
size_t json_value_item_count(const struct json_value *array);
/* The string, or NULL when the value is not a string. */
const char *json_value_text(const struct json_value *value);
/* True for the literal true only. */
bool json_value_is_true(const struct json_value *value);
/* False when the value is not an integer in range. */
bool json_value_integer(const struct json_value *value, int64_t *out_value);
/* False when the value is not a number. */
bool json_value_number(const struct json_value *value, double *out_value);

/* Sets a member of an object. A new member becomes the last one. Names are UTF-8; in a text, what
 * is not becomes U+FFFD. */
void json_value_set_integer(struct json_value *object, const char *name, int64_t value);
void json_value_set_text(struct json_value *object, const char *name, const char *value);
/* The member, which becomes an empty object where it is none. */
struct json_value *json_value_set_object(struct json_value *object, const char *name);
/* Removes the members whose names begin so and for which `is_old` says so. */
void json_value_remove(struct json_value *object, const char *start,
    bool (*is_old)(void *context, const char *rest_of_name), void *context);

/* Appends the value as Python's json.dumps spells it. */
void json_value_write(const struct json_value *value, struct text *out);
/* Appends one string as a JSON string, in ASCII. */
void json_text_write(const char *string, struct text *out);

#endif
