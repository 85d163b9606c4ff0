/* SPDX-License-Identifier: BSD-3-Clause */
/* A small process that ends the workers of an agent that was killed by SIGKILL. It outlives the
 * agent only for that. The kernel's parent-death signal reaches the workers themselves. The
 * guardian also ends the processes that the workers started: every process of their sessions, and
 * every process with the job's fingerprint in its environment, whatever its session. Then it
 * removes what such an agent leaves in the file system.
 *
 * The guardian notices the agent's death when a socket ends: only the agent, and its children
 * before exec, hold the other end. The guardian is no child of the agent, has its own session,
 * holds no other descriptor, and ignores the signals that people send to whole groups. After
 * guardian_free it exits at once and ends no process.
 *
 * The guardian also fences: it ends the workers of an agent that lives, but has stood still for so
 * long that the other nodes take it for lost. Where they would take long to find that out, it holds
 * the connection by which they know that the agent is there, and shuts it down then.
 *
 * The agent notices the guardian's death in the same way, and starts another one, which knows what
 * the first one knew. */
#ifndef MUSTER_HOST_PROCESS_GUARDIAN_H
#define MUSTER_HOST_PROCESS_GUARDIAN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "host/loop/event_loop.h"

/* How long an agent has not spoken to its guardian, and whether that is long enough to end its
 * workers. Only time in which the guardian itself was looking counts: so a machine that was
 * suspended, or a guardian that got no CPU time, does not make an agent look silent. */

/* A zeroed struct is valid: no silence is too long. */
struct guardian_fence {
    struct duration patience; /* the agent may be silent for so long; zero: for ever */
    struct duration silence;
    struct instant heard; /* when the agent spoke last */
    struct instant counted_until;
    bool is_closed; /* no worker may run, until the agent has heard of it */
};

/* The agent has spoken, and says how long it may be silent from now on. */
void guardian_fence_hear(
    struct guardian_fence *fence, struct duration patience, struct instant now);

/* Returns whether the fence closes now: the agent has been silent for too long. */
bool guardian_fence_look(struct guardian_fence *fence, struct instant now);

/* The agent knows that its workers were ended. */
void guardian_fence_open(struct guardian_fence *fence, struct instant now);

/* After how many milliseconds to look again; -1: there is no need to. */
int guardian_fence_pause(const struct guardian_fence *fence);

/* What an agent that was killed leaves in the file system: a FIFO, a socket, a directory without
 * any file, a directory that goes with all that is in it. The guardian process removes it. Nothing
 * is removed that another process uses, that belongs to another user, or that has come to the same
 * path since. */

enum guardian_remains_kind {
    GUARDIAN_REMAINS_FIFO,      /* removed when nobody reads it */
    GUARDIAN_REMAINS_SOCKET,    /* removed when nobody listens */
    GUARDIAN_REMAINS_DIRECTORY, /* removed with the directories in it when there is no file */
    GUARDIAN_REMAINS_TREE,      /* removed with everything in it; it is there when it is added */
};

/* The main function of the guardian process, and the messages it receives. guardian.c starts the
 * process; the two are connected only by a socket. */

#define GUARDIAN_NAME "muster-guardian" /* the longest name that fits into the process table */

enum guardian_notice_kind {
    GUARDIAN_SESSION_BEGINS,
    GUARDIAN_SESSION_ENDS,
    GUARDIAN_REMAINS,    /* a path follows, without a NUL */
    GUARDIAN_PATIENCE,   /* how long the agent may be silent from now on */
    GUARDIAN_CONNECTION, /* a descriptor comes with it; none: see guardian_hold_connection */
    GUARDIAN_HEARD,      /* the agent has read a word */
    GUARDIAN_FAREWELL,
};

/* One message. */
struct guardian_notice {
    enum guardian_notice_kind kind;
    int32_t leader;      /* pid of the session's leader, which is also the session's number */
    uint64_t start_time; /* SESSION_BEGINS: start time of the leader, 0 when unknown */
    enum guardian_remains_kind remains; /* REMAINS */
    struct duration patience;           /* PATIENCE: see guardian_speak */
};

struct guardian;

/* Starts the guardian. Call it before other threads and the first worker are started. One that may
 * fence (guardian_speak) keeps the agent's standard error, to say so.
 *
 * `fingerprint` holds NAME=START assignments. A process belongs to the job when, for one of them,
 * its environment has a variable NAME whose value begins with START. Choose values that no other
 * job on the machine can share, such as a directory that was just created. NULL or empty: the
 * guardian ends sessions only. The list is copied. */
__attribute__((warn_unused_result)) enum failure_code guardian_start(
    const struct text_list *fingerprint, bool may_fence, struct guardian **out_guardian,
    struct failure *failure);

/* Tells the guardian to exit without ending any process. Accepts NULL. */
void guardian_free(struct guardian *guardian);

/* Called on the loop. */
struct guardian_events {
    /* The guardian `pid` has ended. `failure` is NULL when another one runs. Otherwise it says why
     * none could be started; that is tried again, and told again only when it works. */
    void (*ended)(void *context, pid_t pid, const struct failure *failure);
    /* The agent stood still for that long, and the guardian ends its workers, or has ended them. */
    void (*fenced)(void *context, struct duration silence);
    void *context;
};

/* From now on a guardian that has ended is replaced. `events` is copied. Free the guardian before
 * the loop. */
__attribute__((warn_unused_result)) enum failure_code guardian_watch(struct guardian *guardian,
    struct event_loop *loop, const struct guardian_events *events, struct failure *failure);

/* The descriptor on which a child announces itself before exec (process_request.guardian_fd). -1
 * for NULL, and while no guardian runs. It changes when a guardian is replaced. */
int guardian_descriptor(const struct guardian *guardian);

/* Notes a session that was announced on the descriptor, for a guardian that takes this one's place.
 * `leader` has not been waited for. Accepts NULL. */
void guardian_note_session(struct guardian *guardian, pid_t leader);

/* Tells the guardian that the session led by `leader` is over, because its number may be reused. */
void guardian_end_session(struct guardian *guardian, pid_t leader);

/* Tells the guardian to remove what is or will be at `path` when the agent is killed. Accepts NULL.
 */
void guardian_remove_at_end(
    struct guardian *guardian, enum guardian_remains_kind kind, const char *path);

/* A sign of life. When the next one does not come within `patience`, the guardian ends the workers,
 * and those that the agent starts before it has heard of it. Zero: the agent may be silent for
 * ever. Time in which the guardian itself does not run does not count. */
void guardian_speak(struct guardian *guardian, struct duration patience);

/* The connection by which the other nodes know that the agent is there. The guardian shuts it down
 * when it fences, and when the agent is gone. -1: it lets go of the one before, which the caller
 * has shut down, because it stays open as long as the guardian holds it. Accepts NULL. */
void guardian_hold_connection(struct guardian *guardian, int fd);

/* Takes what the guardian has said and the loop has not taken yet: a word about the workers that it
 * ends is there before their ends. May call events.fenced and events.ended. Accepts NULL. */
void guardian_listen(struct guardian *guardian);

/* The guardian's pid, for logs and tests. */
pid_t guardian_pid(const struct guardian *guardian);

/* For a child between fork and exec. Tells the guardian that the calling process leads a session to
 * guard, or that it will not reach exec after all. Async-signal-safe. A guardian that is gone or
 * does not read is no failure. */
void guardian_announce_self(int guardian_fd);
void guardian_withdraw_self(int guardian_fd);

#endif
