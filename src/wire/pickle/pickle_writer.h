/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes pickles of protocol 4, opcode by opcode. Every Python since 3.4 reads them. The caller
 * must write opcodes that form a valid program. After the first failure nothing more is written,
 * and pickle_writer_end reports it. What is written is decided in rendezvous_state_pickle. */
#ifndef MUSTER_WIRE_PICKLE_PICKLE_WRITER_H
#define MUSTER_WIRE_PICKLE_PICKLE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "wire/pickle/pickle_document.h"

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
