/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/json/json_document.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define REPLACEMENT_ESCAPE "\\ufffd"
#define LARGEST_NUMBER "1.7976931348623157e308"

/* Copies one character, or replaces one byte. Returns the number of bytes consumed. */
static size_t copy_character(struct slice rest, struct text *out) {
    size_t length = utf8_character_length(rest.data, rest.length);
    if (length == 0) {
        text_append(out, REPLACEMENT);
        return 1;
    }
    text_append_bytes(out, (const char *)rest.data, length);
    return length;
}

void json_repair_text(struct slice input, struct text *out) {
    for (size_t i = 0; i < input.length;) {
        if (input.data[i] == 0) {
            text_append(out, REPLACEMENT);
            i++;
        } else {
            i += copy_character((struct slice){input.data + i, input.length - i}, out);
        }
    }
}

static int hexadecimal_digit(uint8_t byte) {
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    uint8_t lower = byte | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The value of the escape \uXXXX at the start; -1 when there is none. */
static int code_unit(struct slice rest) {
    if (rest.length < 6 || rest.data[0] != '\\' || rest.data[1] != 'u') {
        return -1;
    }
    int value = 0;
    for (size_t i = 2; i < 6; i++) {
        int digit = hexadecimal_digit(rest.data[i]);
        if (digit < 0) {
            return -1;
        }
        value = value * 16 + digit;
    }
    return value;
}

static bool is_surrogate(int unit, int first) {
    return unit >= first && unit < first + 0x400;
}

/* Copies or replaces an escape that starts with a backslash. Returns the number of bytes
 * consumed. */
static size_t copy_escape(struct slice rest, struct text *out) {
    int unit = code_unit(rest);
    if (unit < 0) {
        size_t taken = rest.length < 2 || rest.data[1] >= 0x80 ? 1 : 2;
        text_append_bytes(out, (const char *)rest.data, taken);
        return taken;
    }
    if (is_surrogate(unit, 0xd800)) {
        struct slice next = {rest.data + 6, rest.length - 6};
        if (is_surrogate(code_unit(next), 0xdc00)) {
            text_append_bytes(out, (const char *)rest.data, 12);
            return 12;
        }
    }
    if (unit == 0 || is_surrogate(unit, 0xd800) || is_surrogate(unit, 0xdc00)) {
        text_append(out, REPLACEMENT_ESCAPE);
    } else {
        text_append_bytes(out, (const char *)rest.data, 6);
    }
    return 6;
}

/* Replaces NaN, Infinity or -Infinity. Returns the number of bytes consumed, 0 for anything
 * else. */
static size_t copy_non_number(struct slice rest, struct text *out) {
    static const struct {
        const char *name;
        const char *replacement;
    } numbers[] = {
        {"NaN", "null"}, {"Infinity", LARGEST_NUMBER}, {"-Infinity", "-" LARGEST_NUMBER}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct slice name = slice_from_string(numbers[i].name);
        if (slice_starts_with(rest, name)) {
            text_append(out, numbers[i].replacement);
            return name.length;
        }
    }
    return 0;
}

/* Changes JSON text that Python can write or read so that a strict parser accepts it, and checks
 * its nesting before a parser recurses. Lone surrogates (\udc80 … \udcff, which Python uses for
 * undecodable bytes) and invalid UTF-8 (a worker may die in the middle of a character) become
 * U+FFFD. NaN becomes null. Infinity and -Infinity become the largest and the smallest number. The
 * grammar is not checked here; the parser does that. */

/* Appends the repaired text. FAILURE_LIMIT when objects and arrays nest deeper than
 * `maximum_depth`; `out` may then hold a part of the text. */
static enum failure_code json_repair(struct slice input, int maximum_depth, struct text *out) {
    bool is_in_string = false;
    int depth = 0;
    for (size_t i = 0; i < input.length;) {
        struct slice rest = {input.data + i, input.length - i};
        uint8_t byte = rest.data[0];
        if (is_in_string && byte == '\\') {
            i += copy_escape(rest, out);
            continue;
        }
        if (byte == '"') {
            is_in_string = !is_in_string;
        } else if (!is_in_string && (byte == '{' || byte == '[')) {
            depth++;
        } else if (!is_in_string && (byte == '}' || byte == ']')) {
            depth--;
        }
        if (depth > maximum_depth) {
            return FAILURE_LIMIT;
        }
        size_t taken = is_in_string ? 0 : copy_non_number(rest, out);
        i += taken > 0 ? taken : copy_character(rest, out);
    }
    return FAILURE_NONE;
}

/* Document. */

/* What the library takes for each byte of a list of empty objects, which takes most, and for what
 * there is of each text once. */
#define MEMORY_FACTOR ((size_t)100)
#define MEMORY_BESIDE ((size_t)8192)

struct json_document {
    json_t *root;
};

static json_t *node(const struct json_value *value) {
    return (json_t *)(uintptr_t)value;
}

static struct json_value *value_of(json_t *json) {
    return (struct json_value *)json;
}

static enum failure_code refuse(
    enum failure_code code, struct text *out_reason, const char *reason) {
    if (out_reason != NULL) {
        text_append(out_reason, reason);
    }
    return code;
}

/* To the library a lack of memory is an error in the text, and for want of a buffer it writes
 * beyond another. So it begins only where there is enough for all. As in base/memory the reserve is
 * given up for that, and whoever keeps it hears so. */
static bool is_there_memory_for(const struct text *input) {
    size_t bytes = MEMORY_BESIDE + MEMORY_FACTOR * input->length;
    bool is_there = spare_memory_is_there(bytes);
    while (!is_there && spare_memory_give_up_reserve()) {
        is_there = spare_memory_is_there(bytes);
    }
    return is_there;
}

enum failure_code json_document_parse(struct slice input, size_t ceiling,
    struct json_document **out_document, struct text *out_reason) {
    if (input.length > ceiling) {
        return refuse(FAILURE_LIMIT, out_reason, "too long");
    }
    struct text repaired = {0};
    if (json_repair(input, JSON_DOCUMENT_MAXIMUM_DEPTH, &repaired) != FAILURE_NONE) {
        text_clear(&repaired);
        return refuse(FAILURE_LIMIT, out_reason, "nested too deep");
    }
    if (!is_there_memory_for(&repaired)) {
        text_clear(&repaired);
        return refuse(FAILURE_LIMIT, out_reason, "there is no memory for it");
    }
    json_error_t error;
    json_t *root = json_loadb(text_string(&repaired), repaired.length, JSON_DECODE_ANY, &error);
    text_clear(&repaired);
    if (root == NULL) {
        refuse(FAILURE_MALFORMED, out_reason, "no JSON");
        if (out_reason != NULL) {
            text_append_format(
                out_reason, " (line %d, column %d: %s)", error.line, error.column, error.text);
        }
        return FAILURE_MALFORMED;
    }
    *out_document = memory_allocate(sizeof **out_document);
    (*out_document)->root = root;
    return FAILURE_NONE;
}

void json_document_free(struct json_document *document) {
    if (document != NULL) {
        json_decref(document->root);
        free(document);
    }
}

struct json_value *json_document_root(struct json_document *document) {
    return value_of(document->root);
}

bool json_value_is_object(const struct json_value *value) {
    return json_is_object(node(value));
}

bool json_value_is_array(const struct json_value *value) {
    return json_is_array(node(value));
}

struct json_value *json_value_member(const struct json_value *object, const char *name) {
    return value_of(json_object_get(node(object), name));
}

struct json_value *json_value_item(const struct json_value *array, size_t index) {
    return value_of(json_array_get(node(array), index));
}

size_t json_value_item_count(const struct json_value *array) {
    return json_array_size(node(array));
}

const char *json_value_text(const struct json_value *value) {
    return json_string_value(node(value));
}

bool json_value_is_true(const struct json_value *value) {
    return json_is_true(node(value));
}

bool json_value_integer(const struct json_value *value, int64_t *out_value) {
    if (!json_is_integer(node(value))) {
        return false;
    }
    *out_value = json_integer_value(node(value));
    return true;
}

bool json_value_number(const struct json_value *value, double *out_value) {
    if (!json_is_number(node(value))) {
        return false;
    }
    *out_value = json_number_value(node(value));
    return true;
}

/* Takes the value. */
static void set_member(struct json_value *object, const char *name, json_t *value) {
    /* This fails only without memory or with a name that is not UTF-8. */
    if (json_object_set_new(node(object), name, value) != 0) {
        abort();
    }
}

void json_value_set_integer(struct json_value *object, const char *name, int64_t value) {
    set_member(object, name, json_integer(value));
}

void json_value_set_text(struct json_value *object, const char *name, const char *value) {
    struct text valid = {0};
    json_repair_text(slice_from_string(value), &valid);
    set_member(object, name, json_stringn(text_string(&valid), valid.length));
    text_clear(&valid);
}

struct json_value *json_value_set_object(struct json_value *object, const char *name) {
    if (!json_value_is_object(json_value_member(object, name))) {
        set_member(object, name, json_object());
    }
    return json_value_member(object, name);
}

void json_value_remove(struct json_value *object, const char *start,
    bool (*is_old)(void *context, const char *rest_of_name), void *context) {
    void *next;
    for (void *place = json_object_iter(node(object)); place != NULL; place = next) {
        const char *name = json_object_iter_key(place);
        next = json_object_iter_next(node(object), place);
        if (text_starts_with(name, start) && is_old(context, name + strlen(start))) {
            json_object_del(node(object), name);
        }
    }
}

/* Writing. */

static void write_code_unit(struct text *out, unsigned unit) {
    text_append_format(out, "\\u%04x", unit);
}

/* Decodes one character of valid UTF-8 and returns its length. */
static size_t decode_character(const unsigned char *bytes, unsigned *out_character) {
    if (bytes[0] < 0x80) {
        *out_character = bytes[0];
        return 1;
    }
    size_t length = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    unsigned character = bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        character = (character << 6) | (bytes[i] & 0x3fu);
    }
    *out_character = character;
    return length;
}

static void write_character(struct text *out, unsigned character) {
    static const char escaped[] = "\"\\\n\r\t\f\b";
    static const char letters[] = "\"\\nrtfb";
    const char *place = character != 0 && character < 0x80 ? strchr(escaped, (int)character) : NULL;
    if (place != NULL) {
        text_append_format(out, "\\%c", letters[place - escaped]);
    } else if (character >= 0x10000) {
        write_code_unit(out, 0xd800 + ((character - 0x10000) >> 10));
        write_code_unit(out, 0xdc00 + ((character - 0x10000) & 0x3ff));
    } else if (character < 0x20 || character >= 0x80) {
        write_code_unit(out, character);
    } else {
        char byte = (char)character;
        text_append_bytes(out, &byte, 1);
    }
}

static void write_string(struct text *out, const char *string, size_t length) {
    text_append(out, "\"");
    for (size_t i = 0; i < length;) {
        unsigned character;
        i += decode_character((const unsigned char *)string + i, &character);
        write_character(out, character);
    }
    text_append(out, "\"");
}

void json_text_write(const char *string, struct text *out) {
    struct text valid = {0};
    json_repair_text(slice_from_string(string), &valid);
    write_string(out, text_string(&valid), valid.length);
    text_clear(&valid);
}

/* Writes the shortest digits that give the same number when read, as Python's repr does. */
static void write_real(struct text *out, double value) {
    char digits[40];
    for (int precision = 1; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) {
            break;
        }
    }
    text_append(out, digits);
    if (strpbrk(digits, ".e") == NULL) {
        text_append(out, ".0");
    }
}

static void write_object(struct text *out, json_t *object) {
    text_append(out, "{");
    const char *separator = "";
    for (void *place = json_object_iter(object); place != NULL;
         place = json_object_iter_next(object, place)) {
        const char *name = json_object_iter_key(place);
        text_append(out, separator);
        write_string(out, name, strlen(name));
        text_append(out, ": ");
        json_value_write(value_of(json_object_iter_value(place)), out);
        separator = ", ";
    }
    text_append(out, "}");
}

static void write_array(struct text *out, json_t *array) {
    text_append(out, "[");
    for (size_t i = 0; i < json_array_size(array); i++) {
        text_append(out, i == 0 ? "" : ", ");
        json_value_write(value_of(json_array_get(array, i)), out);
    }
    text_append(out, "]");
}

/* The recursion is bounded: a document is at most JSON_DOCUMENT_MAXIMUM_DEPTH deep. */
void json_value_write(const struct json_value *value, struct text *out) {
    json_t *json = node(value);
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        write_object(out, json);
        break;
    case JSON_ARRAY:
        write_array(out, json);
        break;
    case JSON_STRING:
        write_string(out, json_string_value(json), json_string_length(json));
        break;
    case JSON_INTEGER:
        text_append_format(out, "%" PRId64, (int64_t)json_integer_value(json));
        break;
    case JSON_REAL:
        write_real(out, json_real_value(json));
        break;
    case JSON_TRUE:
        text_append(out, "true");
        break;
    case JSON_FALSE:
        text_append(out, "false");
        break;
    case JSON_NULL:
        text_append(out, "null");
        break;
    }
}
