/* SPDX-License-Identifier: BSD-3-Clause */
/* Records of PyTorch's FileStore (c10d/FileStore.cpp) and their bytes, both ways. The file is a
 * sequence of records: a 32-bit length and the key, then a 32-bit length and the value. Integers
 * are little endian, as on the machines PyTorch runs on. A '-' in front of a key deletes the key.
 * Keys of users begin with '/'; PyTorch's own keys ("refcount/", "cleanup/") do not. Later records
 * override earlier ones. host/store/file_store reads the file. */
#ifndef MUSTER_WIRE_STORE_FILE_STORE_CODEC_H
#define MUSTER_WIRE_STORE_FILE_STORE_CODEC_H

#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/store/file_store_contents.h"

/* Reads one record at the front of `input`, which holds every byte read and not yet consumed. The
 * record borrows from it. FAILURE_INCOMPLETE: the end of the record has not been read yet.
 * FAILURE_MALFORMED: a length is beyond the limits, or a key is empty, which PyTorch never writes.
 * Either the file is no FileStore, or a writer died in the middle of a record and others wrote
 * behind it. */
__attribute__((warn_unused_result)) enum failure_code file_store_record_read(struct slice input,
    const struct file_store_limits *limits, struct file_store_record *out_record,
    size_t *out_consumed);

/* Appends the record's bytes. FAILURE_LIMIT at the buffer's ceiling and for lengths beyond 32 bits.
 * FAILURE_INVALID for a key that readers would understand as something else: an empty key, or one
 * that begins with '-'. On failure the buffer is as it was. */
__attribute__((warn_unused_result)) enum failure_code file_store_record_append(
    const struct file_store_record *record, struct bytes *out);

#endif
