/* SPDX-License-Identifier: BSD-3-Clause */
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
#ifndef MUSTER_HOST_REGISTER_REGISTER_DIRECTORY_H
#define MUSTER_HOST_REGISTER_REGISTER_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

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
void register_directory_copy(
    const struct register_directory *directory, struct register_directory *out_directory);
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

#endif
