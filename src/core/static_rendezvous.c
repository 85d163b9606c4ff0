/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/static_rendezvous.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define FAILED_WORD "failed "

/* What a handler sees of one step. */
struct step {
    struct static_rendezvous *rendezvous;
    const struct static_event *event;
    struct static_effects *effects;
};

static void start_join(struct step *step);
static void enter_barrier(struct step *step);
static void announce_restart(struct step *step);
static void announce_failure(struct step *step);
static void meet(struct step *step);
static void lose_connection(struct step *step);
static void take_count(struct step *step);
static void take_waited(struct step *step);
static void assign_ranks(struct step *step);
static void take_assignment(struct step *step);
static void take_checked(struct step *step);
static void take_value(struct step *step);
static void start_renewed(struct step *step);
static void time_out(struct step *step);

static void (*const handlers[STATIC_EVENT_KIND_COUNT])(struct step *step) = {
    [STATIC_EVENT_JOIN_ASKED] = start_join,
    [STATIC_EVENT_BARRIER_ASKED] = enter_barrier,
    [STATIC_EVENT_RESTART_ASKED] = announce_restart,
    [STATIC_EVENT_FAILURE_ASKED] = announce_failure,
    [STATIC_EVENT_CONNECTED] = meet,
    [STATIC_EVENT_CONNECTION_LOST] = lose_connection,
    [STATIC_EVENT_COUNTED] = take_count,
    [STATIC_EVENT_WAITED] = take_waited,
    [STATIC_EVENT_ROLE_INFOS] = assign_ranks,
    [STATIC_EVENT_ASSIGNMENT] = take_assignment,
    [STATIC_EVENT_CHECKED] = take_checked,
    [STATIC_EVENT_VALUE] = take_value,
    [STATIC_EVENT_RENEWED] = start_renewed,
    [STATIC_EVENT_TIMER_FIRED] = time_out,
};

void static_rendezvous_init(
    struct static_rendezvous *rendezvous, const struct static_settings *settings) {
    *rendezvous = (struct static_rendezvous){.settings = *settings};
}

void static_rendezvous_clear(struct static_rendezvous *rendezvous) {
    free(rendezvous->assignments);
    *rendezvous = (struct static_rendezvous){0};
}

void static_rendezvous_step(struct static_rendezvous *rendezvous, const struct static_event *event,
    struct static_effects *effects) {
    effects->count = 0;
    struct step step = {.rendezvous = rendezvous, .event = event, .effects = effects};
    handlers[event->kind](&step);
}

/* What several handlers do. */

static void push(struct step *step, struct static_effect effect) {
    assert(step->effects->count < STATIC_EFFECTS_MAXIMUM);
    step->effects->items[step->effects->count++] = effect;
}

static void push_kind(struct step *step, enum static_effect_kind kind) {
    push(step, (struct static_effect){.kind = kind});
}

static struct static_key plain_key(enum static_key_kind kind) {
    return (struct static_key){.kind = kind};
}

static struct static_key attempt_key(
    const struct step *step, enum static_key_kind kind, int attempts_on) {
    return (struct static_key){.kind = kind, .attempt = step->rendezvous->attempt + attempts_on};
}

static struct static_key node_key(const struct step *step, enum static_key_kind kind) {
    return (struct static_key){.kind = kind, .node = step->rendezvous->settings.node_rank};
}

static void push_key(struct step *step, enum static_effect_kind kind, struct static_key key) {
    push(step, (struct static_effect){.kind = kind, .key = key});
}

static void push_value(
    struct step *step, enum static_effect_kind kind, struct static_key key, const char *value) {
    struct static_effect effect = {.kind = kind, .key = key};
    snprintf(effect.value, sizeof effect.value, "%s", value);
    push(step, effect);
}

/* Waits for the key as soon as the waiting connection is free. */
static void want(struct step *step, struct static_key key) {
    struct static_rendezvous *rendezvous = step->rendezvous;
    if (rendezvous->is_waiting) {
        rendezvous->has_wanted = !static_key_equals(&rendezvous->waiting, &key);
        rendezvous->wanted = key;
        return;
    }
    rendezvous->is_waiting = true;
    rendezvous->waiting = key;
    push_key(step, STATIC_EFFECT_WAIT, key);
}

static void arm_timer(struct step *step, struct duration duration) {
    struct static_rendezvous *rendezvous = step->rendezvous;
    rendezvous->is_timer_armed = true;
    rendezvous->deadline = instant_after(step->event->now, duration);
    push(step,
        (struct static_effect){.kind = STATIC_EFFECT_ARM_TIMER, .deadline = rendezvous->deadline});
}

static void disarm_timer(struct step *step) {
    if (step->rendezvous->is_timer_armed) {
        step->rendezvous->is_timer_armed = false;
        push_kind(step, STATIC_EFFECT_DISARM_TIMER);
    }
}

static void end_with(
    struct step *step, enum static_effect_kind kind, const char *reason, int node) {
    disarm_timer(step);
    step->rendezvous->phase = STATIC_OVER;
    push(step, (struct static_effect){.kind = kind, .failed = {.reason = reason, .node = node}});
}

static void joined(struct step *step) {
    struct static_rendezvous *rendezvous = step->rendezvous;
    disarm_timer(step);
    rendezvous->phase = STATIC_RUNNING;
    push(step, (struct static_effect){
                   .kind = STATIC_EFFECT_JOINED,
                   .joined = {.attempt = rendezvous->attempt,
                       .node_count = rendezvous->settings.node_count,
                       .ranks = rendezvous->ranks},
               });
    if (rendezvous->is_coordinated) {
        want(step, attempt_key(step, STATIC_KEY_END, 0));
    }
}

/* Written on every key that another node may be waiting for, now or in its next step; where a key
 * is decided already, it stays as it is. `attempts_on` 1 spares the attempt that runs: it may end
 * well, but there will be no further one. */
static void write_failure(struct step *step, int attempts_on) {
    const struct static_rendezvous *rendezvous = step->rendezvous;
    if (!rendezvous->is_coordinated || !rendezvous->is_connected) {
        return;
    }
    char value[STATIC_RENDEZVOUS_VALUE_SIZE];
    snprintf(value, sizeof value, FAILED_WORD "%d", rendezvous->settings.node_rank);
    static const enum static_key_kind decisions[] = {
        STATIC_KEY_GATHERED, STATIC_KEY_START, STATIC_KEY_END};
    for (; attempts_on <= 1; attempts_on++) {
        for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++) {
            push_value(step, STATIC_EFFECT_COMPARE_SET,
                attempt_key(step, decisions[i], attempts_on), value);
        }
    }
}

/* Asked by the agent. */

static void join_next_attempt(struct step *step) {
    const struct static_rendezvous *rendezvous = step->rendezvous;
    bool is_host = rendezvous->settings.node_rank == 0;
    step->rendezvous->phase = STATIC_GATHERING;
    arm_timer(step, rendezvous->settings.timeout);
    push_key(step, STATIC_EFFECT_ADD, attempt_key(step, STATIC_KEY_READY, 0));
    want(step, attempt_key(step, is_host ? STATIC_KEY_GATHERED : STATIC_KEY_START, 0));
}

static void start_join(struct step *step) {
    struct static_rendezvous *rendezvous = step->rendezvous;
    rendezvous->ticket = step->event->join.ticket;
    rendezvous->attempt = step->event->join.attempt;
    if (rendezvous->phase == STATIC_IDLE) {
        rendezvous->phase = STATIC_CONNECTING;
        arm_timer(step, rendezvous->settings.timeout);
        push_kind(step, STATIC_EFFECT_CONNECT);
    } else if (rendezvous->phase == STATIC_OVER) {
        end_with(step, STATIC_EFFECT_JOIN_FAILED, "the job is over", -1);
    } else if (rendezvous->is_coordinated) {
        join_next_attempt(step);
    } else {
        joined(step); /* ranks are fixed, and the other nodes know nothing of restarts */
    }
}

static void enter_barrier(struct step *step) {
    struct static_rendezvous *rendezvous = step->rendezvous;
    if (rendezvous->phase != STATIC_RUNNING || !rendezvous->is_connected) {
        rendezvous->phase = STATIC_OVER;
        push_kind(step, STATIC_EFFECT_BARRIER_FAILED);
        return;
    }
    rendezvous->phase = STATIC_LEAVING;
    arm_timer(step, duration_from_seconds(STATIC_RENDEZVOUS_EXIT_BARRIER_SECONDS));
    if (rendezvous->is_coordinated) {
        push_key(step, STATIC_EFFECT_ADD, attempt_key(step, STATIC_KEY_FINISHED, 0));
    } else {
        push_key(step, STATIC_EFFECT_ADD, plain_key(STATIC_KEY_NUM_MEMBERS));
        want(step, plain_key(STATIC_KEY_LAST_MEMBER));
    }
}

static void announce_restart(struct step *step) {
    if (step->rendezvous->is_coordinated && step->rendezvous->phase == STATIC_RUNNING) {
        push_value(
            step, STATIC_EFFECT_COMPARE_SET, attempt_key(step, STATIC_KEY_END, 0), "restart");
    }
}

static void announce_failure(struct step *step) {
    if (step->rendezvous->phase != STATIC_OVER) {
        disarm_timer(step);
        write_failure(step, 0);
        step->rendezvous->phase = STATIC_OVER;
    }
}

/* The first join: nodes meet and learn their ranks. */

static void meet(struct step *step) {
    struct static_rendezvous *rendezvous = step->rendezvous;
    const struct static_settings *settings = &rendezvous->settings;
    if (rendezvous->phase != STATIC_CONNECTING) {
        return;
    }
    rendezvous->is_connected = true;
    rendezvous->phase = STATIC_GATHERING;
    push_key(step, STATIC_EFFECT_ADD, plain_key(STATIC_KEY_INIT));
    if (settings->is_uniform) {
        int before = settings->node_rank * settings->local_world_size;
        int all = settings->node_count * settings->local_world_size;
        rendezvous->ranks = (struct rank_assignment){before, all, before, all};
        joined(step);
        return;
    }
    push(step, (struct static_effect){
                   .kind = STATIC_EFFECT_SET_ROLE_INFO,
                   .key = node_key(step, STATIC_KEY_ROLE_INFO),
                   .node = {settings->role, settings->local_world_size},
               });
    want(step, settings->node_rank == 0 ? plain_key(STATIC_KEY_ALL_ROLE_INFOS)
                                        : node_key(step, STATIC_KEY_ASSIGNED_RANKS));
}

static bool are_all_muster(const struct role_info *infos, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (infos[i].muster_version != STATIC_RENDEZVOUS_MUSTER_VERSION) {
            return false;
        }
    }
    return true;
}

/* Node 0 has heard of everybody. */
static void assign_ranks(struct step *step) {
    struct static_rendezvous *rendezvous = step->rendezvous;
    const struct role_info *infos = step->event->role_infos.infos;
    size_t count = (size_t)rendezvous->settings.node_count;
    if (rendezvous->phase != STATIC_GATHERING || rendezvous->assignments != NULL) {
        return;
    }
    assert(step->event->role_infos.count == count);
    struct node_role *nodes = memory_allocate(count * sizeof *nodes);
    for (size_t i = 0; i < count; i++) {
        nodes[i] = (struct node_role){infos[i].role, infos[i].local_world_size};
    }
    rendezvous->assignments = memory_allocate(count * sizeof *rendezvous->assignments);
    enum failure_code code = rank_assignment_compute(nodes, count, rendezvous->assignments);
    free(nodes);
    if (code != FAILURE_NONE) {
        end_with(step, STATIC_EFFECT_JOIN_FAILED, "the nodes' workers are too many", -1);
        return;
    }
    rendezvous->is_coordinated = are_all_muster(infos, count);
    rendezvous->ranks = rendezvous->assignments[0];
    push(step, (struct static_effect){
                   .kind = STATIC_EFFECT_SET_ASSIGNMENTS,
                   .assignments = {.items = rendezvous->assignments,
                       .count = count,
                       .is_coordinated = rendezvous->is_coordinated},
               });
    joined(step);
}

static void take_checked(struct step *step) {
    step->rendezvous->is_coordinated = step->event->is_present;
}

static void take_assignment(struct step *step) {
    struct static_rendezvous *rendezvous = step->rendezvous;
    if (rendezvous->phase != STATIC_GATHERING) {
        return;
    }
    const struct rank_assignment *ranks = &step->event->assignment;
    if (ranks->world_size - ranks->base_rank < rendezvous->settings.local_world_size) {
        end_with(step, STATIC_EFFECT_JOIN_FAILED, "the assigned ranks do not fit this node", 0);
        return;
    }
    rendezvous->ranks = *ranks;
    joined(step);
}

/* Answers of the store. */

static void take_count(struct step *step) {
    if (step->event->count != step->rendezvous->settings.node_count) {
        return;
    }
    struct static_key key = step->event->key;
    if (key.kind == STATIC_KEY_READY) {
        key.kind = STATIC_KEY_GATHERED;
        push_value(step, STATIC_EFFECT_COMPARE_SET, key, "all");
    } else if (key.kind == STATIC_KEY_FINISHED) {
        key.kind = STATIC_KEY_END;
        push_value(step, STATIC_EFFECT_COMPARE_SET, key, "done");
    } else if (key.kind == STATIC_KEY_NUM_MEMBERS) {
        push_value(step, STATIC_EFFECT_SET, plain_key(STATIC_KEY_LAST_MEMBER), "<val_ignored>");
    }
}

static void pass_barrier(struct step *step) {
    if (step->rendezvous->phase == STATIC_LEAVING) {
        disarm_timer(step);
        step->rendezvous->phase = STATIC_OVER;
        push_kind(step, STATIC_EFFECT_BARRIER_PASSED);
    }
}

static void take_waited(struct step *step) {
    struct static_rendezvous *rendezvous = step->rendezvous;
    struct static_key key = rendezvous->waiting;
    rendezvous->is_waiting = false;
    if (rendezvous->phase == STATIC_OVER) {
        return;
    }
    if (rendezvous->has_wanted) {
        rendezvous->has_wanted = false;
        want(step, rendezvous->wanted);
    }
    if (key.kind == STATIC_KEY_ALL_ROLE_INFOS) {
        push_key(step, STATIC_EFFECT_GET_ROLE_INFOS, key);
    } else if (key.kind == STATIC_KEY_ASSIGNED_RANKS) {
        push_key(step, STATIC_EFFECT_CHECK, plain_key(STATIC_KEY_COORDINATED));
        push_key(step, STATIC_EFFECT_GET_ASSIGNMENT, key);
    } else if (key.kind == STATIC_KEY_LAST_MEMBER) {
        pass_barrier(step);
    } else {
        push_key(step, STATIC_EFFECT_GET, key);
    }
}

static void take_peer_failure(struct step *step) {
    int64_t node;
    if (text_parse_integer(step->event->text + strlen(FAILED_WORD), &node) != FAILURE_NONE ||
        node < 0 || node >= step->rendezvous->settings.node_count) {
        node = -1;
    }
    if (step->rendezvous->phase == STATIC_LEAVING) {
        disarm_timer(step);
        step->rendezvous->phase = STATIC_OVER;
        push_kind(step, STATIC_EFFECT_BARRIER_FAILED);
    } else {
        end_with(step, STATIC_EFFECT_PEER_FAILED, "a node failed", (int)node);
    }
}

static void take_restart(struct step *step) {
    disarm_timer(step);
    step->rendezvous->phase = STATIC_RUNNING;
    push(step, (struct static_effect){
                   .kind = STATIC_EFFECT_PEER_RESTART, .attempt = step->event->key.attempt + 1});
}

/* A decision. One about an attempt that this node has left behind is no news. */
static void take_value(struct step *step) {
    const struct static_rendezvous *rendezvous = step->rendezvous;
    const struct static_key *key = &step->event->key;
    const char *text = step->event->text;
    if (rendezvous->phase == STATIC_OVER || key->attempt != rendezvous->attempt) {
        return;
    }
    if (text_starts_with(text, FAILED_WORD)) {
        take_peer_failure(step);
    } else if (key->kind == STATIC_KEY_GATHERED) {
        push_kind(step, STATIC_EFFECT_RENEW_WORKER_STORE);
    } else if (key->kind == STATIC_KEY_START) {
        joined(step);
    } else if (text_equals(text, "restart")) {
        take_restart(step);
    } else {
        pass_barrier(step);
    }
}

/* Node 0 lets everybody go, itself included, unless somebody failed meanwhile. */
static void start_renewed(struct step *step) {
    if (step->rendezvous->phase == STATIC_GATHERING) {
        struct static_key key = attempt_key(step, STATIC_KEY_START, 0);
        push_value(step, STATIC_EFFECT_COMPARE_SET, key, "go");
        want(step, key);
    }
}

/* What ends without the others. */

static void lose_connection(struct step *step) {
    struct static_rendezvous *rendezvous = step->rendezvous;
    rendezvous->is_connected = false;
    rendezvous->is_waiting = false;
    rendezvous->has_wanted = false;
    switch (rendezvous->phase) {
    case STATIC_CONNECTING:
        end_with(step, STATIC_EFFECT_JOIN_FAILED, "the store cannot be reached", -1);
        break;
    case STATIC_GATHERING:
        end_with(step, STATIC_EFFECT_JOIN_FAILED, "the store is gone", 0);
        break;
    case STATIC_RUNNING:
        if (rendezvous->is_coordinated) {
            end_with(step, STATIC_EFFECT_PEER_FAILED, "the store is gone", 0);
        }
        break;
    case STATIC_LEAVING:
        disarm_timer(step);
        rendezvous->phase = STATIC_OVER;
        push_kind(step, STATIC_EFFECT_BARRIER_FAILED);
        break;
    case STATIC_IDLE:
    case STATIC_OVER:
        break;
    }
}

static void time_out(struct step *step) {
    struct static_rendezvous *rendezvous = step->rendezvous;
    if (!rendezvous->is_timer_armed || instant_is_before(step->event->now, rendezvous->deadline)) {
        return;
    }
    rendezvous->is_timer_armed = false;
    if (rendezvous->phase == STATIC_LEAVING) {
        write_failure(step, 1);
        rendezvous->phase = STATIC_OVER;
        push_kind(step, STATIC_EFFECT_BARRIER_FAILED);
    } else {
        write_failure(step, 0);
        end_with(step, STATIC_EFFECT_JOIN_FAILED, "not all nodes joined in time", -1);
        step->effects->items[step->effects->count - 1].failed.is_late = true;
    }
}
