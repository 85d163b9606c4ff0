/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <malloc.h>
#include <unistd.h>

#include "core/store/store_presence.h"
#include "host/network/tcp_listener.h"
#include "host/network/tcp_stream.h"
#include "host/store/store_peers.h"
#include "host/store_peers_fixture.h"
#include "wire/store_proof_key.h"

FIXTURE_TEST_AFTER(clients_are_counted_until_they_leave, set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    int first = add_client(fixture);
    int second = add_client(fixture);
    assert_int_equal(fixture->count, 2);
    close(first);
    while (fixture->count > 1) {
        event_loop_run_ready(fixture->loop);
    }
    store_peers_close_all(fixture->peers);
    assert_int_equal(fixture->count, 0);
    client_expect_close(fixture->loop, second);
    close(second);
}

FIXTURE_TEST_AFTER(
    lines_about_hostile_clients_are_held_back, set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    for (int i = 0; i < 200; i++) {
        int client = add_client(fixture);
        client_send(client, "\xff", 1);
        event_loop_run_ready(fixture->loop);
        close(client);
    }
    assert_in_range(fixture->log.count, 1, 60);
}

FIXTURE_TEST_AFTER(
    catching_up_carries_out_what_has_arrived, set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    int first = add_client(fixture);
    int second = add_client(fixture);
    client_set(first, "/k", "v");
    store_peers_catch_up(fixture->peers);
    client_expect_value(fixture->loop, second, "/k", "v");
    close(first);
    close(second);
}

FIXTURE_TEST_AFTER(
    renewal_closes_those_who_wait_for_what_is_forgotten, set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    int for_kept = add_client(fixture);
    int for_gone = add_client(fixture);
    client_wait(for_kept, "/kept/k");
    client_wait(for_gone, "/gone/k");
    store_peers_catch_up(fixture->peers);
    store_peers_renew_table(fixture->peers, "/kept/");
    client_expect_close(fixture->loop, for_gone);
    client_set(for_kept, "/kept/k", "v");
    client_expect_byte(fixture->loop, for_kept, STORE_STOP_WAITING);
    close(for_kept);
    close(for_gone);
}

FIXTURE_TEST_AFTER(client_can_ask_whether_presence_is_served, set_up_presence(&fixture, false)) {
    int client = add_client(fixture);
    client_expect_value(fixture->loop, client, "/p/served", "1");
    store_peers_renew_table(fixture->peers, "/kept/");
    client_expect_value(fixture->loop, client, "/p/served", "1");
    close(client);
}

FIXTURE_TEST_AFTER(renewal_does_not_forget_who_is_there, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    client_set(node, "/p/a", "1");
    await_news(fixture, 1);
    store_peers_renew_table(fixture->peers, "/kept/");
    close(node);
    await_news(fixture, 2);
    expect_news(fixture, "a beats 1\na is gone 1\n");
}

FIXTURE_TEST_AFTER(stalled_client_is_dropped_by_its_name, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    int other = add_client(fixture);
    client_set(node, "/p/a", "1");
    client_set(other, "/p/b", "2");
    await_news(fixture, 2);
    store_peers_drop(fixture->peers, "nobody");
    store_peers_drop(fixture->peers, "a");
    store_peers_drop(fixture->peers, "a");
    expect_news(fixture, "a beats 1\nb beats 2\na is silent\na is gone 1\n");
    assert_true(remembered_log_has(&fixture->log, "stalled"));
    client_expect_close(fixture->loop, node);
    client_expect_value(fixture->loop, other, "/p/b", "2");
    close(node);
    close(other);
}

FIXTURE_TEST_AFTER(connections_are_told_as_they_come_and_go, set_up_presence(&fixture, true)) {
    int first = add_client(fixture);
    int second = add_client(fixture);
    client_set(second, "/p/a", "1");
    await_news(fixture, 3);
    close(second);
    await_news(fixture, 5);
    store_peers_close_all(fixture->peers);
    expect_news(fixture,
        "1 connections\n2 connections\na beats 1\na is gone 1\n1 connections\n0 connections\n");
    close(first);
}

TEST(ending_the_store_tells_nothing) {
    struct fixture fixture;
    set_up_presence(&fixture, false);
    int node = add_client(&fixture);
    client_set(node, "/p/a", "1");
    await_news(&fixture, 1);
    store_peers_free(fixture.peers);
    assert_true(event_loop_free(fixture.loop));
    expect_news(&fixture, "a beats 1\n");
    close(node);
    text_clear(&fixture.log.text);
}

FIXTURE_TEST_AFTER(
    renewal_does_not_wait_for_clients_that_do_not_read, set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    enum { TIMES = 60, LENGTH = 200000 };
    static uint8_t value[LENGTH];
    int slow = add_client(fixture);
    int other = add_client(fixture);
    set_big(fixture, other, value, LENGTH);
    ask_for_much_and_count(slow, TIMES, "/n");
    turn(fixture);
    store_peers_catch_up(fixture->peers);
    store_peers_renew_table(fixture->peers, "/kept/");
    client_expect_close(fixture->loop, slow);
    assert_true(remembered_log_has(&fixture->log, "has not read its replies"));
    client_expect_value(fixture->loop, other, "/n", "");
    close(slow);
    close(other);
}

/* Store peer. */

FIXTURE_TEST_AFTER(presence_ends_with_its_connection, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    int other = add_client(fixture);
    client_set(node, "/p/a", "1");
    client_set(node, "/p/b", "2");
    client_set(node, "/p/a", "3");
    await_news(fixture, 3);
    expect_news(fixture, "a beats 1\nb beats 2\na beats 3\n");
    client_expect_value(fixture->loop, other, "/p/a", "3");
    close(node);
    await_news(fixture, 2);
    expect_news(fixture, "a is gone 3\nb is gone 2\n");
    client_expect_value(fixture->loop, other, "/p/a", "");
    client_expect_value(fixture->loop, other, "/p/b", "");
    close(other);
}

FIXTURE_TEST_AFTER(presence_ends_with_a_breach_of_the_protocol, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    client_set(node, "/p/a", "1");
    client_send(node, "\xff", 1);
    await_news(fixture, 2);
    expect_news(fixture, "a beats 1\na is gone 1\n");
    client_expect_close(fixture->loop, node);
    close(node);
}

FIXTURE_TEST_AFTER(goodbye_is_no_loss, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    client_set(node, "/p/a", "1");
    client_ask(
        node, &(struct store_request){.operation = STORE_DELETE, .key = slice_from_string("/p/a")});
    close(node);
    while (fixture->count > 0) {
        event_loop_run_ready(fixture->loop);
    }
    expect_news(fixture, "a beats 1\n");
}

/* A released waiter has a broken connection, so it ends while the effects of the SET are carried
 * out. A later effect still borrows its presence key, so the key must be deleted only after
 * that. */
FIXTURE_TEST_AFTER(
    presence_may_end_while_a_request_is_carried_out, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    int other = add_client(fixture);
    client_set(node, "/p/a", "1");
    client_wait(node, "/k");
    await_news(fixture, 1);
    shutdown(node, SHUT_RD); /* the reply cannot be delivered */
    client_set(other, "/k", "v");
    client_expect_value(fixture->loop, other, "/p/a", "");
    expect_news(fixture, "a beats 1\na is gone 1\n");
    close(node);
    close(other);
}

/* Store debtors. */

TEST(unfinished_requests_share_the_memory_limit) {
    struct fixture fixture;
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = 20000;
    set_up(&fixture, &limits);
    uint8_t half[9 + 8000] = {STORE_SET, 0x00, 0x20}; /* a key of 8192 bytes */
    int clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = add_client(&fixture);
        client_send(clients[i], half, sizeof half);
        event_loop_run_ready(fixture.loop);
    }
    assert_int_equal(fixture.count, 2);
    assert_true(remembered_log_has(&fixture.log, "memory"));
    for (int i = 0; i < 3; i++) {
        close(clients[i]);
    }
    tear_down(&fixture);
}

/* The buffers of those who do not read are given up for a client that writes. */
TEST(room_is_made_for_a_value_by_closing_who_holds_most) {
    enum { TIMES = 40, LENGTH = 1 << 20 };
    struct fixture fixture;
    static uint8_t value[4 * LENGTH];
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = (size_t)20 << 20;
    set_up(&fixture, &limits);
    int slow[3];
    int other = add_client(&fixture);
    set_big(&fixture, other, value, sizeof value);
    for (int i = 0; i < 3; i++) {
        slow[i] = add_client(&fixture);
        ask_for_much_and_count(slow[i], TIMES, "/n");
        turn(&fixture);
    }
    client_expect_ping(fixture.loop, other, 2);
    set_big(&fixture, other, value, sizeof value);
    client_ask(other,
        &(struct store_request){
            .operation = STORE_APPEND, .key = slice_from_string("/big"), .value = {value, 100000}});
    client_expect_ping(fixture.loop, other, 3);
    assert_in_range(fixture.count, 1, 3);
    assert_true(remembered_log_has(&fixture.log, "holds most of it"));
    for (int i = 0; i < 3; i++) {
        close(slow[i]);
    }
    close(other);
    tear_down(&fixture);
}

/* Sends the first `sent` bytes of a SET to a value of `length` bytes, or as many as it can before
 * it is closed. */
static void begin_big(struct fixture *fixture, int client, size_t length, size_t sent) {
    static uint8_t value[8 << 20];
    struct bytes request = {0};
    assert_int_equal(store_request_encode(&(struct store_request){.operation = STORE_SET,
                                              .key = slice_from_string("/big"),
                                              .value = {value, length}},
                         &request),
        FAILURE_NONE);
    size_t wanted = sent < request.length ? sent : request.length;
    ssize_t now = 0;
    for (size_t done = 0; done < wanted && (now >= 0 || errno == EAGAIN);) {
        now = send(client, request.data + done, wanted - done, MSG_NOSIGNAL);
        done += now > 0 ? (size_t)now : 0;
        event_loop_run_ready(fixture->loop);
    }
    bytes_clear(&request);
    turn(fixture);
}

TEST(room_is_made_for_a_request_that_is_being_read) {
    enum { MEBIBYTE = 1 << 20 };
    struct fixture fixture;
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = (size_t)14 * MEBIBYTE;
    set_up(&fixture, &limits);
    int slow = add_client(&fixture);
    int other = add_client(&fixture);
    begin_big(&fixture, slow, 8 * MEBIBYTE, 15 * MEBIBYTE / 2);
    begin_big(&fixture, other, 7 * MEBIBYTE, SIZE_MAX);
    client_expect_ping(fixture.loop, other, 1);
    client_expect_close(fixture.loop, slow);
    assert_true(remembered_log_has(&fixture.log, "this client holds most of it"));
    close(slow);
    close(other);
    tear_down(&fixture);
}

TEST(a_request_that_is_being_read_makes_no_room_among_smaller_ones) {
    enum { MEBIBYTE = 1 << 20 };
    struct fixture fixture;
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = (size_t)9 * MEBIBYTE;
    set_up(&fixture, &limits);
    int small[2];
    int greedy = add_client(&fixture);
    for (int i = 0; i < 2; i++) {
        small[i] = add_client(&fixture);
        begin_big(&fixture, small[i], 2 * MEBIBYTE, MEBIBYTE);
    }
    begin_big(&fixture, greedy, 8 * MEBIBYTE, SIZE_MAX);
    client_expect_close(fixture.loop, greedy);
    assert_int_equal(fixture.count, 2);
    assert_true(remembered_log_has(&fixture.log, "unfinished input and unread output would pass"));
    for (int i = 0; i < 2; i++) {
        close(small[i]);
    }
    close(greedy);
    tear_down(&fixture);
}

/* Also after many clients that were hostile. */
TEST(what_fills_the_table_explains_why_buffers_have_no_room) {
    enum { MEBIBYTE = 1 << 20 };
    struct fixture fixture;
    static uint8_t value[15 * MEBIBYTE / 2];
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = (size_t)14 * MEBIBYTE;
    set_up(&fixture, &limits);
    for (int i = 0; i < 200; i++) {
        int client = add_client(&fixture);
        client_send(client, "\xff", 1);
        event_loop_run_ready(fixture.loop);
        close(client);
    }
    int owner = add_client(&fixture);
    int greedy = add_client(&fixture);
    set_big(&fixture, owner, value, sizeof value);
    begin_big(&fixture, greedy, 8 * MEBIBYTE, SIZE_MAX);
    client_expect_close(fixture.loop, greedy);
    assert_true(remembered_log_has(&fixture.log, ": 1 keys take 7.5 MiB of"));
    assert_true(remembered_log_has(&fixture.log, "--store-memory gives it more"));
    close(owner);
    close(greedy);
    tear_down(&fixture);
}

static int times_given_back;

/* In the place of the C library's. */
int malloc_trim(size_t kept) {
    (void)kept;
    times_given_back++;
    return 1;
}

TEST(memory_is_given_back_once_when_much_was_freed) {
    struct fixture fixture;
    static uint8_t value[20 << 20];
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.value_bytes = sizeof value;
    set_up(&fixture, &limits);
    int client = add_client(&fixture);
    set_big(&fixture, client, value, 10 << 20); /* of which little is freed */
    client_ask(client,
        &(struct store_request){.operation = STORE_DELETE, .key = slice_from_string("/big")});
    turn(&fixture);
    set_big(&fixture, client, value, sizeof value);
    times_given_back = 0;
    client_ask(client,
        &(struct store_request){.operation = STORE_DELETE, .key = slice_from_string("/big")});
    while (times_given_back == 0) {
        event_loop_run_ready(fixture.loop);
    }
    turn(&fixture);
    assert_int_equal(times_given_back, 1);
    close(client);
    tear_down(&fixture);
}

/* Store lookout. */

#define SILENCE 2 /* seconds */

/* A client as add_client, over TCP. */
static int add_tcp_client(struct fixture *fixture) {
    int listening_fd;
    int port;
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &listening_fd, &port, NULL), FAILURE_NONE);
    int client = client_open(port);
    int fd;
    do {
        fd = accept4(listening_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (fd < 0);
    close(listening_fd);
    union tcp_address address = {.ipv4 = {.sin_family = AF_INET}};
    tcp_silence_watch(fd, duration_from_seconds(SILENCE)); /* as the server does: it is probed */
    store_peers_add(fixture->peers, fd, &address);
    return client;
}

static void give_sign(int client) {
    client_ask(
        client, &(struct store_request){.operation = STORE_PING, .nonce = STORE_SIGN_OF_LIFE});
}

static bool has_answer(struct fixture *fixture, int client) {
    char byte;
    turn(fixture);
    return recv(client, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

FIXTURE_TEST_AFTER(a_sign_of_life_alone_waits_for_the_next_look, set_up_presence(&fixture, false)) {
    const uint32_t answer = STORE_SIGN_OF_LIFE;
    int node = add_tcp_client(fixture);
    client_set(node, "/p/a", "1");
    give_sign(node);
    client_expect(fixture->loop, node, &answer, sizeof answer); /* now the server knows its kind */
    give_sign(node);
    assert_false(has_answer(fixture, node));
    (void)store_lookout_look(fixture->peers);
    client_expect(NULL, node, &answer, sizeof answer);
    give_sign(node);
    client_ask(node, &(struct store_request){.operation = STORE_COUNT_KEYS}); /* one byte */
    client_expect(fixture->loop, node, &answer, sizeof answer);
    client_expect(fixture->loop, node, "\2\0\0\0\0\0\0\0", 8);
    close(node);
}

/* The end of a request may be shorter than a sign of life. */
FIXTURE_TEST_AFTER(a_request_that_comes_in_parts_is_served_beside_signs_of_life,
    set_up_presence(&fixture, false)) {
    const uint32_t answer = STORE_SIGN_OF_LIFE;
    struct bytes bytes = {0};
    const struct store_request add = {
        .operation = STORE_ADD, .key = slice_from_string("/k"), .number = 1};
    int node = add_tcp_client(fixture);
    client_set(node, "/p/a", "1");
    give_sign(node);
    client_expect(fixture->loop, node, &answer, sizeof answer);
    assert_int_equal(store_request_encode(&add, &bytes), FAILURE_NONE);
    client_send(node, bytes.data, bytes.length - 1);
    assert_false(has_answer(fixture, node));
    client_send(node, bytes.data + bytes.length - 1, 1);
    client_expect(fixture->loop, node, "\1\0\0\0\0\0\0\0", 8);
    bytes_clear(&bytes);
    close(node);
}

/* How long the kernel lets the machine of the only client that is there be silent. */
static int kernels_patience(struct fixture *fixture) {
    int milliseconds = -1;
    socklen_t length = sizeof milliseconds;
    const struct store_peer *peer = fixture->peers->first;
    assert_non_null(peer);
    assert_int_equal(
        getsockopt(peer->stream.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &length), 0);
    return milliseconds;
}

/* It had given signs of life, and gives none any more. */
static int add_calm_client(struct fixture *fixture) {
    const uint32_t answer = STORE_SIGN_OF_LIFE;
    int node = add_tcp_client(fixture);
    client_set(node, "/p/a", "1");
    give_sign(node);
    client_expect(fixture->loop, node, &answer, sizeof answer);
    assert_true(fixture->peers->first->is_looked_at);
    (void)store_lookout_look(fixture->peers);
    assert_true(fixture->peers->first->is_looked_at);
    while (fixture->peers->first->is_looked_at) {
        usleep(100000);
        event_loop_run_ready(fixture->loop);
        (void)store_lookout_look(fixture->peers);
    }
    return node;
}

FIXTURE_TEST_AFTER(
    who_gives_no_more_signs_is_left_to_the_kernel, set_up_presence(&fixture, false)) {
    fixture->peers->silence_timeout = duration_from_seconds(SILENCE);
    int node = add_calm_client(fixture);
    assert_int_equal(kernels_patience(fixture), SILENCE * 1000 + 500);
    client_ask(node, &(struct store_request){.operation = STORE_COUNT_KEYS});
    client_expect(fixture->loop, node, "\2\0\0\0\0\0\0\0", 8);
    assert_false(fixture->peers->first->is_looked_at);
    assert_string_equal(text_string(&fixture->news), "a beats 1\n");
    close(node);
}

FIXTURE_TEST_AFTER(the_next_sign_ends_the_calm_at_once, set_up_presence(&fixture, false)) {
    const uint32_t answer = STORE_SIGN_OF_LIFE;
    fixture->peers->silence_timeout = duration_from_seconds(SILENCE);
    int node = add_calm_client(fixture);
    give_sign(node);
    client_expect(fixture->loop, node, &answer, sizeof answer);
    assert_true(fixture->peers->first->is_looked_at);
    assert_int_equal(kernels_patience(fixture), 3 * SILENCE * 1000);
    give_sign(node);
    assert_false(has_answer(fixture, node));
    close(node);
}

/* Closing the last ones of a list, the first ones and those between. */
FIXTURE_TEST_AFTER(clients_come_and_go_while_they_are_looked_at, set_up_presence(&fixture, false)) {
    enum { COUNT = 5 };
    const int order[COUNT] = {2, 0, 4, 3, 1};
    int nodes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        const char key[] = {'/', 'p', '/', (char)('a' + i), '\0'};
        nodes[i] = add_tcp_client(fixture);
        client_set(nodes[i], key, "1");
        await_news(fixture, (size_t)i + 1);
    }
    text_clear(&fixture->news);
    for (int i = 0; i < COUNT; i++) {
        close(nodes[order[i]]);
        await_news(fixture, 1);
        char gone[] = {(char)('a' + order[i]), '\0'};
        assert_true(text_starts_with(text_string(&fixture->news), gone));
        text_clear(&fixture->news);
        turn(fixture);
        (void)store_lookout_look(fixture->peers);
        int count = 0;
        for (const struct store_peer *peer = fixture->peers->looked_at; peer != NULL;
             peer = peer->looked_at_next) {
            count++;
        }
        assert_int_equal(count, COUNT - 1 - i);
    }
}

/* Store probation. */

#define MAXIMUM 8
#define MOST 16

struct scene {
    struct fixture fixture;
    struct plain_key plain;
    struct store_key key;
    int clients[MOST];
    int count;
};

static void begin(struct scene *scene, const struct store_server_settings *wanted) {
    *scene = (struct scene){.plain = {.token = 7}};
    struct fixture *fixture = &scene->fixture;
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    scene->key = plain_store_key(&scene->plain);
    struct store_server_settings settings = *wanted;
    settings.log = &fixture->log.log;
    settings.key = &scene->key;
    settings.unproven_maximum = MAXIMUM;
    fixture->peers = store_peers_new(fixture->loop, &settings);
}

static void end(struct scene *scene) {
    for (int i = 0; i < scene->count; i++) {
        close(scene->clients[i]);
    }
    tear_down(&scene->fixture);
}

/* A client of the machine with this number. */
static int come(struct scene *scene, uint32_t machine) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    const union tcp_address address = {
        .ipv4 = {.sin_family = AF_INET, .sin_addr = {htonl(0x0a000000 + machine)}}};
    store_peers_add(scene->fixture.peers, ends[0], &address);
    scene->clients[scene->count++] = ends[1];
    return ends[1];
}

static bool is_closed(struct scene *scene, int client) {
    char byte;
    turn(&scene->fixture);
    return recv(client, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void prove(struct scene *scene, int client) {
    struct store_proof proof = {0};
    uint8_t answer[STORE_PROOF_REPLY_BYTES];
    client_ask(client, &(struct store_request){.operation = STORE_VALIDATE});
    struct store_proof_step step = store_proof_begin(&proof, &scene->key);
    client_send(client, step.reply, step.reply_length);
    for (size_t length = STORE_PROOF_NONCE_BYTES; length > 0;
         length = length == STORE_PROOF_NONCE_BYTES ? STORE_PROOF_REPLY_BYTES : 0) {
        client_await(scene->fixture.loop, client);
        assert_int_equal(recv(client, answer, length, 0), length);
        step = store_proof_continue(&proof, &scene->key, (struct slice){answer, length});
        client_send(client, step.reply, step.reply_length);
    }
    assert_int_equal(step.outcome, STORE_PROOF_DONE);
}

/* As if the clients that are there had come so long ago. */
static void let_pass(struct scene *scene, int64_t seconds) {
    struct store_peers *peers = scene->fixture.peers;
    for (struct store_peer *peer = peers->unproven.oldest; peer != NULL;
         peer = peer->unproven_next) {
        peer->came_at.nanoseconds -= seconds * NANOSECONDS_PER_SECOND;
    }
    event_timer_set(peers->unproven.timer, event_loop_now(peers->loop));
    turn(&scene->fixture);
}

TEST(who_has_not_proved_itself_in_time_is_closed) {
    struct scene scene;
    begin(&scene, &(struct store_server_settings){0});
    int silent = come(&scene, 1);
    int node = come(&scene, 2);
    prove(&scene, node);
    let_pass(&scene, STORE_PROBATION_SECONDS - 1);
    int late = come(&scene, 3);
    assert_false(is_closed(&scene, silent));
    let_pass(&scene, 1);
    assert_true(is_closed(&scene, silent));
    assert_false(is_closed(&scene, node));
    assert_false(is_closed(&scene, late));
    assert_true(remembered_log_has(&scene.fixture.log, "has not proved itself within 10 s"));
    end(&scene);
}

TEST(who_has_not_proved_itself_is_not_counted) {
    struct scene scene;
    begin(&scene, &(struct store_server_settings){.observer = {.connections = remember_connections,
                                                      .context = &scene.fixture}});
    scene.fixture.tells_count = true;
    (void)come(&scene, 1);
    expect_news(&scene.fixture, "0 connections\n");
    prove(&scene, come(&scene, 2));
    expect_news(&scene.fixture, "0 connections\n1 connections\n");
    end(&scene);
}

TEST_OF(scene, when_there_is_no_room_the_oldest_makes_way,
    begin(&fixture, &(struct store_server_settings){0}), end) {
    int node = come(fixture, 99);
    prove(fixture, node);
    for (uint32_t i = 1; i <= MAXIMUM + 2; i++) {
        (void)come(fixture, i);
    }
    for (int i = 1; i < fixture->count; i++) {
        assert_int_equal(is_closed(fixture, fixture->clients[i]), i <= 2);
    }
    assert_false(is_closed(fixture, node));
}

TEST_OF(scene, one_address_does_not_take_the_room_of_others,
    begin(&fixture, &(struct store_server_settings){0}), end) {
    int other = come(fixture, 1);
    for (int i = 1; i < MOST; i++) {
        (void)come(fixture, 2);
    }
    assert_false(is_closed(fixture, other));
    for (int i = 1; i < MOST; i++) {
        assert_int_equal(is_closed(fixture, fixture->clients[i]), i < MOST - MAXIMUM / 2);
    }
    prove(fixture, other);
}

TEST(where_only_some_keys_need_a_proof_nobody_is_hurried) {
    struct scene scene;
    begin(&scene,
        &(struct store_server_settings){.own_prefix = "/agents/", .guards_only_own_keys = true});
    for (int i = 0; i < MOST; i++) {
        (void)come(&scene, 2);
    }
    for (int i = 0; i < MOST; i++) {
        assert_false(is_closed(&scene, scene.clients[i]));
    }
    end(&scene);
}

/* Store service. */

FIXTURE_TEST_AFTER(
    presence_beyond_its_limits_costs_the_connection, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    char value[STORE_PRESENCE_VALUE_BYTES + 2] = {0};
    memset(value, 'x', sizeof value - 1);
    client_set(node, "/p/a", "1");
    client_set(node, "/p/a", value);
    client_expect_close(fixture->loop, node);
    expect_news(fixture, "a beats 1\na is gone 1\n");
    assert_true(remembered_log_has(&fixture->log, "more than 512 bytes"));
    close(node);
}

static void write_anyhow(int client, enum store_operation operation, const char *key) {
    client_ask(client, &(struct store_request){.operation = operation,
                           .key = slice_from_string(key),
                           .value = slice_from_string("stolen"),
                           .expected = slice_from_string("1"),
                           .number = 1});
}

FIXTURE_TEST_AFTER(
    a_presence_key_is_its_connections_until_that_ends, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    int other = add_client(fixture);
    client_set(node, "/p/a", "1");
    await_news(fixture, 1);
    client_set(other, "/p/a", "stolen");
    write_anyhow(other, STORE_APPEND, "/p/a");
    client_expect_value(fixture->loop, other, "/p/a", "1");
    write_anyhow(other, STORE_DELETE, "/p/a");
    client_expect(fixture->loop, other, "\0\0\0\0\0\0\0\0", 8);
    write_anyhow(other, STORE_COMPARE_SET, "/p/a");
    client_expect(fixture->loop, other, "\1\0\0\0\0\0\0\0001", 9);
    assert_true(remembered_log_has(&fixture->log, "presence key of another connection"));
    write_anyhow(other, STORE_ADD, "/p/a");
    client_expect_close(fixture->loop, other);
    close(other);
    expect_news(fixture, "a beats 1\n");
    other = add_client(fixture);
    close(node);
    await_news(fixture, 1);
    client_set(other, "/p/a", "2");
    await_news(fixture, 2);
    expect_news(fixture, "a is gone 1\na beats 2\n");
    close(other);
}

FIXTURE_TEST_AFTER(nobody_unsays_that_presence_is_served, set_up_presence(&fixture, false)) {
    int client = add_client(fixture);
    write_anyhow(client, STORE_DELETE, "/p/served");
    client_expect(fixture->loop, client, "\0\0\0\0\0\0\0\0", 8);
    client_set(client, "/p/served", "no");
    client_expect_value(fixture->loop, client, "/p/served", "1");
    close(client);
}

FIXTURE_TEST_AFTER(a_client_that_does_not_read_is_served_no_further_request_until_it_reads,
    set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    enum { TIMES = 60, LENGTH = 200000 };
    static uint8_t value[8 + LENGTH] = {LENGTH & 0xff, LENGTH >> 8 & 0xff, LENGTH >> 16};
    int slow = add_client(fixture);
    int other = add_client(fixture);
    set_big(fixture, other, value + 8, LENGTH);
    ask_for_much_and_count(slow, TIMES, "/n");
    turn(fixture);
    client_expect_value(fixture->loop, other, "/n", "");
    for (int i = 0; i < TIMES; i++) {
        client_expect(fixture->loop, slow, value, sizeof value);
    }
    client_expect(fixture->loop, slow, "\1\0\0\0\0\0\0\0", 8);
    client_expect_value(fixture->loop, other, "/n", "1");
    client_expect_ping(fixture->loop, slow, 7);
    close(slow);
    close(other);
}

FIXTURE_TEST_AFTER(many_requests_of_one_client_leave_the_others_their_turn,
    set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    enum { REQUESTS = 3000 };
    struct bytes requests = {0};
    struct store_request add = {
        .operation = STORE_ADD, .key = slice_from_string("/n"), .number = 1};
    int busy = add_client(fixture);
    int other = add_client(fixture);
    client_expect_ping(fixture->loop, busy, 1);
    client_expect_ping(fixture->loop, other, 2);
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(store_request_encode(&add, &requests), FAILURE_NONE);
    }
    client_send(busy, requests.data, requests.length);
    event_loop_run_ready(fixture->loop);
    add.number = 0;
    client_ask(other, &add);
    uint64_t seen = 0;
    client_await(fixture->loop, other);
    assert_int_equal(recv(other, &seen, sizeof seen, 0), sizeof seen);
    assert_in_range(seen, 0, REQUESTS / 2);
    turn(fixture);
    client_ask(other, &add);
    client_expect(fixture->loop, other, &(uint64_t){REQUESTS}, sizeof seen);
    bytes_clear(&requests);
    close(busy);
    close(other);
}

TEST(a_full_store_names_the_keys_and_the_option_and_serves_its_owner) {
    struct fixture fixture = {0};
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    limits.memory_bytes = (size_t)1 << 20;
    remembered_log_init(&fixture.log);
    assert_int_equal(event_loop_new(&fixture.loop, NULL), FAILURE_NONE);
    fixture.peers = store_peers_new(
        fixture.loop, &(struct store_server_settings){.limits = &limits,
                          .log = &fixture.log.log,
                          .own_prefix = "/own/",
                          .observer = {.connections = remember_connections, .context = &fixture}});
    int worker = add_client(&fixture);
    int agent = add_client(&fixture);
    while (fixture.count == 2) {
        char *key = text_format("/leak/%zu", ++limits.connections);
        struct bytes set = {0};
        assert_int_equal(store_request_encode(&(struct store_request){.operation = STORE_SET,
                                                  .key = slice_from_string(key),
                                                  .value = slice_from_string("value")},
                             &set),
            FAILURE_NONE);
        (void)send(worker, set.data, set.length, MSG_NOSIGNAL);
        event_loop_run_ready(fixture.loop);
        bytes_clear(&set);
        free(key);
    }
    assert_true(remembered_log_has(&fixture.log, "memory limit of 1.0 MiB"));
    assert_true(remembered_log_has(&fixture.log, "'leak/'; --store-memory gives it more"));
    client_set(agent, "/own/k", "v");
    client_expect_value(fixture.loop, agent, "/own/k", "v");
    close(worker);
    close(agent);
    tear_down(&fixture);
}

/* The answer to a QUEUE_POP that gives way comes before the next one of its connection. Where there
 * is none for a while, it comes all the same. */
TEST(what_gives_way_is_answered_before_the_next_request_or_a_moment_later) {
    struct fixture fixture = {0};
    remembered_log_init(&fixture.log);
    assert_int_equal(event_loop_new(&fixture.loop, NULL), FAILURE_NONE);
    fixture.peers = store_peers_new(
        fixture.loop, &(struct store_server_settings){.log = &fixture.log.log,
                          .own_prefix = "/own/",
                          .observer = {.connections = remember_connections, .context = &fixture}});
    int client = add_client(&fixture);
    const struct store_request pop = {
        .operation = STORE_QUEUE_POP, .key = slice_from_string("/own/q")};
    client_ask(client, &pop);
    client_set(client, "/k", "1");
    client_ask(client, &(struct store_request){
                           .operation = STORE_ADD, .key = slice_from_string("/k"), .number = 1});
    client_expect(fixture.loop, client,
        "\0\0\0\0\0\0\0\0"
        "\2\0\0\0\0\0\0\0",
        16);
    client_ask(client, &pop);
    client_set(client, "/k", "1");
    client_expect(fixture.loop, client, "\0\0\0\0\0\0\0\0", 8);
    close(client);
    tear_down(&fixture);
}
