/* SPDX-License-Identifier: BSD-3-Clause */
/* One standby worker: its process, its gate, and what it has said. It is started as a process of
 * its own, or forked by a warm parent, which is one of these as well. */
#ifndef MUSTER_AGENT_STANDBY_STANDBY_SPARE_H
#define MUSTER_AGENT_STANDBY_STANDBY_SPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/standby/standby_plan.h"
#include "core/standby/standby_preparation.h"
#include "host/loop/event_loop.h"
#include "host/process/death_notice.h"
#include "host/process/process_family.h"

/* What starts processes as workers are started. */
struct agent_standby_starter {
    struct process_family *family;
    /* Starts the program of a worker. Descriptors are as in struct process_request. */
    enum failure_code (*spawn)(void *context, int local_rank, const struct text_list *environment,
        const int descriptors[4], struct process *out_process, struct failure *failure);
    /* The environment that a worker of this rank will have, as far as it is known before the node
     * has a place in the job; the caller clears it. */
    enum failure_code (*foresee)(
        void *context, int local_rank, struct text_list *out_environment, struct failure *failure);
    /* Starts the workers' interpreter as it is started for them, but with an empty program. */
    enum failure_code (*probe)(void *context, const struct text_list *environment,
        const int descriptors[4], struct process *out_process, struct failure *failure);
    /* Ends the wait that agent_standby_give has begun: the worker runs, or is to be started. */
    void (*settled)(void *context, int local_rank, bool has_gone_through);
    /* A worker has not ended yet, but is about to. */
    void (*ending)(void *context, pid_t pid, const struct process_exit *how);
    void *context;
};

struct standby_spare;

/* What it has said so far. */
struct standby_spare_words {
    bool has_reached_hook;
    pid_t pid; /* as it says, where it has */
    bool is_ready;
    bool is_at_line;     /* of its program, which it has run up to there */
    uint32_t memory_kib; /* that it takes; set when it is ready */
    char *reason;        /* why it cannot be used; NULL: it can */
    bool has_failed;     /* since its program has */
    bool is_unsuited;    /* it cannot be used, but one that leaves these modules out could be */
    struct text_list left_out; /* as it has named them: any bytes */
    bool has_gone_through;
};

struct standby_spare_order {
    int local_rank;
    const struct text_list *environment; /* of a worker of that rank */
    const char *hook_directory;          /* NULL where the program is not Python */
    int evidence_signal;                 /* when it has become a worker; 0: none */
    double rest;                         /* after working, in times of that; 0: none */
    bool is_alone;                       /* there is no worker yet for which to rest */
    bool is_parent;                      /* it will never be a worker, but forks standby workers */
    struct slice list;                   /* what it is to import */
    const struct agent_standby_starter *starter;
    /* It has said something. May free it. */
    void (*spoke)(void *context, int local_rank);
    void *context;
};

/* Starts it and adds it to the family as a spare. Lists and texts stay the caller's. */
__attribute__((warn_unused_result)) enum failure_code standby_spare_start(struct event_loop *loop,
    const struct standby_spare_order *order, struct standby_spare **out_spare,
    struct failure *failure);
/* Closes the gate: it ends, unless it has gone through. Accepts NULL. */
void standby_spare_free(struct standby_spare *spare);

pid_t standby_spare_pid(const struct standby_spare *spare);
const struct standby_spare_words *standby_spare_words(const struct standby_spare *spare);
/* Whether a warm parent has forked it. Then its pid is 0 until it is here. */
bool standby_spare_is_forked(const struct standby_spare *spare);

/* Of the worker for whom it was started. */
const struct text_list *standby_spare_environment(const struct standby_spare *spare);
/* It is for no rank, but for all: the environment has no rank from now on. */
void standby_spare_drop_rank(struct standby_spare *spare);

/* Whether it was told all of a list that has only grown. */
bool standby_spare_is_told(const struct standby_spare *spare, struct slice list);

/* Tells it to go through its gate. */
__attribute__((warn_unused_result)) enum failure_code standby_spare_send(
    struct standby_spare *spare, const struct text_list *environment, const int streams[2],
    int record, struct failure *failure);
/* The same, without a call; from now on it cannot say anything. */
void standby_spare_shut(struct standby_spare *spare);

/* Takes what it has said and the loop has not taken yet; `spoke` may be called. */
void standby_spare_drain(struct standby_spare *spare);
/* Has a warm parent fork one. It speaks when it is here. */
__attribute__((warn_unused_result)) enum failure_code standby_spare_fork(struct event_loop *loop,
    struct standby_spare *parent, const struct standby_spare_order *order,
    struct standby_spare **out_spare, struct failure *failure);
/* Has a warm parent look which pages this child of it has needed, as a worker. It speaks when it is
 * ready again. */
void standby_spare_look_at(struct standby_spare *parent, pid_t worker);
/* Has one that was forked make the pages its own of which its parent knows that. */
void standby_spare_make_own(struct standby_spare *spare);
/* Takes it over when it has said who it is. What the parent has not imported it imports itself. */
bool standby_spare_adopt(
    struct standby_spare *spare, struct process_family *family, struct slice list);
/* Leaves out of the list what it has named. Returns how many modules are left out only now. */
size_t standby_spare_cut(const struct standby_spare *spare, struct learned_list *list);
/* Why it may not become a worker with this environment, given the one that it was started with: the
 * variable that is different, as in standby_environment_difference. NULL: it may. */
const char *standby_spare_difference(
    const struct standby_spare *spare, const struct text_list *environment);
/* Tells one that is ready what it was not told yet of a list that has only grown. It is ready again
 * when its words say so. False when it cannot be told. */
bool standby_spare_teach(struct standby_spare *spare, struct slice list);

/* What the hook writes down in a process that has been started: in a worker what it imports, and in
 * one that is only to try the way to the interpreter that it was reached. */

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

/* What the log says of standby workers. */

/* One of the TELL effects. */
void standby_tell(
    const struct log *log, const struct launch_config *config, const struct standby_effect *effect);

/* Why each standby worker is a process of its own, where a warm parent was asked for. */
void standby_tell_separate(const struct log *log, const char *reason);

/* Of a word that there are none: who has not asked for them by name is not warned. */
enum log_level standby_level_of_none(const struct launch_config *config);

/* Why there are none, where they were asked for. */
void standby_tell_choice(
    const struct log *log, enum standby_choice choice, int worker_count, int cpu_count);

/* Why a standby worker cannot be used, in its own words. The next leaves `count` modules out. */
void standby_tell_unsuited(const struct log *log, int local_rank, const char *reason, size_t count);
void standby_tell_dirty(
    const struct log *log, const struct launch_config *config, int local_rank, const char *reason);
/* The same of one that was ready, at its gate. */
void standby_tell_outdated(const struct log *log, int local_rank, const char *reason);

#endif
