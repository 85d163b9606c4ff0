/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests share of those parts of an agent that read and write keys beside the record: two nodes
 * without machines, connected to one store, all on one loop. */
#ifndef MUSTER_TESTS_AGENT_SHARED_STORE_FIXTURE_H
#define MUSTER_TESTS_AGENT_SHARED_STORE_FIXTURE_H

#include "host/network/tcp_listener.h"
#include "host/rendezvous/rendezvous_backend.h"
#include "host/store/store_thread.h"

#define SHARED_STORE_PATIENCE duration_from_seconds(20)

struct shared_store {
    struct event_loop *loop;
    struct store_thread *thread;
    struct rendezvous_backend *backends[2];
    const char *presence_prefix; /* as an agent's store has it; or NULL */
};

static inline void shared_store_told(void *context, const struct rendezvous_event *event) {
    if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        event_loop_stop(((struct shared_store *)context)->loop);
    }
}

static inline void shared_store_connect(
    struct shared_store *shared, int index, const char *run_id) {
    struct rendezvous_backend_settings settings = {
        .run_id = run_id,
        .minimum_nodes = 1,
        .maximum_nodes = 2,
        .answer_timeout = SHARED_STORE_PATIENCE,
        .observer = {.told = shared_store_told, .context = shared},
    };
    shared->backends[index] = rendezvous_backend_new(shared->loop, &settings);
    rendezvous_backend_connect(shared->backends[index],
        &(struct rendezvous_backend_trying){.host = "127.0.0.1",
            .port = store_thread_port(shared->thread),
            .deadline = instant_after(event_loop_now(shared->loop), SHARED_STORE_PATIENCE)});
    event_loop_run(shared->loop);
}

/* Returns when both nodes are connected. The loop does not run any more. */
static inline void shared_store_open(
    struct shared_store *shared, const char *first_run_id, const char *second_run_id) {
    struct store_server_settings settings = {.presence_prefix = shared->presence_prefix};
    int fd;
    int port;
    assert_int_equal(event_loop_new(&shared->loop, NULL), FAILURE_NONE);
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(
        store_thread_start(shared->loop, fd, &settings, &shared->thread, NULL), FAILURE_NONE);
    shared_store_connect(shared, 0, first_run_id);
    shared_store_connect(shared, 1, second_run_id);
}

/* Before what a test has made with them is freed. */
static inline void shared_store_disconnect(struct shared_store *shared) {
    rendezvous_backend_free(shared->backends[0]);
    rendezvous_backend_free(shared->backends[1]);
}

static inline void shared_store_close(struct shared_store *shared) {
    store_thread_stop(shared->thread);
    assert_true(event_loop_free(shared->loop));
}

#endif
