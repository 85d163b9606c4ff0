/* SPDX-License-Identifier: BSD-3-Clause */
/* Which standby workers a node keeps, as a machine. A standby worker (spare) is a process that has
 * imported what the workers of this job import, and waits. When the workers are started again, it
 * becomes the worker of its local rank. The plan decides when a spare is started, replaced and
 * ended. It does not decide when it becomes a worker: that is where a worker would be started
 * without it. The plan knows no process, descriptor or module.
 *
 *   ABSENT -> DUE -> WARMING -> READY -> GIVEN
 *     ^        ^                  | ^      |
 *     |        |          LEARNING <+      |
 *     |        +--- quiet, it is wanted ---+
 *     +--- it cannot be used, or has ended
 *
 * - A rank has a spare only after a worker of that rank has said hello: then the way to the
 *   interpreter is known to lead through the hook. Otherwise the spare would run the script.
 * - Spares are warmed while the workers run, when no worker has imported anything for `after`, and
 *   only one at a time.
 * - A spare that is ready is taught what the workers have imported since: when that is much, or
 * when they have been quiet for long. Meanwhile it cannot be used. So this, too, is one at a time,
 * and a rank whose worker is started then is started without a spare.
 * - A spare that is unsuited has imported what nobody may import before the program runs. It names
 *   these modules, and the next one leaves them out. That happens a few times at most; after that,
 *   and where a spare names nothing new, there are no more spares in this job.
 * - A spare that is dirty says why, and there are no more spares in this job. The same holds for a
 *   spare that does not reach the hook in time, that ends with a status of its own before it is
 *   ready, and when three have died. One that has reached the hook, but is not ready for very long,
 *   counts as one that has died.
 *
 * The contract with the performer:
 * - WARM starts a spare. Its answer is SPARE_READY, SPARE_DIRTY, SPARE_UNSUITED or SPARE_ENDED,
 *   also when it could not be started. SPARE_HELLO may come before that.
 * - TEACH tells a spare that is ready what it does not know yet. The answers are the same.
 * - END_SPARE and END_ALL end spares. Nothing more is told about these.
 * - LOOK reads what the workers have recorded. The answers are a HELLO for each worker that has
 *   said it, and then RECORDS.
 * - When the workers are started, the performer gives the spares that are READY their place, if
 *   they fit. It answers each by SPARE_GIVEN or SPARE_REFUSED; the latter has been ended.
 * - INVITED comes at most once, and before the first attempt. The way to the interpreter is known
 *   to lead through the hook then. All spares are warmed at once, since no worker runs that they
 *   could disturb.
 * - PARENT says whether spares are made within milliseconds, since a warm parent forks them. As
 * long as that is so, they are made soon after new workers have been started, a few times a minute.
 * It says, too, that a parent was unsuited.
 * - At most one timer is armed; ARM_TIMER replaces it. A plan that is off has none. */
#ifndef MUSTER_CORE_STANDBY_STANDBY_PLAN_H
#define MUSTER_CORE_STANDBY_STANDBY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/workers/worker_group.h"

/* After the first death of a spare; it doubles with each, until there are none any more. */
#define STANDBY_BACKOFF_SECONDS 60
#define STANDBY_DEATHS_MAXIMUM 3
/* How often the list of modules may become shorter. */
#define STANDBY_CUTS_MAXIMUM 8

/* Whether a job is to have standby workers at all, and for what kind of program. */

/* Whether there are to be standby workers, or why not. */
enum standby_choice {
    STANDBY_CHOICE_WANTED,
    STANDBY_CHOICE_OFF,
    STANDBY_CHOICE_NO_RESTART, /* on: workers are never started again */
    STANDBY_CHOICE_NO_PYTHON,  /* auto: nobody knows whether the program would wait */
    STANDBY_CHOICE_FEW_CPUS,   /* auto: there are less than two for each worker */
};

/* Workers are started again only where failures may cost a restart, or where nodes come and go.
 * `cpu_count` is of those on which this process may run. */
enum standby_choice standby_choose(
    const struct launch_config *config, int worker_count, int cpu_count);

/* With --standby auto, standby workers may take this part of the memory that is available. Before
 * one has been ready it is taken to be as large as those of PyTorch are, together with its part of
 * their parent, if there is one. */
#define STANDBY_MEMORY_PART 20
#define STANDBY_ASSUMED_MIB 256
#define STANDBY_ASSUMED_FORKED_MIB 128

/* Whether the workers are run by a Python interpreter, so that the hook can reach them. */
bool standby_is_for_python(const struct launch_config *config);

/* The longest time between two looks. */
#define STANDBY_LOOK_SECONDS 300
/* How long a spare may take until it has reached the hook. */
#define STANDBY_WARMING_SECONDS 120
/* How long it may then take until it is ready. */
#define STANDBY_PATIENCE_SECONDS 1800
/* A spare is taught when the workers have imported more modules than this since it was told … */
#define STANDBY_MODULES_BEHIND 20
/* … or any, and nothing for this long: who imports now and then may be about to import more. */
#define STANDBY_SETTLED_SECONDS 20
/* Where a warm parent forks them, spares are made so long after the start of new workers: until
 * then these have the CPUs for their first steps. */
#define STANDBY_AHEAD_MILLISECONDS 400
/* In so many starts of a minute they are made then. */
#define STANDBY_FORKS_MAXIMUM 20
/* After how long of waiting for spares that is said, and how often then. */
#define STANDBY_AWAITED_SECONDS 30

enum standby_state {
    STANDBY_ABSENT,
    STANDBY_DUE,      /* it is to be started */
    STANDBY_WARMING,  /* it imports */
    STANDBY_READY,    /* it waits */
    STANDBY_LEARNING, /* it has waited, and imports what it did not know */
    STANDBY_GIVEN,    /* it has become the worker of its rank in the present attempt */
    STANDBY_STATE_COUNT,
};

/* Why a worker has been started without one. */
enum standby_cold {
    STANDBY_COLD_NOT,    /* it has not */
    STANDBY_COLD_NONE,   /* none has been begun: the workers were not quiet */
    STANDBY_COLD_SILENT, /* no worker of the rank has said hello */
    STANDBY_COLD_SCARCE, /* there is not enough memory */
    STANDBY_COLD_DUE,    /* its turn to import had not come */
    STANDBY_COLD_IMPORTING,
    STANDBY_COLD_LEARNING,
    STANDBY_COLD_ENDED,
    STANDBY_COLD_REFUSED, /* it did not fit, or could not go through its gate */
    STANDBY_COLD_OFF,     /* there are none any more */
    STANDBY_COLD_COUNT,
};

enum standby_event_kind {
    /* told by the node */
    STANDBY_EVENT_ATTEMPT_BEGAN, /* the workers are being started */
    STANDBY_EVENT_WORKERS_STARTED,
    STANDBY_EVENT_WORKERS_ENDING, /* the workers are being stopped */
    STANDBY_EVENT_JOB_ENDING,     /* and there will be none after them */
    /* told by the performer */
    STANDBY_EVENT_HELLO,
    STANDBY_EVENT_RECORDS,
    STANDBY_EVENT_INVITED, /* this node is new, and knows what the workers of a running job import
                            */
    STANDBY_EVENT_LINE, /* workers of this rank come to a line in their program, up to which a spare
                         * can run it: what has only imported is replaced */
    STANDBY_EVENT_SPARE_HELLO, /* it has reached the hook, and cannot run the program by itself */
    STANDBY_EVENT_SPARE_READY,
    STANDBY_EVENT_SPARE_DIRTY,
    STANDBY_EVENT_SPARE_UNSUITED, /* it has ended; without some modules it would be of use */
    STANDBY_EVENT_SPARE_ENDED,
    STANDBY_EVENT_SPARE_FAILED, /* the program has, above its line; it counts as a death */
    STANDBY_EVENT_SPARE_GIVEN,
    STANDBY_EVENT_SPARE_REFUSED,
    STANDBY_EVENT_PARENT,
    STANDBY_EVENT_TIMER_FIRED,
    STANDBY_EVENT_COUNT,
};

struct standby_event {
    enum standby_event_kind kind;
    struct instant now;
    bool is_first; /* WORKERS_STARTED: this node tells new nodes what the workers import */
    union {
        bool may_restart; /* WORKERS_STARTED: there may be another attempt after this one */
        /* HELLO, LINE, SPARE_HELLO, SPARE_DIRTY, SPARE_FAILED, SPARE_GIVEN, SPARE_REFUSED */
        int local_rank;
        struct {
            bool is_there;
            bool has_cut; /* the list has become shorter by what it has named */
        } parent;
        struct {                   /* and of INVITED */
            struct duration quiet; /* since the last import of any worker */
            size_t modules;        /* in the list of all that was learned */
            uint64_t memory;       /* bytes that are available; 0: nor are processes */
        } records;
        struct {
            int local_rank;
            uint64_t bytes;  /* of memory that it takes */
            bool is_at_line; /* it has run the program up to there, and learns nothing */
        } ready;
        struct {
            int local_rank;
            bool is_new; /* the list has become shorter by that */
        } unsuited;
        struct {
            int local_rank;
            struct process_exit exit;
        } ended;
    };
};

enum standby_effect_kind {
    STANDBY_EFFECT_WARM,
    STANDBY_EFFECT_TEACH,
    STANDBY_EFFECT_END_SPARE,
    STANDBY_EFFECT_END_ALL,
    STANDBY_EFFECT_LOOK,
    STANDBY_EFFECT_PUBLISH, /* tell new nodes what was learned */
    STANDBY_EFFECT_WARMED,  /* answers INVITED: no spare is being warmed any more */
    STANDBY_EFFECT_ARM_TIMER,
    STANDBY_EFFECT_DISARM_TIMER,
    STANDBY_EFFECT_TELL_AWAITED, /* not all are ready yet, for a while already */
    STANDBY_EFFECT_TELL_READY,   /* all spares that are wanted are ready */
    STANDBY_EFFECT_TELL_TAUGHT,  /* spares have imported what was imported since they were ready */
    STANDBY_EFFECT_TELL_USED,    /* workers have been started from standby, or started again */
    STANDBY_EFFECT_TELL_OFF,     /* there are no spares in this job from now on */
    STANDBY_EFFECT_TELL_SCARCE,  /* there is not enough memory for spares; told once */
    STANDBY_EFFECT_TELL_SILENT,  /* no worker has said hello; told once */
    STANDBY_EFFECT_COUNT,
};

/* Why there are no spares any more. */
enum standby_off {
    STANDBY_OFF_NONE,
    STANDBY_OFF_DIRTY,    /* the performer knows why */
    STANDBY_OFF_UNSUITED, /* again and again modules had to be left out */
    STANDBY_OFF_LATE,     /* a spare did not reach the hook in time */
    STANDBY_OFF_ENDED,    /* a spare ended with a status of its own */
    STANDBY_OFF_DEATHS,   /* too many have died */
    STANDBY_OFF_COUNT,
};

/* What becomes of those that are not ready. */
struct standby_awaited {
    int ready;
    int total;
    int importing; /* one at a time, and in turn */
    int unbegun;   /* until the workers are quiet */
    int ended;     /* and are made anew later */
};

struct standby_effect {
    enum standby_effect_kind kind;
    bool makes_way; /* WARM: workers run beside it */
    union {
        int local_rank;          /* WARM, TEACH, END_SPARE */
        struct instant deadline; /* ARM_TIMER */
        struct {
            int count; /* spares that are ready or have learned, or workers that were spares */
            int total;
            uint64_t bytes; /* TELL_READY: what they take */
            /* TELL_USED: by local rank */
            const enum standby_cold *cold;
            int at_line; /* TELL_READY: those that wait at the line of their program */
        } told;
        struct standby_awaited awaited; /* TELL_AWAITED */
        struct {
            enum standby_off why;
            int local_rank;
            struct process_exit exit; /* ENDED, DEATHS */
        } off;
    };
};

/* Pointers are valid until the next step. */
struct standby_effects {
    const struct standby_effect *items;
    size_t count;
};

struct standby_settings {
    bool is_wanted; /* else there is no plan at all */
    bool is_auto;   /* memory decides, too */
    int worker_count;
    uint64_t assumed; /* bytes that a spare takes, as long as that is not known */
    struct duration after;
};

struct standby_plan;

struct standby_plan *standby_plan_new(const struct standby_settings *settings);
/* Accepts NULL. */
void standby_plan_free(struct standby_plan *plan);

void standby_plan_step(struct standby_plan *plan, const struct standby_event *event,
    struct standby_effects *out_effects);

/* NULL is a plan without any spare. */
enum standby_state standby_plan_state(const struct standby_plan *plan, int local_rank);
int standby_plan_count(const struct standby_plan *plan, enum standby_state state);
/* How many workers have been started from standby in this job. */
uint64_t standby_plan_used(const struct standby_plan *plan);
/* Why there are no spares any more. */
enum standby_off standby_plan_off(const struct standby_plan *plan);

/* One line for each event and effect of core/standby/standby_plan, for transcripts and debug logs.
 */

void standby_event_describe(const struct standby_event *event, struct text *out);
void standby_effect_describe(const struct standby_effect *effect, struct text *out);

/* A short name of a reason, for metrics and transcripts: "dirty". */
const char *standby_off_name(enum standby_off why);

#endif
