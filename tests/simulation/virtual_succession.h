/* SPDX-License-Identifier: BSD-3-Clause */
/* A job whose store's host may change, on a virtual clock: the succession machines that ship, of
 * which each may host, and a made-up register, network, and store. Above each machine is as much of
 * a node as is needed to see what it is told: it seeks a connection, sees the store's record, and
 * runs workers in a world that the host has said to be committed. All comes from a seed. */
#ifndef MUSTER_TESTS_VIRTUAL_SUCCESSION_H
#define MUSTER_TESTS_VIRTUAL_SUCCESSION_H

#include "base/random.h"
#include "virtual_register.h"

#define SIM_NODES_MAXIMUM 8
#define SIM_NOBODY (-1)
#define SIM_LOOKED 1
#define SIM_LOOKED_IN_VAIN 2

enum sim_kind {
    SIM_TIMER,   /* of a machine */
    SIM_ANSWER,  /* of the register */
    SIM_APPLY,   /* an append takes effect after it was answered as unknown */
    SIM_DIALLED, /* a connection is made, refused or given up */
    SIM_SEEK,
    SIM_SILENT,  /* the store learns that a node is silent */
    SIM_DOUBT,   /* a node hears nothing on its connection */
    SIM_LOST,    /* a node learns that its connection has ended */
    SIM_SEE,     /* a node sees the store's record */
    SIM_REGROUP, /* the store makes a new round of those who are connected */
    SIM_TOLD,    /* a host that leaves has told the node something */
    SIM_GONE,    /* a host that leaves learns that a node has left its store */
    SIM_END,     /* a host that leaves has left */
    SIM_NEWS,    /* a watch tells of an entry */
};

/* What is to happen. It is void when the node has another life by then. */
struct sim_event {
    struct instant at;
    uint64_t order;
    enum sim_kind kind;
    int node;
    int64_t life;
    uint64_t ticket; /* of what it answers; void when there is a newer one */
    enum succession_event_kind told;
    size_t count; /* SIM_ANSWER: so many entries are seen */
    int64_t renewals;
    int host; /* SIM_DIALLED; SIM_ANSWER: of a look; SIM_SILENT, SIM_GONE: the node */
    enum succession_loss loss;
    struct virtual_entry entry; /* SIM_APPLY: owned */
};

struct sim_node {
    struct succession_machine *machine;
    struct node_identity identity;
    int64_t life; /* counts the processes of this node */
    bool is_alive;
    bool is_stopped;
    bool is_off; /* the machine: nobody refuses connections there */
    bool is_cut_from_register;
    bool has_given_up;
    bool knows_end; /* it has seen that the job is over */

    /* The performer. */
    struct succession_entry entry; /* the last one it was given */
    uint64_t timer_ticket;
    uint64_t register_ticket;
    uint64_t look_ticket;
    int64_t watched; /* the number of the entry that it knows; -1: it does not watch */
    uint64_t dial_ticket;
    uint64_t requests; /* to the register */

    /* Its connection. */
    int host;                /* SIM_NOBODY: none */
    uint64_t connection;     /* counts them */
    bool is_losing;          /* the loss is on its way */
    struct instant left_at;  /* the last one */
    struct instant heard_at; /* of the host or of the register */

    /* Its workers. */
    bool is_running;
    int64_t round;
    uint64_t world; /* a bit for each node */
    struct instant started_at;

    /* Its store. */
    bool is_hosting;
    bool is_leaving;
    int64_t term;
    struct rendezvous_state record;
    bool is_committed; /* the record's round */
    bool is_regrouping;
    uint64_t members;
    uint64_t silent; /* members of whom it is not known yet */
};

struct simulation {
    struct random random;
    uint64_t seed;
    bool is_told; /* what happens is printed */
    struct instant now;
    int node_count;
    int minimum;
    struct sim_node nodes[SIM_NODES_MAXIMUM];
    bool is_cut[SIM_NODES_MAXIMUM][SIM_NODES_MAXIMUM]; /* from, to */
    struct virtual_register reg;
    bool is_register_down;
    bool is_register_slow;
    bool is_stale;
    bool is_treacherous; /* replies are lost, and processes die beside their appends */
    bool has_leavers;    /* in a storm: nodes are told to end, too */
    bool has_watches;    /* the register's engine has; else it never tells of news */
    struct {
        bool is_doomed;        /* who claims next */
        int node;              /* SIM_NOBODY: nobody has claimed yet */
        uint64_t effects_left; /* until it dies */
    } successor;
    struct sim_event *events;
    size_t event_count;
    size_t event_capacity;
    uint64_t order;
    uint64_t starts;      /* of workers */
    uint64_t successions; /* HOST effects */
    uint64_t handovers;   /* claims of a successor that was named, which were won */
    uint64_t dials_in_vain;
    uint64_t news; /* that were told */
    char complaint[256];
};

void simulation_init(struct simulation *simulation, uint64_t seed, int node_count);
void simulation_clear(struct simulation *simulation);

/* A process begins; its machine is on. */
void simulation_start(struct simulation *simulation, int node);
void simulation_kill(struct simulation *simulation, int node);
/* The process is told to end. */
void simulation_leave(struct simulation *simulation, int node);
void simulation_power_off(struct simulation *simulation, int node);
void simulation_stop(struct simulation *simulation, int node);
void simulation_continue(struct simulation *simulation, int node);
void simulation_cut(struct simulation *simulation, int from, int to);
void simulation_heal(struct simulation *simulation);
void simulation_close_job(struct simulation *simulation);

/* Plays for so long, or until there is a complaint. */
void simulation_play(struct simulation *simulation, double seconds);
void simulation_complain(struct simulation *simulation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The alive node that serves the store of the last term, or SIM_NOBODY. */
int simulation_host(const struct simulation *simulation);
/* Whether the last entry says that the job is over. */
bool simulation_is_over(const struct simulation *simulation);
/* Whether all live nodes run workers in the last world that is committed, and it is of all of them;
 * also when there are too few, or the job is closed. */
bool simulation_is_settled(const struct simulation *simulation);
/* Whether these nodes, a bit for each, run workers in the last world that is committed, and it is
 * of them. */
bool simulation_runs(const struct simulation *simulation, uint64_t nodes);

#endif
