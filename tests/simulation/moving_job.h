/* SPDX-License-Identifier: BSD-3-Clause */
/* A job of whole nodes whose store's host may move, on a virtual clock. The nodes are what ships:
 * node machines with their succession machines, the record store of wire, the spelling of
 * wire/round; so is the store of each term: the table of core/store with its presence, and its
 * codecs. Workers, processes, connections and the register are made up. moving_job.c keeps time,
 * processes and rules, moving_store.c the stores and the ways to them, moving_succession.c the
 * register and who hosts, moving_round.c the round, moving_node.c what else a node's machines want.
 * All comes from a seed. */
#ifndef MUSTER_TESTS_MOVING_JOB_H
#define MUSTER_TESTS_MOVING_JOB_H

#include "base/random.h"
#include "core/node/node_machine.h"
#include "core/store/store_presence.h"
#include "core/store/store_table.h"
#include "resting_order.h"
#include "virtual_register.h"
#include "wire/rendezvous/rendezvous_record_store.h"
#include "wire/round/round_exchange_store.h"
#include "wire/store/store_codec.h"

#define MOVING_NODES_MAXIMUM 12
#define MOVING_NOBODY (-1)
#define MOVING_RUN_ID "job"
#define MOVING_SILENCE_SECONDS 3.0
#define MOVING_FENCE_SECONDS 5.0
#define MOVING_TERMINATE 15
#define MOVING_KILL 9

struct moving_job;
struct moving_node;

/* What is to happen. It waits while the process that it is for is stopped, and is void when that
 * has ended. */
struct moving_event {
    struct instant at;
    uint64_t order;
    void (*happen)(struct moving_job *job, struct moving_event *event);
    int node; /* MOVING_NOBODY: it is for no process */
    int64_t life;
    uint64_t ticket;
    int64_t number;
    void *subject;
    struct bytes bytes;         /* owned */
    struct virtual_entry entry; /* the record is owned */
};

/* The store of one term. */
struct moving_store {
    struct moving_store *next;
    int host;
    int64_t life; /* of the host */
    bool is_up;
    struct store_table *table;
    struct store_presence *presence;
    struct store_effects effects;
    struct store_effects own_effects;
    bool is_carrying_out;
};

struct moving_connection {
    struct moving_connection *next;
    struct moving_store *store;
    int node;
    int64_t life;
    int lane;
    bool is_open_here;
    bool is_open_there;
    struct instant last_there; /* nothing sent later arrives earlier */
    struct instant last_here;
    int64_t sent_there; /* messages, in their order … */
    int64_t sent_here;
    int64_t passed_there; /* … and so many of them have arrived */
    int64_t passed_here;
    struct store_connection stored;
    struct store_presence_holder holder;
    struct store_request_decoder requests;
    struct store_reply_decoder replies;
};

/* A request of the round, as agent/rendezvous/agent_round keeps it: what was said, and what was
 * asked and is not answered, is sent again to the next host. */
struct moving_asked {
    struct moving_asked *next;
    struct round_question question;
    struct owned_request request;
    bool is_under_way;
    bool is_asked_again; /* a GET: what it asks for was there, and will be there again */
    bool is_dropped;     /* freed when it is answered */
};

enum moving_call_kind { MOVING_CALL_RECORD, MOVING_CALL_ROUND, MOVING_CALL_OTHER };

struct moving_call {
    enum moving_call_kind kind;
    uint64_t tag;
    struct moving_asked *asked;
    enum store_operation operation;
    size_t key_count;
    bool rests;
    struct bytes bytes;
};

struct moving_lane {
    struct moving_connection *connection; /* NULL: none */
    struct moving_call *calls;
    size_t count;
    size_t capacity;
    bool is_busy;
    struct moving_call resting;
    struct text awaited; /* the key of its queue */
    struct resting_order order;
};

struct moving_node {
    struct moving_job *job;
    int index;
    char name[8];
    int64_t life; /* counts the processes of this node */
    bool delegates;
    bool is_alive;
    bool is_off;
    bool is_stopped;
    bool is_signalled;
    bool is_performing;
    bool is_finished; /* its agent */
    enum agent_outcome_kind outcome;
    struct node_machine *machine;
    struct rendezvous_record_store *record;
    struct node_identity identity; /* as a host */
    uint64_t timer_tickets[NODE_PART_COUNT];
    int64_t begun_round;

    /* The register, and the host of the entry known last. */
    struct virtual_entry known; /* without its record */
    uint64_t register_ticket;
    bool is_register_busy;
    uint64_t look_ticket;

    /* Its connection. */
    struct moving_lane lanes[RENDEZVOUS_LANE_COUNT];
    uint64_t open_ticket;
    struct instant open_deadline;
    struct duration refusal_patience;
    bool dials_self;
    struct instant dial_end;
    bool is_connected;
    bool is_calling_roll;
    struct instant heard_at;
    struct moving_asked *asked;

    /* Its store. */
    struct moving_store *store; /* NULL: it hosts none */
    struct rendezvous_state gathered;
    bool is_gathering;
    bool is_leaving; /* it lingers */
    bool is_handing_over;
    bool has_lingered;

    /* Its worker: each node has one. */
    bool is_running;
    struct instant worker_gone_at;
    int64_t worker;
    int64_t round;
};

/* What the workers of one round were told. */
struct moving_world {
    int64_t round;
    int master_port;
    int restarts;
    int world_size;
    struct instant begun_at; /* its first worker */
};

/* Which nodes are started with delegation=true. */
enum moving_delegation { MOVING_NONE_DELEGATES, MOVING_ALL_DELEGATE, MOVING_SOME_DELEGATE };

struct moving_job {
    struct random random;
    uint64_t seed;
    bool is_told;
    enum moving_delegation delegation;
    int minimum;
    struct instant now;
    int node_count;
    struct moving_node nodes[MOVING_NODES_MAXIMUM];
    bool is_cut[MOVING_NODES_MAXIMUM][MOVING_NODES_MAXIMUM];
    struct virtual_register reg;
    bool is_register_down;
    bool is_treacherous; /* hosts die beside their appends, and replies are lost */
    struct moving_event *events;
    size_t event_count;
    size_t event_capacity;
    uint64_t order;
    int64_t lives;
    int ports;
    struct moving_connection *connections;
    struct moving_store *stores;
    struct moving_world *worlds;
    size_t world_count;
    size_t world_capacity;
    bool is_finishing;       /* workers are done soon after their start */
    bool has_prompt_workers; /* none takes long to end */
    bool may_be_over;        /* a node that has lost its place may find that the others are done */
    uint64_t starts;
    uint64_t terms;
    uint64_t handovers; /* of them, of a successor that was named */
    uint64_t told;      /* standings */
    uint64_t cut_off;
    uint64_t records_read; /* by nodes that do not host */
    char complaint[512];
};

/* moving_job.c */
void moving_job_init(
    struct moving_job *job, uint64_t seed, int node_count, enum moving_delegation delegation);
void moving_job_clear(struct moving_job *job);
void moving_complain(struct moving_job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void moving_note(const struct moving_job *job, const struct moving_node *node, const char *format,
    ...) __attribute__((format(printf, 3, 4)));
struct instant moving_later(const struct moving_job *job, double seconds);
double moving_between(struct moving_job *job, double low, double high);
bool moving_chance(struct moving_job *job, unsigned percent);
struct moving_event *moving_add(struct moving_job *job, struct instant at,
    struct moving_node *process_or_null,
    void (*happen)(struct moving_job *job, struct moving_event *event));
/* Plays for so long, or until there is a complaint. */
void moving_play(struct moving_job *job, double seconds);
/* Whether all nodes that live run in the last committed world, and it is of them alone. */
bool moving_is_whole(struct moving_job *job);
int moving_count_alive(const struct moving_job *job);
/* The live node that serves the store of the last term, or MOVING_NOBODY. */
int moving_host(const struct moving_job *job);

void moving_start(struct moving_job *job, int node);
void moving_kill(struct moving_job *job, int node);
void moving_power_off(struct moving_job *job, int node);
void moving_stop(struct moving_job *job, int node, double seconds);
void moving_signal(struct moving_job *job, int node);
void moving_fail_worker(struct moving_job *job, int node);
void moving_finish_worker(struct moving_job *job, int node);
void moving_finish_workers(struct moving_job *job);
void moving_cut(struct moving_job *job, int node);
void moving_heal(struct moving_job *job);
void moving_check_start(struct moving_job *job, struct moving_node *node);
void moving_exit(struct moving_job *job, struct moving_node *node);

/* moving_node.c */
void moving_node_begin(struct moving_job *job, struct moving_node *node);
void moving_node_forget(struct moving_job *job, struct moving_node *node);
void moving_node_post(
    struct moving_job *job, struct moving_node *node, const struct node_event *event);
/* Until nothing is left to do at this moment. */
void moving_node_run(struct moving_job *job, struct moving_node *node);
void moving_tell_agent(struct moving_job *job, struct moving_node *node, struct agent_event event);
void moving_tell_rendezvous(
    struct moving_job *job, struct moving_node *node, struct rendezvous_event event);
void moving_tell_membership(
    struct moving_job *job, struct moving_node *node, enum membership_event_kind kind);
void moving_tell_succession(
    struct moving_job *job, struct moving_node *node, struct succession_event event);
void moving_arm_timer(
    struct moving_job *job, struct moving_node *node, enum node_part part, struct instant deadline);
void moving_worker_ends(struct moving_job *job, struct moving_node *node, struct process_exit exit);
/* What the record store wants. */
void moving_perform_record(
    struct moving_job *job, struct moving_node *node, struct record_effects *effects);
void moving_call_done(struct moving_job *job, struct moving_node *node,
    const struct moving_call *call, enum failure_code code, const struct store_reply *reply);

void moving_tell_round(struct moving_job *job, struct moving_node *node, struct round_event event);
void moving_cancel_waits(struct moving_job *job, struct moving_node *node);

/* moving_round.c */
void moving_perform_round(
    struct moving_job *job, struct moving_node *node, const struct round_effect *effect);
void moving_drop_asked(struct moving_node *node, bool only_waits);
/* To the next host: what was said, and what was asked and is not answered. */
void moving_say_again(struct moving_node *node);

/* moving_succession.c */
void moving_perform_succession(
    struct moving_job *job, struct moving_node *node, const struct succession_effect *effect);
/* As the host, waits for the nodes of a record that it has never seen. */
void moving_look_at_record(
    struct moving_job *job, struct moving_node *node, const struct rendezvous_state *record);
/* Until nothing is asked of the register, and nobody else is connected or `patience` is over. */
void moving_linger(struct moving_job *job, struct moving_node *node, struct duration patience);

/* moving_store.c */
void moving_store_open(
    struct moving_job *job, struct moving_node *node, const struct rendezvous_state *record);
void moving_store_end(struct moving_job *job, struct moving_node *node);
void moving_store_tell(
    struct moving_job *job, struct moving_node *node, const struct rendezvous_effect *effect);
void moving_store_cut_off(
    struct moving_job *job, struct moving_node *node, const struct node_identity *identity);
/* Tells the successor, if it is connected; tells all who are. */
bool moving_store_name(
    struct moving_job *job, struct moving_node *node, const struct node_identity *successor);
void moving_store_tell_moved(struct moving_job *job, struct moving_node *node);
bool moving_store_knows(const struct moving_node *node, const struct node_identity *identity);
size_t moving_store_connections(const struct moving_job *job, const struct moving_node *node);
void moving_stores_clear(struct moving_job *job);
/* At the store's end of a connection. */
void moving_arrives_there(struct moving_job *job, struct moving_event *event);
void moving_ends_there(struct moving_job *job, struct moving_event *event);
void moving_silent_there(struct moving_job *job, struct moving_event *event);

/* moving_ways.c */
bool moving_is_apart(const struct moving_job *job, int one, int other);
double moving_delay(struct moving_job *job, bool is_own);
/* What happens for the process of the node, or of the host, when it has come over the connection.
 * Messages of one way stay in order. */
struct moving_event *moving_add_here(struct moving_job *job, struct moving_connection *connection,
    void (*happen)(struct moving_job *, struct moving_event *));
struct moving_event *moving_add_there(struct moving_job *job, struct moving_connection *connection,
    void (*happen)(struct moving_job *, struct moving_event *));
/* Whether it cannot pass: then it is sent again, until an end gives up. */
bool moving_holds_up(struct moving_job *job, struct moving_event *event);

/* moving_lanes.c */
/* The two are apart from now on: both ends find it out, each in its time. */
void moving_part(struct moving_job *job, int one, int other);
void moving_lanes_open(struct moving_job *job, struct moving_node *node, struct instant deadline,
    struct duration refusal_patience, struct duration pause);
void moving_lanes_drop(struct moving_job *job, struct moving_node *node, bool is_process_end);
void moving_lane_close(struct moving_job *job, struct moving_node *node, int lane);
void moving_lane_send(struct moving_node *node, int lane, const struct store_request *request,
    struct moving_call call);
/* Sends what waits to be sent. */
void moving_pump(struct moving_job *job, struct moving_node *node);
void moving_reset_connection(struct moving_job *job, int node);
/* At the node's end of a connection. */
void moving_arrives_here(struct moving_job *job, struct moving_event *event);
void moving_ends_here(struct moving_job *job, struct moving_event *event);

#endif
