/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <linux/tcp.h>

#include "host/store_client_fixture.h"

TEST(it_connects_and_tells_once) {
    struct fixture fixture;
    set_up(&fixture);
    turn_until(&fixture, &fixture.connected);
    assert_int_equal(fixture.failure.code, FAILURE_NONE);
    assert_int_equal(fixture.connected, 1);
    tear_down(&fixture);
    assert_int_equal(fixture.lost, 0);
}

FIXTURE_TEST_AFTER(it_speaks_ipv6, open_port_at(&fixture, "::1")) {
    serve(fixture);
    start_client(fixture, LONG);
    struct answer answer;
    ask(fixture, &(struct store_request){.operation = STORE_ADD, .key = key, .number = 5}, LONG,
        &answer);
    assert_int_equal(answer.reply.integer, 5);
    store_server_renew(fixture->server, NULL);
    turn_until(fixture, &fixture->lost);
    assert_non_null(strstr(fixture->failure.message, "the store at [::1]:"));
}

FIXTURE_TEST_AFTER(store_that_comes_up_later_is_found, open_port(&fixture)) {
    close(fixture->listening_fd);
    start_client(fixture, LONG);
    for (int i = 0; i < 100; i++) {
        event_loop_run_ready(fixture->loop);
    }
    assert_int_equal(fixture->connected, 0);
    assert_int_equal(
        tcp_listener_open("127.0.0.1", fixture->port, &fixture->listening_fd, &fixture->port, NULL),
        FAILURE_NONE);
    serve(fixture);
    turn_until(fixture, &fixture->connected);
    assert_int_equal(fixture->failure.code, FAILURE_NONE);
}

TEST(store_that_never_comes_is_given_up_with_its_address) {
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

/* No name server is asked for this name, because a part of it is longer than allowed. */
#define UNKNOWN "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.test"

TEST(all_addresses_of_several_names_are_tried_and_none_is_told_twice) {
    const struct {
        const char *host;
        const char *words;
        int times;
        struct duration patience; /* an unknown name is no refusal */
    } rows[] = {
        {UNKNOWN " 127.0.0.1 127.0.0.2 127.0.0.1", "127.0.0.1:", 1, LONG},
        {UNKNOWN " 127.0.0.1 127.0.0.2 127.0.0.1", "127.0.0.2:", 1, LONG},
        {UNKNOWN " 127.0.0.1 127.0.0.2 127.0.0.1", "is not known", 0, LONG},
        {UNKNOWN, "host \"" UNKNOWN "\" is not known", 1, duration_from_milliseconds(300)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture fixture;
        int times = 0;
        open_port(&fixture);
        close(fixture.listening_fd);
        fixture.host = rows[i].host;
        start_client_with(&fixture, rows[i].patience, SOON);
        turn_until(&fixture, &fixture.connected);
        const char *told = strstr(fixture.failure.message, ", after ");
        assert_non_null(told);
        for (const char *at = told; (at = strstr(at, rows[i].words)) != NULL; at++) {
            times++;
        }
        assert_int_equal(times, rows[i].times);
        store_client_free(fixture.client);
        assert_true(event_loop_free(fixture.loop));
    }
}

FIXTURE_TEST_AFTER(store_that_was_never_tried_is_told_as_such, open_port(&fixture)) {
    const struct store_client_settings settings = {.host = fixture->host,
        .port = fixture->port,
        .pause = LONG,
        .connect_timeout = SOON,
        .connected = connected,
        .context = fixture};
    fixture->client = store_client_new(fixture->loop, &settings);
    turn_until(fixture, &fixture->connected);
    assert_non_null(strstr(fixture->failure.message, "its name was never looked up"));
}

/* A port of 127.0.0.1 that refuses connections for now, and that no other process can get. */
static int bind_port(int *out_port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    *out_port = ntohs(address.sin_port);
    return fd;
}

#define MORE_THAN_THE_QUEUE 4

/* From now on the port neither accepts nor refuses connections. */
static void fill_queue(int listening_fd, int port, int fds[MORE_THAN_THE_QUEUE]) {
    struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    assert_int_equal(listen(listening_fd, 0), 0);
    for (int i = 0; i < MORE_THAN_THE_QUEUE; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fds[i], (const struct sockaddr *)&address, sizeof address);
    }
}

static void close_queued(const int fds[MORE_THAN_THE_QUEUE]) {
    for (int i = 0; i < MORE_THAN_THE_QUEUE; i++) {
        close(fds[i]);
    }
}

TEST(attempt_that_is_cut_off_hides_no_refusal) {
    struct fixture fixture = {.host = "127.0.0.1"};
    int fds[MORE_THAN_THE_QUEUE];
    assert_int_equal(event_loop_new(&fixture.loop, NULL), FAILURE_NONE);
    fixture.listening_fd = bind_port(&fixture.port);
    start_client(&fixture, duration_from_milliseconds(300));
    for (int i = 0; i < 100; i++) {
        event_loop_run_ready(fixture.loop);
    }
    fill_queue(fixture.listening_fd, fixture.port, fds);
    turn_until(&fixture, &fixture.connected);
    assert_int_equal(fixture.failure.code, FAILURE_TIMEOUT);
    assert_non_null(strstr(fixture.failure.message, "Connection refused (errno 111)"));
    close_queued(fds);
    tear_down(&fixture);
}

TEST(attempt_that_is_cut_off_is_told_where_there_was_no_other) {
    struct fixture fixture;
    open_port(&fixture); /* and nobody answers there */
    start_client(&fixture, SOON);
    turn_until(&fixture, &fixture.connected);
    assert_int_equal(fixture.failure.code, FAILURE_TIMEOUT);
    assert_non_null(strstr(fixture.failure.message, ", after 1 attempt: 127.0.0.1:"));
    assert_null(strstr(fixture.failure.message, "no attempt was finished"));
    tear_down(&fixture);
}

TEST(machine_that_only_refuses_is_given_up_early_when_that_is_asked_for) {
    struct fixture fixture;
    open_port(&fixture);
    close(fixture.listening_fd);
    start_client_with(&fixture, LONG, SOON);
    turn_until(&fixture, &fixture.connected);
    assert_int_equal(fixture.failure.code, FAILURE_TIMEOUT);
    assert_non_null(strstr(fixture.failure.message, " within 0.02 s, after "));
    assert_non_null(strstr(fixture.failure.message, "Connection refused (errno 111)"));
    store_client_free(fixture.client);
    assert_true(event_loop_free(fixture.loop));
}

TEST(machine_that_accepts_is_not_given_up_as_one_that_refuses) {
    struct fixture fixture = {.host = "127.0.0.1"};
    assert_int_equal(event_loop_new(&fixture.loop, NULL), FAILURE_NONE);
    fixture.listening_fd = bind_port(&fixture.port);
    start_client_with(&fixture, duration_from_milliseconds(500), duration_from_milliseconds(100));
    event_loop_run_ready(fixture.loop); /* the first attempts are refused */
    event_loop_run_ready(fixture.loop);
    assert_int_equal(listen(fixture.listening_fd, 5), 0);
    turn_until(&fixture, &fixture.connected);
    assert_non_null(strstr(fixture.failure.message, " within 0.5 s, after "));
    tear_down(&fixture);
}

/* As many machines have an address of the same network of their own. */
TEST(address_that_refuses_does_not_speak_for_one_that_is_slow) {
    struct fixture fixture = {.host = "127.0.0.2 127.0.0.1"};
    int fds[MORE_THAN_THE_QUEUE];
    assert_int_equal(event_loop_new(&fixture.loop, NULL), FAILURE_NONE);
    fixture.listening_fd = bind_port(&fixture.port);
    fill_queue(fixture.listening_fd, fixture.port, fds);
    start_client_with(&fixture, duration_from_milliseconds(600), SOON);
    turn_until(&fixture, &fixture.connected);
    assert_non_null(strstr(fixture.failure.message, " within 0.6 s, after "));
    close_queued(fds);
    tear_down(&fixture);
}

/* A client that tried it for 10 s would not get as far. */
TEST(address_that_leads_nowhere_does_not_hold_up_the_next) {
    struct fixture fixture = {.host = "127.0.0.1 127.0.0.2"};
    int fds[MORE_THAN_THE_QUEUE];
    assert_int_equal(event_loop_new(&fixture.loop, NULL), FAILURE_NONE);
    int nowhere = bind_port(&fixture.port);
    fill_queue(nowhere, fixture.port, fds);
    assert_int_equal(
        tcp_listener_open("127.0.0.2", fixture.port, &fixture.listening_fd, &fixture.port, NULL),
        FAILURE_NONE);
    serve(&fixture);
    start_client(&fixture, duration_from_milliseconds(9000));
    turn_until(&fixture, &fixture.connected);
    assert_int_equal(fixture.failure.code, FAILURE_NONE);
    close_queued(fds);
    close(nowhere);
    tear_down(&fixture);
}

/* Else many clients of a slow server would come again and again, and make it slower. */
FIXTURE_TEST_AFTER(server_that_accepts_is_not_left_for_another_address_before_long,
    open_port_at(&fixture, "127.0.0.1")) {
    fixture->host = "127.0.0.1 127.0.0.2";
    start_client(fixture, duration_from_milliseconds(600));
    turn_until(fixture, &fixture->connected);
    assert_non_null(strstr(fixture->failure.message, " after 1 attempt: "));
}

FIXTURE_TEST_AFTER(server_that_accepts_and_says_nothing_is_given_up, open_port(&fixture)) {
    start_client(fixture, SOON);
    turn_until(fixture, &fixture->connected);
    assert_int_equal(fixture->failure.code, FAILURE_TIMEOUT);
    assert_non_null(
        strstr(fixture->failure.message, "it accepts connections, but does not answer"));
}

FIXTURE_TEST_AFTER(handshake_with_a_wrong_nonce_is_tried_again, open_port(&fixture)) {
    start_client(fixture, LONG);
    close(accept_client(fixture)); /* the first connection is closed at once */
    close(shake_hands(fixture, 1));
    int fd = shake_hands(fixture, 0);
    turn_until(fixture, &fixture->connected);
    assert_int_equal(fixture->failure.code, FAILURE_NONE);
    close(fd);
}

FIXTURE_TEST_AFTER(answer_nobody_asked_for_ends_the_connection, open_port(&fixture)) {
    start_client(fixture, LONG);
    int fd = shake_hands(fixture, 0);
    turn_until(fixture, &fixture->connected);
    client_send(fd, "\x00", 1);
    turn_until(fixture, &fixture->lost);
    assert_int_equal(fixture->failure.code, FAILURE_PROTOCOL);
    close(fd);
}

FIXTURE_TEST(lost_server_fails_what_is_pending_and_is_reported) {
    struct answer active;
    struct answer queued;
    send_request(fixture,
        &(struct store_request){.operation = STORE_WAIT, .keys = &key, .count = 1}, LONG, &active);
    send_request(fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, LONG, &queued);
    turn_until(fixture, &fixture->connected);
    store_server_renew(fixture->server, NULL);
    turn_until(fixture, &fixture->lost);
    assert_int_equal(active.code, FAILURE_DISCONNECTED);
    assert_int_equal(queued.code, FAILURE_DISCONNECTED);
    assert_true(active.is_over && queued.is_over);
    assert_int_equal(fixture->failure.code, FAILURE_DISCONNECTED);
    char *expected = text_format("the store at 127.0.0.1:%d: ", fixture->port);
    assert_memory_equal(fixture->failure.message, expected, strlen(expected));
    free(expected);
}

TEST(freeing_cancels_what_is_pending) {
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

FIXTURE_TEST(client_may_be_freed_from_its_callbacks) {
    fixture->frees_client = true;
    struct answer answer;
    send_request(fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, LONG, &answer);
    turn_until(fixture, &fixture->connected);
    assert_null(fixture->client);
    assert_int_equal(answer.code, FAILURE_CANCELLED);
}

static uint32_t packets_sent(const struct fixture *fixture) {
    struct tcp_info info;
    socklen_t length = sizeof info;
    int fd = store_client_descriptor(fixture->client);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
    return info.tcpi_data_segs_out;
}

/* A host of thousands of nodes is woken once for both. Only a machine that stands still for 200 ms
 * between the two has them apart. */
FIXTURE_TEST(what_has_no_reply_arrives_with_the_next_request) {
    turn_until(fixture, &fixture->connected);
    uint32_t packets = 0;
    for (int i = 0; i < 20 && packets != 1; i++) {
        struct answer set;
        struct answer added;
        packets = packets_sent(fixture);
        send_request(fixture,
            &(struct store_request){.operation = STORE_SET, .key = key, .value = key}, LONG, &set);
        send_request(fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, LONG, &added);
        turn_until(fixture, &added.calls);
        assert_int_equal(set.calls, 1);
        assert_int_equal(added.reply.integer, 1);
        packets = packets_sent(fixture) - packets;
    }
    assert_int_equal(packets, 1);
}
