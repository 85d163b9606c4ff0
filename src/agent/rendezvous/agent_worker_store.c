/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_worker_store.h"

#include <stdlib.h>

#include "agent/rendezvous/agent_listener.h"
#include "agent/rendezvous/agent_store_memory.h"
#include "base/memory.h"
#include "core/store/store_limits.h"
#include "host/store/store_thread.h"

struct agent_worker_store {
    struct event_loop *loop;
    struct agent_worker_store_settings settings;
    struct store_thread *server; /* NULL until it is opened */
};

struct agent_worker_store *agent_worker_store_new(
    struct event_loop *loop, const struct agent_worker_store_settings *settings) {
    struct agent_worker_store initial = {.loop = loop, .settings = *settings};
    return memory_duplicate(&initial, sizeof initial);
}

void agent_worker_store_free(struct agent_worker_store *store) {
    if (store != NULL) {
        store_thread_stop(store->server);
        free(store);
    }
}

static void tell_opened(void *context) {
    struct agent_worker_store *store = context;
    store->settings.observer.opened(
        store->settings.observer.context, store_thread_port(store->server));
}

static enum failure_code start_server(struct agent_worker_store *store, struct failure *failure) {
    struct store_limits limits =
        agent_store_memory_limits(store->settings.config, store->settings.log);
    struct store_server_settings server = {
        .limits = &limits,
        .log = store->settings.log,
        .operations = store->settings.operations,
        .admission = store->settings.admission,
        .kept_descriptors =
            (uint64_t)store->settings.config->maximum_nodes * STORE_DESCRIPTORS_OF_NODE,
        .is_for_this_user = !store->settings.config->is_store_for_every_user,
    };
    int fd;
    enum failure_code code =
        agent_listener_open(store->settings.config, store->settings.name, 0, &server, &fd, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    return store_thread_start(store->loop, fd, &server, &store->server, failure);
}

void agent_worker_store_open(struct agent_worker_store *store, bool is_fresh) {
    struct failure failure = {0};
    if (store->server != NULL && !is_fresh) {
        store_thread_renew(store->server, NULL, tell_opened, store);
        return;
    }
    store_thread_stop(store->server);
    store->server = NULL;
    if (start_server(store, &failure) == FAILURE_NONE) {
        tell_opened(store);
    } else {
        store->settings.observer.failed(store->settings.observer.context, failure.message);
    }
}
