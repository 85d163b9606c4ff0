/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pickle/pickle_stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

void pickle_stack_clear(struct pickle_stack *stack) {
    free(stack->values);
    free(stack->memo);
    *stack = (struct pickle_stack){0};
}

static enum failure_code refuse(
    struct pickle_stack *stack, enum failure_code code, const char *message) {
    text_append(stack->reason, message);
    return code;
}

enum failure_code pickle_stack_push(struct pickle_stack *stack, uint32_t value) {
    if (stack->count >= stack->maximum) {
        return refuse(stack, FAILURE_LIMIT, "too many values on the stack");
    }
    stack->values =
        memory_reserve(stack->values, &stack->capacity, stack->count + 1, sizeof *stack->values);
    stack->values[stack->count++] = value;
    return FAILURE_NONE;
}

enum failure_code pickle_stack_push_new(
    struct pickle_stack *stack, const struct pickle_value *value) {
    uint32_t index;
    enum failure_code code = pickle_document_add(stack->document, value, &index, stack->reason);
    return code == FAILURE_NONE ? pickle_stack_push(stack, index) : code;
}

/* The number of values above the last mark. */
static size_t within_reach(const struct pickle_stack *stack) {
    return stack->mark_count == 0 ? stack->count
                                  : stack->count - stack->marks[stack->mark_count - 1];
}

static enum failure_code require(struct pickle_stack *stack, size_t count) {
    return within_reach(stack) >= count
               ? FAILURE_NONE
               : refuse(stack, FAILURE_MALFORMED, "a value is missing on the stack");
}

enum failure_code pickle_stack_peek(
    struct pickle_stack *stack, enum pickle_kind kind, uint32_t *out_value) {
    enum failure_code code = require(stack, 1);
    if (code != FAILURE_NONE) {
        return code;
    }
    uint32_t value = stack->values[stack->count - 1];
    enum pickle_kind found = stack->document->values[value].kind;
    if (found != kind) {
        text_append_format(
            stack->reason, "%s where %s belongs", pickle_kind_name(found), pickle_kind_name(kind));
        return FAILURE_MALFORMED;
    }
    *out_value = value;
    return FAILURE_NONE;
}

enum failure_code pickle_stack_pop(
    struct pickle_stack *stack, enum pickle_kind kind, uint32_t *out_value) {
    enum failure_code code = pickle_stack_peek(stack, kind, out_value);
    stack->count -= code == FAILURE_NONE;
    return code;
}

enum failure_code pickle_stack_pop_many(
    struct pickle_stack *stack, size_t count, const uint32_t **out_values) {
    enum failure_code code = require(stack, count);
    if (code == FAILURE_NONE) {
        stack->count -= count;
        *out_values = stack->values + stack->count;
    }
    return code;
}

enum failure_code pickle_stack_mark(struct pickle_stack *stack) {
    if (stack->mark_count == PICKLE_MAXIMUM_DEPTH) {
        return refuse(stack, FAILURE_LIMIT, "too many marks on the stack");
    }
    stack->marks[stack->mark_count++] = stack->count;
    return FAILURE_NONE;
}

enum failure_code pickle_stack_pop_to_mark(
    struct pickle_stack *stack, const uint32_t **out_values, size_t *out_count) {
    if (stack->mark_count == 0) {
        return refuse(stack, FAILURE_MALFORMED, "a mark is missing on the stack");
    }
    *out_count = within_reach(stack);
    stack->count -= *out_count;
    stack->mark_count--;
    *out_values = stack->values == NULL ? NULL : stack->values + stack->count;
    return FAILURE_NONE;
}

enum failure_code pickle_stack_drop(struct pickle_stack *stack) {
    if (stack->mark_count > 0 && within_reach(stack) == 0) {
        stack->mark_count--;
        return FAILURE_NONE;
    }
    enum failure_code code = require(stack, 1);
    stack->count -= code == FAILURE_NONE;
    return code;
}

enum failure_code pickle_stack_keep(struct pickle_stack *stack, size_t slot) {
    enum failure_code code = require(stack, 1);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (slot >= stack->maximum) {
        return refuse(stack, FAILURE_LIMIT, "too many values in the memo");
    }
    if (slot >= stack->memo_count) {
        stack->memo =
            memory_reserve(stack->memo, &stack->memo_capacity, slot + 1, sizeof *stack->memo);
        memset(stack->memo + stack->memo_count, 0,
            (slot + 1 - stack->memo_count) * sizeof *stack->memo);
        stack->memo_count = slot + 1;
    }
    stack->memo_kept += stack->memo[slot] == 0;
    stack->memo[slot] = stack->values[stack->count - 1] + 1;
    return FAILURE_NONE;
}

enum failure_code pickle_stack_keep_next(struct pickle_stack *stack) {
    return pickle_stack_keep(stack, stack->memo_kept);
}

enum failure_code pickle_stack_recall(struct pickle_stack *stack, size_t slot) {
    if (slot >= stack->memo_count || stack->memo[slot] == 0) {
        text_append_format(stack->reason, "memo %zu is empty", slot);
        return FAILURE_MALFORMED;
    }
    return pickle_stack_push(stack, stack->memo[slot] - 1);
}
