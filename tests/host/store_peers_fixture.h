/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of a store on the test's own loop: those of the tests have the other ends of socket
 * pairs. What the observer is told is kept as text. */
#ifndef MUSTER_TESTS_HOST_STORE_PEERS_FIXTURE_H
#define MUSTER_TESTS_HOST_STORE_PEERS_FIXTURE_H

#include "host/raw_client.h"
#include "host/remembered_log.h"
#include "host/store/store_peers.h"

struct fixture {
    struct event_loop *loop;
    struct store_peers *peers;
    struct remembered_log log;
    struct text news; /* the calls of the observer */
    size_t count;     /* of connections, as the observer was told last */
    bool tells_count; /* in the news, too */
};

static inline void remember_beat(void *context, const char *name, const char *value) {
    struct fixture *fixture = context;
    text_append_format(&fixture->news, "%s beats %s\n", name, value);
}

static inline void remember_gone(void *context, const char *name, const char *value) {
    struct fixture *fixture = context;
    text_append_format(&fixture->news, "%s is gone %s\n", name, value);
}

static inline void remember_silent(void *context, const char *name) {
    struct fixture *fixture = context;
    text_append_format(&fixture->news, "%s is silent\n", name);
}

static inline void remember_connections(void *context, size_t count) {
    struct fixture *fixture = context;
    fixture->count = count;
    if (fixture->tells_count) {
        text_append_format(&fixture->news, "%zu connections\n", count);
    }
}

static inline void set_up(struct fixture *fixture, const struct store_limits *limits) {
    *fixture = (struct fixture){0};
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    fixture->peers = store_peers_new(
        fixture->loop, &(struct store_server_settings){.limits = limits,
                           .log = &fixture->log.log,
                           .observer = {.connections = remember_connections, .context = fixture}});
}

/* Presence keys are below "/p/". */
static inline void set_up_presence(struct fixture *fixture, bool counts_connections) {
    *fixture = (struct fixture){.tells_count = counts_connections};
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    char prefix[] = "/p/";
    fixture->peers = store_peers_new(fixture->loop, &(struct store_server_settings){
                                                        .log = &fixture->log.log,
                                                        .presence_prefix = prefix,
                                                        .observer = {.beat = remember_beat,
                                                            .gone = remember_gone,
                                                            .silent = remember_silent,
                                                            .connections = remember_connections,
                                                            .context = fixture},
                                                    });
    prefix[1] = 'x'; /* it was copied */
}

static inline void tear_down(struct fixture *fixture) {
    store_peers_free(fixture->peers);
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->log.text);
    text_clear(&fixture->news);
}

/* Runs the loop until that many calls have come. */
static inline void await_news(struct fixture *fixture, size_t lines) {
    size_t seen = 0;
    for (int turn = 0; turn < TURNS && seen < lines; turn++) {
        event_loop_run_ready(fixture->loop);
        seen = 0;
        for (const char *at = text_string(&fixture->news); *at != '\0'; at++) {
            seen += *at == '\n';
        }
    }
}

static inline void expect_news(struct fixture *fixture, const char *expected) {
    assert_string_equal(text_string(&fixture->news), expected);
    text_clear(&fixture->news);
}

/* Adds a client that has done the handshake; returns its end. */
static inline int add_client(struct fixture *fixture) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    union tcp_address address = {.ipv4 = {.sin_family = AF_INET}};
    store_peers_add(fixture->peers, ends[0], &address);
    client_ask(ends[1], &(struct store_request){.operation = STORE_VALIDATE});
    return ends[1];
}

static inline void add_one(int client, const char *key) {
    client_ask(client, &(struct store_request){
                           .operation = STORE_ADD, .key = slice_from_string(key), .number = 1});
}

static inline void turn(struct fixture *fixture) {
    for (int i = 0; i < 100; i++) {
        event_loop_run_ready(fixture->loop);
    }
}

/* Asks for more than a mebibyte, and then counts. */
static inline void ask_for_much_and_count(int client, int times, const char *key) {
    for (int i = 0; i < times; i++) {
        client_ask(client,
            &(struct store_request){.operation = STORE_GET, .key = slice_from_string("/big")});
    }
    add_one(client, key);
}

static inline void set_big(
    struct fixture *fixture, int client, const uint8_t *value, size_t length) {
    struct bytes request = {0};
    assert_int_equal(store_request_encode(&(struct store_request){.operation = STORE_SET,
                                              .key = slice_from_string("/big"),
                                              .value = {value, length}},
                         &request),
        FAILURE_NONE);
    for (size_t sent = 0; sent < request.length; event_loop_run_ready(fixture->loop)) {
        ssize_t now = send(client, request.data + sent, request.length - sent, MSG_NOSIGNAL);
        sent += now > 0 ? (size_t)now : 0;
    }
    bytes_clear(&request);
    client_expect_ping(fixture->loop, client, 1);
}

#endif
