/* SPDX-License-Identifier: BSD-3-Clause */
/* The answer to a request to a FileStore, and the records that the request appends to its file. It
 * is a pure function of the contents of the file and of the request. The contents change only when
 * the records are read back from the file, so a record that could not be written has no effect.
 *
 * The operations mean the same as in PyTorch's FileStore (c10d/FileStore.cpp), with these
 * differences. DELETE tells whether the key had a value, and appends nothing if it had none
 * (PyTorch always says yes). MULTI_GET gives an empty value for a missing key, as TCPStore does.
 * MULTI_SET and APPEND happen at once and not step by step. An empty value counts as zero for ADD,
 * unlike in TCPStore. */
#ifndef MUSTER_CORE_STORE_FILE_STORE_ANSWER_H
#define MUSTER_CORE_STORE_FILE_STORE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/store/file_store_contents.h"
#include "core/store/store_counter.h"
#include "core/store/store_request.h"

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
