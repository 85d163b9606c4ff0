/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes that delegate to this node, which hosts the store: what each one wishes, and what it
 * was told last of how it stands. A node is told only what concerns it. While a round is open, its
 * participants are told nothing of those who come, so that of many nodes that come at once none
 * costs more than the last. The struct is one part of a rendezvous machine. Only this module
 * changes it; others read it. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_DELEGATES_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_DELEGATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rendezvous/node_table.h"
#include "core/rendezvous/rendezvous_gathering.h"
#include "core/rendezvous/rendezvous_ranking.h"
#include "core/rendezvous/rendezvous_wish.h"

/* What a node was told that would be news if it changed. */
struct rendezvous_told {
    bool is_anything;
    bool is_withdrawn;
    unsigned flags;
    int64_t round;
    int64_t rank;
    int64_t restarts;
    size_t participants;
    int64_t answered; /* the sequence number of a LEAVE that was heard */
};

struct rendezvous_delegate {
    struct node_identity identity;
    struct rendezvous_wish wish;
    struct rendezvous_told told;
    bool had_world; /* it was told of a complete round in which it is, and which is not held */
    int64_t ranked_round; /* the last round with it that this node has ranked */
    bool is_ready;        /* for that round */
};

/* One node is to be told how it stands. */
struct rendezvous_telling {
    struct node_identity identity;
    size_t place;                      /* of the node in the record, or NODE_TABLE_ABSENT */
    int64_t answers;                   /* the sequence number of the wish that was heard last */
    bool is_held;                      /* its ranks in the round are told later */
    struct rank_assignment ranks;      /* in the round; world size 0: the nodes exchange them */
    struct rendezvous_meeting meeting; /* told with the ranks; port 0: it is not told */
};

/* A zeroed struct is valid and empty. There are at most RENDEZVOUS_NODES_MAXIMUM delegates. */
struct rendezvous_delegates {
    struct rendezvous_delegate *items;
    size_t count;
    size_t capacity;
    struct node_table places; /* in `items` */
    /* What is to be told in this step. An effect points to them, so they do not move within it. */
    struct rendezvous_telling *tellings;
    size_t telling_count;
    size_t telling_capacity;
    struct rendezvous_gathering gathering;
    struct rendezvous_ranking ranking; /* of the last round for which this node has computed it */
    struct node_identity first;        /* the node of rank 0 in that round */
    struct rendezvous_meeting meeting; /* that it has told; of an earlier round: not yet */
    /* Some nodes of that round may still end workers of an earlier one when it begins. So it is
     * held until all of them are ready. */
    bool is_held;
    bool is_host_awaited;
    size_t awaited;      /* so many of its nodes are not ready, with the host */
    bool is_record_news; /* the record was seen or written since all were told last */
    bool are_served;     /* nothing is to be written for them, as long as neither they nor the
                            record say anything else */
    bool are_released;   /* all were told that this node serves them no more */
    struct moment leaving_until; /* so long others that leave may follow the last one */
};

void rendezvous_delegates_clear(struct rendezvous_delegates *delegates);

/* This node has computed the ranks of a round in which `first` has rank 0. Then it says of each
 * node of the round that it is in it; of a delegate, or of this node itself. */
void rendezvous_delegates_note_ranking(
    struct rendezvous_delegates *delegates, const struct node_identity *first);
void rendezvous_delegates_note_ranked(
    struct rendezvous_delegates *delegates, const struct node_identity *identity);
void rendezvous_delegates_note_ranked_host(struct rendezvous_delegates *delegates, bool is_ready);
/* This node, which they delegate to, is ready for a round itself. */
void rendezvous_delegates_note_host_ready(struct rendezvous_delegates *delegates, int64_t round);
/* Adds the addresses of the delegates that are not ready for the round that is held. */
void rendezvous_delegates_list_unready(
    const struct rendezvous_delegates *delegates, struct text_list *out_names);
/* Whether this node has ranked this round, and not all its nodes may begin. */
bool rendezvous_delegates_hold(const struct rendezvous_delegates *delegates, int64_t round);
/* The ranks of a node in this round, as soon as it may begin. Else their world size is 0. */
struct rank_assignment rendezvous_delegates_ranks(
    const struct rendezvous_delegates *delegates, int64_t round, int64_t group_rank);
/* A node says where the workers of a round meet. It counts if the node has rank 0 in the round that
 * was ranked. */
void rendezvous_delegates_note_meeting(struct rendezvous_delegates *delegates,
    const struct node_identity *identity, const struct rendezvous_meeting *meeting);

/* Takes note of a wish. A node without one is forgotten. Returns the delegate, or NULL when nothing
 * new is wished of the record. Whether all nodes of a round are ready now is news of the record. */
struct rendezvous_delegate *rendezvous_delegates_hear(struct rendezvous_delegates *delegates,
    const struct node_identity *identity, const struct rendezvous_wish *wish);
/* The record was seen or written: all are to be told, and it may be that something is to be written
 * for them. */
void rendezvous_delegates_note_record(struct rendezvous_delegates *delegates);
void rendezvous_delegates_forget(
    struct rendezvous_delegates *delegates, const struct node_identity *identity);
/* The role of a node that wants to be in the newest round, and has said its role. Else the role in
 * it is NULL. Borrowed. */
struct node_role rendezvous_delegates_role(
    const struct rendezvous_delegates *delegates, const struct node_identity *identity);
/* The delegate, or NULL. */
const struct rendezvous_delegate *rendezvous_delegates_find(
    const struct rendezvous_delegates *delegates, const struct node_identity *identity);

/* One of them, or the node that they delegate to, wishes to leave. */
void rendezvous_delegates_note_leaving(struct rendezvous_delegates *delegates, struct instant now);
/* Whether some wish to leave and were not told that they have left, or others may follow the last
 * one of them. */
bool rendezvous_delegates_are_leaving(
    const struct rendezvous_delegates *delegates, struct instant now);

/* A step begins: nothing is to be told yet. */
void rendezvous_delegates_begin(struct rendezvous_delegates *delegates);
/* Adds the delegate to those to be told, if what the record says of it is news to it. `crowd`: of
 * all nodes of the record. `place`: in the record, or NODE_TABLE_ABSENT. `is_withdrawn`: it is to
 * write the record itself. */
void rendezvous_delegates_tell(struct rendezvous_delegates *delegates,
    struct rendezvous_delegate *delegate, const struct rendezvous_state *record,
    const struct rendezvous_crowd *crowd, size_t place, bool is_withdrawn);

#endif
