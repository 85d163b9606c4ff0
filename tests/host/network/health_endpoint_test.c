/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdlib.h>

#include "host/http_client.h"
#include "host/network/health_endpoint.h"

struct fixture {
    struct event_loop *loop;
    struct health_endpoint *endpoint;
    int port;
    int answered;
};

static void answer_path(void *context, const char *path, struct health_answer *answer) {
    struct fixture *fixture = context;
    fixture->answered++;
    answer->status = text_equals(path, "/there") ? 200 : 404;
    answer->content_type = "text/plain";
    text_append_format(&answer->body, "you asked for %s", path);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    struct health_endpoint_settings settings = {
        .address = "127.0.0.1", .answer = answer_path, .context = fixture};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        health_endpoint_new(fixture->loop, &settings, &fixture->endpoint, NULL), FAILURE_NONE);
    fixture->port = health_endpoint_port(fixture->endpoint);
    assert_true(fixture->port > 0);
}

static void tear_down(struct fixture *fixture) {
    health_endpoint_free(fixture->endpoint);
    assert_true(event_loop_free(fixture->loop));
}

static void assert_answer(
    struct fixture *fixture, const char *request, const char *start, const char *end) {
    struct text answer = {0};
    http_ask(fixture->loop, fixture->port, request, &answer);
    assert_true(text_starts_with(text_string(&answer), start));
    assert_true(answer.length >= strlen(end));
    assert_string_equal(text_string(&answer) + answer.length - strlen(end), end);
    text_clear(&answer);
}

FIXTURE_TEST(the_owners_answer_is_sent) {
    assert_answer(fixture, "GET /there HTTP/1.1", "HTTP/1.1 200 ", "\r\n\r\nyou asked for /there");
    assert_answer(
        fixture, "GET /there?x=y HTTP/1.0", "HTTP/1.1 200 ", "\r\n\r\nyou asked for /there");
    assert_answer(fixture, "GET /a HTTP/1.1", "HTTP/1.1 404 ", "\r\n\r\nyou asked for /a");
    assert_answer(fixture, "HEAD /there HTTP/1.1", "HTTP/1.1 200 ", "\r\n\r\n");
}

FIXTURE_TEST(a_request_that_is_too_long_or_none_is_refused) {
    struct text request = {0};
    struct text answer = {0};
    text_append(&request, "GET /");
    for (int i = 0; i < 2 * HEALTH_ENDPOINT_BYTES_PER_CONNECTION; i++) {
        text_append(&request, "x");
    }
    int fd = client_connect(fixture->port);
    client_send(fd, request.data, request.length);
    http_read(fixture->loop, fd, &answer);
    assert_null(strstr(text_string(&answer), " 200 "));
    text_clear(&answer);
    http_ask(fixture->loop, fixture->port, "\x01\x02\x03", &answer);
    assert_null(strstr(text_string(&answer), " 200 "));
    assert_int_equal(fixture->answered, 0);
    text_clear(&answer);
    text_clear(&request);
}

TEST(an_endpoint_may_go_while_clients_wait) {
    struct fixture fixture;
    set_up(&fixture);
    int fd = client_connect(fixture.port);
    client_send(fd, "GET /th", 7);
    for (int turn = 0; turn < 20; turn++) {
        event_loop_run_ready(fixture.loop);
    }
    tear_down(&fixture);
    close(fd);
}
