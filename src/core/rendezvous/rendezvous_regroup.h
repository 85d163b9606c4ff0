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
#include <stdint.h>

#include "base/duration.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_state.h"

/* Whether one write may begin the next round. This needs a record that is not closed, and a
 * complete round with at least one participant and only with Muster's. */
bool rendezvous_regroup_is_possible(const struct rendezvous_state *state);

struct rendezvous_regroup {
    const struct node_identity *gone; /* nodes that are lost or leave; borrowed */
    size_t gone_count;
    bool is_charged;                     /* a worker failed: the job uses one restart */
    const struct node_identity *culprit; /* the node whose worker failed; or NULL */
    bool is_culprit_needed;              /* nobody can take its place as host of the store */
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

/* Whether the reason of the round is this one. */
bool rendezvous_regroup_is_because(const struct rendezvous_state *state, const char *reason);

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

/* When a running world admits nodes that wait. Nodes that come at about the same time are admitted
 * together. Two admissions are at least scale_up_interval apart, and further apart while nodes that
 * make the world larger than usual do not stay. rendezvous_regroup decides whether a node may be
 * admitted at all. The struct is one part of a rendezvous machine. Only this module uses it. */

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
