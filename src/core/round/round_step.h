/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of the round exchange: its state, and what its two parts do in a step. Only they use
 * it: round_exchange, and the second part of this file, for what only fixed nodes do. */
#ifndef MUSTER_CORE_ROUND_ROUND_STEP_H
#define MUSTER_CORE_ROUND_ROUND_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/round/round_key.h"
#include "core/workers/worker_group.h"

enum round_phase {
    ROUND_IDLE,
    ROUND_CONNECTING, /* fixed nodes */
    ROUND_CLAIMING,   /* fixed nodes: is the rank this node's? */
    ROUND_JOINING,
    ROUND_DIAGNOSING, /* too late: the node finds out which nodes are missing */
    ROUND_JOINED,
    ROUND_LEAVING,  /* in the exit barrier */
    ROUND_COUNTING, /* too late: the node finds out how many nodes have arrived */
    ROUND_ENDED,    /* the agent knows the result; nothing happens until the next round */
};

enum round_address_stage {
    ROUND_ADDRESS_UNKNOWN,
    ROUND_ADDRESS_OPENING, /* this node's store is being opened */
    ROUND_ADDRESS_SEEKING, /* the node looks for it in earlier rounds */
    /* The node waits for the role info of torchrun's node, which may use an earlier address. */
    ROUND_ADDRESS_LISTENING,
    ROUND_ADDRESS_SUMMONED, /* rank 0 has named another node to publish */
    ROUND_ADDRESS_EXPECTED, /* another node will publish, or has published */
    ROUND_ADDRESS_KNOWN,
};

struct round_address {
    enum round_address_stage stage;
    struct text text; /* the address of the workers' store, once found or published */
    int port;
    char port_text[12];
    int owner;              /* the rank of the node whose store it is */
    struct text owner_text; /* the identity of the owner */
    int64_t sought;         /* the earlier round in which the node looks */
    bool is_open;           /* this node's store is open for this round */
    struct text own_text;   /* the address of this node's store */
    int own_port;
    bool has_opened; /* this node has opened a store in some round */
};

/* Of fixed nodes. */
struct round_claim {
    struct text other;       /* the claim of another node with this rank; empty: none was seen */
    struct instant since;    /* when it was seen first */
    struct instant deadline; /* until when this node waits for that one to go */
    bool is_told;            /* both know of each other */
};

/* What this node knows of the keys of earlier rounds. */
struct round_clearing {
    int64_t cleared;     /* it has deleted those of the rounds before this one */
    int largest_count;   /* of nodes, in all rounds in which this node was */
    bool has_begun;      /* this node was in a round */
    int64_t last;        /* … this one was the last */
    int64_t keyed_until; /* no round after this one has keys of each node; each before it may … */
    bool had_roll;       /* … and so may all where nodes have answered a roll */
};

struct round_exchange {
    struct round_settings settings;
    enum round_phase phase;
    int64_t round;
    int group_rank;
    int node_count;
    int64_t restarts; /* fixed nodes: the attempt */
    struct round_clearing clearing;
    bool has_foreign;            /* a node of torchrun takes part */
    bool has_met_foreign;        /* … or did in an earlier round, and may come back */
    struct node_identity *nodes; /* by rank; NULL: they are a crowd, or fixed nodes */
    struct node_identity self;   /* in a crowd, and … */
    struct node_identity other;  /* … what stands for every other node */
    struct instant deadline;     /* of the join */
    bool is_timer_armed;
    struct instant timer;
    bool is_waiting; /* a WAIT for `waiting` is under way */
    struct round_key waiting;
    bool has_wanted; /* a WAIT for `wanted` follows it */
    struct round_key wanted;
    struct round_address address;
    bool is_ranked;    /* the host of the job's store has told the ranks, or will */
    bool is_held;      /* it will, when all nodes are ready */
    bool is_committed; /* the register has the round, where there is one */
    bool is_gathering; /* rank 0 waits for the role infos, or has them */
    bool has_ranks;
    struct rank_assignment ranks;
    struct rank_assignment *assignments; /* rank 0: the ranks of all nodes, once computed */
    struct text admitted;                /* rank 0: the addresses of all nodes … */
    struct text silent;                  /* … or the name of one that has not told its own */
    bool is_coordinated;                 /* fixed nodes: every agent is Muster's */
    bool is_cut_off;                     /* fixed nodes: the connection was lost */
    bool has_restarted;                  /* fixed nodes: this one restarts its workers itself */
    char failure[ROUND_DECISION_SIZE];   /* fixed nodes: this node's, as it is written */
    struct round_claim claim;            /* fixed nodes */
    bool stays_in_barrier;               /* other nodes need this node's store */
    bool is_barrier_late;                /* this node stays although the timeout is over */
    int64_t arrived;                     /* how many nodes were in the barrier when last seen */
    int examined;                        /* diagnosis: the node whose role info is checked */
    int missing;
    struct text reason;
};

struct round_step {
    struct round_exchange *exchange;
    const struct round_event *event;
    struct round_effects *effects;
};

/* Adds the effect, and sets its round to that of the exchange. */
void round_step_push(struct round_step *step, struct round_effect effect);
void round_step_push_key(
    struct round_step *step, enum round_effect_kind kind, struct round_key key);
/* SET; `text` is good until the next step. */
void round_step_set(struct round_step *step, enum round_key_kind key, const char *text);
void round_step_add(struct round_step *step, struct round_key key, int64_t amount);

/* A key of the present round: one without a number, and one that is by node. */
struct round_key round_step_key(const struct round_step *step, enum round_key_kind kind);
struct round_key round_step_node_key(
    const struct round_step *step, enum round_key_kind kind, int node);
/* A key of fixed nodes that is by attempt: of the present one, or `attempts_on` later. */
struct round_key round_step_attempt_key(
    const struct round_step *step, enum round_key_kind kind, int attempts_on);

/* Waits for the key as soon as the waiting connection is free. */
void round_step_want(struct round_step *step, struct round_key key);

void round_step_arm_timer(struct round_step *step, struct instant deadline);
void round_step_disarm_timer(struct round_step *step);

/* Ends the join or the barrier with the reason in `exchange->reason`. */
void round_step_end(struct round_step *step, enum round_effect_kind kind);
/* Ends the join with a reason that this node knows, so no diagnosis is needed. */
__attribute__((format(printf, 2, 3))) void round_step_fail(
    struct round_step *step, const char *format, ...);

/* The node of this rank. Not for fixed nodes. */
const struct node_identity *round_step_node(const struct round_step *step, int node);
/* Appends "node 1 (b_2_0)", or "node 1" for fixed nodes. */
void round_step_describe_node(const struct round_step *step, int node, struct text *out);

bool round_step_is_fixed(const struct round_step *step);
/* Whether this node is the one of rank 0. */
bool round_step_is_first(const struct round_step *step);
bool round_step_is_foreign(const struct round_step *step, int node);

/* Where there is a register: waits until it has the round. Returns false when it has. The node
 * waits beside the last request of the exchange, so that this takes no further round trip where the
 * register is fast. */
bool round_step_awaits_commit(struct round_step *step);
/* Tells JOINED as soon as the workers' store and the ranks are known, and the round is committed.
 */
void round_step_join(struct round_step *step);
/* Rank 0: waits for the role infos, unless it does already. */
void round_step_gather(struct round_step *step);

/* Whether this node waits in the exit barrier, or counts who is there. */
bool round_step_is_in_barrier(const struct round_step *step);
/* Passes the exit barrier, if the node is in it. */
void round_barrier_take_waited(struct round_step *step);

/* A part of the round exchange: which keys of earlier rounds rank 0 has deleted. All nodes are in
 * its round, so no node needs the round before the previous one. Of rounds whose ranks the host of
 * the store has told, the nodes have written no keys, and a job of thousands need not delete them.
 * Beside torchrun's nodes the keys stay, because addresses are looked for in earlier rounds. */

/* A round begins. The exchange knows its nodes, and whether they are told their ranks. */
void round_clearing_note_begin(struct round_step *step);

/* A part of the round exchange: what only fixed nodes do. They connect to a store that is known
 * beforehand. They tell each other of restarts and failures, which changing nodes find in their
 * record.
 *
 * They do so when every agent of the job is Muster's, with keys under `/<run_id>/muster/`. A
 * restart on one node restarts all nodes, with the same attempt number. No node starts attempt N +
 * 1 before all workers of attempt N have ended on all nodes and rank 0 has renewed the workers'
 * store. All nodes learn at once that a node has failed for good. docs/static-rendezvous.md has the
 * protocol. In a job with agents of both kinds a restart stays on its node, as among torchrun's
 * agents. */

/* A part of the round exchange: each fixed node claims its rank before it meets the others, so that
 * two nodes with one rank (--node-rank) are told so, and the second takes no part.
 *
 * A claim is a presence key (core/store/store_presence) that holds the node's name: Muster's store
 * lets nobody else write it until the connection of the node that did has ended. So a node that is
 * started again gets its rank as soon as the one before it is gone. A node that finds another's
 * claim looks again each second. At the second look it tells both nodes: its own log, and by the
 * key RIVAL, which is a presence key, too, the other one, which looks at that key while it waits
 * for the meeting. It gives up
 * when the other's claim has outlived the time in which the store would have noticed that the
 * machine of the other is gone.
 *
 * Where the store serves no claims, as that of a node of torchrun's, there are none. torchrun has
 * nothing like it: two of its agents with one rank overwrite each other's keys. */

/* CONNECTED. Each of the first three returns true when this node may meet the others now. */
bool round_claim_begin(struct round_step *step);
/* CHECKED of CLAIM_SERVED, and VALUES of CLAIM. Answers that come later than that are ignored. */
bool round_claim_take_checked(struct round_step *step);
bool round_claim_take_values(struct round_step *step);
/* The timer: the node looks again, or gives up. */
void round_claim_wait_on(struct round_step *step);
/* VALUES of RIVAL. */
void round_claim_take_rival(struct round_step *step);

/* Releases what the exchange keeps of claims. */
void round_claim_clear(struct round_claim *claim);

/* A part of the round exchange: after a join that has timed out, it finds out which nodes are
 * missing, so that JOIN_FAILED can name them. */

/* The join has timed out. */
void round_diagnosis_start(struct round_step *step);
void round_diagnosis_take_checked(struct round_step *step);
/* The store has not answered the questions in time. */
void round_diagnosis_time_out(struct round_step *step);

/* BEGIN, of the first attempt or of a later one. */
void static_round_begin(struct round_step *step);
/* CONNECTED: what the node does before it writes its role info, and after it. */
void static_round_meet(struct round_step *step);
void static_round_start(struct round_step *step);

/* The timer of a join: the node looks whether another node has given up, or gives up itself. */
void static_round_wait_on(struct round_step *step);
/* Answers that look. */
void static_round_take_checked(struct round_step *step);

/* RESTART_ASKED, FAILURE_ASKED, and the deadlines of a join and of the exit barrier. */
void static_round_restart(struct round_step *step);
void static_round_fail(struct round_step *step);
void static_round_join_late(struct round_step *step);
void static_round_leave_late(struct round_step *step);

/* Answers of ADD (but to NUM_MEMBERS), of GET of a decision, and of OPEN_WORKER_STORE. */
void static_round_take_count(struct round_step *step);
void static_round_take_decision(struct round_step *step);
void static_round_take_renewed(struct round_step *step);
void static_round_lose_connection(struct round_step *step);

#endif
