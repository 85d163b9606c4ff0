/* SPDX-License-Identifier: BSD-3-Clause */
/* What a pickle says, as data: values that name each other by index, all in one arena. Objects are
 * inert: a class out of a fixed list, the arguments it would have been called with, and a state.
 * wire/pickle_reader builds a document, others walk it.
 *
 * A value may stand in many places (pickles refer back), so a document is no tree, and who walks
 * all of it may walk for very long: look only at what you know. But it holds no cycle, and its
 * depth is bounded: a value that has been put into another cannot grow any more. */
#ifndef MUSTER_WIRE_PICKLE_DOCUMENT_H
#define MUSTER_WIRE_PICKLE_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "wire/pickle_class.h"

/* How deep values nest; a rendezvous record needs 11. */
#define PICKLE_MAXIMUM_DEPTH 32
/* An object's attributes. */
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
    enum pickle_class of_class; /* of a class and an object */
    uint8_t height;             /* of what is below it, itself included */
    bool is_placed;             /* is part of another value */
    union {
        bool boolean;
        int64_t integer;
        struct slice bytes; /* TEXT (UTF-8) and BYTES; borrows from the input */
        struct {            /* TUPLE, LIST, DICT, SET: a chain of links */
            uint32_t first;
            uint32_t last;
            uint32_t count; /* of links: two for each pair of a dict */
        };
        struct { /* OBJECT: indices; no state is the object's own index */
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
    size_t maximum_values; /* also of links */
    size_t maximum_items;  /* of one tuple, list or set; pairs of a dict */
    uint32_t root;
};

void pickle_document_clear(struct pickle_document *document);

/* Building; reasons are appended. */

/* FAILURE_LIMIT when there are too many. */
__attribute__((warn_unused_result)) enum failure_code pickle_document_add(
    struct pickle_document *document, const struct pickle_value *value, uint32_t *out_index,
    struct text *out_reason);
/* An object without a state. Failures as of pickle_document_put. */
__attribute__((warn_unused_result)) enum failure_code pickle_document_add_object(
    struct pickle_document *document, enum pickle_class of_class, uint32_t arguments,
    uint32_t *out_index, struct text *out_reason);
/* Puts values at the end of a tuple, list, set or dict (of a dict: keys and values in turn).
 * FAILURE_MALFORMED when the container has been placed itself or is among the items, FAILURE_LIMIT
 * for too many items or too deep nesting; the document is then of no use any more. */
__attribute__((warn_unused_result)) enum failure_code pickle_document_put(
    struct pickle_document *document, uint32_t container, const uint32_t *items, size_t count,
    struct text *out_reason);
/* Gives an object its state, a dict. FAILURE_MALFORMED for an object that has been placed or has a
 * state, FAILURE_LIMIT for more than PICKLE_MAXIMUM_ATTRIBUTES. */
__attribute__((warn_unused_result)) enum failure_code pickle_document_set_state(
    struct pickle_document *document, uint32_t object, uint32_t state, struct text *out_reason);

/* Looking. Values belong to the document. */

const struct pickle_value *pickle_document_root(const struct pickle_document *document);
/* "an integer", "a dict", …, for messages. */
const char *pickle_kind_name(enum pickle_kind kind);
bool pickle_value_is_object(const struct pickle_value *value, enum pickle_class of_class);

/* A walk over the items of a tuple, list, set or dict (of a dict: keys and values in turn). */
struct pickle_walk {
    const struct pickle_document *document;
    uint32_t link;
    size_t left;
};
/* No items for other kinds. */
struct pickle_walk pickle_walk_begin(
    const struct pickle_document *document, const struct pickle_value *value);
/* The next item, or NULL. */
const struct pickle_value *pickle_walk_next(struct pickle_walk *walk);

/* The arguments of an object, a tuple. */
const struct pickle_value *pickle_document_arguments(
    const struct pickle_document *document, const struct pickle_value *object);
/* The value of the attribute (the last one of that name), or NULL. */
const struct pickle_value *pickle_document_attribute(
    const struct pickle_document *document, const struct pickle_value *object, const char *name);

#endif
