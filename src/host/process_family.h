/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything that belongs to the workers: the worker processes, and whatever they have started,
 * wherever it went: other process groups, other sessions, processes whose parents are gone. The
 * agent becomes a "child subreaper", so that such orphans become its own children and nothing is
 * lost; that the family is gone is then the kernel's word ("no child"), told at once and without
 * looking through /proc.
 *
 * Children that the program already had when the family was made (a shell that became the agent
 * through exec may have left some) are strangers: never signalled, never waited for.
 *
 * The callbacks run from the event loop, never from within a call below; they may call
 * process_family_add and process_family_signal, but not process_family_free. */
#ifndef MUSTER_HOST_PROCESS_FAMILY_H
#define MUSTER_HOST_PROCESS_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/failure.h"
#include "core/process_exit.h"
#include "host/event_loop.h"
#include "host/process_spawn.h"
#include "host/process_table.h"

struct guardian;
struct process_family;

struct process_family_events {
    /* A worker ended. In the order in which the kernel reported the ends (where it has pidfds). */
    void (*exited)(void *context, pid_t pid, const struct process_exit *how);
    /* Nothing of the workers is left: neither they nor what they started. Comes after the last
     * `exited`, each time the family has become empty. */
    void (*gone)(void *context);
    void *context;
};

/* `events` is copied. Make the guardian first, the family before any worker. `guardian` is told
 * whose session is over; it must outlive the family, NULL is none. */
__attribute__((warn_unused_result)) enum failure_code process_family_new(struct event_loop *loop,
    const struct process_family_events *events, struct guardian *guardian,
    struct process_family **out_family, struct failure *failure);

/* Stops watching and stops being a subreaper; whoever is left lives on. Accepts NULL. */
void process_family_free(struct process_family *family);

/* Takes over a worker that process_spawn started, before the loop runs again: its end is reported
 * by `exited`. */
void process_family_add(struct process_family *family, const struct process *process);

/* Sends `signal` once to every process of the family. Nobody else can be hit: a pid is signalled
 * only while it cannot have been reused. SIGKILL stays in force until the family is gone: processes
 * that slip through by forking are killed as soon as they are adopted. With nobody left this does
 * nothing; `gone` is not called again for it. */
void process_family_signal(struct process_family *family, int signal);

/* Appends what workers have started and has outlived its parent, without what that started. */
void process_family_orphans(const struct process_family *family, struct process_ids *out_orphans);

/* Whether nothing of the workers is left. True also before the first worker. */
bool process_family_is_gone(const struct process_family *family);

/* Workers that have not been reported as exited. */
size_t process_family_worker_count(const struct process_family *family);

#endif
