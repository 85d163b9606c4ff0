/* SPDX-License-Identifier: BSD-3-Clause */
/* All processes that belong to the workers: the worker processes and all their descendants, in any
 * process group and session, even when their parents have ended. The agent becomes a "child
 * subreaper", so such orphans become its own children. The kernel itself reports that no process of
 * the family is left ("no child"), at once and without a search through /proc.
 *
 * Children that the program already had when the family was created are strangers, and so is what
 * such children leave, or what becomes a child of the first process of a container without being a
 * worker's (see process_kin). Strangers are reaped and otherwise let be: they are never signalled
 * and never waited for. A shell that became the agent through exec may have left some.
 *
 * A spare is a child in a session of its own that waits to become a worker. Until then it and what
 * it has started belong to no worker: it is not signalled with the family, and the family is gone
 * without it.
 *
 * The callbacks run from the event loop, never from within a call below. They may call
 * all functions below, but not process_family_free. */
#ifndef MUSTER_HOST_PROCESS_PROCESS_FAMILY_H
#define MUSTER_HOST_PROCESS_PROCESS_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/failure.h"
#include "core/workers/worker_group.h"
#include "host/loop/event_loop.h"
#include "host/process/guardian.h"
#include "host/process/process_spawn.h"
#include "host/process/process_table.h"

struct guardian;
struct process_family;

/* A process that a worker has left behind. */
struct process_orphan {
    pid_t pid;
    int local_rank;      /* of the worker; -1: it is not known */
    const char *command; /* its command line, for people */
};

struct process_family_events {
    /* A worker ended. The calls come in the order in which the kernel reported the ends (where it
     * has pidfds). */
    void (*exited)(void *context, pid_t pid, const struct process_exit *how);
    /* No worker and no descendant of a worker is left. Called after the last `exited`, each time
     * the family has become empty. */
    void (*gone)(void *context);
    /* A spare ended that was not given. May be NULL where there are no spares. */
    void (*spare_exited)(void *context, pid_t pid, const struct process_exit *how);
    void *context;
    /* An orphan ended by a signal of this family. May be NULL. */
    void (*orphan_ended)(void *context, const struct process_orphan *orphan);
};

/* By what the family's processes are known, apart from their parents. A zeroed struct is valid. */
struct process_family_marks {
    uint64_t limit; /* see process_kin; 0: none */
    /* As the guardian's: NAME=START, and behind that the local rank, or its attempt, a slash, and
     * the local rank. NULL or empty: none. */
    const struct text_list *fingerprint;
};

/* `events` and `marks` are copied. Create the guardian first, then the family, then workers. The
 * guardian is told when a session is over; it must outlive the family. NULL: there is no guardian.
 */
__attribute__((warn_unused_result)) enum failure_code process_family_new(struct event_loop *loop,
    const struct process_family_events *events, const struct process_family_marks *marks,
    struct guardian *guardian, struct process_family **out_family, struct failure *failure);

/* A child that is no worker, and never will be: `pid` is let be, too. */
void process_family_leave_out(struct process_family *family, pid_t pid);

/* Kills the spares, and waits for a second at most until they are gone. Stops watching and stops
 * being a subreaper. Other processes that are left live on. Accepts NULL. */
void process_family_free(struct process_family *family);

/* Takes over a worker that process_spawn started; `exited` reports its end. Call it before the loop
 * runs again. */
void process_family_add(
    struct process_family *family, const struct process *process, int local_rank);

/* The same for a spare; `spare_exited` reports its end. */
void process_family_add_spare(struct process_family *family, const struct process *process);

/* The same for one that a spare has started, and whose end this process is told of since it is its
 * child now. False: it is none, or is known already. */
bool process_family_adopt_spare(struct process_family *family, pid_t pid);

/* A spare becomes a worker. */
void process_family_give(struct process_family *family, pid_t spare, int local_rank);

/* A spare that was given has not become a worker after all: it is killed, and its end is a spare's.
 * The family may be empty from now on, which is not reported. */
void process_family_take_back(struct process_family *family, pid_t spare);

/* Kills a spare, and everything in its process group. */
void process_family_end_spare(struct process_family *family, pid_t spare);

/* Sends `signal` to the process group of each worker. A descendant that has left the group, as a
 * logger, an uploader or another launcher may do, is let be as long as its worker lives, which may
 * need it. Then it gets the signal, with its own group. Each process gets it once, and no other
 * process can be hit: a pid is signalled only while it cannot have been reused.
 *
 * SIGKILL is sent to every process of the family at once, and stays in force until the family is
 * empty: a process that escapes by forking is killed as soon as it is adopted. For an empty family
 * this does nothing, and `gone` is not called again. */
void process_family_signal(struct process_family *family, int signal);

/* Appends the pids of orphans: processes that workers started and whose parent has ended. Their own
 * descendants are not listed. */
void process_family_orphans(struct process_family *family, struct process_ids *out_orphans);

/* Whether the family is empty. Also true before the first worker. */
bool process_family_is_gone(const struct process_family *family);

/* The number of workers whose exit has not been reported yet, without spares. */
size_t process_family_worker_count(const struct process_family *family);

#endif
