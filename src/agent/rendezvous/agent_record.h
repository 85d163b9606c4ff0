/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's record, where nodes come and go: carries out what core/rendezvous/rendezvous_machine
 * asks, hosts the store where it is this node's to host, and reads and writes which worker failed
 * first. What it learns goes to the node's queue. It decides nothing. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_RECORD_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/rendezvous/agent_rendezvous.h"
#include "base/bytes.h"
#include "base/failure.h"
#include "base/log.h"
#include "core/failure/failure_report.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/standby/learned_list.h"
#include "host/loop/event_loop.h"
#include "host/rendezvous/rendezvous_backend.h"

/* What the workers of a job have imported, as its nodes give it to each other: a text in the store,
 * beside the record. A new node makes its standby workers ready with it before it joins. The text
 * itself is core/standby's; here it is bytes. */

/* Longer texts are neither written nor believed. */
#define AGENT_LEARNED_LIST_MAXIMUM LEARNED_LIST_SHARED_MAXIMUM

struct agent_learned_list;

struct agent_learned_list_settings {
    const char *run_id; /* borrowed */
    struct duration answer_timeout;
    /* Answers a look; borrowed for the call. Empty: there is no list. Perhaps from inside. */
    void (*answered)(void *context, struct slice text);
    void *context;
};

/* `backend` is borrowed. Never NULL. */
struct agent_learned_list *agent_learned_list_new(
    struct rendezvous_backend *backend, const struct agent_learned_list_settings *settings);
/* Only after the backend has been freed, so that nothing is under way. NULL is fine. */
void agent_learned_list_free(struct agent_learned_list *list);

/* Puts the text in the place of any other. It is lost without a connection: the next one follows.
 */
void agent_learned_list_publish(struct agent_learned_list *list, struct slice text);

/* Looks whether there is one. Only one look at a time. */
void agent_learned_list_look(struct agent_learned_list *list);

/* Which worker failed first in a round, over all nodes: the first account that reaches the store is
 * the root cause, and every node reads the same one. */

struct agent_root_cause;

struct agent_root_cause_settings {
    const char *run_id; /* borrowed */
    const struct log *log;
    struct duration answer_timeout;
    /* Another node's failure came first; borrowed for the call. */
    void (*learnt)(void *context, const struct failure_account *account);
    /* The look asked for last is over: what there was has been learnt. Perhaps from inside. */
    void (*looked)(void *context);
    void *context;
};

/* `backend` is borrowed. Never NULL. */
struct agent_root_cause *agent_root_cause_new(
    struct rendezvous_backend *backend, const struct agent_root_cause_settings *settings);
/* Only after the backend has been freed, so that nothing is under way. NULL is fine. */
void agent_root_cause_free(struct agent_root_cause *root_cause);

/* Writes the account down unless another one is there, which is learnt then. */
void agent_root_cause_publish(
    struct agent_root_cause *root_cause, int64_t round, const struct failure_account *account);

/* Looks whether the round has one; answered by looked. Takes the place of a look under way. */
void agent_root_cause_look(struct agent_root_cause *root_cause, int64_t round);

/* The other jobs that wait for nodes at the same store: of two nodes with different names for one
 * job, each would wait for the other. An agent that waits lists its job in the store, reads the
 * records of those listed before, and says in the log which of them wait, too. It reads each record
 * twice, as agents that live write a sign of life into theirs: of a job whose agents were all
 * killed the record still says that it waits. Any store will do; a job of torchrun's nodes alone is
 * not listed. Nothing follows from it. */

struct agent_neighbours;

struct agent_neighbours_settings {
    const char *run_id; /* borrowed, as the log */
    const struct log *log;
    struct duration answer_timeout;
    struct duration rest; /* between the two readings: longer than agents leave a record alone */
};

/* `backend` is borrowed. Never NULL. */
struct agent_neighbours *agent_neighbours_new(struct event_loop *loop,
    struct rendezvous_backend *backend, const struct agent_neighbours_settings *settings);
/* This and the next two accept NULL. Only after the backend has been freed, so that nothing is
 * under way. */
void agent_neighbours_free(struct agent_neighbours *neighbours);

/* Does nothing while a look is under way, or without a connection. */
void agent_neighbours_look(struct agent_neighbours *neighbours);
/* This job waits no longer: nothing more is said of the look that is under way. */
void agent_neighbours_stop(struct agent_neighbours *neighbours);
/* Whether a look is under way, its rest included. */
bool agent_neighbours_is_looking(const struct agent_neighbours *neighbours);

/* Which nodes are not ready for a round that has all its nodes, where the nodes exchange their
 * roles: those that have not published theirs, perhaps because their old workers take long to end.
 * Nothing follows from it but what a node that waits says. */

/* Each node that waits asks for the keys of all nodes, so nobody asks in larger rounds. */
#define AGENT_UNREADY_NODES_MAXIMUM ((size_t)64)

struct agent_unready;

/* `backend` and `run_id` are borrowed. Never NULL. */
struct agent_unready *agent_unready_new(
    struct rendezvous_backend *backend, const char *run_id, struct duration answer_timeout);
/* Only after the backend has been freed, so that nothing is under way. Accepts NULL. */
void agent_unready_free(struct agent_unready *unready);

/* Asks the store about the round of this record, in which this node is. Returns false, and does
 * nothing, while it is asked already, without a connection, at a store that is no agent's, where
 * the host tells the ranks, and in rounds of too many nodes. */
bool agent_unready_look(struct agent_unready *unready, const struct rendezvous_state *record);

/* Adds the addresses of the nodes that were not ready at the last look, if that was at this round.
 */
void agent_unready_list(
    const struct agent_unready *unready, int64_t round, struct text_list *out_names);

struct agent_record;

/* `settings` are borrowed and outlive the object. FAILURE_SYSTEM when this node is told to host the
 * store and cannot open its port. */
__attribute__((warn_unused_result)) enum failure_code agent_record_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct agent_record **out_record,
    struct failure *failure);
/* NULL is fine. */
void agent_record_free(struct agent_record *record);

/* For the requests of a round; the record's own. */
struct rendezvous_backend *agent_record_backend(const struct agent_record *record);
/* Appends why the store is not reached, while it is tried, or the register that says where it is.
 */
void agent_record_write_obstacle(const struct agent_record *record, struct text *out);

/* Calls `connected` on every connection to a host of the store, where it may change. */
void agent_record_tell_connected(
    struct agent_record *record, void (*connected)(void *context), void *context);
void agent_record_perform_succession(
    struct agent_record *record, const struct succession_effect *effect);
void agent_record_perform(struct agent_record *record, const struct rendezvous_effect *effect);

/* This node is in a world (WORLD), or waits beside one: see agent_program. */
void agent_record_note_world(struct agent_record *record, const struct rendezvous_effect *effect);
void agent_record_note_parking(struct agent_record *record, enum rendezvous_parking parking);
/* The name or address by which the others reach this machine, as far as anybody has tried; or NULL:
 * none is better than this node's own name. Good until the next event. */
const char *agent_record_reached_name(struct agent_record *record);
/* See agent_admission. */
void agent_record_note_admission(
    struct agent_record *record, const struct rendezvous_admission *planned);
bool agent_record_look_for_admission(struct agent_record *record);
void agent_record_describe_admission(const struct agent_record *record, struct text *out);
/* See agent_rendezvous_look_for_neighbours, and the function after it. */
void agent_record_look_for_neighbours(struct agent_record *record);
void agent_record_stop_looking_for_neighbours(struct agent_record *record);
/* See agent_unready. */
bool agent_record_look_for_unready(
    struct agent_record *record, const struct rendezvous_state *state);
void agent_record_list_unready(
    const struct agent_record *record, int64_t round, struct text_list *out_names);

/* The membership's effects of the same names. */
void agent_record_publish_root_cause(
    struct agent_record *record, int64_t round, const struct failure_account *account);
/* For nodes that join later. Does nothing in a file, which would only grow. */
void agent_record_publish_learned_list(struct agent_record *record, struct slice text);
void agent_record_look_for_root_cause(struct agent_record *record, int64_t round);
void agent_record_cancel_roll(struct agent_record *record);
void agent_record_disconnect(struct agent_record *record);
/* See agent_rendezvous_give_up. */
void agent_record_give_up(struct agent_record *record, const char *reason);
void agent_record_linger(struct agent_record *record, struct duration patience);

#endif
