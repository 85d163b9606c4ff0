/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange of the nodes of one complete round through the store: until each of them can start
 * its workers, and in the exit barrier. The machine decides which store operations to make, and
 * what the answers mean. Keys, values and order are those of torchrun's agents, so that nodes of
 * both kinds can be in one round; see RendezvousStoreInfo in
 * torch/distributed/elastic/rendezvous/api.py, next_rendezvous in
 * …/rendezvous/dynamic_rendezvous.py, and SimpleElasticAgent's _assign_worker_ranks and
 * _exit_barrier in …/elastic/agent/server/api.py. core/rendezvous_machine has decided before which
 * nodes are in the round. wire/round_exchange_store spells the operations.
 *
 * When all nodes are Muster's: rank 0 opens a new store for the workers and publishes its address.
 * Each node writes its role info. Rank 0 waits for all role infos and writes the ranks of all
 * nodes. The other nodes wait for the address and their ranks in one request. Each node makes two
 * round trips (WAIT, MULTI_GET). From the role info of the last node to its JOINED there are four
 * one-way messages and two round trips. A round of one node makes no round trip.
 *
 * Where the host of the store tells each node its ranks (core/rendezvous/rendezvous_serving), it
 * tells the address that rank 0 has opened as well, and no node waits for the role infos of the
 * others. If nodes of the round may still end their old workers, it holds the round: it tells both
 * when all are ready.
 *
 * When torchrun's nodes take part, all rounds must have the same address, because these nodes cache
 * it; and the address must be published again in each round for nodes that are new. One that comes
 * late may miss a round, so rank 0 keeps its address in a round without them, too. A node of
 * torchrun publishes only in the first round in which it is rank 0. With any other rank it reads
 * the address only in the first round in which it takes part.
 *
 * When rank 0 is torchrun's: if it publishes in this round, it publishes before it writes its role
 * info. So Muster's nodes wait for that role info. If there is no address then, they look in
 * earlier rounds for the address that this node has published, and write it again. All of them may
 * write it, since all write the same address. New nodes of torchrun find it too; without it they
 * would wait a minute and fail. (Muster's nodes write it by SET: PyTorch's server wakes no client
 * that waits for a key which a COMPARE_SET creates.)
 *
 * When rank 0 is Muster's: it looks for the newest address of earlier rounds. The owner of an
 * address is the node whose store it is. If the owner is not in this round, rank 0 opens its own
 * store. If the owner is Muster's, rank 0 names it PUBLISHER of this round; the owner wipes its
 * store, which keeps its port, and publishes the address, whatever its rank. If the owner is
 * torchrun's and uses its cached address, it writes its role info before any node has published,
 * and rank 0 publishes that address again. If no role info comes for ROUND_EXCHANGE_GRACE_SECONDS,
 * the owner shares no store and waits for an address, so rank 0 opens its own store.
 *
 * Muster cannot mend what torchrun breaks without it. A node of torchrun whose cached address
 * differs from the address of the round has a world of its own. This happens when (a) a node of
 * torchrun becomes rank 0 for the first time while another node of torchrun has cached an address
 * before, or (b) the owner of the address is gone and a node of torchrun stays. With
 * TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in torchrun's environment its nodes cache nothing, and all
 * these cases work. (Where ranks are not exchanged there is no role info to wait for. Muster then
 * assumes that torchrun's node shares its store.)
 *
 * The ranks and the store of fixed nodes are known beforehand. They have one round for the whole
 * run, and no record. Each node claims its rank (core/round/round_fixed), counts itself in `init/`
 * and writes its role info, and every node but rank 0 waits only for its ranks. BEGIN comes again
 * for every attempt. When all nodes are Muster's, they also coordinate: a restart on one node
 * restarts all nodes. See core/round/round_fixed, docs/static-rendezvous.md, and
 * torch/distributed/elastic/rendezvous/static_tcp_rendezvous.py.
 *
 * The contract with the performer:
 * - The performer has two connections. One is for operations that the store answers at once; they
 *   are carried out in the order of the effects. The other one is for WAITs, of which at most one
 *   is under way. CANCEL_WAIT cancels it: it is not answered any more, and another WAIT may follow
 *   in the same step.
 * - Every answer carries the round of its effect. The machine ignores answers of other rounds than
 *   the present one.
 * - A node that loses a connection is no longer in the round: it gets ABANDON. A fixed node gets
 *   CONNECTION_LOST instead.
 * - The performer answers OPEN_WORKER_STORE by STORE_OPENED or STORE_FAILED. For fixed nodes it
 *   deletes every key of the store but the agents'.
 * - The agent should not end before the store has answered every DECIDE, because the other nodes
 *   learn of its end only from these.
 * - The machine has one timer. ARM_TIMER replaces it.
 *
 * One machine serves all rounds of a run. A round that was abandoned does not begin again. */
#ifndef MUSTER_CORE_ROUND_ROUND_EXCHANGE_H
#define MUSTER_CORE_ROUND_ROUND_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/round/round_key.h"
#include "core/workers/rank_assignment.h"

struct round_exchange;
struct round_step;

/* A part of the round exchange: the exit barrier, in which a node whose workers are done waits for
 * the other nodes. Matches barrier() in torch/distributed/elastic/utils/store.py, as
 * SimpleElasticAgent calls it. */

/* Answers: ADD, WAIT of LAST_MEMBER, and the timer. */
void round_barrier_take_waited(struct round_step *step);

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
            int signal; /* PEER_FAILED: the signal that told that node to end; 0: none */
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
     * (core/round/round_fixed); borrowed for as long. NULL: it claims none. */
    const char *claim;
    /* The time from BARRIER_ASKED to BARRIER_PASSED or BARRIER_FAILED. For the host of the store it
     * is the time to BARRIER_LATE: the host waits as long as other nodes need the store. */
    struct duration exit_barrier_timeout;
};

/* What the host of the store may know of this node to tell it its ranks. The role is NULL where a
 * node needs no ranks from others, or the exchange for something else. */
struct node_role round_settings_role(const struct round_settings *settings);

struct round_exchange;

/* The caller frees the machine with round_exchange_free, which accepts NULL. */
struct round_exchange *round_exchange_new(const struct round_settings *settings);
void round_exchange_free(struct round_exchange *exchange);

/* Takes one event. It empties `effects` first, and then fills it with what the performer is to do,
 * in order. */
void round_exchange_step(struct round_exchange *exchange, const struct round_event *event,
    struct round_effects *effects);

#endif
