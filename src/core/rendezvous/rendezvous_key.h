/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a dynamic rendezvous in the store: the record, what Muster's nodes keep beside it,
 * and the folder of each round. The keys are as on the wire, with torchrun's leading '/'. The key
 * of the record and the folders of the rounds are torchrun's, see C10dRendezvousBackend in
 * torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py and _get_store in
 * dynamic_rendezvous.py. core/round_key has the keys inside the folder of a round.
 * docs/dynamic-rendezvous.md has the table. A run id may be any text. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_KEY_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_KEY_H

#include <stdint.h>

#include "base/text.h"
#include "core/rendezvous/rendezvous_state.h"

/* Appends the record's key. */
void rendezvous_key_write_record(const char *run_id, struct text *out);

/* Appends the folder of a round: the beginning of all its keys, with the final '/'. */
void rendezvous_key_write_round(const char *run_id, int64_t round, struct text *out);

/* Muster's own keys. They begin with the key of the record. */

/* The counter of changes. */
void rendezvous_key_write_changes(const char *run_id, struct text *out);
/* This key exists once the change with that number has been made. */
void rendezvous_key_write_changed(const char *run_id, int64_t number, struct text *out);
/* The version of the protocol that the job's Muster agents speak
 * (wire/rendezvous/job_notes).
 */
void rendezvous_key_write_protocol(const char *run_id, struct text *out);
/* The settings with which the job began. Nodes that join later compare theirs with them. */
void rendezvous_key_write_settings(const char *run_id, struct text *out);
/* What the nodes of the job run, in short (core/rendezvous/rendezvous_transcript). */
void rendezvous_key_write_program(const char *run_id, struct text *out);
/* Which warnings about the options a node has said for all (agent/rendezvous/agent_node_settings).
 */
void rendezvous_key_write_said(const char *run_id, struct text *out);
/* When nodes that wait are let into the running world (agent/rendezvous/agent_node_settings). */
void rendezvous_key_write_admission(const char *run_id, struct text *out);
/* Which node hosts the store (wire/rendezvous/job_notes), where it may change. */
void rendezvous_key_write_host(const char *run_id, struct text *out);
/* The folder of what nodes tell the host of the store, and of what is asked of it
 * (wire/telling/node_telling). */
void rendezvous_key_write_telling(const char *run_id, struct text *out);
/* What the workers of the job have imported. */
void rendezvous_key_write_learned_list(const char *run_id, struct text *out);
/* The jobs that have waited at this store (wire/rendezvous/job_notes). It is the same key for
 * all jobs, and no job's record has it: the keys of records have a '.' where this one has a '/'. */
void rendezvous_key_write_waiting(struct text *out);
/* The presence of a node is a key that Muster's store server ties to the connection on which it was
 * written. These functions append the beginning of all presence keys with the final '/', the key
 * which says that the server serves presence, and the key of one node. */
void rendezvous_key_write_presences(const char *run_id, struct text *out);
void rendezvous_key_write_presence_served(const char *run_id, struct text *out);
/* Exists in a store whose host offers to write the record for other nodes. */
void rendezvous_key_write_delegation(const char *run_id, struct text *out);
/* The queue of a node to which the host tells how it stands. */
void rendezvous_key_write_standing(
    const char *run_id, const struct node_identity *identity, struct text *out);
void rendezvous_key_write_presence(
    const char *run_id, const struct node_identity *identity, struct text *out);
/* Below the presence keys, so that the server tells of it when the connection ends: an agent of
 * another version was refused. Its value is that version; the number is any. */
#define RENDEZVOUS_KEY_REFUSED "refused/"
void rendezvous_key_write_refused(const char *run_id, uint32_t number, struct text *out);

/* Muster's own key in the folder of a round: the first failure of the round. The first node that
 * writes it decides. */
void rendezvous_key_write_root_cause(const char *run_id, int64_t round, struct text *out);
/* Muster's own key in the folder of a round: the node with this rank has answered the roll call of
 * the round. */
void rendezvous_key_write_roll(const char *run_id, int64_t round, int rank, struct text *out);

#endif
