/* SPDX-License-Identifier: BSD-3-Clause */
/* The content of a pickle as data: values that refer to each other by index, all in one arena.
 * Objects are inert: an object is a class from a fixed list, the arguments that Python would have
 * called it with, and a state. wire/pickle_reader builds a document; other modules read it.
 *
 * A value may have several parents (pickles refer back), so a document is not a tree, and a walk
 * over all of it may take very long. Read only the parts that you know. A document has no cycle and
 * its depth is bounded: a value that is part of another value cannot grow any more. */
#ifndef MUSTER_WIRE_PICKLE_PICKLE_DOCUMENT_H
#define MUSTER_WIRE_PICKLE_PICKLE_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"

/* The classes that a pickle may name, for reading and writing. Every other class or function is
 * refused, because a pickle runs commands by naming functions. */

enum pickle_class {
    PICKLE_CLASS_RENDEZVOUS_STATE, /* _RendezvousState of PyTorch's dynamic_rendezvous.py */
    PICKLE_CLASS_NODE,             /* its _NodeDesc class */
    PICKLE_CLASS_DATETIME,
    PICKLE_CLASS_TIMEZONE,
    PICKLE_CLASS_TIMEDELTA,
    PICKLE_CLASS_SET,    /* protocols 2 and 3 spell a set as an object with a list as argument */
    PICKLE_CLASS_ENCODE, /* _codecs.encode: protocol 2 spells bytes with it */
};

/* False for any class or function that is not in the list. */
bool pickle_class_find(struct slice module, struct slice name, enum pickle_class *out_class);

/* The maximum depth of nested values. A rendezvous record needs 11. */
#define PICKLE_MAXIMUM_DEPTH 32
/* The maximum number of attributes of an object. */
#define PICKLE_MAXIMUM_ATTRIBUTES 64

enum pickle_kind {
    PICKLE_VALUE_NONE,
    PICKLE_VALUE_BOOLEAN,
    PICKLE_VALUE_INTEGER,
    PICKLE_VALUE_TEXT,
    PICKLE_VALUE_BYTES,
    PICKLE_VALUE_TUPLE,
    PICKLE_VALUE_LIST,
    PICKLE_VALUE_DICT,
    PICKLE_VALUE_SET,
    PICKLE_VALUE_CLASS,
    PICKLE_VALUE_OBJECT,
};

struct pickle_value {
    enum pickle_kind kind;
    enum pickle_class of_class; /* for CLASS and OBJECT */
    uint8_t height;             /* depth of the values below this one, itself included */
    bool is_placed;             /* the value is part of another value */
    union {
        bool boolean;
        int64_t integer;
        struct slice bytes; /* TEXT (UTF-8) and BYTES; borrows from the input */
        struct {            /* TUPLE, LIST, DICT, SET: a chain of links */
            uint32_t first;
            uint32_t last;
            uint32_t count; /* number of links: two for each pair of a dict */
        };
        struct { /* OBJECT: indices; an object without a state has its own index as `state` */
            uint32_t arguments;
            uint32_t state;
        };
    };
};

struct pickle_link {
    uint32_t value;
    uint32_t next;
};

/* A zeroed struct is valid, and may be cleared. */
struct pickle_document {
    struct pickle_value *values;
    size_t value_count;
    size_t value_capacity;
    struct pickle_link *links;
    size_t link_count;
    size_t link_capacity;
    size_t maximum_values; /* counts values and links */
    size_t maximum_items;  /* items of one tuple, list or set; pairs of one dict */
    uint32_t root;
};

void pickle_document_clear(struct pickle_document *document);

/* Building. Reasons are appended. */

/* FAILURE_LIMIT when there are too many values. */
__attribute__((warn_unused_result)) enum failure_code pickle_document_add(
    struct pickle_document *document, const struct pickle_value *value, uint32_t *out_index,
    struct text *out_reason);
/* Adds an object without a state. Fails as pickle_document_put does. */
__attribute__((warn_unused_result)) enum failure_code pickle_document_add_object(
    struct pickle_document *document, enum pickle_class of_class, uint32_t arguments,
    uint32_t *out_index, struct text *out_reason);
/* Puts values at the end of a tuple, list, set or dict (for a dict: keys and values in turn).
 * FAILURE_MALFORMED when the container is already part of another value, or is among the items
 * itself. FAILURE_LIMIT for too many items or too deep nesting. After a failure the document must
 * not be used any more. */
__attribute__((warn_unused_result)) enum failure_code pickle_document_put(
    struct pickle_document *document, uint32_t container, const uint32_t *items, size_t count,
    struct text *out_reason);
/* Gives an object its state, a dict. FAILURE_MALFORMED when the object is part of another value or
 * already has a state, FAILURE_LIMIT for more than PICKLE_MAXIMUM_ATTRIBUTES. */
__attribute__((warn_unused_result)) enum failure_code pickle_document_set_state(
    struct pickle_document *document, uint32_t object, uint32_t state, struct text *out_reason);

/* Reading. Values belong to the document. */

const struct pickle_value *pickle_document_root(const struct pickle_document *document);
/* "an integer", "a dict", …, for messages. */
const char *pickle_kind_name(enum pickle_kind kind);
bool pickle_value_is_object(const struct pickle_value *value, enum pickle_class of_class);

/* A walk over the items of a tuple, list, set or dict (for a dict: keys and values in turn). */
struct pickle_walk {
    const struct pickle_document *document;
    uint32_t link;
    size_t left;
};
/* For values of other kinds the walk has no items. */
struct pickle_walk pickle_walk_begin(
    const struct pickle_document *document, const struct pickle_value *value);
/* The next item, or NULL. */
const struct pickle_value *pickle_walk_next(struct pickle_walk *walk);

/* The arguments of an object; they are a tuple. */
const struct pickle_value *pickle_document_arguments(
    const struct pickle_document *document, const struct pickle_value *object);
/* The value of the attribute, or NULL. If the name occurs twice, the last one counts, as in
 * Python. */
const struct pickle_value *pickle_document_attribute(
    const struct pickle_document *document, const struct pickle_value *object, const char *name);

/* Points of time as Python pickles a datetime.datetime: ten bytes (year, month, day, hour, minute,
 * second, microseconds, most significant first) and an optional time zone. Matches
 * Lib/_pydatetime.py datetime._getstate and __setstate. The calendar is the proleptic Gregorian
 * one, without leap seconds. */

#define PICKLE_DATETIME_BYTES 10

/* Reads a datetime object: the ten bytes (also in the spelling of protocol 2) and an optional
 * datetime.timezone. Without a time zone the time is UTC, because PyTorch up to 2.4 writes UTC
 * without one. On failure the reason is appended. FAILURE_MALFORMED for any other value and for a
 * date or time that does not exist; FAILURE_LIMIT for a time that struct wall_time cannot hold
 * (before 1678, after 2261). */
__attribute__((warn_unused_result)) enum failure_code pickle_datetime_read(
    const struct pickle_document *document, const struct pickle_value *value,
    struct wall_time *out_time, struct text *out_reason);

/* Writes the ten bytes of a time in UTC, rounded down to microseconds. */
void pickle_datetime_encode(struct wall_time time, uint8_t out_bytes[PICKLE_DATETIME_BYTES]);

/* Writes pickles of protocol 4, opcode by opcode. Every Python since 3.4 reads them. The caller
 * must write opcodes that form a valid program. After the first failure nothing more is written,
 * and pickle_writer_end reports it. What is written is decided in rendezvous_state_pickle. */

/* The opcodes of Python's pickles that Muster reads or writes, and the names of all opcodes. See
 * Lib/pickletools.py for what each opcode does to the stack. */

enum pickle_opcode {
    PICKLE_MARK = '(',
    PICKLE_EMPTY_TUPLE = ')',
    PICKLE_STOP = '.',
    PICKLE_POP = '0',
    PICKLE_BINBYTES = 'B',
    PICKLE_SHORT_BINBYTES = 'C',
    PICKLE_BININT = 'J',
    PICKLE_BININT1 = 'K',
    PICKLE_BININT2 = 'M',
    PICKLE_NONE = 'N',
    PICKLE_REDUCE = 'R',
    PICKLE_BINUNICODE = 'X',
    PICKLE_EMPTY_LIST = ']',
    PICKLE_APPEND = 'a',
    PICKLE_BUILD = 'b',
    PICKLE_GLOBAL = 'c',
    PICKLE_APPENDS = 'e',
    PICKLE_BINGET = 'h',
    PICKLE_LONG_BINGET = 'j',
    PICKLE_BINPUT = 'q',
    PICKLE_LONG_BINPUT = 'r',
    PICKLE_SETITEM = 's',
    PICKLE_TUPLE = 't',
    PICKLE_SETITEMS = 'u',
    PICKLE_EMPTY_DICT = '}',
    PICKLE_PROTO = 0x80,
    PICKLE_NEWOBJ = 0x81,
    PICKLE_TUPLE1 = 0x85,
    PICKLE_TUPLE2 = 0x86,
    PICKLE_TUPLE3 = 0x87,
    PICKLE_NEWTRUE = 0x88,
    PICKLE_NEWFALSE = 0x89,
    PICKLE_LONG1 = 0x8a,
    PICKLE_SHORT_BINUNICODE = 0x8c,
    PICKLE_EMPTY_SET = 0x8f,
    PICKLE_ADDITEMS = 0x90,
    PICKLE_STACK_GLOBAL = 0x93,
    PICKLE_MEMOIZE = 0x94,
    PICKLE_FRAME = 0x95,
};

/* The name of any opcode of protocols 0 to 5; NULL for a byte that is no opcode. */
const char *pickle_opcode_name(uint8_t opcode);

struct pickle_writer {
    struct bytes *out; /* borrowed */
    size_t start;      /* where in `out` the pickle begins */
    uint32_t kept;     /* used slots of the memo */
    enum failure_code code;
};

/* Appends the beginning of a pickle to `out`. */
void pickle_writer_begin(struct pickle_writer *writer, struct bytes *out);
/* Appends STOP. FAILURE_LIMIT when the buffer's ceiling was reached, FAILURE_INVALID when a text
 * was not UTF-8. On failure the buffer is as it was before pickle_writer_begin. */
__attribute__((warn_unused_result)) enum failure_code pickle_writer_end(
    struct pickle_writer *writer);

/* Writes an opcode without operands. */
void pickle_write_opcode(struct pickle_writer *writer, enum pickle_opcode opcode);
void pickle_write_boolean(struct pickle_writer *writer, bool boolean);
/* Writes an integer in its shortest form. */
void pickle_write_integer(struct pickle_writer *writer, int64_t integer);
/* The text must be UTF-8; Python's lone surrogates are allowed. */
void pickle_write_text(struct pickle_writer *writer, struct slice text);
/* FAILURE_LIMIT for more than 255 bytes. */
void pickle_write_bytes(struct pickle_writer *writer, struct slice bytes);
void pickle_write_class(struct pickle_writer *writer, enum pickle_class of_class);

/* Stores the topmost value in the memo and returns its slot. */
uint32_t pickle_write_keep(struct pickle_writer *writer);
/* Pushes the value in a slot. */
void pickle_write_recall(struct pickle_writer *writer, uint32_t slot);

#endif
