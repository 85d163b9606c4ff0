/* SPDX-License-Identifier: BSD-3-Clause */
/* The opcodes of Python's pickles that Muster reads or writes, and the names of all opcodes. See
 * Lib/pickletools.py for what each opcode does to the stack. */
#ifndef MUSTER_WIRE_PICKLE_PICKLE_OPCODE_H
#define MUSTER_WIRE_PICKLE_PICKLE_OPCODE_H

#include <stdint.h>

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

#endif
