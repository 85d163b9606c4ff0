/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent at work: what the host's shells report goes on the queue of core/node/node_machine, and
 * the effects of each of its steps are carried out. Decides nothing. */
#ifndef MUSTER_AGENT_AGENT_EVENTS_H
#define MUSTER_AGENT_AGENT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/failure/agent_evidence.h"
#include "agent/failure/agent_node_check.h"
#include "agent/rendezvous/agent_node_settings.h"
#include "agent/rendezvous/agent_rendezvous.h"
#include "agent/scratch/agent_scratch.h"
#include "agent/standby/agent_standby.h"
#include "agent/telling/agent_announcement.h"
#include "agent/telling/agent_audience.h"
#include "agent/telling/agent_chronicle.h"
#include "agent/telling/agent_event_log.h"
#include "agent/telling/agent_hang.h"
#include "agent/telling/agent_health.h"
#include "agent/telling/agent_job_chronicle.h"
#include "agent/telling/agent_metrics.h"
#include "agent/telling/agent_story.h"
#include "agent/telling/agent_voice.h"
#include "agent/watchdog/agent_watchdog.h"
#include "agent/workers/agent_guardian.h"
#include "agent/workers/agent_preparation.h"
#include "agent/workers/agent_workers.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/node/node_machine.h"
#include "core/telling/event_record.h"
#include "core/workers/signal_name.h"
#include "host/log/log_sink.h"
#include "host/log/log_thread.h"
#include "host/loop/event_loop.h"
#include "host/loop/tally.h"

/* The agent's memory: two reserves (base/memory). The first is what the agent lives on when
 * the system has no more. It then has some seconds in which it may come back. After them, or when
 * the second is needed, too, the agent is told to end, for which it has what is left. */

/* Why an agent ends then, for people. */
#define AGENT_MEMORY_SENTENCE                                                                      \
    "there is no memory for the agent, so this node ends (see ulimit -v, and the memory limit of " \
    "the cgroup)"

struct agent_memory;

/* `exhausted` is called on the loop, and again every second, as long as there is no memory.
 * FAILURE_SYSTEM where there is none now. */
__attribute__((warn_unused_result)) enum failure_code agent_memory_new(struct event_loop *loop,
    void (*exhausted)(void *context), void *context, struct agent_memory **out_memory,
    struct failure *failure);

/* Gives the second reserve up. Accepts NULL. */
void agent_memory_free(struct agent_memory *memory);

/* What a program is asked at moments of an agent's life; each may be NULL. They are called in the
 * agent, on its loop, which waits for them. Groups are borrowed. */
struct agent_hooks {
    /* Before the workers of an attempt are started, and after those of one that is to be followed
     * by another have ended. False: this node ends, for that reason. */
    bool (*start_workers)(void *context, const struct run_group *group, struct text *out_reason);
    bool (*restart_workers)(void *context, const struct run_group *group, struct text *out_reason);
    /* Before a start: which files the workers write, by local rank. False: the same. */
    bool (*reify_logs)(void *context, const struct run_group *group,
        struct attempt_own_files *out_files, struct text *out_reason);
    /* Before they are signalled for the first time. */
    void (*stop_workers)(void *context, const struct run_group *group, int signal);
    /* Each monitor interval while they run: the local rank of one that is to be ended as failed,
     * for that reason, or -1. */
    int (*monitor_workers)(void *context, const struct run_group *group, struct text *out_reason);
    /* The agent has ended its workers, and ends. */
    void (*shutdown)(void *context, const struct run_group *group, int signal);
    /* When the program has made progress: its health is that of whoever is behind. */
    struct wall_time (*last_progress)(void *context);
    void *context;
};

/* What one agent consists of: shared by agent.c, which makes and ends it, and agent_events.c, which
 * runs it. Nobody else looks inside. */

struct agent {
    const struct launch_config *config;
    const struct text_list *environment;
    const struct agent_program *program; /* NULL: none has started it */
    struct agent_hooks hooks;            /* of that program */
    struct log_sink *sink;
    const struct log *log;
    struct agent_preparation preparation;
    struct event_loop *loop;
    struct agent_memory *memory;
    bool has_no_memory;       /* … is left, so it ends */
    long descriptor_limit;    /* the soft limit before it was raised */
    uint64_t ignored_signals; /* by this process and its workers, from the start on */
    struct event_timer *deadline;
    struct event_timer *monitor; /* NULL: the program does not look at its workers */
    struct event_timer *calm;    /* the workers have been started, and the agent has time */
    struct signal_watch *signals;
    struct agent_guardian *guardian;
    struct signal_repetition repetition;
    struct instant signalled;       /* by the first signal; zero: by none */
    struct signal_passing *passing; /* NULL: not yet, or where nobody else signals workers */
    struct agent_scratch *scratch;  /* NULL when nobody asked for it */
    struct log_thread *log_thread;  /* NULL when no stream passes through it */
    struct agent_proof *proof;      /* NULL where nodes do not prove themselves */
    struct agent_rendezvous *rendezvous;
    struct agent_standby *standby; /* NULL when there are no standby workers */
    struct agent_workers *workers;
    struct agent_evidence *evidence;     /* NULL when nobody wants any */
    struct agent_node_check *node_check; /* NULL when nobody asked for it */
    char *unfit;                         /* what it has said against this node, or NULL */
    struct failure_account last_cause;   /* of the attempt that has failed, where … */
    bool has_last_cause;                 /* … it is known */
    struct failure_account first_cause;  /* of the first of the attempts that got no further */
    bool has_first_cause;
    struct agent_stacks *stacks;           /* NULL before the job is announced */
    struct agent_hang *hang;               /* NULL when nobody asked for it */
    struct agent_watchdog *watchdog;       /* NULL when no timers are served */
    struct agent_stuck_watch *stuck_watch; /* NULL when nobody asked for it */
    struct last_words *last_words;
    struct agent_voice voice;
    struct agent_said said; /* by it */
    struct agent_story story;
    struct agent_announcement *announcement;
    struct worker_progress *progress; /* NULL: workers do not tell of their steps */
    struct agent_chronicle *chronicle;
    struct agent_job_chronicle *job_chronicle;
    struct text telling_folder;           /* of its keys */
    struct agent_event_log *event_log;    /* NULL when nobody asked for it */
    struct agent_audience *audience;      /* NULL where no program has started it */
    struct agent_health *health;          /* NULL when nobody may ask for it */
    struct agent_metrics *metrics;        /* the same */
    struct tally worker_store_operations; /* of all rounds */
    struct agent_joining *joining;        /* NULL where there is one node */
    struct text_list expected_nodes;      /* their names, where they are known */
    struct agent_node_settings node_settings;
    struct node_machine *node;
    bool has_run;     /* the node has run to its end */
    bool is_queueing; /* what is posted waits: a step is under way, or the node does not run */
    /* Answers to effects that wait for error files of workers. Until they are given, what is posted
     * waits, too. */
    enum membership_event_kind owed[AGENT_EFFECTS_MAXIMUM];
    size_t owed_count;
    struct agent_outcome outcome;
    char *refusal;          /* why the program has this node end, or NULL */
    bool has_told_stop;     /* to the program, for these workers; … */
    bool has_asked_restart; /* … it was asked about those that follow them */
    char *trouble;          /* what kept the agent itself from going on, or NULL */
    /* A worker's end after which this node leaves the job (--exit-on) */
    bool has_exit_on;
    struct process_exit exit_on;
};

/* The node runs from here on. */
void agent_start(struct agent *agent);

/* Puts an event on the node's queue, for all shells; `context` is the agent. It is taken at once,
 * or after those before it: what an effect causes waits until its step's other effects are done. */
void agent_post(void *context, const struct node_event *event);

/* What the shells call; contexts are the agent. */
void agent_deadline_passed(void *context);
void agent_signal_came(
    void *context, int signal); /* from outside, which workers may have got, too */
void agent_watch_signals(
    void *context); /* from now on it is known which of them workers have got */
void agent_signal_received(void *context, int signal);
/* The program that places this node has said something of its round. */
void agent_placement_told(
    void *context, enum membership_event_kind kind, const struct membership_told *told);
void agent_timer_expired(void *context); /* and this node's part of the job is to end */
void agent_watchdog_event(
    void *context, enum event_watchdog what, const struct event_timer_record *timer);
/* A worker has taken its first step in this attempt, or its first new one. */
void agent_worker_stepped(void *context, bool is_new);
/* NULL: this node is fit for workers; else why it is not. */
void agent_node_checked(void *context, const char *reason);
/* A worker is being looked at, and that is over; each beginning has its end, unless everybody is
 * gone before. */
void agent_look_begun(void *context);
void agent_look_over(void *context);
/* How long the agent may stand still before its guardian ends its workers; zero: for ever. */
struct duration agent_standstill(void *context);
void agent_stood_still(void *context, struct duration how_long);
void agent_rendezvous_recorded(void *context, const struct event_rendezvous *record);

/* The job has failed after attempts that got no further, and is to end with the cause of the first
 * of them, which is known. */
bool agent_ends_with_first_cause(const struct agent *agent);

/* What the shells report of this node's workers: the log says it, and the node's machine gets it as
 * events. Decides nothing. */

struct agent_workers_observer agent_workers_events(struct agent *agent);

/* `context` is the agent. The job hangs, or only this node's workers stand still, as far as is
 * known.
 */
int agent_hang_found(void *context, const struct job_hang *hang, bool is_of_job);
void agent_worker_stuck(void *context, int local_rank, struct duration how_long);

#endif
