/* SPDX-License-Identifier: BSD-3-Clause */
/* A job on one or several nodes in one process on a virtual clock: real agent machines, real static
 * rendezvous, a real store table; what they perform on (processes, connections, timers, users) is
 * made up from a seed. It checks what must hold at every moment and aborts the test when it does
 * not; what must hold in the end is for the tests to check. */
#ifndef MUSTER_TESTS_VIRTUAL_CLUSTER_H
#define MUSTER_TESTS_VIRTUAL_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "base/text.h"
#include "core/agent_machine.h"
#include "core/static_rendezvous.h"
#include "core/store_table.h"

#define VIRTUAL_MAXIMUM_NODES 5
#define VIRTUAL_MAXIMUM_WORKERS 4

/* How likely things are, in percent. */
struct virtual_weather {
    int worker_fails;       /* a worker that ends by itself fails */
    int worker_is_stubborn; /* it ignores every signal but SIGKILL */
    int worker_is_stuck;    /* it does not even die of SIGKILL */
    int worker_hangs;       /* it hangs in the kernel for a while, which its agent finds too long */
    int leaves_orphan;      /* its end leaves a process of its session behind */
    int start_fails;        /* of one attempt's start */
    int user_signals;       /* a user signals a node's agent, and half as often again */
};

struct virtual_settings {
    uint64_t seed;
    int node_count;
    int worker_count;
    int max_restarts;
    struct virtual_weather weather;
};

struct virtual_worker {
    bool is_alive;
    bool has_orphan;
    bool is_stubborn;
    bool is_stuck;
    bool has_hung; /* and its agent has been told */
    uint64_t life; /* which process this is; events about earlier ones are stale */
};

struct virtual_connection;

struct virtual_node {
    int rank;
    struct agent_machine machine;
    struct static_rendezvous rendezvous;
    struct virtual_connection *connections[2]; /* for operations, for waits */
    struct virtual_worker workers[VIRTUAL_MAXIMUM_WORKERS];
    int attempt;        /* of the workers */
    int starts;         /* how often workers were started */
    bool is_start_over; /* everybody has started, or nobody else will */
    bool has_told_gone;
    int64_t stop_asked; /* when the first stop signal of this attempt was sent, or -1 */
    int user_signals;
    uint64_t timer_life;
    uint64_t static_timer_life;
    bool is_finished;
    struct agent_outcome outcome;
    int64_t finished_at;
};

struct virtual_cluster {
    struct virtual_settings settings;
    struct random random;
    int64_t now; /* milliseconds */
    struct virtual_node nodes[VIRTUAL_MAXIMUM_NODES];
    struct store_table *store;
    struct virtual_happening *happenings; /* what is to come, in order */
    uint64_t lives;
    int renewals;
    int64_t
        failure_announced_at;  /* by the first agent that gave up and could tell; -1: by nobody */
    bool has_failed_somewhere; /* a worker ended badly, or a user or a start stopped a node */
    struct text transcript;    /* of node 0's agent: "event -> effects" lines */
};

/* Plays the job to its end. Fails the test when it does not end. */
void virtual_cluster_play(struct virtual_cluster *cluster, const struct virtual_settings *settings);
void virtual_cluster_clear(struct virtual_cluster *cluster);

#endif
