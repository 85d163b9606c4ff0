/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/register/http_client.h"

#define NEVER 3600000

struct fixture {
    struct event_loop *loop;
    struct curl_library library;
    struct http_client *client;
    int listener;
    char *url;
    struct text lines; /* of the reply's headers */
    size_t done_count;
    bool is_answered;
    bool is_trust_failure;
    bool is_unheard;
    bool is_strange;
    long status;
    const char *enough; /* NULL: the reply is not heard in parts */
    size_t heard_count;
    struct text body;
    struct failure why;
};

static void header(void *context, struct slice line) {
    struct fixture *fixture = context;
    text_append_bytes(&fixture->lines, (const char *)line.data, line.length);
}

static void done(void *context, const struct http_result *result) {
    struct fixture *fixture = context;
    fixture->done_count++;
    fixture->is_answered = result->is_answered;
    fixture->is_trust_failure = result->is_trust_failure;
    fixture->is_unheard = result->is_unheard;
    fixture->is_strange = result->is_strange;
    fixture->status = result->status;
    text_clear(&fixture->body);
    text_append_bytes(&fixture->body, (const char *)result->body.data, result->body.length);
    fixture->why = *result->why;
    event_loop_stop(fixture->loop);
}

static bool heard(void *context, struct slice body) {
    struct fixture *fixture = context;
    bool is_enough = slice_equals(body, slice_from_string(fixture->enough));
    fixture->heard_count++;
    if (is_enough) {
        event_loop_stop(fixture->loop);
    }
    return !is_enough;
}

static void set_up(struct fixture *fixture, bool is_tls) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const struct http_trust trust = {.is_tls = is_tls};
    *fixture = (struct fixture){0};
    if (curl_library_load(CURL_LIBRARY_NAME, &fixture->library, NULL) != FAILURE_NONE) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        http_client_new(fixture->loop, &fixture->library, &trust, &fixture->client, NULL),
        FAILURE_NONE);
    fixture->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fixture->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fixture->listener, (struct sockaddr *)&address, &length), 0);
    fixture->url = text_format(
        "%s://127.0.0.1:%d/a/path?b=c", is_tls ? "https" : "http", ntohs(address.sin_port));
}

static void tear_down(struct fixture *fixture) {
    http_client_free(fixture->client);
    assert_true(event_loop_free(fixture->loop));
    assert_int_equal(close(fixture->listener), 0);
    text_clear(&fixture->lines);
    text_clear(&fixture->body);
    free(fixture->url);
}

static struct http_exchange *start(struct fixture *fixture, const char *body, int64_t patience) {
    struct text_list headers = {0};
    text_list_add(&headers, "x-name: value");
    struct http_exchange *exchange =
        http_exchange_start(fixture->client, &(struct http_question){
                                                 .url = fixture->url,
                                                 .method = *body == '\0' ? "GET" : "PUT",
                                                 .headers = &headers,
                                                 .body = slice_from_string(body),
                                                 .version = HTTP_VERSION_1,
                                                 .ceiling = 100,
                                                 .patience = duration_from_milliseconds(patience),
                                                 .header = header,
                                                 .heard = fixture->enough != NULL ? heard : NULL,
                                                 .done = done,
                                                 .context = fixture,
                                             });
    text_list_clear(&headers);
    return exchange;
}

static bool reads_up_to(int connection, const char *end) {
    char request[2048] = {0};
    size_t length = 0;
    while (strstr(request, end) == NULL) {
        ssize_t count = read(connection, request + length, sizeof request - 1 - length);
        if (count <= 0) {
            return false;
        }
        length += (size_t)count;
    }
    return strstr(request, "/a/path?b=c HTTP/1.1\r\n") != NULL &&
           strstr(request, "\r\nx-name: value\r\n") != NULL;
}

/* Says it to whatever comes, and hears the other side out: else its own words might be lost. */
static bool speaks(int connection, const char *bytes) {
    char heard[2048];
    bool has_spoken = read(connection, heard, sizeof heard) > 0 &&
                      write(connection, bytes, strlen(bytes)) > 0 &&
                      shutdown(connection, SHUT_WR) == 0;
    while (has_spoken && read(connection, heard, sizeof heard) > 0) {
    }
    return has_spoken;
}

/* A child that answers so many requests, which end so ("": whatever comes), on one connection. */
static pid_t answer(const struct fixture *fixture, int count, const char *end, const char *bytes) {
    assert_int_equal(listen(fixture->listener, 1), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int connection = accept(fixture->listener, NULL, NULL);
        for (int i = 0; i < count; i++) {
            bool has_answered = *end == '\0' ? speaks(connection, bytes)
                                             : reads_up_to(connection, end) &&
                                                   write(connection, bytes, strlen(bytes)) > 0;
            if (!has_answered) {
                _exit(1);
            }
        }
        _exit(0);
    }
    return child;
}

static void expect_served(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

FIXTURE_TEST_AFTER(two_exchanges_share_a_connection, set_up(&fixture, false)) {
    pid_t child = answer(fixture, 2, "\r\n\r\n",
        "HTTP/1.1 409 Conflict\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbody");
    for (size_t i = 1; i <= 2; i++) {
        start(fixture, "", NEVER);
        event_loop_run(fixture->loop);
        assert_int_equal(fixture->done_count, i);
        assert_true(fixture->is_answered);
        assert_int_equal(fixture->status, 409);
        assert_string_equal(text_string(&fixture->body), "body");
        assert_non_null(strstr(text_string(&fixture->lines), "Retry-After: 7\r\n"));
    }
    expect_served(child);
}

FIXTURE_TEST_AFTER(body_is_sent, set_up(&fixture, false)) {
    pid_t child = answer(fixture, 1, "\r\n\r\nwhat is sent", "HTTP/1.1 204 No Content\r\n\r\n");
    start(fixture, "what is sent", NEVER);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->status, 204);
    expect_served(child);
}

FIXTURE_TEST_AFTER(reply_beyond_the_ceiling_is_none, set_up(&fixture, false)) {
    char *reply = text_format("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n%0101d", 0);
    pid_t child = answer(fixture, 1, "\r\n\r\n", reply);
    start(fixture, "", NEVER);
    event_loop_run(fixture->loop);
    assert_false(fixture->is_answered);
    assert_true(fixture->is_strange);
    assert_false(fixture->is_unheard);
    expect_served(child);
    free(reply);
}

FIXTURE_TEST_AFTER(server_that_is_not_there_has_heard_nothing, set_up(&fixture, false)) {
    start(fixture, "", NEVER); /* nobody listens */
    event_loop_run(fixture->loop);
    assert_false(fixture->is_answered);
    assert_true(fixture->is_unheard);
    assert_false(fixture->is_trust_failure);
    assert_int_equal(fixture->why.code, FAILURE_DISCONNECTED);
    assert_true(fixture->why.message[0] != '\0');
}

static CURL *make_nothing(void) {
    return NULL;
}

FIXTURE_TEST_AFTER(exchange_without_memory_is_not_answered, set_up(&fixture, false)) {
    fixture->library.easy_init = make_nothing;
    start(fixture, "", NEVER);
    assert_int_equal(fixture->done_count, 0); /* not from inside the call */
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->done_count, 1);
    assert_false(fixture->is_answered);
    assert_true(fixture->is_unheard);
    assert_non_null(strstr(fixture->why.message, "no memory"));
    http_exchange_cancel(start(fixture, "", NEVER));
    assert_int_equal(fixture->done_count, 1);
}

FIXTURE_TEST_AFTER(silent_server_may_have_heard, set_up(&fixture, false)) {
    assert_int_equal(listen(fixture->listener, 1), 0);
    start(fixture, "", 20);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->why.code, FAILURE_TIMEOUT);
    assert_false(fixture->is_unheard);
}

FIXTURE_TEST_AFTER(server_without_tls_is_no_server_with_tls, set_up(&fixture, true)) {
    pid_t child = answer(fixture, 1, "", "this is no TLS at all, whatever it is");
    start(fixture, "", NEVER);
    event_loop_run(fixture->loop);
    assert_false(fixture->is_answered);
    assert_true(fixture->is_trust_failure);
    expect_served(child);
}

FIXTURE_TEST_AFTER(tls_that_is_cut_short_may_come_about_the_next_time, set_up(&fixture, true)) {
    pid_t child = answer(fixture, 0, "", ""); /* it ends the connection */
    start(fixture, "", NEVER);
    event_loop_run(fixture->loop);
    assert_false(fixture->is_answered);
    assert_false(fixture->is_trust_failure);
    assert_true(fixture->is_unheard);
    expect_served(child);
}

#define STREAM "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n"

/* The server says no more, and does not end. */
FIXTURE_TEST_AFTER(a_part_of_a_reply_may_be_enough, set_up(&fixture, false)) {
    fixture->enough = "a part";
    pid_t child = answer(fixture, 1, "\r\n\r\n", STREAM "a part");
    start(fixture, "", NEVER);
    event_loop_run(fixture->loop);
    assert_true(fixture->heard_count >= 1);
    assert_int_equal(fixture->done_count, 0);
    expect_served(child);
}

FIXTURE_TEST_AFTER(a_reply_of_which_no_part_is_enough_is_told_at_its_end, set_up(&fixture, false)) {
    fixture->enough = "something else";
    pid_t child =
        answer(fixture, 1, "\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\na part");
    start(fixture, "", NEVER);
    event_loop_run(fixture->loop);
    assert_true(fixture->heard_count >= 1);
    assert_int_equal(fixture->done_count, 1);
    assert_string_equal(text_string(&fixture->body), "a part");
    expect_served(child);
}

FIXTURE_TEST_AFTER(a_refusal_is_not_heard_in_parts, set_up(&fixture, false)) {
    fixture->enough = "no";
    pid_t child =
        answer(fixture, 1, "\r\n\r\n", "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    start(fixture, "", NEVER);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->heard_count, 0);
    assert_int_equal(fixture->status, 403);
    expect_served(child);
}

FIXTURE_TEST_AFTER(cancelled_exchange_is_not_answered, set_up(&fixture, false)) {
    struct http_exchange *exchange = start(fixture, "", NEVER);
    start(fixture, "", NEVER);
    http_exchange_cancel(exchange);
    event_loop_run(fixture->loop);
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->done_count, 1);
}

TEST(library_that_is_missing_is_named) {
    struct curl_library library;
    struct failure failure;
    assert_int_equal(curl_library_load("libmissing.so.4", &library, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "libcurl is needed for --rdzv-backend etcd and k8s"));
}

TEST(library_without_the_functions_is_refused) {
    struct curl_library library;
    struct failure failure;
    assert_int_equal(curl_library_load("libm.so.6", &library, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "libm.so.6 lacks functions"));
}

TEST(installed_library_has_all) {
    struct curl_library library;
    struct failure failure;
    if (curl_library_load(CURL_LIBRARY_NAME, &library, &failure) != FAILURE_NONE) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    assert_non_null(library.multi_cleanup);
}
