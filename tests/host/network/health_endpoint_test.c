/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>
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

FIXTURE_TEST(other_methods_are_refused_without_asking) {
    assert_answer(fixture, "DELETE /there HTTP/1.1", "HTTP/1.1 405 ", "GET or HEAD only\n");
    assert_answer(fixture, "POST /there HTTP/1.1\r\nContent-Length: 1000000000", "HTTP/1.1 405 ",
        "GET or HEAD only\n");
    assert_int_equal(fixture->answered, 0);
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

static void turn(struct fixture *fixture) {
    for (int i = 0; i < 200; i++) {
        event_loop_run_ready(fixture->loop);
    }
}

FIXTURE_TEST(silent_clients_keep_no_probe_waiting_and_the_newest_stay) {
    enum { CLIENTS = 200 };
    int silent[CLIENTS];
    int closed = 0;
    for (int i = 0; i < CLIENTS; i++) {
        silent[i] = client_connect(fixture->port);
    }
    assert_answer(fixture, "GET /there HTTP/1.1", "HTTP/1.1 200 ", "\r\n\r\nyou asked for /there");
    turn(fixture);
    for (int i = 0; i < CLIENTS; i++) {
        char byte;
        bool is_closed = recv(silent[i], &byte, 1, MSG_DONTWAIT) == 0;
        assert_false(is_closed && closed < i);
        closed += is_closed ? 1 : 0;
        close(silent[i]);
    }
    assert_int_equal(CLIENTS - closed, HEALTH_ENDPOINT_KEPT_CONNECTIONS - 1);
    assert_answer(fixture, "GET /there HTTP/1.1", "HTTP/1.1 200 ", "\r\n\r\nyou asked for /there");
}

FIXTURE_TEST(a_port_that_is_taken_is_named) {
    struct failure failure = {0};
    struct health_endpoint *second = NULL;
    struct health_endpoint_settings settings = {
        .address = "127.0.0.1", .port = fixture->port, .answer = answer_path};
    assert_int_equal(
        health_endpoint_new(fixture->loop, &settings, &second, &failure), FAILURE_SYSTEM);
    assert_null(second);
    char *port = text_format("%d", fixture->port);
    assert_non_null(strstr(failure.message, port));
    free(port);
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
