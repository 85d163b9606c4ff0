/* SPDX-License-Identifier: BSD-3-Clause */
/* A client socket for tests of servers that run on a loop of the same thread. The loop runs until
 * the client gets what it expects. */
#ifndef MUSTER_TESTS_HOST_RAW_CLIENT_H
#define MUSTER_TESTS_HOST_RAW_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/loop/event_loop.h"
#include "wire/store/store_codec.h"

/* The maximum number of turns of a loop, each with a short wait. After them the test fails. */
#define TURNS 20000

static inline int client_connect(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static inline void client_send(int fd, const void *data, size_t length) {
    assert_int_equal(send(fd, data, length, MSG_NOSIGNAL), length);
}

static inline void client_ask(int fd, const struct store_request *request) {
    struct bytes bytes = {0};
    assert_int_equal(store_request_encode(request, &bytes), FAILURE_NONE);
    client_send(fd, bytes.data, bytes.length);
    bytes_clear(&bytes);
}

/* Connects and shakes hands. */
static inline int client_open(int port) {
    int fd = client_connect(port);
    client_ask(fd, &(struct store_request){.operation = STORE_VALIDATE});
    return fd;
}

/* Runs the loop (NULL: another thread runs it) until the descriptor has something to read. */
static inline void client_await(struct event_loop *loop, int fd) {
    for (int turn = 0; turn < TURNS; turn++) {
        if (loop != NULL) {
            event_loop_run_ready(loop);
        }
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        if (poll(&poll_fd, 1, 1) > 0) {
            return;
        }
    }
    fail_msg("nothing came");
}

static inline void client_expect(
    struct event_loop *loop, int fd, const void *expected, size_t length) {
    uint8_t *seen = malloc(length + 1);
    for (size_t got = 0; got < length;) {
        client_await(loop, fd);
        ssize_t now = recv(fd, seen + got, length - got, 0);
        assert_true(now > 0);
        got += (size_t)now;
    }
    assert_memory_equal(seen, expected, length);
    free(seen);
}

static inline void client_expect_byte(struct event_loop *loop, int fd, uint8_t expected) {
    client_expect(loop, fd, &expected, 1);
}

/* The server closes the connection; bytes before that are ignored. */
static inline void client_expect_close(struct event_loop *loop, int fd) {
    for (;;) {
        client_await(loop, fd);
        uint8_t ignored[4096];
        ssize_t length = recv(fd, ignored, sizeof ignored, 0);
        if (length == 0 || (length < 0 && errno == ECONNRESET)) {
            return;
        }
        assert_true(length > 0);
    }
}

/* Checks that the connection works and that all earlier requests have been answered. */
static inline void client_expect_ping(struct event_loop *loop, int fd, uint32_t nonce) {
    client_ask(fd, &(struct store_request){.operation = STORE_PING, .nonce = nonce});
    uint8_t expected[4] = {
        (uint8_t)nonce, (uint8_t)(nonce >> 8), (uint8_t)(nonce >> 16), (uint8_t)(nonce >> 24)};
    client_expect(loop, fd, expected, sizeof expected);
}

static inline void client_set(int fd, const char *key, const char *value) {
    client_ask(fd, &(struct store_request){.operation = STORE_SET,
                       .key = slice_from_string(key),
                       .value = slice_from_string(value)});
}

static inline void client_wait(int fd, const char *key) {
    struct slice keys[] = {slice_from_string(key)};
    client_ask(fd, &(struct store_request){.operation = STORE_WAIT, .keys = keys, .count = 1});
}

static inline void client_expect_value(
    struct event_loop *loop, int fd, const char *key, const char *value) {
    client_ask(fd, &(struct store_request){.operation = STORE_GET, .key = slice_from_string(key)});
    uint64_t length = strlen(value);
    client_expect(loop, fd, &length, sizeof length);
    client_expect(loop, fd, value, length);
}

#endif
