/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/succession/succession_majority.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/succession/succession_step.h"

void succession_majority_clear(struct succession_majority *majority) {
    free(majority->missing);
    *majority = (struct succession_majority){0};
}

static struct succession_missing *find(
    const struct succession_majority *majority, const struct node_identity *identity) {
    for (size_t i = 0; i < majority->count; i++) {
        if (succession_is_same_process(&majority->missing[i].identity, identity)) {
            return &majority->missing[i];
        }
    }
    return NULL;
}

void succession_majority_miss(
    struct succession_majority *majority, const struct node_identity *identity) {
    struct succession_missing *missing = find(majority, identity);
    if (missing != NULL) {
        missing->is_back = false;
        return;
    }
    majority->missing = memory_reserve(
        majority->missing, &majority->capacity, majority->count + 1, sizeof *majority->missing);
    majority->missing[majority->count++] = (struct succession_missing){.identity = *identity};
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

bool succession_majority_is_missing(const struct succession_majority *majority,
    const struct rendezvous_state *committed, const struct node_identity *self) {
    size_t all = 0;
    size_t missing_count = 0;
    bool has_self = false;
    for (size_t i = 0; i < committed->count && majority->count > 0; i++) {
        const struct node_identity *identity = &committed->nodes[i].identity;
        if (committed->nodes[i].is_participant) {
            const struct succession_missing *missing = find(majority, identity);
            all++;
            missing_count += missing != NULL && !missing->is_back ? 1 : 0;
            has_self = has_self || succession_is_same_process(identity, self);
        }
    }
    return has_self && 2 * missing_count > all;
}
