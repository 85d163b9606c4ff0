/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_store_host.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/presence_watch.h"
#include "core/rendezvous_key.h"
#include "host/endpoint_owner.h"
#include "host/rendezvous_backend.h"
#include "host/store_thread.h"
#include "host/tcp_listener.h"

struct agent_store_host {
    struct event_loop *loop;
    struct agent_store_host_settings settings;
    struct store_thread *store;
    struct presence_watch presences;
    struct event_timer *look; /* for stalled agents */
    struct event_timer *lingering;
    size_t connection_count;
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

static void gone(void *context, const char *name, const char *value) {
    struct agent_store_host *host = context;
    struct node_identity identity;
    presence_watch_forget(&host->presences, name);
    if (!node_identity_parse(name, &identity)) {
        log_warning(host->settings.log, "the store was told of a node that is none: %s", name);
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
        log_warning(host->settings.log,
            "nothing was heard of node %s for %.1f s though it is connected: it is taken to have "
            "stalled",
            stalled.items[i],
            duration_seconds((struct duration){interval * settings->keep_alive_max_attempt}));
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
    if (count == 0) {
        tell_left(host);
    }
}

void agent_store_host_linger(struct agent_store_host *host, struct duration patience,
    void (*done)(void *context), void *context) {
    host->left = done;
    host->left_context = context;
    if (host->connection_count == 0) {
        tell_left(host);
    } else {
        event_timer_set(host->lingering, instant_after(event_loop_now(host->loop), patience));
    }
}

/* Life. */

static enum failure_code start_store(
    struct agent_store_host *host, int listening_fd, struct failure *failure) {
    const struct agent_store_host_settings *settings = &host->settings;
    struct text prefix = {0};
    struct text record = {0};
    rendezvous_key_write_presences(settings->run_id, &prefix);
    rendezvous_key_write_record(settings->run_id, &record);
    struct store_server_settings server = {
        .log = settings->log,
        .presence_prefix = text_string(&prefix),
        .watched_key = text_string(&record),
        .operations = settings->operations,
        .silence_timeout = settings->config->dynamic.settings.silence_timeout,
        .observer = {heard, gone, record_written, connections_changed, host},
    };
    enum failure_code code =
        store_thread_start(host->loop, listening_fd, &server, &host->store, failure);
    text_clear(&prefix);
    text_clear(&record);
    return code;
}

static enum failure_code host_store(struct event_loop *loop,
    const struct agent_store_host_settings *settings, int listening_fd,
    struct agent_store_host **out_host, struct failure *failure) {
    struct agent_store_host *host = memory_allocate(sizeof *host);
    host->loop = loop;
    host->settings = *settings;
    host->look = event_timer_new(loop, look_for_stalled, host);
    host->lingering = event_timer_new(loop, lingered_long_enough, host);
    enum failure_code code = start_store(host, listening_fd, failure);
    if (code != FAILURE_NONE) {
        agent_store_host_free(host);
        return code;
    }
    look_for_stalled(host);
    log_info(settings->log, "hosting the store of job '%s' on port %d", settings->run_id,
        store_thread_port(host->store));
    *out_host = host;
    return FAILURE_NONE;
}

enum failure_code agent_store_host_new(struct event_loop *loop,
    const struct agent_store_host_settings *settings, struct agent_store_host **out_host,
    struct failure *failure) {
    const struct launch_dynamic *dynamic = &settings->config->dynamic;
    bool is_told = dynamic->is_host != LAUNCH_IS_HOST_UNSET;
    int fd;
    int port;
    *out_host = NULL;
    if (dynamic->store == LAUNCH_RECORD_FILE_STORE || dynamic->is_host == LAUNCH_IS_HOST_NO ||
        (!is_told && !endpoint_owner_is_this_machine(dynamic->host))) {
        return FAILURE_NONE;
    }
    enum failure_code code = tcp_listener_open(NULL, dynamic->port, &fd, &port, failure);
    if (code != FAILURE_NONE && !is_told) {
        log_info(settings->log, "not hosting the job's store: %s", failure->message);
        *failure = (struct failure){0};
        return FAILURE_NONE;
    }
    if (code != FAILURE_NONE) {
        return failure_wrap(failure, "this node is told to host the job's store (is_host=true); "
                                     "give all nodes another port with --rdzv-endpoint, or "
                                     "this one is_host=false if the store is there");
    }
    return host_store(loop, settings, fd, out_host, failure);
}

void agent_store_host_free(struct agent_store_host *host) {
    if (host == NULL) {
        return;
    }
    store_thread_stop(host->store);
    event_timer_free(host->look);
    event_timer_free(host->lingering);
    presence_watch_clear(&host->presences);
    free(host);
}
