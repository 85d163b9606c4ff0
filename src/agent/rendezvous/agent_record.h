/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's record, where nodes come and go: carries out what core/rendezvous/rendezvous_machine
 * asks, hosts the store where it is this node's to host, and reads and writes which worker failed
 * first. What it learns goes to the node's queue. It decides nothing. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_RECORD_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/rendezvous/agent_node_settings.h"
#include "base/bytes.h"
#include "base/failure.h"
#include "base/log.h"
#include "core/failure/failure_report.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/standby/standby_preparation.h"
#include "host/loop/event_loop.h"
#include "host/rendezvous/rendezvous_backend.h"

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
/* Which connection to a store this is, from 1 on; 0: there is none. */
uint64_t agent_record_connection(const struct agent_record *record);
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
