/* SPDX-License-Identifier: BSD-3-Clause */
/* One whole node as a machine: the agent, its membership in the job, the rendezvous, the round and
 * the standby workers. All of them share ONE queue of owned events, one list of effects and one
 * transcript. The agent floor performs it on a real machine. tests/simulation plays thousands of
 * nodes on a virtual clock.
 *
 *     facts -> node_machine_post -> queue -> node_machine_step -> effects -> performer
 *                                     ^            |
 *                                     +------------+  what the machines tell each other
 *
 * The contract with the performer:
 * - Facts may be posted at any time, also while effects are carried out. No fact is lost, and facts
 *   are taken in the order in which they were posted. The performer steps until the queue is empty.
 * - The events that follow from a fact are taken before the next fact: events of the machines for
 *   each other, and the answers to announcements. So no machine takes a fact before it knows what
 *   another machine has decided.
 * - What an effect points to is valid until the next step. An internal effect was for another
 *   machine of the node, and is listed only for the transcript.
 * - The contracts in the headers of the machines hold too. The performer answers ANNOUNCE_RESTART,
 *   DOUBT_FAILURE and ANNOUNCE_FAILURE by RESTART_, DOUBT_ and FAILURE_ASKED of the membership,
 *   with the account of the worker that is the root cause; and FINISH by END_ASKED. It carries out
 *   the other effects of the step, posts these answers in the order of the effects, and only then
 *   takes the next step.
 * - Where another node may come to host the store, CONNECT of the rendezvous machine is internal:
 *   the performer tells the succession machine of connections to the store, and of no others.
 * - The effects of the standby plan that follow from a step of the agent machine come after those
 * of the agent machine.
 * - MEMBERSHIP_EFFECT_SETTLED follows END_ASKED, and is the last of all effects. */
#ifndef MUSTER_CORE_NODE_NODE_MACHINE_H
#define MUSTER_CORE_NODE_NODE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"
#include "base/text.h"
#include "core/agent/agent_machine.h"
#include "core/node/node_membership.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_step.h"
#include "core/standby/standby_plan.h"
#include "core/succession/succession_machine.h"

/* An event for one of the machines of a node. A queued event owns everything to which it points, so
 * the poster may free its own at once. */

enum node_part {
    NODE_AGENT,
    NODE_MEMBERSHIP,
    NODE_RENDEZVOUS, /* of nodes that come and go */
    NODE_ROUND,      /* of several nodes */
    NODE_STANDBY,    /* where standby workers are wanted */
    NODE_SUCCESSION, /* where another node may come to host the store */
    NODE_PART_COUNT,
};

struct node_event {
    enum node_part part; /* the machine that takes it */
    union {
        struct agent_event agent;
        struct membership_event membership;
        struct rendezvous_event rendezvous;
        struct round_event round;
        struct standby_event standby;
        struct succession_event succession;
    };
};

/* An event that owns everything to which it points. */
struct node_event_owned {
    struct node_event event;
    void **blocks; /* memory that it owns */
    size_t block_count;
    size_t block_capacity;
    struct rendezvous_state state;  /* owned too, where the event points to a record */
    struct failure_account account; /* owned too, where the event points to an account */
};

/* Copies `event`, which is borrowed for the call. The caller clears the copy with
 * node_event_owned_clear, and must not move it in memory. */
void node_event_own(const struct node_event *event, struct node_event_owned *out_owned);
void node_event_owned_clear(struct node_event_owned *owned);

/* Sets the time at which the event happened. */
void node_event_set_now(struct node_event *event, struct instant now, struct wall_time wall_now);

/* Appends one line for transcripts, as the machine's own transcript has it. */
void node_event_describe(const struct node_event *event, struct text *out);

struct node_effect {
    enum node_part part; /* the machine that wants it */
    bool is_internal;
    union {
        struct agent_effect agent;
        struct membership_effect membership;
        struct rendezvous_effect rendezvous;
        struct round_effect round;
        struct standby_effect standby;
        struct succession_effect succession;
    };
};

struct node_effects {
    const struct node_effect *items; /* owned by the machine; valid until the next step */
    size_t count;
};

struct node_settings {
    struct agent_settings agent;
    struct membership_settings membership;         /* its pointers outlive the machine */
    struct rendezvous_machine_settings rendezvous; /* for nodes that come and go */
    struct round_settings round;                   /* for several nodes, of both kinds */
    struct standby_settings standby;
    struct succession_settings succession; /* where rendezvous.has_succession */
};

struct node_machine;

/* The caller frees the machine with node_machine_free, which accepts NULL. */
struct node_machine *node_machine_new(const struct node_settings *settings);
void node_machine_free(struct node_machine *machine);

/* Puts an event on the queue, with a copy of everything to which it points. `now` and `wall_now`
 * are written into the event. */
void node_machine_post(struct node_machine *machine, const struct node_event *event,
    struct instant now, struct wall_time wall_now);

/* The event that the next step takes; NULL when the queue is empty. */
const struct node_event *node_machine_next(const struct node_machine *machine);

/* Takes the first event of the queue, which must not be empty. */
void node_machine_step(struct node_machine *machine, struct node_effects *out_effects);

/* What the node knows, for reports and for starting workers. */
const struct agent_machine *node_machine_agent(const struct node_machine *machine);
const struct membership_knowledge *node_machine_knowledge(const struct node_machine *machine);
/* The workers of the agent. The performer adds what it reads in their error files. */
struct worker_group *node_machine_workers(struct node_machine *machine);
/* The rendezvous machine of nodes that come and go; else NULL. */
const struct rendezvous_machine *node_machine_rendezvous(const struct node_machine *machine);
/* With a register: as succession_machine_owes_end. */
bool node_machine_owes_end(const struct node_machine *machine);

/* The plan of standby workers; NULL where none are wanted. */
const struct standby_plan *node_machine_standby(const struct node_machine *machine);

/* Appends one line for transcripts, as the machine's own transcript has it. */
void node_effect_describe(const struct node_effect *effect, struct text *out);

#endif
