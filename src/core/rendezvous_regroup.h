/* SPDX-License-Identifier: BSD-3-Clause */
/* How Muster's nodes go from one round to the next: in one write. torchrun's nodes leave a round
 * one by one and add themselves to the next one by one; when every participant is Muster's, whoever
 * has the cause (a worker failed here, a node is gone, somebody waits) writes the whole next round,
 * and all others find themselves in it. Waiting nodes of torchrun's kind are moved with the others:
 * their join ends as soon as they are participants of a complete round. */
#ifndef MUSTER_CORE_RENDEZVOUS_REGROUP_H
#define MUSTER_CORE_RENDEZVOUS_REGROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/rendezvous_settings.h"
#include "core/rendezvous_state.h"

/* Whether the record may be moved on in one write: it is open, and every participant of its
 * complete round, at least one, is Muster's. */
bool rendezvous_regroup_is_possible(const struct rendezvous_state *state);

struct rendezvous_regroup {
    const struct node_identity *gone; /* taken out first; borrowed */
    size_t gone_count;
    bool is_loss;     /* the gone are lost, not leaving: on_node_loss rules */
    bool is_charged;  /* a worker failed: costs one of the job's restarts */
    bool is_refunded; /* the last restart was a consequence of what begins this round */
    const char *reason;
};

/* Begins the next round: participants that are not gone, then those who wait, then spares, up to
 * the maximum (with scale-up never: up to the world's size). Complete at once when there are
 * enough, else open until there are. */
void rendezvous_regroup_apply(struct rendezvous_state *state,
    const struct rendezvous_settings *settings, const struct rendezvous_regroup *regroup);

/* Writes down why; what is not printable ASCII becomes '?', so that every reader can read it. */
void rendezvous_regroup_explain(struct rendezvous_state *state, const char *reason);

/* Completes a round that a regrouping left open, once it has as many participants as it wanted, or
 * (when this node's patience is over) at least the minimum. Whether it did. */
bool rendezvous_regroup_settle(
    struct rendezvous_state *state, const struct rendezvous_settings *settings, bool is_late);

/* In a full round, makes spares of those who wait. By torchrun's rules whoever waited already stays
 * on the wait list, and its nodes begin anew, for ever, as long as anybody is there. */
bool rendezvous_regroup_would_park(
    const struct rendezvous_state *state, const struct rendezvous_settings *settings);
void rendezvous_regroup_park(
    struct rendezvous_state *state, const struct rendezvous_settings *settings);

/* Whether somebody waits whom scale-up would admit into a complete round that has room; the time
 * between admissions is the caller's business. */
bool rendezvous_regroup_would_admit(
    const struct rendezvous_state *state, const struct rendezvous_settings *settings);

#endif
