/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/succession/succession_majority.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/succession/succession_step.h"

void succession_majority_clear(struct succession_majority *majority) {
    free(majority->missing);
    node_table_clear(&majority->places);
    *majority = (struct succession_majority){0};
}

static struct succession_missing *find(
    const struct succession_majority *majority, const struct node_identity *identity) {
    struct node_identity process = node_identity_of_process(identity);
    size_t place = node_table_find(&majority->places, &process);
    return place == NODE_TABLE_ABSENT ? NULL : &majority->missing[place];
}

static void keep_place(struct succession_majority *majority, size_t place) {
    struct node_identity process = node_identity_of_process(&majority->missing[place].identity);
    node_table_put(&majority->places, &process, place);
}

void succession_majority_miss(struct succession_majority *majority,
    const struct node_identity *identity, struct instant now) {
    struct succession_missing *missing = find(majority, identity);
    if (missing == NULL) {
        majority->missing = memory_reserve(
            majority->missing, &majority->capacity, majority->count + 1, sizeof *majority->missing);
        missing = &majority->missing[majority->count];
        *missing = (struct succession_missing){.identity = *identity};
        keep_place(majority, majority->count++);
    }
    missing->missed_at = now;
    missing->is_back = false;
}

void succession_majority_see(
    struct succession_majority *majority, const struct rendezvous_state *record) {
    for (size_t i = 0; i < majority->count; i++) {
        majority->missing[i].is_back = false;
    }
    for (size_t i = 0; i < record->count && majority->count > 0; i++) {
        struct succession_missing *missing = find(majority, &record->nodes[i].identity);
        if (missing != NULL) {
            missing->is_back = true;
        }
    }
}

/* The participants of the committed world, by their processes. The caller clears the table. */
static struct node_table list_participants(const struct rendezvous_state *committed) {
    struct node_table table = {0};
    for (size_t i = 0; i < committed->count; i++) {
        if (committed->nodes[i].is_participant) {
            struct node_identity process = node_identity_of_process(&committed->nodes[i].identity);
            node_table_put(&table, &process, i);
        }
    }
    return table;
}

static const struct rendezvous_node *participant(const struct succession_missing *missing,
    const struct rendezvous_state *committed, const struct node_table *participants) {
    struct node_identity process = node_identity_of_process(&missing->identity);
    size_t place = node_table_find(participants, &process);
    return place == NODE_TABLE_ABSENT ? NULL : &committed->nodes[place];
}

void succession_majority_forget(struct succession_majority *majority,
    const struct rendezvous_state *committed, struct instant until) {
    size_t kept = 0;
    if (majority->count == 0) {
        return;
    }
    struct node_table participants = list_participants(committed);
    node_table_clear(&majority->places);
    for (size_t i = 0; i < majority->count; i++) {
        const struct succession_missing *missing = &majority->missing[i];
        const struct rendezvous_node *node = participant(missing, committed, &participants);
        /* Who is done may be gone: it is missed by nobody. */
        bool is_in_world = node != NULL && !node->is_done;
        if (instant_is_before(until, missing->missed_at) || is_in_world) {
            majority->missing[kept] = *missing;
            keep_place(majority, kept++);
        }
    }
    majority->count = kept;
    node_table_clear(&participants);
}

bool succession_majority_is_missing(struct succession_majority *majority,
    const struct rendezvous_state *committed, const struct node_identity *self) {
    size_t all = 0;
    size_t missing_count = 0;
    bool has_self = false;
    if (majority->count == 0) {
        return false;
    }
    struct node_table participants = list_participants(committed);
    for (size_t i = 0; i < committed->count; i++) {
        if (committed->nodes[i].is_participant) {
            all += committed->nodes[i].is_done ? 0 : 1;
            has_self =
                has_self || node_identity_is_same_process(&committed->nodes[i].identity, self);
        }
    }
    for (size_t i = 0; i < majority->count; i++) {
        struct succession_missing *missing = &majority->missing[i];
        const struct rendezvous_node *node = participant(missing, committed, &participants);
        bool is_done = node != NULL && node->is_done;
        bool is_in = node != NULL && !is_done;
        missing->was_in_world = missing->was_in_world || is_in;
        if (missing->was_in_world && !missing->is_back && !is_done) {
            missing_count++;
            all += is_in ? 0 : 1;
        }
    }
    node_table_clear(&participants);
    return has_self && 2 * missing_count > all;
}
