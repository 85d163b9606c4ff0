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

#include "agent/standby/standby_spare.h"
#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/node/node_machine.h"
#include "core/standby/standby_plan.h"
#include "core/standby/standby_preparation.h"
#include "host/failure/hang_report.h"
#include "host/loop/event_loop.h"
#include "host/process/death_notice.h"
#include "host/process/guardian.h"
#include "host/process/process_family.h"

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

/* Before the first effect is carried out. */
void agent_standby_attach(
    struct agent_standby *standby, const struct agent_standby_starter *starter);

/* Workers. */

/* For a worker that is about to be started without a standby worker: adds to its environment what
 * makes it record, and returns the descriptor that it gets as its fourth; -1: none. The descriptor
 * stays here. */
int agent_standby_dress(
    struct agent_standby *standby, int local_rank, struct text_list *environment);
/* The record of the worker, as a descriptor that stays here; -1: it has none. */
int agent_standby_record(const struct agent_standby *standby, int local_rank);
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

#endif
