/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/tcp_silence.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* Probes per timeout: one of them may be lost on the way. */
#define PROBES 3
#define KERNEL_SECONDS_CEILING 32767
/* Where the silence is watched, the kernel ends a connection only after so many timeouts. */
#define WATCHED_TIMEOUTS 3

static void set_option(int fd, int level, int option, int value) {
    (void)setsockopt(fd, level, option, &value,
        sizeof value); /* a failure is ignored: only the detection gets worse */
}

/* Probes an idle connection every `timeout` / PROBES, and ends it after `stop`. */
static void limit(int fd, int64_t timeout, int64_t stop) {
    int64_t seconds = timeout / 1000 / PROBES;
    if (seconds < 1) {
        seconds = 1;
    } else if (seconds > KERNEL_SECONDS_CEILING) {
        seconds = KERNEL_SECONDS_CEILING;
    }
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)seconds);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)seconds);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES - 1);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, stop > INT_MAX ? INT_MAX : (int)stop);
}

void tcp_silence_limit(int fd, struct duration timeout) {
    int64_t milliseconds = duration_milliseconds_ceiling(timeout);
    limit(fd, milliseconds, milliseconds);
}

void tcp_silence_watch(int fd, struct duration timeout) {
    int64_t milliseconds = duration_milliseconds_ceiling(timeout);
    limit(fd, milliseconds, milliseconds > INT_MAX ? INT_MAX : milliseconds * WATCHED_TIMEOUTS);
    set_option(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
}

struct duration tcp_silence_measure(int fd) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
        return (struct duration){0};
    }
    uint32_t milliseconds = info.tcpi_last_ack_recv < info.tcpi_last_data_recv
                                ? info.tcpi_last_ack_recv
                                : info.tcpi_last_data_recv;
    return duration_from_milliseconds(milliseconds);
}

bool tcp_silence_is(int system_error) {
    switch (system_error) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
        return true;
    default:
        return false;
    }
}
