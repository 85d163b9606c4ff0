/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "host/raw_client.h"
#include "host/store_client.h"
#include "host/store_server.h"
#include "host/tcp_listener.h"

#define SOON duration_from_milliseconds(20)
#define LONG duration_from_milliseconds(60000)

/* What a call came back with. */
struct answer {
    int calls;
    enum failure_code code;
    bool is_over;
    struct store_reply reply;
    char text[256]; /* blob of the reply, or message */
    struct event_loop *loop;
};

struct fixture {
    struct event_loop *loop;
    struct store_server *server;
    struct store_client *client;
    const char *host;
    int listening_fd; /* without a server */
    int port;
    int connected; /* calls of `connected` */
    int lost;
    struct failure failure; /* of either */
    bool frees_client;      /* from `connected` */
};

static void connected(void *context, const struct failure *failure) {
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

static void lost(void *context, const struct failure *failure) {
    struct fixture *fixture = context;
    fixture->lost++;
    fixture->failure = *failure;
}

static void open_port_at(struct fixture *fixture, const char *host) {
    *fixture = (struct fixture){.host = host};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        tcp_listener_open(host, 0, &fixture->listening_fd, &fixture->port, NULL), FAILURE_NONE);
}

static void open_port(struct fixture *fixture) {
    open_port_at(fixture, "127.0.0.1");
}

static void serve(struct fixture *fixture) {
    assert_int_equal(store_server_new(fixture->loop, fixture->listening_fd,
                         &(struct store_server_settings){0}, &fixture->server, NULL),
        FAILURE_NONE);
}

static void start_client(struct fixture *fixture, struct duration connect_timeout) {
    struct store_client_settings settings = {.host = fixture->host,
        .port = fixture->port,
        .connect_timeout = connect_timeout,
        .connected = connected,
        .lost = lost,
        .context = fixture};
    fixture->client = store_client_new(fixture->loop, &settings);
}

static void set_up(struct fixture *fixture) {
    open_port(fixture);
    serve(fixture);
    start_client(fixture, LONG);
}

static void tear_down(struct fixture *fixture) {
    store_client_free(fixture->client);
    if (fixture->server != NULL) {
        store_server_free(fixture->server);
    } else {
        close(fixture->listening_fd);
    }
    assert_true(event_loop_free(fixture->loop));
}

static void remember(void *context, const struct store_client_result *result) {
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

static void send_request(struct fixture *fixture, const struct store_request *request,
    struct duration timeout, struct answer *answer) {
    *answer = (struct answer){0};
    store_client_send(fixture->client,
        &(struct store_client_call){
            .request = *request, .timeout = timeout, .done = remember, .context = answer});
    assert_int_equal(answer->calls, 0);
}

static void turn_until(struct fixture *fixture, const int *counter) {
    while (*counter == 0) {
        event_loop_run_ready(fixture->loop);
    }
}

static void ask(struct fixture *fixture, const struct store_request *request,
    struct duration timeout, struct answer *answer) {
    send_request(fixture, request, timeout, answer);
    turn_until(fixture, &answer->calls);
    assert_int_equal(answer->calls, 1);
}

static const struct slice key = {(const uint8_t *)"k", 1};

static void it_connects_and_tells_once(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    turn_until(&fixture, &fixture.connected);
    assert_int_equal(fixture.failure.code, FAILURE_NONE);
    assert_int_equal(fixture.connected, 1);
    tear_down(&fixture);
    assert_int_equal(fixture.lost, 0);
}

static void it_speaks_ipv6(void **state) {
    (void)state;
    struct fixture fixture;
    open_port_at(&fixture, "::1");
    serve(&fixture);
    start_client(&fixture, LONG);
    struct answer answer;
    ask(&fixture, &(struct store_request){.operation = STORE_ADD, .key = key, .number = 5}, LONG,
        &answer);
    assert_int_equal(answer.reply.integer, 5);
    store_server_renew(fixture.server, NULL);
    turn_until(&fixture, &fixture.lost);
    assert_non_null(strstr(fixture.failure.message, "the store at [::1]:"));
    tear_down(&fixture);
}

static void requests_sent_before_the_connection_stands_are_answered_in_order(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct answer set;
    struct answer get;
    send_request(&fixture,
        &(struct store_request){
            .operation = STORE_SET, .key = key, .value = slice_from_string("value")},
        LONG, &set);
    send_request(&fixture, &(struct store_request){.operation = STORE_GET, .key = key}, LONG, &get);
    turn_until(&fixture, &get.calls);
    assert_int_equal(set.calls, 1);
    assert_int_equal(set.code, FAILURE_NONE);
    assert_int_equal(set.reply.kind, STORE_REPLY_NONE);
    assert_string_equal(get.text, "value");
    tear_down(&fixture);
}

static void keys_carry_a_slash_unless_raw(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct answer answer;
    ask(&fixture,
        &(struct store_request){
            .operation = STORE_SET, .key = key, .value = slice_from_string("v")},
        LONG, &answer);
    answer = (struct answer){0};
    store_client_send(
        fixture.client, &(struct store_client_call){
                            .request = {.operation = STORE_GET, .key = slice_from_string("/k")},
                            .is_raw = true,
                            .timeout = LONG,
                            .done = remember,
                            .context = &answer});
    turn_until(&fixture, &answer.calls);
    assert_string_equal(answer.text, "v");
    tear_down(&fixture);
}

static void wait_that_times_out_leaves_the_connection_usable(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct answer answer;
    ask(&fixture, &(struct store_request){.operation = STORE_WAIT, .keys = &key, .count = 1}, SOON,
        &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    assert_false(answer.is_over);
    ask(&fixture, &(struct store_request){.operation = STORE_ADD, .key = key, .number = 5}, LONG,
        &answer);
    assert_int_equal(answer.reply.integer, 5);
    assert_int_equal(fixture.lost, 0);
    tear_down(&fixture);
}

static void barrier_that_times_out_is_cancelled_too(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct answer answer;
    ask(&fixture, &(struct store_request){.operation = STORE_BARRIER, .key = key, .number = 2},
        SOON, &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    ask(&fixture, &(struct store_request){.operation = STORE_BARRIER, .key = key, .number = 2},
        LONG, &answer);
    assert_int_equal(answer.code, FAILURE_NONE);
    tear_down(&fixture);
}

static void get_that_waits_first_gets_what_is_set_later(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct answer answer = {0};
    store_client_send(
        fixture.client, &(struct store_client_call){.request = {.operation = STORE_GET, .key = key},
                            .waits_first = true,
                            .timeout = LONG,
                            .done = remember,
                            .context = &answer});
    int other = client_open(fixture.port);
    client_expect_ping(fixture.loop, other, 1);
    client_set(other, "/k", "late");
    turn_until(&fixture, &answer.calls);
    assert_string_equal(answer.text, "late");
    close(other);
    tear_down(&fixture);
}

static void request_behind_a_long_wait_may_time_out_alone(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct answer wait;
    struct answer behind;
    send_request(&fixture,
        &(struct store_request){.operation = STORE_WAIT, .keys = &key, .count = 1}, LONG, &wait);
    send_request(&fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, SOON, &behind);
    turn_until(&fixture, &behind.calls);
    assert_int_equal(behind.code, FAILURE_TIMEOUT);
    assert_int_equal(wait.calls, 0);
    int other = client_open(fixture.port);
    client_set(other, "/k", "v");
    turn_until(&fixture, &wait.calls);
    assert_int_equal(wait.code, FAILURE_NONE);
    close(other);
    tear_down(&fixture);
}

static void store_that_comes_up_later_is_found(void **state) {
    (void)state;
    struct fixture fixture;
    open_port(&fixture);
    close(fixture.listening_fd);
    start_client(&fixture, LONG);
    for (int i = 0; i < 100; i++) {
        event_loop_run_ready(fixture.loop);
    }
    assert_int_equal(fixture.connected, 0);
    assert_int_equal(
        tcp_listener_open("127.0.0.1", fixture.port, &fixture.listening_fd, &fixture.port, NULL),
        FAILURE_NONE);
    serve(&fixture);
    turn_until(&fixture, &fixture.connected);
    assert_int_equal(fixture.failure.code, FAILURE_NONE);
    tear_down(&fixture);
}

static void store_that_never_comes_is_given_up_with_its_address(void **state) {
    (void)state;
    struct fixture fixture;
    open_port(&fixture);
    close(fixture.listening_fd);
    start_client(&fixture, SOON);
    struct answer answer;
    send_request(&fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, LONG, &answer);
    turn_until(&fixture, &fixture.connected);
    assert_int_equal(fixture.failure.code, FAILURE_TIMEOUT);
    char *expected =
        text_format("no store at 127.0.0.1 port %d within 0.02 s, after ", fixture.port);
    assert_memory_equal(fixture.failure.message, expected, strlen(expected));
    free(expected);
    expected = text_format(" 127.0.0.1:%d: Connection refused (errno 111)", fixture.port);
    assert_non_null(strstr(fixture.failure.message, expected));
    free(expected);
    assert_int_equal(answer.calls, 1);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    assert_true(answer.is_over);
    store_client_free(fixture.client);
    assert_true(event_loop_free(fixture.loop));
}

static void server_that_accepts_and_says_nothing_is_given_up(void **state) {
    (void)state;
    struct fixture fixture;
    open_port(&fixture);
    start_client(&fixture, SOON);
    turn_until(&fixture, &fixture.connected);
    assert_int_equal(fixture.failure.code, FAILURE_TIMEOUT);
    assert_non_null(strstr(fixture.failure.message, "it accepts connections, but does not answer"));
    tear_down(&fixture);
}

/* The server's end of the client's connection, when the test plays the server. */
static int accept_client(struct fixture *fixture) {
    client_await(fixture->loop, fixture->listening_fd);
    int fd = accept(fixture->listening_fd, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

/* Plays a server that answers the handshake as `nonce_error` wants it. */
static int shake_hands(struct fixture *fixture, uint32_t nonce_error) {
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
    assert_int_equal(nonce, getpid());
    nonce += nonce_error;
    client_send(fd, &nonce, sizeof nonce);
    return fd;
}

static void handshake_with_a_wrong_nonce_is_tried_again(void **state) {
    (void)state;
    struct fixture fixture;
    open_port(&fixture);
    start_client(&fixture, LONG);
    close(accept_client(&fixture)); /* first it hangs up at once */
    close(shake_hands(&fixture, 1));
    int fd = shake_hands(&fixture, 0);
    turn_until(&fixture, &fixture.connected);
    assert_int_equal(fixture.failure.code, FAILURE_NONE);
    close(fd);
    tear_down(&fixture);
}

static void silent_server_costs_a_request_its_deadline_and_no_more(void **state) {
    (void)state;
    struct fixture fixture;
    open_port(&fixture);
    start_client(&fixture, LONG);
    int fd = shake_hands(&fixture, 0);
    turn_until(&fixture, &fixture.connected);
    struct answer answer;
    ask(&fixture, &(struct store_request){.operation = STORE_ADD, .key = key, .number = 1}, SOON,
        &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    assert_true(answer.is_over);
    turn_until(&fixture, &fixture.lost);
    assert_int_equal(fixture.failure.code, FAILURE_TIMEOUT);
    client_expect_close(fixture.loop, fd);
    ask(&fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, LONG, &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    assert_true(answer.is_over);
    close(fd);
    tear_down(&fixture);
}

static void release_that_crosses_the_cancel_counts(void **state) {
    (void)state;
    struct fixture fixture;
    open_port(&fixture);
    start_client(&fixture, LONG);
    int fd = shake_hands(&fixture, 0);
    struct answer answer;
    send_request(&fixture,
        &(struct store_request){.operation = STORE_WAIT, .keys = &key, .count = 1}, SOON, &answer);
    uint8_t wait[19];
    client_expect(fixture.loop, fd, "\x06\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0/k", sizeof wait);
    client_expect_byte(fixture.loop, fd, STORE_CANCEL_WAIT);
    client_send(fd, "\x00\x01", 2);
    turn_until(&fixture, &answer.calls);
    assert_int_equal(answer.code, FAILURE_NONE);
    assert_int_equal(fixture.lost, 0);
    close(fd);
    tear_down(&fixture);
}

static void answer_nobody_asked_for_ends_the_connection(void **state) {
    (void)state;
    struct fixture fixture;
    open_port(&fixture);
    start_client(&fixture, LONG);
    int fd = shake_hands(&fixture, 0);
    turn_until(&fixture, &fixture.connected);
    client_send(fd, "\x00", 1);
    turn_until(&fixture, &fixture.lost);
    assert_int_equal(fixture.failure.code, FAILURE_PROTOCOL);
    close(fd);
    tear_down(&fixture);
}

static void lost_server_fails_what_is_pending_and_is_reported(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct answer active;
    struct answer queued;
    send_request(&fixture,
        &(struct store_request){.operation = STORE_WAIT, .keys = &key, .count = 1}, LONG, &active);
    send_request(&fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, LONG, &queued);
    turn_until(&fixture, &fixture.connected);
    store_server_renew(fixture.server, NULL);
    turn_until(&fixture, &fixture.lost);
    assert_int_equal(active.code, FAILURE_DISCONNECTED);
    assert_int_equal(queued.code, FAILURE_DISCONNECTED);
    assert_true(active.is_over && queued.is_over);
    assert_int_equal(fixture.failure.code, FAILURE_DISCONNECTED);
    char *expected = text_format("the store at 127.0.0.1:%d: ", fixture.port);
    assert_memory_equal(fixture.failure.message, expected, strlen(expected));
    free(expected);
    tear_down(&fixture);
}

static void freeing_cancels_what_is_pending(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct answer answer;
    send_request(&fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, LONG, &answer);
    store_client_free(fixture.client);
    fixture.client = NULL;
    assert_int_equal(answer.calls, 1);
    assert_int_equal(answer.code, FAILURE_CANCELLED);
    tear_down(&fixture);
    assert_int_equal(fixture.connected, 0);
}

static void client_may_be_freed_from_its_callbacks(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    fixture.frees_client = true;
    struct answer answer;
    send_request(&fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, LONG, &answer);
    turn_until(&fixture, &fixture.connected);
    assert_null(fixture.client);
    assert_int_equal(answer.code, FAILURE_CANCELLED);
    tear_down(&fixture);
}

static void large_values_pass_in_both_directions(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct answer answer;
    size_t length = (size_t)5 << 20;
    uint8_t *value = malloc(length);
    memset(value, 'x', length);
    ask(&fixture,
        &(struct store_request){.operation = STORE_SET, .key = key, .value = {value, length}}, LONG,
        &answer);
    assert_int_equal(answer.code, FAILURE_NONE);
    ask(&fixture,
        &(struct store_request){.operation = STORE_COMPARE_SET,
            .key = key,
            .expected = {value, length},
            .value = slice_from_string("small")},
        LONG, &answer);
    assert_string_equal(answer.text, "small");
    free(value);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_connects_and_tells_once),
    cmocka_unit_test(it_speaks_ipv6),
    cmocka_unit_test(requests_sent_before_the_connection_stands_are_answered_in_order),
    cmocka_unit_test(keys_carry_a_slash_unless_raw),
    cmocka_unit_test(wait_that_times_out_leaves_the_connection_usable),
    cmocka_unit_test(barrier_that_times_out_is_cancelled_too),
    cmocka_unit_test(get_that_waits_first_gets_what_is_set_later),
    cmocka_unit_test(request_behind_a_long_wait_may_time_out_alone),
    cmocka_unit_test(store_that_comes_up_later_is_found),
    cmocka_unit_test(store_that_never_comes_is_given_up_with_its_address),
    cmocka_unit_test(server_that_accepts_and_says_nothing_is_given_up),
    cmocka_unit_test(handshake_with_a_wrong_nonce_is_tried_again),
    cmocka_unit_test(silent_server_costs_a_request_its_deadline_and_no_more),
    cmocka_unit_test(release_that_crosses_the_cancel_counts),
    cmocka_unit_test(answer_nobody_asked_for_ends_the_connection),
    cmocka_unit_test(lost_server_fails_what_is_pending_and_is_reported),
    cmocka_unit_test(freeing_cancels_what_is_pending),
    cmocka_unit_test(client_may_be_freed_from_its_callbacks),
    cmocka_unit_test(large_values_pass_in_both_directions),
};

TEST_MAIN(tests)
