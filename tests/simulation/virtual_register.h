/* SPDX-License-Identifier: BSD-3-Clause */
/* A made-up register: entries that are written once, and renewals. It checks each entry against the
 * one before. What it answers may be late, lost or stale; virtual_succession does that. */
#ifndef MUSTER_TESTS_VIRTUAL_REGISTER_H
#define MUSTER_TESTS_VIRTUAL_REGISTER_H

#include "unit.h"

#include "core/succession/succession_machine.h"

struct virtual_entry {
    struct succession_entry entry;
    struct rendezvous_state record;
    bool is_claim;
    struct instant at;
};

struct virtual_register {
    struct virtual_entry *entries;
    size_t count;
    size_t capacity;
    int64_t renewals; /* of the last term */
    char complaint[256];
};

void virtual_register_clear(struct virtual_register *reg);
/* NULL: there is no entry yet. */
const struct virtual_entry *virtual_register_last(const struct virtual_register *reg);
/* Whether this number was free. An entry that does not follow from the one before is complained
 * of. */
bool virtual_register_append(
    struct virtual_register *reg, const struct virtual_entry *entry, struct instant now);
/* Whether this world is committed: an entry says exactly this. */
bool virtual_register_has_world(
    const struct virtual_register *reg, const struct rendezvous_state *record);
/* The last complete round; NULL: none. */
const struct virtual_entry *virtual_register_last_world(const struct virtual_register *reg);

#endif
