/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/heartbeat_watch.h"

#include <stdlib.h>

#include "base/memory.h"

void heartbeat_watch_clear(struct heartbeat_watch *watch) {
    free(watch->entries);
    *watch = (struct heartbeat_watch){0};
}

static int compare_entries(const void *left, const void *right) {
    const struct heartbeat_entry *left_entry = left;
    const struct heartbeat_entry *right_entry = right;
    return node_identity_compare(&left_entry->identity, &right_entry->identity);
}

/* Adds the heartbeats in the record, in torchrun's order. No entry has been silent yet. */
static void list_heartbeats(
    const struct rendezvous_state *state, bool of_torchrun_alone, struct heartbeat_watch *watch) {
    size_t capacity = 0;
    for (size_t i = 0; i < state->count; i++) {
        const struct rendezvous_node *node = &state->nodes[i];
        if (node->has_heartbeat &&
            !(of_torchrun_alone && node_identity_is_muster(&node->identity))) {
            watch->entries =
                memory_reserve(watch->entries, &capacity, watch->count + 1, sizeof *watch->entries);
            watch->entries[watch->count++] =
                (struct heartbeat_entry){.identity = node->identity, .heartbeat = node->heartbeat};
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

void heartbeat_watch_look(struct heartbeat_watch *watch, const struct rendezvous_state *state,
    struct instant now, struct duration patience, bool of_torchrun_alone) {
    struct heartbeat_watch later = {.last_look = now, .has_looked = true};
    list_heartbeats(state, of_torchrun_alone, &later);
    carry_silence_over(watch, &later, accounted_time(watch, now, patience));
    free(watch->entries);
    *watch = later;
}

struct duration heartbeat_watch_silence(
    const struct heartbeat_watch *watch, const struct node_identity *identity) {
    struct heartbeat_entry wanted = {.identity = *identity};
    const struct heartbeat_entry *found = watch->count == 0
                                              ? NULL
                                              : bsearch(&wanted, watch->entries, watch->count,
                                                    sizeof *watch->entries, compare_entries);
    return found == NULL ? (struct duration){0} : found->silent_for;
}
