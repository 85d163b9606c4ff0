/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_store_host.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/rendezvous/agent_listener.h"
#include "agent/rendezvous/agent_store_memory.h"
#include "base/backoff.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "core/rendezvous/presence_watch.h"
#include "core/rendezvous/rendezvous_key.h"
#include "host/loop/random_seed.h"
#include "host/network/endpoint_owner.h"
#include "host/store/store_thread.h"
#include "wire/rendezvous/rendezvous_record_store.h"

struct agent_store_host {
    struct event_loop *loop;
    struct agent_store_host_settings settings;
    struct store_thread *store;   /* NULL: not hosted here, yet or ever */
    struct endpoint_owner *owner; /* NULL: no longer asked, or never */
    struct event_timer *asking;   /* again */
    struct backoff backoff;       /* as a connection is tried */
    bool is_own;                  /* the endpoint; the port may be another's */
    bool is_taken;                /* the port, and that was said */
    struct presence_watch presences;
    struct event_timer *look; /* for stalled agents */
    struct event_timer *lingering;
    size_t connection_count;
    size_t own_connections; /* of this node, which lingers */
    void (*left)(void *context);
    void *left_context;
};

static struct duration look_interval(const struct agent_store_host *host) {
    return host->settings.config->dynamic.settings.keep_alive_interval;
}

/* Who is there. */

static void heard(void *context, const char *name, const char *value) {
    struct agent_store_host *host = context;
    (void)value;
    presence_watch_hear(&host->presences, name, event_loop_now(host->loop));
}

/* Anybody may have chosen the name. The caller frees the result. */
static char *shown_name(const char *name) {
    char *shown = memory_duplicate_string(name);
    utf8_make_line_printable(shown);
    return shown;
}

static void gone(void *context, const char *name, const char *value) {
    struct agent_store_host *host = context;
    struct node_identity identity;
    presence_watch_forget(&host->presences, name);
    if (!node_identity_parse(name, &identity)) {
        char *shown = shown_name(name);
        log_warning(host->settings.log, "the store was told of a node that is none: %s", shown);
        free(shown);
        return;
    }
    host->settings.gone(
        host->settings.context, &identity, text_equals(value, RENDEZVOUS_PRESENCE_FINISHED));
}

static void record_written(void *context) {
    const struct agent_store_host *host = context;
    host->settings.record_written(host->settings.context);
}

static void look_for_stalled(void *context) {
    struct agent_store_host *host = context;
    const struct rendezvous_settings *settings = &host->settings.config->dynamic.settings;
    int64_t interval = settings->keep_alive_interval.nanoseconds;
    struct text_list stalled = {0};
    presence_watch_look(&host->presences, event_loop_now(host->loop),
        (struct duration){2 * interval},
        (struct duration){interval * settings->keep_alive_max_attempt}, &stalled);
    for (size_t i = 0; i < stalled.count; i++) {
        char *shown = shown_name(stalled.items[i]);
        log_warning(host->settings.log,
            "nothing was heard of node %s for %.1f s though it is connected: it is taken to have "
            "stalled",
            shown,
            duration_seconds((struct duration){interval * settings->keep_alive_max_attempt}));
        free(shown);
        presence_watch_forget(&host->presences, stalled.items[i]);
        store_thread_drop(host->store, stalled.items[i]);
    }
    text_list_clear(&stalled);
    event_timer_set(host->look, instant_after(event_loop_now(host->loop), look_interval(host)));
}

/* Leaving last. */

static void tell_left(struct agent_store_host *host) {
    void (*left)(void *context) = host->left;
    host->left = NULL;
    event_timer_stop(host->lingering);
    if (left != NULL) {
        left(host->left_context);
    }
}

static void lingered_long_enough(void *context) {
    struct agent_store_host *host = context;
    log_warning(host->settings.log,
        "%zu connections to the job's store are still open; this agent does not wait for them any "
        "longer",
        host->connection_count);
    tell_left(host);
}

static void connections_changed(void *context, size_t count) {
    struct agent_store_host *host = context;
    host->connection_count = count;
    if (count <= host->own_connections) {
        tell_left(host);
    }
}

void agent_store_host_linger(struct agent_store_host *host, size_t own, struct duration patience,
    void (*done)(void *context), void *context) {
    host->own_connections = own;
    host->left = done;
    host->left_context = context;
    if (host->connection_count <= own) {
        tell_left(host);
    } else {
        event_timer_set(host->lingering, instant_after(event_loop_now(host->loop), patience));
    }
}

/* Hosting. */

static enum failure_code start_store(
    struct agent_store_host *host, struct store_server_settings *server, struct failure *failure) {
    const struct launch_dynamic *dynamic = &host->settings.config->dynamic;
    int fd;
    enum failure_code code = agent_listener_open(
        host->settings.config, dynamic->host, dynamic->port, server, &fd, failure);
    return code == FAILURE_NONE ? store_thread_start(host->loop, fd, server, &host->store, failure)
                                : code;
}

static void say_hosting(const struct agent_store_host *host) {
    const struct agent_store_host_settings *settings = &host->settings;
    int port = store_thread_port(host->store);
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
    struct text prefix = {0};
    struct text record = {0};
    rendezvous_key_write_presences(settings->run_id, &prefix);
    rendezvous_key_write_record(settings->run_id, &record);
    struct store_limits limits = agent_store_memory_limits(settings->config, settings->log);
    struct store_server_settings server = {
        .limits = &limits,
        .log = settings->log,
        .own_prefix = text_string(&record),
        .presence_prefix = text_string(&prefix),
        .watched_key = text_string(&record),
        .operations = settings->operations,
        .key = settings->key,
        .silence_timeout = settings->config->dynamic.settings.silence_timeout,
        .observer = {heard, gone, record_written, connections_changed, host},
    };
    enum failure_code code = start_store(host, &server, failure);
    text_clear(&prefix);
    text_clear(&record);
    if (code == FAILURE_NONE) {
        look_for_stalled(host);
        say_hosting(host);
        agent_listener_warn(
            settings->config, &server, store_thread_port(host->store), settings->log);
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
        log_record(host->settings.log, is_anothers ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, LOG_ORIGIN,
            "not hosting the job's store: %s", failure.message);
        host->is_taken = true;
    }
    return false;
}

/* Asking whether to. */

static void ask_later(struct agent_store_host *host) {
    event_timer_set(
        host->asking, instant_after(event_loop_now(host->loop), backoff_next(&host->backoff)));
}

static void owner_answered(void *context, bool is_own) {
    struct agent_store_host *host = context;
    host->is_own = is_own;
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
        owner_answered(host, true);
    } else if (endpoint_owner_ask(host->owner, &failure) != FAILURE_NONE) {
        log_warning(
            host->settings.log, "cannot find out whose the endpoint is: %s", failure.message);
        ask_later(host);
    }
}

static enum failure_code begin_asking(struct agent_store_host *host, struct failure *failure) {
    const struct launch_config *config = host->settings.config;
    struct endpoint_owner_settings owner = {
        .host = config->dynamic.host, .answered = owner_answered, .context = host};
    enum failure_code code = FAILURE_NONE;
    host->is_own = endpoint_owner_is_plain(config->dynamic.host, config->local_address);
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
    endpoint_owner_free(host->owner);
    event_timer_free(host->asking);
    host->owner = NULL;
    host->asking = NULL;
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
    return FAILURE_NONE;
}

enum failure_code agent_store_host_new(struct event_loop *loop,
    const struct agent_store_host_settings *settings, struct agent_store_host **out_host,
    struct failure *failure) {
    struct agent_store_host *host = memory_allocate(sizeof *host);
    host->loop = loop;
    host->settings = *settings;
    host->look = event_timer_new(loop, look_for_stalled, host);
    host->lingering = event_timer_new(loop, lingered_long_enough, host);
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
    store_thread_stop(host->store);
    event_timer_free(host->look);
    event_timer_free(host->lingering);
    presence_watch_clear(&host->presences);
    free(host);
}

bool agent_store_host_is_hosting(const struct agent_store_host *host) {
    return host->store != NULL;
}

const char *agent_store_host_address(const struct agent_store_host *host) {
    return host->store != NULL ? "127.0.0.1" : host->settings.config->dynamic.host;
}

int agent_store_host_port(const struct agent_store_host *host) {
    return host->store != NULL ? store_thread_port(host->store)
                               : host->settings.config->dynamic.port;
}
