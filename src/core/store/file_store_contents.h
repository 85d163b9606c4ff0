/* SPDX-License-Identifier: BSD-3-Clause */
/* The contents of the file of a FileStore up to some point: the latest value of each key. They are
 * found by taking the records of the file one after the other, as PyTorch's FileStore does for its
 * cache (c10d/FileStore.cpp). Keys are those of the file, with their leading '/'.
 * wire/file_store_codec spells the records, and core/file_store_answer knows what requests mean. */
#ifndef MUSTER_CORE_STORE_FILE_STORE_CONTENTS_H
#define MUSTER_CORE_STORE_FILE_STORE_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"

/* One record: from it on a key has a value, or has none. Borrowed. */
struct file_store_record {
    struct slice key;
    struct slice value; /* empty for a removal */
    bool is_removal;
};

/* The limits of a file's contents. */
struct file_store_limits {
    size_t key_bytes;
    size_t value_bytes;
    size_t entries;      /* keys that have a value */
    size_t memory_bytes; /* of all keys and values together */
};

#define FILE_STORE_LIMITS_DEFAULT                                                                  \
    ((struct file_store_limits){                                                                   \
        .key_bytes = (size_t)64 << 10,                                                             \
        .value_bytes = (size_t)64 << 20,                                                           \
        .entries = (size_t)1 << 20,                                                                \
        .memory_bytes = (size_t)1 << 30,                                                           \
    })

struct file_store_contents;

/* Copies the limits. The caller frees the contents. */
struct file_store_contents *file_store_contents_new(const struct file_store_limits *limits);
void file_store_contents_free(struct file_store_contents *contents);

/* Whether all these records can be taken, even if none of them replaces a value. */
bool file_store_contents_have_room(const struct file_store_contents *contents,
    const struct file_store_record *records, size_t count);

/* Copies the key and value of the record. FAILURE_LIMIT beyond the limits; then nothing has
 * changed. */
__attribute__((warn_unused_result)) enum failure_code file_store_contents_take(
    struct file_store_contents *contents, const struct file_store_record *record);

/* Returns false when the key has no value. `out_value` (may be NULL) is borrowed until the next
 * record. */
bool file_store_contents_find(
    const struct file_store_contents *contents, struct slice key, struct slice *out_value);

/* How many keys have a value. PyTorch's own key ("refcount/") counts too, as in its num_keys(). */
size_t file_store_contents_count(const struct file_store_contents *contents);

/* Writes the names of these keys to `out_keys`, which must have room for all of them. They are
 * borrowed until the next record. */
void file_store_contents_list(const struct file_store_contents *contents, struct slice *out_keys);

#endif
