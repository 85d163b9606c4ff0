/* SPDX-License-Identifier: BSD-3-Clause */
#include "moving_job.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/round/round_key.h"
#include "wire/rendezvous/delegation_text.h"
#include "wire/rendezvous/job_notes.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* What the store tells its host. */

static struct moving_node *host_of(struct moving_job *job, const struct moving_store *store) {
    struct moving_node *host = &job->nodes[store->host];
    return host->is_alive && host->life == store->life && host->store == store ? host : NULL;
}

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
        if (job->nodes[store->host].is_handing_over) {
            tell_host(job, store,
                &(struct node_event){.part = NODE_SUCCESSION,
                    .succession = {
                        .kind = SUCCESSION_EVENT_NODE_GONE, .gone = event.gone.identity}});
        }
    }
}

static void tell_wish(
    struct moving_job *job, struct moving_store *store, const struct store_presence_key *key) {
    struct rendezvous_event event = {.kind = RENDEZVOUS_EVENT_WISHED};
    if (!node_identity_parse(key->name, &event.wished.identity)) {
        return;
    }
    if (!job->nodes[store->host].delegates ||
        delegation_wish_read(key->value, &event.wished.wish) != FAILURE_NONE) {
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

static void close_there(struct moving_job *job, struct moving_connection *connection) {
    bool was_open = connection->is_open_there;
    forget_there(job, connection);
    if (was_open) {
        (void)moving_add_here(job, connection, moving_ends_here);
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
                &effect->reply, &moving_add_here(job, connection, moving_arrives_here)->bytes);
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
    node_identity_write(identity, &name);
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

static void tell_word(struct moving_job *job, struct moving_node *node,
    const struct node_identity *identity, enum handover_word word) {
    struct text key = {0};
    rendezvous_key_write_standing(MOVING_RUN_ID, identity, &key);
    moving_note(job, node, "tells %s: %s", text_string(&key), handover_word_text(word));
    put_into_queue(job, node->store, &key, handover_word_text(word));
    text_clear(&key);
}

bool moving_store_name(
    struct moving_job *job, struct moving_node *node, const struct node_identity *successor) {
    bool knows = moving_store_knows(node, successor);
    if (knows) {
        tell_word(job, node, successor, HANDOVER_NAMED);
    }
    return knows;
}

void moving_store_tell_moved(struct moving_job *job, struct moving_node *node) {
    struct node_identity identity;
    for (struct moving_connection *connection = job->connections; connection != NULL;
         connection = connection->next) {
        if (connection->store == node->store && connection->is_open_there &&
            connection->holder.first != NULL &&
            node_identity_parse(connection->holder.first->name, &identity)) {
            tell_word(job, node, &identity, HANDOVER_MOVED);
        }
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

/* What comes to it. */

void moving_arrives_there(struct moving_job *job, struct moving_event *event) {
    struct moving_connection *connection = event->subject;
    struct store_decoded_request decoded;
    if (!connection->is_open_there || !connection->store->is_up || moving_holds_up(job, event)) {
        return;
    }
    if (store_request_decoder_next(&connection->requests, bytes_slice(&event->bytes), &decoded) !=
        FAILURE_NONE) {
        moving_complain(job, "node %d asks what makes no sense", connection->node);
        return;
    }
    serve(job, connection, &decoded.request);
}

void moving_ends_there(struct moving_job *job, struct moving_event *event) {
    if (!moving_holds_up(job, event)) {
        forget_there(job, event->subject);
    }
}

void moving_silent_there(struct moving_job *job, struct moving_event *event) {
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
    store_table_own(store->table, slice_from_string("/torch.rendezvous." MOVING_RUN_ID));
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
                (void)moving_add_here(job, each, moving_ends_here);
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
