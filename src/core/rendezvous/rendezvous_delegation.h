/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node that delegates wants of the record. It does not write the record. It says its wish to
 * the host of the store, as the value of its presence key, and the host writes the record for it
 * (rendezvous_serving). A wish says how things should be and not what to do once: the host may hear
 * it twice, or only the last of several. What it says of a round holds for that round alone, so it
 * is fulfilled once. PyTorch has nothing like it: its nodes write the record themselves. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_DELEGATION_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_DELEGATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/workers/worker_group.h"

#define RENDEZVOUS_WISH_NO_ROUND (-1)
/* Of a node that is ready for whichever round: it had no world yet. */
#define RENDEZVOUS_WISH_ANY_ROUND (-2)
/* Of the role that is said with a wish. */
#define RENDEZVOUS_WISH_ROLE_SIZE 64
#define RENDEZVOUS_MEETING_ADDRESS_SIZE 64

enum rendezvous_wish_kind {
    RENDEZVOUS_WISH_NONE,  /* the node does not delegate */
    RENDEZVOUS_WISH_OWN,   /* it wants to write the record itself from now on */
    RENDEZVOUS_WISH_LOOK,  /* it wants to know how the job stands, and to be in no list yet */
    RENDEZVOUS_WISH_JOIN,  /* it wants to be in the newest round, or on a list for the next one */
    RENDEZVOUS_WISH_LEAVE, /* it wants to be in no list any more */
    RENDEZVOUS_WISH_CLOSE, /* it wants the record to be closed */
    RENDEZVOUS_WISH_KIND_COUNT,
};

/* Where the workers of a round meet: at a store that the node of rank 0 has opened. */
struct rendezvous_meeting {
    int64_t round; /* RENDEZVOUS_WISH_NO_ROUND: nothing is said */
    int port;      /* 0: the address has to be read from the job's store */
    char address[RENDEZVOUS_MEETING_ADDRESS_SIZE];
};

/* A zeroed struct is no wish. Rounds are RENDEZVOUS_WISH_NO_ROUND where there is none. */
struct rendezvous_wish {
    enum rendezvous_wish_kind kind;
    int64_t sequence;       /* counts the wishes of this node on this connection, from 1 */
    int64_t finished_round; /* its workers are done in this round */
    int64_t ended_round;    /* JOIN: the round after this one is to begin, for `reason` … */
    bool is_charged;        /* … which costs a restart: workers failed */
    int64_t doubted_round;  /* JOIN: it doubts a failure in this round */
    int signal;             /* LEAVE, CLOSE: told this node to end; 0: none */
    /* Where the host may tell the node its ranks: how many workers it has, and their role. 0: it
     * says neither. */
    int local_world_size;
    char role[RENDEZVOUS_WISH_ROLE_SIZE];
    /* Its round: no worker of an earlier one runs on this node, and it waits in this one for the
     * others. Or RENDEZVOUS_WISH_ANY_ROUND: it had no world when it connected. Where this node has
     * rank 0 in a round that the host has ranked, it says where the workers meet. */
    struct rendezvous_meeting meeting;
    char reason[RENDEZVOUS_REASON_SIZE]; /* ended_round, CLOSE; empty: the job has succeeded */
};

/* Of an address that is too long for it, or NULL, only the round is said. */
struct rendezvous_meeting rendezvous_meeting_at(int64_t round, const char *address, int port);

/* A wish of this kind that says nothing of a round. */
struct rendezvous_wish rendezvous_wish_of(enum rendezvous_wish_kind kind);
/* Whether the record of this round is to be closed. Who has passed the exit barrier closes only the
 * round in which it was; a failure ends the job in any. */
bool rendezvous_wish_closes(const struct rendezvous_wish *wish, int64_t round);

/* A node that delegates: it reads and writes no record. The host of the store has offered to write
 * it for this node (rendezvous_serving). This node says what it wishes, and is told how it stands,
 * as a record in which it alone is listed. It decides by the same rules as any other node; but
 * where another node writes the record, this one wishes. The struct is one part of a rendezvous
 * machine. Only this module changes it; others read it. */

/* A zeroed struct is valid: the node does not delegate. */
struct rendezvous_delegating {
    bool is_on;
    struct rendezvous_wish wish; /* as it was said last; its sequence is 0 before the first */
    int64_t answered; /* the sequence number of the wish that the host had heard when it told */
    bool says_role;   /* the host may tell this node its ranks */
    bool is_new;      /* it had no world when the connection began */
    int64_t ranked_round;
    bool is_held;                      /* the host will tell the ranks in that round */
    struct rank_assignment ranks;      /* in that round, as the host has told; world size 0: none */
    struct rendezvous_meeting meeting; /* told with them */
};

/* A connection begins, with an offer that this node takes, or without. */
void rendezvous_delegating_begin(
    struct rendezvous_delegating *delegating, bool is_on, bool says_role, bool is_new);
/* The host has told how this node stands, and had heard this wish. */
void rendezvous_delegating_take_answer(struct rendezvous_delegating *delegating, int64_t answered);
/* With it, the host has told of this node's ranks in the round told. Their world size is 0 where it
 * has told none; `is_held`: it will, when all nodes of the round are ready. */
void rendezvous_delegating_take_ranks(struct rendezvous_delegating *delegating, int64_t round,
    bool is_held, const struct rank_assignment *ranks, const struct rendezvous_meeting *meeting);
/* Whether the host holds this round until all its nodes are ready. */
bool rendezvous_delegating_is_held(const struct rendezvous_delegating *delegating, int64_t round);
/* The node writes the record itself from now on. */
void rendezvous_delegating_end(struct rendezvous_delegating *delegating);

/* Takes note of what the node wishes now. Returns whether that is to be said. */
bool rendezvous_delegating_wish(
    struct rendezvous_delegating *delegating, const struct rendezvous_wish *wish);
/* Whether a node that leaves, and is in no list as far as it knows, may end: the host knows that it
 * leaves. True where the node does not delegate. */
bool rendezvous_delegating_may_settle(const struct rendezvous_delegating *delegating);

/* When the host of the store lets nodes that delegate into the record. Each write has the whole
 * record, so that of many nodes that come one after the other each would cost as much as all before
 * it. So the host lets those who come soon after each other in together, and the record of an open
 * round grow by half at a time. Nobody waits for that: the nodes wait until the round is complete,
 * and whoever may complete it, or begin its last call, is let in at once, with all others. A round
 * that runs admits them after a short time anyhow (rendezvous_growth), which is that of gathering
 * them here. The struct is one part of a rendezvous machine. Only this module changes it. */

/* A zeroed struct is valid. */
struct rendezvous_gathering {
    size_t listed;      /* participants, when the record was news */
    size_t newcomers;   /* that have come since the last pass */
    bool is_urgent;     /* a delegate has wished something else since */
    struct moment soon; /* until then the host waits also for more than half as many */
    struct moment end;
};

/* The record has so many participants. */
void rendezvous_gathering_look(struct rendezvous_gathering *gathering, size_t participants);
/* A node has said that it wants to join, for the first time; or any node has said anything else. */
void rendezvous_gathering_hear(struct rendezvous_gathering *gathering, bool is_newcomer,
    const struct rendezvous_state *seen, struct instant now);
/* Whether the host waits for more of them. */
bool rendezvous_gathering_holds(const struct rendezvous_gathering *gathering,
    const struct rendezvous_state *seen, const struct rendezvous_settings *settings,
    struct instant now);
/* The host looks at all of them. Returns whether it has waited for more, as long as it may. */
bool rendezvous_gathering_end(struct rendezvous_gathering *gathering, struct instant now);
/* Sets `next` to the end of the wait, if that is earlier. */
void rendezvous_gathering_wake(
    const struct rendezvous_gathering *gathering, struct instant now, struct moment *next);

/* The ranks of all workers of one round, computed from the roles of its nodes. The host of the
 * store computes them for the nodes that delegate to it, when a round begins in which all of them
 * do, and tells each node its own. Then these nodes need not tell each other (core/round). The
 * struct is one part of a rendezvous machine. Only this module changes it; others read it. The
 * ranks are those of SimpleElasticAgent._assign_worker_ranks in
 * torch/distributed/elastic/agent/server/api.py, where each node asks the store for its own. */

/* A zeroed struct is valid: there are no ranks. */
struct rendezvous_ranking {
    int64_t round;
    size_t count;
    struct rank_assignment *items; /* by group rank; NULL: there are none */
};

/* Computes the ranks of a round from the roles by group rank. A node without a role, or whose
 * number of workers is none, makes it fail. Returns whether there are ranks now. */
bool rendezvous_ranking_compute(
    struct rendezvous_ranking *ranking, int64_t round, const struct node_role *roles, size_t count);

/* The nodes that delegate to this node, which hosts the store: what each one wishes, and what it
 * was told last of how it stands. A node is told only what concerns it. While a round is open, its
 * participants are told nothing of those who come, so that of many nodes that come at once none
 * costs more than the last. The struct is one part of a rendezvous machine. Only this module
 * changes it; others read it. */

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
