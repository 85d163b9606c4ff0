/* SPDX-License-Identifier: BSD-3-Clause */
/* The chronicle of a whole job, at the host of its store: what the nodes have told, numbered in the
 * order in which it came, and how the job stands (core/telling/chronicle_status). A node may tell
 * an entry twice, and entries of several nodes come in any order: the status takes them in the
 * order of their times once they are some seconds old, and until then whenever it is asked for. */
#ifndef MUSTER_CORE_TELLING_JOB_CHRONICLE_H
#define MUSTER_CORE_TELLING_JOB_CHRONICLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/telling/chronicle_status.h"

#define JOB_CHRONICLE_ENTRIES_MAXIMUM ((size_t)4096)

struct job_chronicle;

struct job_chronicle *job_chronicle_new(void);
/* Accepts NULL. */
void job_chronicle_free(struct job_chronicle *job);

/* The agent of this name that began at `life` tells an entry, whose time is by the host's clock,
 * as `now` is. False: it was told before. */
bool job_chronicle_take(struct job_chronicle *job, const char *node, struct wall_time life,
    const struct chronicle_entry *entry, struct wall_time now);

/* By this the clock of that agent is ahead of the host's, as far as one telling shows: it may have
 * been on its way. */
void job_chronicle_note_clock(
    struct job_chronicle *job, const char *node, struct wall_time life, struct duration offset);

/* What a host before this one has told of the job, by this host's clock. It counts until something
 * is settled: then the nodes have told it. */
void job_chronicle_inherit(struct job_chronicle *job, const struct chronicle_past *past);
/* For the next host: what is settled. Nothing is known before. The caller clears it. */
void job_chronicle_write_past(
    struct job_chronicle *job, struct wall_time now, struct chronicle_past *out_past);
/* This host follows another one, of which perhaps nothing is known. */
void job_chronicle_note_change(struct job_chronicle *job, struct wall_time now);

/* Those that are kept whose number of the job, which they have here, is larger than `after`. */
void job_chronicle_each_after(const struct job_chronicle *job, int64_t after,
    void (*take)(void *context, const struct chronicle_entry *entry), void *context);

/* The caller clears it. */
void job_chronicle_write_status(
    struct job_chronicle *job, struct wall_time now, struct chronicle_status *out_status);

/* The same, but for what came in the last seconds: nothing that comes later changes it, so what is
 * counted in it only rises. It costs little, however many nodes there are. */
void job_chronicle_see_settled(struct job_chronicle *job, struct wall_time now,
    void (*take)(void *context, const struct chronicle_status *status), void *context);

#endif
