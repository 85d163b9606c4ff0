/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pickle/pickle_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "base/utf8.h"
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

static void pickle_stack_clear(struct pickle_stack *stack) {
    free(stack->values);
    free(stack->memo);
    *stack = (struct pickle_stack){0};
}

static enum failure_code stack_refuse(
    struct pickle_stack *stack, enum failure_code code, const char *message) {
    text_append(stack->reason, message);
    return code;
}

static enum failure_code pickle_stack_push(struct pickle_stack *stack, uint32_t value) {
    if (stack->count >= stack->maximum) {
        return stack_refuse(stack, FAILURE_LIMIT, "too many values on the stack");
    }
    stack->values =
        memory_reserve(stack->values, &stack->capacity, stack->count + 1, sizeof *stack->values);
    stack->values[stack->count++] = value;
    return FAILURE_NONE;
}

/* Adds the value to the document and pushes it. */
static enum failure_code pickle_stack_push_new(
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
               : stack_refuse(stack, FAILURE_MALFORMED, "a value is missing on the stack");
}

/* Returns the topmost value without removing it. It must be of that kind. */
static enum failure_code pickle_stack_peek(
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

/* Removes and returns the topmost value, which must be of that kind. */
static enum failure_code pickle_stack_pop(
    struct pickle_stack *stack, enum pickle_kind kind, uint32_t *out_value) {
    enum failure_code code = pickle_stack_peek(stack, kind, out_value);
    stack->count -= code == FAILURE_NONE;
    return code;
}

/* Removes the topmost `count` values; the topmost is the last in the result. They stay in memory
 * until the next push. */
static enum failure_code pickle_stack_pop_many(
    struct pickle_stack *stack, size_t count, const uint32_t **out_values) {
    enum failure_code code = require(stack, count);
    if (code == FAILURE_NONE) {
        stack->count -= count;
        *out_values = stack->values + stack->count;
    }
    return code;
}

static enum failure_code pickle_stack_mark(struct pickle_stack *stack) {
    if (stack->mark_count == PICKLE_MAXIMUM_DEPTH) {
        return stack_refuse(stack, FAILURE_LIMIT, "too many marks on the stack");
    }
    stack->marks[stack->mark_count++] = stack->count;
    return FAILURE_NONE;
}

/* Removes the last mark and the values above it. The values stay in memory until the next push. */
static enum failure_code pickle_stack_pop_to_mark(
    struct pickle_stack *stack, const uint32_t **out_values, size_t *out_count) {
    if (stack->mark_count == 0) {
        return stack_refuse(stack, FAILURE_MALFORMED, "a mark is missing on the stack");
    }
    *out_count = within_reach(stack);
    stack->count -= *out_count;
    stack->mark_count--;
    *out_values = stack->values == NULL ? NULL : stack->values + stack->count;
    return FAILURE_NONE;
}

/* Removes the topmost value, or the mark if nothing is above it. */
static enum failure_code pickle_stack_drop(struct pickle_stack *stack) {
    if (stack->mark_count > 0 && within_reach(stack) == 0) {
        stack->mark_count--;
        return FAILURE_NONE;
    }
    enum failure_code code = require(stack, 1);
    stack->count -= code == FAILURE_NONE;
    return code;
}

/* Stores the topmost value in a slot of the memo; the value also stays on the stack. */
static enum failure_code pickle_stack_keep(struct pickle_stack *stack, size_t slot) {
    enum failure_code code = require(stack, 1);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (slot >= stack->maximum) {
        return stack_refuse(stack, FAILURE_LIMIT, "too many values in the memo");
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

/* Stores the topmost value in the slot whose number is the count of used slots. */
static enum failure_code pickle_stack_keep_next(struct pickle_stack *stack) {
    return pickle_stack_keep(stack, stack->memo_kept);
}

/* Pushes the value in a slot. */
static enum failure_code pickle_stack_recall(struct pickle_stack *stack, size_t slot) {
    if (slot >= stack->memo_count || stack->memo[slot] == 0) {
        text_append_format(stack->reason, "memo %zu is empty", slot);
        return FAILURE_MALFORMED;
    }
    return pickle_stack_push(stack, stack->memo[slot] - 1);
}

/* Reader. */

/* The longest text or bytes in a pickle. */
#define PICKLE_MAXIMUM_TEXT 65536u

#define LOWEST_PROTOCOL 2
#define HIGHEST_PROTOCOL 5
#define SHOWN_NAME_BYTES 100 /* of another program's name, in a reason */

struct reader {
    struct slice input;
    size_t position;
    struct pickle_document document;
    struct pickle_stack stack;
    bool is_ended;
    struct text *reason;
};

static enum failure_code refuse(
    struct reader *reader, enum failure_code code, const char *message) {
    text_append(reader->reason, message);
    return code;
}

/* Input. */

static enum failure_code take(struct reader *reader, size_t length, const uint8_t **out_data) {
    if (length > reader->input.length - reader->position) {
        return refuse(reader, FAILURE_MALFORMED, "the pickle is cut off");
    }
    *out_data = reader->input.data + reader->position;
    reader->position += length;
    return FAILURE_NONE;
}

/* Reads an unsigned number of 1, 2 or 4 bytes. */
static enum failure_code take_number(struct reader *reader, unsigned size, uint32_t *out_number) {
    const uint8_t *data;
    enum failure_code code = take(reader, size, &data);
    if (code == FAILURE_NONE) {
        *out_number = 0;
        for (unsigned i = 0; i < size; i++) {
            *out_number |= (uint32_t)data[i] << (8 * i);
        }
    }
    return code;
}

/* Reads a length of `size` bytes, then that many bytes. */
static enum failure_code take_counted(
    struct reader *reader, unsigned size, struct slice *out_bytes) {
    uint32_t length;
    enum failure_code code = take_number(reader, size, &length);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (length > PICKLE_MAXIMUM_TEXT) {
        text_append_format(reader->reason, "text of %" PRIu32 " bytes, the limit is %u", length,
            PICKLE_MAXIMUM_TEXT);
        return FAILURE_LIMIT;
    }
    out_bytes->length = length;
    return take(reader, length, &out_bytes->data);
}

/* Reads up to the end of the line; the newline is consumed, too. */
static enum failure_code take_line(struct reader *reader, struct slice *out_line) {
    const uint8_t *start = reader->input.data + reader->position;
    const uint8_t *end = memchr(start, '\n', reader->input.length - reader->position);
    if (end == NULL) {
        return refuse(reader, FAILURE_MALFORMED, "the pickle is cut off");
    }
    *out_line = (struct slice){start, (size_t)(end - start)};
    reader->position += out_line->length + 1;
    return FAILURE_NONE;
}

/* Plain values. */

static enum failure_code push_kind(struct reader *reader, unsigned kind) {
    const struct pickle_value value = {.kind = (enum pickle_kind)kind};
    return pickle_stack_push_new(&reader->stack, &value);
}

static enum failure_code push_boolean(struct reader *reader, unsigned is_true) {
    const struct pickle_value value = {.kind = PICKLE_VALUE_BOOLEAN, .boolean = is_true != 0};
    return pickle_stack_push_new(&reader->stack, &value);
}

static enum failure_code push_integer(struct reader *reader, int64_t integer) {
    const struct pickle_value value = {.kind = PICKLE_VALUE_INTEGER, .integer = integer};
    return pickle_stack_push_new(&reader->stack, &value);
}

static enum failure_code push_unsigned(struct reader *reader, unsigned size) {
    uint32_t number;
    enum failure_code code = take_number(reader, size, &number);
    return code == FAILURE_NONE ? push_integer(reader, number) : code;
}

static enum failure_code push_signed(struct reader *reader, unsigned size) {
    uint32_t number;
    enum failure_code code = take_number(reader, size, &number);
    return code == FAILURE_NONE ? push_integer(reader, (int32_t)number) : code;
}

/* Reads an integer in two's complement of any length. It may have more bytes than it needs. */
static enum failure_code push_long(struct reader *reader, unsigned size) {
    struct slice bytes;
    enum failure_code code = take_counted(reader, size, &bytes);
    if (code != FAILURE_NONE) {
        return code;
    }
    bool is_negative = bytes.length > 0 && bytes.data[bytes.length - 1] >= 0x80;
    uint64_t number = 0;
    bool is_in_range = true;
    for (size_t i = 0; i < bytes.length || i < sizeof number; i++) {
        uint8_t byte = i < bytes.length ? bytes.data[i] : is_negative ? 0xff : 0;
        if (i < sizeof number) {
            number |= (uint64_t)byte << (8 * i);
        } else {
            is_in_range = is_in_range && byte == (is_negative ? 0xff : 0);
        }
    }
    if (!is_in_range || (number >> 63 != 0) != is_negative) {
        return refuse(reader, FAILURE_LIMIT, "an integer of more than 64 bits");
    }
    return push_integer(reader, (int64_t)number);
}

static enum failure_code push_text(struct reader *reader, unsigned size) {
    struct pickle_value value = {.kind = PICKLE_VALUE_TEXT};
    enum failure_code code = take_counted(reader, size, &value.bytes);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (!utf8_is_python_text(value.bytes.data, value.bytes.length)) {
        return refuse(reader, FAILURE_MALFORMED, "text that is not UTF-8");
    }
    return pickle_stack_push_new(&reader->stack, &value);
}

static enum failure_code push_bytes(struct reader *reader, unsigned size) {
    struct pickle_value value = {.kind = PICKLE_VALUE_BYTES};
    enum failure_code code = take_counted(reader, size, &value.bytes);
    return code == FAILURE_NONE ? pickle_stack_push_new(&reader->stack, &value) : code;
}

/* Containers. */

static enum failure_code mark(struct reader *reader, unsigned variant) {
    (void)variant;
    return pickle_stack_mark(&reader->stack);
}

static enum failure_code push_tuple(struct reader *reader, const uint32_t *items, size_t count) {
    const struct pickle_value tuple = {.kind = PICKLE_VALUE_TUPLE};
    uint32_t index;
    enum failure_code code = pickle_document_add(&reader->document, &tuple, &index, reader->reason);
    if (code == FAILURE_NONE) {
        code = pickle_document_put(&reader->document, index, items, count, reader->reason);
    }
    return code == FAILURE_NONE ? pickle_stack_push(&reader->stack, index) : code;
}

static enum failure_code gather_marked_tuple(struct reader *reader, unsigned variant) {
    (void)variant;
    const uint32_t *items;
    size_t count;
    enum failure_code code = pickle_stack_pop_to_mark(&reader->stack, &items, &count);
    return code == FAILURE_NONE ? push_tuple(reader, items, count) : code;
}

static enum failure_code gather_tuple(struct reader *reader, unsigned count) {
    const uint32_t *items;
    enum failure_code code = pickle_stack_pop_many(&reader->stack, count, &items);
    return code == FAILURE_NONE ? push_tuple(reader, items, count) : code;
}

/* Puts items that were taken from the stack into the container of that kind, which is below
 * them. */
static enum failure_code put(
    struct reader *reader, enum pickle_kind kind, const uint32_t *items, size_t count) {
    uint32_t container;
    enum failure_code code = pickle_stack_peek(&reader->stack, kind, &container);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (kind == PICKLE_VALUE_DICT && count % 2 != 0) {
        return refuse(reader, FAILURE_MALFORMED, "a key without a value");
    }
    return pickle_document_put(&reader->document, container, items, count, reader->reason);
}

static enum failure_code put_marked(struct reader *reader, unsigned kind) {
    const uint32_t *items;
    size_t count;
    enum failure_code code = pickle_stack_pop_to_mark(&reader->stack, &items, &count);
    return code == FAILURE_NONE ? put(reader, (enum pickle_kind)kind, items, count) : code;
}

static enum failure_code put_one(struct reader *reader, unsigned kind) {
    const uint32_t *items;
    size_t count = kind == PICKLE_VALUE_DICT ? 2 : 1;
    enum failure_code code = pickle_stack_pop_many(&reader->stack, count, &items);
    return code == FAILURE_NONE ? put(reader, (enum pickle_kind)kind, items, count) : code;
}

/* Classes and objects. */

static void show_name(struct text *out, struct slice name) {
    for (size_t i = 0; i < name.length && i < SHOWN_NAME_BYTES; i++) {
        bool is_plain = name.data[i] > ' ' && name.data[i] < 0x7f;
        text_append_bytes(out, is_plain ? (const char *)&name.data[i] : "?", 1);
    }
    text_append(out, name.length > SHOWN_NAME_BYTES ? "..." : "");
}

static enum failure_code push_class(struct reader *reader, struct slice module, struct slice name) {
    struct pickle_value value = {.kind = PICKLE_VALUE_CLASS};
    if (pickle_class_find(module, name, &value.of_class)) {
        return pickle_stack_push_new(&reader->stack, &value);
    }
    text_append(reader->reason, "refuses ");
    show_name(reader->reason, module);
    text_append(reader->reason, ".");
    show_name(reader->reason, name);
    text_append(reader->reason, ": a record may hold only _RendezvousState, _NodeDesc, datetime, "
                                "timezone, timedelta and set");
    return FAILURE_UNSUPPORTED;
}

static enum failure_code push_global(struct reader *reader, unsigned variant) {
    (void)variant;
    struct slice module;
    struct slice name;
    enum failure_code code = take_line(reader, &module);
    if (code == FAILURE_NONE) {
        code = take_line(reader, &name);
    }
    return code == FAILURE_NONE ? push_class(reader, module, name) : code;
}

static enum failure_code push_stack_global(struct reader *reader, unsigned variant) {
    (void)variant;
    uint32_t name;
    uint32_t module;
    enum failure_code code = pickle_stack_pop(&reader->stack, PICKLE_VALUE_TEXT, &name);
    if (code == FAILURE_NONE) {
        code = pickle_stack_pop(&reader->stack, PICKLE_VALUE_TEXT, &module);
    }
    const struct pickle_value *values = reader->document.values;
    return code == FAILURE_NONE ? push_class(reader, values[module].bytes, values[name].bytes)
                                : code;
}

/* For NEWOBJ and REDUCE Python would call the class. Here the object only records the class and the
 * arguments. */
static enum failure_code push_object(struct reader *reader, unsigned variant) {
    (void)variant;
    uint32_t arguments;
    uint32_t class_value;
    uint32_t object;
    enum failure_code code = pickle_stack_pop(&reader->stack, PICKLE_VALUE_TUPLE, &arguments);
    if (code == FAILURE_NONE) {
        code = pickle_stack_pop(&reader->stack, PICKLE_VALUE_CLASS, &class_value);
    }
    if (code == FAILURE_NONE) {
        enum pickle_class of_class = reader->document.values[class_value].of_class;
        code = pickle_document_add_object(
            &reader->document, of_class, arguments, &object, reader->reason);
    }
    return code == FAILURE_NONE ? pickle_stack_push(&reader->stack, object) : code;
}

static enum failure_code set_state(struct reader *reader, unsigned variant) {
    (void)variant;
    uint32_t state;
    uint32_t object;
    enum failure_code code = pickle_stack_pop(&reader->stack, PICKLE_VALUE_DICT, &state);
    if (code == FAILURE_NONE) {
        code = pickle_stack_peek(&reader->stack, PICKLE_VALUE_OBJECT, &object);
    }
    return code == FAILURE_NONE
               ? pickle_document_set_state(&reader->document, object, state, reader->reason)
               : code;
}

/* The memo. */

static enum failure_code keep(struct reader *reader, unsigned size) {
    uint32_t slot;
    enum failure_code code = take_number(reader, size, &slot);
    return code == FAILURE_NONE ? pickle_stack_keep(&reader->stack, slot) : code;
}

static enum failure_code keep_next(struct reader *reader, unsigned variant) {
    (void)variant;
    return pickle_stack_keep_next(&reader->stack);
}

static enum failure_code recall(struct reader *reader, unsigned size) {
    uint32_t slot;
    enum failure_code code = take_number(reader, size, &slot);
    return code == FAILURE_NONE ? pickle_stack_recall(&reader->stack, slot) : code;
}

/* Dispatch. */

static enum failure_code drop(struct reader *reader, unsigned variant) {
    (void)variant;
    return pickle_stack_drop(&reader->stack);
}

static enum failure_code begin_frame(struct reader *reader, unsigned size) {
    const uint8_t *data;
    enum failure_code code = take(reader, size, &data);
    if (code == FAILURE_NONE &&
        little_endian_load64(data) > reader->input.length - reader->position) {
        return refuse(reader, FAILURE_MALFORMED, "the pickle is cut off");
    }
    return code;
}

static enum failure_code check_protocol(struct reader *reader, unsigned size) {
    uint32_t protocol;
    enum failure_code code = take_number(reader, size, &protocol);
    if (code == FAILURE_NONE && (protocol < LOWEST_PROTOCOL || protocol > HIGHEST_PROTOCOL)) {
        text_append_format(reader->reason, "pickle protocol %" PRIu32 ", where %d to %d are read",
            protocol, LOWEST_PROTOCOL, HIGHEST_PROTOCOL);
        return FAILURE_UNSUPPORTED;
    }
    return code;
}

static enum failure_code end(struct reader *reader, unsigned variant) {
    (void)variant;
    const uint32_t *root;
    enum failure_code code = pickle_stack_pop_many(&reader->stack, 1, &root);
    if (code == FAILURE_NONE) {
        reader->document.root = *root;
        reader->is_ended = true;
    }
    return code;
}

/* What each opcode does. `variant` distinguishes opcodes that do the same with another size or
 * kind. */
struct action {
    enum failure_code (*perform)(struct reader *reader, unsigned variant);
    unsigned variant;
};

static const struct action actions[256] = {
    [PICKLE_MARK] = {mark, 0},
    [PICKLE_EMPTY_TUPLE] = {push_kind, PICKLE_VALUE_TUPLE},
    [PICKLE_STOP] = {end, 0},
    [PICKLE_POP] = {drop, 0},
    [PICKLE_BINBYTES] = {push_bytes, 4},
    [PICKLE_SHORT_BINBYTES] = {push_bytes, 1},
    [PICKLE_BININT] = {push_signed, 4},
    [PICKLE_BININT1] = {push_unsigned, 1},
    [PICKLE_BININT2] = {push_unsigned, 2},
    [PICKLE_NONE] = {push_kind, PICKLE_VALUE_NONE},
    [PICKLE_REDUCE] = {push_object, 0},
    [PICKLE_BINUNICODE] = {push_text, 4},
    [PICKLE_EMPTY_LIST] = {push_kind, PICKLE_VALUE_LIST},
    [PICKLE_APPEND] = {put_one, PICKLE_VALUE_LIST},
    [PICKLE_BUILD] = {set_state, 0},
    [PICKLE_GLOBAL] = {push_global, 0},
    [PICKLE_APPENDS] = {put_marked, PICKLE_VALUE_LIST},
    [PICKLE_BINGET] = {recall, 1},
    [PICKLE_LONG_BINGET] = {recall, 4},
    [PICKLE_BINPUT] = {keep, 1},
    [PICKLE_LONG_BINPUT] = {keep, 4},
    [PICKLE_SETITEM] = {put_one, PICKLE_VALUE_DICT},
    [PICKLE_TUPLE] = {gather_marked_tuple, 0},
    [PICKLE_SETITEMS] = {put_marked, PICKLE_VALUE_DICT},
    [PICKLE_EMPTY_DICT] = {push_kind, PICKLE_VALUE_DICT},
    [PICKLE_PROTO] = {check_protocol, 1},
    [PICKLE_NEWOBJ] = {push_object, 0},
    [PICKLE_TUPLE1] = {gather_tuple, 1},
    [PICKLE_TUPLE2] = {gather_tuple, 2},
    [PICKLE_TUPLE3] = {gather_tuple, 3},
    [PICKLE_NEWTRUE] = {push_boolean, true},
    [PICKLE_NEWFALSE] = {push_boolean, false},
    [PICKLE_LONG1] = {push_long, 1},
    [PICKLE_SHORT_BINUNICODE] = {push_text, 1},
    [PICKLE_EMPTY_SET] = {push_kind, PICKLE_VALUE_SET},
    [PICKLE_ADDITEMS] = {put_marked, PICKLE_VALUE_SET},
    [PICKLE_STACK_GLOBAL] = {push_stack_global, 0},
    [PICKLE_MEMOIZE] = {keep_next, 0},
    [PICKLE_FRAME] = {begin_frame, 8},
};

static enum failure_code refuse_opcode(struct reader *reader, uint8_t opcode) {
    const char *name = pickle_opcode_name(opcode);
    if (name == NULL) {
        text_append_format(reader->reason, "0x%02x is no opcode", opcode);
        return FAILURE_MALFORMED;
    }
    text_append_format(reader->reason, "refuses the opcode %s: no record needs it", name);
    return FAILURE_UNSUPPORTED;
}

/* Reads and executes the next opcode. */
static enum failure_code step(struct reader *reader) {
    size_t place = reader->position;
    const uint8_t *opcode;
    enum failure_code code = take(reader, 1, &opcode);
    if (code == FAILURE_NONE) {
        const struct action *action = &actions[*opcode];
        code = action->perform != NULL ? action->perform(reader, action->variant)
                                       : refuse_opcode(reader, *opcode);
    }
    if (code != FAILURE_NONE) {
        text_append_format(reader->reason, " (at byte %zu)", place);
    }
    return code;
}

static enum failure_code check_input(
    struct slice input, const struct pickle_limits *limits, struct text *out_reason) {
    if (input.length > limits->bytes) {
        text_append_format(
            out_reason, "%zu bytes of pickle, the limit is %zu", input.length, limits->bytes);
        return FAILURE_LIMIT;
    }
    if (input.length == 0 || input.data[0] != PICKLE_PROTO) {
        text_append_format(out_reason, "no pickle of protocol %d to %d%s", LOWEST_PROTOCOL,
            HIGHEST_PROTOCOL, input.length == 0 ? ": it is empty" : "");
        return FAILURE_MALFORMED;
    }
    return FAILURE_NONE;
}

enum failure_code pickle_read(struct slice input, const struct pickle_limits *limits,
    struct pickle_document *out_document, struct text *out_reason) {
    enum failure_code code = check_input(input, limits, out_reason);
    struct reader reader = {
        .input = input,
        .document = {.maximum_values = limits->values, .maximum_items = limits->items},
        .reason = out_reason,
    };
    reader.stack = (struct pickle_stack){
        .document = &reader.document, .maximum = limits->values, .reason = out_reason};
    while (code == FAILURE_NONE && !reader.is_ended) {
        code = step(&reader);
    }
    pickle_stack_clear(&reader.stack);
    if (code == FAILURE_NONE) {
        *out_document = reader.document;
    } else {
        pickle_document_clear(&reader.document);
    }
    return code;
}
