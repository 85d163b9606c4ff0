/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of PyTorch's FileStore (c10d/FileStore.cpp) and their bytes, both ways. The file is
 * nothing but records one after the other: a 32-bit length and the key, a 32-bit length and the
 * value, integers little endian as on the machines PyTorch runs on. A '-' in front of a key takes
 * the key away; keys that users name have a '/' in front, PyTorch's own ("refcount/", "cleanup/")
 * have not. Later records win. Reading the file is host/file_store_file's. */
#ifndef MUSTER_WIRE_FILE_STORE_CODEC_H
#define MUSTER_WIRE_FILE_STORE_CODEC_H

#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/file_store_contents.h"

/* Looks for one record at the front of `input`, which holds everything read and not consumed; the
 * record borrows from it. FAILURE_INCOMPLETE: the end is not there yet. FAILURE_MALFORMED: a length
 * beyond the limits, or a key without a byte, which PyTorch never writes: this is no FileStore
 * file, or a writer died in the middle of a record and others went on behind it. */
__attribute__((warn_unused_result)) enum failure_code file_store_record_read(struct slice input,
    const struct file_store_limits *limits, struct file_store_record *out_record,
    size_t *out_consumed);

/* Appends the record's bytes. FAILURE_LIMIT at the buffer's ceiling and for lengths beyond 32 bits,
 * FAILURE_INVALID for a key that would be read as something else: an empty one, or one that begins
 * with '-'; the buffer is then as it was. */
__attribute__((warn_unused_result)) enum failure_code file_store_record_append(
    const struct file_store_record *record, struct bytes *out);

#endif
