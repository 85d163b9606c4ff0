/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be said without etcd. tests/interop asks a real one. */
#include "unit.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/register/etcd_register.h"
#include "host/register/http_client.h"

struct fixture {
    struct event_loop *loop;
    struct job_register *job_register;
    enum register_event_kind kind;
    bool is_final;
    struct failure failure;
};

static void told(void *context, const struct register_event *event) {
    struct fixture *fixture = context;
    fixture->kind = event->kind;
    fixture->is_final = event->is_final;
    if (event->failure != NULL) {
        fixture->failure = *event->failure;
    }
    event_loop_stop(fixture->loop);
}

static enum failure_code open_at(struct fixture *fixture, const char *endpoint) {
    const struct register_settings settings = {
        .endpoint = endpoint,
        .run_id = "job",
        .node_name = "node",
        .observer = {told, fixture},
    };
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    return register_open(
        fixture->loop, &etcd_register_engine, &settings, &fixture->job_register, &fixture->failure);
}

static void tear_down(struct fixture *fixture) {
    register_free(fixture->job_register);
    assert_true(event_loop_free(fixture->loop));
}

static bool has_curl(void) {
    struct curl_library library;
    return curl_library_load(CURL_LIBRARY_NAME, &library, NULL) == FAILURE_NONE;
}

TEST(endpoint_that_cannot_be_read_does_not_open) {
    struct fixture fixture;
    assert_int_equal(open_at(&fixture, "a:x"), FAILURE_INVALID);
    assert_non_null(strstr(fixture.failure.message, "--rdzv-endpoint"));
    tear_down(&fixture);
}

TEST(member_that_is_not_there_is_named_at_the_deadline) {
    struct fixture fixture;
    if (!has_curl()) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    /* port 1 of the loopback: nobody listens there */
    assert_int_equal(open_at(&fixture, "127.0.0.1:1"), FAILURE_NONE);
    struct instant deadline =
        instant_after(event_loop_now(fixture.loop), duration_from_milliseconds(700));
    register_read(fixture.job_register, deadline);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.kind, REGISTER_FAILED);
    assert_false(fixture.is_final);
    tear_down(&fixture);
}

TEST(append_that_nobody_hears_is_unknown) {
    struct fixture fixture;
    struct register_entry entry = {.number = 1,
        .term = 1,
        .host = memory_duplicate_string("h"),
        .addresses = memory_duplicate_string(""),
        .settings = memory_duplicate_string(""),
        .nonce = "0123456789abcdef0123456789abcdef"};
    if (!has_curl()) {
        register_entry_clear(&entry);
        SKIP_BECAUSE("libcurl is not installed");
    }
    assert_int_equal(open_at(&fixture, "127.0.0.1:1,[::1]:1"), FAILURE_NONE);
    struct instant deadline =
        instant_after(event_loop_now(fixture.loop), duration_from_milliseconds(100));
    register_append(fixture.job_register, &entry, deadline);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.kind, REGISTER_UNKNOWN);
    register_entry_clear(&entry);
    tear_down(&fixture);
}

TEST(request_under_way_ends_with_the_register) {
    struct fixture fixture;
    if (!has_curl()) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    assert_int_equal(open_at(&fixture, "127.0.0.1:1"), FAILURE_NONE);
    register_renew(fixture.job_register, 1,
        instant_after(event_loop_now(fixture.loop), duration_from_seconds(3600)));
    event_loop_run_ready(fixture.loop);
    tear_down(&fixture);
}

/* A server that speaks as much HTTP/2 as is needed to answer one request with one message. */

#define FRAME_HEAD 9
#define FRAME_DATA 0
#define FRAME_SETTINGS 4
#define END_OF_STREAM 1

struct server {
    int listening;
    char endpoint[32];
    const char *message;
    pthread_t thread;
};

static void receive(int connection, void *data, size_t length) {
    assert_int_equal(recv(connection, data, length, MSG_WAITALL), (ssize_t)length);
}

static void await_request(int connection) {
    uint8_t head[FRAME_HEAD] = {0};
    uint8_t content[65536];
    receive(connection, content, strlen("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    while (head[3] != FRAME_DATA || (head[4] & END_OF_STREAM) == 0) {
        receive(connection, head, sizeof head);
        size_t length = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        assert_true(length <= sizeof content);
        receive(connection, content, length);
    }
}

static void send_frame(
    int connection, uint8_t type, uint8_t flags, uint8_t stream, const void *data, size_t length) {
    const uint8_t head[FRAME_HEAD] = {0, 0, (uint8_t)length, type, flags, 0, 0, 0, stream};
    assert_int_equal(send(connection, head, sizeof head, MSG_NOSIGNAL), sizeof head);
    assert_int_equal(send(connection, data, length, MSG_NOSIGNAL), (ssize_t)length);
}

static void *serve(void *context) {
    static const char trailer[] = "\x00\x0bgrpc-status\x01"
                                  "0";
    const struct server *server = context;
    int connection = accept(server->listening, NULL, NULL);
    char body[64] = {0}; /* not compressed, and its length */
    size_t length = strlen(server->message);
    body[4] = (char)length;
    memcpy(body + 5, server->message, length);
    assert_true(connection >= 0);
    await_request(connection);
    send_frame(connection, FRAME_SETTINGS, 0, 0, "", 0);
    send_frame(connection, FRAME_SETTINGS, 1, 0, "", 0); /* the client's are known */
    send_frame(connection, 1, 4, 1, "\x88", 1);          /* headers: 200 */
    send_frame(connection, FRAME_DATA, 0, 1, body, 5 + length);
    send_frame(connection, 1, 4 | END_OF_STREAM, 1, trailer, sizeof trailer - 1);
    while (recv(connection, body, sizeof body, 0) > 0) { /* it is closed by the client */
    }
    close(connection);
    return NULL;
}

static void start_server(struct server *server, const char *message) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    *server = (struct server){.listening = socket(AF_INET, SOCK_STREAM, 0), .message = message};
    assert_int_equal(bind(server->listening, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(server->listening, 1), 0);
    assert_int_equal(getsockname(server->listening, (struct sockaddr *)&address, &length), 0);
    snprintf(server->endpoint, sizeof server->endpoint, "127.0.0.1:%d", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void end_server(struct server *server) {
    assert_int_equal(pthread_join(server->thread, NULL), 0);
    close(server->listening);
}

TEST(reply_that_cannot_be_read_is_a_failure) {
    struct fixture fixture;
    struct server server;
    if (!has_curl()) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    start_server(&server, "\x12\x05k");
    assert_int_equal(open_at(&fixture, server.endpoint), FAILURE_NONE);
    register_read(fixture.job_register,
        instant_after(event_loop_now(fixture.loop), duration_from_seconds(3600)));
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.kind, REGISTER_FAILED);
    assert_true(fixture.is_final);
    assert_non_null(strstr(fixture.failure.message, "has sent a reply that cannot be read"));
    tear_down(&fixture);
    end_server(&server);
}

/* etcd may have carried it out. It is asked again, until the deadline. */
TEST(append_whose_reply_cannot_be_read_is_unknown) {
    struct fixture fixture;
    struct server server;
    struct register_entry entry = {.number = 1,
        .term = 1,
        .host = memory_duplicate_string("h"),
        .addresses = memory_duplicate_string(""),
        .settings = memory_duplicate_string(""),
        .nonce = "0123456789abcdef0123456789abcdef"};
    if (!has_curl()) {
        register_entry_clear(&entry);
        SKIP_BECAUSE("libcurl is not installed");
    }
    start_server(&server, "\x1a\x05k");
    assert_int_equal(open_at(&fixture, server.endpoint), FAILURE_NONE);
    register_append(fixture.job_register, &entry,
        instant_after(event_loop_now(fixture.loop), duration_from_milliseconds(500)));
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.kind, REGISTER_UNKNOWN);
    tear_down(&fixture);
    end_server(&server);
    register_entry_clear(&entry);
}
