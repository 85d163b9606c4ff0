/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pickle/pickle_document.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

#define RENDEZVOUS_MODULE "torch.distributed.elastic.rendezvous.dynamic_rendezvous"

struct known_class {
    const char *module;
    const char *old_module; /* its module in Python 2, which protocol 2 names; or NULL */
    const char *name;
};

static const struct known_class known_classes[] = {
    [PICKLE_CLASS_RENDEZVOUS_STATE] = {RENDEZVOUS_MODULE, NULL, "_RendezvousState"},
    [PICKLE_CLASS_NODE] = {RENDEZVOUS_MODULE, NULL, "_NodeDesc"},
    [PICKLE_CLASS_DATETIME] = {"datetime", NULL, "datetime"},
    [PICKLE_CLASS_TIMEZONE] = {"datetime", NULL, "timezone"},
    [PICKLE_CLASS_TIMEDELTA] = {"datetime", NULL, "timedelta"},
    [PICKLE_CLASS_SET] = {"builtins", "__builtin__", "set"},
    [PICKLE_CLASS_ENCODE] = {"_codecs", NULL, "encode"},
};

static bool is_module(const struct known_class *known, struct slice module) {
    return slice_equals(module, slice_from_string(known->module)) ||
           (known->old_module != NULL &&
               slice_equals(module, slice_from_string(known->old_module)));
}

bool pickle_class_find(struct slice module, struct slice name, enum pickle_class *out_class) {
    for (size_t i = 0; i < sizeof known_classes / sizeof *known_classes; i++) {
        if (slice_equals(name, slice_from_string(known_classes[i].name)) &&
            is_module(&known_classes[i], module)) {
            *out_class = (enum pickle_class)i;
            return true;
        }
    }
    return false;
}

/* The module of the class in Python 3. */
static const char *pickle_class_module(enum pickle_class of_class) {
    return known_classes[of_class].module;
}

static const char *pickle_class_name(enum pickle_class of_class) {
    return known_classes[of_class].name;
}

/* Document. */

void pickle_document_clear(struct pickle_document *document) {
    free(document->values);
    free(document->links);
    *document = (struct pickle_document){0};
}

/* Building. */

enum failure_code pickle_document_add(struct pickle_document *document,
    const struct pickle_value *value, uint32_t *out_index, struct text *out_reason) {
    if (document->value_count >= document->maximum_values) {
        text_append_format(out_reason, "more than %zu values", document->maximum_values);
        return FAILURE_LIMIT;
    }
    document->values = memory_reserve(document->values, &document->value_capacity,
        document->value_count + 1, sizeof *document->values);
    document->values[document->value_count] = *value;
    document->values[document->value_count].height = 1;
    *out_index = (uint32_t)document->value_count++;
    return FAILURE_NONE;
}

static enum failure_code refuse_growth(struct text *out_reason) {
    text_append(out_reason, "a value that changes after it was used, or holds itself");
    return FAILURE_MALFORMED;
}

/* Makes `child` a part of `parent`. */
static enum failure_code place(
    struct pickle_document *document, uint32_t parent, uint32_t child, struct text *out_reason) {
    struct pickle_value *above = &document->values[parent];
    struct pickle_value *below = &document->values[child];
    if (parent == child) {
        return refuse_growth(out_reason);
    }
    if (below->height >= PICKLE_MAXIMUM_DEPTH) {
        text_append_format(out_reason, "values nest deeper than %d", PICKLE_MAXIMUM_DEPTH);
        return FAILURE_LIMIT;
    }
    below->is_placed = true;
    if (above->height <= below->height) {
        above->height = (uint8_t)(below->height + 1);
    }
    return FAILURE_NONE;
}

enum failure_code pickle_document_add_object(struct pickle_document *document,
    enum pickle_class of_class, uint32_t arguments, uint32_t *out_index, struct text *out_reason) {
    const struct pickle_value object = {
        .kind = PICKLE_VALUE_OBJECT, .of_class = of_class, .arguments = arguments};
    enum failure_code code = pickle_document_add(document, &object, out_index, out_reason);
    if (code != FAILURE_NONE) {
        return code;
    }
    document->values[*out_index].state = *out_index;
    return place(document, *out_index, arguments, out_reason);
}

static void append_link(
    struct pickle_document *document, struct pickle_value *container, uint32_t item) {
    uint32_t link = (uint32_t)document->link_count++;
    document->links[link] = (struct pickle_link){.value = item};
    if (container->count == 0) {
        container->first = link;
    } else {
        document->links[container->last].next = link;
    }
    container->last = link;
    container->count++;
}

static enum failure_code check_room(const struct pickle_document *document,
    const struct pickle_value *container, size_t count, struct text *out_reason) {
    size_t each = container->kind == PICKLE_VALUE_DICT ? 2 : 1;
    if (container->count / each + count / each > document->maximum_items) {
        text_append_format(out_reason, "%s of more than %zu items",
            pickle_kind_name(container->kind), document->maximum_items);
        return FAILURE_LIMIT;
    }
    if (document->link_count + count > document->maximum_values) {
        text_append_format(out_reason, "more than %zu items", document->maximum_values);
        return FAILURE_LIMIT;
    }
    return FAILURE_NONE;
}

enum failure_code pickle_document_put(struct pickle_document *document, uint32_t container,
    const uint32_t *items, size_t count, struct text *out_reason) {
    struct pickle_value *value = &document->values[container];
    if (value->is_placed) {
        return refuse_growth(out_reason);
    }
    enum failure_code code = check_room(document, value, count, out_reason);
    if (code != FAILURE_NONE) {
        return code;
    }
    document->links = memory_reserve(document->links, &document->link_capacity,
        document->link_count + count, sizeof *document->links);
    for (size_t i = 0; i < count && code == FAILURE_NONE; i++) {
        code = place(document, container, items[i], out_reason);
        append_link(document, value, items[i]);
    }
    return code;
}

enum failure_code pickle_document_set_state(
    struct pickle_document *document, uint32_t object, uint32_t state, struct text *out_reason) {
    struct pickle_value *value = &document->values[object];
    if (value->is_placed || value->state != object) {
        return refuse_growth(out_reason);
    }
    if (document->values[state].count / 2 > PICKLE_MAXIMUM_ATTRIBUTES) {
        text_append_format(
            out_reason, "an object of more than %d attributes", PICKLE_MAXIMUM_ATTRIBUTES);
        return FAILURE_LIMIT;
    }
    value->state = state;
    return place(document, object, state, out_reason);
}

/* Reading. */

const struct pickle_value *pickle_document_root(const struct pickle_document *document) {
    return &document->values[document->root];
}

const char *pickle_kind_name(enum pickle_kind kind) {
    static const char *const names[] = {
        [PICKLE_VALUE_NONE] = "None",
        [PICKLE_VALUE_BOOLEAN] = "a boolean",
        [PICKLE_VALUE_INTEGER] = "an integer",
        [PICKLE_VALUE_TEXT] = "text",
        [PICKLE_VALUE_BYTES] = "bytes",
        [PICKLE_VALUE_TUPLE] = "a tuple",
        [PICKLE_VALUE_LIST] = "a list",
        [PICKLE_VALUE_DICT] = "a dict",
        [PICKLE_VALUE_SET] = "a set",
        [PICKLE_VALUE_CLASS] = "a class",
        [PICKLE_VALUE_OBJECT] = "an object",
    };
    return names[kind];
}

bool pickle_value_is_object(const struct pickle_value *value, enum pickle_class of_class) {
    return value->kind == PICKLE_VALUE_OBJECT && value->of_class == of_class;
}

struct pickle_walk pickle_walk_begin(
    const struct pickle_document *document, const struct pickle_value *value) {
    struct pickle_walk walk = {.document = document};
    switch (value->kind) {
    case PICKLE_VALUE_TUPLE:
    case PICKLE_VALUE_LIST:
    case PICKLE_VALUE_DICT:
    case PICKLE_VALUE_SET:
        walk.link = value->first;
        walk.left = value->count;
        break;
    case PICKLE_VALUE_NONE:
    case PICKLE_VALUE_BOOLEAN:
    case PICKLE_VALUE_INTEGER:
    case PICKLE_VALUE_TEXT:
    case PICKLE_VALUE_BYTES:
    case PICKLE_VALUE_CLASS:
    case PICKLE_VALUE_OBJECT:
        break;
    }
    return walk;
}

const struct pickle_value *pickle_walk_next(struct pickle_walk *walk) {
    if (walk->left == 0) {
        return NULL;
    }
    const struct pickle_link *link = &walk->document->links[walk->link];
    walk->link = link->next;
    walk->left--;
    return &walk->document->values[link->value];
}

const struct pickle_value *pickle_document_arguments(
    const struct pickle_document *document, const struct pickle_value *object) {
    return &document->values[object->arguments];
}

const struct pickle_value *pickle_document_attribute(
    const struct pickle_document *document, const struct pickle_value *object, const char *name) {
    const struct pickle_value *state = &document->values[object->state];
    if (state == object) {
        return NULL;
    }
    struct slice wanted = slice_from_string(name);
    const struct pickle_value *found = NULL;
    struct pickle_walk walk = pickle_walk_begin(document, state);
    for (const struct pickle_value *key; (key = pickle_walk_next(&walk)) != NULL;) {
        const struct pickle_value *value = pickle_walk_next(&walk);
        if (key->kind == PICKLE_VALUE_TEXT && slice_equals(key->bytes, wanted)) {
            found = value;
        }
    }
    return found;
}

/* Datetime. */

#define FIRST_YEAR 1678
#define LAST_YEAR 2261
#define SECONDS_PER_DAY 86400
#define MICROSECONDS_PER_SECOND 1000000
#define NANOSECONDS_PER_MICROSECOND 1000
#define DAYS_PER_ERA 146097     /* 400 years */
#define DAYS_BEFORE_1970 719468 /* days since the first of March of the year 0 */
#define MONTH_BITS 0x7f         /* without `fold`, which tells equal hours in autumn apart */

/* The calendar. Years begin in March here, so that a leap day is the last of its year. */

static int64_t days_since_1970(int64_t year, int64_t month, int64_t day) {
    int64_t years = month > 2 ? year : year - 1;
    int64_t months = month > 2 ? month - 3 : month + 9;
    int64_t era = years / 400;
    int64_t year_of_era = years % 400;
    int64_t day_of_year = (153 * months + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - DAYS_BEFORE_1970;
}

static void date_of(int64_t days, int64_t *out_year, int64_t *out_month, int64_t *out_day) {
    int64_t shifted = days + DAYS_BEFORE_1970;
    int64_t era = shifted / DAYS_PER_ERA;
    int64_t day_of_era = shifted % DAYS_PER_ERA;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t months = (5 * day_of_year + 2) / 153;
    *out_day = day_of_year - (153 * months + 2) / 5 + 1;
    *out_month = months < 10 ? months + 3 : months - 9;
    *out_year = era * 400 + year_of_era + (*out_month <= 2);
}

static int64_t days_in_month(int64_t year, int64_t month) {
    return month == 12 ? 31 : days_since_1970(year, month + 1, 1) - days_since_1970(year, month, 1);
}

/* Reading. */

static enum failure_code refuse(
    struct text *out_reason, enum failure_code code, const char *message) {
    text_append(out_reason, message);
    return code;
}

/* Decodes the argument of _codecs.encode(text, "latin1"): each character up to U+00FF is one
 * byte. */
static bool decode_latin1(struct slice text, uint8_t out_bytes[PICKLE_DATETIME_BYTES]) {
    size_t count = 0;
    for (size_t i = 0; i < text.length; count++) {
        size_t length = utf8_character_length(text.data + i, text.length - i);
        if (count == PICKLE_DATETIME_BYTES || length == 0 || length > 2 ||
            (length == 2 && text.data[i] > 0xc3)) {
            return false;
        }
        out_bytes[count] =
            length == 1 ? text.data[i] : (uint8_t)(text.data[i] << 6 | (text.data[i + 1] & 0x3f));
        i += length;
    }
    return count == PICKLE_DATETIME_BYTES;
}

static bool read_bytes(const struct pickle_document *document, const struct pickle_value *value,
    uint8_t out_bytes[PICKLE_DATETIME_BYTES]) {
    if (value->kind == PICKLE_VALUE_BYTES) {
        if (value->bytes.length != PICKLE_DATETIME_BYTES) {
            return false;
        }
        memcpy(out_bytes, value->bytes.data, PICKLE_DATETIME_BYTES);
        return true;
    }
    if (!pickle_value_is_object(value, PICKLE_CLASS_ENCODE)) {
        return false;
    }
    struct pickle_walk walk =
        pickle_walk_begin(document, pickle_document_arguments(document, value));
    const struct pickle_value *text = pickle_walk_next(&walk);
    const struct pickle_value *encoding = pickle_walk_next(&walk);
    return encoding != NULL && text->kind == PICKLE_VALUE_TEXT &&
           encoding->kind == PICKLE_VALUE_TEXT &&
           slice_equals(encoding->bytes, slice_from_string("latin1")) &&
           decode_latin1(text->bytes, out_bytes);
}

static enum failure_code decode(const uint8_t *bytes, int64_t *out_seconds,
    int64_t *out_microseconds, struct text *out_reason) {
    int64_t year = bytes[0] << 8 | bytes[1];
    int64_t month = bytes[2] & MONTH_BITS;
    int64_t day = bytes[3];
    int64_t microseconds = bytes[7] << 16 | bytes[8] << 8 | bytes[9];
    if (year < FIRST_YEAR || year > LAST_YEAR) {
        text_append_format(out_reason, "a date in the year %d, where %d to %d are read", (int)year,
            FIRST_YEAR, LAST_YEAR);
        return FAILURE_LIMIT;
    }
    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || bytes[4] > 23 ||
        bytes[5] > 59 || bytes[6] > 59 || microseconds >= MICROSECONDS_PER_SECOND) {
        return refuse(out_reason, FAILURE_MALFORMED, "a date that does not exist");
    }
    *out_seconds = days_since_1970(year, month, day) * SECONDS_PER_DAY + bytes[4] * 3600 +
                   bytes[5] * 60 + bytes[6];
    *out_microseconds = microseconds;
    return FAILURE_NONE;
}

/* Reads the offset of timezone(timedelta(days, seconds, microseconds), …). False when it is not
 * less than a day. */
static bool read_offset(const struct pickle_document *document, const struct pickle_value *zone,
    int64_t *out_microseconds) {
    static const int64_t units[] = {
        (int64_t)SECONDS_PER_DAY * MICROSECONDS_PER_SECOND, MICROSECONDS_PER_SECOND, 1};
    static const int64_t largest[] = {1, SECONDS_PER_DAY, MICROSECONDS_PER_SECOND};
    struct pickle_walk zone_walk =
        pickle_walk_begin(document, pickle_document_arguments(document, zone));
    const struct pickle_value *delta = pickle_walk_next(&zone_walk);
    if (delta == NULL || !pickle_value_is_object(delta, PICKLE_CLASS_TIMEDELTA)) {
        return false;
    }
    int64_t offset = 0;
    struct pickle_walk walk =
        pickle_walk_begin(document, pickle_document_arguments(document, delta));
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const struct pickle_value *part = pickle_walk_next(&walk);
        if (part == NULL || part->kind != PICKLE_VALUE_INTEGER || part->integer > largest[i] ||
            part->integer < -largest[i]) {
            return false;
        }
        offset += part->integer * units[i];
    }
    *out_microseconds = offset;
    return offset < units[0] && offset > -units[0];
}

enum failure_code pickle_datetime_read(const struct pickle_document *document,
    const struct pickle_value *value, struct wall_time *out_time, struct text *out_reason) {
    uint8_t bytes[PICKLE_DATETIME_BYTES];
    if (!pickle_value_is_object(value, PICKLE_CLASS_DATETIME)) {
        return refuse(out_reason, FAILURE_MALFORMED, "no datetime");
    }
    struct pickle_walk walk =
        pickle_walk_begin(document, pickle_document_arguments(document, value));
    const struct pickle_value *moment = pickle_walk_next(&walk);
    const struct pickle_value *zone = pickle_walk_next(&walk);
    if (moment == NULL || !read_bytes(document, moment, bytes)) {
        return refuse(out_reason, FAILURE_MALFORMED, "a datetime without its ten bytes");
    }
    int64_t seconds;
    int64_t microseconds;
    enum failure_code code = decode(bytes, &seconds, &microseconds, out_reason);
    if (code != FAILURE_NONE) {
        return code;
    }
    int64_t offset = 0;
    if (zone != NULL && (!pickle_value_is_object(zone, PICKLE_CLASS_TIMEZONE) ||
                            !read_offset(document, zone, &offset))) {
        return refuse(out_reason, FAILURE_MALFORMED, "a datetime with an odd time zone");
    }
    out_time->nanoseconds =
        seconds * NANOSECONDS_PER_SECOND + (microseconds - offset) * NANOSECONDS_PER_MICROSECOND;
    return FAILURE_NONE;
}

/* Writing. */

static int64_t floor_divide(int64_t dividend, int64_t divisor, int64_t *out_rest) {
    int64_t rest = dividend % divisor;
    *out_rest = rest < 0 ? rest + divisor : rest;
    return dividend / divisor - (rest < 0);
}

void pickle_datetime_encode(struct wall_time time, uint8_t out_bytes[PICKLE_DATETIME_BYTES]) {
    int64_t nanoseconds;
    int64_t second;
    int64_t seconds = floor_divide(time.nanoseconds, NANOSECONDS_PER_SECOND, &nanoseconds);
    int64_t days = floor_divide(seconds, SECONDS_PER_DAY, &second);
    int64_t microseconds = nanoseconds / NANOSECONDS_PER_MICROSECOND;
    int64_t year;
    int64_t month;
    int64_t day;
    date_of(days, &year, &month, &day);
    const int64_t bytes[PICKLE_DATETIME_BYTES] = {year >> 8, year, month, day, second / 3600,
        second / 60 % 60, second % 60, microseconds >> 16, microseconds >> 8, microseconds};
    for (size_t i = 0; i < PICKLE_DATETIME_BYTES; i++) {
        out_bytes[i] = (uint8_t)bytes[i];
    }
}

/* Writer. */

static const char *const names[256] = {
    [PICKLE_MARK] = "MARK",
    [PICKLE_EMPTY_TUPLE] = "EMPTY_TUPLE",
    [PICKLE_STOP] = "STOP",
    [PICKLE_POP] = "POP",
    ['1'] = "POP_MARK",
    ['2'] = "DUP",
    [PICKLE_BINBYTES] = "BINBYTES",
    [PICKLE_SHORT_BINBYTES] = "SHORT_BINBYTES",
    ['F'] = "FLOAT",
    ['G'] = "BINFLOAT",
    ['I'] = "INT",
    [PICKLE_BININT] = "BININT",
    [PICKLE_BININT1] = "BININT1",
    ['L'] = "LONG",
    [PICKLE_BININT2] = "BININT2",
    [PICKLE_NONE] = "NONE",
    ['P'] = "PERSID",
    ['Q'] = "BINPERSID",
    [PICKLE_REDUCE] = "REDUCE",
    ['S'] = "STRING",
    ['T'] = "BINSTRING",
    ['U'] = "SHORT_BINSTRING",
    ['V'] = "UNICODE",
    [PICKLE_BINUNICODE] = "BINUNICODE",
    [PICKLE_EMPTY_LIST] = "EMPTY_LIST",
    [PICKLE_APPEND] = "APPEND",
    [PICKLE_BUILD] = "BUILD",
    [PICKLE_GLOBAL] = "GLOBAL",
    ['d'] = "DICT",
    [PICKLE_APPENDS] = "APPENDS",
    ['g'] = "GET",
    [PICKLE_BINGET] = "BINGET",
    ['i'] = "INST",
    [PICKLE_LONG_BINGET] = "LONG_BINGET",
    ['l'] = "LIST",
    ['o'] = "OBJ",
    ['p'] = "PUT",
    [PICKLE_BINPUT] = "BINPUT",
    [PICKLE_LONG_BINPUT] = "LONG_BINPUT",
    [PICKLE_SETITEM] = "SETITEM",
    [PICKLE_TUPLE] = "TUPLE",
    [PICKLE_SETITEMS] = "SETITEMS",
    [PICKLE_EMPTY_DICT] = "EMPTY_DICT",
    [PICKLE_PROTO] = "PROTO",
    [PICKLE_NEWOBJ] = "NEWOBJ",
    [0x82] = "EXT1",
    [0x83] = "EXT2",
    [0x84] = "EXT4",
    [PICKLE_TUPLE1] = "TUPLE1",
    [PICKLE_TUPLE2] = "TUPLE2",
    [PICKLE_TUPLE3] = "TUPLE3",
    [PICKLE_NEWTRUE] = "NEWTRUE",
    [PICKLE_NEWFALSE] = "NEWFALSE",
    [PICKLE_LONG1] = "LONG1",
    [0x8b] = "LONG4",
    [PICKLE_SHORT_BINUNICODE] = "SHORT_BINUNICODE",
    [0x8d] = "BINUNICODE8",
    [0x8e] = "BINBYTES8",
    [PICKLE_EMPTY_SET] = "EMPTY_SET",
    [PICKLE_ADDITEMS] = "ADDITEMS",
    [0x91] = "FROZENSET",
    [0x92] = "NEWOBJ_EX",
    [PICKLE_STACK_GLOBAL] = "STACK_GLOBAL",
    [PICKLE_MEMOIZE] = "MEMOIZE",
    [PICKLE_FRAME] = "FRAME",
    [0x96] = "BYTEARRAY8",
    [0x97] = "NEXT_BUFFER",
    [0x98] = "READONLY_BUFFER",
};

const char *pickle_opcode_name(uint8_t opcode) {
    return names[opcode];
}

/* Writer. */

#define PROTOCOL 4

static void write_bytes(struct pickle_writer *writer, const void *data, size_t length) {
    if (writer->code == FAILURE_NONE) {
        writer->code = bytes_append(writer->out, data, length);
    }
}

/* Writes an opcode and after it a number of `size` bytes. */
static void write_number(
    struct pickle_writer *writer, enum pickle_opcode opcode, uint64_t number, size_t size) {
    uint8_t bytes[1 + sizeof number] = {(uint8_t)opcode};
    little_endian_store64(bytes + 1, number);
    write_bytes(writer, bytes, 1 + size);
}

void pickle_writer_begin(struct pickle_writer *writer, struct bytes *out) {
    *writer = (struct pickle_writer){.out = out, .start = out->length};
    write_number(writer, PICKLE_PROTO, PROTOCOL, 1);
}

enum failure_code pickle_writer_end(struct pickle_writer *writer) {
    pickle_write_opcode(writer, PICKLE_STOP);
    if (writer->code != FAILURE_NONE) {
        writer->out->length = writer->start;
    }
    return writer->code;
}

void pickle_write_opcode(struct pickle_writer *writer, enum pickle_opcode opcode) {
    write_number(writer, opcode, 0, 0);
}

void pickle_write_boolean(struct pickle_writer *writer, bool boolean) {
    pickle_write_opcode(writer, boolean ? PICKLE_NEWTRUE : PICKLE_NEWFALSE);
}

/* The number of bytes that the number needs in two's complement. */
static size_t signed_size(int64_t integer) {
    size_t size = 1;
    while (size < sizeof integer &&
           (integer < -((int64_t)1 << (8 * size - 1)) || integer >= (int64_t)1 << (8 * size - 1))) {
        size++;
    }
    return size;
}

void pickle_write_integer(struct pickle_writer *writer, int64_t integer) {
    uint64_t number = (uint64_t)integer;
    if (number <= UINT8_MAX) {
        write_number(writer, PICKLE_BININT1, number, 1);
    } else if (number <= UINT16_MAX) {
        write_number(writer, PICKLE_BININT2, number, 2);
    } else if (signed_size(integer) <= 4) {
        write_number(writer, PICKLE_BININT, number, 4);
    } else {
        uint8_t bytes[sizeof number];
        size_t size = signed_size(integer);
        little_endian_store64(bytes, number);
        write_number(writer, PICKLE_LONG1, size, 1);
        write_bytes(writer, bytes, size);
    }
}

static void fail(struct pickle_writer *writer, enum failure_code code) {
    if (writer->code == FAILURE_NONE) {
        writer->code = code;
    }
}

void pickle_write_text(struct pickle_writer *writer, struct slice text) {
    if (!utf8_is_python_text(text.data, text.length)) {
        fail(writer, FAILURE_INVALID);
    } else if (text.length > UINT32_MAX) {
        fail(writer, FAILURE_LIMIT);
    } else if (text.length <= UINT8_MAX) {
        write_number(writer, PICKLE_SHORT_BINUNICODE, text.length, 1);
    } else {
        write_number(writer, PICKLE_BINUNICODE, text.length, 4);
    }
    write_bytes(writer, text.data, text.length);
}

void pickle_write_bytes(struct pickle_writer *writer, struct slice bytes) {
    if (bytes.length > UINT8_MAX) {
        fail(writer, FAILURE_LIMIT);
    }
    write_number(writer, PICKLE_SHORT_BINBYTES, bytes.length, 1);
    write_bytes(writer, bytes.data, bytes.length);
}

void pickle_write_class(struct pickle_writer *writer, enum pickle_class of_class) {
    pickle_write_text(writer, slice_from_string(pickle_class_module(of_class)));
    pickle_write_text(writer, slice_from_string(pickle_class_name(of_class)));
    pickle_write_opcode(writer, PICKLE_STACK_GLOBAL);
}

uint32_t pickle_write_keep(struct pickle_writer *writer) {
    pickle_write_opcode(writer, PICKLE_MEMOIZE);
    return writer->kept++;
}

void pickle_write_recall(struct pickle_writer *writer, uint32_t slot) {
    if (slot <= UINT8_MAX) {
        write_number(writer, PICKLE_BINGET, slot, 1);
    } else {
        write_number(writer, PICKLE_LONG_BINGET, slot, 4);
    }
}
