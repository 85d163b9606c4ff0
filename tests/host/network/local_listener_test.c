/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/network/tcp_address.h"
#include "host/network/tcp_listener.h"

static void close_all(const struct local_listener *listener) {
    for (size_t i = 0; i < listener->count; i++) {
        close(listener->fds[i]);
    }
}

static bool can_connect(const char *address, int port) {
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    assert_int_equal(inet_pton(AF_INET, address, &ipv4.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool is_connected = connect(fd, (struct sockaddr *)&ipv4, sizeof ipv4) == 0;
    close(fd);
    return is_connected;
}

TEST(every_socket_listens_on_a_loopback_address_with_one_port) {
    struct local_listener listener;
    assert_int_equal(local_listener_open("localhost", 0, &listener, NULL), FAILURE_NONE);
    assert_in_range(listener.port, 1, 65535);
    assert_true(listener.count >= 1);
    union tcp_address elsewhere = {.ipv4 = {.sin_family = AF_INET}};
    elsewhere.ipv4.sin_addr.s_addr = inet_addr("192.0.2.77");
    for (size_t i = 0; i < listener.count; i++) {
        union tcp_address own = {0};
        socklen_t length = sizeof own;
        assert_int_equal(getsockname(listener.fds[i], &own.any, &length), 0);
        assert_int_equal(tcp_address_port(&own), listener.port);
        assert_true(tcp_address_is_this_machine(&own, &elsewhere)); /* as it is loopback */
    }
    assert_true(can_connect("127.0.0.1", listener.port));
    assert_false(can_connect("127.0.0.2", listener.port));
    close_all(&listener);
}

TEST(an_address_of_the_name_is_listened_on_too) {
    struct local_listener listener;
    assert_int_equal(local_listener_open("127.0.1.1", 0, &listener, NULL), FAILURE_NONE);
    assert_true(can_connect("127.0.0.1", listener.port));
    assert_true(can_connect("127.0.1.1", listener.port));
    close_all(&listener);
}

TEST(a_name_of_another_machine_is_refused) {
    struct local_listener listener = {.count = 77};
    struct failure failure = {0};
    assert_int_equal(local_listener_open("192.0.2.77", 0, &listener, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "192.0.2.77"));
    assert_int_equal(local_listener_open("no such name", 0, &listener, NULL), FAILURE_MISSING);
    assert_int_equal(listener.count, 77);
}

TEST(a_port_that_is_taken_is_named_in_the_failure) {
    int fd;
    int port;
    struct local_listener listener = {.count = 77};
    struct failure failure = {0};
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(local_listener_open("localhost", port, &listener, &failure), FAILURE_SYSTEM);
    char expected[32];
    snprintf(expected, sizeof expected, "port %d is taken", port);
    assert_non_null(strstr(failure.message, expected));
    assert_int_equal(listener.count, 77);
    close(fd);
}
