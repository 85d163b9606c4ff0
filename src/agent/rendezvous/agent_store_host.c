/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_store_host.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/duration.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "core/rendezvous/endpoint_match.h"
#include "core/rendezvous/presence_watch.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/rendezvous/rendezvous_transcript.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/clock.h"
#include "host/loop/descriptors.h"
#include "host/machine/machine.h"
#include "host/network/network_address.h"
#include "host/network/tcp_listener.h"
#include "host/rendezvous/rendezvous_backend.h"
#include "host/store/store_thread.h"
#include "host/telling/job_directory.h"
#include "wire/rendezvous/delegation_text.h"
#include "wire/rendezvous/job_notes.h"
#include "wire/rendezvous/rendezvous_record_store.h"

enum failure_code agent_listener_open(const struct launch_config *config, const char *name,
    int port, struct store_server_settings *settings, int *out_fd, struct failure *failure) {
    struct local_listener local;
    settings->unproven_maximum = (size_t)store_descriptors_unproven(
        (uint64_t)config->maximum_nodes, descriptor_limit_read());
    enum failure_code code = FAILURE_MISSING;
    if (config->is_local) {
        code = local_listener_open(name, port, &local, failure);
    }
    if (code == FAILURE_MISSING) {
        int bound_port;
        return tcp_listener_open(NULL, port, out_fd, &bound_port, failure);
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    *out_fd = local.fds[0];
    settings->is_local = true;
    settings->is_for_this_user = !config->is_store_for_every_user;
    settings->further_count = local.count - 1;
    for (size_t i = 1; i < local.count; i++) {
        settings->further_fds[i - 1] = local.fds[i];
    }
    return FAILURE_NONE;
}

void agent_listener_warn(const struct launch_config *config,
    const struct store_server_settings *settings, int port, const struct log *log) {
    if (!settings->is_local && settings->key == NULL && config->auth != LAUNCH_AUTH_NONE) {
        log_warning(log,
            "the job's store at port %d is open to whoever reaches this machine: they could join "
            "this job, or end it; give all nodes a job token (MUSTER_JOB_TOKEN or --token-file), "
            "or "
            "munge",
            port);
    }
}

void agent_listener_warn_of_limit(
    const struct launch_config *config, int connections_of_node, const struct log *log) {
    uint64_t connections = (uint64_t)connections_of_node;
    uint64_t kept = descriptor_limit_kept();
    uint64_t needed = store_descriptors_needed((uint64_t)config->maximum_nodes, connections, kept);
    uint64_t limit = descriptor_limit_read();
    if (limit < needed) {
        log_warning(log,
            "this agent may have %" PRIu64 " files open, but to host the job's store for %d nodes "
            "it needs %" PRIu64 ": when more than about %" PRIu64 " nodes come, others are turned "
            "away; raise the hard limit of open files (ulimit -Hn)",
            limit, config->maximum_nodes, needed,
            store_descriptors_nodes(limit, connections, kept));
    }
}

/* Store memory. */

struct store_limits agent_store_memory_limits(
    const struct launch_config *config, const struct log *log) {
    const struct store_memory asked = {
        .bytes = config->store_memory_bytes, .percent = config->store_memory_percent};
    uint64_t available = memory_limit_read("");
    struct store_limits limits = store_memory_limits(&asked, available);
    if (limits.memory_bytes > available) {
        log_warning(log,
            "--store-memory: a store may use %.1f MiB, but this agent may use only %.1f MiB",
            (double)limits.memory_bytes / 1048576, (double)available / 1048576);
    }
    return limits;
}

/* Hosted store. */

struct agent_hosted_store {
    struct event_loop *loop;
    struct agent_hosted_store_settings settings;
    bool is_local;  /* only this machine reaches it */
    bool is_warned; /* that everybody does */
    struct store_thread *thread;
    bool is_serving; /* clients; what is told before is of a store that is served no longer */
    bool is_to_serve;
    int changes; /* to serving and standing by that are under way */
    void (*changed)(void *context);
    void *changed_context;
    struct presence_watch presences;
    struct event_timer *look;    /* for stalled agents */
    struct event_timer *missing; /* for those that stand in the record, and do not come */
    bool is_missing;             /* looked for */
    struct blocking_pool *pool;  /* NULL until there is somebody to look for */
    struct blocking_call *call;  /* looks for those who have died; NULL: nobody does */
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

static bool offers_delegation(const struct agent_hosted_store *store) {
    return store->settings.config->dynamic.settings.delegates;
}

/* Who is there. */

/* Says what a node wishes that delegates, or that it does no more. */
static void tell_wish(struct agent_hosted_store *store, const char *name, const char *value) {
    struct rendezvous_wish wish = {0};
    struct node_identity identity;
    if (!offers_delegation(store) || delegation_wish_read(value, &wish) != FAILURE_NONE) {
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
    tell_wish(store, name, value);
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

/* Whether this node is connected to the store that is served. */
static bool agent_hosted_store_knows(
    const struct agent_hosted_store *store, const struct node_identity *identity) {
    struct text name = {0};
    node_identity_write(identity, &name);
    bool knows = presence_watch_knows(&store->presences, text_string(&name));
    text_clear(&name);
    return knows;
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
    if (offers_delegation(store)) {
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

/* Who does not come. */

/* How often it is looked who is still awaited, and how much longer than the silence timeout one may
 * take to come: a network that loses packets does not keep it so long. */
#define MISSING_LOOK_MILLISECONDS 500
#define MISSING_SLACK_SECONDS 1

struct missing {
    struct agent_hosted_store *store;
    struct node_identity first; /* that may not be gone … */
    size_t count;               /* … of so many */
};

static void miss(void *context, const struct presence_absence *absence) {
    struct missing *missing = context;
    const struct agent_hosted_store *store = missing->store;
    if (!absence->is_done) {
        missing->first = missing->count == 0 ? absence->identity : missing->first;
        missing->count++;
    }
    store->settings.missed(store->settings.context, &absence->identity, absence->is_done);
}

/* The caller frees the result. */
static char *describe_missing(const struct missing *missing) {
    struct text name = {0};
    node_identity_describe(&missing->first, &name);
    utf8_make_line_printable(name.data);
    if (missing->count > 1) {
        text_append_format(&name, " and %zu more", missing->count - 1);
    }
    return text_take(&name);
}

static void say_missing(
    const struct agent_hosted_store *store, const struct missing *missing, struct duration limit) {
    if (missing->count > 0) {
        char *nodes = describe_missing(missing);
        log_warning(store->settings.log,
            "in the record, but not connected to this job's store for %.1f s: node %s; taken for "
            "gone",
            duration_seconds(limit), nodes);
        free(nodes);
    }
}

/* Who has died on this machine is not awaited. The kernel says so: it takes away the lock on what
 * an agent has announced. Anything else that says so could be of another container. */

/* Of those who are awaited, so many are looked for at a time. */
#define SIGHTINGS_MAXIMUM 1024

/* The subject of a blocking call. */
struct death_look {
    struct text_list places;
    struct job_sighting *sightings;
    struct node_identity *nodes;
    size_t count;
};

static void carry_out_look(void *subject) {
    struct death_look *look = subject;
    job_directory_look(&look->places, look->sightings, look->count);
}

static void free_look(void *subject) {
    struct death_look *look = subject;
    text_list_clear(&look->places);
    free(look->sightings);
    free(look->nodes);
    free(look);
}

static struct death_look *new_look(const struct agent_hosted_store *store) {
    const struct presence_watch *watch = &store->presences;
    struct death_look *look = memory_allocate(sizeof *look);
    size_t room = watch->absent_count < SIGHTINGS_MAXIMUM ? watch->absent_count : SIGHTINGS_MAXIMUM;
    look->sightings = memory_allocate(room * sizeof *look->sightings);
    look->nodes = memory_allocate(room * sizeof *look->nodes);
    job_directory_places(store->settings.environment, &look->places);
    for (size_t i = 0; i < watch->absent_count && look->count < room; i++) {
        const struct node_identity *node = &watch->absent[i].identity;
        if (!watch->absent[i].is_known && node_process_is_known(&node->process)) {
            look->nodes[look->count] = *node;
            node_process_write(&node->process, look->sightings[look->count++].name);
        }
    }
    return look;
}

static void have_looked(void *context, void *subject) {
    struct agent_hosted_store *store = context;
    const struct death_look *look = subject;
    struct missing missing = {.store = store};
    store->call = NULL;
    for (size_t i = 0; i < look->count && store->is_to_serve; i++) {
        if (look->sightings[i].has_died &&
            presence_watch_give_up(&store->presences, &look->nodes[i])) {
            missing.first = missing.count == 0 ? look->nodes[i] : missing.first;
            missing.count++;
            store->settings.gone(store->settings.context, &look->nodes[i], false);
        }
    }
    if (missing.count > 0) {
        char *nodes = describe_missing(&missing);
        log_warning(store->settings.log,
            "in the record, but the process on this machine has ended: node %s; gone", nodes);
        free(nodes);
    }
}

static void look_for_dead(struct agent_hosted_store *store) {
    struct failure failure = {0};
    enum failure_code code = FAILURE_NONE;
    if (store->settings.environment == NULL || store->call != NULL) {
        return;
    }
    if (store->pool == NULL) {
        code = blocking_pool_new(store->loop, &store->pool, &failure);
    }
    if (code == FAILURE_NONE) {
        const struct blocking_task task = {carry_out_look, free_look, new_look(store)};
        const struct blocking_answer answer = {have_looked, store};
        code = blocking_pool_send(store->pool, &task, &answer, &store->call, &failure);
    }
    if (code != FAILURE_NONE) {
        store->call = NULL; /* they are missed in the end */
    }
}

static void look_for_missing(void *context) {
    struct agent_hosted_store *store = context;
    struct missing missing = {.store = store};
    struct duration step = duration_from_milliseconds(MISSING_LOOK_MILLISECONDS);
    struct duration limit = {store->settings.config->dynamic.settings.silence_timeout.nanoseconds +
                             duration_from_seconds(MISSING_SLACK_SECONDS).nanoseconds};
    presence_watch_miss(&store->presences, event_loop_now(store->loop),
        (struct duration){2 * step.nanoseconds}, limit, miss, &missing);
    say_missing(store, &missing, limit);
    store->is_missing = presence_watch_is_awaiting(&store->presences);
    if (store->is_missing) {
        look_for_dead(store);
        event_timer_set(store->missing, instant_after(event_loop_now(store->loop), step));
    }
}

void agent_hosted_store_see(
    struct agent_hosted_store *store, const struct rendezvous_state *record) {
    if (store->is_to_serve) {
        presence_watch_await(&store->presences, record, event_loop_now(store->loop));
        if (!store->is_missing) {
            look_for_missing(store);
        }
    }
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
    event_timer_stop(store->missing);
    store->is_missing = false;
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

/* A store that stands by lets nobody in, and is one of as many as there are nodes. */
static void warn_if_open(struct agent_hosted_store *store) {
    struct store_server_settings server = {.is_local = store->is_local, .key = store->settings.key};
    if (!store->is_warned) {
        store->is_warned = true;
        agent_listener_warn(
            store->settings.config, &server, store_thread_port(store->thread), store->settings.log);
    }
}

void agent_hosted_store_serve(struct agent_hosted_store *store, struct store_seeds *seeds_taken,
    void (*done)(void *context), void *context) {
    warn_if_open(store);
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

static enum failure_code hosted_store_open_port(struct agent_hosted_store *store,
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
        store->is_local = server->is_local;
        if (!settings->stands_by) {
            warn_if_open(store);
        }
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
        .offered_key = offers_delegation(store) ? text_string(&offer) : NULL,
        .operations = settings->operations,
        .key = settings->key,
        .silence_timeout = settings->config->dynamic.settings.silence_timeout,
        .observer = {heard, gone, silent, reached, record_written, connections_changed, store},
    };
    enum failure_code code = hosted_store_open_port(store, &server, name, port, failure);
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
    store->missing = event_timer_new(loop, look_for_missing, store);
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
        store->is_to_serve = true;
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
    blocking_pool_free(store->pool);
    event_timer_free(store->look);
    event_timer_free(store->missing);
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

/* Store host. */

/* A store on this machine has answered by then. */
#define TAKEN_SAID_MILLISECONDS 1500

struct agent_store_host {
    struct event_loop *loop;
    struct agent_store_host_settings settings;
    struct agent_hosted_store *store; /* NULL: not hosted here, yet or ever */
    struct endpoint_owner *owner;     /* NULL: no longer asked, or never */
    bool is_asked_for_others;         /* the owner, which is kept until it has answered */
    struct event_timer *asking;       /* again; NULL: no longer */
    struct backoff backoff;           /* as a connection is tried */
    bool is_own;                      /* the endpoint; the port may be another's */
    bool is_plain;                    /* that it is, without the resolver */
    bool is_taken;                    /* the port, and that was said */
    bool is_foreign_said;             /* that no store is there */
    bool is_anothers;                 /* the endpoint, as far as is known */
    bool is_reached_by_name;          /* this machine, by that of the endpoint */
    struct instant begun;
};

/* Hosting. */

static void say_hosting(const struct agent_store_host *host) {
    const struct agent_store_host_settings *settings = &host->settings;
    int port = agent_hosted_store_port(host->store);
    if (settings->config->dynamic.port == 0 && settings->config->maximum_nodes > 1) {
        log_warning(settings->log,
            "hosting the store of job '%s' on port %d, which was free; other nodes need to be "
            "told, as --rdzv-endpoint HOST:%d",
            settings->run_id, port, port);
    } else {
        log_info(settings->log, "hosting the store of job '%s' on port %d", settings->run_id, port);
    }
}

static enum failure_code open_port(struct agent_store_host *host, struct failure *failure) {
    const struct agent_store_host_settings *settings = &host->settings;
    const struct launch_dynamic *dynamic = &settings->config->dynamic;
    struct agent_hosted_store_settings store = {
        .config = settings->config,
        .run_id = settings->run_id,
        .log = settings->log,
        .key = settings->key,
        .operations = settings->operations,
        .gone = settings->gone,
        .missed = settings->missed,
        .record_written = settings->record_written,
        .wished = settings->wished,
        .context = settings->context,
    };
    enum failure_code code = agent_hosted_store_open(
        host->loop, &store, dynamic->host, dynamic->port, &host->store, failure);
    if (code == FAILURE_NONE) {
        say_hosting(host);
    }
    return code;
}

/* Whoever has the port may be another node of this job, to be met there. For every other reason
 * nobody else may ever serve the store. */
static bool try_port(struct agent_store_host *host) {
    struct failure failure = {0};
    if (open_port(host, &failure) == FAILURE_NONE) {
        return true;
    }
    if (!host->is_taken) {
        bool is_anothers = failure.system_error == EADDRINUSE;
        log_record(host->settings.log, is_anothers ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
            LOG_ORIGIN, "not hosting the job's store: %s", failure.message);
        host->is_taken = true;
    }
    return false;
}

/* Asking whether to. */

static void ask_later(struct agent_store_host *host) {
    event_timer_set(
        host->asking, instant_after(event_loop_now(host->loop), backoff_next(&host->backoff)));
}

/* Each of these machines takes the name for its own, and hosts a store there. */
static void warn_of_others(const struct agent_store_host *host, const char *others) {
    const struct launch_config *config = host->settings.config;
    log_warning(host->settings.log,
        "--rdzv-endpoint %s:%d is the name of several machines: it has this one's address, and %s; "
        "each of them hosts a store of its own, and none finds the others%s; give all nodes the "
        "name or the address of one machine (where this is a headless service of Kubernetes: of "
        "its first pod, as POD-0.%s)",
        config->dynamic.host, config->dynamic.port, others,
        config->minimum_nodes == 1 ? ", so this may be one job of one node on each machine" : "",
        config->dynamic.host);
}

static void free_owner(struct agent_store_host *host) {
    endpoint_owner_free(host->owner);
    host->owner = NULL;
}

static void others_answered(void *context, const char *others) {
    struct agent_store_host *host = context;
    host->is_asked_for_others = false;
    if (others[0] != '\0') {
        host->is_reached_by_name = false;
        warn_of_others(host, others);
    }
    if (host->asking == NULL) {
        free_owner(host);
    }
}

/* Nobody waits for the answer. */
static void ask_for_others(struct agent_store_host *host) {
    struct failure failure = {0};
    host->is_asked_for_others =
        endpoint_owner_ask_for_others(host->owner, &failure) == FAILURE_NONE;
    if (!host->is_asked_for_others) {
        log_warning(host->settings.log, "cannot find out whether the endpoint is one machine: %s",
            failure.message);
    }
}

void agent_store_host_write_hint(const struct agent_store_host *host, struct text *out) {
    const struct launch_dynamic *dynamic = &host->settings.config->dynamic;
    if (host->store != NULL) {
        return;
    }
    if (host->is_own && host->is_taken) {
        text_append_format(out,
            "; port %d is taken on this machine by a program that is no store: end it, or give all "
            "nodes another port with --rdzv-endpoint",
            dynamic->port);
    } else if (host->is_anothers) {
        text_append_format(out,
            "; %s is no address of any node that has come: where a node is reached there all the "
            "same, give it --rdzv-conf is_host=true, or --local-addr %s",
            dynamic->host, dynamic->host);
    }
}

static void warn_of_foreign_program(struct agent_store_host *host) {
    struct text line = {0};
    struct duration since = instant_until(host->begun, event_loop_now(host->loop));
    if (host->is_foreign_said || !host->is_taken ||
        since.nanoseconds < duration_from_milliseconds(TAKEN_SAID_MILLISECONDS).nanoseconds) {
        return;
    }
    host->settings.write_obstacle(host->settings.context, &line);
    if (line.length > 0) {
        host->is_foreign_said = true;
        agent_store_host_write_hint(host, &line);
        log_warning(host->settings.log, "%s", text_string(&line));
    }
    text_clear(&line);
}

static void owner_answered(void *context, bool is_own) {
    struct agent_store_host *host = context;
    if (is_own && !host->is_own) {
        ask_for_others(host);
    }
    host->is_own = is_own;
    host->is_anothers = !is_own;
    host->is_reached_by_name |= is_own && !host->is_plain;
    if (is_own && try_port(host)) {
        agent_store_host_stop_asking(host);
        host->settings.now_hosting(host->settings.context);
    } else {
        ask_later(host);
    }
}

static void ask(void *context) {
    struct agent_store_host *host = context;
    struct failure failure = {0};
    if (host->is_own) {
        warn_of_foreign_program(host);
        owner_answered(host, true);
    } else if (endpoint_owner_ask(host->owner, &failure) != FAILURE_NONE) {
        log_warning(
            host->settings.log, "cannot find out whose the endpoint is: %s", failure.message);
        ask_later(host);
    }
}

static enum failure_code begin_asking(struct agent_store_host *host, struct failure *failure) {
    const struct launch_config *config = host->settings.config;
    struct endpoint_owner_settings owner = {.host = config->dynamic.host,
        .answered = owner_answered,
        .shared = others_answered,
        .context = host};
    enum failure_code code = FAILURE_NONE;
    host->is_own = endpoint_owner_is_plain(config->dynamic.host, config->local_address);
    host->is_plain = host->is_own;
    host->is_reached_by_name =
        host->is_own && local_address_is_beyond_loopback(config->dynamic.host);
    if (host->is_own && try_port(host)) {
        return FAILURE_NONE;
    }
    backoff_init(&host->backoff, random_seed());
    host->asking = event_timer_new(host->loop, ask, host);
    code = endpoint_owner_new(host->loop, &owner, &host->owner, failure);
    if (code == FAILURE_NONE && host->is_own) {
        ask_later(host);
    } else if (code == FAILURE_NONE) {
        ask(host);
    }
    return code;
}

void agent_store_host_stop_asking(struct agent_store_host *host) {
    event_timer_free(host->asking);
    host->asking = NULL;
    if (!host->is_asked_for_others) {
        free_owner(host);
    }
}

/* A node that was told to host the store does not know whether the name is its own. Until it does,
 * it goes by its own name. */
static void told_host_answered(void *context, bool is_own) {
    struct agent_store_host *host = context;
    host->is_reached_by_name = is_own;
    if (is_own) {
        ask_for_others(host);
    }
    if (!host->is_asked_for_others) {
        free_owner(host);
    }
}

static void look_at_name(struct agent_store_host *host) {
    struct failure failure = {0};
    const struct launch_config *config = host->settings.config;
    struct endpoint_owner_settings owner = {.host = config->dynamic.host,
        .answered = told_host_answered,
        .shared = others_answered,
        .context = host};
    if (endpoint_owner_is_plain(config->dynamic.host, config->local_address)) {
        host->is_reached_by_name = local_address_is_beyond_loopback(config->dynamic.host);
    } else if (endpoint_owner_new(host->loop, &owner, &host->owner, &failure) != FAILURE_NONE ||
               endpoint_owner_ask(host->owner, &failure) != FAILURE_NONE) {
        log_warning(
            host->settings.log, "cannot find out whose the endpoint is: %s", failure.message);
    }
}

const char *agent_store_host_reached_name(const struct agent_store_host *host) {
    const char *name = host->settings.config->dynamic.host;
    bool is_number =
        name != NULL && address_choice_is_number(name) && !local_address_is_beyond_loopback(name);
    return host->store != NULL && host->is_reached_by_name && !host->is_asked_for_others &&
                   !is_number
               ? name
               : NULL;
}

const char *agent_store_host_reached_address(const struct agent_store_host *host) {
    return host->store != NULL ? agent_hosted_store_reached(host->store) : "";
}

/* Life. */

static enum failure_code host_if_told(struct agent_store_host *host, struct failure *failure) {
    const struct launch_dynamic *dynamic = &host->settings.config->dynamic;
    if (dynamic->store == LAUNCH_RECORD_FILE_STORE || dynamic->is_host == LAUNCH_IS_HOST_NO) {
        return FAILURE_NONE;
    }
    if (dynamic->is_host == LAUNCH_IS_HOST_UNSET) {
        return begin_asking(host, failure);
    }
    enum failure_code code = open_port(host, failure);
    if (code != FAILURE_NONE) {
        return failure_wrap(failure, "this node is told to host the job's store (is_host=true); "
                                     "give all nodes another port with --rdzv-endpoint, or "
                                     "this one is_host=false if the store is there");
    }
    look_at_name(host);
    return FAILURE_NONE;
}

enum failure_code agent_store_host_new(struct event_loop *loop,
    const struct agent_store_host_settings *settings, struct agent_store_host **out_host,
    struct failure *failure) {
    struct agent_store_host *host = memory_allocate(sizeof *host);
    host->loop = loop;
    host->settings = *settings;
    host->begun = event_loop_now(loop);
    enum failure_code code = host_if_told(host, failure);
    if (code != FAILURE_NONE) {
        agent_store_host_free(host);
        return code;
    }
    *out_host = host;
    return FAILURE_NONE;
}

void agent_store_host_free(struct agent_store_host *host) {
    if (host == NULL) {
        return;
    }
    agent_store_host_stop_asking(host);
    free_owner(host);
    agent_hosted_store_free(host->store);
    free(host);
}

bool agent_store_host_is_hosting(const struct agent_store_host *host) {
    return host->store != NULL;
}

const char *agent_store_host_address(const struct agent_store_host *host) {
    return host->store != NULL ? "127.0.0.1" : host->settings.config->dynamic.host;
}

int agent_store_host_port(const struct agent_store_host *host) {
    return host->store != NULL ? agent_hosted_store_port(host->store)
                               : host->settings.config->dynamic.port;
}

void agent_store_host_see(struct agent_store_host *host, const struct rendezvous_state *record) {
    if (host != NULL && host->store != NULL) {
        agent_hosted_store_see(host->store, record);
    }
}

void agent_store_host_see_draft(
    struct agent_store_host *host, const struct rendezvous_state *draft) {
    if (host != NULL && host->store != NULL && host->store->presences.absent_count > 0) {
        agent_hosted_store_see(host->store, draft);
    }
}

void agent_store_host_tell(struct agent_store_host *host, const struct rendezvous_effect *effect) {
    if (host != NULL && host->store != NULL) {
        agent_hosted_store_tell(host->store, effect);
    }
}

void agent_store_host_linger(struct agent_store_host *host, size_t own, struct duration patience,
    void (*done)(void *context), void *context) {
    if (host->store != NULL) {
        agent_hosted_store_linger(host->store, own, patience, done, context);
    } else {
        done(context);
    }
}
