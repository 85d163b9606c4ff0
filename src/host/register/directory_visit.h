/* SPDX-License-Identifier: BSD-3-Clause */
/* A visit to a job's own directory inside a directory that nodes share: it is made for this user
 * alone when it is missing, and opened anew for each visit. What others have put in its place is
 * refused. Blocking calls; what the files mean is host/register/register_directory.c's. */
#ifndef MUSTER_HOST_REGISTER_DIRECTORY_VISIT_H
#define MUSTER_HOST_REGISTER_DIRECTORY_VISIT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/failure.h"

/* Room for the names that are made up here. */
#define DIRECTORY_NAME_SIZE 32
/* What is being written has such a name. */
#define DIRECTORY_NEW_PREFIX "new."

struct directory_visit {
    const char *path;    /* the user's directory */
    const char *job;     /* the name of the job's inside */
    bool *is_final;      /* of a failure: it stays until the user has done something */
    struct failure *why; /* where all functions below leave their failures */
    int fd;              /* -1 before */
    uid_t owner;         /* who this process is for the server of the files; known after `make` */
};

__attribute__((warn_unused_result)) enum failure_code directory_visit_enter(
    struct directory_visit *visit);
void directory_visit_leave(struct directory_visit *visit);

/* Makes a whole private file of a new name; nothing is left of it on failure. Making a file also
 * has a network file system look at the directory afresh. Refuses a directory that belongs to
 * another user, or in which others can write. */
__attribute__((warn_unused_result)) enum failure_code directory_visit_make(
    struct directory_visit *visit, struct slice text, bool is_synced,
    char name[DIRECTORY_NAME_SIZE]);

/* Calls `found` for each name. */
__attribute__((warn_unused_result)) enum failure_code directory_visit_list(
    struct directory_visit *visit, void (*found)(void *context, const char *name), void *context);

/* Reads a file of this user's, after a `make`. FAILURE_MISSING, without a message, when there is
 * none. */
__attribute__((warn_unused_result)) enum failure_code directory_visit_read(
    struct directory_visit *visit, const char *name, size_t ceiling, struct bytes *out_bytes);

/* The failure of a system call; `what` continues "DIRECTORY: ". */
enum failure_code directory_visit_fail(struct directory_visit *visit, int error, const char *what);
/* The final failure that a file is not a register's; `why` continues "it ". */
enum failure_code directory_visit_refuse(
    struct directory_visit *visit, const char *name, const char *why);

#endif
