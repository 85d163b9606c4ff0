/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/pickle/pickle_writer.h"

#include <stddef.h>

#include "base/bytes.h"
#include "base/utf8.h"

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
