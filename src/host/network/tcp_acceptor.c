/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/tcp_acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "core/store/store_limits.h"
#include "host/loop/descriptor_limit.h"

/* The most clients accepted per turn, so that many new clients do not delay the existing ones. */
#define BATCH 256
#define DRAIN_BATCH 65536
/* The pause when clients can neither be accepted nor closed. */
#define PAUSE_MILLISECONDS 100

struct tcp_acceptor {
    struct tcp_acceptor_settings settings;
    struct event_loop *loop;
    struct event_descriptor *watch; /* NULL while pausing */
    struct event_timer *pause;
    int reserve_fd;    /* given up for a moment to close a client when no descriptor is left
                        */
    bool is_exhausted; /* the lack of descriptors was logged, and no client was accepted since */
    struct log_throttle throttle;
};

static int open_reserve(void) {
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int accept_one(const struct tcp_acceptor *acceptor, union tcp_address *out_peer) {
    socklen_t length = sizeof *out_peer;
    return accept4(
        acceptor->settings.listening_fd, &out_peer->any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void start_pause(struct tcp_acceptor *acceptor) {
    event_descriptor_free(acceptor->watch);
    acceptor->watch = NULL;
    event_timer_set(acceptor->pause, instant_after(event_loop_now(acceptor->loop),
                                         duration_from_milliseconds(PAUSE_MILLISECONDS)));
}

static void warn_of_exhaustion(struct tcp_acceptor *acceptor, const char *why) {
    uint64_t held_back;
    if (acceptor->is_exhausted ||
        !log_throttle_admits(&acceptor->throttle, event_loop_now(acceptor->loop), &held_back)) {
        return;
    }
    acceptor->is_exhausted = true;
    log_error(acceptor->settings.log,
        "%s: no descriptor is left for new clients (%s); they are turned away until other clients "
        "leave; raise the limit of open files (ulimit -n)",
        acceptor->settings.name, why);
}

/* Frees the reserve descriptor, accepts a client with it and closes that client at once. Returns
 * false when there is no further client, or when accepting fails; then there is a pause. */
static bool close_one_client(struct tcp_acceptor *acceptor, int error) {
    warn_of_exhaustion(acceptor, strerror(error));
    bool is_turned_away = false;
    bool is_empty = false;
    if (acceptor->reserve_fd >= 0) {
        close(acceptor->reserve_fd);
        union tcp_address peer;
        int fd = accept_one(acceptor, &peer);
        is_turned_away = fd >= 0;
        is_empty = fd < 0 && errno == EAGAIN;
        if (is_turned_away) {
            close(fd);
        }
    }
    acceptor->reserve_fd = open_reserve();
    if (!is_turned_away && !is_empty) {
        start_pause(acceptor);
    }
    return is_turned_away;
}

static bool is_out_of_resources(int error) {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* Whether the descriptor is one of those that are kept. */
static bool is_kept(const struct tcp_acceptor *acceptor, int fd) {
    uint64_t wanted = acceptor->settings.kept + descriptor_limit_kept();
    uint64_t limit = wanted > 0 ? descriptor_limit_read() : UINT64_MAX;
    return (uint64_t)fd >= limit - store_descriptors_kept(wanted, limit);
}

/* Accepts at most `most` connections. */
static void accept_several(struct tcp_acceptor *acceptor, int most) {
    for (int i = 0; i < most; i++) {
        union tcp_address peer = {0};
        int fd = accept_one(acceptor, &peer);
        if (fd >= 0 && is_kept(acceptor, fd)) {
            close(fd);
            warn_of_exhaustion(acceptor, "the rest is kept for this process itself");
        } else if (fd >= 0) {
            acceptor->is_exhausted = false;
            acceptor->settings.accepted(acceptor->settings.context, fd, &peer);
        } else if (errno == EAGAIN) {
            return;
        } else if (is_out_of_resources(errno) && !close_one_client(acceptor, errno)) {
            return;
        } /* else only this connection failed (ECONNABORTED and others): try the next one */
    }
}

static void became_readable(void *context) {
    accept_several(context, BATCH);
}

static enum failure_code watch(struct tcp_acceptor *acceptor, struct failure *failure) {
    return event_descriptor_new(acceptor->loop, acceptor->settings.listening_fd, became_readable,
        acceptor, &acceptor->watch, failure);
}

static void pause_ended(void *context) {
    struct tcp_acceptor *acceptor = context;
    if (watch(acceptor, NULL) != FAILURE_NONE) {
        start_pause(acceptor);
    }
}

enum failure_code tcp_acceptor_new(struct event_loop *loop,
    const struct tcp_acceptor_settings *settings, struct tcp_acceptor **out_acceptor,
    struct failure *failure) {
    struct tcp_acceptor *acceptor = memory_allocate(sizeof *acceptor);
    acceptor->settings = *settings;
    acceptor->loop = loop;
    enum failure_code code = watch(acceptor, failure);
    if (code != FAILURE_NONE) {
        free(acceptor);
        return code;
    }
    acceptor->pause = event_timer_new(loop, pause_ended, acceptor);
    acceptor->reserve_fd = open_reserve();
    *out_acceptor = acceptor;
    return FAILURE_NONE;
}

void tcp_acceptor_free(struct tcp_acceptor *acceptor) {
    if (acceptor == NULL) {
        return;
    }
    event_descriptor_free(acceptor->watch);
    event_timer_free(acceptor->pause);
    close(acceptor->settings.listening_fd);
    if (acceptor->reserve_fd >= 0) {
        close(acceptor->reserve_fd);
    }
    free(acceptor);
}

void tcp_acceptor_drain(struct tcp_acceptor *acceptor) {
    accept_several(acceptor, DRAIN_BATCH);
}
