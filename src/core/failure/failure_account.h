/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node knows about one failed worker. The report uses it, and the node tells it to the other
 * nodes when the job fails or restarts because of this worker (wire/failure_json spells it). This
 * module does not decide which failure is the root cause: on one node worker_group decides; in a
 * job it is the failure that was written to the store first. */
#ifndef MUSTER_CORE_FAILURE_FAILURE_ACCOUNT_H
#define MUSTER_CORE_FAILURE_FAILURE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"
#include "core/workers/process_exit.h"

/* The length of the longest one-line form in bytes. With its NUL it fits into the reason of the
 * rendezvous record. */
#define FAILURE_ACCOUNT_LINE_MAXIMUM 255

/* Owns its strings; a zeroed struct is valid. */
struct failure_account {
    char *host; /* the name of its node in reports */
    char *node; /* the identity of the node in the rendezvous, or NULL */
    int group_rank;
    int rank;
    int local_rank;
    int role_rank;
    int64_t seconds;          /* Unix time: of the error file, else of the observation */
    int64_t pid;              /* 0 when the worker was not started */
    struct process_exit exit; /* not set with a start_message, and when stuck */
    char *start_message;      /* why the worker could not be started, or NULL */
    struct duration stuck;    /* how long it hung in the kernel until it was given up, or zero */
    char *error_file;         /* its path on that node, or NULL */
    char *log_file;           /* of its stderr, on that node; NULL: stderr goes to no file */
    char *message;            /* traceback or message from the error file, or NULL */
    bool is_message_object;   /* the message was a JSON object, usually with a traceback */
    char *summary;            /* "ValueError: boom", or NULL */
    char *evidence;           /* what the kernel knows besides the exit status, or NULL */
    char *note;               /* "unreadable error file: …", or NULL */
};

void failure_account_clear(struct failure_account *account);
/* `out_copy` is cleared first. */
void failure_account_copy(const struct failure_account *account, struct failure_account *out_copy);

/* Appends one line of at most FAILURE_ACCOUNT_LINE_MAXIMUM bytes of UTF-8 without control
 * characters: "rank 5 (local_rank 1) on node2 failed: exit code 1 (ValueError: boom)". */
void failure_account_describe(const struct failure_account *account, struct text *out);

#endif
