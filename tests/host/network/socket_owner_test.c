/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/network/network_address.h"
#include "host/network/tcp_listener.h"

struct connection {
    int listening_fd;
    int client;
    int server;
    union tcp_address own;
    union tcp_address peer;
};

static union tcp_address address_of(const char *text, int port) {
    union tcp_address address;
    size_t count;
    assert_int_equal(name_lookup_resolve(text, port, &address, 1, &count, NULL), FAILURE_NONE);
    return address;
}

/* A client that is bound to `from` (NULL: as the kernel chooses) and to `device` (NULL: none) goes
 * to `to`, where somebody listens on `at` (NULL: everywhere). */
static void connect_from(struct connection *connection, const char *device, const char *from,
    const char *at, const char *to) {
    int port;
    assert_int_equal(
        tcp_listener_open(at, 0, &connection->listening_fd, &port, NULL), FAILURE_NONE);
    union tcp_address address = address_of(to, port);
    connection->client = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (device != NULL) {
        assert_int_equal(setsockopt(connection->client, SOL_SOCKET, SO_BINDTODEVICE, device,
                             (socklen_t)strlen(device)),
            0);
    }
    if (from != NULL) {
        union tcp_address source = address_of(from, 0);
        assert_int_equal(bind(connection->client, &source.any, sizeof source), 0);
    }
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

static enum socket_owner owner_of(const struct connection *connection, uid_t *out_user) {
    int fd = socket_owner_open();
    assert_true(fd >= 0);
    enum socket_owner owner =
        socket_owner_ask(fd, connection->server, &connection->own, &connection->peer, out_user);
    close(fd);
    return owner;
}

static void expect_this_user(const char *device, const char *from, const char *at, const char *to) {
    struct connection connection = {0};
    connect_from(&connection, device, from, at, to);
    uid_t user = (uid_t)-2;
    assert_int_equal(owner_of(&connection, &user), SOCKET_OWNER_USER);
    assert_int_equal(user, geteuid());
    disconnect(&connection);
}

TEST(the_user_of_the_other_end_is_told) {
    expect_this_user(NULL, NULL, "127.0.0.1", "127.0.0.1");
    expect_this_user(NULL, NULL, "::1", "::1");
    expect_this_user(NULL, NULL, NULL, "127.0.0.1"); /* IPv4 on an IPv6 socket */
    expect_this_user(NULL, NULL, NULL, "::ffff:127.0.0.1");
}

TEST(it_does_not_matter_which_addresses_of_this_machine_the_ends_have) {
    expect_this_user(NULL, "127.0.0.2", "127.0.0.1", "127.0.0.1");
    expect_this_user(NULL, "127.0.0.2", NULL, "127.77.0.3");
    expect_this_user(NULL, "::ffff:127.0.0.2", NULL, "::ffff:127.0.0.1");
}

TEST(an_end_that_is_bound_to_a_device_is_found) {
    expect_this_user("lo", NULL, "127.0.0.1", "127.0.0.1");
    expect_this_user("lo", NULL, "::1", "::1");
}

static void expect_gone(bool resets, bool has_listener_there) {
    struct connection connection = {0};
    connect_from(&connection, NULL, "127.0.0.2", NULL, "127.0.0.1");
    const struct linger at_once = {1, 0};
    if (resets) {
        assert_int_equal(
            setsockopt(connection.client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    }
    close(connection.client);
    connection.client = -1;
    int port = tcp_address_port(&connection.peer);
    int listening_fd = -1;
    if (has_listener_there) {
        assert_int_equal(
            tcp_listener_open("127.0.0.2", port, &listening_fd, &port, NULL), FAILURE_NONE);
    }
    uid_t user;
    assert_int_equal(owner_of(&connection, &user), SOCKET_OWNER_GONE);
    close(listening_fd);
    disconnect(&connection);
}

TEST(an_end_that_has_been_closed_is_nobodys) {
    expect_gone(false, false);
}

TEST(an_end_that_was_reset_is_nobodys) {
    expect_gone(true, false);
}

/* The kernel names it when it is asked for a connection that is over. */
TEST(a_socket_that_listens_at_its_port_now_is_not_the_other_end) {
    expect_gone(true, true);
}

TEST(a_kernel_that_does_not_find_this_end_either_cannot_tell) {
    struct connection connection = {0};
    connect_from(&connection, NULL, NULL, "127.0.0.1", "127.0.0.1");
    connection.peer = address_of("192.0.2.77", 5);
    int fd = socket_owner_open();
    uid_t user;
    /* this end is not found with that address either, so the kernel seems not to tell */
    assert_int_equal(
        socket_owner_ask(fd, connection.server, &connection.own, &connection.peer, &user),
        SOCKET_OWNER_UNKNOWN);
    assert_int_equal(
        socket_owner_ask(-1, connection.server, &connection.own, &connection.peer, &user),
        SOCKET_OWNER_UNKNOWN);
    close(fd);
    disconnect(&connection);
}
