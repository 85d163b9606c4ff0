/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the whole cluster share. whole_cluster.c keeps the time and the nodes,
 * whole_node.c performs what a node's machines want, whole_process.c keeps its process,
 * whole_backend.c does so at the store's side, whole_workers.c plays processes, whole_standby.c
 * those that wait to become workers, whole_guardian.c the process that guards them, whole_ways.h
 * has how the store is reached, whole_store.c is the store, whole_torch_node.c and
 * whole_torch_record.c torchrun's nodes, whole_storm.c what befalls them all; whole_checks.c and
 * whole_worlds.c look whether it goes right. */
#ifndef MUSTER_TESTS_WHOLE_PARTS_H
#define MUSTER_TESTS_WHOLE_PARTS_H

#include "base/random.h"
#include "core/node/node_machine.h"
#include "core/rendezvous/presence_watch.h"
#include "core/telling/job_chronicle.h"
#include "whole_cluster.h"
#include "whole_ways.h"
#include "wire/rendezvous/rendezvous_record_store.h"

#define WHOLE_MILLISECOND INT64_C(1000000)
#define WHOLE_SECOND INT64_C(1000000000)
#define WHOLE_RUN_ID "job"
#define WHOLE_NOBODY (-1)

#define WHOLE_STORE_PORT 29500
#define WHOLE_FIRST_PORT 20000
#define WHOLE_FIXED_LANES 2 /* of a fixed node: for requests, and for waits */
#define WHOLE_STORE_TIMEOUT_SECONDS 900
#define WHOLE_SETTLING_SECONDS 2
#define WHOLE_WARMING_SECONDS 3
#define WHOLE_TERMINATE 15
#define WHOLE_KILL 9
/* From SIGKILL by the guardian until the workers are gone. */
#define WHOLE_KILL_LONGEST (50 * WHOLE_MILLISECOND)

struct whole_worker {
    bool is_alive;
    bool has_orphan;
    bool is_stubborn;
    bool is_stuck;
    bool is_done;     /* exited with 0 */
    bool is_ending;   /* its agent may know how it ends, but it has not ended yet */
    int signals;      /* it was sent */
    int stop_signals; /* the same, but SIGKILL */
    bool is_started;  /* in the present attempt */
    bool is_from_standby;
    uint64_t life;
};

/* A standby worker. A zeroed one is none. */
struct whole_spare {
    uint64_t life;
    bool is_ready; /* as the agent has heard */
    bool is_dead;  /* which the agent may not have heard */
    bool is_awaited;
};

struct whole_torch;

struct whole_node {
    struct whole_cluster *cluster;
    int index;
    char name[32];
    bool is_torch;
    bool is_flapping;
    struct node_machine *machine;
    struct chronicle *chronicle;    /* of its machine */
    struct chronicle_status told;   /* the fold of what it tells, … */
    struct chronicle_status retold; /* … and of the same, spelled and read again */
    char chronicle_name[48];        /* which no other node has */
    struct wall_time life;
    int64_t clock_offset; /* of that life */
    int64_t told_seq;
    int64_t heard_seq;     /* the host has */
    int64_t world_seq;     /* of its last world */
    bool knows_next_host;  /* it has told that one what there was to tell again */
    int failures;          /* of workers, as the agent machine heard of them … */
    int failures_told;     /* … and as the chronicle has told */
    unsigned failed_ranks; /* of this attempt */
    struct rendezvous_record_store *record;
    struct whole_torch *torch;
    struct node_identity identity; /* as it is present */
    bool is_performing;

    /* its process and machine */
    bool is_alive;
    bool is_off;
    bool is_stopped;
    bool was_stopped;
    bool is_fenced; /* its guardian has ended its workers, and it has not heard so */
    bool is_stopped_in_world;
    int64_t stopped_at;
    bool is_cut_to_store;
    bool is_cut_to_node;
    int loss_to_store; /* of a thousand packets, until … */
    int loss_to_node;
    int64_t loses_until;
    struct whole_happening look; /* at both ends of its presence, while the link is bad */
    bool is_sign_under_way;      /* of life */
    int64_t slow_until;
    int64_t wall_offset;
    uint64_t stops; /* how often; the end of an earlier stop is none of this one */
    uint64_t cuts;
    struct whole_happening *inbox_first; /* while it is stopped */
    struct whole_happening *inbox_last;
    struct whole_connection *connections;
    struct whole_lane lanes[RENDEZVOUS_LANE_COUNT];
    int ready_lanes;
    struct whole_happening timers[NODE_PART_COUNT];
    int64_t timer_second; /* in which so many timers fired */
    int timers_fired;
    struct whole_happening patience; /* of LINGER and FLUSH */
    bool is_lingering;
    bool is_flushing;
    bool is_lost; /* static: the store */
    bool is_calling_roll;
    bool was_connected;
    bool is_host;
    bool has_hosted;
    struct text cause_key; /* of the round looked at */
    struct text cause_written;
    int64_t begun_round;

    /* its workers, and their store */
    int worker_count;
    struct whole_worker workers[WHOLE_WORKERS_MAXIMUM];
    struct whole_spare spares[WHOLE_WORKERS_MAXIMUM];
    bool has_said_hello[WHOLE_WORKERS_MAXIMUM];
    uint64_t group_life; /* which start of them this is */
    int64_t started_at;
    int64_t workers_gone_at;
    bool is_start_over;
    int unheard_exits;
    bool has_told_gone;
    int64_t world;         /* number of the last, by round or attempt; or WHOLE_NOBODY */
    int64_t stop_asked_at; /* or WHOLE_NOBODY */
    int server_port;

    /* for the checks */
    bool is_finished;   /* AGENT_EFFECT_FINISH has come */
    bool is_part_over;  /* its rendezvous has told its end */
    bool is_in_barrier; /* it has entered, and not joined since */
    bool is_unneeded;   /* the job ended well without it */
    struct agent_outcome outcome;
    struct whole_ending ending;
    int64_t came_at;
    int64_t finished_at;
    int64_t behind_since; /* it runs in a world older than the newest; or WHOLE_NOBODY, as these: */
    int64_t told_over;    /* the last world that is over for it */
    int64_t over_since;   /* its round is over, and it is not told yet */
    int64_t asked_at;     /* for a restart, and there is no new round yet */
    int64_t doubts_since; /* whether the job has failed */
    int64_t gone_at;      /* its process, and it is not taken out yet */
};

/* The world of one round or attempt, as it was told first. */
struct whole_world {
    int64_t number; /* of its round or attempt */
    bool is_told;
    int size; /* nodes */
    int restarts;
    int world_size; /* workers */
    int master_port;
    char master_address[64];
    int started; /* workers, when all of their node were */
    int64_t first_start_at;
    struct whole_seat {
        struct whole_node *node;
        int base_rank;
        int worker_count;
    } * seats; /* by group rank */
};

/* A store for workers. */
struct whole_port {
    const struct whole_node *owner;
    int64_t first_round; /* it was opened for … */
    int64_t last_round;  /* … and wiped for last */
};

/* The store, in the process of its host or on a machine of its own. */
struct whole_store {
    bool is_up;
    struct whole_node *host; /* NULL: a machine of its own */
    struct store_table *table;
    struct store_effects effects;
    struct store_effects own_effects;
    bool is_carrying_out;
    struct store_presence *presence;
    struct presence_watch watch;
    struct whole_happening look;    /* for agents that have stalled */
    struct whole_happening missing; /* for those that stand in the record, and do not come */
    bool is_missing;                /* looked for */
    size_t open_count;
    char *record_key;
    struct bytes reply;
    struct rendezvous_state record; /* as written last; what torchrun's and others did, too */
    bool has_record;
    int64_t begun_at;     /* it began empty last */
    int64_t forgotten_at; /* the record was lost last; or WHOLE_NOBODY */
};

struct whole_cluster {
    struct whole_settings settings;
    struct random random;
    int64_t now;
    struct heap heap;
    struct whole_happening *pool;
    uint64_t lives;
    uint64_t happened;
    struct whole_node **nodes;
    int node_count;
    struct whole_connection *connections;
    struct whole_store store;
    struct job_chronicle *host;      /* hears all that is told, … */
    struct job_chronicle *next_host; /* … and from some moment on another one, too */
    bool is_told_late;
    bool is_next_told_all;
    int64_t heard_at; /* something was told last */
    struct whole_world *worlds;
    size_t world_count;
    size_t world_capacity;
    int64_t newest_world;     /* that was begun */
    struct whole_port *ports; /* by their number, from WHOLE_FIRST_PORT on */
    size_t port_count;
    size_t port_capacity;
    bool is_storm;
    bool is_finishing;
    bool is_job_over; /* its record is closed, or its store is gone */
    int64_t job_over_at;
    int64_t storm_over_at;
    int64_t finishing_at;
    int64_t signalled_at; /* the first node; or WHOLE_NOBODY */
    int64_t failure_announced_at;
    bool may_give_up; /* nobody comes in the place of those who did */
    int gathered_for;
    int closes_asked;
    int live_count;
    char *complaint;
    struct whole_outcome outcome;
};

/* whole_cluster.c */
int64_t whole_between(struct whole_cluster *cluster, int64_t low, int64_t high);
bool whole_is_likely(struct whole_cluster *cluster, int percent);
/* From the pool; the caller fills in what it needs. */
struct whole_happening *whole_schedule(struct whole_cluster *cluster, int64_t time,
    struct whole_node *process_or_null,
    void (*happen)(struct whole_cluster *, struct whole_happening *));
/* One that is part of something else: planned, or planned anew. */
void whole_plan(struct whole_cluster *cluster, struct whole_happening *happening, int64_t time);
void whole_call_off(struct whole_cluster *cluster, struct whole_happening *happening);
struct wall_time whole_wall(const struct whole_cluster *cluster, const struct whole_node *node);
struct whole_node *whole_add_node(struct whole_cluster *cluster, int64_t time, bool is_torch);
/* The first one is kept. */
__attribute__((format(printf, 2, 3))) void whole_complain(
    struct whole_cluster *cluster, const char *format, ...);
__attribute__((format(printf, 3, 4))) void whole_note(
    struct whole_cluster *cluster, const struct whole_node *node, const char *format, ...);
bool whole_notes(const struct whole_cluster *cluster, const struct whole_node *node);

/* whole_node.c */
/* A fact; it is taken when whole_node_run is called. */
void whole_node_post(
    struct whole_cluster *cluster, struct whole_node *node, const struct node_event *event);
void whole_tell_agent(
    struct whole_cluster *cluster, struct whole_node *node, struct agent_event event);
void whole_tell_membership(
    struct whole_cluster *cluster, struct whole_node *node, enum membership_event_kind kind);
/* Until nothing is left to do at this moment. */
void whole_node_run(struct whole_cluster *cluster, struct whole_node *node);
void whole_signal_agent(struct whole_cluster *cluster, struct whole_node *node, int signal);
void whole_timer_fires(struct whole_cluster *cluster, struct whole_happening *happening);
void whole_patience_ends(struct whole_cluster *cluster, struct whole_happening *happening);
bool whole_is_live(const struct whole_node *node);
enum agent_phase whole_phase(const struct whole_node *node);

/* whole_process.c */
void whole_node_init(struct whole_cluster *cluster, struct whole_node *node);
void whole_node_clear(struct whole_node *node);
void whole_node_start(struct whole_cluster *cluster, struct whole_node *node);
/* The way its process goes. */
enum whole_death { WHOLE_EXITS, WHOLE_IS_KILLED, WHOLE_GOES_OFF };
void whole_end_process(
    struct whole_cluster *cluster, struct whole_node *node, enum whole_death death);
void whole_stop_process(struct whole_cluster *cluster, struct whole_node *node, int64_t duration);
void whole_resume_process(struct whole_cluster *cluster, struct whole_node *node);

/* whole_backend.c */
/* How many connections a node keeps. */
int whole_lanes_kept(const struct whole_cluster *cluster);
void whole_perform_rendezvous(
    struct whole_cluster *cluster, struct whole_node *node, const struct rendezvous_effect *effect);
void whole_perform_round(
    struct whole_cluster *cluster, struct whole_node *node, const struct round_effect *effect);
void whole_cancel_roll(struct whole_cluster *cluster, struct whole_node *node);
void whole_disconnect(struct whole_cluster *cluster, struct whole_node *node);
/* The node stood still, and no longer trusts what it is connected to. */
void whole_give_up_connection(struct whole_cluster *cluster, struct whole_node *node);
void whole_publish_cause(
    struct whole_cluster *cluster, struct whole_node *node, const struct membership_effect *effect);
void whole_look_for_cause(struct whole_cluster *cluster, struct whole_node *node, int64_t round);
void whole_flush(struct whole_cluster *cluster, struct whole_node *node, struct duration patience);
/* News of the lanes. `reply` is NULL unless the code is FAILURE_NONE. */
void whole_call_done(struct whole_cluster *cluster, struct whole_node *node,
    const struct whole_call *call, enum failure_code code, const struct store_reply *reply);
void whole_lanes_opened(struct whole_cluster *cluster, struct whole_node *node);
void whole_lanes_unopened(struct whole_cluster *cluster, struct whole_node *node,
    enum failure_code code, const char *message);
void whole_lanes_ended(struct whole_cluster *cluster, struct whole_node *node,
    enum failure_code code, const char *message);

/* whole_store.c */
void whole_store_init(struct whole_cluster *cluster);
void whole_store_clear(struct whole_cluster *cluster);
void whole_store_open(struct whole_cluster *cluster, struct whole_node *host_or_null);
void whole_store_drop(struct whole_cluster *cluster, bool is_silent);
void whole_store_receive(
    struct whole_cluster *cluster, struct whole_connection *connection, struct slice input);
/* The store's end of the connection is closed. */
void whole_store_forget(struct whole_cluster *cluster, struct whole_connection *connection);
void whole_store_renew(struct whole_cluster *cluster, const char *kept_prefix);
bool whole_store_is_stopped(const struct whole_cluster *cluster);
/* A host that stays for others may go. */
void whole_tell_when_alone(struct whole_cluster *cluster, struct whole_node *host);
/* By nobody of the job. */
/* TELL_STANDINGS of the host. */
void whole_store_tell(struct whole_cluster *cluster, const struct whole_node *node,
    const struct rendezvous_effect *effect);
void whole_store_close_record(struct whole_cluster *cluster);
void whole_store_write_ghost(struct whole_cluster *cluster);
/* The node has read this record. Its agent looks who is missing, where it hosts the store. */
void whole_store_see(struct whole_cluster *cluster, const struct whole_node *node,
    const struct rendezvous_state *record);
/* WHOLE_RECORD_LOST and WHOLE_STORE_ANEW. */
void whole_store_lose_record(struct whole_cluster *cluster, int how);
void whole_store_begin_anew(struct whole_cluster *cluster);

/* whole_workers.c */
void whole_start_workers(struct whole_cluster *cluster, struct whole_node *node);
void whole_signal_workers(struct whole_cluster *cluster, struct whole_node *node, int signal);
/* A worker whose standby worker has not come through its gate. */
void whole_start_cold(struct whole_cluster *cluster, struct whole_node *node, int rank);
/* By the guardian. */
void whole_kill_sessions(struct whole_cluster *cluster, struct whole_node *node);
void whole_look_at_workers(struct whole_cluster *cluster, struct whole_node *node);
/* Worker `rank` ends by itself. */
void whole_end_worker(
    struct whole_cluster *cluster, struct whole_node *node, int rank, struct process_exit exit);
void whole_fail_worker(struct whole_cluster *cluster, struct whole_node *node);
/* Workers elsewhere that were connected to those of this node fail, if the settings say so. */
void whole_break_workers(struct whole_cluster *cluster, const struct whole_node *lost);
void whole_sweep_workers(struct whole_node *node);
void whole_plan_finish(struct whole_cluster *cluster, struct whole_node *node);
bool whole_has_processes(const struct whole_node *node);
bool whole_has_workers(const struct whole_node *node);

/* whole_standby.c */
void whole_perform_standby(
    struct whole_cluster *cluster, struct whole_node *node, const struct standby_effect *effect);
enum whole_passage {
    WHOLE_PASSAGE_NONE,    /* the worker is to be started cold */
    WHOLE_PASSAGE_AWAITED, /* it is started later, unless the passage is given up */
    WHOLE_PASSAGE_THROUGH, /* the standby worker has become the worker */
};
enum whole_passage whole_pass_gate(
    struct whole_cluster *cluster, struct whole_node *node, int rank);
/* The workers are being stopped. */
void whole_give_up_passages(struct whole_cluster *cluster, struct whole_node *node);
/* By the guardian. */
void whole_kill_spares(struct whole_cluster *cluster, struct whole_node *node);
void whole_check_standby(struct whole_cluster *cluster, const struct whole_node *node);
void whole_check_no_spare(struct whole_cluster *cluster, const struct whole_node *node);

/* whole_guardian.c */
/* The agent stands still from now on. */
void whole_guardian_misses(struct whole_cluster *cluster, struct whole_node *node);
/* The agent goes on. */
void whole_guardian_speaks(struct whole_cluster *cluster, struct whole_node *node);
/* Before it hears of its workers' ends the agent hears what the guardian has said about them. */
void whole_hear_guardian(struct whole_cluster *cluster, struct whole_node *node);
void whole_check_beside(struct whole_cluster *cluster, const struct whole_node *started);

/* whole_torch_node.c, whole_torch_record.c */
struct whole_torch *whole_torch_new(void);
void whole_torch_free(struct whole_torch *torch);
void whole_torch_start(struct whole_cluster *cluster, struct whole_node *node);
void whole_torch_answer(struct whole_cluster *cluster, struct whole_node *node,
    const struct whole_call *call, const struct store_reply *reply);
void whole_torch_opened(struct whole_cluster *cluster, struct whole_node *node);
void whole_torch_lost(struct whole_cluster *cluster, struct whole_node *node);
void whole_torch_worker_exited(struct whole_cluster *cluster, struct whole_node *node);
bool whole_torch_is_running(const struct whole_node *node);

/* whole_chronicle.c */
void whole_tell_chronicle(struct whole_cluster *cluster, struct whole_node *node,
    const struct agent_event *event, enum agent_phase before, const struct node_effects *effects);
void whole_tell_host(struct whole_cluster *cluster, struct whole_node *node);
void whole_chronicle_look(struct whole_cluster *cluster);
/* `is_gathered`: all that are there are in one world, or wait for a place in it. */
void whole_chronicle_check(struct whole_cluster *cluster, bool is_gathered);

/* whole_storm.c */
void whole_plan_job(struct whole_cluster *cluster);

/* whole_worlds.c: what workers are told. */
struct whole_world *whole_world_of(struct whole_cluster *cluster, int64_t number);
/* Whether the record has gone on to a round after this one. */
bool whole_is_over(const struct rendezvous_state *record, int64_t round);
void whole_check_start(
    struct whole_cluster *cluster, struct whole_node *node, const struct node_placement *placement);
/* A new port, or the one there is again. */
int whole_open_port(
    struct whole_cluster *cluster, const struct whole_node *owner, int old_port, int64_t round);
void whole_check_gone(struct whole_cluster *cluster, struct whole_node *node);
bool whole_is_gathered(struct whole_cluster *cluster);

/* whole_checks.c: what must hold. */
void whole_check_write(struct whole_cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after);
void whole_check_kill(struct whole_cluster *cluster, const struct whole_node *node);
void whole_check_effect(
    struct whole_cluster *cluster, struct whole_node *node, const struct node_effect *effect);
void whole_check_progress(struct whole_cluster *cluster);
void whole_check_node_end(struct whole_cluster *cluster, struct whole_node *node);
void whole_check_end(struct whole_cluster *cluster);

#endif
