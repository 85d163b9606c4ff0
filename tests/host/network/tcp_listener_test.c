/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/loop/descriptors.h"
#include "host/network/network_address.h"
#include "host/network/tcp_listener.h"
#include "host/raw_client.h"
#include "host/remembered_log.h"

static bool can_connect(int family, int port) {
    struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    ipv4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6,
        .sin6_addr = IN6ADDR_LOOPBACK_INIT,
        .sin6_port = htons((uint16_t)port)};
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0) {
        return false;
    }
    int status = family == AF_INET6 ? connect(fd, (struct sockaddr *)&ipv6, sizeof ipv6)
                                    : connect(fd, (struct sockaddr *)&ipv4, sizeof ipv4);
    close(fd);
    return status == 0;
}

static bool has_ipv6(void) {
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return has;
}

TEST(port_zero_reports_the_port_it_got) {
    int fd;
    int port = 0;
    assert_int_equal(tcp_listener_open(NULL, 0, &fd, &port, NULL), FAILURE_NONE);
    assert_in_range(port, 1, 65535);
    assert_true(can_connect(AF_INET, port));
    assert_int_equal(can_connect(AF_INET6, port), has_ipv6());
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    close(fd);
}

TEST(one_address_does_not_listen_on_others) {
    int fd;
    int port;
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &port, NULL), FAILURE_NONE);
    assert_true(can_connect(AF_INET, port));
    assert_false(can_connect(AF_INET6, port));
    close(fd);
}

TEST(names_are_resolved) {
    int fd;
    int port;
    assert_int_equal(tcp_listener_open("localhost", 0, &fd, &port, NULL), FAILURE_NONE);
    assert_true(can_connect(AF_INET, port) || can_connect(AF_INET6, port));
    close(fd);
}

TEST(taken_port_is_named_in_the_failure) {
    int fd;
    int port;
    assert_int_equal(tcp_listener_open(NULL, 0, &fd, &port, NULL), FAILURE_NONE);
    int second = -7;
    int second_port = -7;
    struct failure failure = {0};
    assert_int_equal(
        tcp_listener_open(NULL, port, &second, &second_port, &failure), FAILURE_SYSTEM);
    char expected[64];
    snprintf(expected, sizeof expected, "port %d is taken", port);
    assert_non_null(strstr(failure.message, expected));
    assert_int_equal(second, -7);
    assert_int_equal(second_port, -7);
    close(fd);
}

TEST(foreign_address_is_named_in_the_failure) {
    int fd;
    int port;
    struct failure failure = {0};
    assert_int_equal(tcp_listener_open("192.0.2.1", 0, &fd, &port, &failure), FAILURE_SYSTEM);
    assert_non_null(strstr(failure.message, "192.0.2.1"));
}

TEST(impossible_ports_and_hosts_are_refused) {
    int fd;
    int port;
    assert_int_equal(tcp_listener_open(NULL, -1, &fd, &port, NULL), FAILURE_INVALID);
    assert_int_equal(tcp_listener_open(NULL, 65536, &fd, &port, NULL), FAILURE_INVALID);
    assert_int_equal(tcp_listener_open("no such host", 0, &fd, &port, NULL), FAILURE_INVALID);
}

TEST(bound_socket_is_adopted) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    int port;
    assert_int_equal(tcp_listener_adopt(fd, &port, NULL), FAILURE_NONE);
    assert_true(can_connect(AF_INET, port));
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    int again;
    assert_int_equal(tcp_listener_adopt(fd, &again, NULL), FAILURE_NONE);
    assert_int_equal(again, port);
    close(fd);
}

static void adoption_refuses(int fd, const char *expected) {
    int port = -7;
    struct failure failure = {0};
    assert_int_equal(tcp_listener_adopt(fd, &port, &failure), FAILURE_INVALID);
    assert_non_null(strstr(failure.message, expected));
    assert_int_equal(port, -7);
}

TEST(other_descriptors_are_not_adopted) {
    adoption_refuses(1000000, "not open");
    int file = open("/dev/null", O_RDONLY);
    adoption_refuses(file, "not a socket");
    close(file);
    int datagram = socket(AF_INET, SOCK_DGRAM, 0);
    adoption_refuses(datagram, "not a TCP socket");
    close(datagram);
    int local = socket(AF_UNIX, SOCK_STREAM, 0);
    adoption_refuses(local, "not a TCP socket");
    close(local);
    int unbound = socket(AF_INET, SOCK_STREAM, 0);
    adoption_refuses(unbound, "not bound");
    close(unbound);
}

TEST(connected_socket_is_not_adopted) {
    int listening;
    int port;
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &listening, &port, NULL), FAILURE_NONE);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    adoption_refuses(fd, "the socket is connected");
    close(fd);
    close(listening);
}

struct rival {
    pthread_barrier_t *start;
    int port;
    int fd;
};

static void *open_at_the_start(void *context) {
    struct rival *rival = context;
    int port;
    pthread_barrier_wait(rival->start);
    if (tcp_listener_open(NULL, rival->port, &rival->fd, &port, NULL) != FAILURE_NONE) {
        rival->fd = -1;
    }
    return NULL;
}

static int unused_port(void) {
    int fd;
    int port;
    assert_int_equal(tcp_listener_open(NULL, 0, &fd, &port, NULL), FAILURE_NONE);
    close(fd);
    return port;
}

TEST(of_two_who_ask_for_a_port_at_once_one_gets_it) {
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 300; i++) {
        int port = unused_port();
        struct rival rivals[2] = {{&start, port, -1}, {&start, port, -1}};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, open_at_the_start, &rivals[0]), 0);
        (void)open_at_the_start(&rivals[1]);
        pthread_join(thread, NULL);
        assert_true((rivals[0].fd >= 0) != (rivals[1].fd >= 0));
        close(rivals[0].fd >= 0 ? rivals[0].fd : rivals[1].fd);
    }
    pthread_barrier_destroy(&start);
}

/* Tcp acceptor. */

#define MOST 64

struct fixture {
    struct event_loop *loop;
    struct tcp_acceptor *acceptor;
    struct remembered_log log;
    int port;
    int accepted[MOST];
    int accepted_count;
    int last_port; /* of the last client */
};

static void keep(void *context, int fd_taken, const union tcp_address *peer) {
    struct fixture *fixture = context;
    assert_true(fixture->accepted_count < MOST);
    fixture->accepted[fixture->accepted_count++] = fd_taken;
    fixture->last_port = tcp_address_port(peer);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    struct tcp_acceptor_settings settings = {
        .name = "test", .log = &fixture->log.log, .accepted = keep, .context = fixture};
    assert_int_equal(
        tcp_listener_open("127.0.0.1", 0, &settings.listening_fd, &fixture->port, NULL),
        FAILURE_NONE);
    assert_int_equal(
        tcp_acceptor_new(fixture->loop, &settings, &fixture->acceptor, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    for (int i = 0; i < fixture->accepted_count; i++) {
        close(fixture->accepted[i]);
    }
    tcp_acceptor_free(fixture->acceptor);
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->log.text);
}

static void turn_until_accepted(struct fixture *fixture, int count) {
    for (int turn = 0; turn < TURNS && fixture->accepted_count < count; turn++) {
        event_loop_run_ready(fixture->loop);
    }
    assert_int_equal(fixture->accepted_count, count);
}

FIXTURE_TEST(clients_are_handed_over_with_their_address) {
    int client = client_connect(fixture->port);
    turn_until_accepted(fixture, 1);
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    assert_int_equal(getsockname(client, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(fixture->last_port, ntohs(address.sin_port));
    assert_true(fcntl(fixture->accepted[0], F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fixture->accepted[0], F_GETFD) & FD_CLOEXEC);
    close(client);
}

FIXTURE_TEST(drain_accepts_without_the_loop) {
    int clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = client_connect(fixture->port);
    }
    tcp_acceptor_drain(fixture->acceptor);
    assert_int_equal(fixture->accepted_count, 3);
    for (int i = 0; i < 3; i++) {
        close(clients[i]);
    }
}

/* Lets the process open only `left` more descriptors. Returns the earlier limits, to be
 * restored. */
static struct rlimit leave_descriptors(rlim_t left) {
    int next = dup(0);
    close(next);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit tight = {.rlim_cur = (rlim_t)next + left, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    return before;
}

FIXTURE_TEST(without_descriptors_clients_are_turned_away_and_told_once) {
    int clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = client_connect(fixture->port);
    }
    struct rlimit before = leave_descriptors(1);
    client_expect_close(fixture->loop, clients[2]);
    assert_int_equal(fixture->accepted_count, 1);
    assert_int_equal(fixture->log.count, 1);
    assert_true(remembered_log_has(&fixture->log, "no descriptor is left"));
    setrlimit(RLIMIT_NOFILE, &before);
    int late = client_connect(fixture->port);
    turn_until_accepted(fixture, 2);
    close(late);
    for (int i = 0; i < 3; i++) {
        close(clients[i]);
    }
}

FIXTURE_TEST(what_the_process_keeps_no_client_gets) {
    struct rlimit before;
    int next = dup(0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlim_t used = (rlim_t)next + 4; /* two clients, and their two ends here */
    rlim_t kept = used / 3;         /* no more than a fourth of all */
    struct rlimit tight = {.rlim_cur = used + kept, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    descriptor_limit_keep(kept);
    int clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = client_connect(fixture->port);
        turn_until_accepted(fixture, i < 2 ? i + 1 : 2);
    }
    client_expect_close(fixture->loop, clients[2]);
    assert_int_equal(fixture->accepted_count, 2);
    assert_int_equal(fixture->log.count, 1);
    assert_true(remembered_log_has(&fixture->log, "the rest is kept for this process itself"));
    descriptor_limit_keep(0);
    setrlimit(RLIMIT_NOFILE, &before);
    for (int i = 0; i < 3; i++) {
        close(clients[i]);
    }
}

/* Local listener. */

static void close_all(const struct local_listener *listener) {
    for (size_t i = 0; i < listener->count; i++) {
        close(listener->fds[i]);
    }
}

static bool is_reached_at(const char *address, int port) {
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
    assert_true(is_reached_at("127.0.0.1", listener.port));
    assert_false(is_reached_at("127.0.0.2", listener.port));
    close_all(&listener);
}

TEST(an_address_of_the_name_is_listened_on_too) {
    struct local_listener listener;
    assert_int_equal(local_listener_open("127.0.1.1", 0, &listener, NULL), FAILURE_NONE);
    assert_true(is_reached_at("127.0.0.1", listener.port));
    assert_true(is_reached_at("127.0.1.1", listener.port));
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
