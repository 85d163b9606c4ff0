/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rendezvous machine knows, shared by its parts: rendezvous_machine takes events and arms
 * the timer, rendezvous_evaluation looks at the record and decides, rendezvous_losses,
 * rendezvous_doubt and rendezvous_growth know who went, what that explains and who may come, and
 * rendezvous_step is what they all do things with. Nobody else looks inside. */
#ifndef MUSTER_CORE_RENDEZVOUS_MACHINE_STATE_H
#define MUSTER_CORE_RENDEZVOUS_MACHINE_STATE_H

#include "core/rendezvous_machine.h"

#define RENDEZVOUS_NO_ROUND (-1)
#define RENDEZVOUS_MESSAGE_SIZE 512

enum rendezvous_goal {
    RENDEZVOUS_GOAL_NONE, /* has not been asked to join yet */
    RENDEZVOUS_GOAL_TAKE_PART,
    RENDEZVOUS_GOAL_CLOSE,
    RENDEZVOUS_GOAL_LEAVE,
    RENDEZVOUS_GOAL_OVER, /* closed, failed or settled: nothing is written any more */
};

enum rendezvous_link {
    RENDEZVOUS_LINK_NONE,
    RENDEZVOUS_LINK_CONNECTING,
    RENDEZVOUS_LINK_READY, /* no request is under way */
    RENDEZVOUS_LINK_FETCHING,
    RENDEZVOUS_LINK_WRITING,
};

/* A point in time that may not be set. */
struct moment {
    bool is_set;
    struct instant at;
};

struct gone_node {
    struct node_identity identity;
    bool had_finished;
};

struct rendezvous_machine {
    struct rendezvous_settings settings;
    struct node_identity me;
    struct random random;
    enum rendezvous_goal goal;
    enum rendezvous_effect_kind end;       /* once OVER: how the agent was told */
    char message[RENDEZVOUS_MESSAGE_SIZE]; /* what was told last; CLOSE: what is to be written */

    /* the backend */
    enum rendezvous_link link;
    bool was_connected;
    bool has_presence;
    bool is_host;
    bool is_refetch_wanted; /* the record changed while a request was under way */
    bool is_change_told;    /* a change was announced since the record was seen */
    bool has_untold_news;   /* what was seen may not have been announced */
    bool is_writing_heartbeats;
    struct instant write_began;
    int lost_writes; /* in a row */
    struct moment retry_at;

    /* the record */
    bool has_record;
    struct rendezvous_state seen;
    struct rendezvous_state draft; /* what is being written */
    struct heartbeat_watch heartbeats;
    struct gone_node *gone; /* told by the backend */
    size_t gone_count;
    size_t gone_capacity;

    /* this node's place */
    bool is_join_asked;
    int64_t world_round; /* that the agent was told of and runs; or RENDEZVOUS_NO_ROUND */
    size_t world_size;
    struct rendezvous_state world; /* as it was told */
    int64_t ended_round;           /* the last that was over; it is left, not entered */
    bool was_parked;               /* waited or was spare when the record was last seen */
    bool is_finished;              /* in the exit barrier */
    bool is_restart_wanted;
    char restart_reason[RENDEZVOUS_REASON_SIZE]; /* or of the failure that is doubted */
    bool is_doubting;                            /* whether a failure here ends the job */
    bool is_roll_called;
    bool is_roll_answered;
    int64_t answered_round; /* the last whose roll call this node has answered */
    bool knows_restarts;
    int64_t restarts_seen; /* that the job had paid for when the record was last seen */

    /* time */
    struct moment join_deadline;
    struct moment rollback_deadline; /* some time after the join deadline */
    size_t size_when_late;           /* the round's at the join deadline, this node included */
    struct moment settle_deadline;
    struct moment doubt_deadline;
    struct moment charged_at; /* when this node saw the last restart charged */
    struct moment last_call;
    int64_t last_call_round;
    struct wall_time last_call_deadline; /* as written; tells one last call from another */
    struct moment beat_at;
    struct moment heartbeat_at;
    struct moment poll_at;
    struct moment admission_at;
    struct instant round_began;
    int64_t round_of_began;
    size_t size_of_began;
    bool has_grown;               /* the round took in more than the one before */
    struct duration penalty;      /* for admitting nodes that do not stay */
    bool is_finished_count_known; /* since the last beat, or asked for */
    int64_t finished_round;       /* whose it is */
    int64_t finished_count;
};

#endif
