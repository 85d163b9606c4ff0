/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_losses.h"

/* After so many further losses a node that is no longer in the record is forgotten. */
#define REMEMBERED 4096

void rendezvous_losses_clear(struct rendezvous_losses *losses) {
    heartbeat_watch_clear(&losses->heartbeats);
    rendezvous_losses_forget_all(losses);
    *losses = (struct rendezvous_losses){0};
}

/* Reported by the backend. */

static size_t find_gone(
    const struct rendezvous_losses *losses, const struct node_identity *identity) {
    size_t had_finished = node_table_find(&losses->gone, identity);
    return had_finished != NODE_TABLE_ABSENT ? had_finished
                                             : node_table_find(&losses->gone_earlier, identity);
}

bool rendezvous_losses_include(
    const struct rendezvous_losses *losses, const struct node_identity *identity) {
    return find_gone(losses, identity) != NODE_TABLE_ABSENT;
}

void rendezvous_losses_note(
    struct rendezvous_losses *losses, const struct node_identity *identity, bool has_finished) {
    if (!rendezvous_losses_include(losses, identity)) {
        node_table_put(&losses->gone, identity, has_finished);
        losses->gone_count++;
    }
}

void rendezvous_losses_forget(
    struct rendezvous_losses *losses, const struct rendezvous_state *seen) {
    struct node_table kept = {0};
    if (losses->gone_count < REMEMBERED) {
        return;
    }
    for (size_t i = 0; i < seen->count; i++) {
        size_t had_finished = find_gone(losses, &seen->nodes[i].identity);
        if (had_finished != NODE_TABLE_ABSENT) {
            node_table_put(&kept, &seen->nodes[i].identity, had_finished);
        }
    }
    node_table_clear(&losses->gone_earlier);
    losses->gone_earlier = losses->gone;
    losses->gone = kept;
    losses->gone_count = 0;
}

void rendezvous_losses_forget_all(struct rendezvous_losses *losses) {
    node_table_clear(&losses->gone);
    node_table_clear(&losses->gone_earlier);
    losses->gone_count = 0;
}

/* Judged by heartbeats. */

void rendezvous_losses_look(struct rendezvous_losses *losses, const struct rendezvous_state *seen,
    struct instant now, struct duration keep_alive_interval, bool has_presence) {
    heartbeat_watch_look(&losses->heartbeats, seen, now,
        (struct duration){2 * keep_alive_interval.nanoseconds}, has_presence);
}

static bool is_silent(const struct rendezvous_losses *losses, const struct rendezvous_node *node,
    const struct rendezvous_settings *settings) {
    int64_t patience = settings->keep_alive_interval.nanoseconds * settings->keep_alive_max_attempt;
    return heartbeat_watch_silence(&losses->heartbeats, &node->identity).nanoseconds > patience;
}

/* A node may go once its workers are done, but only from the round in which they were done. In the
 * next round the workers run again, so there the node is missed. The record tells both apart: a
 * round in which a node is done is draining, the next one is not. What was seen of the node itself
 * and what was noted in the record count alike. */
static enum rendezvous_loss judge_gone(
    bool had_finished, const struct rendezvous_node *node, const struct rendezvous_state *seen) {
    bool is_missed = !(had_finished || node->is_done) || !node->is_participant ||
                     !seen->is_complete || !seen->is_draining;
    return is_missed ? RENDEZVOUS_LOSS_GONE : RENDEZVOUS_LOSS_FINISHED;
}

enum rendezvous_loss rendezvous_losses_judge(const struct rendezvous_losses *losses,
    const struct rendezvous_view *view, const struct rendezvous_node *node,
    const struct rendezvous_settings *settings, bool has_presence) {
    size_t gone = find_gone(losses, &node->identity);
    bool is_muster = node_identity_is_muster(&node->identity);
    if (gone != NODE_TABLE_ABSENT) {
        return judge_gone(gone != 0, node, &view->seen);
    }
    if ((has_presence && is_muster) || node_identity_equals(&node->identity, &view->me) ||
        !is_silent(losses, node, settings)) {
        return RENDEZVOUS_LOSS_NONE;
    }
    bool may_be_in_barrier = !is_muster && node->is_participant && view->seen.is_complete;
    return may_be_in_barrier ? RENDEZVOUS_LOSS_SILENT : RENDEZVOUS_LOSS_GONE;
}
