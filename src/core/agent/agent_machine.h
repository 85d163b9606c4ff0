/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of an agent: the machine decides what one node does from joining the job until it exits.
 * It is a pure function of (machine, event). The agent floor turns facts of the kernel into events
 * and carries out the effects. The machine knows no process ids, files, sockets or ranks. Compare
 * SimpleElasticAgent._invoke_run in torch/distributed/elastic/agent/server/api.py, which polls
 * where this machine gets events.
 *
 *   IDLE -> HELD -> JOINING -> STARTING -> RUNNING -> STOPPING -> LEAVING or DOUBTING -> DONE
 *             ^        ^                                 |                   |
 *             +--------+--------- restart, new round ----+-------------------+
 *
 * It is held only where the node is checked before it joins, or a restart waits for a moment.
 *
 * The contract with the performer:
 * - The performer answers START_WORKERS by WORKERS_STARTED, or by one START_FAILED for the first
 *   worker that could not be started. SIGNAL_WORKERS and KILL_WORKERS end an unfinished start: no
 *   worker is started after them, and the answer may not come.
 * - Each started worker gives exactly one WORKER_EXITED per attempt. WORKER_STUCK comes at most
 *   once before it, and so does WORKER_ENDING: the kernel has told how the worker ends, while it
 *   still takes the worker down. The failure counts from then on, and the others are stopped.
 * - ALL_GONE comes once per attempt, after the last WORKER_EXITED. It says that no process of any
 *   worker's session is left and that the start is over. It also comes when no worker could be
 *   started. It never comes before the SIGNAL_WORKERS that stops the attempt, even if no process is
 *   left by then.
 * - SIGNAL_WORKERS and KILL_WORKERS reach whole sessions. They do nothing to a session without
 *   processes.
 * - A look finds out what a worker is doing before it is ended, or while it hangs. Each look begins
 *   with LOOK_BEGUN, or with the effect LOOK_AT_WORKERS, and ends with a LOOK_OVER within a bounded
 *   time. Signals to the workers wait until all looks are over. A look that is not over at the next
 *   START_WORKERS is dropped.
 * - The performer answers CHECK_NODE by CHECK_PASSED or CHECK_FAILED, within a bounded time. A
 * check that is under way when the machine finishes is dropped.
 * - At most one timer is armed; ARM_TIMER replaces it. The machine ignores a TIMER_FIRED before the
 *   deadline.
 * - JOIN replaces a join under way. Its answer is JOINED or JOIN_FAILED with its ticket, or
 *   JOB_OVER. The machine ignores answers with another ticket.
 * - The performer answers ENTER_BARRIER by BARRIER_PASSED or BARRIER_FAILED, at once if the job has
 *   failed.
 * - The performer answers DOUBT_FAILURE by FAILURE_STANDS, ROUND_OVER or PEER_FAILED.
 * - ROUND_OVER may come at any time between a JOINED and the next JOIN.
 * - FINISH is the last effect and comes once. ANNOUNCE_* need no answer. They come before the stop
 *   that they explain, and only where the job may have other nodes. */
#ifndef MUSTER_CORE_AGENT_AGENT_MACHINE_H
#define MUSTER_CORE_AGENT_AGENT_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"
#include "core/workers/restart_history.h"
#include "core/workers/worker_group.h"

/* The restarts that a job may use: each restart of the worker group uses one of --max-restarts,
 * whichever worker failed. The number of used restarts is the attempt that runs
 * (TORCHELASTIC_RESTART_COUNT, the attempt_N directory). Where the record of the job keeps this
 * number, the agent takes it from there. Matches `_remaining_restarts` in
 * torch/distributed/elastic/agent/server/api.py SimpleElasticAgent. */

struct restart_policy {
    int maximum; /* restarts allowed after the first start */
    int used;    /* in all */
    /* Restarts that are older are given back, and count no more; zero: none is. */
    struct duration window;
    struct restart_history history;
    int counted; /* of those used, as far as it was known when this was looked at last */
};

/* Never negative. */
int restart_policy_remaining(const struct restart_policy *policy);

/* Attempts in a row whose failure came before they had brought the job any further: before a worker
 * of this node took a step that none had taken before; or, where no worker has ever told of a step,
 * within AGENT_FRUITLESS_SECONDS of their start. The nodes of a job do not share it: each has seen
 * the same attempts. A change of the world without a failure ends no attempt. */

#define AGENT_FRUITLESS_SECONDS 60

struct fruitless_attempts {
    int limit; /* after so many the job fails; 0: never */
    int count;
    bool knows_steps;    /* a worker has told of one, in whichever attempt */
    bool has_progressed; /* this attempt */
    bool has_begun;      /* its workers were started … */
    struct instant began;
    struct instant ended;          /* when they were told to stop */
    struct duration longest_pause; /* between two of them; zero: none */
    struct instant pause_end;      /* this node has failed, and joins no earlier */
};

/* How long the next attempt waits, from the failure of the last one on. */
struct duration fruitless_attempts_pause(const struct fruitless_attempts *attempts);

/* Whether so many were fruitless that the job is not started again. */
bool fruitless_attempts_are_enough(const struct fruitless_attempts *attempts);

enum agent_phase {
    AGENT_IDLE,
    AGENT_HELD, /* no worker runs, and it may not join yet */
    AGENT_JOINING,
    AGENT_STARTING,
    AGENT_RUNNING,
    AGENT_STOPPING,
    AGENT_LEAVING,  /* in the exit barrier */
    AGENT_DOUBTING, /* its workers have failed, and no restart is left; a lost node may be the cause
                     */
    AGENT_DONE,
    AGENT_PHASE_COUNT,
};

enum agent_stop_reason {
    AGENT_STOP_NONE,
    AGENT_STOP_CLEAN_UP, /* all workers exited with 0; the processes that they left behind are ended
                          */
    AGENT_STOP_RESTART,
    AGENT_STOP_DOUBTED_FAILURE, /* becomes RESTART or FAILURE, or stays doubted until the stop is
                                   over */
    AGENT_STOP_FAILURE,
    AGENT_STOP_PEER_FAILURE,
    AGENT_STOP_SIGNAL,
    AGENT_STOP_UNFIT,    /* the check of the node has failed */
    AGENT_STOP_EXCLUDED, /* the others go on without this node */
};

enum agent_event_kind {
    AGENT_EVENT_START,
    AGENT_EVENT_JOINED,
    AGENT_EVENT_JOIN_FAILED,
    AGENT_EVENT_WORKERS_STARTED,
    AGENT_EVENT_START_FAILED,
    AGENT_EVENT_WORKER_ENDING, /* the worker has not ended yet, but will end like this */
    AGENT_EVENT_WORKER_EXITED,
    AGENT_EVENT_WORKER_STUCK, /* the worker has hung in the kernel for too long */
    AGENT_EVENT_ALL_GONE,
    AGENT_EVENT_LOOK_BEGUN,
    AGENT_EVENT_LOOK_OVER,
    AGENT_EVENT_TIMER_FIRED,
    AGENT_EVENT_SIGNAL_RECEIVED,
    AGENT_EVENT_BARRIER_PASSED,
    AGENT_EVENT_BARRIER_FAILED,
    AGENT_EVENT_PEER_RESTART, /* another node asks to restart with `attempt` */
    AGENT_EVENT_PEER_FAILED,  /* another node has failed for good, or the host of the store is gone
                               */
    AGENT_EVENT_FAILURE_STANDS, /* no node was lost, so the doubted failure is the job's */
    /* The world changes, which is no restart of this node's: another node came, left or restarts,
     * or this node lost its connection to the job. */
    AGENT_EVENT_ROUND_OVER,
    AGENT_EVENT_JOB_OVER,     /* the job succeeded while this node waited for a place in it */
    AGENT_EVENT_CHECK_PASSED, /* answers CHECK_NODE */
    AGENT_EVENT_CHECK_FAILED, /* the same; the performer knows the reason */
    AGENT_EVENT_EXCLUDED, /* the workers here failed first too often: the others go on without */
    AGENT_EVENT_STEPPED,  /* a worker has taken a step, for the first time in this attempt */
    AGENT_EVENT_CANNOT_GO_ON, /* this agent, as without memory; the performer knows the reason. It
                                 may come again */
    AGENT_EVENT_COUNT,
};

struct agent_event {
    enum agent_event_kind kind;
    struct instant now;
    union {
        struct {
            int64_t ticket;
            int restarts;             /* how many restarts the job has used */
            int node_count;           /* only for transcripts */
            struct restart_ages ages; /* of them, as the job's record tells them */
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
        } worker_exited; /* also of WORKER_ENDING */
        struct {
            int local_rank;
            struct duration stuck;
            struct wall_time observed;
        } worker_stuck;
        struct {
            /* SIGNAL_RECEIVED: the signal. ROUND_OVER and PEER_FAILED: the signal that told another
             * node to end, and that the workers get; 0: there was none, and they get SIGTERM. */
            int signal;
            /* ROUND_OVER, for those who tell of it: why, borrowed, or NULL; and how many restarts
             * the job's record counts for the next round, where that is known. */
            bool is_counted;
            int restarts;
            const char *reason;
        };
        bool is_new;    /* STEPPED: nobody had taken that step before, as far as is known */
        int attempt;    /* PEER_RESTART: the next attempt */
        int64_t ticket; /* JOIN_FAILED */
    };
};

enum agent_outcome_kind {
    AGENT_OUTCOME_SUCCEEDED, /* perhaps without having run a worker */
    /* The report names worker_group's failures. It has none when this node cannot go on only
     * because of abandoned processes. */
    AGENT_OUTCOME_FAILED,
    AGENT_OUTCOME_PEER_FAILED, /* this node's workers were stopped because another node failed */
    AGENT_OUTCOME_JOIN_FAILED, /* the performer knows the reason */
    AGENT_OUTCOME_SIGNALLED,
    AGENT_OUTCOME_UNFIT,    /* the check of the node has failed; the performer knows the reason */
    AGENT_OUTCOME_EXCLUDED, /* the others go on without this node */
};

struct agent_outcome {
    enum agent_outcome_kind kind;
    int signal;                   /* SIGNALLED */
    bool has_abandoned_processes; /* some processes did not vanish after SIGKILL */
};

enum agent_effect_kind {
    AGENT_EFFECT_JOIN,
    AGENT_EFFECT_START_WORKERS,
    AGENT_EFFECT_SIGNAL_WORKERS,
    AGENT_EFFECT_LOOK_AT_WORKERS, /* finds out what they are doing, before they are killed */
    AGENT_EFFECT_KILL_WORKERS,
    AGENT_EFFECT_CHECK_NODE, /* whether it is fit for workers */
    AGENT_EFFECT_ARM_TIMER,
    AGENT_EFFECT_DISARM_TIMER,
    AGENT_EFFECT_ENTER_BARRIER,
    AGENT_EFFECT_ANNOUNCE_RESTART,
    AGENT_EFFECT_DOUBT_FAILURE,    /* the job has failed, unless a lost node is the cause */
    AGENT_EFFECT_ANNOUNCE_FAILURE, /* the job has failed */
    AGENT_EFFECT_ANNOUNCE_LEAVE,   /* this node leaves; the job may go on without it */
    AGENT_EFFECT_ANNOUNCE_SUCCESS, /* the job has succeeded: all nodes were in the exit barrier */
    AGENT_EFFECT_FINISH,
    AGENT_EFFECT_COUNT,
};

struct agent_effect {
    enum agent_effect_kind kind;
    bool is_relayed; /* SIGNAL_WORKERS: it is the signal that told another node to end */
    union {
        struct {
            int64_t ticket; /* grows with each JOIN */
            int attempt;
        } join;
        int attempt;                  /* START_WORKERS, ENTER_BARRIER, ANNOUNCE_RESTART */
        int signal;                   /* SIGNAL_WORKERS; ANNOUNCE_LEAVE: its reason, or 0 */
        struct instant deadline;      /* ARM_TIMER */
        struct agent_outcome outcome; /* FINISH */
    };
};

/* No step has more effects than this. */
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
    bool may_lose_peers;              /* the job goes on when another node is lost */
    bool looks_before_killing;        /* except when the user sends a second signal */
    bool checks_node; /* before the first join, and after a failure here before the next one */
    struct duration restart_window;  /* restart_policy.window */
    int no_progress_restarts;        /* fruitless_attempts.limit */
    struct duration restart_backoff; /* fruitless_attempts.longest_pause */
};

/* What waits until all looks at workers are over. */
struct agent_hold {
    int look_count;
    bool is_kill_due;
    int signal; /* to be sent to the workers; 0: none */
};

struct agent_machine {
    enum agent_phase phase;
    enum agent_stop_reason stop_reason;
    struct duration shutdown_timeout;
    bool has_peers;
    bool looks_before_killing;
    bool may_lose_peers;
    bool checks_node;
    bool is_checking; /* the node; the answer has not come */
    struct restart_policy restarts;
    struct fruitless_attempts fruitless;
    int64_t ticket;              /* of the last JOIN; 0: there was none */
    struct worker_group workers; /* of the running attempt; the report reads it */
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

/* Takes one event. It empties `effects` first, and then fills it with what the performer is to do,
 * in order. Events that have no handler in the phase are ignored. */
void agent_machine_step(
    struct agent_machine *machine, const struct agent_event *event, struct agent_effects *effects);

/* The attempt that runs or is being joined. While the agent stops for a restart, it is the next
 * attempt. */
int agent_machine_attempt(const struct agent_machine *machine);

/* One line for each event and each effect of the agent machine. Simulation tests compare these
 * lines. A running agent logs them at debug level, so a production log can become a test case. */

/* Appends one line without a newline, for example "worker_exited rank=1 signal=9" or "arm_timer
 * at=30.000". Times are seconds on the machine's monotonic clock. */
void agent_event_describe(const struct agent_event *event, struct text *out);
void agent_effect_describe(const struct agent_effect *effect, struct text *out);

/* "joining", "running" … */
const char *agent_phase_name(enum agent_phase phase);

#endif
