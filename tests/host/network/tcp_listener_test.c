/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/network/tcp_listener.h"

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
