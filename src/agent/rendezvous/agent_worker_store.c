/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_worker_store.h"

#include <stdlib.h>

#include "base/memory.h"
#include "host/store/store_thread.h"
#include "host/network/tcp_listener.h"

struct agent_worker_store {
    struct event_loop *loop;
    const struct log *log;
    struct tally *operations;
    struct agent_worker_store_observer observer;
    struct store_thread *server; /* NULL until it is opened */
};

struct agent_worker_store *agent_worker_store_new(struct event_loop *loop, const struct log *log,
    struct tally *operations, const struct agent_worker_store_observer *observer) {
    struct agent_worker_store initial = {
        .loop = loop, .log = log, .operations = operations, .observer = *observer};
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
    store->observer.opened(store->observer.context, store_thread_port(store->server));
}

static enum failure_code start_server(struct agent_worker_store *store, struct failure *failure) {
    struct store_server_settings settings = {.log = store->log, .operations = store->operations};
    int fd;
    int port;
    enum failure_code code = tcp_listener_open(NULL, 0, &fd, &port, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    return store_thread_start(store->loop, fd, &settings, &store->server, failure);
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
        store->observer.failed(store->observer.context, failure.message);
    }
}
