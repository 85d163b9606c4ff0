/* SPDX-License-Identifier: BSD-3-Clause */
#include "virtual_register.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "record_tools.h"

void virtual_register_clear(struct virtual_register *reg) {
    for (size_t i = 0; i < reg->count; i++) {
        rendezvous_state_clear(&reg->entries[i].record);
    }
    free(reg->entries);
    *reg = (struct virtual_register){0};
}

const struct virtual_entry *virtual_register_last(const struct virtual_register *reg) {
    return reg->count == 0 ? NULL : &reg->entries[reg->count - 1];
}

/* Why the entry does not follow from the one before, or NULL. */
static const char *objection(const struct virtual_entry *last, const struct virtual_entry *entry) {
    const struct rendezvous_state *before = &last->record;
    const struct rendezvous_state *after = &entry->record;
    if (entry->is_claim && entry->entry.term != last->entry.term + 1) {
        return "a claim is not of the next term";
    }
    if (entry->is_claim && !record_equals(before, after)) {
        return "a claim changes what is committed";
    }
    if (!entry->is_claim && (entry->entry.term != last->entry.term ||
                                !node_identity_equals(&entry->entry.host, &last->entry.host))) {
        return "somebody commits who does not host the term";
    }
    /* A round that was over before it was committed has no entry, and nobody ran workers in it. */
    if (rendezvous_state_ordinal(after) < rendezvous_state_ordinal(before)) {
        return "a round is lost";
    }
    /* One may be given back, when it is found that a lost node was the cause. */
    int64_t refunded = before->is_charged && !after->is_charged ? 1 : 0;
    if (after->restarts < before->restarts - refunded) {
        return "restarts have fallen";
    }
    if (before->is_closed && !after->is_closed) {
        return "a closed job was opened";
    }
    return NULL;
}

bool virtual_register_append(
    struct virtual_register *reg, const struct virtual_entry *entry, struct instant now) {
    const struct virtual_entry *last = virtual_register_last(reg);
    if (entry->entry.number != (int64_t)reg->count + 1) {
        return false;
    }
    const char *wrong = last != NULL ? objection(last, entry) : NULL;
    if (wrong != NULL) {
        (void)snprintf(reg->complaint, sizeof reg->complaint, "entry %lld: %s",
            (long long)entry->entry.number, wrong);
    }
    reg->entries =
        memory_reserve(reg->entries, &reg->capacity, reg->count + 1, sizeof *reg->entries);
    struct virtual_entry *added = &reg->entries[reg->count++];
    *added = *entry;
    added->at = now;
    added->record = (struct rendezvous_state){0};
    rendezvous_state_copy(&entry->record, &added->record);
    reg->renewals = entry->is_claim ? 0 : reg->renewals;
    return true;
}

static bool is_same_world(
    const struct rendezvous_state *left, const struct rendezvous_state *right) {
    if (left->round != right->round || left->count != right->count || !left->is_complete) {
        return false;
    }
    for (size_t i = 0; i < left->count; i++) {
        if (!node_identity_equals(&left->nodes[i].identity, &right->nodes[i].identity) ||
            left->nodes[i].rank != right->nodes[i].rank) {
            return false;
        }
    }
    return true;
}

bool virtual_register_has_world(
    const struct virtual_register *reg, const struct rendezvous_state *record) {
    for (size_t i = reg->count; i > 0; i--) {
        if (is_same_world(&reg->entries[i - 1].record, record)) {
            return true;
        }
    }
    return false;
}

const struct virtual_entry *virtual_register_last_world(const struct virtual_register *reg) {
    const struct virtual_entry *first = NULL;
    for (size_t i = reg->count; i > 0 && reg->entries[i - 1].record.is_complete; i--) {
        if (first != NULL && first->record.round != reg->entries[i - 1].record.round) {
            break;
        }
        first = &reg->entries[i - 1];
    }
    return first;
}
