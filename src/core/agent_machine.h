/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of an agent, decided: what one node does from joining the job until it exits. A pure
 * function of (machine, event); the agent floor turns kernel facts into events and carries out the
 * effects. It knows no process ids, files, sockets or ranks. Compare SimpleElasticAgent._invoke_run
 * in torch/distributed/elastic/agent/server/api.py, which polls where this is told.
 *
 *   IDLE -> JOINING -> STARTING -> RUNNING -> STOPPING -> LEAVING or DOUBTING -> DONE
 *              ^                                 |                   |
 *              +------- restart, new round ------+-------------------+
 *
 * The contract with the performer:
 * - START_WORKERS is answered by WORKERS_STARTED, or by one START_FAILED for the first worker that
 *   could not be started. SIGNAL_WORKERS and KILL_WORKERS end an unfinished start: no worker is
 *   started after them, and the answer may stay out.
 * - Each started worker gives exactly one WORKER_EXITED per attempt. WORKER_STUCK comes at most
 * once before it.
 * - After START_WORKERS, ALL_GONE comes once per attempt, after the last WORKER_EXITED: no process
 *   of any worker's session is left and the start is over, also when nobody could be started. When
 *   it is true already at the time of a SIGNAL_WORKERS, it still comes after that.
 * - SIGNAL_WORKERS and KILL_WORKERS address whole sessions and do nothing where nobody is left.
 * - LOOK_BEGUN says that a worker is being looked at before it is ended, or because it hangs; a
 *   LOOK_OVER comes for it within a bounded time, and for each LOOK_AT_WORKERS. What would end the
 *   others waits for these. Looks that are not over at the next START_WORKERS are dropped.
 * - At most one timer is armed; ARM_TIMER replaces it. TIMER_FIRED before the deadline is ignored.
 * - JOIN replaces a join in flight and is answered by JOINED or JOIN_FAILED with its ticket, or by
 *   JOB_OVER. Answers with another ticket are stale and ignored.
 * - ENTER_BARRIER is answered by BARRIER_PASSED or BARRIER_FAILED, at once if the job has failed.
 * - DOUBT_FAILURE is answered by FAILURE_STANDS, ROUND_OVER or PEER_FAILED.
 * - ROUND_OVER may come at any time between a JOINED and the next JOIN.
 * - FINISH comes last and once. ANNOUNCE_* need no answer; they come before the stop they explain,
 *   and only where there may be other nodes.
 */
#ifndef MUSTER_CORE_AGENT_MACHINE_H
#define MUSTER_CORE_AGENT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/process_exit.h"
#include "core/restart_policy.h"
#include "core/worker_group.h"

/* How long processes may take to vanish after SIGKILL before they are abandoned (they sit in an
 * uninterruptible system call). */
#define AGENT_KILL_PATIENCE_MILLISECONDS 30000

enum agent_phase {
    AGENT_IDLE,
    AGENT_JOINING,
    AGENT_STARTING,
    AGENT_RUNNING,
    AGENT_STOPPING,
    AGENT_LEAVING,  /* in the exit barrier */
    AGENT_DOUBTING, /* its workers have failed for good, unless a lost node was the cause */
    AGENT_DONE,
    AGENT_PHASE_COUNT,
};

enum agent_stop_reason {
    AGENT_STOP_NONE,
    AGENT_STOP_CLEAN_UP, /* all workers exited 0; processes they left behind are ended */
    AGENT_STOP_RESTART,
    AGENT_STOP_DOUBTED_FAILURE, /* becomes RESTART or FAILURE, or is still doubted in the end */
    AGENT_STOP_FAILURE,
    AGENT_STOP_PEER_FAILURE,
    AGENT_STOP_SIGNAL,
};

enum agent_event_kind {
    AGENT_EVENT_START,
    AGENT_EVENT_JOINED,
    AGENT_EVENT_JOIN_FAILED,
    AGENT_EVENT_WORKERS_STARTED,
    AGENT_EVENT_START_FAILED,
    AGENT_EVENT_WORKER_EXITED,
    AGENT_EVENT_WORKER_STUCK, /* it hangs in the kernel, and has done so for too long */
    AGENT_EVENT_ALL_GONE,
    AGENT_EVENT_LOOK_BEGUN,
    AGENT_EVENT_LOOK_OVER,
    AGENT_EVENT_TIMER_FIRED,
    AGENT_EVENT_SIGNAL_RECEIVED,
    AGENT_EVENT_BARRIER_PASSED,
    AGENT_EVENT_BARRIER_FAILED,
    AGENT_EVENT_PEER_RESTART,   /* another node asks for the restart to `attempt` */
    AGENT_EVENT_PEER_FAILED,    /* another node has failed for good, or the job's master is gone */
    AGENT_EVENT_FAILURE_STANDS, /* all other nodes are there: it was none of their losses */
    AGENT_EVENT_ROUND_OVER,     /* the world has changed, which costs no restart: another node came,
                                   left or restarts, or this one was cut off from the job */
    AGENT_EVENT_JOB_OVER,       /* it ended well while this node waited for a place in it */
    AGENT_EVENT_COUNT,
};

struct agent_event {
    enum agent_event_kind kind;
    struct instant now;
    union {
        struct {
            int64_t ticket;
            int restarts;   /* how many the job has paid for */
            int node_count; /* for the reader of a transcript */
        } joined;
        struct {
            int local_rank;
            const char *message; /* borrowed; "exec of 'x' failed: No such file or directory" */
            struct wall_time observed;
        } start_failed;
        struct {
            int local_rank;
            struct process_exit exit;
            struct wall_time observed;
        } worker_exited;
        struct {
            int local_rank;
            struct duration stuck;
            struct wall_time observed;
        } worker_stuck;
        int signal;     /* SIGNAL_RECEIVED */
        int attempt;    /* PEER_RESTART: the attempt to go to */
        int64_t ticket; /* JOIN_FAILED */
    };
};

enum agent_outcome_kind {
    AGENT_OUTCOME_SUCCEEDED,   /* perhaps without having run a worker */
    AGENT_OUTCOME_FAILED,      /* report worker_group's failures; there are none when only
                                  abandoned processes keep this node from going on */
    AGENT_OUTCOME_PEER_FAILED, /* this node's workers were stopped because another node failed */
    AGENT_OUTCOME_JOIN_FAILED, /* the performer knows why */
    AGENT_OUTCOME_SIGNALLED,
};

struct agent_outcome {
    enum agent_outcome_kind kind;
    int signal;                   /* SIGNALLED */
    bool has_abandoned_processes; /* some did not vanish after SIGKILL */
};

enum agent_effect_kind {
    AGENT_EFFECT_JOIN,
    AGENT_EFFECT_START_WORKERS,
    AGENT_EFFECT_SIGNAL_WORKERS,
    AGENT_EFFECT_LOOK_AT_WORKERS, /* to see what they do, before they are killed */
    AGENT_EFFECT_KILL_WORKERS,
    AGENT_EFFECT_ARM_TIMER,
    AGENT_EFFECT_DISARM_TIMER,
    AGENT_EFFECT_ENTER_BARRIER,
    AGENT_EFFECT_ANNOUNCE_RESTART,
    AGENT_EFFECT_DOUBT_FAILURE,    /* the job has failed, unless another node is lost */
    AGENT_EFFECT_ANNOUNCE_FAILURE, /* the job has failed */
    AGENT_EFFECT_ANNOUNCE_LEAVE,   /* this node goes; the job may go on if it can without */
    AGENT_EFFECT_ANNOUNCE_SUCCESS, /* the job is done: all nodes were in the barrier */
    AGENT_EFFECT_FINISH,
    AGENT_EFFECT_COUNT,
};

struct agent_effect {
    enum agent_effect_kind kind;
    union {
        struct {
            int64_t ticket; /* grows with each JOIN */
            int attempt;
        } join;
        int attempt;                  /* START_WORKERS, ENTER_BARRIER, ANNOUNCE_RESTART */
        int signal;                   /* SIGNAL_WORKERS */
        struct instant deadline;      /* ARM_TIMER */
        struct agent_outcome outcome; /* FINISH */
    };
};

/* No step yields more than this. */
#define AGENT_EFFECTS_MAXIMUM 8

struct agent_effects {
    struct agent_effect items[AGENT_EFFECTS_MAXIMUM];
    size_t count;
};

struct agent_settings {
    int worker_count;
    int max_restarts;
    struct duration shutdown_timeout; /* from the first stop signal to SIGKILL, on every path */
    bool has_peers;                   /* the job may have other nodes, now or later */
    bool may_lose_peers;              /* … and goes on when one of them is lost */
    bool looks_before_killing;        /* unless a user is impatient */
};

/* What waits until nobody is looked at any more. */
struct agent_hold {
    int look_count;
    bool is_kill_due;
    int signal; /* to be sent, 0: none */
};

struct agent_machine {
    enum agent_phase phase;
    enum agent_stop_reason stop_reason;
    struct duration shutdown_timeout;
    bool has_peers;
    bool looks_before_killing;
    bool may_lose_peers;
    struct restart_policy restarts;
    int64_t ticket;              /* of the last JOIN; 0: none yet */
    struct worker_group workers; /* of the running attempt; to be read for the report */
    int stop_signal;             /* last signal sent to the workers of this attempt; 0: none */
    bool is_killing;             /* SIGKILL was sent */
    struct agent_hold hold;
    int received_signal; /* the handled signal that ends this agent; 0: none */
    bool has_abandoned_processes;
    bool is_timer_armed;
    struct instant deadline;
};

void agent_machine_init(struct agent_machine *machine, const struct agent_settings *settings);
void agent_machine_clear(struct agent_machine *machine);

/* Takes one event; `effects` is emptied first and then holds what is to be done, in order. Events
 * that mean nothing in the phase are ignored. */
void agent_machine_step(
    struct agent_machine *machine, const struct agent_event *event, struct agent_effects *effects);

/* The attempt that runs or is being joined; while stopping for a restart, the next one. */
int agent_machine_attempt(const struct agent_machine *machine);

#endif
