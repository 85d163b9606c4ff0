/* SPDX-License-Identifier: BSD-3-Clause */
/* The heart of a rendezvous machine. It looks at the record as this node knows it, and does the
 * next thing: it makes a write, or tells the agent something. It is one table, situation × goal;
 * rendezvous_machine.h describes the same table in words. rendezvous_joining has the ways into a
 * round, rendezvous_renewal the rounds that this node begins. This module sees all parts of the
 * machine, and changes each part through the module of that part. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_EVALUATION_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_EVALUATION_H

#include <stdbool.h>

#include "core/rendezvous/rendezvous_regroup.h"
#include "core/rendezvous/rendezvous_step.h"

/* The rounds that this node begins for all nodes: because nodes are gone, workers failed here, a
 * node waits, or this node leaves. Where a node of torchrun is a participant, no node begins a
 * round for the others: nodes that are gone or leave are only removed from the record.
 * rendezvous_regroup makes a round from the one before. This module sees all parts of a rendezvous
 * machine. rendezvous_evaluation calls it. */

/* A function with a result says whether it has written. */

/* Begins the next round in one write, without the nodes that are gone: those that `how` names, or,
 * if it names none, all that this node knows of. Returns true. */
bool rendezvous_renew(struct rendezvous_step *step, struct rendezvous_regroup how);

/* Nodes that leave. All pointers are borrowed. */
struct rendezvous_leaving {
    const struct node_identity *identities;
    size_t count;
    const struct node_identity *first_participant; /* or NULL */
    int signal;                                    /* that told it to end; 0: none */
};

/* Takes nodes that leave out of the record, and begins the next round where that is due. */
bool rendezvous_let_leave(struct rendezvous_step *step, const struct rendezvous_leaving *leaving);

/* Where a node stands in the record. */
enum rendezvous_situation {
    RENDEZVOUS_SITUATION_CLOSED,   /* the record is closed, in whatever list the node is */
    RENDEZVOUS_SITUATION_UNKNOWN,  /* in no list */
    RENDEZVOUS_SITUATION_OPEN,     /* a participant of a round that is not complete */
    RENDEZVOUS_SITUATION_COMPLETE, /* a participant of a complete round */
    RENDEZVOUS_SITUATION_WAITING,  /* on the wait list */
    RENDEZVOUS_SITUATION_SPARE,    /* on the redundancy list */
    RENDEZVOUS_SITUATION_COUNT,
};

enum rendezvous_situation rendezvous_situation(const struct rendezvous_view *view);

/* How often this node writes heartbeats into the record. The host of many nodes that delegate does
 * so less often. Its heartbeats are in the future then, so that a node of torchrun's that comes
 * does not take them for old ones. Muster's nodes do not go by them where presence is served. */
struct duration rendezvous_heartbeat_interval(const struct rendezvous_machine *machine);

/* The machine calls it after every event, while the connection is ready and the node has seen the
 * record.
 */
void rendezvous_evaluate(struct rendezvous_step *step);

#endif
