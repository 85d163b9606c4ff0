/* SPDX-License-Identifier: BSD-3-Clause */
/* Rendezvous with fixed node ranks and a fixed master, for several nodes, decided: which store
 * operations to make and what their answers mean. Keys and order are those of a torchrun agent, so
 * that both kinds can be in one job; see
 * torch/distributed/elastic/rendezvous/static_tcp_rendezvous.py and
 * SimpleElasticAgent._assign_worker_ranks and _exit_barrier in …/elastic/agent/server/api.py.
 *
 * When every agent of the job is Muster, they coordinate besides, under `/<run_id>/muster/`: a
 * restart anywhere is a restart everywhere, with one attempt number; nobody starts attempt N + 1
 * before all workers of attempt N are gone everywhere and node 0 has renewed the workers' store; a
 * final failure anywhere is known to all at once. docs/static-rendezvous.md has the protocol. In a
 * mixed job restarts stay local to a node, as they are among torchrun agents.
 *
 * The performer has two connections to the store: one for operations answered at once, carried out
 * in the order of the effects, and one for WAITs, of which at most one is under way. Spelling is
 * wire/static_rendezvous_store's business. What FAILURE_ASKED and the exit barrier's deadline write
 * should be answered before the agent exits: the others learn of its end by nothing else. One
 * machine serves all attempts of a run. */
#ifndef MUSTER_CORE_STATIC_RENDEZVOUS_H
#define MUSTER_CORE_STATIC_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/rank_assignment.h"
#include "core/static_key.h"

/* What the agents write into role_info; raised when the coordination changes incompatibly. */
#define STATIC_RENDEZVOUS_MUSTER_VERSION 1

/* How long a finished node waits for the others, as in TorchElastic. */
#define STATIC_RENDEZVOUS_EXIT_BARRIER_SECONDS 300

#define STATIC_RENDEZVOUS_VALUE_SIZE 32

enum static_event_kind {
    /* asked by the agent */
    STATIC_EVENT_JOIN_ASKED,
    STATIC_EVENT_BARRIER_ASKED,
    STATIC_EVENT_RESTART_ASKED, /* workers failed here; the job is to go on to the next attempt */
    STATIC_EVENT_FAILURE_ASKED, /* this node will not go on */
    /* answered by the store */
    STATIC_EVENT_CONNECTED,
    STATIC_EVENT_CONNECTION_LOST, /* could not be made, broke, or gave an answer without sense */
    STATIC_EVENT_COUNTED,         /* ADD */
    STATIC_EVENT_WAITED,          /* WAIT: the keys exist */
    STATIC_EVENT_ROLE_INFOS,      /* GET_ROLE_INFOS */
    STATIC_EVENT_ASSIGNMENT,      /* GET_ASSIGNMENT */
    STATIC_EVENT_CHECKED,         /* CHECK */
    STATIC_EVENT_VALUE,           /* GET */
    STATIC_EVENT_RENEWED,         /* RENEW_WORKER_STORE */
    STATIC_EVENT_TIMER_FIRED,
    STATIC_EVENT_KIND_COUNT,
};

struct static_event {
    enum static_event_kind kind;
    struct instant now;
    struct static_key key; /* of the effect that is answered */
    union {
        struct {
            int64_t ticket;
            int attempt;
        } join;        /* JOIN_ASKED */
        int64_t count; /* COUNTED: the value after adding */
        struct {
            const struct role_info *infos; /* borrowed, in node order */
            size_t count;
        } role_infos;
        struct rank_assignment assignment;
        bool is_present;  /* CHECKED */
        const char *text; /* VALUE; borrowed */
    };
};

enum static_effect_kind {
    STATIC_EFFECT_CONNECT, /* both connections, retrying until the timer's deadline */
    STATIC_EFFECT_ADD,     /* 1 to the key; answered only for READY, FINISHED, NUM_MEMBERS */
    STATIC_EFFECT_SET,
    STATIC_EFFECT_COMPARE_SET, /* if absent; not answered */
    STATIC_EFFECT_GET,
    STATIC_EFFECT_CHECK,
    STATIC_EFFECT_WAIT, /* on the waiting connection */
    STATIC_EFFECT_SET_ROLE_INFO,
    STATIC_EFFECT_GET_ROLE_INFOS,
    STATIC_EFFECT_SET_ASSIGNMENTS, /* of all nodes, COORDINATED before them if it is to exist */
    STATIC_EFFECT_GET_ASSIGNMENT,
    STATIC_EFFECT_RENEW_WORKER_STORE, /* node 0: forget every key but the agents' */
    STATIC_EFFECT_ARM_TIMER,
    STATIC_EFFECT_DISARM_TIMER,
    /* told to the agent */
    STATIC_EFFECT_JOINED,
    STATIC_EFFECT_JOIN_FAILED,
    STATIC_EFFECT_BARRIER_PASSED,
    STATIC_EFFECT_BARRIER_FAILED,
    STATIC_EFFECT_PEER_RESTART,
    STATIC_EFFECT_PEER_FAILED,
    STATIC_EFFECT_KIND_COUNT,
};

struct static_effect {
    enum static_effect_kind kind;
    struct static_key key;
    union {
        char value[STATIC_RENDEZVOUS_VALUE_SIZE]; /* SET, COMPARE_SET */
        struct {
            const struct rank_assignment *items; /* the machine's, one per node */
            size_t count;
            bool is_coordinated;
        } assignments;
        struct node_role node;   /* SET_ROLE_INFO */
        struct instant deadline; /* ARM_TIMER */
        struct {
            int attempt;
            int node_count;
            struct rank_assignment ranks;
        } joined;
        struct {
            const char *reason; /* a constant */
            int node;           /* whose doing it was; -1: nobody's in particular */
            bool is_late;       /* not all nodes came in time */
        } failed;               /* JOIN_FAILED, PEER_FAILED */
        int attempt;            /* PEER_RESTART */
    };
};

#define STATIC_EFFECTS_MAXIMUM 12

struct static_effects {
    struct static_effect items[STATIC_EFFECTS_MAXIMUM];
    size_t count;
};

struct static_settings {
    int node_rank;
    int node_count;   /* at least 2 */
    const char *role; /* borrowed for the machine's life */
    int local_world_size;
    struct duration timeout; /* for a join, --rdzv-conf timeout */
    bool is_uniform; /* TORCH_ELASTIC_WORKER_IDENTICAL=1: every node is like this one; no exchange,
                        and so no coordination */
};

enum static_phase {
    STATIC_IDLE,
    STATIC_CONNECTING,
    STATIC_GATHERING, /* joining, until the ranks or the start are known */
    STATIC_RUNNING,
    STATIC_LEAVING, /* in the exit barrier */
    STATIC_OVER,    /* failed, left, or the store is gone */
};

struct static_rendezvous {
    struct static_settings settings;
    enum static_phase phase;
    int64_t ticket; /* of the join asked for last: JOINED and JOIN_FAILED answer it */
    int attempt;
    bool is_connected;
    bool is_coordinated;
    bool has_ranks;
    struct rank_assignment ranks;
    struct rank_assignment *assignments; /* node 0: of all nodes */
    bool is_waiting;                     /* a WAIT is under way … */
    struct static_key waiting;           /* … for this */
    struct static_key wanted;            /* to be waited for as soon as the connection is free */
    bool has_wanted;
    bool is_timer_armed;
    struct instant deadline;
};

void static_rendezvous_init(
    struct static_rendezvous *rendezvous, const struct static_settings *settings);
void static_rendezvous_clear(struct static_rendezvous *rendezvous);

/* Takes one event; `effects` is emptied first and then holds what is to be done, in order. */
void static_rendezvous_step(struct static_rendezvous *rendezvous, const struct static_event *event,
    struct static_effects *effects);

#endif
