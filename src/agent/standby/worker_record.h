/* SPDX-License-Identifier: BSD-3-Clause */
/* What the hook writes down in a process that has been started: in a worker what it imports, and in
 * one that is only to try the way to the interpreter that it was reached. */
#ifndef MUSTER_AGENT_STANDBY_WORKER_RECORD_H
#define MUSTER_AGENT_STANDBY_WORKER_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "agent/standby/standby_spare.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/standby/standby_preparation.h"
#include "host/loop/event_loop.h"
#include "host/process/death_notice.h"

/* The record of one worker: a file in memory in which the worker's hook says hello, and writes what
 * the worker imports. A worker that has said hello also answers there when it is asked for its
 * stacks. The page in front of it tells that the worker is ending. */

struct worker_record {
    pid_t worker;  /* whose it is; 0: not known yet */
    int fd;        /* -1: there is none */
    size_t length; /* at the last look */
    size_t read;   /* so much of it has been taken, and need not stay */
    bool has_hello;
    struct instant grown;        /* the last look that has found it longer, or its beginning */
    struct death_notice *notice; /* NULL: there is none */
};

void worker_record_init(struct worker_record *record);
void worker_record_clear(struct worker_record *record);
/* Nobody needs early news of the worker's end any more. What it has written can be read all the
 * same. */
void worker_record_expect_end(struct worker_record *record);

/* An empty one, of a worker that is not known yet. False when there is none. */
bool worker_record_renew(struct worker_record *record, struct event_loop *loop,
    const struct death_notice_events *events);

/* Takes what was written since the last look, and has the worker's end told early from then on if
 * the worker has arranged for it. Returns whether the worker has said hello by now, if something
 * was. */
bool worker_record_look(
    struct worker_record *record, struct learned_list *learned, struct instant now);

/* Whether this process has said hello in it. */
bool worker_record_can_answer(const struct worker_record *record, pid_t pid);

/* Runs the workers' interpreter with an empty program, to see whether the way to it leads through
 * the hook on this node. Without the hook a standby worker would run the workers' program at once.
 * Where workers have run, their hello tells; a node that is new has none. */

struct standby_probe {
    pid_t pid;  /* 0: it does not run */
    int record; /* when it runs */
};

/* Starts it as a spare of the starter's family. `environment` is that of a worker. */
__attribute__((warn_unused_result)) enum failure_code standby_probe_start(
    struct standby_probe *probe, const struct agent_standby_starter *starter,
    const struct text_list *environment, const char *hook_directory, struct failure *failure);

/* Its process has ended. Returns whether the hook was reached. */
bool standby_probe_end(struct standby_probe *probe);

#endif
