/* SPDX-License-Identifier: BSD-3-Clause */
#include "moving_job.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/round/round_key.h"
#include "wire/rendezvous/delegation_text.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

bool moving_is_apart(const struct moving_job *job, int one, int other) {
    return one != other && (job->is_cut[one][other] || job->is_cut[other][one] ||
                               job->nodes[one].is_off || job->nodes[other].is_off);
}

static struct moving_node *host_of(struct moving_job *job, const struct moving_store *store) {
    struct moving_node *host = &job->nodes[store->host];
    return host->is_alive && host->life == store->life && host->store == store ? host : NULL;
}

static double delay(struct moving_job *job, bool is_own) {
    if (is_own) {
        return moving_between(job, 0.00002, 0.0003);
    }
    return moving_chance(job, 3) ? moving_between(job, 0.005, 0.04)
                                 : moving_between(job, 0.0001, 0.001);
}

/* Messages of one way stay in order. */
static struct instant after_last(struct moving_job *job, struct instant *last, bool is_own) {
    struct instant at = moving_later(job, delay(job, is_own));
    if (!instant_is_before(*last, at)) {
        at = (struct instant){last->nanoseconds + 1};
    }
    *last = at;
    return at;
}

/* What the store tells its host. */

static void tell_host(
    struct moving_job *job, struct moving_store *store, const struct node_event *event) {
    struct moving_node *host = host_of(job, store);
    if (host != NULL) {
        moving_node_post(job, host, event);
        if (!host->is_performing) {
            moving_node_run(job, host);
        }
    }
}

static void tell_gone(
    struct moving_job *job, struct moving_store *store, const struct store_presence_key *key) {
    struct rendezvous_event event = {.kind = RENDEZVOUS_EVENT_NODE_GONE};
    struct rendezvous_wish wish;
    if (node_identity_parse(key->name, &event.gone.identity)) {
        event.gone.has_finished = text_equals(key->value, RENDEZVOUS_PRESENCE_FINISHED) ||
                                  (delegation_wish_read(key->value, &wish) == FAILURE_NONE &&
                                      wish.finished_round != RENDEZVOUS_WISH_NO_ROUND);
        tell_host(job, store, &(struct node_event){.part = NODE_RENDEZVOUS, .rendezvous = event});
    }
}

static void tell_wish(
    struct moving_job *job, struct moving_store *store, const struct store_presence_key *key) {
    struct rendezvous_event event = {.kind = RENDEZVOUS_EVENT_WISHED};
    if (!job->nodes[store->host].delegates ||
        !node_identity_parse(key->name, &event.wished.identity)) {
        return;
    }
    if (delegation_wish_read(key->value, &event.wished.wish) != FAILURE_NONE) {
        event.wished.wish = (struct rendezvous_wish){0};
    }
    tell_host(job, store, &(struct node_event){.part = NODE_RENDEZVOUS, .rendezvous = event});
}

/* The table. */

static void apply_own(struct moving_store *store, const struct store_request *request) {
    struct store_connection own = {0};
    store_effects_reset(&store->own_effects);
    store_table_apply(store->table, &own, request, &store->own_effects);
}

static void remove_gone_keys(struct moving_job *job, struct moving_store *store) {
    struct store_presence_key *key;
    while (store->is_up && !store->is_carrying_out &&
           (key = store_presence_take_gone(store->presence)) != NULL) {
        apply_own(store, &(struct store_request){
                             .operation = STORE_DELETE, .key = slice_from_string(key->raw_key)});
        tell_gone(job, store, key);
        store_presence_key_free(key);
    }
}

static void arrives_here(struct moving_job *job, struct moving_event *event);
static void ends_here(struct moving_job *job, struct moving_event *event);
static void ends_there(struct moving_job *job, struct moving_event *event);

static void forget_there(struct moving_job *job, struct moving_connection *connection) {
    if (connection->is_open_there) {
        connection->is_open_there = false;
        if (connection->store->is_up) {
            store_table_disconnect(connection->store->table, &connection->stored);
            store_presence_leave(connection->store->presence, &connection->holder);
            remove_gone_keys(job, connection->store);
        }
    }
}

static bool is_own(const struct moving_connection *connection) {
    return connection->node == connection->store->host;
}

/* For the process of the node. */
static struct moving_event *add_here(struct moving_job *job, struct moving_connection *connection,
    void (*happen)(struct moving_job *, struct moving_event *)) {
    struct moving_event *event =
        moving_add(job, after_last(job, &connection->last_here, is_own(connection)),
            &job->nodes[connection->node], happen);
    event->life = connection->life;
    event->subject = connection;
    return event;
}

static void close_there(struct moving_job *job, struct moving_connection *connection) {
    bool was_open = connection->is_open_there;
    forget_there(job, connection);
    if (was_open) {
        (void)add_here(job, connection, ends_here);
    }
}

static void carry_out(struct moving_job *job, struct moving_store *store) {
    store->is_carrying_out = true;
    for (size_t i = 0; i < store->effects.count; i++) {
        const struct store_effect *effect = &store->effects.items[i];
        struct moving_connection *connection = effect->connection->owner;
        if (!connection->is_open_there) {
            continue;
        }
        if (effect->kind == STORE_EFFECT_REPLY) {
            (void)!store_reply_encode(
                &effect->reply, &add_here(job, connection, arrives_here)->bytes);
        } else {
            close_there(job, connection);
        }
    }
    store->is_carrying_out = false;
    remove_gone_keys(job, store);
}

static void put_into_queue(
    struct moving_job *job, struct moving_store *store, const struct text *key, const char *item) {
    store_effects_reset(&store->effects);
    store_table_tell(store->table, slice_from_string(text_string(key)), slice_from_string(item),
        &store->effects);
    carry_out(job, store);
}

void moving_store_tell(
    struct moving_job *job, struct moving_node *node, const struct rendezvous_effect *effect) {
    struct text key = {0};
    struct text item = {0};
    for (size_t i = 0; node->store != NULL && i < effect->standings.count; i++) {
        const struct rendezvous_telling *telling = &effect->standings.items[i];
        rendezvous_key_write_standing(MOVING_RUN_ID, &telling->identity, &key);
        delegation_standing_write(effect->standings.record, &effect->standings.crowd, telling,
            effect->standings.is_withdrawn, &item);
        moving_note(job, node, "tells %s: %s", text_string(&key), text_string(&item));
        put_into_queue(job, node->store, &key, text_string(&item));
        job->told++;
        text_clear(&key);
        text_clear(&item);
    }
}

static const struct store_presence_holder *holder_of(
    const struct moving_node *node, const struct node_identity *identity) {
    struct text name = {0};
    node_identity_describe(identity, &name);
    const struct store_presence_holder *holder =
        node->store == NULL ? NULL : store_presence_find(node->store->presence, text_string(&name));
    text_clear(&name);
    return holder;
}

bool moving_store_knows(const struct moving_node *node, const struct node_identity *identity) {
    return holder_of(node, identity) != NULL;
}

void moving_store_cut_off(
    struct moving_job *job, struct moving_node *node, const struct node_identity *identity) {
    const struct store_presence_holder *holder = holder_of(node, identity);
    job->cut_off++;
    if (holder != NULL) {
        close_there(job, holder->owner);
    }
}

static void note_presence(struct moving_job *job, struct moving_connection *connection,
    const struct store_request *request) {
    const struct store_presence_key *key =
        store_presence_note(connection->store->presence, &connection->holder, request);
    if (key != NULL) {
        tell_wish(job, connection->store, key);
    }
}

static void serve(struct moving_job *job, struct moving_connection *connection,
    const struct store_request *request) {
    struct moving_store *store = connection->store;
    const char *objection = store_presence_objection(store->presence, request);
    if (objection != NULL) {
        moving_complain(job, "the store objects to node %d: %s", connection->node, objection);
        return;
    }
    const char *refusal = store_presence_refusal(store->presence, &connection->holder, request);
    store_effects_reset(&store->effects);
    if (refusal != NULL) {
        store_table_refuse(store->table, &connection->stored, request, refusal, &store->effects);
    } else {
        store_table_apply(store->table, &connection->stored, request, &store->effects);
    }
    carry_out(job, store);
    if (refusal == NULL) {
        note_presence(job, connection, request);
    }
}

/* Ways. */

/* What cannot pass is sent again, until an end gives up. */
static bool holds_up(struct moving_job *job, struct moving_event *event) {
    const struct moving_connection *connection = event->subject;
    if (!moving_is_apart(job, connection->node, connection->store->host)) {
        return false;
    }
    struct moving_event *again = moving_add(job, moving_later(job, 0.2), NULL, event->happen);
    again->node = event->node;
    again->life = event->life;
    again->subject = event->subject;
    again->bytes = event->bytes;
    event->bytes = (struct bytes){0};
    return true;
}

static void arrives_here(struct moving_job *job, struct moving_event *event) {
    struct moving_connection *connection = event->subject;
    struct moving_node *node = &job->nodes[connection->node];
    struct moving_lane *lane = &node->lanes[connection->lane];
    struct store_decoded_reply decoded;
    if (!connection->is_open_here || holds_up(job, event)) {
        return;
    }
    node->heard_at = job->now;
    if (lane->connection != connection || !lane->is_busy ||
        store_reply_decoder_next(&connection->replies, bytes_slice(&event->bytes), &decoded) !=
            FAILURE_NONE) {
        moving_complain(job, "node %d is told by the store what it has not asked", node->index);
        return;
    }
    struct moving_call call = lane->calls[0];
    memmove(lane->calls, lane->calls + 1, --lane->count * sizeof *lane->calls);
    lane->is_busy = false;
    moving_call_done(job, node, &call, FAILURE_NONE, &decoded.reply);
    bytes_clear(&call.bytes);
}

static void arrives_there(struct moving_job *job, struct moving_event *event) {
    struct moving_connection *connection = event->subject;
    struct store_decoded_request decoded;
    if (!connection->is_open_there || !connection->store->is_up || holds_up(job, event)) {
        return;
    }
    if (store_request_decoder_next(&connection->requests, bytes_slice(&event->bytes), &decoded) !=
        FAILURE_NONE) {
        moving_complain(job, "node %d asks what makes no sense", connection->node);
        return;
    }
    serve(job, connection, &decoded.request);
}

static void ends_there(struct moving_job *job, struct moving_event *event) {
    if (!holds_up(job, event)) {
        forget_there(job, event->subject);
    }
}

/* Lanes. */

static struct moving_event *add_there(struct moving_job *job, struct moving_connection *connection,
    void (*happen)(struct moving_job *, struct moving_event *)) {
    struct moving_event *event =
        moving_add(job, after_last(job, &connection->last_there, is_own(connection)),
            &job->nodes[connection->store->host], happen);
    event->life = connection->store->life;
    event->subject = connection;
    return event;
}

static void pump(struct moving_job *job, struct moving_node *node, int number) {
    static const struct store_reply none = {.kind = STORE_REPLY_NONE};
    struct moving_lane *lane = &node->lanes[number];
    while (lane->connection != NULL && !lane->is_busy && lane->count > 0) {
        struct moving_call *first = &lane->calls[0];
        struct store_request asked = {.operation = first->operation, .count = first->key_count};
        struct moving_event *sent = add_there(job, lane->connection, arrives_there);
        sent->bytes = first->bytes;
        first->bytes = (struct bytes){0};
        store_reply_decoder_expect(&lane->connection->replies, &asked);
        lane->is_busy = store_operation_reply_kind(first->operation) != STORE_REPLY_NONE;
        if (!lane->is_busy) {
            struct moving_call call = *first;
            memmove(lane->calls, lane->calls + 1, --lane->count * sizeof *lane->calls);
            moving_call_done(job, node, &call, FAILURE_NONE, &none);
        }
    }
}

void moving_lane_send(struct moving_node *node, int number, const struct store_request *request,
    struct moving_call call) {
    struct moving_lane *lane = &node->lanes[number];
    call.operation = request->operation;
    call.key_count = request->count;
    (void)!store_request_encode(request, &call.bytes);
    lane->calls =
        memory_reserve(lane->calls, &lane->capacity, lane->count + 1, sizeof *lane->calls);
    lane->calls[lane->count++] = call;
}

void moving_pump(struct moving_job *job, struct moving_node *node) {
    for (int i = 0; i < RENDEZVOUS_LANE_COUNT; i++) {
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
    free(old.calls);
}

static void close_here(struct moving_job *job, struct moving_connection *connection) {
    if (connection->is_open_here) {
        connection->is_open_here = false;
        if (connection->is_open_there) {
            (void)add_there(job, connection, ends_there);
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

void moving_lane_renew(struct moving_job *job, struct moving_node *node, int lane) {
    struct moving_connection *old = node->lanes[lane].connection;
    struct moving_store *store = old == NULL ? NULL : old->store;
    if (store != NULL) {
        close_here(job, old);
        end_calls(job, node, lane);
        node->lanes[lane].connection = connect(job, node, store, lane);
    }
}

/* The process of the host ends a connection: one lane is enough. */
static void lose(struct moving_job *job, struct moving_node *node, enum failure_code code) {
    struct record_effects effects = {0};
    rendezvous_record_store_take_end(node->record, code, "the connection has ended", &effects);
    moving_perform_record(job, node, &effects);
}

static void ends_here(struct moving_job *job, struct moving_event *event) {
    struct moving_connection *connection = event->subject;
    struct moving_node *node = &job->nodes[connection->node];
    if (connection->is_open_here && !holds_up(job, event)) {
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
        (void)add_there(job, connection, ends_there);
        (void)add_here(job, connection, ends_here);
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
           (!host->is_alive || host->life != node->known.entry.host.pid);
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
        node->lanes[i].connection = connect(job, node, store, i);
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
    double wait = duration_seconds(pause) + delay(job, node->dials_self);
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

static void silent_there(struct moving_job *job, struct moving_event *event) {
    struct moving_connection *connection = event->subject;
    struct moving_store *store = connection->store;
    const struct moving_node *node = &job->nodes[connection->node];
    bool is_gone = !node->is_alive || node->life != connection->life;
    if (!connection->is_open_there ||
        !(is_gone || moving_is_apart(job, connection->node, store->host))) {
        return;
    }
    struct node_identity silent;
    if (connection->holder.first != NULL &&
        node_identity_parse(connection->holder.first->name, &silent)) {
        tell_host(job, store,
            &(struct node_event){.part = NODE_SUCCESSION,
                .succession = {.kind = SUCCESSION_EVENT_NODE_SILENT, .silent = silent}});
    }
    close_there(job, connection);
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
                &job->nodes[host], silent_there);
        there->life = each->store->life;
        there->subject = each;
    }
}

/* Life. */

static void say_served(struct moving_store *store) {
    apply_own(store, &(struct store_request){.operation = STORE_SET,
                         .key = slice_from_string(store_presence_served_key(store->presence)),
                         .value = slice_from_string("1")});
}

static void seed(struct moving_store *store, const struct rendezvous_state *record) {
    struct bytes value = {0};
    struct text key = {0};
    bool is_empty = record->count == 0 && record->round == 0 && !record->is_closed;
    if (!is_empty && rendezvous_state_write_text(record, &value) == FAILURE_NONE) {
        rendezvous_key_write_record(MOVING_RUN_ID, &key);
        apply_own(store, &(struct store_request){.operation = STORE_SET,
                             .key = slice_from_string(text_string(&key)),
                             .value = bytes_slice(&value)});
    }
    struct text_list done = {0};
    round_key_list_noted(record, MOVING_RUN_ID, &done);
    for (size_t i = 0; i < done.count; i++) {
        apply_own(store, &(struct store_request){.operation = STORE_SET,
                             .key = slice_from_string(done.items[i]),
                             .value = slice_from_string("1")});
    }
    text_list_clear(&done);
    bytes_clear(&value);
    text_clear(&key);
}

void moving_store_open(
    struct moving_job *job, struct moving_node *node, const struct rendezvous_state *record) {
    struct moving_store *store = memory_allocate(sizeof *store);
    struct text key = {0};
    moving_store_end(job, node);
    store->next = job->stores;
    job->stores = store;
    store->host = node->index;
    store->life = node->life;
    store->is_up = true;
    store->table = store_table_new(&STORE_LIMITS_DEFAULT);
    rendezvous_key_write_presences(MOVING_RUN_ID, &key);
    store->presence = store_presence_new(text_string(&key));
    text_clear(&key);
    node->store = store;
    say_served(store);
    seed(store, record);
    if (node->delegates) {
        rendezvous_key_write_delegation(MOVING_RUN_ID, &key);
        put_into_queue(job, store, &key, "1");
        text_clear(&key);
    }
}

void moving_store_end(struct moving_job *job, struct moving_node *node) {
    struct moving_store *store = node->store;
    node->store = NULL;
    if (store == NULL) {
        return;
    }
    for (struct moving_connection *each = job->connections; each != NULL; each = each->next) {
        if (each->store == store && each->is_open_there) {
            each->is_open_there = false;
            store_table_disconnect(store->table, &each->stored);
            store_presence_leave(store->presence, &each->holder);
            if (!node->is_off) {
                (void)add_here(job, each, ends_here);
            }
        }
    }
    store->is_up = false;
}

size_t moving_store_connections(const struct moving_job *job, const struct moving_node *node) {
    size_t count = 0;
    for (const struct moving_connection *each = job->connections; each != NULL; each = each->next) {
        count += node->store != NULL && each->store == node->store && each->is_open_there ? 1 : 0;
    }
    return count;
}

void moving_stores_clear(struct moving_job *job) {
    while (job->connections != NULL) {
        struct moving_connection *connection = job->connections;
        job->connections = connection->next;
        store_request_decoder_clear(&connection->requests);
        store_reply_decoder_clear(&connection->replies);
        free(connection);
    }
    while (job->stores != NULL) {
        struct moving_store *store = job->stores;
        job->stores = store->next;
        store_table_free(store->table);
        store_presence_free(store->presence);
        store_effects_clear(&store->effects);
        store_effects_clear(&store->own_effects);
        free(store);
    }
}
