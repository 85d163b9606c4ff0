/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the part of Python's pickle format that a rendezvous record is made of (protocols 2 to 5)
 * into a wire/pickle_document. Nothing is ever imported, called or constructed: opcodes that would
 * do so make inert values, and only for the classes listed there. Every other class, function and
 * opcode is refused by its name. Matches Lib/pickle.py class _Unpickler for what it accepts; like
 * pickle.loads it does not look at what follows the end. */
#ifndef MUSTER_WIRE_PICKLE_READER_H
#define MUSTER_WIRE_PICKLE_READER_H

#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "wire/pickle_document.h"

/* Longest text or bytes in a pickle. */
#define PICKLE_MAXIMUM_TEXT 65536u

struct pickle_limits {
    size_t bytes;  /* of the input */
    size_t values; /* in the document, on the stack, in the memo; below 2^31 */
    size_t items;  /* of one tuple, list, set or dict */
};

/* The document borrows from the input; pickle_document_clear when done. On failure `out_document`
 * is untouched and one line is appended to `out_reason`, with the place: "refuses os.system: … (at
 * byte 31)".
 * FAILURE_MALFORMED: no pickle, or a broken one. FAILURE_UNSUPPORTED: another protocol, a class or
 * an opcode that is not read. FAILURE_LIMIT: a ceiling, or an integer beyond int64_t. */
__attribute__((warn_unused_result)) enum failure_code pickle_read(struct slice input,
    const struct pickle_limits *limits, struct pickle_document *out_document,
    struct text *out_reason);

#endif
