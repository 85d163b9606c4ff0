/* SPDX-License-Identifier: BSD-3-Clause */
/* The membership of one node in its job, as a machine. A node is alone (it has nothing to agree
 * on), one of fixed nodes (the static rendezvous), or one of nodes that come and go (the dynamic
 * rendezvous). A node alone may be placed by the program that has started its agent, which has
 * other nodes and a rendezvous of its own. The agent machine sees one contract for all three: it
 * asks to join, to enter the exit barrier and to leave, and is told that it has joined, that the
 * join failed, that the round is over, and that the barrier has ended.
 *
 * The membership is between core/agent/agent_machine and the machines below it:
 * core/round/round_exchange, and for nodes that come and go also
 * core/rendezvous/rendezvous_machine. It takes the effects of these machines, but never
 * steps one of them. What it tells a machine is an effect, which core/node/node_machine puts on the
 * queue of the node.
 *
 * It also keeps what the node knows of its job: the last placement, why something failed, and which
 * worker of another node failed first. Compare SimpleElasticAgent._rendezvous, _exit_barrier and
 * _shutdown in torch/distributed/elastic/agent/server/api.py. */
#ifndef MUSTER_CORE_NODE_NODE_MEMBERSHIP_H
#define MUSTER_CORE_NODE_NODE_MEMBERSHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "core/agent/agent_machine.h"
#include "core/failure/failure_report.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/round/round_exchange.h"
#include "core/workers/worker_group.h"

enum membership_kind {
    MEMBERSHIP_ALONE,
    MEMBERSHIP_FIXED,
    MEMBERSHIP_CHANGING, /* nodes come and go */
    MEMBERSHIP_KIND_COUNT,
};

enum membership_event_kind {
    MEMBERSHIP_EVENT_NONE,
    /* asked by the agent machine */
    MEMBERSHIP_EVENT_JOIN_ASKED,
    MEMBERSHIP_EVENT_BARRIER_ASKED,
    MEMBERSHIP_EVENT_LEAVE_ASKED,   /* this node leaves; the job may go on without it */
    MEMBERSHIP_EVENT_SUCCESS_ASKED, /* the job has succeeded: all nodes were in the exit barrier */
    /* Told by the performer. The first three answer ANNOUNCE_RESTART, DOUBT_FAILURE and
     * ANNOUNCE_FAILURE of the agent machine, because the performer knows which worker is the root
     * cause. The fourth answers FINISH: the agent ends as soon as the membership is settled. */
    MEMBERSHIP_EVENT_RESTART_ASKED,
    MEMBERSHIP_EVENT_DOUBT_ASKED,
    MEMBERSHIP_EVENT_FAILURE_ASKED,
    MEMBERSHIP_EVENT_END_ASKED,
    MEMBERSHIP_EVENT_HOSTING,       /* this node hosts the store of the job from now on */
    MEMBERSHIP_EVENT_HOSTING_OVER,  /* another node does */
    MEMBERSHIP_EVENT_STORE_RENEWED, /* answers RENEW_WORKER_STORE */
    /* Alone, placed by the program: the first two answer its ASK for a round, … */
    MEMBERSHIP_EVENT_ROUND_TOLD,
    MEMBERSHIP_EVENT_ROUND_REFUSED,
    MEMBERSHIP_EVENT_ROUND_ENDED,       /* the workers are to be in another one */
    MEMBERSHIP_EVENT_BARRIER_TOLD,      /* … and this one answers its ASK for the exit barrier */
    MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, /* which worker of the round failed first */
    MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED, /* answers LOOK_FOR_ROOT_CAUSE: the look is over */
    /* Changing: this node waits beside a job to which it does not seem to belong, or it does. */
    MEMBERSHIP_EVENT_MISPLACED,
    MEMBERSHIP_EVENT_LEFT, /* answers LINGER and FLUSH */
    MEMBERSHIP_EVENT_TIMER_FIRED,
    /* told by the rendezvous machine */
    MEMBERSHIP_EVENT_WORLD,
    MEMBERSHIP_EVENT_WORLD_RELEASED, /* it was held */
    MEMBERSHIP_EVENT_WORLD_OVER,
    MEMBERSHIP_EVENT_STORE_AWAITED,
    MEMBERSHIP_EVENT_CLOSED,     /* the record was closed without a failure */
    MEMBERSHIP_EVENT_JOB_FAILED, /* the record was closed because of a failure */
    MEMBERSHIP_EVENT_FAILED,
    MEMBERSHIP_EVENT_FAILURE_STANDS,
    MEMBERSHIP_EVENT_EXCLUDED,
    MEMBERSHIP_EVENT_SETTLED,
    /* told by the round exchange */
    MEMBERSHIP_EVENT_STORE_OPENED,
    MEMBERSHIP_EVENT_PLACED,
    MEMBERSHIP_EVENT_NOT_PLACED,
    MEMBERSHIP_EVENT_BARRIER_PASSED,
    MEMBERSHIP_EVENT_BARRIER_FAILED,
    MEMBERSHIP_EVENT_BARRIER_LATE,
    MEMBERSHIP_EVENT_RANK_DISPUTED,
    MEMBERSHIP_EVENT_PEER_RESTART,
    MEMBERSHIP_EVENT_PEER_FAILED,
    MEMBERSHIP_EVENT_KIND_COUNT,
};

#define MEMBERSHIP_TOLD_TEXT_SIZE 1024

/* What the program that places a node says of a round. */
struct membership_told {
    int group_rank; /* ROUND_TOLD, as all but `text` */
    int group_world_size;
    struct rank_assignment ranks;
    int master_port;
    char text[MEMBERSHIP_TOLD_TEXT_SIZE]; /* the master's address; or why the round is over */
};

/* All pointers are borrowed for the call. */
struct membership_event {
    enum membership_event_kind kind;
    struct instant now;
    union {
        struct {
            int64_t ticket;
            int attempt;
        } join;
        /* RESTART_, DOUBT_, FAILURE_ASKED: NULL when no worker of this node has failed.
         * ROOT_CAUSE_LEARNT: never NULL. */
        const struct failure_account *account;
        int port;                           /* HOSTING */
        const char *reason;                 /* MISPLACED: why it does not; NULL: it does */
        const struct membership_told *told; /* ROUND_TOLD, ROUND_REFUSED, ROUND_ENDED */
        int signal; /* LEAVE_ASKED: the signal that told this node to end; 0: none */
        struct {
            const struct rendezvous_effect *effect;
            bool is_cut_off;              /* the connection to the store was lost */
        } rendezvous;                     /* told by the rendezvous machine */
        const struct round_effect *round; /* told by the round exchange */
    };
};

enum membership_effect_kind {
    /* to the machines: events for the node's queue */
    MEMBERSHIP_EFFECT_TELL_AGENT,
    MEMBERSHIP_EFFECT_TELL_RENDEZVOUS,
    MEMBERSHIP_EFFECT_TELL_ROUND,
    /* for the performer */
    MEMBERSHIP_EFFECT_NOTE, /* a line for the log */
    MEMBERSHIP_EFFECT_PUBLISH_ROOT_CAUSE,
    MEMBERSHIP_EFFECT_LOOK_FOR_ROOT_CAUSE, /* replaces a look under way */
    MEMBERSHIP_EFFECT_ARM_TIMER,           /* replaces the one timer */
    MEMBERSHIP_EFFECT_CANCEL_ROLL,         /* drops a CALL_ROLL that is not answered yet */
    MEMBERSHIP_EFFECT_RENEW_WORKER_STORE, /* alone: the store keeps its port and forgets all keys */
    MEMBERSHIP_EFFECT_ASK_PROGRAM,        /* alone, placed by it */
    MEMBERSHIP_EFFECT_DISCONNECT,         /* from the store of the job */
    /* The host of the store waits until no other node is connected, for at most `patience`. */
    MEMBERSHIP_EFFECT_LINGER,
    /* The node waits until the store has answered every request, for at most `patience`. */
    MEMBERSHIP_EFFECT_FLUSH,
    MEMBERSHIP_EFFECT_SETTLED, /* the last effect: the agent may end */
    MEMBERSHIP_EFFECT_KIND_COUNT,
};

enum membership_ask {
    MEMBERSHIP_ASK_ROUND,
    MEMBERSHIP_ASK_BARRIER,
    MEMBERSHIP_ASK_COUNT,
};

struct membership_effect {
    enum membership_effect_kind kind;
    union {
        struct agent_event agent;
        struct rendezvous_event rendezvous;
        struct round_event round;
        struct {
            enum log_level level;
            const char *text;
        } note;
        struct {
            int64_t round;
            const struct failure_account *account; /* PUBLISH; points into the event */
        } root_cause;
        struct {
            enum membership_ask what;
            int attempt;
        } ask;                    /* ASK_PROGRAM */
        struct duration patience; /* LINGER, FLUSH */
        struct instant deadline;  /* ARM_TIMER */
    };
};

#define MEMBERSHIP_EFFECTS_MAXIMUM 8

/* Pointers are valid until the next step of the membership, or point into the event. */
struct membership_effects {
    struct membership_effect items[MEMBERSHIP_EFFECTS_MAXIMUM];
    size_t count;
};

/* Strings are borrowed for the life of the membership. */
struct membership_settings {
    enum membership_kind kind;
    bool is_placed; /* alone: by the program that has started the agent */
    const char *run_id;
    const char *role;
    int local_world_size;
    const char *address;        /* changing: where other nodes reach this node */
    const char *where;          /* the store of the job, for messages: "host:port" or a path */
    const char *master_address; /* alone and fixed: MASTER_ADDR */
    int master_port; /* alone and fixed: MASTER_PORT, where another node hosts the store */
    int node_rank;   /* fixed */
    int node_count;  /* fixed */
    struct duration settling_time; /* changing: see MEMBERSHIP_SETTLING */
    /* changing: a node that a signal told to end is not waited for where enough nodes are left */
    bool is_hasty;
    bool has_succession; /* changing: another node follows a host of the store that leaves */
    bool ignores_losses; /* changing: no new round follows when a node is lost; one that was lost is
                          * still awaited in the exit barrier */
};

enum membership_stage {
    MEMBERSHIP_IDLE,    /* it has not begun, or its workers are being stopped */
    MEMBERSHIP_JOINING, /* it waits for a placement */
    MEMBERSHIP_JOINED,  /* its workers run */
    /* A signal that told another node to end has ended the world, and may still reach this node.
     * The workers run on for settling_time, and no worker is started. In haste they are stopped at
     * once, and for a moment no worker is started. */
    MEMBERSHIP_SETTLING,
    MEMBERSHIP_BARRIER,  /* it waits for the other nodes in the exit barrier */
    MEMBERSHIP_GIVEN_UP, /* its agent was told that it cannot join */
    MEMBERSHIP_STAGE_COUNT,
};

/* The last message of this node to the other nodes. */
enum membership_last_word {
    MEMBERSHIP_NOTHING_TO_SAY,
    MEMBERSHIP_SAYING_IT,
    MEMBERSHIP_SAID_IT,
};

/* A world that is over, in the stage MEMBERSHIP_SETTLING. */
struct membership_settling {
    int signal;      /* the signal that told another node to end */
    char *reason;    /* why the world is over */
    bool is_counted; /* and how many restarts the record counts then */
    int restarts;
    bool is_agent_told; /* the agent knows that the world is over */
    bool is_join_asked; /* the agent has asked for the next world */
};

/* How this node ends. */
struct membership_end {
    enum membership_last_word last_word;
    bool is_asked;   /* the agent waits for SETTLED */
    bool has_begun;  /* LINGER, FLUSH or SETTLED was wanted */
    bool has_passed; /* the node has passed the exit barrier */
    bool is_parting; /* fixed nodes: the host gives the others a moment to hear the last word */
    bool is_grace;   /* fixed nodes: the store is gone, and the workers have a moment to say why */
    /* This node hosts the store, the record was closed, and other nodes may still work. */
    bool is_needed;
    bool has_failed; /* the job has failed: its report should not wait for long */
    bool is_leaving; /* the other nodes go on without this node, or it has lost the record */
    char *reason;    /* why the job failed, until the root cause is known */
    int signal;      /* the signal that told another node to end, or 0 */
};

/* What this node knows of its job. */
struct membership_knowledge {
    struct node_placement placement; /* of the last attempt that was joined */
    char *node;                      /* the identity of this node in the last round; or NULL */
    char *master_address;            /* of the placement */
    char *trouble;                   /* why the join failed, or why another node failed */
    bool is_cut_off;     /* the job's store is gone: nobody knows which node has the report */
    bool has_root_cause; /* a worker of another node failed first */
    struct failure_account root_cause;
};

struct node_membership {
    struct membership_settings settings;
    enum membership_stage stage;
    int64_t ticket;           /* of the last JOIN_ASKED */
    int attempt;              /* of the last JOIN_ASKED */
    int64_t round;            /* of the last world */
    struct restart_ages ages; /* of its restarts */
    /* Changing: a node that is lost now is no reason for a new round, because a node of torchrun's
     * is in this one, or … */
    bool has_foreign_node;
    bool is_closed; /* … the record is closed */
    bool is_host;
    char *misplaced;    /* changing: why this node does not seem to be of this job; or NULL */
    bool is_store_used; /* alone: workers of an earlier attempt have used the store */
    struct membership_settling settling;
    struct membership_end end;
    struct membership_knowledge knowledge;
    struct text note; /* the text of the last NOTE */
};

void node_membership_init(
    struct node_membership *membership, const struct membership_settings *settings);
void node_membership_clear(struct node_membership *membership);

/* Takes one event. It empties `effects` first, and then fills it with what is to be done, in order.
 */
void node_membership_step(struct node_membership *membership, const struct membership_event *event,
    struct membership_effects *effects);

/* The event of the membership for an effect of a machine; MEMBERSHIP_EVENT_NONE when the effect is
 * not for the membership. */
enum membership_event_kind membership_event_of_agent(enum agent_effect_kind kind);
enum membership_event_kind membership_event_of_rendezvous(const struct rendezvous_effect *effect);
enum membership_event_kind membership_event_of_round(enum round_effect_kind kind);

/* Whether events of this kind have an account. */
bool membership_event_has_account(enum membership_event_kind kind);

#endif
