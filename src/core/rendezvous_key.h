/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a dynamic rendezvous lies in the store: the record, what Muster's nodes keep beside it, and
 * the folder of each round. Keys are as on the wire, with upstream's leading '/'; the record's and
 * the folders' are torchrun's, see C10dRendezvousBackend in
 * torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py and _get_store in
 * dynamic_rendezvous.py. What is inside a round's folder is core/round_key's business.
 * docs/dynamic-rendezvous.md has the table. A run id is any text. */
#ifndef MUSTER_CORE_RENDEZVOUS_KEY_H
#define MUSTER_CORE_RENDEZVOUS_KEY_H

#include <stdint.h>

#include "base/text.h"
#include "core/node_identity.h"

/* Appends the record's key. */
void rendezvous_key_write_record(const char *run_id, struct text *out);

/* Appends what the keys of a round begin with, '/' included. */
void rendezvous_key_write_round(const char *run_id, int64_t round, struct text *out);

/* Muster's own, below the record's key. */

/* The counter of changes. */
void rendezvous_key_write_changes(const char *run_id, struct text *out);
/* Exists when the change of that number has been made. */
void rendezvous_key_write_changed(const char *run_id, int64_t number, struct text *out);
/* The settings the job was begun with, for those who come later to compare. */
void rendezvous_key_write_settings(const char *run_id, struct text *out);
/* What the keys begin with that a server of Muster's ties to the connection they came on, '/'
 * included, and such a node's key. */
void rendezvous_key_write_presences(const char *run_id, struct text *out);
void rendezvous_key_write_presence(
    const char *run_id, const struct node_identity *identity, struct text *out);

/* Muster's own, in a round's folder: the first failure, decided by who writes first. */
void rendezvous_key_write_root_cause(const char *run_id, int64_t round, struct text *out);
/* The node of this rank has answered when the round's roll was called. */
void rendezvous_key_write_roll(const char *run_id, int64_t round, int rank, struct text *out);

#endif
