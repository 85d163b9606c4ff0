/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <unistd.h>

#include "host/network/tcp_listener.h"
#include "host/network/tcp_silence.h"
#include "host/store/store_peers.h"
#include "host/store_peers_fixture.h"

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
