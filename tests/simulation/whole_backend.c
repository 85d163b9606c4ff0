/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node's machines want of the store, and what they are told of it. */
#include "whole_parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "wire/failure/failure_json.h"

#define READ_TIMEOUT_SECONDS 60
#define FIXED_WAITER RENDEZVOUS_LANE_WATCHER

static void tell_rendezvous(
    struct whole_cluster *cluster, struct whole_node *node, struct rendezvous_event event) {
    whole_node_post(
        cluster, node, &(struct node_event){.part = NODE_RENDEZVOUS, .rendezvous = event});
}

static void tell_round(
    struct whole_cluster *cluster, struct whole_node *node, struct round_event event) {
    whole_node_post(cluster, node, &(struct node_event){.part = NODE_ROUND, .round = event});
}

/* The record. */

static void open_lanes(struct whole_cluster *cluster, struct whole_node *node, int count,
    int64_t deadline, struct duration refusal_patience, struct duration pause) {
    node->ready_lanes = 0;
    for (int lane = 0; lane < count; lane++) {
        whole_lane_open(cluster, &node->lanes[lane], deadline, refusal_patience, pause, false);
    }
}

static void drop_lanes(struct whole_cluster *cluster, struct whole_node *node) {
    for (int lane = 0; lane < RENDEZVOUS_LANE_COUNT; lane++) {
        whole_lane_drop(cluster, &node->lanes[lane]);
    }
}

static struct duration answer_timeout(const struct whole_cluster *cluster) {
    const struct rendezvous_settings *settings = &cluster->settings.rendezvous;
    return (struct duration){
        settings->keep_alive_interval.nanoseconds * settings->keep_alive_max_attempt};
}

static void tell(
    struct whole_cluster *cluster, struct whole_node *node, struct rendezvous_event event) {
    if (event.kind == RENDEZVOUS_EVENT_CONNECTED) {
        event.connected.is_host = node->is_host;
        node->was_connected = true;
    } else if (event.kind == RENDEZVOUS_EVENT_CONNECTION_LOST ||
               event.kind == RENDEZVOUS_EVENT_ROLL_ANSWERED) {
        node->is_calling_roll = false;
    } else if (event.kind == RENDEZVOUS_EVENT_RECORD) {
        whole_store_see(cluster, node, event.state);
    } else if (event.kind == RENDEZVOUS_EVENT_WRITTEN && !event.written.has_won) {
        whole_store_see(cluster, node, event.written.state);
    }
    tell_rendezvous(cluster, node, event);
}

/* A node that delegates opens each lane but the first when it uses it. */
int whole_lanes_kept(const struct whole_cluster *cluster) {
    return cluster->settings.rendezvous.delegates ? 1 : RENDEZVOUS_LANE_COUNT;
}

static void open_late(struct whole_cluster *cluster, struct whole_lane *lane) {
    whole_lane_open(cluster, lane, cluster->now + answer_timeout(cluster).nanoseconds,
        (struct duration){0}, (struct duration){0}, true);
}

static void renew_waiter(struct whole_cluster *cluster, struct whole_node *node) {
    struct whole_lane *waiter = &node->lanes[RENDEZVOUS_LANE_WAITER];
    if (whole_lanes_kept(cluster) == RENDEZVOUS_LANE_COUNT) {
        open_late(cluster, waiter);
    } else {
        whole_lane_drop(cluster, waiter);
    }
}

static struct whole_lane *lane_of(
    struct whole_cluster *cluster, struct whole_node *node, enum rendezvous_lane number) {
    struct whole_lane *lane = &node->lanes[number];
    bool are_open = node->lanes[RENDEZVOUS_LANE_ASKER].phase != WHOLE_LANE_NONE;
    if (number != RENDEZVOUS_LANE_ASKER && lane->phase == WHOLE_LANE_NONE && are_open) {
        open_late(cluster, lane);
    }
    return lane;
}

static void perform_record(
    struct whole_cluster *cluster, struct whole_node *node, struct record_effects *effects) {
    for (size_t i = 0; i < effects->count; i++) {
        const struct record_effect *effect = &effects->items[i];
        switch (effect->kind) {
        case RECORD_EFFECT_OPEN:
            open_lanes(cluster, node, whole_lanes_kept(cluster), effect->deadline.nanoseconds,
                effect->refusal_patience, effect->pause);
            break;
        case RECORD_EFFECT_DROP:
            drop_lanes(cluster, node);
            break;
        case RECORD_EFFECT_RENEW_WAITER:
            renew_waiter(cluster, node);
            break;
        case RECORD_EFFECT_SEND:
            whole_lane_send(cluster, lane_of(cluster, node, effect->send.lane),
                &effect->send.own.request, effect->send.timeout,
                (struct whole_call){.kind = WHOLE_CALL_RECORD,
                    .rests = effect->send.rests,
                    .tag = effect->send.tag});
            break;
        case RECORD_EFFECT_TELL:
            tell(cluster, node, effect->told);
            break;
        }
    }
    record_effects_clear(effects);
}

static void is_warm(struct whole_cluster *cluster, struct whole_happening *happening) {
    tell_rendezvous(
        cluster, happening->node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WARMED});
}

void whole_perform_rendezvous(struct whole_cluster *cluster, struct whole_node *node,
    const struct rendezvous_effect *effect) {
    struct record_effects effects = {0};
    if (effect->kind == RENDEZVOUS_EFFECT_WARM) { /* perhaps too late */
        int64_t longest = 2 * WHOLE_WARMING_SECONDS * WHOLE_SECOND;
        whole_schedule(cluster, cluster->now + whole_between(cluster, 0, longest), node, is_warm);
    } else if (effect->kind == RENDEZVOUS_EFFECT_PRESENT) {
        node->identity = effect->present.identity;
    }
    if (effect->kind == RENDEZVOUS_EFFECT_TELL_STANDINGS) {
        whole_store_tell(cluster, node, effect);
        return;
    }
    if (effect->kind == RENDEZVOUS_EFFECT_WRITE && cluster->store.watch.absent_count > 0) {
        whole_store_see(cluster, node, effect->write.state);
    }
    node->is_calling_roll = node->is_calling_roll || effect->kind == RENDEZVOUS_EFFECT_CALL_ROLL;
    rendezvous_record_store_ask(node->record, effect, &effects);
    perform_record(cluster, node, &effects);
}

static void cancel_waits(struct whole_cluster *cluster, struct whole_node *node) {
    struct record_effects effects = {0};
    rendezvous_record_store_cancel_waits(node->record, &effects);
    perform_record(cluster, node, &effects);
}

void whole_cancel_roll(struct whole_cluster *cluster, struct whole_node *node) {
    if (node->is_calling_roll) {
        node->is_calling_roll = false;
        cancel_waits(cluster, node);
    }
}

void whole_disconnect(struct whole_cluster *cluster, struct whole_node *node) {
    struct record_effects effects = {0};
    rendezvous_record_store_disconnect(node->record, &effects);
    perform_record(cluster, node, &effects);
}

void whole_give_up_connection(struct whole_cluster *cluster, struct whole_node *node) {
    whole_disconnect(cluster, node);
    node->is_calling_roll = false;
    whole_node_post(cluster, node,
        &(struct node_event){.part = NODE_RENDEZVOUS,
            .rendezvous = {.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                .lost = {
                    .reason = "this agent stood still", .is_silent = true, .is_own_doing = true}}});
}

/* The round, of nodes that come and go and of fixed ones. */

static bool are_fixed(const struct whole_cluster *cluster) {
    return cluster->settings.kind == MEMBERSHIP_FIXED;
}

static void store_is_open(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->node;
    bool is_fresh = happening->rank != 0;
    struct round_event event = {.kind = ROUND_EVENT_STORE_OPENED, .round = happening->number};
    if (!are_fixed(cluster)) {
        node->server_port =
            whole_open_port(cluster, node, is_fresh ? 0 : node->server_port, happening->number);
        event.opened.address = node->name;
        event.opened.port = node->server_port;
    }
    tell_round(cluster, node, event);
}

/* Fixed nodes have one store for all; node 0 deletes what the workers wrote. */
static void renew_store(struct whole_cluster *cluster) {
    struct text kept = {0};
    for (int i = 0; i < cluster->node_count; i++) {
        if (whole_has_workers(cluster->nodes[i]) && !cluster->nodes[i]->ending.was_killed) {
            whole_complain(
                cluster, "the store is renewed while workers of %s run", cluster->nodes[i]->name);
        }
    }
    round_key_write_prefix(WHOLE_RUN_ID, &kept);
    whole_store_renew(cluster, text_string(&kept));
    text_clear(&kept);
}

static void open_worker_store(
    struct whole_cluster *cluster, struct whole_node *node, const struct round_effect *effect) {
    if (are_fixed(cluster)) {
        renew_store(cluster);
    }
    struct whole_happening *open =
        whole_schedule(cluster, cluster->now + whole_delay(cluster), node, store_is_open);
    open->number = effect->round;
    open->rank = effect->is_fresh ? 1 : 0;
}

static void clear_rounds(
    struct whole_cluster *cluster, struct whole_node *node, const struct round_effect *effect) {
    struct text_list keys = {0};
    struct record_effects effects = {0};
    for (int64_t round = effect->clear.first; round <= effect->clear.last; round++) {
        round_key_list_all(round, effect->clear.node_count, WHOLE_RUN_ID, &keys);
    }
    for (size_t i = 0; i < keys.count; i++) {
        rendezvous_record_store_delete(node->record, keys.items[i], &effects);
    }
    perform_record(cluster, node, &effects);
    text_list_clear(&keys);
}

static void send_for_round(
    struct whole_cluster *cluster, struct whole_node *node, const struct round_effect *effect) {
    struct owned_request request = {0};
    bool is_wait = effect->kind == ROUND_EFFECT_WAIT;
    enum rendezvous_lane waiter = are_fixed(cluster) ? FIXED_WAITER : RENDEZVOUS_LANE_WAITER;
    double patience = are_fixed(cluster) ? WHOLE_STORE_TIMEOUT_SECONDS : READ_TIMEOUT_SECONDS;
    if (!are_fixed(cluster) && !rendezvous_record_store_is_up(node->record)) {
        return; /* the connection's end is told elsewhere, and ends this round */
    }
    round_request_build(effect, WHOLE_RUN_ID, &request);
    whole_lane_send(cluster, lane_of(cluster, node, is_wait ? waiter : RENDEZVOUS_LANE_ASKER),
        &request.request, is_wait ? DURATION_FOREVER : duration_from_seconds(patience),
        (struct whole_call){.kind = WHOLE_CALL_ROUND, .question = round_question_of(effect)});
    owned_request_clear(&request);
}

void whole_perform_round(
    struct whole_cluster *cluster, struct whole_node *node, const struct round_effect *effect) {
    node->begun_round = effect->round;
    switch ((int)effect->kind) {
    case ROUND_EFFECT_CONNECT:
        open_lanes(cluster, node, WHOLE_FIXED_LANES,
            cluster->now + WHOLE_STORE_TIMEOUT_SECONDS * WHOLE_SECOND, (struct duration){0},
            (struct duration){0});
        break;
    case ROUND_EFFECT_OPEN_WORKER_STORE:
        open_worker_store(cluster, node, effect);
        break;
    case ROUND_EFFECT_CLEAR:
        clear_rounds(cluster, node, effect);
        break;
    case ROUND_EFFECT_CANCEL_WAIT:
        cancel_waits(cluster, node);
        break;
    case ROUND_EFFECT_DISARM_TIMER:
        whole_call_off(cluster, &node->timers[NODE_ROUND]);
        break;
    default:
        send_for_round(cluster, node, effect);
        break;
    }
}

static void take_round_reply(struct whole_cluster *cluster, struct whole_node *node,
    const struct whole_call *call, const struct store_reply *reply) {
    struct round_answer answer = {0};
    if (!round_effect_wants_answer(call->question.kind)) {
        return;
    }
    if (round_answer_read(&call->question, reply, &answer) != FAILURE_NONE) {
        whole_complain(cluster, "%s cannot read an answer to its round", node->name);
    } else {
        tell_round(cluster, node, answer.event);
    }
    round_answer_clear(&answer);
}

/* The first failure of a round, as agent/rendezvous/agent_record has it. */

static void look_is_over(struct whole_cluster *cluster, struct whole_node *node) {
    whole_tell_membership(cluster, node, MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED);
}

static void learn_cause(struct whole_cluster *cluster, struct whole_node *node, struct slice json) {
    struct failure_account account = {0};
    if (json.length == 0) {
        return; /* cleared away since */
    }
    if (failure_json_read(json, &account) != FAILURE_NONE) {
        whole_complain(cluster, "%s cannot read the first failure", node->name);
    }
    struct node_event event = {.part = NODE_MEMBERSHIP,
        .membership = {.kind = MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, .account = &account}};
    whole_node_post(cluster, node, &event);
    failure_account_clear(&account);
}

static bool ask_for_cause(struct whole_cluster *cluster, struct whole_node *node,
    struct store_request request, enum whole_call_kind kind) {
    if (!rendezvous_record_store_is_up(node->record)) {
        return false;
    }
    whole_lane_send(cluster, &node->lanes[RENDEZVOUS_LANE_ASKER], &request, answer_timeout(cluster),
        (struct whole_call){.kind = kind});
    return true;
}

void whole_publish_cause(struct whole_cluster *cluster, struct whole_node *node,
    const struct membership_effect *effect) {
    struct text key = {0};
    text_clear(&node->cause_written);
    failure_json_write(effect->root_cause.account, &node->cause_written);
    rendezvous_key_write_root_cause(WHOLE_RUN_ID, effect->root_cause.round, &key);
    (void)ask_for_cause(cluster, node,
        (struct store_request){.operation = STORE_COMPARE_SET,
            .key = slice_from_string(text_string(&key)),
            .value = slice_from_string(text_string(&node->cause_written))},
        WHOLE_CALL_CAUSE_PUBLISHED);
    text_clear(&key);
}

static bool read_cause(struct whole_cluster *cluster, struct whole_node *node) {
    return ask_for_cause(cluster, node,
        (struct store_request){
            .operation = STORE_GET, .key = slice_from_string(text_string(&node->cause_key))},
        WHOLE_CALL_CAUSE_READ);
}

void whole_look_for_cause(struct whole_cluster *cluster, struct whole_node *node, int64_t round) {
    text_clear(&node->cause_key);
    rendezvous_key_write_root_cause(WHOLE_RUN_ID, round, &node->cause_key);
    struct slice keys[] = {slice_from_string(text_string(&node->cause_key))};
    bool is_asked =
        rendezvous_record_store_is_agents(node->record)
            ? read_cause(cluster, node)
            : ask_for_cause(cluster, node,
                  (struct store_request){.operation = STORE_CHECK, .keys = keys, .count = 1},
                  WHOLE_CALL_CAUSE_CHECKED);
    if (!is_asked) {
        look_is_over(cluster, node);
    }
}

static void take_cause_checked(
    struct whole_cluster *cluster, struct whole_node *node, const struct store_reply *reply) {
    bool is_there = reply != NULL && reply->byte == STORE_READY;
    if (!is_there || !read_cause(cluster, node)) {
        look_is_over(cluster, node);
    }
}

static void take_cause_reply(struct whole_cluster *cluster, struct whole_node *node,
    enum whole_call_kind kind, const struct store_reply *reply) {
    if (kind == WHOLE_CALL_CAUSE_CHECKED) {
        take_cause_checked(cluster, node, reply);
        return;
    }
    bool is_news = reply != NULL && (kind == WHOLE_CALL_CAUSE_READ ||
                                        !slice_equals(reply->blob,
                                            slice_from_string(text_string(&node->cause_written))));
    if (is_news) {
        learn_cause(cluster, node, reply->blob);
    }
    if (kind == WHOLE_CALL_CAUSE_READ) {
        look_is_over(cluster, node);
    }
}

/* The store of fixed nodes. */

static void lose_fixed(struct whole_cluster *cluster, struct whole_node *node) {
    if (!node->is_lost) {
        node->is_lost = true;
        tell_round(cluster, node,
            (struct round_event){
                .kind = ROUND_EVENT_CONNECTION_LOST, .round = ROUND_OF_FIXED_NODES});
    }
}

static void flush_if_done(struct whole_cluster *cluster, struct whole_node *node) {
    const struct whole_lane *asker = &node->lanes[RENDEZVOUS_LANE_ASKER];
    if (node->is_flushing && (asker->count == 0 || node->is_lost)) {
        node->is_flushing = false;
        whole_call_off(cluster, &node->patience);
        whole_tell_membership(cluster, node, MEMBERSHIP_EVENT_LEFT);
    }
}

void whole_flush(struct whole_cluster *cluster, struct whole_node *node, struct duration patience) {
    node->is_flushing = true;
    whole_plan(cluster, &node->patience, cluster->now + patience.nanoseconds);
    if (node->ready_lanes < WHOLE_FIXED_LANES) {
        node->is_lost = true;
    }
    flush_if_done(cluster, node);
}

/* What lanes tell. */

static void take_record_reply(struct whole_cluster *cluster, struct whole_node *node,
    const struct whole_call *call, enum failure_code code, const struct store_reply *reply) {
    struct record_effects effects = {0};
    if (code == FAILURE_NONE) {
        rendezvous_record_store_take_reply(node->record, call->tag, reply, &effects);
    } else if (code != FAILURE_CANCELLED) {
        rendezvous_record_store_take_failure(
            node->record, call->tag, code, "the store is out of reach", &effects);
    }
    perform_record(cluster, node, &effects);
}

static void take_round_end(struct whole_cluster *cluster, struct whole_node *node,
    const struct whole_call *call, enum failure_code code, const struct store_reply *reply) {
    if (code == FAILURE_NONE) {
        take_round_reply(cluster, node, call, reply);
    } else if (code != FAILURE_CANCELLED && are_fixed(cluster)) {
        lose_fixed(cluster, node);
    }
    if (are_fixed(cluster)) {
        flush_if_done(cluster, node);
    }
}

void whole_call_done(struct whole_cluster *cluster, struct whole_node *node,
    const struct whole_call *call, enum failure_code code, const struct store_reply *reply) {
    switch (call->kind) {
    case WHOLE_CALL_RECORD:
        take_record_reply(cluster, node, call, code, reply);
        break;
    case WHOLE_CALL_ROUND:
        take_round_end(cluster, node, call, code, reply);
        break;
    case WHOLE_CALL_CAUSE_PUBLISHED:
    case WHOLE_CALL_CAUSE_CHECKED:
    case WHOLE_CALL_CAUSE_READ:
        take_cause_reply(cluster, node, call->kind, reply);
        break;
    case WHOLE_CALL_SIGN:
        node->is_sign_under_way = false;
        break;
    case WHOLE_CALL_TORCH:
        if (code == FAILURE_NONE) {
            whole_torch_answer(cluster, node, call, reply);
        }
        break;
    }
}

void whole_lanes_opened(struct whole_cluster *cluster, struct whole_node *node) {
    struct record_effects effects = {0};
    node->ready_lanes++;
    if (node->is_torch) {
        whole_torch_opened(cluster, node);
    } else if (are_fixed(cluster)) {
        if (node->ready_lanes == WHOLE_FIXED_LANES) {
            tell_round(cluster, node,
                (struct round_event){.kind = ROUND_EVENT_CONNECTED, .round = ROUND_OF_FIXED_NODES});
        }
    } else if (node->ready_lanes == whole_lanes_kept(cluster)) {
        rendezvous_record_store_take_opened(node->record, &effects);
        perform_record(cluster, node, &effects);
    }
}

void whole_lanes_unopened(struct whole_cluster *cluster, struct whole_node *node,
    enum failure_code code, const char *message) {
    struct record_effects effects = {0};
    if (node->is_torch || are_fixed(cluster)) {
        whole_lanes_ended(cluster, node, code, message);
        return;
    }
    rendezvous_record_store_take_unopened(
        node->record, code, message, node->ready_lanes > 0, &effects);
    perform_record(cluster, node, &effects);
}

void whole_lanes_ended(struct whole_cluster *cluster, struct whole_node *node,
    enum failure_code code, const char *message) {
    struct record_effects effects = {0};
    if (node->is_torch) {
        whole_torch_lost(cluster, node);
    } else if (are_fixed(cluster)) {
        lose_fixed(cluster, node);
        flush_if_done(cluster, node);
    } else {
        rendezvous_record_store_take_end(node->record, code, message, &effects);
        perform_record(cluster, node, &effects);
    }
}
