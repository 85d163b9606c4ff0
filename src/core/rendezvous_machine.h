/* SPDX-License-Identifier: BSD-3-Clause */
/* One node's part in a dynamic rendezvous, decided: what to read from and write to the shared
 * record, when, and what to tell the agent. Drives rendezvous_decision (torchrun's rules, whenever
 * one of its nodes takes part) and rendezvous_regroup (Muster's, when none does) against a record
 * that is only changed by compare-and-set. Matches DynamicRendezvousHandler and
 * _DistributedRendezvousOpExecutor in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py,
 * which poll where this is told. docs/dynamic-rendezvous.md has the protocol.
 *
 * Once it has joined, a node strives to be in the newest round. When its round ends, the agent is
 * told (ROUND_OVER) and stops its workers, while the machine finds the way into the next round; the
 * result (WORLD) is told when the agent asks for it with JOIN_ASKED.
 *
 * The contract with the performer:
 * - CONNECT (retrying until its deadline) is answered by CONNECTED or CONNECTION_LOST; nothing else
 *   is asked before. After
 *   CONNECTION_LOST the performer forgets what is under way and answers nothing of it.
 * - FETCH is answered by RECORD, WRITE by WRITTEN, at most one of both is under way. A write is
 *   conditional on the record seen last, and tells watchers unless it is quiet.
 * - CHANGED comes when the record may have changed since it was seen last; more often is harmless,
 *   and a lost one costs at most a heartbeat's interval.
 * - PRESENT before anything else after CONNECT: it ties the identity to the connection. When the
 *   backend serves presence, the node that hosts it is told NODE_GONE for identities whose
 *   connection ended or fell silent, and STRANGER_WROTE of writes by nodes without presence.
 * - FAILURE_ASKED is answered by FAILURE_STANDS, ROUND_OVER, CLOSED or FAILED. After each of them
 *   a CALL_ROLL that is not answered yet is forgotten.
 * - BEAT says that this node is alive (to a host with presence) and that the store still answers.
 * - One timer; ARM_TIMER replaces it. */
#ifndef MUSTER_CORE_RENDEZVOUS_MACHINE_H
#define MUSTER_CORE_RENDEZVOUS_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/random.h"
#include "core/heartbeat_watch.h"
#include "core/node_identity.h"
#include "core/rendezvous_settings.h"
#include "core/rendezvous_state.h"

enum rendezvous_event_kind {
    /* asked by the agent */
    RENDEZVOUS_EVENT_JOIN_ASKED,    /* its workers are gone: tell it of a world */
    RENDEZVOUS_EVENT_RESTART_ASKED, /* a worker failed here, and the job shall go on */
    RENDEZVOUS_EVENT_FAILURE_ASKED, /* … and cannot, unless a lost node was the cause */
    RENDEZVOUS_EVENT_DONE_ASKED,    /* all workers here are done: it enters the exit barrier */
    RENDEZVOUS_EVENT_CLOSE_ASKED,   /* the job is over; an empty reason is success */
    RENDEZVOUS_EVENT_LEAVE_ASKED,   /* this node goes, the job may go on */
    /* told by the backend */
    RENDEZVOUS_EVENT_CONNECTED,
    RENDEZVOUS_EVENT_CONNECTION_LOST,
    RENDEZVOUS_EVENT_RECORD,
    RENDEZVOUS_EVENT_WRITTEN,
    RENDEZVOUS_EVENT_CHANGED,
    RENDEZVOUS_EVENT_STRANGER_WROTE, /* a node that tells nobody what it writes */
    RENDEZVOUS_EVENT_NODE_GONE,
    RENDEZVOUS_EVENT_FINISHED_COUNT, /* answers COUNT_FINISHED */
    RENDEZVOUS_EVENT_ROLL_ANSWERED,  /* answers CALL_ROLL: by every participant */
    RENDEZVOUS_EVENT_BROKEN, /* the record cannot be read: it is left as it is, and this node ends
                              */
    RENDEZVOUS_EVENT_TIMER_FIRED,
    RENDEZVOUS_EVENT_KIND_COUNT,
};

struct rendezvous_event {
    enum rendezvous_event_kind kind;
    struct instant now;
    struct wall_time wall_now; /* for heartbeats torchrun's nodes read; never compared */
    union {
        const char *reason; /* RESTART_ASKED, FAILURE_ASKED, CLOSE_ASKED, BROKEN; borrowed */
        struct {
            const char *reason; /* borrowed */
            bool is_silent;     /* no answer; else the other end closed or refused */
        } lost;
        struct {
            bool has_presence;
            bool is_host; /* this node is told of the nodes that are gone */
        } connected;
        const struct rendezvous_state *state; /* RECORD; borrowed; NULL: there is none yet */
        struct {
            bool has_won;
            const struct rendezvous_state *state; /* the record as it is, when lost; borrowed */
        } written;
        struct {
            struct node_identity identity;
            bool has_finished; /* its workers were done before */
        } gone;
        int64_t finished_count;
    };
};

enum rendezvous_effect_kind {
    RENDEZVOUS_EFFECT_CONNECT,
    RENDEZVOUS_EFFECT_PRESENT,
    RENDEZVOUS_EFFECT_BEAT,
    RENDEZVOUS_EFFECT_FETCH,
    RENDEZVOUS_EFFECT_WRITE,
    RENDEZVOUS_EFFECT_TELL_WATCHERS,  /* of a change whose writer did not */
    RENDEZVOUS_EFFECT_COUNT_FINISHED, /* how many nodes are in the round's exit barrier */
    RENDEZVOUS_EFFECT_CALL_ROLL,      /* wait until all of the round have answered */
    RENDEZVOUS_EFFECT_ANSWER_ROLL,    /* this node is there */
    RENDEZVOUS_EFFECT_ARM_TIMER,
    /* told to the agent */
    RENDEZVOUS_EFFECT_WORLD,
    RENDEZVOUS_EFFECT_ROUND_OVER,
    RENDEZVOUS_EFFECT_CLOSED,
    RENDEZVOUS_EFFECT_FAILED,
    RENDEZVOUS_EFFECT_FAILURE_STANDS, /* after FAILURE_ASKED; then as after CLOSE_ASKED */
    RENDEZVOUS_EFFECT_SETTLED,        /* after CLOSE_ASKED and LEAVE_ASKED: done, or given up */
    RENDEZVOUS_EFFECT_KIND_COUNT,
};

struct rendezvous_effect {
    enum rendezvous_effect_kind kind;
    union {
        struct {
            struct node_identity identity;
            bool has_finished;
        } present;
        struct {
            const struct rendezvous_state *state; /* the machine's; good until the next step */
            bool is_quiet;                        /* heartbeats only: no watcher needs to know */
        } write;
        int64_t round; /* COUNT_FINISHED */
        struct {
            int64_t round;
            int number; /* CALL_ROLL: of nodes; ANSWER_ROLL: this node's rank */
        } roll;
        struct instant deadline; /* ARM_TIMER; CONNECT: until when to try */
        struct {
            const struct rendezvous_state *state; /* the machine's; good until the next step */
            struct node_identity identity;        /* this node's */
            int64_t round;
            int group_rank;
            int node_count;
        } world;
        struct {
            const char *reason; /* ROUND_OVER, CLOSED, FAILED; the machine's, good until the next
                                   step. CLOSED: empty when nobody failed */
            bool is_spare;      /* CLOSED: this node only waited, and may leave with success */
        } told;
    };
};

#define RENDEZVOUS_EFFECTS_MAXIMUM 12

struct rendezvous_effects {
    struct rendezvous_effect items[RENDEZVOUS_EFFECTS_MAXIMUM];
    size_t count;
};

struct rendezvous_machine_settings {
    struct rendezvous_settings rendezvous;
    struct node_identity identity;
    uint64_t seed; /* of the jitter between attempts to write */
};

struct rendezvous_machine;

/* The caller frees the machine with rendezvous_machine_free, which accepts NULL. */
struct rendezvous_machine *rendezvous_machine_new(
    const struct rendezvous_machine_settings *settings);
void rendezvous_machine_free(struct rendezvous_machine *machine);

/* Takes one event; `effects` is emptied first and then holds what is to be done, in order. */
void rendezvous_machine_step(struct rendezvous_machine *machine,
    const struct rendezvous_event *event, struct rendezvous_effects *effects);

/* The record as this node saw it last; for reports. */
const struct rendezvous_state *rendezvous_machine_state(const struct rendezvous_machine *machine);
/* This node's name now: another one after each connection. */
const struct node_identity *rendezvous_machine_identity(const struct rendezvous_machine *machine);

#endif
