/* SPDX-License-Identifier: BSD-3-Clause */
/* What a command asks: it finds the agents of one job on this machine by their announcements, and
 * asks each at its socket. */
#ifndef MUSTER_MAIN_TELLING_JOB_INQUIRY_H
#define MUSTER_MAIN_TELLING_JOB_INQUIRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/telling/chronicle.h"
#include "host/telling/job_directory.h"

struct told_entry {
    struct chronicle_entry entry;
    size_t agent; /* that has told it */
};

/* The agents of one job on this machine, and what they have told. Begin with `program`. */
struct job_inquiry {
    const char *program; /* of whom errors are */
    struct job_list agents;
    int64_t *seqs; /* the last of each agent's that has been read */
    bool *answers; /* whether it has answered, the last time */
    struct told_entry *entries;
    size_t count;
    size_t capacity;
};

void job_inquiry_clear(struct job_inquiry *inquiry);

/* Finds the agents of the job of that name; NULL: of the one that there is. Returns EXIT_SUCCESS,
 * or the status of an error that has been said on stderr. */
int job_inquiry_find(
    struct job_inquiry *inquiry, const char *wanted, const struct text_list *environment);

/* Asks each agent for entries that it has not told here. Whether any has answered. What is new is
 * there, in the order of its times. */
bool job_inquiry_ask(struct job_inquiry *inquiry, struct failure *failure);
/* Forgets the entries that are there. */
void job_inquiry_drop(struct job_inquiry *inquiry);
/* The entries of agents that have ended since they were asked last, from their files. */
void job_inquiry_read_rest(struct job_inquiry *inquiry);

/* Asks one agent. `take` gets each line of an answer. FAILURE_MALFORMED where it has none. */
__attribute__((warn_unused_result)) enum failure_code job_inquiry_ask_one(
    const struct job_inquiry *inquiry, size_t agent, const char *path,
    void (*take)(void *context, struct slice line), void *context, struct failure *failure);

/* The text, or "-" for NULL. */
const char *job_inquiry_shown(const char *text);

#endif
