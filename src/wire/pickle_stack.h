/* SPDX-License-Identifier: BSD-3-Clause */
/* The stack and the memo of the machine that pickles are programs for, over the values of a
 * document. Marks fence the stack off as in CPython's unpickler: what lies below the last mark is
 * out of reach until something takes the mark away. Not here: opcodes and bytes (pickle_reader). */
#ifndef MUSTER_WIRE_PICKLE_STACK_H
#define MUSTER_WIRE_PICKLE_STACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/text.h"
#include "wire/pickle_document.h"

/* A zeroed struct with a document, a ceiling and a reason is an empty stack. Values are indices of
 * the document. Whatever fails appends to `reason`: FAILURE_MALFORMED when what is asked for is not
 * there, FAILURE_LIMIT at a ceiling. */
struct pickle_stack {
    struct pickle_document *document; /* borrowed */
    size_t maximum;                   /* values on the stack, and slots of the memo */
    struct text *reason;              /* borrowed */
    uint32_t *values;
    size_t count;
    size_t capacity;
    size_t marks[PICKLE_MAXIMUM_DEPTH]; /* how many values lie below each */
    size_t mark_count;
    uint32_t *memo; /* one more than the value; 0: nothing is kept here */
    size_t memo_count;
    size_t memo_capacity;
    size_t memo_kept; /* slots that are not 0 */
};

void pickle_stack_clear(struct pickle_stack *stack);

__attribute__((warn_unused_result)) enum failure_code pickle_stack_push(
    struct pickle_stack *stack, uint32_t value);
/* Adds the value to the document and pushes it. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_push_new(
    struct pickle_stack *stack, const struct pickle_value *value);
/* The topmost value, which stays; it must be of that kind. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_peek(
    struct pickle_stack *stack, enum pickle_kind kind, uint32_t *out_value);
/* Takes the topmost value, which must be of that kind. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_pop(
    struct pickle_stack *stack, enum pickle_kind kind, uint32_t *out_value);
/* Takes the topmost `count` values, the topmost last. They stay in memory until the next push. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_pop_many(
    struct pickle_stack *stack, size_t count, const uint32_t **out_values);

__attribute__((warn_unused_result)) enum failure_code pickle_stack_mark(struct pickle_stack *stack);
/* Takes the last mark and what is above it; the values stay in memory until the next push. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_pop_to_mark(
    struct pickle_stack *stack, const uint32_t **out_values, size_t *out_count);
/* Takes the topmost value, or the mark when it is topmost. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_drop(struct pickle_stack *stack);

/* Keeps the topmost value, which stays, in a slot of the memo. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_keep(
    struct pickle_stack *stack, size_t slot);
/* Keeps it in the slot whose number is that of the slots in use. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_keep_next(
    struct pickle_stack *stack);
/* Pushes what a slot holds. */
__attribute__((warn_unused_result)) enum failure_code pickle_stack_recall(
    struct pickle_stack *stack, size_t slot);

#endif
