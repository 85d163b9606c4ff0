/* SPDX-License-Identifier: BSD-3-Clause */
/* A store client on the test's own loop, with a real server or with a test that acts as the
 * server. */
#ifndef MUSTER_TESTS_HOST_STORE_CLIENT_FIXTURE_H
#define MUSTER_TESTS_HOST_STORE_CLIENT_FIXTURE_H

#include <stdio.h>

#include "host/network/tcp_listener.h"
#include "host/raw_client.h"
#include "host/store/store_client.h"
#include "host/store/store_server.h"

#define SOON duration_from_milliseconds(20)
#define LONG duration_from_milliseconds(60000)

/* The answer to a call. */
struct answer {
    int calls;
    enum failure_code code;
    bool is_over;
    struct store_reply reply;
    char text[256]; /* the reply's blob, or the message */
    struct event_loop *loop;
};

struct fixture {
    struct event_loop *loop;
    struct store_server *server;
    struct store_client *client;
    const char *host;
    int listening_fd; /* used without a server */
    int port;
    int connected; /* calls of `connected` */
    int lost;
    struct failure failure; /* of `connected` or `lost` */
    bool frees_client;      /* in the `connected` callback */
};

static inline void connected(void *context, const struct failure *failure) {
    struct fixture *fixture = context;
    fixture->connected++;
    if (failure != NULL) {
        fixture->failure = *failure;
    }
    if (fixture->frees_client) {
        store_client_free(fixture->client);
        fixture->client = NULL;
    }
}

static inline void lost(void *context, const struct failure *failure) {
    struct fixture *fixture = context;
    fixture->lost++;
    fixture->failure = *failure;
}

static inline void open_port_at(struct fixture *fixture, const char *host) {
    *fixture = (struct fixture){.host = host};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        tcp_listener_open(host, 0, &fixture->listening_fd, &fixture->port, NULL), FAILURE_NONE);
}

static inline void open_port(struct fixture *fixture) {
    open_port_at(fixture, "127.0.0.1");
}

static inline void serve(struct fixture *fixture) {
    assert_int_equal(store_server_new(fixture->loop, fixture->listening_fd,
                         &(struct store_server_settings){0}, &fixture->server, NULL),
        FAILURE_NONE);
}

static inline void start_client_with(
    struct fixture *fixture, struct duration connect_timeout, struct duration refusal_patience) {
    struct store_client_settings settings = {.host = fixture->host,
        .port = fixture->port,
        .connect_timeout = connect_timeout,
        .refusal_patience = refusal_patience,
        .connected = connected,
        .lost = lost,
        .context = fixture};
    fixture->client = store_client_new(fixture->loop, &settings);
}

static inline void start_client(struct fixture *fixture, struct duration connect_timeout) {
    start_client_with(fixture, connect_timeout, (struct duration){0});
}

static inline void set_up(struct fixture *fixture) {
    open_port(fixture);
    serve(fixture);
    start_client(fixture, LONG);
}

static inline void tear_down(struct fixture *fixture) {
    store_client_free(fixture->client);
    if (fixture->server != NULL) {
        store_server_free(fixture->server);
    } else {
        close(fixture->listening_fd);
    }
    assert_true(event_loop_free(fixture->loop));
}

static inline void remember(void *context, const struct store_client_result *result) {
    struct answer *answer = context;
    answer->calls++;
    answer->code = result->code;
    answer->is_over = result->is_over;
    if (result->code != FAILURE_NONE) {
        snprintf(answer->text, sizeof answer->text, "%s", result->message);
        return;
    }
    answer->reply = *result->reply;
    if (result->reply->kind == STORE_REPLY_BLOB) {
        struct slice blob = result->reply->blob;
        assert_true(blob.length < sizeof answer->text);
        memcpy(answer->text, blob.data, blob.length);
        answer->text[blob.length] = '\0';
    }
}

static inline void send_request(struct fixture *fixture, const struct store_request *request,
    struct duration timeout, struct answer *answer) {
    *answer = (struct answer){0};
    store_client_send(fixture->client,
        &(struct store_client_call){
            .request = *request, .timeout = timeout, .done = remember, .context = answer});
    assert_int_equal(answer->calls, 0);
}

static inline void turn_until(struct fixture *fixture, const int *counter) {
    while (*counter == 0) {
        event_loop_run_ready(fixture->loop);
    }
}

static inline void ask(struct fixture *fixture, const struct store_request *request,
    struct duration timeout, struct answer *answer) {
    send_request(fixture, request, timeout, answer);
    turn_until(fixture, &answer->calls);
    assert_int_equal(answer->calls, 1);
}

static const struct slice key = {(const uint8_t *)"k", 1};

/* The server's end of the client's connection, when the test acts as the server. */
static inline int accept_client(struct fixture *fixture) {
    client_await(fixture->loop, fixture->listening_fd);
    int fd = accept(fixture->listening_fd, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

/* Acts as a server that answers the handshake; `nonce_error` is added to the nonce. */
static inline int shake_hands(struct fixture *fixture, uint32_t nonce_error) {
    int fd = accept_client(fixture);
    uint8_t greeting[10];
    for (size_t got = 0; got < sizeof greeting;) {
        client_await(fixture->loop, fd);
        ssize_t now = recv(fd, greeting + got, sizeof greeting - got, 0);
        assert_true(now > 0);
        got += (size_t)now;
    }
    assert_memory_equal(greeting, "\x00\xce\xf7\x85\x3c\x0d", 6);
    uint32_t nonce;
    memcpy(&nonce, greeting + 6, sizeof nonce);
    assert_int_equal(nonce, STORE_PROOF_OFFERED);
    nonce += nonce_error;
    client_send(fd, &nonce, sizeof nonce);
    return fd;
}

#endif
