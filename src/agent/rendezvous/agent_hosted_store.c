/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_hosted_store.h"

#include <stdlib.h>

#include "agent/rendezvous/agent_listener.h"
#include "agent/rendezvous/agent_store_memory.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "core/rendezvous/presence_watch.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/rendezvous/rendezvous_waiting.h"
#include "host/rendezvous/rendezvous_backend.h"
#include "host/store/store_thread.h"
#include "wire/rendezvous/delegation_text.h"
#include "wire/rendezvous/handover_word.h"
#include "wire/rendezvous/protocol_version.h"
#include "wire/rendezvous/rendezvous_record_store.h"
#include "wire/rendezvous/torchrun_refusal.h"

struct agent_hosted_store {
    struct event_loop *loop;
    struct agent_hosted_store_settings settings;
    struct store_thread *thread;
    bool is_serving; /* clients; what is told before is of a store that is served no longer */
    bool is_to_serve;
    int changes; /* to serving and standing by that are under way */
    void (*changed)(void *context);
    void *changed_context;
    struct presence_watch presences;
    struct event_timer *look; /* for stalled agents */
    struct event_timer *lingering;
    struct text
        reached; /* the address at which a node of another machine has reached this one, … */
    bool is_reached_else; /* … and others at another */
    size_t connection_count;
    size_t own_connections; /* of this node, which lingers */
    void (*left)(void *context);
    void *left_context;
};

static struct duration look_interval(const struct agent_hosted_store *store) {
    return store->settings.config->dynamic.settings.keep_alive_interval;
}

/* Who is there. */

/* Says what a node wishes that delegates, or that it does no more. */
static void tell_wish(struct agent_hosted_store *store, const char *name, const char *value) {
    struct rendezvous_wish wish = {0};
    struct node_identity identity;
    if (delegation_wish_read(value, &wish) != FAILURE_NONE) {
        wish = (struct rendezvous_wish){0};
    }
    if (node_identity_parse(name, &identity)) {
        store->settings.wished(store->settings.context, &identity, &wish);
    }
}

static void heard(void *context, const char *name, const char *value) {
    struct agent_hosted_store *store = context;
    if (!store->is_serving) {
        return;
    }
    presence_watch_hear(&store->presences, name, event_loop_now(store->loop));
    if (store->settings.wished != NULL) {
        tell_wish(store, name, value);
    }
}

static void tell_node(
    struct agent_hosted_store *store, const struct node_identity *identity, const char *text) {
    struct text key = {0};
    rendezvous_key_write_standing(store->settings.run_id, identity, &key);
    store_thread_tell(store->thread, text_string(&key), text);
    text_clear(&key);
}

void agent_hosted_store_tell(
    struct agent_hosted_store *store, const struct rendezvous_effect *effect) {
    struct text text = {0};
    for (size_t i = 0; i < effect->standings.count; i++) {
        const struct rendezvous_telling *telling = &effect->standings.items[i];
        delegation_standing_write(effect->standings.record, &effect->standings.crowd, telling,
            effect->standings.is_withdrawn, &text);
        tell_node(store, &telling->identity, text_string(&text));
        text_clear(&text);
    }
}

bool agent_hosted_store_name(
    struct agent_hosted_store *store, const struct node_identity *successor) {
    bool knows = agent_hosted_store_knows(store, successor);
    if (knows) {
        tell_node(store, successor, handover_word_text(HANDOVER_NAMED));
    }
    return knows;
}

void agent_hosted_store_tell_moved(struct agent_hosted_store *store) {
    struct text_list names = {0};
    struct node_identity identity;
    presence_watch_list(&store->presences, &names);
    for (size_t i = 0; i < names.count; i++) {
        if (node_identity_parse(names.items[i], &identity)) {
            tell_node(store, &identity, handover_word_text(HANDOVER_MOVED));
        }
    }
    text_list_clear(&names);
}

void agent_hosted_store_cut_off(
    struct agent_hosted_store *store, const struct node_identity *identity) {
    struct text name = {0};
    node_identity_write(identity, &name);
    store_thread_drop(store->thread, text_string(&name));
    text_clear(&name);
}

/* The item of a queue, which is there as long as nobody takes it. */
static bool has_finished(const char *value) {
    struct rendezvous_wish wish;
    return text_equals(value, RENDEZVOUS_PRESENCE_FINISHED) ||
           (delegation_wish_read(value, &wish) == FAILURE_NONE &&
               wish.finished_round != RENDEZVOUS_WISH_NO_ROUND);
}

bool agent_hosted_store_knows(
    const struct agent_hosted_store *store, const struct node_identity *identity) {
    struct text name = {0};
    node_identity_write(identity, &name);
    bool knows = presence_watch_knows(&store->presences, text_string(&name));
    text_clear(&name);
    return knows;
}

/* As people know the node. Anybody may have chosen the name. The caller frees the result. */
static char *shown_name(const char *name) {
    struct node_identity identity;
    struct text text = {0};
    if (node_identity_parse(name, &identity)) {
        node_identity_describe(&identity, &text);
    } else {
        text_append(&text, name);
    }
    char *shown = text_take(&text);
    utf8_make_line_printable(shown);
    return shown;
}

/* An agent of another version has found that it may not take part, and says so. Anybody may have
 * written it. */
static void refused(const struct agent_hosted_store *store, const char *value) {
    struct protocol_version theirs;
    struct protocol_version own = protocol_version_own();
    struct text text = {0};
    if (protocol_version_read(slice_from_string(value), &theirs) != FAILURE_NONE) {
        return;
    }
    text_append(&text, "a node was refused: it runs ");
    protocol_version_describe(&theirs, &text);
    text_append(&text, ", and this is ");
    protocol_version_describe(&own, &text);
    log_warning(store->settings.log, "%s; use one version of Muster on all nodes of a job",
        text_string(&text));
    text_clear(&text);
}

static void gone(void *context, const char *name, const char *value) {
    struct agent_hosted_store *store = context;
    struct node_identity identity;
    if (!store->is_serving) {
        return;
    }
    presence_watch_forget(&store->presences, name);
    if (text_starts_with(name, RENDEZVOUS_KEY_REFUSED)) {
        refused(store, value);
        return;
    }
    if (!node_identity_parse(name, &identity)) {
        char *shown = shown_name(name);
        log_warning(store->settings.log, "the store was told of a node that is none: %s", shown);
        free(shown);
        return;
    }
    if (store->settings.wished != NULL) {
        tell_node(store, &identity, NULL);
    }
    store->settings.gone(store->settings.context, &identity, has_finished(value));
}

static void silent(void *context, const char *name) {
    struct agent_hosted_store *store = context;
    struct node_identity identity;
    if (store->is_serving && store->settings.silent != NULL &&
        node_identity_parse(name, &identity)) {
        store->settings.silent(store->settings.context, &identity);
    }
}

static void reached(void *context, const char *address) {
    struct agent_hosted_store *store = context;
    if (store->reached.length == 0) {
        text_append(&store->reached, address);
    }
    store->is_reached_else |= !text_equals(text_string(&store->reached), address);
}

static void record_written(void *context) {
    const struct agent_hosted_store *store = context;
    if (store->is_serving) {
        store->settings.record_written(store->settings.context);
    }
}

static void look_for_stalled(void *context) {
    struct agent_hosted_store *store = context;
    const struct rendezvous_settings *settings = &store->settings.config->dynamic.settings;
    struct duration limit = {
        rendezvous_settings_beat(settings).nanoseconds * settings->keep_alive_max_attempt};
    struct text_list stalled = {0};
    presence_watch_look(&store->presences, event_loop_now(store->loop),
        (struct duration){2 * look_interval(store).nanoseconds}, limit, &stalled);
    for (size_t i = 0; i < stalled.count; i++) {
        char *shown = shown_name(stalled.items[i]);
        log_warning(store->settings.log,
            "nothing was heard of node %s for %.1f s though it is connected: it is taken to have "
            "stalled",
            shown, duration_seconds(limit));
        free(shown);
        presence_watch_forget(&store->presences, stalled.items[i]);
        store_thread_drop(store->thread, stalled.items[i]);
    }
    text_list_clear(&stalled);
    event_timer_set(store->look, instant_after(event_loop_now(store->loop), look_interval(store)));
}

/* Leaving last. */

static void tell_left(struct agent_hosted_store *store) {
    void (*left)(void *context) = store->left;
    store->left = NULL;
    event_timer_stop(store->lingering);
    if (left != NULL) {
        left(store->left_context);
    }
}

static void lingered_long_enough(void *context) {
    struct agent_hosted_store *store = context;
    log_warning(store->settings.log,
        "%zu connections to the job's store are still open; this agent does not wait for them any "
        "longer",
        store->connection_count);
    tell_left(store);
}

static void connections_changed(void *context, size_t count) {
    struct agent_hosted_store *store = context;
    store->connection_count = count;
    if (count <= store->own_connections) {
        tell_left(store);
    }
}

void agent_hosted_store_linger(struct agent_hosted_store *store, size_t own,
    struct duration patience, void (*done)(void *context), void *context) {
    store->own_connections = own;
    store->left = done;
    store->left_context = context;
    if (store->connection_count <= own) {
        tell_left(store);
    } else {
        event_timer_set(store->lingering, instant_after(event_loop_now(store->loop), patience));
    }
}

/* Serving and standing by. */

static void begin_to_serve(struct agent_hosted_store *store) {
    store->is_serving = true;
    look_for_stalled(store);
}

static void change_done(void *context) {
    struct agent_hosted_store *store = context;
    if (--store->changes > 0) {
        return;
    }
    if (store->is_to_serve) {
        begin_to_serve(store);
    }
    if (store->changed != NULL) {
        store->changed(store->changed_context);
    }
}

/* What is told of the store until the change is done, is of what was served before. */
static void begin_change(struct agent_hosted_store *store, bool is_to_serve,
    void (*done)(void *context), void *context) {
    store->changes++;
    store->is_serving = false;
    store->is_to_serve = is_to_serve;
    store->changed = done;
    store->changed_context = context;
    event_timer_stop(store->look);
    presence_watch_clear(&store->presences);
}

/* The job is that of the node that hosts its store: its settings and its program are those of the
 * job, whoever is first to connect. */
static void add_own_seeds(const struct agent_hosted_store *store, struct store_seeds *seeds) {
    const struct launch_config *config = store->settings.config;
    struct text key = {0};
    struct text value = {0};
    rendezvous_key_write_settings(store->settings.run_id, &key);
    text_append_format(&value, "%d:%d", config->minimum_nodes, config->maximum_nodes);
    store_seeds_add(seeds, text_string(&key), slice_from_string(text_string(&value)));
    text_clear(&key);
    text_clear(&value);
    rendezvous_key_write_program(store->settings.run_id, &key);
    rendezvous_spare_write_program(config, &value);
    store_seeds_add(seeds, text_string(&key), slice_from_string(text_string(&value)));
    text_clear(&key);
    text_clear(&value);
}

void agent_hosted_store_serve(struct agent_hosted_store *store, struct store_seeds *seeds_taken,
    void (*done)(void *context), void *context) {
    add_own_seeds(store, seeds_taken);
    begin_change(store, true, done, context);
    store_thread_serve(store->thread, seeds_taken, change_done, store);
}

void agent_hosted_store_stand_by(struct agent_hosted_store *store, const char *answer,
    void (*done)(void *context), void *context) {
    begin_change(store, false, done, context);
    store_thread_stand_by(store->thread, answer, change_done, store);
}

/* Life. */

static enum failure_code open_port(struct agent_hosted_store *store,
    struct store_server_settings *server, const char *name, int port, struct failure *failure) {
    const struct agent_hosted_store_settings *settings = &store->settings;
    struct store_limits limits = agent_store_memory_limits(settings->config, settings->log);
    int fd;
    server->limits = &limits;
    enum failure_code code =
        agent_listener_open(settings->config, name, port, server, &fd, failure);
    if (code == FAILURE_NONE) {
        code = store_thread_start(store->loop, fd, server, &store->thread, failure);
    }
    if (code == FAILURE_NONE) {
        agent_listener_warn(
            settings->config, server, store_thread_port(store->thread), settings->log);
        agent_listener_warn_of_limit(settings->config,
            rendezvous_backend_connections_needed(settings->config->dynamic.settings.delegates),
            settings->log);
    }
    return code;
}

static enum failure_code start(
    struct agent_hosted_store *store, const char *name, int port, struct failure *failure) {
    const struct agent_hosted_store_settings *settings = &store->settings;
    struct text prefix = {0};
    struct text record = {0};
    struct text host = {0};
    struct text refusal = {0};
    struct text offer = {0};
    torchrun_refusal_write_of_succession(&refusal);
    rendezvous_key_write_presences(settings->run_id, &prefix);
    rendezvous_key_write_record(settings->run_id, &record);
    rendezvous_key_write_host(settings->run_id, &host);
    rendezvous_key_write_delegation(settings->run_id, &offer);
    struct store_server_settings server = {
        .log = settings->log,
        .own_prefix = text_string(&record),
        .presence_prefix = text_string(&prefix),
        .watched_key = text_string(&record),
        .standby_key = settings->stands_by ? text_string(&host) : NULL,
        .stranger_answer = settings->stands_by ? text_string(&refusal) : NULL,
        .offered_key = settings->wished != NULL ? text_string(&offer) : NULL,
        .operations = settings->operations,
        .key = settings->key,
        .silence_timeout = settings->config->dynamic.settings.silence_timeout,
        .observer = {heard, gone, silent, reached, record_written, connections_changed, store},
    };
    enum failure_code code = open_port(store, &server, name, port, failure);
    text_clear(&prefix);
    text_clear(&record);
    text_clear(&host);
    text_clear(&refusal);
    text_clear(&offer);
    return code;
}

enum failure_code agent_hosted_store_open(struct event_loop *loop,
    const struct agent_hosted_store_settings *settings, const char *name, int port,
    struct agent_hosted_store **out_store, struct failure *failure) {
    struct agent_hosted_store initial = {.loop = loop, .settings = *settings};
    struct agent_hosted_store *store = memory_duplicate(&initial, sizeof initial);
    store->look = event_timer_new(loop, look_for_stalled, store);
    store->lingering = event_timer_new(loop, lingered_long_enough, store);
    enum failure_code code = start(store, name, port, failure);
    if (code != FAILURE_NONE) {
        agent_hosted_store_free(store);
        return code;
    }
    if (!settings->stands_by) {
        struct store_seeds seeds = {0};
        add_own_seeds(store, &seeds);
        store_thread_serve(store->thread, &seeds, NULL, NULL);
        begin_to_serve(store);
    }
    *out_store = store;
    return FAILURE_NONE;
}

void agent_hosted_store_free(struct agent_hosted_store *store) {
    if (store == NULL) {
        return;
    }
    store_thread_stop(store->thread);
    event_timer_free(store->look);
    event_timer_free(store->lingering);
    presence_watch_clear(&store->presences);
    text_clear(&store->reached);
    free(store);
}

const char *agent_hosted_store_reached(const struct agent_hosted_store *store) {
    return store->is_reached_else ? "" : text_string(&store->reached);
}

int agent_hosted_store_port(const struct agent_hosted_store *store) {
    return store_thread_port(store->thread);
}

bool agent_hosted_store_is_serving(const struct agent_hosted_store *store) {
    return store->is_serving;
}
