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

static void end_after(int fd, int64_t milliseconds) {
    set_option(
        fd, IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds > INT_MAX ? INT_MAX : (int)milliseconds);
}

/* Probes an idle connection every so many seconds, as far as the kernel can. */
static void probe(int fd, int64_t seconds) {
    if (seconds < 1) {
        seconds = 1;
    } else if (seconds > KERNEL_SECONDS_CEILING) {
        seconds = KERNEL_SECONDS_CEILING;
    }
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)seconds);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)seconds);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES - 1);
}

void tcp_silence_limit(int fd, struct duration timeout) {
    int64_t milliseconds = duration_milliseconds_ceiling(timeout);
    probe(fd, milliseconds / 1000 / PROBES);
    end_after(fd, milliseconds);
}

void tcp_silence_watch(int fd, struct duration timeout) {
    int64_t milliseconds = duration_milliseconds_ceiling(timeout);
    probe(fd, 1);
    end_after(fd, milliseconds > INT_MAX ? INT_MAX : milliseconds * WATCHED_TIMEOUTS);
    set_option(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
}

void tcp_silence_leave(int fd, struct duration timeout) {
    end_after(fd, duration_milliseconds_ceiling(timeout));
}

struct connection_hearing tcp_silence_measure(int fd) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
        return (struct connection_hearing){0};
    }
    uint32_t milliseconds = info.tcpi_last_ack_recv < info.tcpi_last_data_recv
                                ? info.tcpi_last_ack_recv
                                : info.tcpi_last_data_recv;
    return (struct connection_hearing){
        duration_from_milliseconds(milliseconds), info.tcpi_total_retrans};
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
