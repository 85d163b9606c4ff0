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
