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
#include "base/failure.h"
#include "base/text.h"
#include "core/standby/standby_preparation.h"
#include "host/loop/event_loop.h"
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

#endif
