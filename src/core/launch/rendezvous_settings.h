/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of a dynamic rendezvous: sizes, timeouts, policies. The defaults of the first part
 * are TorchElastic's; see RendezvousSettings and RendezvousTimeout in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */
#ifndef MUSTER_CORE_LAUNCH_RENDEZVOUS_SETTINGS_H
#define MUSTER_CORE_LAUNCH_RENDEZVOUS_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"

/* What the remaining nodes do when a node is gone. */
enum rendezvous_on_node_loss {
    RENDEZVOUS_ON_NODE_LOSS_RESTART,  /* go on at once if enough nodes remain */
    RENDEZVOUS_ON_NODE_LOSS_WAIT,     /* wait for a new node until the join timeout, then go on */
    RENDEZVOUS_ON_NODE_LOSS_TORCHRUN, /* do nothing until a worker fails */
};

enum rendezvous_scale_up {
    /* A new node is admitted once `scale_up_interval` has passed since the round began; zero: at
     * once. */
    RENDEZVOUS_SCALE_UP_ALLOWED,
    RENDEZVOUS_SCALE_UP_NEVER, /* a new node only replaces a node that is gone */
};

/* A job of more nodes than this delegates unless it is told not to. The work that it saves grows
 * with the square of the number of nodes: 128 agents on two cores were a world after 1.2 s with
 * delegation and 4.3 s without. Up to this number the difference is hardly seen, and there every
 * node reads the whole record, so that its log names all others. */
#define RENDEZVOUS_DELEGATES_ABOVE_NODES 32

struct rendezvous_settings {
    int minimum_nodes;                   /* at least 1 */
    int maximum_nodes;                   /* at least minimum_nodes */
    struct duration join_timeout;        /* join_timeout, 600 s */
    struct duration last_call_timeout;   /* last_call_timeout, 30 s */
    struct duration close_timeout;       /* close_timeout, 30 s */
    struct duration heartbeat_timeout;   /* heartbeat_timeout, 5 s; accepted, but without effect */
    struct duration keep_alive_interval; /* keep_alive_interval, 5 s */
    int keep_alive_max_attempt;          /* keep_alive_max_attempt, 3 */
    /* Muster's own */
    struct duration silence_timeout; /* silence_timeout, 3 s: for a machine that does not answer */
    /* calm_after, 600 s: in a job that delegates, after how long without a lost packet a connection
     * needs no signs of life (core/store/connection_calm). A network that loses one packet in a
     * hundred is found out by then, but for one connection in a hundred thousand. */
    struct duration calm_after;
    /* host_timeout, 30 s: how long a node that has lost the store looks for it again */
    struct duration host_timeout;
    /* fence_timeout, 5 s: with a register, how long workers run on a node that hears of neither it
     * nor the host of the store */
    struct duration fence_timeout;
    struct duration exit_barrier_timeout; /* exit_barrier_timeout, 300 s */
    enum rendezvous_on_node_loss on_node_loss;
    enum rendezvous_scale_up scale_up;
    struct duration scale_up_interval;
    /* delegation: the node that hosts the store writes the record for the others, which do not read
     * it. Each of them has to take part in that, and the host has to offer it. The default depends
     * on maximum_nodes: RENDEZVOUS_DELEGATES_ABOVE_NODES. */
    bool delegates;
};

/* Sets TorchElastic's defaults for one node. Muster's own defaults are: go on at once when a node
 * is lost, and admit new nodes at once. */
void rendezvous_settings_init(struct rendezvous_settings *settings);

/* Whether the nodes of this job react to a lost node before one of their workers fails. */
bool rendezvous_settings_heed_losses(const struct rendezvous_settings *settings);

/* How often a node that delegates gives a sign of life that its host hears: keep_alive_interval, or
 * less often where the host would hear more than a few of them in each second. The host counts on
 * it, so it depends on nothing but the settings of the job. */
struct duration rendezvous_settings_beat(const struct rendezvous_settings *settings);

/* How long an agent may stand still at most without being taken for lost meanwhile, less some time
 * in which its workers can be ended. The others wait for keep_alive_interval times
 * keep_alive_max_attempt, but the last sign of life may be one interval old when the agent stops.
 * Zero: there is no such time. */
struct duration rendezvous_settings_standstill(const struct rendezvous_settings *settings);

#endif
