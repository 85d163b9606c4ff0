/* SPDX-License-Identifier: BSD-3-Clause */
/* What the nodes of one complete round tell each other through the store until each can start its
 * workers, and how they leave together, decided: which store operations to make and what their
 * answers mean. Keys, values and order are those of torchrun's agents, so that both kinds can be in
 * one round; see RendezvousStoreInfo in torch/distributed/elastic/rendezvous/api.py,
 * next_rendezvous in …/rendezvous/dynamic_rendezvous.py, and SimpleElasticAgent's
 * _assign_worker_ranks and _exit_barrier in …/elastic/agent/server/api.py. Who is in the round is
 * decided before, by core/rendezvous_machine; spelling is wire/round_exchange_store's business.
 *
 * Among Muster's nodes: rank 0 opens a fresh store for the workers and publishes its address; each
 * node writes its role info; rank 0 waits for all and writes everybody's ranks; the others wait for
 * address and ranks in one request. Rank 0 makes two round trips (WAIT, MULTI_GET), any other node
 * two (WAIT, MULTI_GET); from the last node's role info to its JOINED they add up to four one-way
 * messages and two round trips. A round of one node makes none.
 *
 * When nodes of torchrun's kind take part, the address must be kept from round to round, because
 * they cache it, and published anew in each round for those who come new. torchrun's rank 0
 * publishes only in the first round in which it is rank 0; any other of its nodes looks only in the
 * first round in which it takes part.
 *
 * Rank 0 is torchrun's: what it publishes in this round, if anything, it publishes before its role
 * info. So the others wait for that; when there is no address then, they look in earlier rounds for
 * the one this node published, and write it again, which all of them may do, as it is the same.
 * torchrun's own new nodes, which would wait a minute and fail, find it, too. (Written by SET:
 * PyTorch's server wakes nobody who waits for a key that a COMPARE_SET makes.)
 *
 * Rank 0 is Muster's: it looks for the newest address of earlier rounds. When its owner takes part
 * no more, rank 0 opens its own store. When the owner is a Muster node, rank 0 names it PUBLISHER
 * of this round; the owner wipes its store, which keeps its port, and publishes, whatever its rank.
 * When the owner is torchrun's, its role info comes before anything is published if it lives on its
 * cache, and rank 0 publishes that address again; if none comes for ROUND_EXCHANGE_GRACE_SECONDS,
 * the node shares no store and waits for rank 0's own.
 *
 * What stays broken is what torchrun breaks alone: of two of its nodes with different caches, or
 * with a cache other than what its new rank 0 publishes, one is in a world of its own. That is so
 * when (a) a torchrun node becomes rank 0 for the first time while another one that stays has an
 * address from before, or (b) the owner of the address is gone, and a torchrun node stays. With
 * TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in torchrun's environment it caches nothing, and all of
 * these work. (Where ranks are not exchanged there is no role info to wait for: torchrun's node is
 * then taken to share its store.)
 *
 * The contract with the performer:
 * - Two connections: one for operations answered at once, carried out in the order of the effects,
 *   and one for WAITs, of which at most one is under way. CANCEL_WAIT calls it off: it is not
 *   answered any more, and another WAIT may follow in the same step.
 * - Every answer carries the round of the effect it belongs to; those of another than the present
 *   one are ignored.
 * - A node that loses a connection is in the round no more: ABANDON.
 * - OPEN_WORKER_STORE is answered by STORE_OPENED or STORE_FAILED.
 * - One timer; ARM_TIMER replaces it.
 * One machine serves all rounds of a run; a round that was abandoned is not begun again. */
#ifndef MUSTER_CORE_ROUND_EXCHANGE_H
#define MUSTER_CORE_ROUND_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/node_identity.h"
#include "core/rank_assignment.h"
#include "core/rendezvous_state.h"
#include "core/round_key.h"

/* What a node writes into role_info; raised when the exchange changes incompatibly. */
#define ROUND_EXCHANGE_MUSTER_VERSION 1

/* How long a torchrun node with an address of its own is given to show itself: it looks at the
 * record once a second. */
#define ROUND_EXCHANGE_GRACE_SECONDS 5

/* Rounds whose keys stay, the present one included: in the next one a torchrun node may take part,
 * and look for an address. */
#define ROUND_EXCHANGE_ROUNDS_KEPT 2
/* How many earlier rounds are cleared away at most, the first time. */
#define ROUND_EXCHANGE_CLEARED_MAXIMUM 4

/* How many rounds back an address is looked for. */
#define ROUND_EXCHANGE_LOOK_BACK 1024

enum round_event_kind {
    /* asked by the agent */
    ROUND_EVENT_BEGIN,         /* the round is complete */
    ROUND_EVENT_ABANDON,       /* it is over, as is everything under way for it */
    ROUND_EVENT_BARRIER_ASKED, /* after JOINED: all workers here are done */
    /* answered by the performer */
    ROUND_EVENT_STORE_OPENED,
    ROUND_EVENT_STORE_FAILED,
    ROUND_EVENT_WAITED,     /* WAIT: the keys exist */
    ROUND_EVENT_CHECKED,    /* CHECK */
    ROUND_EVENT_COUNTED,    /* ADD */
    ROUND_EVENT_ROLE_INFOS, /* GET of ALL_ROLE_INFOS */
    ROUND_EVENT_VALUES,     /* GET of any other */
    ROUND_EVENT_TIMER_FIRED,
    ROUND_EVENT_KIND_COUNT,
};

/* What a GET found; what was not asked for, or cannot be read, is NULL, 0 or false. Borrowed. */
struct round_values {
    const char *address;
    int port;              /* 1 … 65535 */
    const char *publisher; /* the text form of an identity */
    bool has_ranks;
    struct rank_assignment ranks;
};

struct round_event {
    enum round_event_kind kind;
    struct instant now;
    int64_t round;        /* of BEGIN; of the effect that is answered */
    struct round_key key; /* of the effect that is answered */
    union {
        struct {
            int group_rank;
            int node_count;
            const struct rendezvous_state *state; /* the participants with their ranks; borrowed */
            const struct node_identity *identity; /* this node's; borrowed */
        } begin;
        struct {
            const char *address; /* this node's, as others reach it; borrowed */
            int port;
        } opened;
        const char *reason; /* STORE_FAILED; borrowed */
        bool is_present;    /* CHECKED: all of the keys */
        int64_t count;      /* COUNTED: the value after adding */
        struct {
            const struct role_info *infos; /* borrowed; without role: it makes no sense */
            size_t count;
        } role_infos;
        struct round_values values;
    };
};

enum round_effect_kind {
    ROUND_EFFECT_OPEN_WORKER_STORE,
    ROUND_EFFECT_SET_ROLE_INFO,
    ROUND_EFFECT_SET_ASSIGNMENTS, /* of all nodes, in one request */
    ROUND_EFFECT_PUBLISH,         /* the keys of ROUND_KEY_PUBLICATION, in one request */
    ROUND_EFFECT_SET,
    ROUND_EFFECT_ADD,
    ROUND_EFFECT_CHECK,
    ROUND_EFFECT_GET,
    ROUND_EFFECT_WAIT, /* on the waiting connection */
    ROUND_EFFECT_CANCEL_WAIT,
    ROUND_EFFECT_CLEAR, /* delete what is left of earlier rounds */
    ROUND_EFFECT_ARM_TIMER,
    ROUND_EFFECT_DISARM_TIMER,
    /* told to the agent */
    ROUND_EFFECT_JOINED,
    ROUND_EFFECT_JOIN_FAILED,
    ROUND_EFFECT_BARRIER_PASSED,
    ROUND_EFFECT_BARRIER_FAILED,
    ROUND_EFFECT_KIND_COUNT,
};

/* Pointers are the machine's and good until the next step. */
struct round_effect {
    enum round_effect_kind kind;
    int64_t round;        /* of the exchange */
    struct round_key key; /* of the requests */
    union {
        bool is_fresh;         /* OPEN_WORKER_STORE: a new server on a new port; else the one there
                                  is, wiped, if there is one: torchrun's nodes know its address */
        struct node_role node; /* SET_ROLE_INFO */
        struct {
            const struct rank_assignment *items; /* one per node */
            size_t count;
        } assignments;
        struct {
            const char *address;
            const char *port;
            const char *publisher;
        } publication;
        struct {
            int64_t first; /* round */
            int64_t last;
            int node_count; /* of the largest, as far as this node knows */
        } clear;
        const char *text;        /* SET */
        int64_t amount;          /* ADD */
        struct instant deadline; /* ARM_TIMER */
        struct {
            int group_rank;
            int node_count;
            struct rank_assignment ranks;
            const char *master_address;
            int master_port;
            int64_t restarts; /* the job has paid for */
        } joined;
        const char *reason; /* JOIN_FAILED, BARRIER_FAILED */
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
    bool is_uniform; /* TORCH_ELASTIC_WORKER_IDENTICAL=1: every node is like this one; ranks are
                        not exchanged */
    struct duration timeout;              /* from BEGIN to JOINED */
    struct duration exit_barrier_timeout; /* from BARRIER_ASKED to BARRIER_PASSED */
};

struct round_exchange;

/* The caller frees the machine with round_exchange_free, which accepts NULL. */
struct round_exchange *round_exchange_new(const struct round_settings *settings);
void round_exchange_free(struct round_exchange *exchange);

/* Takes one event; `effects` is emptied first and then holds what is to be done, in order. */
void round_exchange_step(struct round_exchange *exchange, const struct round_event *event,
    struct round_effects *effects);

#endif
