/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the virtual cluster share: things to come, connections, and how nodes are told
 * of them. virtual_cluster.c plays processes and users, virtual_network.c the way to the store. */
#ifndef MUSTER_TESTS_VIRTUAL_PARTS_H
#define MUSTER_TESTS_VIRTUAL_PARTS_H

#include "virtual_cluster.h"

#include "wire/static_rendezvous_store.h"

#define VIRTUAL_LONGEST_DELAY 20

/* Something that is to happen to a node. */
struct virtual_happening {
    struct virtual_happening *next;
    int64_t time;
    void (*happen)(struct virtual_cluster *, struct virtual_node *, struct virtual_happening *);
    struct virtual_node *node;
    struct agent_event event;
    struct static_effect effect; /* whose request arrives at the store … */
    struct static_answer answer; /* … or whose answer arrives at the node */
    int connection;
    int rank;
    uint64_t life;
};

/* One end of a connection: requests under way, oldest first, in the order of their answers. */
struct virtual_connection {
    struct store_connection at_store;
    struct virtual_node *node;
    int index;
    bool is_lost;
    int64_t request_time; /* nothing sent later arrives earlier */
    int64_t answer_time;
    struct static_effect unanswered[64];
    size_t unanswered_count;
};

struct instant virtual_instant(int64_t milliseconds);
bool virtual_is_likely(struct virtual_cluster *cluster, int percent);
int64_t virtual_delay(struct virtual_cluster *cluster, int64_t longest);

/* The caller fills in what the happening needs. */
struct virtual_happening *virtual_schedule(struct virtual_cluster *cluster,
    struct virtual_node *node, int64_t time,
    void (*happen)(struct virtual_cluster *, struct virtual_node *, struct virtual_happening *));

/* At this moment, but after the step that is under way. */
void virtual_tell_agent(
    struct virtual_cluster *cluster, struct virtual_node *node, struct agent_event event);
void virtual_tell_rendezvous(
    struct virtual_cluster *cluster, struct virtual_node *node, struct static_event event);
void virtual_tell_rendezvous_later(struct virtual_cluster *cluster, struct virtual_node *node,
    enum static_event_kind kind, int64_t delay);

bool virtual_node_has_processes(const struct virtual_node *node);

#endif
