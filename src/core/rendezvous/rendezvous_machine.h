/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of one node in a dynamic rendezvous. The machine decides when to read and write the
 * shared record, what to write, and what to tell the agent. It follows torchrun's rules
 * (rendezvous_decision) whenever one of torchrun's nodes is a participant, else Muster's rules
 * (rendezvous_regroup). The record is changed only by compare-and-set. Matches
 * DynamicRendezvousHandler and _DistributedRendezvousOpExecutor in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py, which poll the record where this
 * machine is told of changes. docs/dynamic-rendezvous.md has the protocol.
 *
 * A node that has joined always tries to get into the newest round. When its round ends, the
 * machine tells the agent (ROUND_OVER), which stops its workers, and goes on to join the next round
 * meanwhile. It tells the agent the new world (WORLD) when the agent asks for it with JOIN_ASKED.
 * Where the host of the store ranks the nodes, the world may be held: other nodes have workers of
 * the world before, and no worker begins until RELEASED.
 *
 * The place of the node in the record (rows) and its goal (columns) decide what the node does. It
 * takes part from JOIN_ASKED on. CLOSE_ASKED makes it close the record, LEAVE_ASKED makes it leave.
 * Its part is over with CLOSED, FAILED or SETTLED. A node that is asked to close or leave before it
 * is connected, or when its part is over, tells SETTLED at once.
 *
 *                      | takes part                           | closes         | leaves
 * ---------------------+--------------------------------------+----------------+------------------
 * not connected        | CONNECT; ROUND_OVER, if in a world;  | SETTLED        | SETTLED
 *                      | FAILED, if it hosts the store or     |                |
 *                      | could not connect                    |                |
 * connecting           | waits for the answer; STORE_AWAITED  | SETTLED        | SETTLED
 *                      | now and then, if it was connected    |                |
 * no record seen yet,  | waits for the answer                 | waits, up to   | waits, up to
 * or a request is      |                                      | close_timeout  | close_timeout
 * under way            |                                      |                |
 * record closed        | CLOSED. If it doubts a failure, and  | SETTLED        | SETTLED
 *                      | the job has not failed:              |                |
 *                      | FAILURE_STANDS, SETTLED. If it is in |                |
 *                      | a world and the job has not failed,  |                |
 *                      | its part goes on with signs of life  |                |
 * in no list           | WARM, if a world runs, and waits for | closes the     | SETTLED
 *                      | the answer; then adds itself to the  | record         |
 *                      | participants, the wait list or the   |                |
 *                      | spares                               |                |
 * participant, round   | completes the round when it has      | closes the     | removes itself
 * open                 | enough; gives up after join_timeout  | record         |
 * participant, round   | WORLD, once the agent asks. A        | closes the     | begins the next
 * complete             | failure here, a lost node or a new   | record         | round without
 *                      | node ends the round: the node begins |                | itself; SETTLED
 *                      | the next round, or (torchrun's       |                | if its workers
 *                      | rules) leaves this one               |                | are done
 * waiting              | waits as long as Muster's nodes run, | closes the     | removes itself
 *                      | else up to join_timeout              | record         |
 * spare                | waits without a deadline             | closes the     | removes itself
 *                      |                                      | record         |
 *
 * In every row below "record closed" a node that takes part also removes nodes that are gone from
 * the record, and writes heartbeats. A node whose part is over does nothing, except that it answers
 * JOIN_ASKED by telling its end again.
 *
 * The contract with the performer:
 * - The performer answers CONNECT by CONNECTED or CONNECTION_LOST. It retries until the deadline,
 *   or until nothing but refusals has come for `refusal_patience`. The machine asks for nothing
 * else before. After CONNECTION_LOST the performer answers no request that was under way.
 * - The performer answers FETCH by RECORD, and WRITE by WRITTEN. At most one of them is under way.
 *   A write succeeds only if the record is still the one seen last. It tells the watchers unless it
 *   is quiet.
 * - CHANGED comes when the record may have changed since it was seen last. Too many of them are
 *   harmless. A lost one delays the node by one heartbeat interval at most.
 * - PRESENT is the first effect on a new connection. It ties the identity of the node to the
 *   connection. When the backend serves presence, the host of the store gets NODE_GONE for each
 *   identity whose connection ended or fell silent, and STRANGER_WROTE when a node without presence
 *   has written.
 * - The machine answers FAILURE_ASKED by FAILURE_STANDS, ROUND_OVER, CLOSED or FAILED. After each
 *   of them the performer drops a CALL_ROLL that is not answered yet.
 * - The performer answers WARM by WARMED when the standby workers of this node are ready, or when
 * it is known that they will not be. The machine goes on without the answer at the deadline, and
 * when the world that it has found does not run any more.
 * - Where this node hosts the store, it gets WISHED for each presence, also for one that has no
 *   wish: of whom it has heard nothing, it lets nobody in. TELL_STANDINGS puts a message into the
 *   queue of each node, in place of an earlier one that the node has not taken yet. A node that
 *   delegates gets it as STANDING. In a world that they have ranked, rank 0 says by OPENED where
 *   its workers meet. CUT_OFF ends the connection on which the node is present. It connects again,
 *   and has another name then.
 * - BEAT is a sign of life: it tells a host that serves presence that this node is alive, and tells
 *   this node that the store still answers.
 * - The machine has one timer. ARM_TIMER replaces it.
 *
 * Where the host of the store may be succeeded by another node (core/succession), a connection that
 * is lost is not the end of a world: CONNECTION_LOST with `is_host_sought` is followed by another
 * CONNECT, and the workers run on meanwhile, unless FENCED comes. The node keeps its name as long
 * as the record has it. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_MACHINE_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_delegation.h"
#include "core/rendezvous/rendezvous_regroup.h"
#include "core/rendezvous/rendezvous_state.h"

struct rendezvous_machine;

enum rendezvous_event_kind {
    /* asked by the agent */
    RENDEZVOUS_EVENT_JOIN_ASKED,    /* its workers have ended; it asks for a world */
    RENDEZVOUS_EVENT_RESTART_ASKED, /* a worker failed here, and the job restarts */
    /* A worker failed here, and the job has no restart left. The failure ends the job unless the
     * loss of a node was its cause. */
    RENDEZVOUS_EVENT_FAILURE_ASKED,
    RENDEZVOUS_EVENT_WARMED,      /* answers WARM */
    RENDEZVOUS_EVENT_OPENED,      /* this node has opened the store of its world's workers */
    RENDEZVOUS_EVENT_PLACED,      /* the nodes of its world have exchanged what the workers need */
    RENDEZVOUS_EVENT_DONE_ASKED,  /* all workers here are done; the node enters the exit barrier */
    RENDEZVOUS_EVENT_CLOSE_ASKED, /* the job is over; an empty reason is success */
    RENDEZVOUS_EVENT_LEAVE_ASKED, /* this node leaves; the job may go on without it */
    /* told by the backend */
    RENDEZVOUS_EVENT_CONNECTED,
    RENDEZVOUS_EVENT_CONNECTION_LOST,
    RENDEZVOUS_EVENT_RECORD,
    RENDEZVOUS_EVENT_WRITTEN,
    RENDEZVOUS_EVENT_CHANGED,
    RENDEZVOUS_EVENT_STRANGER_WROTE, /* a node without presence has written */
    RENDEZVOUS_EVENT_NODE_GONE,
    /* To the host: a node has shown itself, and delegates to this one, or does not. */
    RENDEZVOUS_EVENT_WISHED,
    RENDEZVOUS_EVENT_STANDING,    /* the host, to which this node delegates, tells how it stands */
    RENDEZVOUS_EVENT_HOST_LEAVES, /* its store; core/succession is told, and not this machine */
    RENDEZVOUS_EVENT_FINISHED_COUNT, /* answers COUNT_FINISHED */
    RENDEZVOUS_EVENT_ROLL_ANSWERED,  /* answers CALL_ROLL: every participant has answered */
    /* The record cannot be read. The node leaves it as it is, and ends. */
    RENDEZVOUS_EVENT_BROKEN,
    /* This node has been without a host for so long that the others may have gone on without it. */
    RENDEZVOUS_EVENT_FENCED,
    /* Of the host: whether its register takes what it writes. */
    RENDEZVOUS_EVENT_REGISTER,
    RENDEZVOUS_EVENT_TIMER_FIRED,
    RENDEZVOUS_EVENT_KIND_COUNT,
};

struct rendezvous_event {
    enum rendezvous_event_kind kind;
    struct instant now;
    struct wall_time wall_now; /* for the heartbeats that torchrun's nodes read; the machine
                                  compares no wall times */
    /* LEAVE_ASKED, CLOSE_ASKED: the signal that told this node to end; 0: none. */
    int signal;
    /* RECORD and WRITTEN, when there is no record: the store shows that there was one. */
    bool has_traces;
    union {
        /* RESTART_ASKED, FAILURE_ASKED, CLOSE_ASKED, BROKEN, FENCED; borrowed */
        const char *reason;
        struct {
            const char *reason; /* borrowed */
            bool is_silent;     /* there was no answer; else the other end closed or refused */
            /* This node stood still, and gives up its connection: the store may be well, also one
             * that it hosts. */
            bool is_own_doing;
            /* After CONNECT, the store has answered on some connection, though not on all that the
             * node needs: it is there, and the network is bad. */
            bool was_heard;
            bool is_host_sought; /* another node may come to host the store */
            bool keeps_hosting;  /* this node serves its store on, and connects to it again */
        } lost;
        struct {
            bool has_presence;
            bool is_host; /* this node gets NODE_GONE */
            /* Where the host may change: it is that of the connection before, with its store. */
            bool is_same_store;
            bool offers_delegation;
        } connected;
        const struct rendezvous_state *state; /* RECORD; borrowed; NULL: there is no record yet */
        struct {
            bool has_won;
            const struct rendezvous_state *state; /* when lost: the record as it is; borrowed */
        } written;
        struct {
            struct node_identity identity;
            bool has_finished; /* its workers were done before it was gone */
        } gone;
        struct {
            struct node_identity identity;
            struct rendezvous_wish wish;
        } wished;
        struct {
            /* The record, in which this node alone is listed, or nobody, and the others are a
             * crowd. Borrowed. */
            const struct rendezvous_state *state;
            int64_t answers;              /* the sequence number of the wish that was heard last */
            struct rank_assignment ranks; /* in the round of `state`; world size 0: not told */
            struct rendezvous_meeting meeting; /* of that round; port 0: not told */
            bool is_held;      /* the ranks in that round are told when all its nodes are ready */
            bool is_withdrawn; /* this node is to write the record itself; there is no state */
        } standing;
        int64_t finished_count;
        bool is_register_stuck; /* REGISTER */
        bool is_successor; /* HOST_LEAVES: this node is to host the store; else another one does */
        struct {           /* OPENED: where the workers meet */
            int64_t round;
            const char *address; /* borrowed */
            int port;
        } opened;
    };
};

enum rendezvous_effect_kind {
    RENDEZVOUS_EFFECT_CONNECT,
    RENDEZVOUS_EFFECT_PRESENT,
    RENDEZVOUS_EFFECT_BEAT,
    RENDEZVOUS_EFFECT_FETCH,
    RENDEZVOUS_EFFECT_WRITE,
    RENDEZVOUS_EFFECT_TELL_WATCHERS,  /* of a change that its writer has not announced */
    RENDEZVOUS_EFFECT_COUNT_FINISHED, /* how many nodes are in the exit barrier of the round */
    RENDEZVOUS_EFFECT_CALL_ROLL,      /* wait until all participants of the round have answered */
    RENDEZVOUS_EFFECT_ANSWER_ROLL,    /* this node is still in the round */
    RENDEZVOUS_EFFECT_WARM,           /* make the standby workers ready, before this node joins */
    RENDEZVOUS_EFFECT_TELL_STANDINGS, /* to nodes that delegate to this one */
    RENDEZVOUS_EFFECT_CUT_OFF,        /* ends the connection of a node that delegates to this one */
    RENDEZVOUS_EFFECT_ARM_TIMER,
    /* told to the agent */
    RENDEZVOUS_EFFECT_WORLD,
    /* The last world told, which was held, may begin: all its nodes are ready. */
    RENDEZVOUS_EFFECT_RELEASED,
    RENDEZVOUS_EFFECT_ROUND_OVER,
    RENDEZVOUS_EFFECT_STORE_AWAITED, /* the connection to the store is still lost */
    /* The workers of this node have failed first too often, and the others go on without it. It
     * leaves, as after LEAVE_ASKED. */
    RENDEZVOUS_EFFECT_EXCLUDED,
    RENDEZVOUS_EFFECT_CLOSED,
    RENDEZVOUS_EFFECT_FAILED,
    RENDEZVOUS_EFFECT_FAILURE_STANDS, /* after FAILURE_ASKED; the node then goes on as after
                                         CLOSE_ASKED */
    RENDEZVOUS_EFFECT_SETTLED, /* after CLOSE_ASKED and LEAVE_ASKED: the node is done, or has given
                                  up */
    RENDEZVOUS_EFFECT_KIND_COUNT,
};

struct rendezvous_effect {
    enum rendezvous_effect_kind kind;
    /* CONNECT: how long a machine that refuses every connection is tried. Zero: until the deadline.
     */
    struct duration refusal_patience;
    union {
        struct {
            struct node_identity identity;
            bool has_finished;
            /* NULL: the node writes the record itself. The machine's; good until the next step. */
            const struct rendezvous_wish *wish;
        } present;
        struct {
            /* The machine's; good until the next step. */
            const struct rendezvous_state *record;
            struct rendezvous_crowd crowd; /* all nodes of the record */
            const struct rendezvous_telling *items;
            size_t count;
            bool is_withdrawn; /* they are to write the record themselves */
        } standings;
        struct node_identity cut_off; /* CUT_OFF */
        struct {
            const struct rendezvous_state *state; /* the machine's; good until the next step */
            bool is_quiet;                        /* no watcher needs to know */
        } write;
        int64_t round; /* COUNT_FINISHED */
        struct {
            int64_t round;
            int number; /* CALL_ROLL: how many participants; ANSWER_ROLL: this node's rank */
        } roll;
        struct instant deadline; /* ARM_TIMER: when it fires; CONNECT: until when to try; WARM:
                                    when it is too late */
        struct {
            struct duration waited; /* STORE_AWAITED: since the connection was lost, and … */
            struct duration left;   /* … until this node gives up */
        } awaited;
        struct {
            const struct rendezvous_state *state; /* the machine's; good until the next step */
            struct restart_ages ages;             /* of its restarts, now */
            struct node_identity identity;        /* of this node */
            int64_t round;
            int group_rank;
            int node_count;
            /* No worker begins before RELEASED, which has the ranks and the meeting. */
            bool is_held;
            /* World size 0: the nodes exchange them (core/round). Else each knows its own. */
            struct rank_assignment ranks;
            struct rendezvous_meeting meeting; /* port 0: rank 0 tells the others (core/round) */
            bool had_roll;                     /* in this round or before it, the roll was called */
        } world;
        struct {
            int64_t round;
            struct rank_assignment ranks;
            struct rendezvous_meeting meeting; /* port 0: rank 0 tells the others (core/round) */
        } released;
        struct {
            /* ROUND_OVER, CLOSED, FAILED; the machine's, good until the next step. CLOSED: empty
             * when the job has not failed. */
            const char *reason;
            bool is_spare; /* CLOSED: this node only waited, and may end with success */
            /* ROUND_OVER by a signal: enough nodes are left, and the next round is complete. */
            bool is_next_whole;
            /* ROUND_OVER: because nodes came or went. No worker has failed, as far as is known. */
            bool is_harmless;
            /* ROUND_OVER: the record counts so many restarts for the next round. */
            bool is_counted;
            int restarts;
            int signal; /* ROUND_OVER, CLOSED: the signal that told a node to end; 0: none */
        } told;
    };
};

enum rendezvous_parking {
    RENDEZVOUS_NOT_PARKED,
    RENDEZVOUS_WAITS_FOR_ROUND, /* on the wait list: it asks for a new round */
    RENDEZVOUS_IS_SPARE,        /* the round has all nodes that it may have */
};

#define RENDEZVOUS_EFFECTS_MAXIMUM 12

struct rendezvous_effects {
    struct rendezvous_effect items[RENDEZVOUS_EFFECTS_MAXIMUM];
    size_t count;
};

struct rendezvous_machine_settings {
    struct rendezvous_settings rendezvous;
    struct node_identity identity;
    /* How long this node, when it is new, makes its standby workers ready before it joins a running
     * world. Zero: it joins at once. */
    struct duration warming_patience;
    bool has_succession; /* another node may come to host the store */
    /* What the host of the store may compute this node's ranks from; the role is borrowed for the
     * machine's life. NULL: the nodes are to exchange their ranks. */
    struct node_role role;
    uint64_t seed; /* for the random pauses between attempts to write, and for new names */
};

struct rendezvous_machine;

/* The caller frees the machine with rendezvous_machine_free, which accepts NULL. */
struct rendezvous_machine *rendezvous_machine_new(
    const struct rendezvous_machine_settings *settings);
void rendezvous_machine_free(struct rendezvous_machine *machine);

/* Takes one event. It empties `effects` first, and then fills it with what the performer is to do,
 * in order. */
void rendezvous_machine_step(struct rendezvous_machine *machine,
    const struct rendezvous_event *event, struct rendezvous_effects *effects);

/* The record as this node saw it last, for reports. */
const struct rendezvous_state *rendezvous_machine_state(const struct rendezvous_machine *machine);
/* Whether this node is in a round that has all its nodes. */
bool rendezvous_machine_is_in_round(const struct rendezvous_machine *machine);
/* Adds the addresses of the nodes of that round that are not ready to begin it. Who does not host
 * the store, or has not ranked the round, knows of none. */
void rendezvous_machine_list_unready(
    const struct rendezvous_machine *machine, struct text_list *out_names);
/* When this node is to admit the nodes that wait, for reports. */
struct rendezvous_admission rendezvous_machine_admission(
    const struct rendezvous_machine *machine, struct instant now);
/* Whether this node waits beside the world of others, as the record says that it saw last. */
enum rendezvous_parking rendezvous_machine_parking(const struct rendezvous_machine *machine);
/* Whether other nodes may begin a world without this one when it is silent. Nobody does so where it
 * hosts the store and is alone in the record. */
bool rendezvous_machine_may_be_missed(const struct rendezvous_machine *machine);
/* The current name of this node. It changes with each new connection. */
/* Whether an agent of Muster's hosts the store, and whether it is this one. */
bool rendezvous_machine_has_host(const struct rendezvous_machine *machine);
bool rendezvous_machine_is_host(const struct rendezvous_machine *machine);
const struct node_identity *rendezvous_machine_identity(const struct rendezvous_machine *machine);

#endif
