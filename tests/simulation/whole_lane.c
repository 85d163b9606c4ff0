/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's clients of the store, which behave as host/store/store_client does. */
#include "whole_parts.h"

#include <stdlib.h>

#include "base/memory.h"

#define ATTEMPT_SECONDS 10
#define NONCE 7
/* What was sent before is looked at last when so much has gathered. */
#define BYTES_KEPT 65536

/* Calls. */

static struct whole_call *first_call(struct whole_lane *lane) {
    return &lane->calls[lane->first];
}

static struct whole_call take_call(struct whole_lane *lane) {
    struct whole_call call = *first_call(lane);
    lane->first++;
    lane->count--;
    if (lane->count == 0) {
        lane->first = 0;
    }
    return call;
}

static bool has_reply(const struct whole_call *call) {
    return store_operation_reply_kind(call->operation) != STORE_REPLY_NONE;
}

static void forget_calls(struct whole_lane *lane) {
    lane->first = lane->count = 0;
    lane->bytes.length = lane->sent = 0;
    lane->is_busy = false;
    lane->order = (struct resting_order){0};
}

static void drop_sent_bytes(struct whole_lane *lane) {
    if (lane->sent == lane->bytes.length) {
        lane->bytes.length = lane->sent = 0;
        if (lane->bytes.capacity > BYTES_KEPT) {
            bytes_clear(&lane->bytes);
        }
    } else if (lane->sent > BYTES_KEPT) {
        bytes_consume(&lane->bytes, lane->sent);
        lane->sent = 0;
    }
}

/* A call waits for its turn and its answer no longer than its timeout. */
static void plan_expiry(struct whole_cluster *cluster, struct whole_lane *lane) {
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < lane->count; i++) {
        const struct whole_call *call = &lane->calls[lane->first + i];
        first = call->deadline < first ? call->deadline : first;
    }
    if (first == INT64_MAX) {
        whole_call_off(cluster, &lane->expiry);
    } else {
        whole_plan(cluster, &lane->expiry, first);
    }
}

static void expires(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_lane *lane = happening->subject;
    for (size_t i = 0; i < lane->count; i++) {
        if (lane->calls[lane->first + i].deadline <= cluster->now) {
            whole_lane_lose(cluster, lane, FAILURE_TIMEOUT, "the store did not answer in time");
            return;
        }
    }
    plan_expiry(cluster, lane);
}

void whole_lane_send(struct whole_cluster *cluster, struct whole_lane *lane,
    const struct store_request *request, struct duration timeout, struct whole_call call) {
    if (lane->phase == WHOLE_LANE_NONE) {
        return;
    }
    call.operation = request->operation;
    call.key_count = request->count;
    if (call.rests) {
        struct bytes bytes = {0};
        (void)!store_request_encode(request, &bytes); /* has no ceiling */
        if (!slice_equals(bytes_slice(&bytes), bytes_slice(&lane->resting_bytes))) {
            resting_order_replace(&lane->order, lane->is_busy);
        }
        bytes_clear(&lane->resting_bytes);
        lane->resting_bytes = bytes;
        lane->resting = call;
        lane->order.is_wanted = true;
        return;
    }
    size_t before = lane->bytes.length;
    (void)!store_request_encode(request, &lane->bytes); /* has no ceiling */
    call.length = lane->bytes.length - before;
    call.deadline = instant_after((struct instant){cluster->now}, timeout).nanoseconds;
    lane->calls = memory_reserve(
        lane->calls, &lane->capacity, lane->first + lane->count + 1, sizeof *lane->calls);
    lane->calls[lane->first + lane->count++] = call;
    if (call.deadline != INT64_MAX && !lane->expiry.is_planned) {
        whole_plan(cluster, &lane->expiry, call.deadline);
    }
}

static void put_into_packet(struct whole_lane *lane, struct slice bytes) {
    (void)!bytes_append(&lane->packet, bytes.data, bytes.length); /* has no ceiling */
}

static void flush(struct whole_cluster *cluster, struct whole_lane *lane) {
    if (lane->packet.length > 0 && lane->connection != NULL) {
        whole_stream_send(cluster, &lane->connection->to_store, bytes_slice(&lane->packet));
    }
    lane->packet.length = 0;
}

static void send_first(struct whole_lane *lane) {
    struct whole_call *call = first_call(lane);
    resting_order_give_way(&lane->order);
    put_into_packet(lane, (struct slice){lane->bytes.data + lane->sent, call->length});
    lane->sent += call->length;
    drop_sent_bytes(lane);
    lane->is_busy = has_reply(call);
}

static void rest(struct whole_lane *lane) {
    enum store_operation first = lane->is_busy ? first_call(lane)->operation : STORE_PING;
    if (lane->phase == WHOLE_LANE_READY &&
        resting_order_is_due(&lane->order, lane->is_busy, first, lane->count)) {
        put_into_packet(lane, bytes_slice(&lane->resting_bytes));
        lane->order.is_resting = true;
    }
}

/* Begins calls until one has to be waited for. What has no reply is done when it is sent. */
void whole_lane_pump(struct whole_cluster *cluster, struct whole_lane *lane) {
    static const struct store_reply none = {.kind = STORE_REPLY_NONE};
    while (lane->phase == WHOLE_LANE_READY && !lane->is_busy && lane->count > 0) {
        send_first(lane);
        if (!lane->is_busy) {
            struct whole_call call = take_call(lane);
            whole_call_done(cluster, lane->node, &call, FAILURE_NONE, &none);
        }
    }
    rest(lane);
    flush(cluster, lane);
}

/* Ends. */

static void let_go(struct whole_cluster *cluster, struct whole_lane *lane) {
    struct whole_connection *connection = lane->connection;
    flush(cluster, lane);
    lane->connection = NULL;
    lane->phase = WHOLE_LANE_NONE;
    whole_call_off(cluster, &lane->dialling);
    whole_call_off(cluster, &lane->expiry);
    if (connection != NULL) {
        whole_close_here(cluster, connection);
    }
}

static void end_calls(
    struct whole_cluster *cluster, struct whole_lane *lane, enum failure_code code) {
    struct whole_call *calls = lane->calls;
    struct whole_call resting = lane->resting;
    bool has_resting = lane->order.is_wanted;
    size_t first = lane->first;
    size_t count = lane->count;
    lane->calls = NULL;
    lane->capacity = 0;
    forget_calls(lane);
    for (size_t i = 0; i < count; i++) {
        whole_call_done(cluster, lane->node, &calls[first + i], code, NULL);
    }
    if (has_resting) {
        whole_call_done(cluster, lane->node, &resting, code, NULL);
    }
    free(calls);
}

void whole_lane_drop(struct whole_cluster *cluster, struct whole_lane *lane) {
    if (lane->phase != WHOLE_LANE_NONE) {
        let_go(cluster, lane);
        end_calls(cluster, lane, FAILURE_CANCELLED);
    }
}

static void try_again(struct whole_cluster *cluster, struct whole_lane *lane);

void whole_lane_lose(struct whole_cluster *cluster, struct whole_lane *lane, enum failure_code code,
    const char *message) {
    if (lane->phase == WHOLE_LANE_DIALLING) {
        try_again(cluster, lane);
        return;
    }
    let_go(cluster, lane);
    end_calls(cluster, lane, code);
    if (lane->phase == WHOLE_LANE_NONE) { /* else the lanes were opened again meanwhile */
        whole_lanes_ended(cluster, lane->node, code, message);
    }
}

/* Connecting. */

static void give_up(struct whole_cluster *cluster, struct whole_lane *lane) {
    let_go(cluster, lane);
    end_calls(cluster, lane, FAILURE_TIMEOUT);
    if (lane->phase == WHOLE_LANE_NONE) {
        whole_lanes_unopened(cluster, lane->node, FAILURE_TIMEOUT, "no store was reached in time");
    }
}

static void try_again(struct whole_cluster *cluster, struct whole_lane *lane) {
    struct whole_connection *connection = lane->connection;
    lane->connection = NULL;
    lane->attempt_deadline = 0;
    if (connection != NULL) {
        whole_close_here(cluster, connection);
    }
    int64_t next = cluster->now + backoff_next(&lane->backoff).nanoseconds;
    whole_plan(
        cluster, &lane->dialling, next < lane->connect_deadline ? next : lane->connect_deadline);
}

static void take_refusal(struct whole_cluster *cluster, struct whole_lane *lane) {
    int64_t patience = lane->refusal_patience.nanoseconds;
    lane->refused_since = lane->refused_since < 0 ? cluster->now : lane->refused_since;
    int64_t refusals_end = lane->refused_since + patience;
    if (patience > 0 && cluster->now >= refusals_end) {
        give_up(cluster, lane);
        return;
    }
    try_again(cluster, lane);
    if (patience > 0 && lane->dialling.item.key > refusals_end) {
        whole_plan(cluster, &lane->dialling, refusals_end);
    }
}

static void greet(struct whole_cluster *cluster, struct whole_lane *lane) {
    struct store_request ping = {.operation = STORE_PING, .nonce = NONCE};
    struct bytes greeting = {0};
    (void)!store_request_encode(&(struct store_request){.operation = STORE_VALIDATE}, &greeting);
    (void)!store_request_encode(&ping, &greeting);
    lane->connection = whole_connect(cluster, lane);
    whole_stream_send(cluster, &lane->connection->to_store, bytes_slice(&greeting));
    bytes_clear(&greeting);
    int64_t end = lane->attempt_deadline;
    whole_plan(
        cluster, &lane->dialling, end < lane->connect_deadline ? end : lane->connect_deadline);
}

/* A lost SYN is sent again; a refusal comes at once. */
static void dial(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_lane *lane = happening->subject;
    bool is_first = lane->attempt_deadline == 0;
    if (is_first) {
        lane->attempt_deadline = cluster->now + ATTEMPT_SECONDS * WHOLE_SECOND;
        lane->pause = WHOLE_SECOND;
    }
    if (cluster->now >= lane->connect_deadline) {
        give_up(cluster, lane);
    } else if (lane->connection != NULL || cluster->now >= lane->attempt_deadline) {
        try_again(cluster, lane); /* the store accepts, but does not answer */
    } else if (is_first) {
        whole_plan(cluster, &lane->dialling, cluster->now + whole_delay(cluster));
    } else if (!whole_is_reachable(cluster, lane->node) || whole_is_lost(cluster, lane->node)) {
        int64_t next = cluster->now + lane->pause;
        lane->pause *= 2;
        next = next < lane->attempt_deadline ? next : lane->attempt_deadline;
        whole_plan(cluster, &lane->dialling,
            next < lane->connect_deadline ? next : lane->connect_deadline);
    } else if (!cluster->store.is_up) {
        take_refusal(cluster, lane);
    } else {
        greet(cluster, lane);
    }
}

void whole_lane_open(struct whole_cluster *cluster, struct whole_lane *lane, int64_t deadline,
    struct duration refusal_patience, struct duration pause, bool is_late) {
    whole_lane_drop(cluster, lane);
    lane->phase = WHOLE_LANE_DIALLING;
    lane->is_late = is_late;
    lane->connect_deadline = deadline > cluster->now ? deadline : cluster->now;
    lane->attempt_deadline = 0;
    lane->refusal_patience = refusal_patience;
    lane->refused_since = WHOLE_NOBODY;
    backoff_init(&lane->backoff, random_next(&cluster->random));
    lane->dialling.happen = dial;
    lane->dialling.node = lane->node;
    lane->dialling.subject = lane;
    lane->expiry.happen = expires;
    lane->expiry.node = lane->node;
    lane->expiry.subject = lane;
    lane->expiry.is_fixed = true;
    whole_plan(cluster, &lane->dialling, cluster->now + pause.nanoseconds);
}

/* Replies. */

static void become_ready(struct whole_cluster *cluster, struct whole_lane *lane) {
    lane->phase = WHOLE_LANE_READY;
    whole_call_off(cluster, &lane->dialling);
    if (!lane->is_late) {
        whole_lanes_opened(cluster, lane->node);
    }
}

static bool is_item_next(const struct whole_lane *lane) {
    return resting_order_is_next(&lane->order, lane->is_busy);
}

static void take_item(
    struct whole_cluster *cluster, struct whole_lane *lane, const struct store_reply *reply) {
    struct whole_call resting = lane->resting;
    if (resting_order_take(&lane->order, reply)) {
        whole_call_done(cluster, lane->node, &resting, FAILURE_NONE, reply);
    }
}

static void expect(struct whole_lane *lane) {
    struct store_request asked = {.operation = STORE_PING};
    if (is_item_next(lane)) {
        asked.operation = STORE_QUEUE_POP;
    } else if (lane->is_busy) {
        asked.operation = first_call(lane)->operation;
        asked.count = first_call(lane)->key_count;
    }
    store_reply_decoder_expect(&lane->connection->replies, &asked);
}

static void take_reply(
    struct whole_cluster *cluster, struct whole_lane *lane, const struct store_reply *reply) {
    if (lane->phase == WHOLE_LANE_DIALLING) {
        if (reply->nonce != NONCE) {
            whole_complain(cluster, "the store repeats another number");
        }
        become_ready(cluster, lane);
        return;
    }
    if (is_item_next(lane)) {
        take_item(cluster, lane, reply);
        return;
    }
    struct whole_call call = take_call(lane);
    lane->is_busy = false;
    resting_order_note_answer(&lane->order);
    plan_expiry(cluster, lane);
    whole_call_done(cluster, lane->node, &call, FAILURE_NONE, reply);
}

void whole_lane_receive(
    struct whole_cluster *cluster, struct whole_lane *lane, struct slice input) {
    struct whole_connection *connection = lane->connection;
    while (input.length > 0 && connection->lane == lane) {
        struct store_decoded_reply decoded;
        bool is_expected =
            lane->phase == WHOLE_LANE_DIALLING || lane->is_busy || is_item_next(lane);
        expect(lane);
        if (!is_expected ||
            store_reply_decoder_next(&connection->replies, input, &decoded) != FAILURE_NONE) {
            whole_complain(
                cluster, "%s is told by the store what it has not asked", lane->node->name);
            return;
        }
        input = (struct slice){input.data + decoded.consumed, input.length - decoded.consumed};
        take_reply(cluster, lane, &decoded.reply);
    }
}

void whole_lane_clear(struct whole_lane *lane) {
    free(lane->calls);
    bytes_clear(&lane->bytes);
    bytes_clear(&lane->resting_bytes);
    bytes_clear(&lane->packet);
}
