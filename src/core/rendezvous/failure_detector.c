/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/failure_detector.h"

#include <stdlib.h>

#include "base/memory.h"

static void heartbeat_watch_clear(struct heartbeat_watch *watch) {
    free(watch->entries);
    *watch = (struct heartbeat_watch){0};
}

static int compare_entries(const void *left, const void *right) {
    const struct heartbeat_entry *left_entry = left;
    const struct heartbeat_entry *right_entry = right;
    return node_identity_compare(&left_entry->identity, &right_entry->identity);
}

/* Adds the heartbeats in the record, in torchrun's order. No entry has been silent yet. A node that
 * has none, which whoever writes itself into the record gives itself, has one that never changes.
 */
static void list_heartbeats(
    const struct rendezvous_state *state, bool of_torchrun_alone, struct heartbeat_watch *watch) {
    size_t capacity = 0;
    for (size_t i = 0; i < state->count; i++) {
        const struct rendezvous_node *node = &state->nodes[i];
        if (!(of_torchrun_alone && node_identity_is_muster(&node->identity))) {
            watch->entries =
                memory_reserve(watch->entries, &capacity, watch->count + 1, sizeof *watch->entries);
            watch->entries[watch->count++] = (struct heartbeat_entry){.identity = node->identity,
                .heartbeat = node->has_heartbeat ? node->heartbeat : (struct wall_time){0}};
        }
    }
    if (watch->count > 1) {
        qsort(watch->entries, watch->count, sizeof *watch->entries, compare_entries);
    }
}

static struct duration accounted_time(
    const struct heartbeat_watch *watch, struct instant now, struct duration patience) {
    if (!watch->has_looked) {
        return (struct duration){0};
    }
    struct duration passed = instant_until(watch->last_look, now);
    return passed.nanoseconds < patience.nanoseconds ? passed : patience;
}

static struct duration add(struct duration left, struct duration right) {
    if (right.nanoseconds > INT64_MAX - left.nanoseconds) {
        return DURATION_FOREVER;
    }
    return (struct duration){left.nanoseconds + right.nanoseconds};
}

static bool has_stood_still(
    const struct heartbeat_entry *before, const struct heartbeat_entry *now) {
    return node_identity_equals(&before->identity, &now->identity) &&
           before->heartbeat.nanoseconds == now->heartbeat.nanoseconds;
}

/* Both lists are sorted, so one pass finds the entry that each node had at the previous look. */
static void carry_silence_over(
    const struct heartbeat_watch *watch, struct heartbeat_watch *now, struct duration passed) {
    size_t before = 0;
    for (size_t i = 0; i < now->count; i++) {
        struct heartbeat_entry *entry = &now->entries[i];
        while (before < watch->count && compare_entries(&watch->entries[before], entry) < 0) {
            before++;
        }
        if (before < watch->count && has_stood_still(&watch->entries[before], entry)) {
            entry->silent_for = add(watch->entries[before].silent_for, passed);
        }
    }
}

/* Takes note of the heartbeats in the record; of torchrun's nodes alone where others tell of
 * Muster's. One look adds at most `patience` to the silence of a node. It should be about twice the
 * time between two looks. */
static void heartbeat_watch_look(struct heartbeat_watch *watch,
    const struct rendezvous_state *state, struct instant now, struct duration patience,
    bool of_torchrun_alone) {
    struct heartbeat_watch later = {.last_look = now, .has_looked = true};
    list_heartbeats(state, of_torchrun_alone, &later);
    carry_silence_over(watch, &later, accounted_time(watch, now, patience));
    free(watch->entries);
    *watch = later;
}

/* How long the heartbeat of the node has not changed. Zero for a node that was never seen. */
static struct duration heartbeat_watch_silence(
    const struct heartbeat_watch *watch, const struct node_identity *identity) {
    struct heartbeat_entry wanted = {.identity = *identity};
    const struct heartbeat_entry *found = watch->count == 0
                                              ? NULL
                                              : bsearch(&wanted, watch->entries, watch->count,
                                                    sizeof *watch->entries, compare_entries);
    return found == NULL ? (struct duration){0} : found->silent_for;
}

/* Losses. */

/* After so many further losses a node that is no longer in the record is forgotten. */
#define REMEMBERED 4096

void failure_detector_clear(struct failure_detector *detector) {
    heartbeat_watch_clear(&detector->heartbeats);
    failure_detector_forget_all(detector, false);
    *detector = (struct failure_detector){0};
}

/* Reported by the backend. */

static size_t find_gone(
    const struct failure_detector *detector, const struct node_identity *identity) {
    size_t had_finished = node_table_find(&detector->gone, identity);
    return had_finished != NODE_TABLE_ABSENT ? had_finished
                                             : node_table_find(&detector->gone_earlier, identity);
}

bool failure_detector_has_noted(
    const struct failure_detector *detector, const struct node_identity *identity) {
    return find_gone(detector, identity) != NODE_TABLE_ABSENT;
}

void failure_detector_note(
    struct failure_detector *detector, const struct node_identity *identity, bool has_finished) {
    node_table_remove(&detector->here, identity);
    if (!failure_detector_has_noted(detector, identity)) {
        node_table_put(&detector->gone, identity, has_finished);
        detector->gone_count++;
    }
}

void failure_detector_forget(
    struct failure_detector *detector, const struct rendezvous_state *seen) {
    struct node_table kept = {0};
    if (detector->gone_count < REMEMBERED) {
        return;
    }
    for (size_t i = 0; i < seen->count; i++) {
        size_t had_finished = find_gone(detector, &seen->nodes[i].identity);
        if (had_finished != NODE_TABLE_ABSENT) {
            node_table_put(&kept, &seen->nodes[i].identity, had_finished);
        }
    }
    node_table_clear(&detector->gone_earlier);
    detector->gone_earlier = detector->gone;
    detector->gone = kept;
    detector->gone_count = 0;
}

void failure_detector_forget_all(struct failure_detector *detector, bool keeps_hosting) {
    node_table_clear(&detector->gone);
    node_table_clear(&detector->gone_earlier);
    detector->gone_count = 0;
    if (!keeps_hosting) {
        node_table_clear(&detector->here);
    }
}

/* Who has come. */

void failure_detector_hear(
    struct failure_detector *detector, const struct node_identity *identity) {
    if (!failure_detector_has_noted(detector, identity)) {
        node_table_put(&detector->here, identity, 0);
    }
}

static bool has_come(const struct failure_detector *detector, const struct rendezvous_node *node,
    bool has_presence, bool is_host) {
    if (!has_presence || !node_identity_is_muster(&node->identity)) {
        return node->has_heartbeat; /* which is written with the name */
    }
    return !is_host || node_table_find(&detector->here, &node->identity) != NODE_TABLE_ABSENT;
}

static void mark_awaited(const struct failure_detector *detector, struct rendezvous_view *view,
    bool has_presence, bool is_host) {
    for (size_t i = 0; i < view->seen.count; i++) {
        struct rendezvous_node *node = &view->seen.nodes[i];
        bool is_parked = node->is_waiting || node->is_redundant;
        node->is_awaited = is_parked && !node_identity_equals(&node->identity, &view->me) &&
                           !has_come(detector, node, has_presence, is_host);
    }
}

/* Judged by heartbeats. */

void failure_detector_look(struct failure_detector *detector, struct rendezvous_view *view,
    struct instant now, struct duration keep_alive_interval, bool has_presence, bool is_host) {
    heartbeat_watch_look(&detector->heartbeats, &view->seen, now,
        (struct duration){2 * keep_alive_interval.nanoseconds}, has_presence);
    mark_awaited(detector, view, has_presence, is_host);
}

static bool is_silent(const struct failure_detector *detector, const struct rendezvous_node *node,
    const struct rendezvous_settings *settings) {
    int64_t patience = settings->keep_alive_interval.nanoseconds * settings->keep_alive_max_attempt;
    return heartbeat_watch_silence(&detector->heartbeats, &node->identity).nanoseconds > patience;
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

enum rendezvous_loss failure_detector_judge(const struct failure_detector *detector,
    const struct rendezvous_view *view, const struct rendezvous_node *node,
    const struct rendezvous_settings *settings, bool has_presence) {
    size_t gone = find_gone(detector, &node->identity);
    bool is_muster = node_identity_is_muster(&node->identity);
    if (gone != NODE_TABLE_ABSENT) {
        return judge_gone(gone != 0, node, &view->seen);
    }
    if ((has_presence && is_muster) || node_identity_equals(&node->identity, &view->me) ||
        !is_silent(detector, node, settings)) {
        return RENDEZVOUS_LOSS_NONE;
    }
    bool may_be_in_barrier = !is_muster && node->is_participant && view->seen.is_complete;
    return may_be_in_barrier ? RENDEZVOUS_LOSS_SILENT : RENDEZVOUS_LOSS_GONE;
}
