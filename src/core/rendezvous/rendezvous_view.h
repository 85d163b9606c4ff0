/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared record as one node sees it: the name of this node in the record, the record as it was
 * seen last, and the draft of the next write. This module decides nothing. The struct is one part
 * of a rendezvous machine. Only this module changes it; others read it, and change a draft that
 * they have begun. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_VIEW_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/rendezvous/node_identity.h"
#include "core/rendezvous/rendezvous_state.h"

/* A zeroed struct is valid once `me` is set. */
struct rendezvous_view {
    struct node_identity me;
    /* A fetch or a write on this connection has shown the record, or that there is none. */
    bool has_record;
    /* The store has lost the record: it has none, or an earlier one. `seen` is the one before the
     * loss, to be written again. */
    bool is_lost;
    /* There is no record any more, and this node does not hold it: its next draft begins another
     * one. */
    bool is_anew;
    /* The name is of a connection to another host, and no record of this one was seen yet. */
    bool is_name_kept;
    struct rendezvous_state seen;
    struct rendezvous_state draft;
    /* Above the ordinal of every complete round that this node has ever seen. */
    int64_t next_ordinal;
};

void rendezvous_view_clear(struct rendezvous_view *view);

/* A new connection begins. The record was not seen on it yet. */
void rendezvous_view_begin(struct rendezvous_view *view);
/* Gives the node a new name, so that what other nodes know of the node of the old connection is not
 * believed of this one. */
void rendezvous_view_rename(struct rendezvous_view *view, int64_t local_id);

/* Whether this record differs from the one seen last on this connection. NULL is the absent record.
 * Heartbeats do not count. */
bool rendezvous_view_is_news(
    const struct rendezvous_view *view, const struct rendezvous_state *state_or_null);
/* Takes note of the record by copying it. NULL is the absent record. A node that has a place in the
 * record seen last on this connection does not believe that there is none, or an earlier one.
 * `has_traces`: the store shows that there was a record. */
void rendezvous_view_see(
    struct rendezvous_view *view, const struct rendezvous_state *state_or_null, bool has_traces);

/* Takes note of what the host of the store has told: a record in which this node alone is listed,
 * or nobody. */
void rendezvous_view_be_told(struct rendezvous_view *view, const struct rendezvous_state *state);

/* Begins a draft: a copy of the record as seen last, for the caller to change and write. */
struct rendezvous_state *rendezvous_view_begin_draft(struct rendezvous_view *view);
/* Whether there was a record in this store that its next draft does not go on with, so that there
 * may have been rounds of which this node does not know. */
bool rendezvous_view_may_miss_rounds(const struct rendezvous_view *view);
/* A draft in which a round begins or is open gets an ordinal above those of all complete rounds
 * seen: rounds only count up, also in a record that was begun anew. */
void rendezvous_view_count_on(struct rendezvous_view *view);
/* The draft was written: it now is the record as seen last. */
void rendezvous_view_adopt_draft(struct rendezvous_view *view);

/* This node in the record as seen last, or NULL. */
const struct rendezvous_node *rendezvous_view_self(const struct rendezvous_view *view);
bool rendezvous_view_is_participant(const struct rendezvous_view *view);
/* Whether this node has the lowest rank of the complete round. */
bool rendezvous_view_is_first(const struct rendezvous_view *view);

#endif
