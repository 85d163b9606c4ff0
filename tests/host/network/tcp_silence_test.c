/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/network/tcp_stream.h"

static int option(int fd, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    assert_int_equal(getsockopt(fd, level, name, &value, &length), 0);
    return value;
}

static void expect_limits(struct duration timeout, int seconds, int milliseconds) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    tcp_silence_limit(fd, timeout);
    assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), seconds);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), seconds);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 2);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), milliseconds);
    close(fd);
}

TEST(timeout_is_shared_among_three_probes) {
    expect_limits(duration_from_seconds(3), 1, 3000);
    expect_limits(duration_from_seconds(180), 60, 180000);
}

TEST(shortest_and_longest_timeouts_are_what_the_kernel_can_do) {
    expect_limits(duration_from_milliseconds(100), 1, 100);
    expect_limits(DURATION_FOREVER, 32767, INT32_MAX);
}

TEST(a_watched_connection_is_left_to_its_watcher_for_three_timeouts) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    tcp_silence_watch(fd, duration_from_seconds(3));
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 1);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 1);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 9000);
    tcp_silence_leave(fd, duration_from_milliseconds(3500));
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 3500);
    tcp_silence_watch(fd, duration_from_seconds(60));
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 1);
    assert_int_equal(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 180000);
    close(fd);
}

/* The kernel of the other end acknowledges what its program never reads. */
TEST(the_silence_ends_with_every_acknowledgement) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    while (tcp_silence_measure(fd).silent_for.nanoseconds <
           duration_from_milliseconds(50).nanoseconds) {
        usleep(1000);
    }
    struct duration before = tcp_silence_measure(fd).silent_for;
    do {
        assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), 1);
        usleep(1000);
    } while (tcp_silence_measure(fd).silent_for.nanoseconds >= before.nanoseconds);
    assert_int_equal(tcp_silence_measure(fd).resent, 0);
    assert_int_equal(tcp_silence_measure(-1).silent_for.nanoseconds, 0);
    close(fd);
    close(listener);
}

TEST(lost_ways_are_silence_and_ends_are_not) {
    assert_true(tcp_silence_is(ETIMEDOUT));
    assert_true(tcp_silence_is(EHOSTUNREACH));
    assert_true(tcp_silence_is(ENETUNREACH));
    assert_false(tcp_silence_is(0));
    assert_false(tcp_silence_is(ECONNRESET));
    assert_false(tcp_silence_is(EPIPE));
}
