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
#include "wire/pickle/pickle_class.h"
#include "wire/pickle/pickle_opcode.h"

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
