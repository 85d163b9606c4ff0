/* SPDX-License-Identifier: BSD-3-Clause */
/* How a job stands, as a fold of its chronicle's entries (core/telling/chronicle): its state, its
 * nodes, its recoveries with their phases, and where the time went. The same entries give the same
 * status, whoever has them: an agent, or a program that has read them from agents or from files.
 * Entries of several nodes are taken in the order of their times.
 *
 * A recovery begins with what ended a world, and is over when all nodes that go on run again. Its
 * moments are the last of all nodes; so the phases between them add up to the whole. Of each moment
 * the last node is known. A failure in a recovery belongs to it. */
#ifndef MUSTER_CORE_TELLING_CHRONICLE_STATUS_H
#define MUSTER_CORE_TELLING_CHRONICLE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/table.h"
#include "core/telling/chronicle.h"

/* What is kept; of more recoveries the last. */
#define CHRONICLE_RECOVERIES_MAXIMUM ((size_t)256)
#define CHRONICLE_NODES_MAXIMUM ((size_t)16384)
/* … and of the past. */
#define CHRONICLE_PAST_RECOVERIES_MAXIMUM ((size_t)64)

enum job_state {
    JOB_WAITING, /* for nodes, before workers run */
    JOB_STARTING,
    JOB_RUNNING,
    JOB_TRAINING, /* it runs, and takes steps */
    JOB_HANGING,  /* it takes none any more, though it did */
    JOB_RECOVERING,
    JOB_ENDING,
    JOB_ENDED,
    JOB_STATE_COUNT,
};

enum job_result {
    JOB_UNDECIDED,
    JOB_SUCCEEDED,
    JOB_STOPPED,
    JOB_FAILED,
    JOB_RESULT_COUNT,
};

enum chronicle_node_state {
    CHRONICLE_NODE_WAITING,
    CHRONICLE_NODE_STARTING,
    CHRONICLE_NODE_RUNNING,
    CHRONICLE_NODE_TRAINING, /* its workers take steps */
    CHRONICLE_NODE_STOPPING,
    CHRONICLE_NODE_JOINING, /* its workers are gone, and others are to be started */
    CHRONICLE_NODE_ENDING,
    CHRONICLE_NODE_ENDED,
    CHRONICLE_NODE_FOREIGN, /* one of torchrun's, of which nothing more is known */
    CHRONICLE_NODE_GONE,    /* it has left */
    CHRONICLE_NODE_MISSED,  /* it is lost */
    CHRONICLE_NODE_STATE_COUNT,
};

struct chronicle_node {
    char *name;
    char *version; /* or NULL */
    enum chronicle_node_state state;
    struct wall_time said;
    int64_t round; /* that it has joined last; -1: none */
    /* So far its clock is ahead of the host's, where they differ by more than a second; else 0. */
    struct duration clock_offset;
    int rank; /* of the node; -1: not known, as below */
    int first_rank;
    int workers;
    int failed_first; /* so often one of its workers failed before all others */
    int64_t step;     /* that was told last; -1: none */
    double rate;      /* steps a second; negative: not known */
    bool has_trained;
    bool is_excluded; /* it is to stay out of the job */
    int spares_ready;
    int spares;
};

enum recovery_moment {
    RECOVERY_FAILED,
    RECOVERY_NOTICED,
    RECOVERY_STOPPED,  /* the last old process is gone */
    RECOVERY_AGREED,   /* the last node has its world */
    RECOVERY_STARTED,  /* the last new process runs */
    RECOVERY_TRAINING, /* the last worker has taken its first step, in a job that takes steps */
    RECOVERY_MOMENT_COUNT,
};

struct chronicle_recovery {
    enum chronicle_cause cause;
    int64_t round;        /* that ended */
    char *what;           /* the words of the failed worker, or the reason; or NULL */
    char *node;           /* of the failed worker, or that was lost; or NULL */
    int rank;             /* of the failed worker; -1: none has */
    int exit;             /* as in Python; INT_MIN: not known */
    int64_t redone_steps; /* so many steps are taken once more; -1: not known */
    bool is_charged;
    bool is_over;
    bool is_given_up;                                /* the job ends instead */
    struct wall_time moments[RECOVERY_MOMENT_COUNT]; /* zero: not yet */
    char *last[RECOVERY_MOMENT_COUNT]; /* the node that was last there; NULL: not known */
};

/* Of all recoveries that are over, those too that are not kept: how many there were since this host
 * knows the job, and how long they took. */
#define RECOVERY_BUCKETS 12
struct recovery_tally {
    uint64_t by_cause[CHRONICLE_CAUSE_COUNT];
    struct recovery_times {
        uint64_t count;
        uint64_t counts[RECOVERY_BUCKETS]; /* no longer than each bound, longer than that before */
        struct duration sum;
    } phases[RECOVERY_MOMENT_COUNT]; /* until each moment; FAILED: the whole of it */
};

/* Where the time went; all of it together is the time from the first entry on. */
struct chronicle_account {
    struct duration states[JOB_STATE_COUNT]; /* RECOVERING in sum; the wall time is without ENDED */
    struct duration recovering[CHRONICLE_CAUSE_COUNT];
    struct duration redone; /* of the time of training: until the step is reached that was lost */
    bool knows_redone;      /* every step had a number of the program's */
    double worker_seconds;  /* of workers that ran */
    double missing_worker_seconds; /* by which the world was smaller than its largest one */
};

/* A node that is to stay out of the job. */
struct chronicle_exclusion {
    char *node;
    char *reason;
    struct wall_time at;
};

/* What is known of the time before the entries, where another host has heard them. A zeroed struct
 * is nothing. */
struct chronicle_past {
    struct wall_time began;
    struct wall_time until; /* zero: nothing is known */
    enum job_state state;   /* then */
    int largest_worker_count;
    struct chronicle_account account; /* until then */
    size_t recovery_number;           /* so many were done with until then … */
    int64_t last_round;               /* … and the last of them ended this one; -1: none did */
    struct chronicle_recovery *recoveries; /* the last of them, or some before; … */
    size_t recovery_count;                 /* … so many */
};

/* A zeroed struct is the status before the first entry. Read it only. */
struct chronicle_status {
    enum job_state state;
    enum job_result result;
    bool has_begun;
    struct wall_time began;
    struct wall_time since; /* of the state */
    struct wall_time now;   /* of the last entry, or later */
    bool has_round;
    int64_t round;
    int node_count;   /* of the world; 0: there was none */
    int joined_count; /* of them, that have told so */
    int worker_count;
    int largest_worker_count;
    int minimum_nodes;
    int maximum_nodes;
    int here; /* nodes that wait together; -1: not known */
    int restarts;
    int max_restarts; /* -1: not known */
    enum progress_source source;
    int64_t step;      /* that was told last; -1: none */
    double rate;       /* steps a second; negative: not known */
    int64_t lost_step; /* of the world before; steps up to this one are taken once more; -1: none */
    struct wall_time stepped;      /* when `step` was taken … */
    int64_t step_of_world;         /* … or one of this world; -1: none yet */
    struct duration since_started; /* so long it has run without a step */
    int hung_rank;                 /* in this world; -1: none */
    bool is_hanging;               /* no rank takes steps any more, … */
    struct wall_time hung_since;   /* … since this */
    char *hung;                    /* why, and on which node; or NULL */
    char *hung_node;
    int hangs;                /* of the whole job, so far */
    struct wall_time slow_at; /* of a slow worker was told then, in this world; zero: never */
    int slow_rank;            /* of that worker */
    double slow_ratio;        /* it is busy so many times as long a step as those beside it */
    struct chronicle_node *nodes;
    size_t node_capacity;
    size_t known_nodes;
    struct table *places;                     /* of nodes, by their names; NULL: not made yet */
    int in_state[CHRONICLE_NODE_STATE_COUNT]; /* so many nodes, of those that entries tell of */
    int trained_count;                        /* so many have ever taken a step … */
    int trained_running_count; /* … and so many of them run, and have not taken one yet */
    struct chronicle_recovery *recoveries;
    size_t recovery_capacity;
    size_t recovery_count;    /* that are kept */
    size_t recoveries_before; /* that are not kept any more */
    struct recovery_tally tally;
    struct chronicle_account account;
    int excluded_count;
    struct chronicle_exclusion excluded; /* the last one */
    struct chronicle_exclusion kept;     /* that was to stay out, and stays all the same */
    struct chronicle_past past;    /* not reached yet: the account and the recoveries are its until
                                    * then; of the entries some may be older. To be set before them */
    struct wall_time host_changed; /* another host has heard what was before; zero: none has … */
    bool has_past;                 /* … and its account is in this one */
};

void chronicle_status_clear(struct chronicle_status *status);
/* The caller clears the copy. */
void chronicle_status_copy(
    const struct chronicle_status *status, struct chronicle_status *out_copy);
/* Of what was settled; the caller clears it. */
void chronicle_status_write_past(
    const struct chronicle_status *status, struct chronicle_past *out_past);
void chronicle_past_clear(struct chronicle_past *past);
/* Of two that are told of one job: the later account, and the recoveries that reach further. */
void chronicle_past_join(struct chronicle_past *past, const struct chronicle_past *other);

/* Where in `nodes` the one of this name is; -1: there is none. */
int chronicle_status_find(struct chronicle_status *status, const char *name);
void chronicle_status_take(struct chronicle_status *status, const struct chronicle_entry *entry);
/* The time goes on without an entry. */
void chronicle_status_advance(struct chronicle_status *status, struct wall_time now);

/* The time from the first entry on; the sum of the account. */
struct duration chronicle_status_wall(const struct chronicle_status *status);
/* From one moment to the next one of it that is known. */
struct duration chronicle_recovery_phase(
    const struct chronicle_recovery *recovery, enum recovery_moment until);

/* The bounds of the tally, in seconds. */
extern const double recovery_bounds[RECOVERY_BUCKETS];

const char *job_state_name(enum job_state state);
const char *job_result_name(enum job_result result); /* NULL: undecided */
const char *chronicle_node_state_name(enum chronicle_node_state state);
const char *recovery_moment_name(enum recovery_moment moment);

#endif
