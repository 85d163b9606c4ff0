/* SPDX-License-Identifier: BSD-3-Clause */
/* What a request to a FileStore is answered, and which records it appends: a pure function of what
 * the file says and of the request. The contents change only when the records are taken from the
 * file again, so what could not be written has not happened.
 *
 * Meanings are those of PyTorch's FileStore (c10d/FileStore.cpp), with these differences: DELETE
 * tells whether there was something to delete and appends nothing when not (PyTorch always says
 * yes), MULTI_GET gives an empty value for a missing key as TCPStore does, MULTI_SET and APPEND
 * happen at once and not step by step. An empty value counts as zero for ADD, unlike in TCPStore.
 */
#ifndef MUSTER_CORE_FILE_STORE_ANSWER_H
#define MUSTER_CORE_FILE_STORE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/file_store_contents.h"
#include "core/store_counter.h"
#include "core/store_request.h"

/* A zeroed struct is ready for use; one after the other may be found in it. */
struct file_store_answer {
    bool is_waiting;                   /* not yet answered: ask again when the file has changed */
    struct store_reply reply;          /* borrows from request, contents and this struct */
    struct file_store_record *records; /* to append, `record_count` of them; borrow likewise */
    size_t record_count;
    const char *reason; /* fixed text: why, when the answer is a failure */

    size_t record_capacity;
    struct slice *blobs; /* the items of a list reply */
    size_t blob_capacity;
    struct bytes joined; /* the new value of an APPEND */
    uint8_t counter[STORE_COUNTER_SIZE];
};

void file_store_answer_clear(struct file_store_answer *answer);

/* With `waits_first` a GET or MULTI_GET waits until its keys exist. FAILURE_UNSUPPORTED for queues,
 * barriers and what belongs to connections; FAILURE_PROTOCOL for ADD on what is no number;
 * FAILURE_LIMIT for what the contents have no room for; with these `reason` is set and nothing is
 * to be appended. */
__attribute__((warn_unused_result)) enum failure_code file_store_answer_find(
    struct file_store_answer *answer, const struct file_store_contents *contents,
    const struct store_request *request, bool waits_first);

/* Whether the request may append something, and so needs the lock of a writer. */
bool file_store_request_writes(enum store_operation operation);

#endif
