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

static void set_option(int fd, int level, int option, int value) {
    (void)setsockopt(fd, level, option, &value,
        sizeof value); /* a failure is ignored: only the detection gets worse */
}

void tcp_silence_limit(int fd, struct duration timeout) {
    int64_t milliseconds = duration_milliseconds_ceiling(timeout);
    int64_t seconds = milliseconds / 1000 / PROBES;
    if (seconds < 1) {
        seconds = 1;
    } else if (seconds > KERNEL_SECONDS_CEILING) {
        seconds = KERNEL_SECONDS_CEILING;
    }
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)seconds);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)seconds);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES - 1);
    set_option(
        fd, IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds > INT_MAX ? INT_MAX : (int)milliseconds);
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
