/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's place as its agent knows it: in which world its workers run, whether the agent asks for
 * a world, which round was the last that ended for this node, and which node is missing from a
 * world that the agent was told of. The record may be at a later round already. The struct is one
 * part of a rendezvous machine. Only this module changes it; others read it. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_PLACE_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rendezvous/rendezvous_state.h"
#include "core/rendezvous/rendezvous_view.h"
#include "core/rendezvous/rendezvous_wish.h"

#define RENDEZVOUS_NO_ROUND (-1)

struct rendezvous_place {
    bool is_join_asked;
    bool is_in_world; /* the agent knows `world`, and does not know that it is over */
    bool is_placed;   /* the nodes of `world` have exchanged what the workers need */
    bool opens_store; /* the host of the job's store has ranked `world`, and this is rank 0 */
    bool is_held;     /* `world` is ranked; its nodes wait until all of them are ready */
    /* Of the last held world for which this node was ready, and of the last ranked one whose store
     * it has opened: what it says of it on this connection. */
    struct rendezvous_meeting meeting;
    /* The node waited or was a spare when it last saw a record that was not closed. */
    bool was_parked;
    /* The last round that was over; the node leaves it, and does not enter it. */
    int64_t ended_round;
    /* The world that the agent was told of last. Its round is RENDEZVOUS_NO_ROUND before. */
    struct rendezvous_state world;
};

void rendezvous_place_init(struct rendezvous_place *place);
void rendezvous_place_clear(struct rendezvous_place *place);

/* The round of the world that the agent runs in, or RENDEZVOUS_NO_ROUND. */
int64_t rendezvous_place_round(const struct rendezvous_place *place);

void rendezvous_place_ask_join(struct rendezvous_place *place);
/* The agent is told of this world, and no longer asks for one: no worker of an earlier one runs
 * here. A node that opens the store is ready when that is open. */
void rendezvous_place_enter(struct rendezvous_place *place, const struct rendezvous_state *world,
    bool opens_store, bool is_held);
/* The workers' store of this round is open, if this node is to open it. `address` may be NULL. */
void rendezvous_place_note_opened(
    struct rendezvous_place *place, int64_t round, const char *address, int port);
/* All nodes of the world are ready. */
void rendezvous_place_release(struct rendezvous_place *place);
/* A connection begins: nothing was said on it yet. */
void rendezvous_place_say_nothing(struct rendezvous_place *place);
/* The nodes of the world have exchanged what the workers need. */
void rendezvous_place_note_placed(struct rendezvous_place *place);
/* The world in which this node runs is over. */
void rendezvous_place_leave(struct rendezvous_place *place);
/* The node will not enter this round. With RENDEZVOUS_NO_ROUND it may enter every round. */
void rendezvous_place_give_up(struct rendezvous_place *place, int64_t round);
/* Takes note of whether this node waits or is a spare. */
void rendezvous_place_look(struct rendezvous_place *place, const struct rendezvous_view *view);

/* Writes a reason that names the node that has left the round, if that round is the world told
 * last. */
void rendezvous_place_name_missing(const struct rendezvous_place *place,
    const struct rendezvous_state *seen, int64_t round, char *out, size_t size);
/* Writes why this node's world is over. The caller has seen a record that no longer has this world.
 */
void rendezvous_place_explain_end(const struct rendezvous_place *place,
    const struct rendezvous_view *view, char *out, size_t size);

#endif
