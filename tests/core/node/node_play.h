/* SPDX-License-Identifier: BSD-3-Clause */
/* A whole node in a play: the test tells it facts and stands for the others, a small performer
 * answers what is answered at once. What else the performer is asked to do is kept as text, one
 * effect after the other, for the test to compare; timers and what the record's backend does of its
 * own are left out. */
#ifndef MUSTER_TESTS_CORE_NODE_PLAY_H
#define MUSTER_TESTS_CORE_NODE_PLAY_H

#include "base/memory.h"
#include "core/node/node_machine.h"
#include "node_fixture.h"

#define WORKERS 2 /* of each node */

struct play {
    struct node_settings settings;
    struct node_machine *node;
    struct text story; /* since the test looked last */
    struct text taken; /* the events of the queue, if wanted */
    bool wants_taken;
    bool is_performing;
    struct instant now;
    const char *start_failure;                /* why no worker can be started; NULL: all can */
    const struct failure_account *blamed;     /* the worker of this node that is to blame */
    const struct failure_account *root_cause; /* what a look finds; NULL: nothing */
    struct rendezvous_state record;           /* what all nodes share */
    void (*interlude)(struct play *play, const struct node_effect *effect); /* the test's part */
};

static inline void play_post(struct play *play, struct node_event event);

static inline void play_tell_agent(struct play *play, struct agent_event event) {
    play_post(play, (struct node_event){.part = NODE_AGENT, .agent = event});
}

static inline void play_tell_membership(struct play *play, struct membership_event event) {
    play_post(play, (struct node_event){.part = NODE_MEMBERSHIP, .membership = event});
}

static inline void play_tell_rendezvous(struct play *play, struct rendezvous_event event) {
    play_post(play, (struct node_event){.part = NODE_RENDEZVOUS, .rendezvous = event});
}

static inline void play_tell_round(struct play *play, struct round_event event) {
    play_post(play, (struct node_event){.part = NODE_ROUND, .round = event});
}

/* The performer. */

/* Its own text is overwritten and freed as soon as it is posted. */
static inline void play_fail_start(struct play *play) {
    FREED char *message = memory_duplicate_string(play->start_failure);
    play_tell_agent(play, (struct agent_event){.kind = AGENT_EVENT_START_FAILED,
                              .start_failed = {.local_rank = 1, .message = message}});
    memset(message, '?', strlen(message));
}

static inline void play_perform_agents(struct play *play, const struct agent_effect *effect) {
    static const enum membership_event_kind answers[AGENT_EFFECT_COUNT] = {
        [AGENT_EFFECT_ANNOUNCE_RESTART] = MEMBERSHIP_EVENT_RESTART_ASKED,
        [AGENT_EFFECT_DOUBT_FAILURE] = MEMBERSHIP_EVENT_DOUBT_ASKED,
        [AGENT_EFFECT_ANNOUNCE_FAILURE] = MEMBERSHIP_EVENT_FAILURE_ASKED,
        [AGENT_EFFECT_FINISH] = MEMBERSHIP_EVENT_END_ASKED,
    };
    enum membership_event_kind answer = answers[effect->kind];
    if (effect->kind == AGENT_EFFECT_START_WORKERS && play->start_failure != NULL) {
        play_fail_start(play);
    } else if (effect->kind == AGENT_EFFECT_START_WORKERS) {
        play_tell_agent(play, (struct agent_event){.kind = AGENT_EVENT_WORKERS_STARTED});
    } else if (membership_event_has_account(answer)) {
        play_tell_membership(
            play, (struct membership_event){.kind = answer, .account = play->blamed});
    } else if (answer != MEMBERSHIP_EVENT_NONE) {
        play_tell_membership(play, (struct membership_event){.kind = answer});
    }
}

static inline void play_perform_memberships(
    struct play *play, const struct membership_effect *effect) {
    if (effect->kind == MEMBERSHIP_EFFECT_RENEW_WORKER_STORE) {
        play_tell_membership(
            play, (struct membership_event){.kind = MEMBERSHIP_EVENT_STORE_RENEWED});
    } else if (effect->kind == MEMBERSHIP_EFFECT_LOOK_FOR_ROOT_CAUSE) {
        if (play->root_cause != NULL) {
            play_tell_membership(
                play, (struct membership_event){
                          .kind = MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, .account = play->root_cause});
        }
        play_tell_membership(
            play, (struct membership_event){.kind = MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED});
    }
}

/* Nobody else writes while the node thinks: every write is won. */
static inline void play_perform_rendezvous(
    struct play *play, const struct rendezvous_effect *effect) {
    if (effect->kind == RENDEZVOUS_EFFECT_FETCH) {
        play_tell_rendezvous(play,
            (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RECORD, .state = &play->record});
    } else if (effect->kind == RENDEZVOUS_EFFECT_WRITE) {
        rendezvous_state_copy(effect->write.state, &play->record);
        play_tell_rendezvous(play,
            (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN, .written.has_won = true});
    }
}

static inline void play_perform_rounds(struct play *play, const struct round_effect *effect) {
    char role[] = "default";
    const struct role_info infos[] = {{role, WORKERS, 0, 1, NULL}, {role, WORKERS, 1, 1, NULL}};
    struct round_event answer = {.round = effect->round, .key = effect->key};
    if (effect->kind == ROUND_EFFECT_OPEN_WORKER_STORE) {
        answer.kind = ROUND_EVENT_STORE_OPENED;
        answer.opened.address = "me";
        answer.opened.port = 29600;
        play_tell_round(play, answer);
    } else if (effect->kind == ROUND_EFFECT_GET && effect->key.kind == ROUND_KEY_ALL_ROLE_INFOS) {
        answer.kind = ROUND_EVENT_ROLE_INFOS;
        answer.role_infos.infos = infos;
        answer.role_infos.count = 2;
        play_tell_round(play, answer);
    }
}

static inline void play_perform(struct play *play, const struct node_effect *effect) {
    switch (effect->part) {
    case NODE_AGENT:
        play_perform_agents(play, &effect->agent);
        break;
    case NODE_MEMBERSHIP:
        play_perform_memberships(play, &effect->membership);
        break;
    case NODE_RENDEZVOUS:
        play_perform_rendezvous(play, &effect->rendezvous);
        break;
    case NODE_ROUND:
        play_perform_rounds(play, &effect->round);
        break;
    case NODE_STANDBY:    /* a test's own interlude plays it */
    case NODE_SUCCESSION: /* the same */
    case NODE_PART_COUNT:
        break;
    }
    if (play->interlude != NULL) {
        play->interlude(play, effect);
    }
}

/* The story. */

static inline bool play_is_told(const struct node_effect *effect) {
    switch (effect->part) {
    case NODE_AGENT:
        return effect->agent.kind != AGENT_EFFECT_ARM_TIMER &&
               effect->agent.kind != AGENT_EFFECT_DISARM_TIMER;
    case NODE_RENDEZVOUS:
        return effect->rendezvous.kind != RENDEZVOUS_EFFECT_ARM_TIMER &&
               effect->rendezvous.kind != RENDEZVOUS_EFFECT_PRESENT &&
               effect->rendezvous.kind != RENDEZVOUS_EFFECT_BEAT &&
               effect->rendezvous.kind != RENDEZVOUS_EFFECT_FETCH;
    case NODE_ROUND:
        return effect->round.kind != ROUND_EFFECT_ARM_TIMER &&
               effect->round.kind != ROUND_EFFECT_DISARM_TIMER;
    case NODE_STANDBY:
        return effect->standby.kind != STANDBY_EFFECT_ARM_TIMER &&
               effect->standby.kind != STANDBY_EFFECT_DISARM_TIMER;
    case NODE_SUCCESSION:
        return effect->succession.kind != SUCCESSION_EFFECT_ARM_TIMER;
    case NODE_MEMBERSHIP:
    case NODE_PART_COUNT:
        break;
    }
    return true;
}

static inline void play_tell(struct play *play, const struct node_effect *effect) {
    CLEARED_BY(text_clear) struct text line = {0};
    node_effect_describe(effect, &line); /* all of them: what they point to must be there */
    assert_string_not_equal(text_string(&line), "");
    if (!effect->is_internal && play_is_told(effect)) {
        text_append(&play->story, play->story.length == 0 ? "" : "; ");
        text_append(&play->story, text_string(&line));
    }
}

static inline void play_note_taken(struct play *play) {
    if (play->wants_taken) {
        text_append(&play->taken, play->taken.length == 0 ? "" : "; ");
        node_event_describe(node_machine_next(play->node), &play->taken);
    }
}

static inline void play_step(struct play *play) {
    struct node_effects effects;
    play_note_taken(play);
    node_machine_step(play->node, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        play_tell(play, &effects.items[i]);
        if (!effects.items[i].is_internal) {
            play_perform(play, &effects.items[i]);
        }
    }
}

/* Puts an event on the queue, which waits. */
static inline void play_queue(struct play *play, struct node_event event) {
    node_machine_post(play->node, &event, play->now, (struct wall_time){play->now.nanoseconds});
}

static inline void play_run(struct play *play) {
    play->is_performing = true;
    for (int count = 0; node_machine_next(play->node) != NULL; count++) {
        assert_true(count < 1000);
        play_step(play);
    }
    play->is_performing = false;
}

/* A fact, as the performer learns it: what is posted while effects are carried out waits. */
static inline void play_post(struct play *play, struct node_event event) {
    play_queue(play, event);
    if (!play->is_performing) {
        play_run(play);
    }
}

static inline void play_expect(struct play *play, const char *story) {
    assert_string_equal(text_string(&play->story), story);
    text_clear(&play->story);
}

static inline void play_forget(struct play *play) {
    text_clear(&play->story);
}

/* Facts. */

static inline void play_agent_kind(struct play *play, enum agent_event_kind kind) {
    play_tell_agent(play, (struct agent_event){.kind = kind});
}

static inline void play_membership_kind(struct play *play, enum membership_event_kind kind) {
    play_tell_membership(play, (struct membership_event){.kind = kind});
}

static inline struct node_event play_exit_of(int local_rank, int code) {
    return (struct node_event){.part = NODE_AGENT,
        .agent = {.kind = AGENT_EVENT_WORKER_EXITED,
            .worker_exited = {.local_rank = local_rank, .exit = {.value = code}}}};
}

static inline void play_exit(struct play *play, int local_rank, int code) {
    play_post(play, play_exit_of(local_rank, code));
}

/* All workers have done their part, and nothing of them is left. */
static inline void play_finish_workers(struct play *play) {
    for (int rank = 0; rank < WORKERS; rank++) {
        play_exit(play, rank, 0);
    }
    play_agent_kind(play, AGENT_EVENT_ALL_GONE);
}

static inline void play_signal(struct play *play, int signal) {
    play_tell_agent(
        play, (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = signal});
}

static inline enum agent_phase play_phase(const struct play *play) {
    return node_machine_agent(play->node)->phase;
}

static inline const struct membership_knowledge *play_knowledge(const struct play *play) {
    return node_machine_knowledge(play->node);
}

/* Life. */

static inline void play_open(struct play *play, enum membership_kind kind, int max_restarts) {
    *play = (struct play){0};
    play->settings = (struct node_settings){
        .agent = {.worker_count = WORKERS,
            .max_restarts = max_restarts,
            .shutdown_timeout = duration_from_seconds(30),
            .has_peers = kind != MEMBERSHIP_ALONE,
            .may_lose_peers = kind == MEMBERSHIP_CHANGING},
        .membership = membership_settings_of(kind),
        .rendezvous = {.identity = identity_of("me"), .seed = 1},
        .round = {.role = "default",
            .local_world_size = WORKERS,
            .timeout = duration_from_seconds(kind == MEMBERSHIP_FIXED ? 900 : 600),
            .where = "host:29400",
            .exit_barrier_timeout = duration_from_seconds(300)},
    };
    rendezvous_settings_init(&play->settings.rendezvous.rendezvous);
    play->settings.rendezvous.rendezvous.minimum_nodes = 2;
    play->settings.rendezvous.rendezvous.maximum_nodes = 2;
    play->node = node_machine_new(&play->settings);
}

static inline void play_close(struct play *play) {
    node_machine_free(play->node);
    rendezvous_state_clear(&play->record);
    text_clear(&play->story);
    text_clear(&play->taken);
}

/* Fixed nodes: this is node 1 of 2, and all are Muster's. */

static inline void play_tell_fixed(struct play *play, struct round_event event) {
    event.round = ROUND_OF_FIXED_NODES;
    play_tell_round(play, event);
}

static inline void play_fixed_kind(struct play *play, enum round_event_kind kind) {
    play_tell_fixed(play, (struct round_event){.kind = kind});
}

/* The store answers what was waited for. */
static inline void play_decide(
    struct play *play, enum round_key_kind key, int attempt, const char *text) {
    play_fixed_kind(play, ROUND_EVENT_WAITED);
    play_tell_fixed(play, (struct round_event){.kind = ROUND_EVENT_VALUES,
                              .key = {.kind = key, .round = attempt},
                              .values.decision = text});
}

static inline void play_join_fixed(struct play *play) {
    play_agent_kind(play, AGENT_EVENT_START);
    play_fixed_kind(play, ROUND_EVENT_CONNECTED);
    play_fixed_kind(play, ROUND_EVENT_WAITED);
    play_tell_fixed(play, (struct round_event){.kind = ROUND_EVENT_CHECKED,
                              .key = {.kind = ROUND_KEY_COORDINATED},
                              .is_present = true});
    play_tell_fixed(play, (struct round_event){.kind = ROUND_EVENT_VALUES,
                              .key = {ROUND_KEY_ASSIGNED_RANKS, ROUND_OF_FIXED_NODES, 1},
                              .values = {.has_ranks = true, .ranks = {2, 4, 2, 4}}});
}

/* Nodes that come and go: "m" is this node, any other letter another one of Muster's. */

static inline struct node_identity play_identity_of(char letter) {
    char name[] = {letter, '\0'};
    return identity_of(letter == 'm' ? "me" : name);
}

/* A complete round of these nodes, ranked in this order. */
static inline void play_write_round(struct play *play, int64_t round, const char *letters) {
    rendezvous_state_clear(&play->record);
    play->record.round = round;
    play->record.is_complete = true;
    for (int64_t rank = 0; letters[rank] != '\0'; rank++) {
        struct node_identity identity = play_identity_of(letters[rank]);
        struct rendezvous_node *node = rendezvous_state_obtain(&play->record, &identity);
        node->is_participant = true;
        node->rank = rank;
    }
}

/* Another node has closed the record; an empty reason: the job is done. */
static inline void play_write_end(struct play *play, const char *reason) {
    play->record.is_closed = true;
    play->record.has_failed = reason[0] != '\0';
    strncpy(play->record.reason, reason, sizeof play->record.reason - 1);
    play_tell_rendezvous(play, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CHANGED});
}

static inline void play_change(struct play *play) {
    play_tell_rendezvous(play, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CHANGED});
}

static inline void play_connect(struct play *play, bool is_host) {
    play_tell_rendezvous(play, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED,
                                   .connected = {.has_presence = true, .is_host = is_host}});
}

static inline void play_cut_off(struct play *play) {
    play_tell_rendezvous(play, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                                   .lost = {.reason = "cut off"}});
}

/* The key that was waited for is there. */
static inline void play_waited(struct play *play) {
    play_tell_round(
        play, (struct round_event){.kind = ROUND_EVENT_WAITED, .round = play->record.round});
}

/* This node is rank 0 of two in round 1, and its workers run. */
static inline void play_join_changing(struct play *play, bool is_host) {
    play_write_round(play, 1, "ma");
    if (is_host) {
        play_membership_kind(play, MEMBERSHIP_EVENT_HOSTING);
    }
    play_agent_kind(play, AGENT_EVENT_START);
    play_connect(play, is_host);
    play_waited(play);
    assert_int_equal(play_phase(play), AGENT_RUNNING);
}

#endif
