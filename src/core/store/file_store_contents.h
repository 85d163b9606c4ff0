/* SPDX-License-Identifier: BSD-3-Clause */
/* The contents of the file of a FileStore up to some point: the latest value of each key. They are
 * found by taking the records of the file one after the other, as PyTorch's FileStore does for its
 * cache (c10d/FileStore.cpp). Keys are those of the file, with their leading '/'.
 * wire/store/store_codec spells the records. */
#ifndef MUSTER_CORE_STORE_FILE_STORE_CONTENTS_H
#define MUSTER_CORE_STORE_FILE_STORE_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/store/store_request.h"

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

/* Copies the key and value of the record. FAILURE_LIMIT beyond the limits; then nothing has
 * changed. */
__attribute__((warn_unused_result)) enum failure_code file_store_contents_take(
    struct file_store_contents *contents, const struct file_store_record *record);

/* The answer to a request to a FileStore, and the records that the request appends to its file. It
 * is a pure function of the contents of the file and of the request. The contents change only when
 * the records are read back from the file, so a record that could not be written has no effect.
 *
 * The operations mean the same as in PyTorch's FileStore (c10d/FileStore.cpp), with these
 * differences. DELETE tells whether the key had a value, and appends nothing if it had none
 * (PyTorch always says yes). MULTI_GET gives an empty value for a missing key, as TCPStore does.
 * MULTI_SET and APPEND happen at once and not step by step. An empty value counts as zero for ADD,
 * unlike in TCPStore. */

/* A zeroed struct is valid. It may be used for many answers, one after the other. */
struct file_store_answer {
    bool is_waiting;          /* there is no answer yet: ask again when the file has changed */
    struct store_reply reply; /* borrows from request, contents and this struct */
    struct file_store_record *records; /* the `record_count` records to append; they borrow too */
    size_t record_count;
    const char *reason; /* fixed text: why the request has failed */

    size_t record_capacity;
    struct slice *blobs; /* the items of a list reply */
    size_t blob_capacity;
    struct bytes joined; /* the new value of an APPEND */
    uint8_t counter[STORE_COUNTER_SIZE];
};

void file_store_answer_clear(struct file_store_answer *answer);

/* Finds the answer. With `waits_first` a GET or MULTI_GET waits until its keys exist.
 * FAILURE_UNSUPPORTED for queues, barriers and operations on connections. FAILURE_PROTOCOL for ADD
 * to a value that is not a number. FAILURE_LIMIT when the contents have no room for the records.
 * After a failure `reason` is set and there is no record to append. */
__attribute__((warn_unused_result)) enum failure_code file_store_answer_find(
    struct file_store_answer *answer, const struct file_store_contents *contents,
    const struct store_request *request, bool waits_first);

/* Whether the operation may append records, and so needs the lock of a writer. */
bool file_store_request_writes(enum store_operation operation);

#endif
