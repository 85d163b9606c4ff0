/* SPDX-License-Identifier: BSD-3-Clause */
/* What a FileStore's file says at some point of it: the latest value of each key, found by taking
 * its records one after the other, as PyTorch's FileStore keeps its cache (c10d/FileStore.cpp).
 * Keys are those of the file, '/' in front included. Not here: how records are spelled
 * (wire/file_store_codec) and what requests mean (core/file_store_answer). */
#ifndef MUSTER_CORE_FILE_STORE_CONTENTS_H
#define MUSTER_CORE_FILE_STORE_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"

/* One record: a key has a value from now on, or none. Borrowed. */
struct file_store_record {
    struct slice key;
    struct slice value; /* empty for a removal */
    bool is_removal;
};

/* What is believed of a file. */
struct file_store_limits {
    size_t key_bytes;
    size_t value_bytes;
    size_t entries;      /* keys that have a value */
    size_t memory_bytes; /* all of them together */
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

/* Whether these records could be taken, whatever is there already. */
bool file_store_contents_have_room(const struct file_store_contents *contents,
    const struct file_store_record *records, size_t count);

/* Copies what the record says. FAILURE_LIMIT beyond the ceilings; then nothing has changed. */
__attribute__((warn_unused_result)) enum failure_code file_store_contents_take(
    struct file_store_contents *contents, const struct file_store_record *record);

/* False when the key has no value; `out_value` (may be NULL) is borrowed until the next record. */
bool file_store_contents_find(
    const struct file_store_contents *contents, struct slice key, struct slice *out_value);

/* Keys that have a value, PyTorch's own ("refcount/") included, as its num_keys() counts. */
size_t file_store_contents_count(const struct file_store_contents *contents);

/* Their names, into `out_keys` which has room for all; borrowed until the next record. */
void file_store_contents_list(const struct file_store_contents *contents, struct slice *out_keys);

#endif
