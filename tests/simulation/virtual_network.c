/* SPDX-License-Identifier: BSD-3-Clause */
#include "virtual_parts.h"

#include "unit.h"

#include "wire/static_rendezvous_store.h"

static void answer_arrives(struct virtual_cluster *cluster, struct virtual_node *node,
    struct virtual_happening *happening) {
    virtual_tell_rendezvous(cluster, node, happening->answer.event);
}

static void take_reply(struct virtual_cluster *cluster, struct virtual_connection *connection,
    const struct store_reply *reply) {
    struct static_effect effect = connection->unanswered[0];
    connection->unanswered_count--;
    memmove(connection->unanswered, connection->unanswered + 1,
        connection->unanswered_count * sizeof *connection->unanswered);
    if (!static_effect_wants_answer(&effect)) {
        return;
    }
    struct static_answer answer;
    assert_int_equal(static_answer_read(&effect, reply, &answer), FAILURE_NONE);
    int64_t time = cluster->now + virtual_delay(cluster, VIRTUAL_LONGEST_DELAY);
    time = time > connection->answer_time ? time : connection->answer_time;
    connection->answer_time = time;
    virtual_schedule(cluster, connection->node, time, answer_arrives)->answer = answer;
}

static void request_arrives(struct virtual_cluster *cluster, struct virtual_node *node,
    struct virtual_happening *happening) {
    struct virtual_connection *connection = node->connections[happening->connection];
    if (cluster->store == NULL || connection->is_lost) {
        return;
    }
    struct owned_request request;
    struct store_effects effects = {0};
    static_request_build(&happening->effect, &node->rendezvous.settings, "none", &request);
    if (store_operation_reply_kind(request.request.operation) != STORE_REPLY_NONE) {
        assert_true(connection->unanswered_count < 64);
        connection->unanswered[connection->unanswered_count++] = happening->effect;
    }
    store_table_apply(cluster->store, &connection->at_store, &request.request, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        assert_int_equal(effects.items[i].kind, STORE_EFFECT_REPLY);
        take_reply(cluster, effects.items[i].connection->owner, &effects.items[i].reply);
    }
    store_effects_clear(&effects);
    owned_request_clear(&request);
}

static void send_request(struct virtual_cluster *cluster, struct virtual_node *node,
    const struct static_effect *effect) {
    int index = effect->kind == STATIC_EFFECT_WAIT ? 1 : 0;
    struct virtual_connection *connection = node->connections[index];
    int64_t time = cluster->now + virtual_delay(cluster, VIRTUAL_LONGEST_DELAY);
    time = time > connection->request_time ? time : connection->request_time;
    connection->request_time = time;
    struct virtual_happening *happening = virtual_schedule(cluster, node, time, request_arrives);
    happening->effect = *effect;
    happening->connection = index;
}

static void static_event_happens(struct virtual_cluster *cluster, struct virtual_node *node,
    struct virtual_happening *happening) {
    if (happening->life == 0 || happening->life == node->static_timer_life) {
        virtual_tell_rendezvous(cluster, node, happening->answer.event);
    }
}

void virtual_tell_rendezvous_later(struct virtual_cluster *cluster, struct virtual_node *node,
    enum static_event_kind kind, int64_t delay) {
    virtual_schedule(cluster, node, cluster->now + delay, static_event_happens)->answer.event.kind =
        kind;
}

static void renew_store(struct virtual_cluster *cluster, struct virtual_node *node) {
    struct store_effects effects = {0};
    for (int i = 0; i < cluster->settings.node_count; i++) {
        assert_false(virtual_node_has_processes(&cluster->nodes[i]));
    }
    store_table_renew(cluster->store, slice_from_string("/none/"), &effects);
    assert_int_equal(effects.count, 0);
    store_effects_clear(&effects);
    cluster->renewals++;
    virtual_tell_rendezvous_later(
        cluster, node, STATIC_EVENT_RENEWED, virtual_delay(cluster, VIRTUAL_LONGEST_DELAY));
}

/* What the rendezvous tells the agent; false for effects that are something else. */
static bool translate(const struct virtual_cluster *cluster, const struct virtual_node *node,
    const struct static_effect *effect, struct agent_event *out_event) {
    static const struct {
        enum static_effect_kind effect;
        enum agent_event_kind event;
    } kinds[] = {
        {STATIC_EFFECT_JOINED, AGENT_EVENT_JOINED},
        {STATIC_EFFECT_JOIN_FAILED, AGENT_EVENT_JOIN_FAILED},
        {STATIC_EFFECT_BARRIER_PASSED, AGENT_EVENT_BARRIER_PASSED},
        {STATIC_EFFECT_BARRIER_FAILED, AGENT_EVENT_BARRIER_FAILED},
        {STATIC_EFFECT_PEER_RESTART, AGENT_EVENT_PEER_RESTART},
        {STATIC_EFFECT_PEER_FAILED, AGENT_EVENT_PEER_FAILED},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].effect == effect->kind) {
            out_event->kind = kinds[i].event;
            break;
        }
        if (i + 1 == sizeof kinds / sizeof *kinds) {
            return false;
        }
    }
    if (effect->kind == STATIC_EFFECT_JOINED) {
        int base_rank = node->rank * cluster->settings.worker_count;
        assert_int_equal(effect->joined.ranks.base_rank, base_rank);
        out_event->joined.ticket = node->rendezvous.ticket;
        out_event->joined.restarts = effect->joined.attempt;
        out_event->joined.node_count = effect->joined.node_count;
    } else if (effect->kind == STATIC_EFFECT_JOIN_FAILED) {
        out_event->ticket = node->rendezvous.ticket;
    } else if (effect->kind == STATIC_EFFECT_PEER_RESTART) {
        out_event->attempt = effect->attempt;
    }
    return true;
}

static void arm_static_timer(
    struct virtual_cluster *cluster, struct virtual_node *node, struct instant deadline) {
    struct virtual_happening *happening =
        virtual_schedule(cluster, node, deadline.nanoseconds / 1000000, static_event_happens);
    happening->answer.event.kind = STATIC_EVENT_TIMER_FIRED;
    happening->life = node->static_timer_life = ++cluster->lives;
}

static void perform_static(struct virtual_cluster *cluster, struct virtual_node *node,
    const struct static_effect *effect) {
    struct agent_event event = {0};
    if (static_effect_is_request(effect)) {
        send_request(cluster, node, effect);
    } else if (translate(cluster, node, effect, &event)) {
        virtual_tell_agent(cluster, node, event);
    } else if (effect->kind == STATIC_EFFECT_CONNECT) {
        virtual_tell_rendezvous_later(
            cluster, node, STATIC_EVENT_CONNECTED, virtual_delay(cluster, VIRTUAL_LONGEST_DELAY));
    } else if (effect->kind == STATIC_EFFECT_RENEW_WORKER_STORE) {
        renew_store(cluster, node);
    } else if (effect->kind == STATIC_EFFECT_ARM_TIMER) {
        arm_static_timer(cluster, node, effect->deadline);
    } else {
        assert_int_equal(effect->kind, STATIC_EFFECT_DISARM_TIMER);
        node->static_timer_life = ++cluster->lives;
    }
}

void virtual_tell_rendezvous(
    struct virtual_cluster *cluster, struct virtual_node *node, struct static_event event) {
    if (node->is_finished) {
        return; /* its agent is gone */
    }
    struct static_effects effects;
    event.now = virtual_instant(cluster->now);
    static_rendezvous_step(&node->rendezvous, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        perform_static(cluster, node, &effects.items[i]);
    }
}
