/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/network/socket_owner.h"
#include "host/network/tcp_listener.h"

struct connection {
    int listening_fd;
    int client;
    int server;
    union tcp_address own;
    union tcp_address peer;
};

static void connect_to(struct connection *connection, const char *host_or_null, int family) {
    int port;
    assert_int_equal(
        tcp_listener_open(host_or_null, 0, &connection->listening_fd, &port, NULL), FAILURE_NONE);
    union tcp_address address = {0};
    size_t count;
    assert_int_equal(tcp_address_resolve(
                         family == AF_INET ? "127.0.0.1" : "::1", port, &address, 1, &count, NULL),
        FAILURE_NONE);
    connection->client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(connection->client, &address.any, sizeof address), 0);
    socklen_t length = sizeof connection->peer;
    connection->server = accept(connection->listening_fd, &connection->peer.any, &length);
    assert_true(connection->server >= 0);
    length = sizeof connection->own;
    assert_int_equal(getsockname(connection->server, &connection->own.any, &length), 0);
}

static void disconnect(struct connection *connection) {
    close(connection->server);
    close(connection->client);
    close(connection->listening_fd);
}

static void expect_this_user(const char *host_or_null, int family) {
    struct connection connection = {0};
    connect_to(&connection, host_or_null, family);
    int fd = socket_owner_open();
    assert_true(fd >= 0);
    uid_t user = (uid_t)-2;
    assert_int_equal(
        socket_owner_ask(fd, &connection.own, &connection.peer, &user), SOCKET_OWNER_USER);
    assert_int_equal(user, geteuid());
    close(fd);
    disconnect(&connection);
}

static void the_user_of_the_other_end_is_told(void **state) {
    (void)state;
    expect_this_user("127.0.0.1", AF_INET);
    expect_this_user("::1", AF_INET6);
    expect_this_user(NULL, AF_INET); /* IPv4 on an IPv6 socket */
}

static void an_end_that_has_been_closed_is_nobodys(void **state) {
    (void)state;
    struct connection connection = {0};
    connect_to(&connection, "127.0.0.1", AF_INET);
    close(connection.client);
    connection.client = -1;
    int fd = socket_owner_open();
    uid_t user;
    assert_int_equal(
        socket_owner_ask(fd, &connection.own, &connection.peer, &user), SOCKET_OWNER_GONE);
    close(fd);
    disconnect(&connection);
}

static void a_connection_that_is_not_there_is_unknown(void **state) {
    (void)state;
    union tcp_address own = {.ipv4 = {.sin_family = AF_INET, .sin_port = htons(1)}};
    union tcp_address peer = {.ipv4 = {.sin_family = AF_INET, .sin_port = htons(2)}};
    int fd = socket_owner_open();
    uid_t user;
    assert_int_equal(socket_owner_ask(fd, &own, &peer, &user), SOCKET_OWNER_UNKNOWN);
    assert_int_equal(socket_owner_ask(-1, &own, &peer, &user), SOCKET_OWNER_UNKNOWN);
    close(fd);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_user_of_the_other_end_is_told),
    cmocka_unit_test(an_end_that_has_been_closed_is_nobodys),
    cmocka_unit_test(a_connection_that_is_not_there_is_unknown),
};

UNIT_TESTS(tests)
