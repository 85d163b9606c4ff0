/* SPDX-License-Identifier: BSD-3-Clause */
/* The standby workers of this node: starts them, hears what they say at their gates, gives them the
 * places of workers, and looks at what workers record. core/standby/standby_plan decides which
 * there are; its contract is kept here.
 *
 * Where no standby workers are wanted, there is no such object: all functions accept NULL. */
#ifndef MUSTER_AGENT_STANDBY_AGENT_STANDBY_H
#define MUSTER_AGENT_STANDBY_AGENT_STANDBY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "agent/standby/standby_spare.h"
#include "core/launch/launch_config.h"
#include "core/node/node_event.h"
#include "core/standby/learned_list.h"
#include "core/standby/standby_plan.h"
#include "host/failure/hang_evidence_dump.h"
#include "host/loop/event_loop.h"
#include "host/process/death_notice.h"
#include "host/process/guardian.h"
#include "host/process/process_family.h"

/* The record of one worker: a file in memory in which the worker's hook says hello, and writes what
 * the worker imports. A worker that has said hello also answers there when it is asked for its
 * stacks. The page in front of it tells that the worker is ending. */

struct worker_record {
    pid_t worker;                /* whose it is; 0: not known yet */
    int fd;                      /* -1: there is none */
    size_t read;                 /* its length at the last look */
    struct instant grown;        /* the last look that has found it longer, or its beginning */
    struct death_notice *notice; /* NULL: there is none */
};

void worker_record_init(struct worker_record *record);
void worker_record_clear(struct worker_record *record);

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

struct agent_standby_starter;

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

/* Whether the process has said hello in its record. */
bool standby_probe_has_hello(int record, pid_t pid);

/* What the log says of standby workers. */

/* One of the TELL effects. */
void standby_tell(
    const struct log *log, const struct launch_config *config, const struct standby_effect *effect);

/* Why each standby worker is a process of its own, where a warm parent was asked for. */
void standby_tell_separate(const struct log *log, const char *reason);

/* Why there are none, where they were asked for. */
void standby_tell_choice(
    const struct log *log, enum standby_choice choice, int worker_count, int cpu_count);

/* Why a standby worker cannot be used, in its own words. The next leaves `count` modules out. */
void standby_tell_unsuited(const struct log *log, int local_rank, const char *reason, size_t count);
void standby_tell_dirty(const struct log *log, int local_rank, const char *reason);

struct agent_standby;

struct agent_standby_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    int worker_count;
    const struct log *log;
    struct guardian *guardian;
    /* Takes events. */
    void (*post)(void *context, const struct node_event *event);
    /* What was learned is for new nodes, too; borrowed. */
    void (*publish)(void *context, struct slice list_text);
    void *context;
};

__attribute__((warn_unused_result)) enum failure_code agent_standby_new(struct event_loop *loop,
    const struct agent_standby_settings *settings, struct agent_standby **out_standby,
    struct failure *failure);
/* Free the family before, which ends the standby workers. Accepts NULL. */
void agent_standby_free(struct agent_standby *standby);

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
/* Before the first effect is carried out. */
void agent_standby_attach(
    struct agent_standby *standby, const struct agent_standby_starter *starter);

/* Workers. */

/* For a worker that is about to be started without a standby worker: adds to its environment what
 * makes it record, and returns the descriptor that it gets as its fourth; -1: none. The descriptor
 * stays here. */
int agent_standby_dress(
    struct agent_standby *standby, int local_rank, struct text_list *environment);
/* It has been started. */
void agent_standby_note_worker(struct agent_standby *standby, int local_rank, pid_t pid);
/* It has ended, or is told to: nobody needs early news of its end any more. */
void agent_standby_expect_end(struct agent_standby *standby, int local_rank);

/* Lets the standby worker of the rank become the worker with this environment and these streams (-1
 * for the agent's own), which are the caller's. Returns its pid, which is that of a worker in the
 * family from now on; `settled` will be called. 0: there is none that could. */
pid_t agent_standby_give(struct agent_standby *standby, int local_rank,
    const struct text_list *environment, const int streams[2]);

/* The process of a rank for which `settled` is awaited has ended. Calls `settled`. */
void agent_standby_settle(struct agent_standby *standby, int local_rank);

/* Nobody waits any longer. Returns true when the process of the rank has gone through its gate and
 * stays a worker. Otherwise it is killed, and is none. Does not call `settled`. */
bool agent_standby_give_up(struct agent_standby *standby, int local_rank);

/* Standby workers. */

/* The family has told of the end of a spare. */
void agent_standby_spare_exited(
    struct agent_standby *standby, pid_t pid, const struct process_exit *how);

void agent_standby_perform(struct agent_standby *standby, const struct standby_effect *effect);

/* How the worker can be asked for its Python stacks; zero: it cannot, since it has not said hello,
 * or is no Python. The descriptor stays here. */
struct hang_evidence_dump agent_standby_dump(
    const struct agent_standby *standby, int local_rank, pid_t pid);

/* This node is new, and `list_text` is what the workers of a running job have imported. Makes
 * standby workers ready; RENDEZVOUS_EVENT_WARMED follows. False: there will be none, and no event.
 * First the interpreter is run with an empty program, since it is not known on this node whether
 * the way to it leads through the hook. */
bool agent_standby_invite(struct agent_standby *standby, struct slice list_text);

/* What has been learned so far in this job: for those who pass it on. NULL for NULL. */
const struct learned_list *agent_standby_learned(const struct agent_standby *standby);
/* Adds what another node has told. Returns how many modules were new. */
size_t agent_standby_learn(struct agent_standby *standby, struct slice list_text);

#endif
