/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes pickles of protocol 4, opcode by opcode; the caller sees to it that they make a program.
 * Every Python since 3.4 reads them. Failures stick: after the first one nothing is written, and
 * pickle_writer_end reports it. Not here: what is written (rendezvous_state_pickle). */
#ifndef MUSTER_WIRE_PICKLE_WRITER_H
#define MUSTER_WIRE_PICKLE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "wire/pickle_class.h"
#include "wire/pickle_opcode.h"

struct pickle_writer {
    struct bytes *out; /* borrowed */
    size_t start;      /* where in `out` the pickle begins */
    uint32_t kept;     /* slots of the memo in use */
    enum failure_code code;
};

/* Appends the beginning to `out`. */
void pickle_writer_begin(struct pickle_writer *writer, struct bytes *out);
/* Appends STOP. FAILURE_LIMIT when the buffer's ceiling was in the way, FAILURE_INVALID when some
 * text was no UTF-8; the buffer is then as it was at the beginning. */
__attribute__((warn_unused_result)) enum failure_code pickle_writer_end(
    struct pickle_writer *writer);

/* An opcode without operands. */
void pickle_write_opcode(struct pickle_writer *writer, enum pickle_opcode opcode);
void pickle_write_boolean(struct pickle_writer *writer, bool boolean);
/* In the shortest form. */
void pickle_write_integer(struct pickle_writer *writer, int64_t integer);
/* Text must be UTF-8, but for Python's lone surrogates. */
void pickle_write_text(struct pickle_writer *writer, struct slice text);
/* At most 255 bytes, else FAILURE_LIMIT. */
void pickle_write_bytes(struct pickle_writer *writer, struct slice bytes);
void pickle_write_class(struct pickle_writer *writer, enum pickle_class of_class);

/* Keeps the topmost value; the result is its slot. */
uint32_t pickle_write_keep(struct pickle_writer *writer);
/* Pushes what a slot holds. */
void pickle_write_recall(struct pickle_writer *writer, uint32_t slot);

#endif
