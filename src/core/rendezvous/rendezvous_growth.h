/* SPDX-License-Identifier: BSD-3-Clause */
/* When a running world admits nodes that wait. Nodes that come at about the same time are admitted
 * together. Two admissions are at least scale_up_interval apart, and further apart while nodes that
 * make the world larger than usual do not stay. rendezvous_regroup decides whether a node may be
 * admitted at all. The struct is one part of a rendezvous machine. Only this module uses it. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_GROWTH_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rendezvous/moment.h"
#include "core/rendezvous/rendezvous_state.h"

struct rendezvous_growth {
    int64_t round; /* the last round that was seen complete */
    size_t size;   /* the number of its participants */
    /* So many nodes the job is used to: that of the first round, and of each that lasted. A node
     * that is admitted to fewer replaces one that was lost. */
    size_t usual_size;
    struct instant began;
    bool has_grown; /* that round had more participants than the one before */
    /* Extra time before the next admission, since admitted nodes did not stay. */
    struct duration penalty;
    struct moment admission_at;
    bool are_gathered; /* those who are next to wait have come together */
};

void rendezvous_growth_init(struct rendezvous_growth *growth);

/* Takes note of a record that this node has just seen: when a new round is complete, of how long
 * the one before ran and whether it lost nodes. */
void rendezvous_growth_look(
    struct rendezvous_growth *growth, const struct rendezvous_state *seen, struct instant now);

/* Those whom this node lets wait now, it has gathered already (rendezvous_gathering). */
void rendezvous_growth_note_gathered(struct rendezvous_growth *growth);

/* Whether it is time to admit the nodes that wait. `is_wanted`: such nodes exist, and this node has
 * the task to admit them. */
bool rendezvous_growth_is_due(struct rendezvous_growth *growth, bool is_wanted, struct instant now,
    struct duration scale_up_interval);

/* Nodes wait that this node is to admit, but not yet. */
struct rendezvous_admission {
    bool is_awaited;
    bool is_paused; /* since admitted nodes did not stay; else by scale_up_interval */
    struct instant at;
};
struct rendezvous_admission rendezvous_growth_admission(
    const struct rendezvous_growth *growth, struct instant now, struct duration scale_up_interval);

void rendezvous_growth_wake(
    const struct rendezvous_growth *growth, struct instant now, struct moment *next);

#endif
