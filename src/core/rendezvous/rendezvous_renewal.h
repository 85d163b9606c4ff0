/* SPDX-License-Identifier: BSD-3-Clause */
/* The rounds that this node begins for all nodes: because nodes are gone, workers failed here, a
 * node waits, or this node leaves. Where a node of torchrun is a participant, no node begins a
 * round for the others: nodes that are gone or leave are only removed from the record.
 * rendezvous_regroup makes a round from the one before. This module sees all parts of a rendezvous
 * machine. rendezvous_evaluation calls it. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_RENEWAL_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_RENEWAL_H

#include <stdbool.h>

#include "core/rendezvous/rendezvous_regroup.h"
#include "core/rendezvous/rendezvous_step.h"

/* A function with a result says whether it has written. */

/* Begins the next round in one write, without the nodes that are gone: those that `how` names, or,
 * if it names none, all that this node knows of. Returns true. */
bool rendezvous_renew(struct rendezvous_step *step, struct rendezvous_regroup how);

/* Removes the nodes that are gone from the record, and begins the next round if one of them was a
 * participant. */
bool rendezvous_take_out_losses(struct rendezvous_step *step);
/* Begins the next round if workers failed here and no other node has begun it. */
bool rendezvous_restart(struct rendezvous_step *step);
/* The first node of the round admits the nodes that wait, when it is time. The best time is before
 * workers have begun to run in the round. */
bool rendezvous_admit(struct rendezvous_step *step);

/* Nodes that leave. All pointers are borrowed. */
struct rendezvous_leaving {
    const struct node_identity *identities;
    size_t count;
    const struct node_identity *first_participant; /* or NULL */
    int signal;                                    /* that told it to end; 0: none */
};

/* Takes nodes that leave out of the record, and begins the next round where that is due. */
bool rendezvous_let_leave(struct rendezvous_step *step, const struct rendezvous_leaving *leaving);

/* This node leaves a complete round, which the other participants continue without it; or it leaves
 * the list on which it is. When it has nothing to leave, its part is settled. */
void rendezvous_leave_round(struct rendezvous_step *step);
void rendezvous_leave_lists(struct rendezvous_step *step);

#endif
