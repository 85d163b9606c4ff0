/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of one round's exchange in the store, and groups of keys for which one request asks. By
 * torchrun's keys agents of both kinds find each other. Muster's own keys are in a folder of their
 * own. docs/dynamic-rendezvous.md says which node writes which key, and when, and
 * docs/static-rendezvous.md says it for fixed nodes. Their one round has no folder of its own: its
 * keys are in the folder of the run. Behind the keys: what a round exchange is told and what it
 * wants, which all its parts share (core/round/round_exchange). */
#ifndef MUSTER_CORE_ROUND_ROUND_KEY_H
#define MUSTER_CORE_ROUND_ROUND_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/workers/worker_group.h"

/* Enough for any decision and its NUL: "failed 2147483647 signal 64". */
#define ROUND_DECISION_SIZE 32

/* The number of the one round of fixed nodes. No round of a record has it. */
#define ROUND_OF_FIXED_NODES (-1)

enum round_key_kind {
    /* torchrun's */
    ROUND_KEY_INIT,           /* fixed nodes: counts clients */
    ROUND_KEY_MASTER_ADDR,    /* the address of the workers' store */
    ROUND_KEY_MASTER_PORT,    /* its port, decimal */
    ROUND_KEY_ROLE_INFO,      /* by node */
    ROUND_KEY_ASSIGNED_RANKS, /* by node */
    ROUND_KEY_NUM_MEMBERS,    /* exit barrier: counts finished nodes */
    ROUND_KEY_LAST_MEMBER,    /* exit barrier: exists when all nodes have finished */
    /* Muster's */
    ROUND_KEY_PUBLISHER, /* the owner of the workers' store: the text form of an identity */
    /* Muster's, where another node may come to host the store. */
    ROUND_KEY_COMMITTED, /* exists when the register has the round */
    ROUND_KEY_DONE,      /* by node: it is in the exit barrier */
    /* Muster's, of fixed nodes, by attempt. The first node that writes one of the last three
     * decides. */
    ROUND_KEY_COORDINATED, /* not by attempt: exists when every agent is Muster's */
    ROUND_KEY_READY,       /* counts nodes that are ready to start it */
    ROUND_KEY_FINISHED,    /* counts nodes whose workers all succeeded */
    ROUND_KEY_GATHERED,    /* "all", or "failed <node>" */
    ROUND_KEY_START,       /* "go", or "failed <node>" */
    ROUND_KEY_END,         /* "restart", "done" or "failed <node>" */
    /* Muster's, of fixed nodes: below the prefix of round_key_write_claims, see
     * core/round/round_step. */
    ROUND_KEY_CLAIM_SERVED, /* exists where the store serves claims */
    ROUND_KEY_CLAIM,        /* by node: the node that has the rank */
    ROUND_KEY_RIVAL,        /* by node: another one that would have it */
    /* groups */
    ROUND_KEY_ADDRESS, /* MASTER_ADDR, MASTER_PORT */
    /* PUBLISHER, MASTER_ADDR, MASTER_PORT. A node that reads an address so learns its owner too. */
    ROUND_KEY_PUBLICATION,
    ROUND_KEY_WORLD,          /* MASTER_ADDR, MASTER_PORT, ASSIGNED_RANKS of the node */
    ROUND_KEY_ALL_ROLE_INFOS, /* ROLE_INFO of nodes 0 … node - 1 */
    ROUND_KEY_ALL_DONE,       /* DONE of nodes 0 … node - 1 */
    ROUND_KEY_COUNT,
};

struct round_key {
    enum round_key_kind kind;
    int64_t round; /* the round, or the attempt where the kind is by attempt */
    int node; /* the node, where the kind is by node; the last two groups: the number of nodes */
};

bool round_key_is_decision(enum round_key_kind kind);

/* Adds the key, or the keys of the group in the order given above. They are as on the wire, with
 * torchrun's leading '/'. */
void round_key_list(const struct round_key *key, const char *run_id, struct text_list *out);

/* Adds every key that may exist in the folder of a round with that many nodes; and those that there
 * are besides where another node may come to host the store. */
void round_key_list_all(int64_t round, int node_count, const char *run_id, struct text_list *out);
void round_key_list_of_succession(
    int64_t round, int node_count, const char *run_id, struct text_list *out);

/* Adds DONE of each participant that the record says is done: to the next host of the store it may
 * be gone, and can then not say so again. */
void round_key_list_noted(
    const struct rendezvous_state *record, const char *run_id, struct text_list *out);

/* Appends the beginning of all keys of fixed nodes but INIT. All other keys in their store are the
 * workers', and are deleted when the workers' store is renewed. */
void round_key_write_prefix(const char *run_id, struct text *out);

/* Of fixed nodes: appends the folder that rendezvous_key_write_telling appends, and the key of what
 * rendezvous_key_write_said says. */
void round_key_write_telling(const char *run_id, struct text *out);
void round_key_write_said(const char *run_id, struct text *out);
/* Appends the beginning of the keys by which fixed nodes claim their ranks: presence keys in the
 * store of Muster's agents. */
void round_key_write_claims(const char *run_id, struct text *out);

/* Appends a short form for transcripts: "3/role_info/0", "3/world/1"; of fixed nodes "role_info/0",
 * "end/1". */
void round_key_describe(const struct round_key *key, struct text *out);

/* What a round exchange is told, and what it wants. */

/* The version that a node writes into its role info. It is raised when the exchange changes
 * incompatibly. */
#define ROUND_EXCHANGE_MUSTER_VERSION 1

/* How long rank 0 waits for the role info of torchrun's node that may have a cached address.
 * torchrun's node looks at the record only once a second. */
#define ROUND_EXCHANGE_GRACE_SECONDS 5

/* How many rounds keep their keys, with the present one. A node of torchrun may take part in the
 * next round, and the address is then looked for in earlier rounds. */
#define ROUND_EXCHANGE_ROUNDS_KEPT 2
/* How many earlier rounds the first CLEAR deletes at most. */
#define ROUND_EXCHANGE_CLEARED_MAXIMUM 4

/* How many rounds back a node looks for an address. */
#define ROUND_EXCHANGE_LOOK_BACK 1024

enum round_event_kind {
    /* asked by the agent */
    ROUND_EVENT_BEGIN,         /* the round is complete */
    ROUND_EVENT_RELEASED,      /* the round was held, and all its nodes are ready */
    ROUND_EVENT_ABANDON,       /* the round is over; everything under way for it is dropped */
    ROUND_EVENT_BARRIER_ASKED, /* after JOINED: all workers here are done */
    ROUND_EVENT_RESTART_ASKED, /* fixed: workers failed here; the job goes on to the next attempt */
    ROUND_EVENT_FAILURE_ASKED, /* fixed: this node does not go on */
    /* answered by the performer */
    ROUND_EVENT_CONNECTED, /* this one and the next one: only to fixed nodes */
    /* The node could not connect, the connection broke, or an answer is invalid. */
    ROUND_EVENT_CONNECTION_LOST,
    ROUND_EVENT_STORE_OPENED,
    ROUND_EVENT_STORE_FAILED,
    ROUND_EVENT_WAITED,     /* WAIT: the keys exist */
    ROUND_EVENT_CHECKED,    /* CHECK */
    ROUND_EVENT_COUNTED,    /* ADD */
    ROUND_EVENT_ROLE_INFOS, /* GET of ALL_ROLE_INFOS */
    ROUND_EVENT_VALUES,     /* GET of any other key */
    ROUND_EVENT_TIMER_FIRED,
    ROUND_EVENT_KIND_COUNT,
};

/* What a GET found. A value that was not asked for, or that cannot be read, is NULL, 0 or false.
 * Borrowed. */
struct round_values {
    const char *address;
    int port;              /* 1 … 65535 */
    const char *publisher; /* the text form of an identity */
    bool has_ranks;
    struct rank_assignment ranks;
    const char *decision; /* this and the next one are of fixed nodes */
    const char *claim;    /* CLAIM, RIVAL: the text form of an identity */
};

struct round_event {
    enum round_event_kind kind;
    struct instant now;
    /* BEGIN: the new round; RELEASED: the one that was held; else that of the effect answered. */
    int64_t round;
    struct round_key key; /* of the effect that is answered */
    bool is_gone;         /* VALUES, ROLE_INFOS: some of what was asked for is not there */
    union {
        struct {
            int group_rank;
            int node_count;
            const struct rendezvous_state *state; /* the participants with their ranks; borrowed */
            const struct node_identity *identity; /* of this node; borrowed */
            /* World size 0: the nodes exchange them. Else each node of the round knows its own. */
            struct rank_assignment ranks;
            /* Of the workers' store; borrowed. NULL: the nodes tell each other. It is told with
             * ranks only, and to no rank 0. */
            const char *master_address;
            int master_port;
            /* The host of the job's store tells ranks and address by RELEASED, when all nodes of
             * the round are ready. Nobody joins before. Rank 0 opens its store. */
            bool is_held;
            bool had_roll; /* in this round or before it, nodes have answered a roll */
            int attempt;   /* of fixed nodes, who have neither state nor identity, but an address */
        } begin;
        struct { /* RELEASED; each as in `begin` */
            struct rank_assignment ranks;
            const char *master_address;
            int master_port;
        } released;
        struct {
            const char *address; /* at which other nodes reach this node's store; borrowed */
            int port;
        } opened;
        const char *reason; /* STORE_FAILED; borrowed */
        bool is_host;       /* BARRIER_ASKED: other nodes need the store of this node */
        int signal;         /* FAILURE_ASKED: the signal that told this node to end; 0: none */
        bool is_present;    /* CHECKED: all keys exist */
        int64_t count;      /* COUNTED: the value after adding */
        struct {
            /* Borrowed; the role is NULL where the role info cannot be read. */
            const struct role_info *infos;
            size_t count;
        } role_infos;
        struct round_values values;
    };
};

enum round_effect_kind {
    ROUND_EFFECT_CONNECT, /* fixed: opens both connections, retrying until the timer fires */
    ROUND_EFFECT_OPEN_WORKER_STORE,
    /* rank 0, where settings ask for it: whom the workers' store serves; before any other node
     * knows that it may connect */
    ROUND_EFFECT_ADMIT,
    ROUND_EFFECT_SET_ROLE_INFO,
    ROUND_EFFECT_SET_ASSIGNMENTS, /* of all nodes, in one request */
    ROUND_EFFECT_PUBLISH,         /* the keys of ROUND_KEY_PUBLICATION, in one request */
    ROUND_EFFECT_SET,
    ROUND_EFFECT_DECIDE, /* writes the key if it is absent */
    ROUND_EFFECT_ADD,
    ROUND_EFFECT_CHECK,
    ROUND_EFFECT_GET,
    ROUND_EFFECT_WAIT, /* on the waiting connection */
    ROUND_EFFECT_CANCEL_WAIT,
    ROUND_EFFECT_FORGET, /* what was said and asked for this round: the next host is not told */
    ROUND_EFFECT_CLEAR,  /* delete the keys of earlier rounds */
    ROUND_EFFECT_ARM_TIMER,
    ROUND_EFFECT_DISARM_TIMER,
    /* told to the agent */
    ROUND_EFFECT_OPENED, /* rank 0, whose ranks the host tells: where the workers meet */
    ROUND_EFFECT_JOINED,
    ROUND_EFFECT_JOIN_FAILED,
    ROUND_EFFECT_BARRIER_PASSED,
    ROUND_EFFECT_BARRIER_FAILED,
    /* The timeout is over, but the host of the store goes on waiting for the other nodes. */
    ROUND_EFFECT_BARRIER_LATE,
    /* told to the agent, only of fixed nodes */
    ROUND_EFFECT_RANK_DISPUTED, /* two nodes have this node's rank; the one that came later waits */
    ROUND_EFFECT_PEER_RESTART,
    ROUND_EFFECT_PEER_FAILED, /* also after FAILURE_ASKED, where that node's failure was first */
    ROUND_EFFECT_KIND_COUNT,
};

/* Pointers belong to the machine and are good until the next step. */
struct round_effect {
    enum round_effect_kind kind;
    int64_t round;        /* of the exchange */
    struct round_key key; /* of the requests */
    union {
        /* OPEN_WORKER_STORE. True: a new server on a new port. False: the server that is open
         * already, wiped, since torchrun's nodes know its address; or a new one if none is open. */
        bool is_fresh;
        struct { /* SET_ROLE_INFO */
            struct node_role node;
            const char *addresses; /* the performer's to fill in; NULL: they are not told */
        };
        struct {
            const char
                *addresses; /* of all nodes, parted by blanks; NULL: not all of them are known */
            const char *silent; /* the node that has not told them; NULL: no node can */
        } admitted;
        struct {
            const struct rank_assignment *items; /* one per node */
            size_t count;
            bool is_coordinated;
        } assignments;
        struct {
            const char *address;
            const char *port;
            const char *publisher;
        } publication;
        struct {
            int64_t first; /* round */
            int64_t last;
            /* Of the largest round, as far as this node knows. 1: only rank 0 has written keys that
             * are to be deleted, since the host of the job's store has told the others what they
             * need. `done_count` is that of the largest round in any case: of the keys by which
             * nodes say that they are done, where another node may come to host the store. */
            int node_count;
            int done_count;
        } clear;
        const char *text;        /* SET, DECIDE */
        int64_t amount;          /* ADD */
        struct instant deadline; /* ARM_TIMER */
        struct {
            int group_rank;
            int node_count;
            struct rank_assignment ranks;
            const char *master_address;
            int master_port;
            int64_t restarts; /* how many restarts the job has used; fixed nodes: the attempt */
        } joined;
        struct { /* OPENED */
            const char *address;
            int port;
        } opened;
        int64_t attempt; /* PEER_RESTART: the next one */
        struct {
            /* JOIN_FAILED, BARRIER_FAILED, BARRIER_LATE, PEER_FAILED, RANK_DISPUTED */
            const char *reason;
            int signal;      /* PEER_FAILED: the signal that told that node to end; 0: none */
            bool is_cut_off; /* PEER_FAILED: the store is gone, and with it what others would say */
        };
    };
};

#define ROUND_EFFECTS_MAXIMUM 12

struct round_effects {
    struct round_effect items[ROUND_EFFECTS_MAXIMUM];
    size_t count;
};

struct round_settings {
    const char *role; /* borrowed for the machine's life */
    int local_world_size;
    /* TORCH_ELASTIC_WORKER_IDENTICAL=1: every node is like this one, and ranks are not exchanged.
     */
    bool is_uniform;
    /* The workers' store serves only machines of the round's nodes, which tell their addresses. */
    bool is_store_for_round;
    /* Another node may come to host the store: a round begins when it is committed, and a node in
     * the exit barrier says so with a key of its own, which it can say again. */
    bool has_succession;
    struct duration timeout; /* from BEGIN to JOINED */
    const char *where;       /* fixed nodes: the job's store, for messages; borrowed for as long */
    /* Fixed nodes: the text form of the identity by which this node claims its rank
     * (core/round/round_step); borrowed for as long. NULL: it claims none. */
    const char *claim;
    /* The time from BARRIER_ASKED to BARRIER_PASSED or BARRIER_FAILED. For the host of the store it
     * is the time to BARRIER_LATE: the host waits as long as other nodes need the store. */
    struct duration exit_barrier_timeout;
};

#endif
