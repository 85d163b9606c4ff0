/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's connections to the store, as its own process has them. */
#include "moving_job.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static bool is_item_next(const struct moving_lane *lane) {
    return resting_order_is_next(&lane->order, lane->is_busy);
}

static struct store_request expected(const struct moving_lane *lane) {
    if (is_item_next(lane)) {
        return (struct store_request){.operation = STORE_QUEUE_POP};
    }
    return (struct store_request){
        .operation = lane->calls[0].operation, .count = lane->calls[0].key_count};
}

static void take_item(struct moving_job *job, struct moving_node *node, struct moving_lane *lane,
    const struct store_reply *reply) {
    if (resting_order_take(&lane->order, reply)) {
        struct moving_call call = lane->resting;
        lane->resting = (struct moving_call){0};
        moving_call_done(job, node, &call, FAILURE_NONE, reply);
        bytes_clear(&call.bytes);
    }
}

static void take_reply(struct moving_job *job, struct moving_node *node, struct moving_lane *lane,
    const struct store_reply *reply) {
    struct moving_call call = lane->calls[0];
    memmove(lane->calls, lane->calls + 1, --lane->count * sizeof *lane->calls);
    lane->is_busy = false;
    resting_order_note_answer(&lane->order);
    moving_call_done(job, node, &call, FAILURE_NONE, reply);
    bytes_clear(&call.bytes);
}

void moving_arrives_here(struct moving_job *job, struct moving_event *event) {
    struct moving_connection *connection = event->subject;
    struct moving_node *node = &job->nodes[connection->node];
    struct moving_lane *lane = &node->lanes[connection->lane];
    struct store_decoded_reply decoded;
    if (!connection->is_open_here || moving_holds_up(job, event)) {
        return;
    }
    node->heard_at = job->now;
    bool is_item = is_item_next(lane);
    if (lane->connection == connection && (lane->is_busy || is_item)) {
        struct store_request asked = expected(lane);
        store_reply_decoder_expect(&connection->replies, &asked);
    }
    if (lane->connection != connection || !(lane->is_busy || is_item) ||
        store_reply_decoder_next(&connection->replies, bytes_slice(&event->bytes), &decoded) !=
            FAILURE_NONE) {
        moving_complain(job, "node %d is told by the store what it has not asked", node->index);
    } else if (is_item) {
        take_item(job, node, lane, &decoded.reply);
    } else {
        take_reply(job, node, lane, &decoded.reply);
    }
}

static struct moving_connection *connect(
    struct moving_job *job, struct moving_node *node, struct moving_store *store, int lane) {
    struct moving_connection *connection = memory_allocate(sizeof *connection);
    *connection = (struct moving_connection){.next = job->connections,
        .store = store,
        .node = node->index,
        .life = node->life,
        .lane = lane,
        .is_open_here = true,
        .is_open_there = true,
        .last_there = job->now,
        .last_here = job->now};
    connection->stored.owner = connection;
    connection->holder.owner = connection;
    store_request_decoder_init(&connection->requests, &STORE_LIMITS_DEFAULT);
    store_reply_decoder_init(&connection->replies, &STORE_REPLY_LIMITS_DEFAULT);
    connection->requests.is_validated = true;
    job->connections = connection;
    return connection;
}

/* A node that delegates opens each lane but the first when it uses it, and the waiter's again after
 * its waits were cancelled. */
static void open_late(struct moving_job *job, struct moving_node *node, int number) {
    struct moving_lane *lane = &node->lanes[number];
    const struct moving_connection *asker = node->lanes[RENDEZVOUS_LANE_ASKER].connection;
    if (lane->connection == NULL && lane->count > 0 && asker != NULL) {
        lane->connection = connect(job, node, asker->store, number);
    }
}

static void send_bytes(struct moving_job *job, struct moving_lane *lane, struct slice bytes) {
    struct moving_event *sent = moving_add_there(job, lane->connection, moving_arrives_there);
    (void)!bytes_append(&sent->bytes, bytes.data, bytes.length); /* has no ceiling */
}

static void rest(struct moving_job *job, struct moving_lane *lane) {
    enum store_operation first = lane->is_busy ? lane->calls[0].operation : STORE_PING;
    if (lane->connection != NULL &&
        resting_order_is_due(&lane->order, lane->is_busy, first, lane->count)) {
        send_bytes(job, lane, bytes_slice(&lane->resting.bytes));
        lane->order.is_resting = true;
    }
}

static void pump(struct moving_job *job, struct moving_node *node, int number) {
    static const struct store_reply none = {.kind = STORE_REPLY_NONE};
    struct moving_lane *lane = &node->lanes[number];
    while (lane->connection != NULL && !lane->is_busy && lane->count > 0) {
        struct moving_call *first = &lane->calls[0];
        resting_order_give_way(&lane->order);
        send_bytes(job, lane, bytes_slice(&first->bytes));
        bytes_clear(&first->bytes);
        lane->is_busy = store_operation_reply_kind(first->operation) != STORE_REPLY_NONE;
        if (!lane->is_busy) {
            struct moving_call call = *first;
            memmove(lane->calls, lane->calls + 1, --lane->count * sizeof *lane->calls);
            moving_call_done(job, node, &call, FAILURE_NONE, &none);
        }
    }
    rest(job, lane);
}

void moving_lane_send(struct moving_node *node, int number, const struct store_request *request,
    struct moving_call call) {
    struct moving_lane *lane = &node->lanes[number];
    call.operation = request->operation;
    call.key_count = request->count;
    (void)!store_request_encode(request, &call.bytes);
    if (call.rests) {
        if (!slice_equals(slice_from_string(text_string(&lane->awaited)), request->key)) {
            resting_order_replace(&lane->order, lane->is_busy);
        }
        bytes_clear(&lane->resting.bytes);
        text_clear(&lane->awaited);
        text_append_bytes(&lane->awaited, (const char *)request->key.data, request->key.length);
        lane->resting = call;
        lane->order.is_wanted = true;
        return;
    }
    lane->calls =
        memory_reserve(lane->calls, &lane->capacity, lane->count + 1, sizeof *lane->calls);
    lane->calls[lane->count++] = call;
}

void moving_pump(struct moving_job *job, struct moving_node *node) {
    for (int i = 0; i < RENDEZVOUS_LANE_COUNT; i++) {
        open_late(job, node, i);
        pump(job, node, i);
    }
}

static void end_calls(struct moving_job *job, struct moving_node *node, int number) {
    struct moving_lane old = node->lanes[number];
    node->lanes[number] = (struct moving_lane){0};
    for (size_t i = 0; i < old.count; i++) {
        moving_call_done(job, node, &old.calls[i], FAILURE_CANCELLED, NULL);
        bytes_clear(&old.calls[i].bytes);
    }
    if (old.order.is_wanted) {
        moving_call_done(job, node, &old.resting, FAILURE_CANCELLED, NULL);
    }
    bytes_clear(&old.resting.bytes);
    text_clear(&old.awaited);
    free(old.calls);
}

static void close_here(struct moving_job *job, struct moving_connection *connection) {
    if (connection->is_open_here) {
        connection->is_open_here = false;
        if (connection->is_open_there) {
            (void)moving_add_there(job, connection, moving_ends_there);
        }
    }
}

void moving_lanes_drop(struct moving_job *job, struct moving_node *node, bool is_process_end) {
    node->open_ticket++;
    for (int i = 0; i < RENDEZVOUS_LANE_COUNT; i++) {
        struct moving_connection *connection = node->lanes[i].connection;
        if (connection != NULL && !(is_process_end && node->is_off)) {
            close_here(job, connection);
        } else if (connection != NULL) {
            connection->is_open_here = false; /* nobody hears of it but by silence */
        }
        end_calls(job, node, i);
    }
}

void moving_lane_close(struct moving_job *job, struct moving_node *node, int lane) {
    struct moving_connection *old = node->lanes[lane].connection;
    if (old != NULL) {
        close_here(job, old);
        end_calls(job, node, lane);
    }
}

/* The process of the host ends a connection: one lane is enough. */
static void lose(struct moving_job *job, struct moving_node *node, enum failure_code code) {
    struct record_effects effects = {0};
    rendezvous_record_store_take_end(node->record, code, "the connection has ended", &effects);
    moving_perform_record(job, node, &effects);
}

void moving_ends_here(struct moving_job *job, struct moving_event *event) {
    struct moving_connection *connection = event->subject;
    struct moving_node *node = &job->nodes[connection->node];
    if (connection->is_open_here && !moving_holds_up(job, event)) {
        connection->is_open_here = false;
        if (node->lanes[connection->lane].connection == connection) {
            lose(job, node, FAILURE_DISCONNECTED);
        }
    }
}

void moving_reset_connection(struct moving_job *job, int node) {
    struct moving_connection *connection = job->nodes[node].lanes[RENDEZVOUS_LANE_ASKER].connection;
    if (connection != NULL && connection->store->host != node) {
        moving_note(job, &job->nodes[node], "its connection is reset");
        (void)moving_add_there(job, connection, moving_ends_there);
        (void)moving_add_here(job, connection, moving_ends_here);
    }
}

/* Connecting. */

static struct moving_node *dialled(struct moving_job *job, struct moving_node *node) {
    if (node->dials_self) {
        return node;
    }
    return &job->nodes[node->known.entry.host.address[1] - 'a'];
}

static bool is_refused(const struct moving_node *node, const struct moving_node *host) {
    return !node->dials_self && !host->is_off &&
           (!host->is_alive || host->life != (int64_t)node->known.entry.host.process.low);
}

static void unopened(struct moving_job *job, struct moving_node *node) {
    struct record_effects effects = {0};
    rendezvous_record_store_take_unopened(
        node->record, FAILURE_TIMEOUT, "no store was reached", false, &effects);
    moving_perform_record(job, node, &effects);
}

static void opened(struct moving_job *job, struct moving_node *node, struct moving_store *store) {
    struct record_effects effects = {0};
    for (int i = 0; i < RENDEZVOUS_LANE_COUNT; i++) {
        if (i == RENDEZVOUS_LANE_ASKER || !node->delegates) {
            node->lanes[i].connection = connect(job, node, store, i);
        }
    }
    node->heard_at = job->now;
    rendezvous_record_store_take_opened(node->record, &effects);
    moving_perform_record(job, node, &effects);
}

static void try_to_open(struct moving_job *job, struct moving_event *event) {
    struct moving_node *node = &job->nodes[event->node];
    if (event->ticket != node->open_ticket) {
        return;
    }
    struct moving_node *host = dialled(job, node);
    bool is_apart = moving_is_apart(job, node->index, host->index);
    if (!instant_is_before(job->now, node->open_deadline)) {
        unopened(job, node);
    } else if (!is_apart && is_refused(node, host) && node->refusal_patience.nanoseconds > 0) {
        unopened(job, node);
    } else if (!is_apart && !is_refused(node, host) && host->store != NULL && !host->is_stopped) {
        opened(job, node, host->store);
    } else {
        struct instant next = moving_later(job, moving_between(job, 0.01, 0.06));
        next = instant_earlier(next, node->open_deadline);
        moving_add(job, next, node, try_to_open)->ticket = node->open_ticket;
    }
}

void moving_lanes_open(struct moving_job *job, struct moving_node *node, struct instant deadline,
    struct duration refusal_patience, struct duration pause) {
    node->open_deadline = deadline;
    node->refusal_patience = refusal_patience;
    node->open_ticket++;
    double wait = duration_seconds(pause) + moving_delay(job, node->dials_self);
    moving_add(job, moving_later(job, wait), node, try_to_open)->ticket = node->open_ticket;
}

/* Silence. */

static bool is_silent(const struct moving_job *job, const struct moving_connection *connection) {
    int host = connection->store->host;
    bool is_gone =
        !connection->store->is_up; /* its machine may be on again, and knows of nothing */
    return is_gone || moving_is_apart(job, connection->node, host) || job->nodes[host].is_stopped;
}

static void doubted_here(struct moving_job *job, struct moving_event *event) {
    const struct moving_connection *connection = event->subject;
    struct moving_node *node = &job->nodes[connection->node];
    if (connection->is_open_here && is_silent(job, connection)) {
        moving_node_post(job, node,
            &(struct node_event){.part = NODE_SUCCESSION,
                .succession = {.kind = SUCCESSION_EVENT_DOUBTED, .is_doubted = true}});
    }
}

static void silent_here(struct moving_job *job, struct moving_event *event) {
    struct moving_connection *connection = event->subject;
    struct moving_node *node = &job->nodes[connection->node];
    if (connection->is_open_here && is_silent(job, connection) &&
        node->lanes[connection->lane].connection == connection) {
        lose(job, node, FAILURE_TIMEOUT);
    }
}

static void plan_here(struct moving_job *job, struct moving_connection *connection, double seconds,
    void (*happen)(struct moving_job *, struct moving_event *)) {
    struct moving_event *event =
        moving_add(job, moving_later(job, seconds), &job->nodes[connection->node], happen);
    event->life = connection->life;
    event->subject = connection;
}

void moving_part(struct moving_job *job, int one, int other) {
    for (struct moving_connection *each = job->connections; each != NULL; each = each->next) {
        int host = each->store->host;
        bool is_between =
            (each->node == one && host == other) || (each->node == other && host == one);
        if (!is_between || one == other || each->lane != RENDEZVOUS_LANE_ASKER) {
            continue;
        }
        plan_here(job, each, moving_between(job, 0.5, 1), doubted_here);
        plan_here(job, each, MOVING_SILENCE_SECONDS + moving_between(job, 0.5, 1), silent_here);
        struct moving_event *there =
            moving_add(job, moving_later(job, MOVING_SILENCE_SECONDS + moving_between(job, 0.5, 1)),
                &job->nodes[host], moving_silent_there);
        there->life = each->store->life;
        there->subject = each;
    }
}
