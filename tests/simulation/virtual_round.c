/* SPDX-License-Identifier: BSD-3-Clause */
#include "virtual_round.h"

#include <stdio.h>

bool virtual_round_chance(struct job *job, uint64_t percent) {
    return random_below(&job->random, 100) < percent;
}

void virtual_place_set(struct place *place, const char *address, int port) {
    snprintf(place->address, sizeof place->address, "%s", address);
    place->port = port;
}

/* Connections. */

static void answer(struct connection *connection, const struct store_reply *reply) {
    assert_true(connection->asked_first < connection->asked_last);
    const struct round_question *question = &connection->asked[connection->asked_first++ % QUEUE];
    if (round_effect_wants_answer(question->kind)) {
        assert_true(connection->answers_last - connection->answers_first < QUEUE);
        struct round_answer *slot = &connection->answers[connection->answers_last++ % QUEUE];
        assert_int_equal(round_answer_read(question, reply, slot), FAILURE_NONE);
    }
}

void virtual_round_apply(
    struct job *job, struct store_connection *from, const struct store_request *request) {
    store_effects_reset(&job->effects);
    store_table_apply(job->table, from, request, &job->effects);
    for (size_t i = 0; i < job->effects.count; i++) {
        const struct store_effect *effect = &job->effects.items[i];
        assert_int_equal(effect->kind, STORE_EFFECT_REPLY);
        answer(effect->connection->owner, &effect->reply);
    }
}

static void clear_batch(struct batch *batch) {
    for (size_t i = 0; i < batch->count; i++) {
        owned_request_clear(&batch->requests[i]);
    }
    batch->count = 0;
}

/* Gives the oldest batch to the store. */
static void deliver(struct job *job, struct connection *connection) {
    struct batch *batch = &connection->batches[connection->first++ % QUEUE];
    for (size_t i = 0; i < batch->count; i++) {
        const struct store_request *request = &batch->requests[i].request;
        if (store_operation_reply_kind(request->operation) != STORE_REPLY_NONE) {
            connection->asked[connection->asked_last++ % QUEUE] = batch->questions[i];
        }
        virtual_round_apply(job, &connection->stored, request);
    }
    clear_batch(batch);
}

static void break_connection(struct job *job, struct connection *connection) {
    store_table_disconnect(job->table, &connection->stored);
    while (connection->first < connection->last) {
        clear_batch(&connection->batches[connection->first++ % QUEUE]);
    }
    while (connection->answers_first < connection->answers_last) {
        round_answer_clear(&connection->answers[connection->answers_first++ % QUEUE]);
    }
    connection->asked_first = connection->asked_last;
}

static void send(struct connection *connection, const struct round_effect *effect, bool is_new) {
    if (is_new) {
        assert_true(connection->last - connection->first < QUEUE);
        connection->batches[connection->last++ % QUEUE].count = 0;
    }
    struct batch *batch = &connection->batches[(connection->last - 1) % QUEUE];
    round_request_build(effect, RUN_ID, &batch->requests[batch->count]);
    batch->questions[batch->count++] = round_question_of(effect);
}

/* Muster's nodes. */

static void join(struct node *node, const struct round_effect *effect) {
    node->stage = STAGE_JOINED;
    virtual_place_set(&node->master, effect->joined.master_address, effect->joined.master_port);
    node->ranks = effect->joined.ranks;
    assert_int_equal(effect->joined.group_rank, node->rank);
}

/* At once, the worst time for whoever still needs them. */
static void clear_rounds(struct job *job, const struct round_effect *effect) {
    struct store_connection connection = {0};
    struct store_effects effects = {0};
    struct text_list keys = {0};
    for (int64_t round = effect->clear.first; round <= effect->clear.last; round++) {
        round_key_list_all(round, effect->clear.node_count, RUN_ID, &keys);
    }
    for (size_t i = 0; i < keys.count; i++) {
        struct store_request request = {
            .operation = STORE_DELETE, .key = slice_from_string(keys.items[i])};
        store_effects_reset(&effects);
        store_table_apply(job->table, &connection, &request, &effects);
    }
    store_effects_clear(&effects);
    text_list_clear(&keys);
}

static void perform(struct job *job, struct node *node, const struct round_effect *effect) {
    switch (effect->kind) {
    case ROUND_EFFECT_OPEN_WORKER_STORE:
        node->is_opening = true;
        node->opening_round = effect->round;
        node->is_fresh = effect->is_fresh;
        break;
    case ROUND_EFFECT_CLEAR:
        clear_rounds(job, effect);
        break;
    case ROUND_EFFECT_FORGET:
        break;
    case ROUND_EFFECT_CANCEL_WAIT:
        break_connection(job, &node->waiter);
        break;
    case ROUND_EFFECT_ARM_TIMER:
        node->has_timer = true;
        node->timer = effect->deadline;
        break;
    case ROUND_EFFECT_DISARM_TIMER:
        node->has_timer = false;
        break;
    case ROUND_EFFECT_ADMIT:
        break; /* the store there serves everybody */
    case ROUND_EFFECT_JOINED:
        assert_int_equal(node->stage, STAGE_JOINING);
        join(node, effect);
        break;
    case ROUND_EFFECT_BARRIER_PASSED:
        assert_int_equal(node->stage, STAGE_LEAVING);
        node->stage = STAGE_LEFT;
        break;
    case ROUND_EFFECT_SET_ROLE_INFO:
    case ROUND_EFFECT_SET_ASSIGNMENTS:
    case ROUND_EFFECT_PUBLISH:
    case ROUND_EFFECT_SET:
    case ROUND_EFFECT_ADD:
    case ROUND_EFFECT_CHECK:
    case ROUND_EFFECT_GET:
    case ROUND_EFFECT_WAIT:
        fail_msg("round %d, node %d: a request", (int)job->round, node->rank);
        break;
    case ROUND_EFFECT_CONNECT: /* these five are of fixed nodes */
    case ROUND_EFFECT_DECIDE:
    case ROUND_EFFECT_RANK_DISPUTED:
    case ROUND_EFFECT_PEER_RESTART:
    case ROUND_EFFECT_PEER_FAILED:
    case ROUND_EFFECT_OPENED: /* of nodes whose host ranks them */
    case ROUND_EFFECT_KIND_COUNT:
        fail_msg("round %d, node %d: no effect of its kind", (int)job->round, node->rank);
        break;
    case ROUND_EFFECT_JOIN_FAILED:
    case ROUND_EFFECT_BARRIER_FAILED:
    case ROUND_EFFECT_BARRIER_LATE:
        fail_msg("round %d, node %d: %s", (int)job->round, node->rank, effect->reason);
    }
}

void virtual_round_step(struct job *job, struct node *node, struct round_event event) {
    struct round_effects effects;
    bool is_new = true;
    event.now = job->now;
    round_exchange_step(node->exchange, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        const struct round_effect *effect = &effects.items[i];
        if (effect->kind == ROUND_EFFECT_WAIT) {
            send(&node->waiter, effect, true);
        } else if (effect->kind >= ROUND_EFFECT_SET_ROLE_INFO && effect->kind < ROUND_EFFECT_WAIT) {
            send(&node->asker, effect, is_new);
            is_new = false;
        } else {
            perform(job, node, effect);
        }
    }
}

static void open_store(struct job *job, struct node *node) {
    node->is_opening = false;
    if (node->is_fresh || node->server.port == 0) {
        virtual_place_set(&node->server, node->identity.address, job->next_port++);
    }
    node->server_round = node->opening_round;
    virtual_round_step(job, node,
        (struct round_event){.kind = ROUND_EVENT_STORE_OPENED,
            .round = node->opening_round,
            .opened = {node->server.address, node->server.port}});
}

static void hand_over(struct job *job, struct node *node, struct connection *connection) {
    struct round_answer answered = connection->answers[connection->answers_first++ % QUEUE];
    virtual_round_step(job, node, answered.event);
    round_answer_clear(&answered);
}

bool virtual_round_move(struct job *job, struct node *node) {
    struct connection *connections[] = {&node->asker, &node->waiter};
    struct connection *connection = connections[random_below(&job->random, 2)];
    if (node->is_opening && virtual_round_chance(job, 30)) {
        open_store(job, node);
        return true;
    }
    for (int i = 0; i < 2; i++) {
        if (connection->answers_first < connection->answers_last) {
            hand_over(job, node, connection);
            return true;
        }
        if (connection->first < connection->last) {
            deliver(job, connection);
            return true;
        }
        connection = connections[connection == connections[0]];
    }
    return node->is_opening;
}

void virtual_round_disconnect(struct job *job, struct node *node) {
    break_connection(job, &node->asker);
    break_connection(job, &node->waiter);
}
