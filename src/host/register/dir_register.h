/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine `dir` of a job's register: a directory that all nodes share. Each request is an
 * blocking call (host/loop/blocking_pool.h): a file server that hangs
 * holds up a thread, and the request ends at its deadline. */
#ifndef MUSTER_HOST_REGISTER_DIR_REGISTER_H
#define MUSTER_HOST_REGISTER_DIR_REGISTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "host/register/register.h"

/* What can be said to a user about a directory that nodes share: why it cannot be used, and whether
 * other machines can see it at all. */

/* Explains the errno of a system call in that directory. `*is_final` becomes true when it will be
 * the same until the user has done something. */
enum failure_code directory_kind_fail(
    const char *path, int error, const char *what, bool *is_final, struct failure *failure);

/* Appends one sentence for a user who waits for other nodes in a directory in which only this
 * machine has written. `fd` is open inside it. */
void directory_kind_describe(int fd, const char *path, struct text *out);

/* A visit to a job's own directory inside a directory that nodes share: it is made for this user
 * alone when it is missing, and opened anew for each visit. What others have put in its place is
 * refused. Blocking calls; what the files mean stands in the .c. */

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

/* One job's register in a directory that the nodes share, as blocking calls: each opens the
 * directory anew and may hang with its disk, so they are made on threads of their own
 * (host/register/dir_register.h). docs/succession.md says what is asked of the file system.
 *
 *     DIRECTORY/muster-RUN_ID/     mode 0700
 *         entry.000000000001       one entry each, put here whole by link(2); old ones are emptied,
 *                                  but their names stay: a number can be won only once
 *         renewal.1                of a term, replaced by rename(2)
 *         machine.NAME             each machine that has looked here
 *         new.RANDOM               what is being written */

/* How many of the last entries keep what they hold. */
#define REGISTER_DIRECTORY_KEPT_ENTRIES 8

struct register_directory {
    char *path;   /* the user's directory */
    char *job;    /* the job's directory inside */
    char *marker; /* machine.NAME */
};

/* FAILURE_INVALID, with a message for the user, when the path is not absolute, or the run id too
 * long for a name. */
__attribute__((warn_unused_result)) enum failure_code register_directory_init(
    struct register_directory *directory, const char *path, const char *run_id,
    const char *node_name, struct failure *failure);
void register_directory_clear(struct register_directory *directory);

/* What a call has found or done. A zeroed struct is empty. */
struct register_finding {
    struct bytes text;  /* the last entry's; empty: there is none; or a renewal */
    struct text place;  /* the path of that entry */
    struct text note;   /* may be empty */
    bool has_won;       /* append: its entry has the number. Otherwise see `text` */
    bool is_unknown;    /* append: it failed, but may take effect all the same */
    bool is_final;      /* a failure that stays until the user has done something */
    struct failure why; /* of a call that failed */
};

void register_finding_clear(struct register_finding *finding);

/* Each returns the code of `finding->why`. */

/* Makes the job's directory when it is missing. Finds the last entry. */
__attribute__((warn_unused_result)) enum failure_code register_directory_read(
    const struct register_directory *directory, struct register_finding *finding);
/* A number above 1 needs the entry before it: when that is missing, somebody has removed it. */
__attribute__((warn_unused_result)) enum failure_code register_directory_append(
    const struct register_directory *directory, int64_t number, struct slice text,
    struct register_finding *finding);
__attribute__((warn_unused_result)) enum failure_code register_directory_renew(
    const struct register_directory *directory, int64_t term, const char *renewal,
    struct register_finding *finding);
__attribute__((warn_unused_result)) enum failure_code register_directory_renewal(
    const struct register_directory *directory, int64_t term, struct register_finding *finding);

/* After an entry was won: empties old entries, removes renewals of old terms, and files that were
 * left half-written a day ago. Failures do not matter: the next one does it again. */
void register_directory_tidy(
    const struct register_directory *directory, int64_t number, int64_t term);

extern const struct register_engine dir_register_engine;

#endif
