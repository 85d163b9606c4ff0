/* SPDX-License-Identifier: BSD-3-Clause */
/* The store that the nodes meet at: the real table and presence, as host/store/store_peers serves
 * them, and what its host learns from it, as agent/rendezvous/agent_store_host does. */
#include "whole_parts.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "wire/rendezvous/delegation_text.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

static struct whole_connection *connection_of(const struct store_connection *stored) {
    return stored->owner;
}

bool whole_store_is_stopped(const struct whole_cluster *cluster) {
    const struct whole_node *host = cluster->store.host;
    return host != NULL && host->is_alive && host->is_stopped;
}

/* What the store's thread tells its host, which takes it as soon as it runs. */

static void poke(struct whole_cluster *cluster, struct whole_happening *happening) {
    (void)cluster;
    (void)happening;
}

static void tell_host(struct whole_cluster *cluster, const struct rendezvous_event *event) {
    struct whole_node *host = cluster->store.host;
    if (host != NULL && host->is_alive) {
        whole_node_post(
            cluster, host, &(struct node_event){.part = NODE_RENDEZVOUS, .rendezvous = *event});
        whole_schedule(cluster, cluster->now, host, poke);
    }
}

static void gone(struct whole_cluster *cluster, const struct store_presence_key *key) {
    struct rendezvous_event event = {.kind = RENDEZVOUS_EVENT_NODE_GONE};
    presence_watch_forget(&cluster->store.watch, key->name);
    if (!node_identity_parse(key->name, &event.gone.identity)) {
        whole_complain(cluster, "a node that is none is gone: %s", key->name);
        return;
    }
    struct rendezvous_wish wish;
    event.gone.has_finished = text_equals(key->value, RENDEZVOUS_PRESENCE_FINISHED) ||
                              (delegation_wish_read(key->value, &wish) == FAILURE_NONE &&
                                  wish.finished_round != RENDEZVOUS_WISH_NO_ROUND);
    tell_host(cluster, &event);
}

/* Delegation. */

static void tell_wish(struct whole_cluster *cluster, const struct store_presence_key *key) {
    struct rendezvous_event event = {.kind = RENDEZVOUS_EVENT_WISHED};
    if (!cluster->settings.rendezvous.delegates ||
        delegation_wish_read(key->value, &event.wished.wish) != FAILURE_NONE) {
        event.wished.wish = (struct rendezvous_wish){0};
    }
    if (node_identity_parse(key->name, &event.wished.identity)) {
        tell_host(cluster, &event);
    }
}

/* Requests of its own. */

static void apply_own(struct whole_store *store, const struct store_request *request) {
    struct store_connection own = {0};
    store_effects_reset(&store->own_effects);
    store_table_apply(store->table, &own, request, &store->own_effects);
}

static void remove_gone_keys(struct whole_cluster *cluster) {
    struct whole_store *store = &cluster->store;
    struct store_presence_key *key;
    while (!store->is_carrying_out && (key = store_presence_take_gone(store->presence)) != NULL) {
        apply_own(store, &(struct store_request){
                             .operation = STORE_DELETE, .key = slice_from_string(key->raw_key)});
        gone(cluster, key);
        store_presence_key_free(key);
    }
}

static void say_served(struct whole_store *store) {
    const char *key = store_presence_served_key(store->presence);
    if (*key != '\0') {
        apply_own(store, &(struct store_request){.operation = STORE_SET,
                             .key = slice_from_string(key),
                             .value = slice_from_string("1")});
    }
}

/* Leaving last. */

static size_t count_own(const struct whole_node *host) {
    size_t count = 0;
    for (int i = 0; i < RENDEZVOUS_LANE_COUNT; i++) {
        const struct whole_connection *connection = host->lanes[i].connection;
        count += connection != NULL && connection->is_accepted;
    }
    return count;
}

void whole_tell_when_alone(struct whole_cluster *cluster, struct whole_node *host) {
    bool is_changing = cluster->settings.kind == MEMBERSHIP_CHANGING;
    size_t own = is_changing ? count_own(host) : WHOLE_FIXED_LANES;
    if (host->is_lingering && cluster->store.open_count <= own) {
        host->is_lingering = false;
        whole_call_off(cluster, &host->patience);
        whole_tell_membership(cluster, host, MEMBERSHIP_EVENT_LEFT);
        whole_schedule(cluster, cluster->now, host, poke);
    }
}

void whole_store_forget(struct whole_cluster *cluster, struct whole_connection *connection) {
    struct whole_store *store = &cluster->store;
    if (store->table == NULL || !connection->is_accepted) {
        return;
    }
    connection->is_accepted = false;
    store_table_disconnect(store->table, &connection->stored);
    store_presence_leave(store->presence, &connection->holder);
    store->open_count--;
    remove_gone_keys(cluster);
    if (store->host != NULL) {
        whole_tell_when_alone(cluster, store->host);
    }
}

/* Requests. */

static void reply_to(struct whole_cluster *cluster, struct whole_connection *connection,
    const struct store_reply *reply) {
    struct bytes *bytes = &cluster->store.reply;
    bytes->length = 0;
    (void)!store_reply_encode(reply, bytes); /* has no ceiling */
    whole_stream_send(cluster, &connection->to_node, bytes_slice(bytes));
}

static void carry_out(struct whole_cluster *cluster) {
    struct whole_store *store = &cluster->store;
    store->is_carrying_out = true;
    for (size_t i = 0; i < store->effects.count; i++) {
        const struct store_effect *effect = &store->effects.items[i];
        struct whole_connection *connection = connection_of(effect->connection);
        if (!connection->is_open_there) {
            continue;
        }
        if (effect->kind == STORE_EFFECT_REPLY) {
            reply_to(cluster, connection, &effect->reply);
        } else {
            whole_close_there(cluster, connection);
        }
    }
    store->is_carrying_out = false;
    remove_gone_keys(cluster);
}

static void put_into_queue(
    struct whole_cluster *cluster, const struct text *key, const char *item) {
    struct whole_store *store = &cluster->store;
    store_effects_reset(&store->effects);
    store_table_tell(store->table, slice_from_string(text_string(key)), slice_from_string(item),
        &store->effects);
    carry_out(cluster);
}

static void offer_delegation(struct whole_cluster *cluster) {
    struct text key = {0};
    rendezvous_key_write_delegation(WHOLE_RUN_ID, &key);
    put_into_queue(cluster, &key, "1");
    text_clear(&key);
}

void whole_store_tell(struct whole_cluster *cluster, const struct whole_node *node,
    const struct rendezvous_effect *effect) {
    struct text key = {0};
    struct text item = {0};
    if (cluster->store.host != node || !cluster->store.is_up) {
        return;
    }
    for (size_t i = 0; i < effect->standings.count; i++) {
        const struct rendezvous_telling *telling = &effect->standings.items[i];
        rendezvous_key_write_standing(WHOLE_RUN_ID, &telling->identity, &key);
        delegation_standing_write(effect->standings.record, &effect->standings.crowd, telling,
            effect->standings.is_withdrawn, &item);
        put_into_queue(cluster, &key, text_string(&item));
        text_clear(&key);
        text_clear(&item);
    }
}

/* A record that somebody wrote: what must hold of it, and who must hear of it. */
static void note_record(struct whole_cluster *cluster) {
    struct whole_store *store = &cluster->store;
    struct store_connection own = {0};
    struct rendezvous_state written = {0};
    struct text why = {0};
    bool is_absent = true;
    store_effects_reset(&store->own_effects);
    store_table_apply(store->table, &own,
        &(struct store_request){
            .operation = STORE_GET, .key = slice_from_string(store->record_key)},
        &store->own_effects);
    if (rendezvous_state_read_text(
            store->own_effects.items[0].reply.blob, &is_absent, &written, &why) != FAILURE_NONE) {
        whole_complain(cluster, "a record that cannot be read: %s", text_string(&why));
    } else if (!is_absent) {
        whole_check_write(cluster, &store->record, &written);
        rendezvous_state_clear(&store->record);
        store->record = written;
        written = (struct rendezvous_state){0};
        store->has_record = true;
    }
    rendezvous_state_clear(&written);
    text_clear(&why);
}

static bool is_record_write(const struct whole_store *store, const struct store_request *request) {
    return (request->operation == STORE_SET || request->operation == STORE_COMPARE_SET) &&
           slice_equals(request->key, slice_from_string(store->record_key));
}

static bool has_stored(const struct whole_store *store, const struct store_request *request) {
    return store_effects_have_written(&store->effects, request);
}

static void note_presence(struct whole_cluster *cluster, struct whole_connection *connection,
    const struct store_request *request) {
    const struct store_presence_key *key =
        store_presence_note(cluster->store.presence, &connection->holder, request);
    if (key != NULL) {
        presence_watch_hear(&cluster->store.watch, key->name, (struct instant){cluster->now});
        tell_wish(cluster, key);
    }
}

static void serve(struct whole_cluster *cluster, struct whole_connection *connection,
    const struct store_request *request) {
    struct whole_store *store = &cluster->store;
    const char *objection = store_presence_objection(store->presence, request);
    if (objection != NULL) {
        whole_complain(cluster, "the store objects to %s: %s", connection->node->name, objection);
        return;
    }
    const char *refusal = store_presence_refusal(store->presence, &connection->holder, request);
    if (refusal != NULL) {
        whole_complain(cluster, "the store refuses %s: %s", connection->node->name, refusal);
        return;
    }
    store_effects_reset(&store->effects);
    store_table_apply(store->table, &connection->stored, request, &store->effects);
    bool is_write = is_record_write(store, request);
    bool has_won = is_write && has_stored(store, request);
    note_presence(cluster, connection, request);
    if (has_won && connection->holder.first == NULL) {
        tell_host(cluster, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_STRANGER_WROTE});
    }
    carry_out(cluster);
    if (has_won) {
        note_record(cluster);
    }
}

void whole_store_receive(
    struct whole_cluster *cluster, struct whole_connection *connection, struct slice input) {
    struct whole_store *store = &cluster->store;
    if (!connection->is_accepted) {
        connection->is_accepted = true;
        store->open_count++;
    }
    while (input.length > 0 && connection->is_open_there && store->is_up) {
        struct store_decoded_request decoded;
        if (store_request_decoder_next(&connection->requests, input, &decoded) != FAILURE_NONE) {
            whole_complain(cluster, "%s asks what makes no sense", connection->node->name);
            return;
        }
        serve(cluster, connection, &decoded.request);
        input = (struct slice){input.data + decoded.consumed, input.length - decoded.consumed};
    }
}

void whole_store_renew(struct whole_cluster *cluster, const char *kept_prefix) {
    struct whole_store *store = &cluster->store;
    store_effects_reset(&store->effects);
    store_table_renew(store->table, slice_from_string(kept_prefix), &store->effects);
    carry_out(cluster);
    say_served(store);
}

/* Somebody who is no node of the job. */
static void write_record(struct whole_cluster *cluster, const struct rendezvous_state *record) {
    struct whole_store *store = &cluster->store;
    struct store_connection stranger = {0};
    struct bytes text = {0};
    (void)!rendezvous_state_write_text(record, &text);
    store_effects_reset(&store->effects);
    store_table_apply(store->table, &stranger,
        &(struct store_request){.operation = STORE_SET,
            .key = slice_from_string(store->record_key),
            .value = bytes_slice(&text)},
        &store->effects);
    tell_host(cluster, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_STRANGER_WROTE});
    note_record(cluster);
    bytes_clear(&text);
}

void whole_store_close_record(struct whole_cluster *cluster) {
    struct rendezvous_state closed = {0};
    rendezvous_state_copy(&cluster->store.record, &closed);
    closed.is_closed = true;
    cluster->closes_asked++;
    write_record(cluster, &closed);
    rendezvous_state_clear(&closed);
}

/* It joins as a node of Muster would, but shows no presence. */
void whole_store_write_ghost(struct whole_cluster *cluster) {
    struct rendezvous_state record = {0};
    struct node_identity ghost;
    node_identity_init(&ghost, "ghost", 1, node_identity_muster_local_id(1));
    rendezvous_state_copy(&cluster->store.record, &record);
    struct rendezvous_node *node = rendezvous_state_obtain(&record, &ghost);
    node->is_participant = !record.is_complete;
    node->is_waiting = record.is_complete;
    whole_note(cluster, NULL, "a ghost is written into the record");
    write_record(cluster, &record);
    rendezvous_state_clear(&record);
}

void whole_store_lose_record(struct whole_cluster *cluster, int how) {
    struct whole_store *store = &cluster->store;
    struct store_connection stranger = {0};
    whole_note(cluster, NULL, "the record is lost");
    store->forgotten_at = cluster->now;
    if (how == 3) {
        struct text changes = {0};
        rendezvous_key_write_changes(WHOLE_RUN_ID, &changes);
        apply_own(store, &(struct store_request){.operation = STORE_DELETE,
                             .key = slice_from_string(text_string(&changes))});
        text_clear(&changes);
    }
    store_effects_reset(&store->effects);
    store_table_apply(store->table, &stranger,
        &(struct store_request){.operation = how % 3 == 0 ? STORE_DELETE : STORE_SET,
            .key = slice_from_string(store->record_key),
            .value = slice_from_string(how == 1 ? "" : RENDEZVOUS_STATE_ABSENT)},
        &store->effects);
}

static void new_table(struct whole_store *store) {
    store->table = store_table_new(&STORE_LIMITS_DEFAULT);
    store_table_own(store->table, slice_from_string(store->record_key));
}

void whole_store_begin_anew(struct whole_cluster *cluster) {
    struct whole_store *store = &cluster->store;
    if (!store->is_up) {
        return; /* its host has not opened it yet, or has ended */
    }
    whole_note(cluster, NULL, "the store begins anew");
    store->forgotten_at = store->begun_at = cluster->now;
    for (struct whole_connection *each = cluster->connections; each != NULL; each = each->next) {
        whole_close_there(cluster, each);
    }
    store_table_free(store->table);
    new_table(store);
}

/* Agents that have stalled. */

static void drop_stalled(struct whole_cluster *cluster, const char *name) {
    const struct store_presence_holder *holder = store_presence_find(cluster->store.presence, name);
    whole_note(cluster, NULL, "the store's host takes %s to have stalled", name);
    presence_watch_forget(&cluster->store.watch, name);
    if (holder != NULL) {
        whole_close_there(cluster, holder->owner);
    }
}

static void look_for_stalled(struct whole_cluster *cluster, struct whole_happening *happening) {
    const struct rendezvous_settings *settings = &cluster->settings.rendezvous;
    int64_t interval = settings->keep_alive_interval.nanoseconds;
    struct text_list stalled = {0};
    presence_watch_look(&cluster->store.watch, (struct instant){cluster->now},
        (struct duration){2 * interval},
        (struct duration){
            rendezvous_settings_beat(settings).nanoseconds * settings->keep_alive_max_attempt},
        &stalled);
    for (size_t i = 0; i < stalled.count; i++) {
        drop_stalled(cluster, stalled.items[i]);
    }
    text_list_clear(&stalled);
    whole_plan(cluster, happening, cluster->now + interval);
}

/* Who does not come. */

#define MISSING_LOOK_SECONDS 0.5
#define MISSING_SLACK_SECONDS 1

static void miss(void *context, const struct presence_absence *absence) {
    struct whole_cluster *cluster = context;
    whole_note(cluster, NULL, "the store's host misses %s", absence->identity.address);
    tell_host(cluster, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_NODE_GONE,
                           .gone = {.identity = absence->identity}});
}

static void look_for_missing(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_store *store = &cluster->store;
    struct duration step = duration_from_seconds(MISSING_LOOK_SECONDS);
    struct duration limit = {cluster->settings.rendezvous.silence_timeout.nanoseconds +
                             duration_from_seconds(MISSING_SLACK_SECONDS).nanoseconds};
    presence_watch_miss(&store->watch, (struct instant){cluster->now},
        (struct duration){2 * step.nanoseconds}, limit, miss, cluster);
    store->is_missing = presence_watch_is_awaiting(&store->watch);
    if (store->is_missing) {
        whole_plan(cluster, happening, cluster->now + step.nanoseconds);
    }
}

void whole_store_see(struct whole_cluster *cluster, const struct whole_node *node,
    const struct rendezvous_state *record) {
    struct whole_store *store = &cluster->store;
    if (store->host != node || !store->is_up || record == NULL) {
        return;
    }
    presence_watch_await(&store->watch, record, (struct instant){cluster->now});
    if (!store->is_missing) {
        look_for_missing(cluster, &store->missing);
    }
}

/* Life. */

void whole_store_init(struct whole_cluster *cluster) {
    struct text key = {0};
    rendezvous_key_write_record(WHOLE_RUN_ID, &key);
    cluster->store.record_key = text_take(&key);
    cluster->store.look.is_fixed = true;
    cluster->store.missing.is_fixed = true;
    cluster->store.forgotten_at = WHOLE_NOBODY;
    if (!cluster->settings.is_hosted) {
        whole_store_open(cluster, NULL);
    }
}

void whole_store_open(struct whole_cluster *cluster, struct whole_node *host_or_null) {
    struct whole_store *store = &cluster->store;
    struct text prefix = {0};
    bool has_presence = host_or_null != NULL && cluster->settings.kind == MEMBERSHIP_CHANGING;
    store->is_up = true;
    store->host = host_or_null;
    new_table(store);
    if (has_presence) {
        rendezvous_key_write_presences(WHOLE_RUN_ID, &prefix);
    }
    store->presence = store_presence_new(text_string(&prefix));
    text_clear(&prefix);
    say_served(store);
    if (has_presence && cluster->settings.rendezvous.delegates) {
        offer_delegation(cluster);
    }
    if (has_presence) {
        store->missing.happen = look_for_missing;
        store->missing.node = host_or_null;
        store->look.happen = look_for_stalled;
        store->look.node = host_or_null;
        whole_plan(cluster, &store->look,
            cluster->now + cluster->settings.rendezvous.keep_alive_interval.nanoseconds);
    }
}

/* With its host everything ends that needs it. */
void whole_store_drop(struct whole_cluster *cluster, bool is_silent) {
    struct whole_store *store = &cluster->store;
    if (!store->is_up) {
        return;
    }
    store->is_up = false;
    whole_call_off(cluster, &store->look);
    whole_call_off(cluster, &store->missing);
    if (!cluster->is_job_over) {
        cluster->is_job_over = true;
        cluster->job_over_at = cluster->now;
    }
    struct whole_connection *each = cluster->connections;
    for (; each != NULL; each = each->next) {
        each->is_accepted = false;
        if (each->is_open_there && !is_silent) {
            whole_stream_end(cluster, &each->to_node);
        }
        each->is_open_there = false;
    }
}

void whole_store_clear(struct whole_cluster *cluster) {
    struct whole_store *store = &cluster->store;
    store_table_free(store->table);
    store_presence_free(store->presence);
    presence_watch_clear(&store->watch);
    store_effects_clear(&store->effects);
    store_effects_clear(&store->own_effects);
    bytes_clear(&store->reply);
    rendezvous_state_clear(&store->record);
    free(store->record_key);
}
