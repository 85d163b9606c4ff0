/* SPDX-License-Identifier: BSD-3-Clause */
/* Two backends of one job at one store, and what they were told. */
#ifndef MUSTER_TESTS_HOST_RENDEZVOUS_BACKEND_FIXTURE_H
#define MUSTER_TESTS_HOST_RENDEZVOUS_BACKEND_FIXTURE_H

#include <unistd.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "host/network/tcp_listener.h"
#include "host/rendezvous/rendezvous_backend.h"
#include "host/store/store_thread.h"

struct fixture;

/* Two nodes of one job, and a bare client for requests that no node would make. They share one
 * store and one loop. */
struct node {
    struct fixture *fixture;
    struct rendezvous_backend *backend;
    struct rendezvous_state state; /* the state that was told last */
    bool has_state;
    bool has_presence;
    bool has_won;
    int changes;
    int64_t finished_count;
    int rolls_answered;
    bool goes_when_it_has_written;
    int answers[2]; /* to requests of the test's own: good ones, and failures */
    enum failure_code last_answer;
    char *trouble;
    bool is_silent;
    bool is_inside; /* a call of the backend is under way */
    bool was_told_inside;
};

struct fixture {
    struct event_loop *loop;
    struct store_thread *store;
    struct node nodes[2];
    struct store_client *bare;
    struct text bare_answer;
    struct text gone;
    int awaited; /* number of reports after which the loop stops */
};

static inline void report(struct fixture *fixture) {
    if (--fixture->awaited == 0) {
        event_loop_stop(fixture->loop);
    }
}

static inline void await(struct fixture *fixture, int reports) {
    fixture->awaited = reports;
    event_loop_run(fixture->loop);
}

static inline void connected(void *context, bool has_presence) {
    struct node *node = context;
    node->has_presence = has_presence;
    report(node->fixture);
}

static inline void keep_trouble(struct node *node, const char *reason) {
    node->was_told_inside = node->is_inside;
    free(node->trouble);
    node->trouble = memory_duplicate_string(reason);
    report(node->fixture);
}

static inline void lost(void *context, const char *reason, bool is_silent) {
    ((struct node *)context)->is_silent = is_silent;
    keep_trouble(context, reason);
}

static inline void broken(void *context, const char *reason) {
    keep_trouble(context, reason);
}

static inline void record(void *context, const struct rendezvous_state *state) {
    struct node *node = context;
    node->has_state = state != NULL;
    if (state != NULL) {
        rendezvous_state_copy(state, &node->state);
    }
    report(node->fixture);
}

static inline void written(void *context, bool has_won, const struct rendezvous_state *state) {
    struct node *node = context;
    node->has_won = has_won;
    if (node->goes_when_it_has_written) {
        rendezvous_backend_disconnect(node->backend);
    }
    if (!has_won) {
        record(context, state);
    } else {
        report(node->fixture);
    }
}

static inline void changed(void *context) {
    struct node *node = context;
    node->changes++;
    report(node->fixture);
}

static inline void finished_count(void *context, int64_t count) {
    struct node *node = context;
    node->finished_count = count;
    report(node->fixture);
}

static inline void roll_answered(void *context) {
    struct node *node = context;
    node->rolls_answered++;
    report(node->fixture);
}

/* What the backend tells, one kind of news after the other. */
static inline void told(void *context, const struct rendezvous_event *event) {
    if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        connected(context, event->connected.has_presence);
    } else if (event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST) {
        lost(context, event->lost.reason, event->lost.is_silent);
    } else if (event->kind == RENDEZVOUS_EVENT_RECORD) {
        record(context, event->state);
    } else if (event->kind == RENDEZVOUS_EVENT_WRITTEN) {
        written(context, event->written.has_won, event->written.state);
    } else if (event->kind == RENDEZVOUS_EVENT_CHANGED) {
        changed(context);
    } else if (event->kind == RENDEZVOUS_EVENT_FINISHED_COUNT) {
        finished_count(context, event->finished_count);
    } else if (event->kind == RENDEZVOUS_EVENT_ROLL_ANSWERED) {
        roll_answered(context);
    } else {
        assert_int_equal(event->kind, RENDEZVOUS_EVENT_BROKEN);
        broken(context, event->reason);
    }
}

static inline void gone(void *context, const char *name, const char *value) {
    struct fixture *fixture = context;
    text_append_format(&fixture->gone, "%s %s;", name, value);
    report(fixture);
}

static inline struct rendezvous_backend *make_backend_of(
    struct node *node, int maximum_nodes, bool delegates) {
    struct rendezvous_backend_settings settings = {
        .delegates = delegates,
        .run_id = "a job/with a name",
        .minimum_nodes = 1,
        .maximum_nodes = maximum_nodes,
        .silence_timeout = duration_from_seconds(3),
        .answer_timeout = duration_from_seconds(20),
        .observer = {.told = told, .context = node},
    };
    return rendezvous_backend_new(node->fixture->loop, &settings);
}

static inline struct rendezvous_backend *make_backend(struct node *node, int maximum_nodes) {
    return make_backend_of(node, maximum_nodes, false);
}

static inline void begin_to_connect(struct node *node, int port) {
    rendezvous_backend_connect(node->backend,
        &(struct rendezvous_backend_trying){.host = "127.0.0.1",
            .port = port,
            .deadline =
                instant_after(event_loop_now(node->fixture->loop), duration_from_seconds(20))});
}

static inline void connect_node(struct node *node) {
    begin_to_connect(node, store_thread_port(node->fixture->store));
    await(node->fixture, 1);
}

static inline void start_store(struct fixture *fixture, bool has_presence) {
    struct text prefix = {0};
    int fd;
    int port;
    rendezvous_key_write_presences("a job/with a name", &prefix);
    struct store_server_settings settings = {
        .presence_prefix = has_presence ? text_string(&prefix) : NULL,
        .observer = {.gone = gone, .context = fixture},
    };
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(
        store_thread_start(fixture->loop, fd, &settings, &fixture->store, NULL), FAILURE_NONE);
    text_clear(&prefix);
}

static inline void set_up(struct fixture *fixture, bool has_presence) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    start_store(fixture, has_presence);
    for (int i = 0; i < 2; i++) {
        struct node *node = &fixture->nodes[i];
        node->fixture = fixture;
        node->backend = make_backend(node, 4);
        connect_node(node);
        assert_null(node->trouble);
    }
    struct store_client_settings settings = {
        .host = "127.0.0.1",
        .port = store_thread_port(fixture->store),
        .connect_timeout = duration_from_seconds(20),
    };
    fixture->bare = store_client_new(fixture->loop, &settings);
}

static inline void tear_down(struct fixture *fixture) {
    for (int i = 0; i < 2; i++) {
        rendezvous_backend_free(fixture->nodes[i].backend);
        rendezvous_state_clear(&fixture->nodes[i].state);
        free(fixture->nodes[i].trouble);
    }
    store_client_free(fixture->bare);
    store_thread_stop(fixture->store);
    text_clear(&fixture->gone);
    text_clear(&fixture->bare_answer);
    assert_true(event_loop_free(fixture->loop));
}

static inline void bare_answered(void *context, const struct store_client_result *result) {
    struct fixture *fixture = context;
    assert_int_equal(result->code, FAILURE_NONE);
    text_clear(&fixture->bare_answer);
    if (result->reply->kind == STORE_REPLY_BLOB) {
        text_append_bytes(&fixture->bare_answer, (const char *)result->reply->blob.data,
            result->reply->blob.length);
    }
    report(fixture);
}

static inline void ask_bare(struct fixture *fixture, struct store_request request) {
    struct store_client_call call = {
        .request = request,
        .is_raw = true,
        .timeout = duration_from_seconds(20),
        .done = bare_answered,
        .context = fixture,
    };
    store_client_send(fixture->bare, &call);
    await(fixture, 1);
}

static inline void fetch(struct node *node) {
    rendezvous_backend_fetch(node->backend);
    await(node->fixture, 1);
}

/* Writes a record of the given round, based on the record seen last. Awaits that many reports. */
static inline void write_round(struct node *node, int64_t round, bool is_quiet, int reports) {
    struct rendezvous_state state = {.round = round};
    rendezvous_backend_write(node->backend, &state, is_quiet);
    await(node->fixture, reports);
}

#endif
