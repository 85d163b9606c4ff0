/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers that are not there, or speak no gRPC. tests/interop has those that do. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "host/register/grpc_client.h"

struct fixture {
    struct event_loop *loop;
    struct curl_library library;
    struct grpc_client *client;
    int listener;
    char *endpoint;
    size_t done_count;
    bool is_answered;
    bool is_trust_failure;
    struct failure why;
};

static void done(void *context, const struct grpc_result *result) {
    struct fixture *fixture = context;
    fixture->done_count++;
    fixture->is_answered = result->is_answered;
    fixture->is_trust_failure = result->is_trust_failure;
    fixture->why = *result->why;
    event_loop_stop(fixture->loop);
}

/* A port of this machine that nobody else is given while the test has it. */
static void bind_port(struct fixture *fixture) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    fixture->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fixture->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fixture->listener, (struct sockaddr *)&address, &length), 0);
    fixture->endpoint = text_format("127.0.0.1:%d", ntohs(address.sin_port));
}

static bool set_up(struct fixture *fixture, bool is_tls) {
    *fixture = (struct fixture){0};
    const struct http_trust trust = {.is_tls = is_tls};
    if (curl_library_load(CURL_LIBRARY_NAME, &fixture->library, NULL) != FAILURE_NONE) {
        return false;
    }
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        grpc_client_new(fixture->loop, &fixture->library, &trust, &fixture->client, NULL),
        FAILURE_NONE);
    bind_port(fixture);
    return true;
}

static void tear_down(struct fixture *fixture) {
    grpc_client_free(fixture->client);
    assert_true(event_loop_free(fixture->loop));
    assert_int_equal(close(fixture->listener), 0);
    free(fixture->endpoint);
}

static struct grpc_call *start(struct fixture *fixture, int64_t milliseconds) {
    return grpc_call_start(
        fixture->client, &(struct grpc_question){
                             .endpoint = fixture->endpoint,
                             .path = "/service/Method",
                             .message = slice_from_string("message"),
                             .patience = duration_from_milliseconds(milliseconds),
                             .done = done,
                             .context = fixture,
                         });
}

TEST(server_that_is_not_there_is_told) {
    struct fixture fixture;
    if (!set_up(&fixture, false)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    start(&fixture, 3600000); /* nobody listens */
    event_loop_run(fixture.loop);
    assert_false(fixture.is_answered);
    assert_false(fixture.is_trust_failure);
    assert_int_equal(fixture.why.code, FAILURE_DISCONNECTED);
    assert_true(fixture.why.message[0] != '\0');
    tear_down(&fixture);
}

TEST(silent_server_is_left_in_time) {
    struct fixture fixture;
    if (!set_up(&fixture, false)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    assert_int_equal(listen(fixture.listener, 1), 0);
    start(&fixture, 20);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.why.code, FAILURE_TIMEOUT);
    tear_down(&fixture);
}

/* Answers the next connection with those bytes, and ends it. */
static pid_t answer_once(const struct fixture *fixture, const char *bytes) {
    assert_int_equal(listen(fixture->listener, 1), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char request[16];
        int connection = accept(fixture->listener, NULL, NULL);
        ssize_t count = read(connection, request, sizeof request);
        count += write(connection, bytes, strlen(bytes));
        _exit(count > 0 ? 0 : 1);
    }
    return child;
}

TEST(server_of_another_protocol_is_told) {
    struct fixture fixture;
    if (!set_up(&fixture, false)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    answer_once(&fixture, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    start(&fixture, 3600000);
    event_loop_run(fixture.loop);
    assert_false(fixture.is_answered);
    assert_true(fixture.why.message[0] != '\0');
    tear_down(&fixture);
}

TEST(server_without_tls_is_no_server_with_tls) {
    struct fixture fixture;
    if (!set_up(&fixture, true)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    answer_once(&fixture, "this is no TLS at all, whatever it is");
    start(&fixture, 3600000);
    event_loop_run(fixture.loop);
    assert_false(fixture.is_answered);
    assert_true(fixture.is_trust_failure);
    tear_down(&fixture);
}

TEST(cancelled_call_is_not_answered) {
    struct fixture fixture;
    if (!set_up(&fixture, false)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    struct grpc_call *call = start(&fixture, 3600000);
    start(&fixture, 3600000);
    grpc_call_cancel(call);
    event_loop_run(fixture.loop);
    event_loop_run_ready(fixture.loop);
    assert_int_equal(fixture.done_count, 1);
    tear_down(&fixture);
}
