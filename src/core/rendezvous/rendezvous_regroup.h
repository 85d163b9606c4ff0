/* SPDX-License-Identifier: BSD-3-Clause */
/* Muster's nodes go from one round to the next in one write. torchrun's nodes leave a round one by
 * one, and add themselves to the next one by one. When every participant is Muster's, the node that
 * has the cause for a new round (its workers failed, a node is gone, a node waits) writes the whole
 * next round, and the other nodes find themselves in it. Waiting nodes of torchrun are moved with
 * the others: their join ends as soon as they are participants of a complete round. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_REGROUP_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_REGROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "core/launch/rendezvous_settings.h"
#include "core/rendezvous/rendezvous_state.h"

/* Whether one write may begin the next round. This needs a record that is not closed, and a
 * complete round with at least one participant and only with Muster's. */
bool rendezvous_regroup_is_possible(const struct rendezvous_state *state);

struct rendezvous_regroup {
    const struct node_identity *gone; /* nodes that are lost or leave; borrowed */
    size_t gone_count;
    bool is_charged; /* a worker failed: the job uses one restart */
    /* The cause of this round may also have caused the last restart, which is given back. */
    bool is_refunded;
    const char *reason;
    int64_t signal; /* the signal that told the leaving node to end; 0: none */
};

/* Begins the next round. It takes the participants that are not gone, then nodes on the wait list,
 * then spares, up to the maximum (with scale-up `never`: up to the size of the world). The round is
 * complete at once when it has enough participants; otherwise it stays open until it has enough.
 * Enough is the minimum; or, when a participant is gone and on_node_loss says to wait, as many as
 * before. */
void rendezvous_regroup_apply(struct rendezvous_state *state,
    const struct rendezvous_settings *settings, const struct rendezvous_regroup *regroup);

/* Writes the reason of the round into the record. A character that is not printable ASCII becomes
 * '?', so that every reader of the record can read it. */
void rendezvous_regroup_explain(struct rendezvous_state *state, const char *reason);

/* Writes a reason that names a node, for example "node a (pid 1) is gone". */
void rendezvous_regroup_name_cause(
    const struct node_identity *identity, const char *what, char *out, size_t size);

/* Completes a round that a regrouping left open, once it has as many participants as it waits for.
 * When `is_late` (this node's join deadline has passed), the minimum is enough. Returns whether it
 * has completed the round. */
bool rendezvous_regroup_settle(
    struct rendezvous_state *state, const struct rendezvous_settings *settings, bool is_late);

/* In a full round, makes spares of the nodes on the wait list. By torchrun's rules they would stay
 * on the wait list, and torchrun's nodes would restart their workers again and again as long as a
 * node is on it. */
bool rendezvous_regroup_would_park(
    const struct rendezvous_state *state, const struct rendezvous_settings *settings);
void rendezvous_regroup_park(
    struct rendezvous_state *state, const struct rendezvous_settings *settings);

/* Whether a node waits that scale-up would admit into a complete round with room. The caller sees
 * to the time between two admissions. */
bool rendezvous_regroup_would_admit(
    const struct rendezvous_state *state, const struct rendezvous_settings *settings);

#endif
