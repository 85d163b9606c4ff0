/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the simulated rendezvous cluster share. rendezvous_cluster.c keeps the time,
 * rendezvous_agents.c plays the agents, rendezvous_network.c the store and the ways to it,
 * rendezvous_links.c how they end, rendezvous_torch_node.c the nodes of torchrun's kind,
 * rendezvous_storm.c what befalls them all, rendezvous_checks.c looks whether it goes right. */
#ifndef MUSTER_TESTS_RENDEZVOUS_PARTS_H
#define MUSTER_TESTS_RENDEZVOUS_PARTS_H

#include "base/random.h"
#include "core/rendezvous_machine.h"
#include "rendezvous_cluster.h"

#define CLUSTER_NODES_MAXIMUM 256
#define CLUSTER_MILLISECOND INT64_C(1000000)
#define CLUSTER_SECOND INT64_C(1000000000)

struct cluster;
struct cluster_node;

/* One version of the record, shared by whoever has it. */
struct cluster_snapshot {
    int references;
    struct rendezvous_state state;
};

struct cluster_connection {
    struct cluster_connection *next; /* older */
    struct cluster_node *node;
    bool is_open_here;  /* at the node's end */
    bool is_open_there; /* at the store's end */
    int64_t to_store;   /* nothing sent later arrives earlier */
    int64_t to_node;
    struct node_identity identity; /* presence; tied to it by PRESENT */
    bool is_present;
    bool has_finished;
    int64_t last_heard;
    uint64_t version; /* of the record, as the node knows it: its token */
    uint64_t changes; /* that the node knows of */
    bool awaits_roll;
    int64_t roll_round; /* whose roll is awaited on it */
};

enum cluster_way { CLUSTER_AT_NODE, CLUSTER_TO_NODE, CLUSTER_TO_STORE, CLUSTER_ANYWHERE };

/* Something that is to happen. */
struct cluster_happening {
    int64_t time;
    uint64_t order;
    void (*happen)(struct cluster *cluster, struct cluster_happening *happening);
    enum cluster_way way;
    struct cluster_node *node;             /* whom it befalls, or NULL */
    struct cluster_connection *connection; /* on which it comes, or NULL */
    struct cluster_happening *next;        /* while it is held up */
    struct cluster_snapshot *snapshot;
    uint64_t version;
    uint64_t life;
    int64_t number;
    bool flag;
    struct node_identity identity;
};

struct cluster_queue {
    struct cluster_happening *first;
    struct cluster_happening *last;
};

enum cluster_phase {
    CLUSTER_JOINING,
    CLUSTER_RUNNING,
    CLUSTER_STOPPING, /* its workers */
    CLUSTER_DOUBTING, /* its failure ends the job, unless a node is lost */
    CLUSTER_DONE,     /* in the exit barrier */
    CLUSTER_CLOSING,
    CLUSTER_LEAVING,
    CLUSTER_OVER,
};

struct cluster_torch;

struct cluster_node {
    int index;
    char name[16];
    bool is_torch;
    bool is_flapping;
    struct rendezvous_machine *machine;
    struct cluster_torch *torch;
    struct node_identity identity; /* under which it is known now */
    bool is_alive;                 /* its process */
    bool is_stalled;
    bool is_link_down;
    int64_t wall_offset;
    uint64_t stalls; /* how often; an end of an earlier stall is none of this one */
    uint64_t breaks;
    struct cluster_queue inbox; /* while it is stalled */
    struct cluster_queue held;  /* while its link is down */
    struct cluster_connection *connection;
    bool is_requesting; /* a FETCH or WRITE is under way */
    uint64_t connect_life;
    int64_t connect_deadline;
    uint64_t timer_life;
    int64_t timer_second; /* in which so many timers fired */
    int timers_fired;
    enum cluster_phase phase;
    uint64_t run_life; /* which stay in a phase this is */
    int64_t round;     /* of its world */
    int64_t last_round;
    int64_t behind_since; /* it runs in a round older than the newest; or -1 */
    int64_t over_since;   /* its round is over, and it is not told yet; or -1 */
    int64_t asked_at;     /* for a restart, and there is no new round yet; or -1 */
    int64_t doubts_since; /* whether the job has failed */
    int64_t ended_at;     /* its process, as a participant, and it is not taken out yet; or -1 */
};

/* The world of one round, as it was told first. */
struct cluster_world {
    bool is_told;
    bool may_shrink;
    size_t size;
    struct rendezvous_state state;
    size_t told;      /* nodes that know of it, and so have taken part in its exchange */
    int64_t finished; /* nodes in its exit barrier */
    bool has_answered[CLUSTER_NODES_MAXIMUM]; /* its roll call; by rank */
    int roll;                                 /* how many shall answer; 0: it is not called */
};

struct cluster {
    struct rendezvous_cluster_settings settings;
    struct random random;
    int64_t now;
    struct cluster_happening **heap;
    size_t heap_count;
    size_t heap_capacity;
    uint64_t order;
    uint64_t happened;
    struct cluster_node *nodes[CLUSTER_NODES_MAXIMUM];
    int node_count;
    struct cluster_connection *connections;
    bool is_store_up;
    struct cluster_snapshot *record; /* NULL: none */
    uint64_t version;
    uint64_t changes;
    struct cluster_world *worlds; /* by round */
    size_t world_count;
    size_t world_capacity;
    int64_t newest_round; /* that somebody was told of */
    bool is_storm;
    bool is_finishing;
    bool is_job_over; /* closed, or its store is gone */
    int64_t job_over_at;
    int64_t storm_over_at;
    int64_t finishing_at;

    bool has_newcomer; /* came when workers were done already */
    int gathered_for;  /* looks in a row */
    int closes_asked;
    char *complaint;
    struct rendezvous_cluster_outcome outcome;
};

/* Time and chance. */
int64_t cluster_between(struct cluster *cluster, int64_t low, int64_t high);
bool cluster_is_likely(struct cluster *cluster, int percent);
/* The caller fills in what the happening needs. */
struct cluster_happening *cluster_schedule(struct cluster *cluster, int64_t time,
    enum cluster_way way, struct cluster_node *node,
    void (*happen)(struct cluster *, struct cluster_happening *));
void cluster_queue_release(struct cluster *cluster, struct cluster_queue *queue);
void cluster_queue_drop(struct cluster_queue *queue);

/* The first one is kept. */
__attribute__((format(printf, 2, 3))) void cluster_complain(
    struct cluster *cluster, const char *format, ...);
__attribute__((format(printf, 3, 4))) void cluster_note(
    struct cluster *cluster, const struct cluster_node *node, const char *format, ...);

/* Agents and their machines. */
struct cluster_node *cluster_add_node(struct cluster *cluster, int64_t time, bool is_torch);
void cluster_tell(
    struct cluster *cluster, struct cluster_node *node, struct rendezvous_event event);
void cluster_fail_worker(struct cluster *cluster, struct cluster_node *node, bool gives_up);
void cluster_leave(struct cluster *cluster, struct cluster_node *node);
/* Workers elsewhere that were connected to those of this node fail, if the settings say so. */
void cluster_break_connections(struct cluster *cluster, const struct cluster_node *lost);
/* Its process ends; `is_silent`: without a word to anybody. */
void cluster_end_node(struct cluster *cluster, struct cluster_node *node, bool is_silent);
void cluster_enter_world(
    struct cluster *cluster, struct cluster_node *node, const struct rendezvous_state *state);
void cluster_schedule_finish(struct cluster *cluster, struct cluster_node *node);
void cluster_finish_node(struct cluster *cluster, struct cluster_node *node);
bool cluster_is_live(const struct cluster_node *node);
/* A new stay in a phase. */
void cluster_set_phase(struct cluster_node *node, enum cluster_phase phase);
struct wall_time cluster_wall(const struct cluster *cluster, const struct cluster_node *node);

/* The store and the ways to it. */
void cluster_connect(struct cluster *cluster, struct cluster_node *node, int64_t deadline);
struct cluster_connection *cluster_open(struct cluster *cluster, struct cluster_node *node);
void cluster_perform(
    struct cluster *cluster, struct cluster_node *node, const struct rendezvous_effect *effect);
void cluster_ask_write(struct cluster *cluster, struct cluster_node *node,
    const struct rendezvous_state *state, bool is_quiet);
void cluster_ask_fetch(struct cluster *cluster, struct cluster_node *node);
void cluster_enter_barrier(struct cluster *cluster, struct cluster_node *node);
/* On its way to the store, in order. */
struct cluster_happening *cluster_send(struct cluster *cluster,
    struct cluster_connection *connection,
    void (*happen)(struct cluster *, struct cluster_happening *));
void cluster_close_there(struct cluster *cluster, struct cluster_connection *connection);
/* The node's end learns that the connection is no more. */
void cluster_lose(struct cluster *cluster, struct cluster_connection *connection, bool is_silent);
void cluster_break_link(struct cluster *cluster, struct cluster_node *node, int64_t duration);
void cluster_mend_link(struct cluster *cluster, struct cluster_node *node);
void cluster_stall(struct cluster *cluster, struct cluster_node *node, int64_t duration);
void cluster_resume(struct cluster *cluster, struct cluster_node *node);
void cluster_drop_store(struct cluster *cluster, bool is_silent);
void cluster_watch_presence(struct cluster *cluster);
void cluster_snapshot_drop(struct cluster_snapshot *snapshot);
struct cluster_world *cluster_world_of(struct cluster *cluster, int64_t round);

/* torchrun's kind. */
struct cluster_torch *cluster_torch_new(void);
void cluster_torch_free(struct cluster_torch *torch);
void cluster_torch_start(struct cluster *cluster, struct cluster_node *node);
void cluster_torch_answer(struct cluster *cluster, struct cluster_node *node,
    const struct rendezvous_state *state_or_null);
void cluster_torch_restart(struct cluster *cluster, struct cluster_node *node);
void cluster_torch_close(struct cluster *cluster, struct cluster_node *node);

/* What befalls them. */
void cluster_plan_storm(struct cluster *cluster);

/* What must hold. */
void cluster_check_write(struct cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after);
void cluster_check_world(
    struct cluster *cluster, const struct cluster_node *node, const struct rendezvous_state *state);
/* It was told that its round is over … */
void cluster_check_news(struct cluster *cluster, const struct cluster_node *node);
/* … or has failed. */
void cluster_check_failure(struct cluster *cluster, const struct cluster_node *node);
/* It was told that its failure ends the job. */
void cluster_check_doubt(struct cluster *cluster, const struct cluster_node *node);
void cluster_check_progress(struct cluster *cluster);
bool cluster_is_gathered(struct cluster *cluster);

#endif
