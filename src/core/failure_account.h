/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything worth telling about one failed worker, as a value of its own: what its node found out
 * for the report, and what it tells the other nodes when the job fails or restarts because of it
 * (spelled by wire/failure_json). Who is to blame is decided elsewhere: on a node by worker_group,
 * in a job by who reached the store first. */
#ifndef MUSTER_CORE_FAILURE_ACCOUNT_H
#define MUSTER_CORE_FAILURE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"
#include "core/process_exit.h"

/* Longest one-line form, in bytes; with its NUL it fits the rendezvous record's reason. */
#define FAILURE_ACCOUNT_LINE_MAXIMUM 255

/* Owns its strings; a zeroed struct is valid. */
struct failure_account {
    char *host; /* as its node calls itself in reports */
    char *node; /* the node's name in the rendezvous, or NULL where it has none */
    int group_rank;
    int rank;
    int local_rank;
    int role_rank;
    int64_t seconds;          /* Unix time: of the error file, else of the observation */
    int64_t pid;              /* 0 when the worker was not started */
    struct process_exit exit; /* meaningless with a start_message, and when stuck */
    char *start_message;      /* why it could not be started, or NULL */
    struct duration stuck;    /* given up after hanging in the kernel this long, or zero */
    char *error_file;         /* its path, there; or NULL */
    char *message;            /* traceback or message from the error file, or NULL */
    bool is_message_object;   /* the message came from an object, with a traceback most often */
    char *summary;            /* "ValueError: boom", or NULL */
    char *evidence;           /* what the kernel knows beyond the exit status, or NULL */
    char *note;               /* "unreadable error file: …", or NULL */
};

void failure_account_clear(struct failure_account *account);
/* `out_copy` is cleared first. */
void failure_account_copy(const struct failure_account *account, struct failure_account *out_copy);

/* Appends one line of at most FAILURE_ACCOUNT_LINE_MAXIMUM bytes of UTF-8 without control
 * characters: "rank 5 (local_rank 1) on node2 failed: exit code 1 (ValueError: boom)". */
void failure_account_describe(const struct failure_account *account, struct text *out);

#endif
