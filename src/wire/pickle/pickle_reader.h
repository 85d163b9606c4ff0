/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads into a wire/pickle_document the part of Python's pickle format (protocols 2 to 5) that a
 * rendezvous record needs. Nothing is ever imported, called or constructed. Opcodes that would call
 * something in Python make inert values here, and only for the classes in
 * wire/pickle/pickle_document. Every other class, function and opcode is refused, and the reason
 * names it. Matches Lib/pickle.py class _Unpickler for what it accepts. Like pickle.loads it
 * ignores bytes after the end. */
#ifndef MUSTER_WIRE_PICKLE_PICKLE_READER_H
#define MUSTER_WIRE_PICKLE_PICKLE_READER_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "wire/pickle/pickle_document.h"

/* The stack and the memo of the pickle machine, over the values of a document. Marks divide the
 * stack as in CPython's unpickler: values below the last mark cannot be reached until the mark is
 * removed. Opcodes and bytes are not handled here; see pickle_reader. */

/* A zeroed struct with a document, a ceiling and a reason is an empty stack. Values are indices of
 * the document. Every failure appends to `reason`: FAILURE_MALFORMED when the value or mark does
 * not exist, FAILURE_LIMIT at a ceiling. */
struct pickle_stack {
    struct pickle_document *document; /* borrowed */
    size_t maximum;                   /* values on the stack, and slots of the memo */
    struct text *reason;              /* borrowed */
    uint32_t *values;
    size_t count;
    size_t capacity;
    size_t marks[PICKLE_MAXIMUM_DEPTH]; /* for each mark, the number of values below it */
    size_t mark_count;
    uint32_t *memo; /* each slot holds the value plus one; 0: the slot is empty */
    size_t memo_count;
    size_t memo_capacity;
    size_t memo_kept; /* slots that are not 0 */
};

void pickle_stack_clear(struct pickle_stack *stack);
/* Adds the value to the document and pushes it. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_push_new(
    struct pickle_stack *stack, const struct pickle_value *value);
/* Removes and returns the topmost value, which must be of that kind. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_pop(
    struct pickle_stack *stack, enum pickle_kind kind, uint32_t *out_value);
/* Removes the topmost `count` values; the topmost is the last in the result. They stay in memory
 * until the next push. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_pop_many(
    struct pickle_stack *stack, size_t count, const uint32_t **out_values);

__attribute__((warn_unused_result)) enum failure_code pickle_stack_mark(struct pickle_stack *stack);
/* Removes the last mark and the values above it. The values stay in memory until the next push. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_pop_to_mark(
    struct pickle_stack *stack, const uint32_t **out_values, size_t *out_count);
/* Removes the topmost value, or the mark if nothing is above it. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_drop(struct pickle_stack *stack);

/* Stores the topmost value in a slot of the memo; the value also stays on the stack. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_keep(
    struct pickle_stack *stack, size_t slot);
/* Stores the topmost value in the slot whose number is the count of used slots. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_keep_next(
    struct pickle_stack *stack);
/* Pushes the value in a slot. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_recall(
    struct pickle_stack *stack, size_t slot);

struct pickle_limits {
    size_t bytes;  /* of the input */
    size_t values; /* in the document, on the stack and in the memo; must be below 2^31 */
    size_t items;  /* of one tuple, list, set or dict */
};

/* The document borrows from the input; clear it with pickle_document_clear. On failure
 * `out_document` is untouched and one line with the position is appended to `out_reason`: "refuses
 * os.system: … (at byte 31)". FAILURE_MALFORMED: the input is not a pickle, or a broken one.
 * FAILURE_UNSUPPORTED: the protocol, a class or an opcode is not supported. FAILURE_LIMIT: a
 * ceiling was passed, or an integer does not fit into int64_t. */
__attribute__((warn_unused_result)) enum failure_code pickle_read(struct slice input,
    const struct pickle_limits *limits, struct pickle_document *out_document,
    struct text *out_reason);

#endif
