/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <netinet/tcp.h>

#include "host/fake_munge.h"
#include "host/remembered_log.h"
#include "host/store/store_admission.h"
#include "host/store_client_fixture.h"
#include "wire/store_proof_key.h"

FIXTURE_TEST(requests_sent_before_the_connection_stands_are_answered_in_order) {
    struct answer set;
    struct answer get;
    send_request(fixture,
        &(struct store_request){
            .operation = STORE_SET, .key = key, .value = slice_from_string("value")},
        LONG, &set);
    send_request(fixture, &(struct store_request){.operation = STORE_GET, .key = key}, LONG, &get);
    turn_until(fixture, &get.calls);
    assert_int_equal(set.calls, 1);
    assert_int_equal(set.code, FAILURE_NONE);
    assert_int_equal(set.reply.kind, STORE_REPLY_NONE);
    assert_string_equal(get.text, "value");
}

FIXTURE_TEST(keys_carry_a_slash_unless_raw) {
    struct answer answer;
    ask(fixture,
        &(struct store_request){
            .operation = STORE_SET, .key = key, .value = slice_from_string("v")},
        LONG, &answer);
    answer = (struct answer){0};
    store_client_send(
        fixture->client, &(struct store_client_call){
                             .request = {.operation = STORE_GET, .key = slice_from_string("/k")},
                             .is_raw = true,
                             .timeout = LONG,
                             .done = remember,
                             .context = &answer});
    turn_until(fixture, &answer.calls);
    assert_string_equal(answer.text, "v");
}

FIXTURE_TEST(barrier_that_times_out_is_cancelled_too) {
    struct answer answer;
    ask(fixture, &(struct store_request){.operation = STORE_BARRIER, .key = key, .number = 2}, SOON,
        &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    ask(fixture, &(struct store_request){.operation = STORE_BARRIER, .key = key, .number = 2}, LONG,
        &answer);
    assert_int_equal(answer.code, FAILURE_NONE);
}

FIXTURE_TEST(request_behind_a_long_wait_may_time_out_alone) {
    struct answer wait;
    struct answer behind;
    send_request(fixture,
        &(struct store_request){.operation = STORE_WAIT, .keys = &key, .count = 1}, LONG, &wait);
    send_request(fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, SOON, &behind);
    turn_until(fixture, &behind.calls);
    assert_int_equal(behind.code, FAILURE_TIMEOUT);
    assert_int_equal(wait.calls, 0);
    int other = client_open(fixture->port);
    client_set(other, "/k", "v");
    turn_until(fixture, &wait.calls);
    assert_int_equal(wait.code, FAILURE_NONE);
    close(other);
}

FIXTURE_TEST_AFTER(silent_server_costs_a_request_its_deadline_and_no_more, open_port(&fixture)) {
    start_client(fixture, LONG);
    int fd = shake_hands(fixture, 0);
    turn_until(fixture, &fixture->connected);
    struct answer answer;
    ask(fixture, &(struct store_request){.operation = STORE_ADD, .key = key, .number = 1}, SOON,
        &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    assert_true(answer.is_over);
    turn_until(fixture, &fixture->lost);
    assert_int_equal(fixture->failure.code, FAILURE_TIMEOUT);
    client_expect_close(fixture->loop, fd);
    ask(fixture, &(struct store_request){.operation = STORE_COUNT_KEYS}, LONG, &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    assert_true(answer.is_over);
    close(fd);
}

FIXTURE_TEST_AFTER(release_that_crosses_the_cancel_counts, open_port(&fixture)) {
    start_client(fixture, LONG);
    int fd = shake_hands(fixture, 0);
    struct answer answer;
    send_request(fixture,
        &(struct store_request){.operation = STORE_WAIT, .keys = &key, .count = 1}, SOON, &answer);
    uint8_t wait[19];
    client_expect(fixture->loop, fd, "\x06\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0/k", sizeof wait);
    client_expect_byte(fixture->loop, fd, STORE_CANCEL_WAIT);
    client_send(fd, "\x00\x01", 2);
    turn_until(fixture, &answer.calls);
    assert_int_equal(answer.code, FAILURE_NONE);
    assert_int_equal(fixture->lost, 0);
    close(fd);
}

/* Store client dialling. */

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

/* The kernel tells more than <netinet/tcp.h> knows. */
struct told_of_connection {
    struct tcp_info known;
    uint64_t rates[2];
    uint64_t bytes[2];
    uint32_t packets[2];
    uint32_t unsent;
    uint32_t shortest_way;
    uint32_t packets_of_data_received;
    uint32_t packets_of_data_sent;
};

static uint32_t packets_sent(const struct fixture *fixture) {
    struct told_of_connection info;
    socklen_t length = sizeof info;
    int fd = store_client_descriptor(fixture->client);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
    assert_int_equal(length, sizeof info);
    return info.packets_of_data_sent;
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

/* Clients and servers of a store that prove themselves by munge, whose daemons are made up. */

/* A server and a client. */
struct meeting {
    struct fixture fixture;
    struct temporary_tree tree;
    struct munge_identity *identities[2];
    struct plain_key plain[2];
    struct store_key tokens[2];
    const struct store_key *keys[2];
    struct remembered_log log;
};

/* The name of a made-up daemon's socket, "token", or NULL: no proof. */
static void equip(struct meeting *meeting, int side, const char *name) {
    if (name == NULL) {
        return;
    }
    if (strcmp(name, "token") == 0) {
        meeting->tokens[side] = plain_store_key(&meeting->plain[side]);
        meeting->keys[side] = &meeting->tokens[side];
        return;
    }
    char *socket = fake_munge_socket(&meeting->tree, name);
    const struct munge_identity_settings settings = {
        .library = FAKE_MUNGE, .socket = socket, .job = "job", .patience = LONG};
    assert_int_equal(
        munge_identity_open(&settings, &meeting->identities[side], NULL), FAILURE_NONE);
    free(socket);
    meeting->keys[side] = munge_identity_key(meeting->identities[side]);
}

static void meet(struct meeting *meeting, const char *server, const char *client) {
    *meeting = (struct meeting){0};
    temporary_tree_init(&meeting->tree);
    remembered_log_init(&meeting->log);
    equip(meeting, 0, server);
    equip(meeting, 1, client);
    struct fixture *fixture = &meeting->fixture;
    open_port(fixture);
    struct store_server_settings settings = {.log = &meeting->log.log, .key = meeting->keys[0]};
    assert_int_equal(
        store_server_new(fixture->loop, fixture->listening_fd, &settings, &fixture->server, NULL),
        FAILURE_NONE);
    struct store_client_settings client_settings = {.host = fixture->host,
        .port = fixture->port,
        .connect_timeout = LONG,
        .key = meeting->keys[1],
        .connected = connected,
        .lost = lost,
        .context = fixture};
    fixture->client = store_client_new(fixture->loop, &client_settings);
    turn_until(fixture, &fixture->connected);
}

static void part(struct meeting *meeting) {
    tear_down(&meeting->fixture);
    munge_identity_free(meeting->identities[0]);
    munge_identity_free(meeting->identities[1]);
    text_clear(&meeting->log.text);
    temporary_tree_clear(&meeting->tree);
}

TEST(one_user_is_served) {
    struct meeting meeting;
    meet(&meeting, "red.7", "red.7");
    assert_int_equal(meeting.fixture.failure.code, FAILURE_NONE);
    struct answer answer;
    ask(&meeting.fixture,
        &(struct store_request){.operation = STORE_ADD, .key = slice_from_string("k"), .number = 5},
        LONG, &answer);
    assert_int_equal(answer.reply.integer, 5);
    part(&meeting);
}

TEST(all_others_end_at_once_with_words) {
    static const struct {
        const char *server;
        const char *client;
        const char *words;
        const char *logged; /* by the server; NULL: nothing */
    } cases[] = {
        {"red.7", "red.8", "run all nodes as the same user", "is another user's (user 8, and this"},
        {"red.7", "blue.7", "same munge.key", "has another munge.key (made-up munge objects)"},
        {"red.7", "token", "this node has a job token", NULL},
        {"red.7", NULL, "in a container mount /run/munge", NULL},
        {"token", "red.7", "it wants a job token", NULL},
        {NULL, "red.7", "it wants no proof by munge", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct meeting meeting;
        meet(&meeting, cases[i].server, cases[i].client);
        assert_int_equal(meeting.fixture.failure.code, FAILURE_INVALID);
        if (strstr(meeting.fixture.failure.message, cases[i].words) == NULL) {
            fail_msg("%s", meeting.fixture.failure.message);
        }
        assert_true(cases[i].logged == NULL || remembered_log_has(&meeting.log, cases[i].logged));
        part(&meeting);
    }
}

/* A stranger who leaves, and a server that ends, while munge is asked. */
TEST(a_client_may_vanish_while_munge_is_asked) {
    static const uint8_t hello[33] = {0xf0};
    static const uint8_t credential[] = {0xf2, 4, 0, 0, 0, 'n', 'o', 'n', 'e'};
    struct meeting meeting;
    meet(&meeting, "red.7", "red.7");
    struct fixture *fixture = &meeting.fixture;
    for (int i = 0; i < 20; i++) {
        int stranger = client_open(fixture->port);
        client_send(stranger, hello, sizeof hello);
        client_send(stranger, credential, sizeof credential);
        close(stranger);
        event_loop_run_ready(fixture->loop);
    }
    int last = client_open(fixture->port);
    client_send(last, hello, sizeof hello);
    client_send(last, credential, sizeof credential);
    event_loop_run_ready(fixture->loop);
    part(&meeting);
    close(last);
}

/* A QUEUE_POP that rests at the server while its client asks other things. */

#define QUEUE "/own/queue"
#define OTHER_QUEUE "/own/other"

static void serve_own_keys(struct fixture *fixture) {
    open_port(fixture);
    assert_int_equal(
        store_server_new(fixture->loop, fixture->listening_fd,
            &(struct store_server_settings){.own_prefix = "/own/"}, &fixture->server, NULL),
        FAILURE_NONE);
    start_client(fixture, LONG);
}

struct item {
    int calls;
    enum failure_code code;
    int64_t length;
    char text[64];
};

static void take_item(void *context, const struct store_client_result *result) {
    struct item *item = context;
    item->calls++;
    item->code = result->code;
    if (result->code == FAILURE_NONE) {
        const struct slice front = result->reply->pop.front;
        item->length = result->reply->pop.length;
        snprintf(
            item->text, sizeof item->text, "%.*s", (int)front.length, (const char *)front.data);
    }
}

static void rest_at(struct fixture *fixture, const char *queue, struct item *item) {
    *item = (struct item){0};
    store_client_send(fixture->client,
        &(struct store_client_call){
            .request = {.operation = STORE_QUEUE_POP, .key = slice_from_string(queue)},
            .is_raw = true,
            .rests = true,
            .done = take_item,
            .context = item});
}

static void rest(struct fixture *fixture, struct item *item) {
    rest_at(fixture, QUEUE, item);
}

static void add(struct fixture *fixture, int64_t expected) {
    struct answer answer;
    ask(fixture, &(struct store_request){.operation = STORE_ADD, .key = key, .number = 1}, LONG,
        &answer);
    assert_int_equal(answer.code, FAILURE_NONE);
    assert_int_equal(answer.reply.integer, expected);
}

static void set(struct fixture *fixture, struct answer *answer) {
    send_request(fixture,
        &(struct store_request){
            .operation = STORE_SET, .key = key, .value = slice_from_string("7")},
        LONG, answer);
}

/* The server puts a word into the queue, and the call that rests gets it, once. */
static void tell(struct fixture *fixture, struct item *item, const char *word) {
    store_server_tell(fixture->server, QUEUE, word);
    turn_until(fixture, &item->calls);
    assert_int_equal(item->calls, 1);
    assert_string_equal(item->text, word);
}

FIXTURE_TEST_AFTER(what_rests_holds_up_nothing_and_gets_its_item, serve_own_keys(&fixture)) {
    struct item item;
    struct answer answer;
    rest(fixture, &item);
    for (int64_t i = 1; i <= 50; i++) {
        add(fixture, i);
    }
    set(fixture, &answer);
    turn_until(fixture, &answer.calls);
    add(fixture, 8);
    assert_int_equal(item.calls, 0);
    tell(fixture, &item, "word");
    rest(fixture, &item);
    add(fixture, 9);
    tell(fixture, &item, "next");
}

/* Items come at any moment: each is given once, in their order, and no reply is taken for another.
 */
FIXTURE_TEST_AFTER(items_and_replies_are_never_mixed_up, serve_own_keys(&fixture)) {
    struct item item;
    int64_t count = 0;
    rest(fixture, &item);
    for (int i = 0; i < 300; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        if (i % 3 != 0) {
            add(fixture, ++count);
        }
        store_server_tell(fixture->server, QUEUE, text);
        if (i % 2 == 0) {
            add(fixture, ++count);
        }
        if (i % 5 == 0) {
            (void)store_client_look(fixture->client);
        }
        turn_until(fixture, &item.calls);
        assert_int_equal(item.calls, 1);
        assert_string_equal(item.text, text);
        rest(fixture, &item);
    }
}

FIXTURE_TEST_AFTER(signs_of_life_are_answered_while_something_rests, serve_own_keys(&fixture)) {
    struct item item;
    rest(fixture, &item);
    add(fixture, 1);
    for (int i = 0; i < 40; i++) { /* more than may be unanswered */
        (void)store_client_look(fixture->client);
        for (int turns = 0; turns < i % 4; turns++) {
            event_loop_run_ready(fixture->loop);
        }
    }
    add(fixture, 2);
    (void)store_client_look(fixture->client);
    tell(fixture, &item, "word");
    assert_int_equal(fixture->lost, 0);
}

/* The server would forget a wait for the sake of a QUEUE_POP behind it. */
FIXTURE_TEST_AFTER(what_rests_comes_back_after_a_wait, serve_own_keys(&fixture)) {
    struct item item;
    struct answer answer;
    const struct store_request wait = {.operation = STORE_WAIT, .keys = &key, .count = 1};
    rest(fixture, &item);
    ask(fixture, &wait, SOON, &answer);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    send_request(fixture, &wait, LONG, &answer);
    for (int i = 0; i < 20; i++) {
        event_loop_run_ready(fixture->loop);
    }
    int fd = client_open(fixture->port);
    client_set(fd, "/k", "v");
    turn_until(fixture, &answer.calls);
    assert_int_equal(answer.code, FAILURE_NONE);
    tell(fixture, &item, "word");
    close(fd);
}

FIXTURE_TEST_AFTER(a_later_one_takes_the_place_and_the_end_fails_it, serve_own_keys(&fixture)) {
    struct item first;
    struct item second;
    rest(fixture, &first);
    add(fixture, 1);
    rest(fixture, &second);
    turn_until(fixture, &first.calls);
    assert_int_equal(first.code, FAILURE_CANCELLED);
    tell(fixture, &second, "of the same queue");
    rest(fixture, &second);
    add(fixture, 2);
    store_server_renew(fixture->server, NULL);
    turn_until(fixture, &second.calls);
    assert_int_equal(second.code, FAILURE_DISCONNECTED);
}

/* What comes into the first queue is nobody's from then on, whenever it comes. */
FIXTURE_TEST_AFTER(one_of_another_queue_is_told_of_that_queue_alone, serve_own_keys(&fixture)) {
    struct item first;
    struct item second;
    for (int64_t i = 1; i <= 8; i++) {
        rest(fixture, &first);
        if (i % 2 == 0) {
            add(fixture, i / 2);
        }
        if (i % 3 == 0) {
            tell(fixture, &first, "to the first");
        }
        if (i % 4 < 2) {
            store_server_tell(fixture->server, QUEUE, "to nobody");
        }
        rest_at(fixture, OTHER_QUEUE, &second);
        store_server_tell(fixture->server, OTHER_QUEUE, "to the second");
        turn_until(fixture, &second.calls);
        assert_string_equal(second.text, "to the second");
        assert_int_equal(first.calls, 1);
        store_server_tell(fixture->server, QUEUE, NULL);
        assert_int_equal(fixture->lost, 0);
    }
}

FIXTURE_TEST_AFTER(what_rests_ends_with_its_client, serve_own_keys(&fixture)) {
    struct item item;
    rest(fixture, &item);
    add(fixture, 1);
    store_client_free(fixture->client);
    fixture->client = NULL;
    assert_int_equal(item.calls, 1);
    assert_int_equal(item.code, FAILURE_CANCELLED);
}

/* A server that answers at once is told of, instead of being asked again for ever. */
FIXTURE_TEST(a_server_that_keeps_nothing_answers_that_there_is_none) {
    struct item item;
    rest(fixture, &item);
    turn_until(fixture, &item.calls);
    assert_int_equal(item.code, FAILURE_NONE);
    assert_int_equal(item.length, 0);
}
