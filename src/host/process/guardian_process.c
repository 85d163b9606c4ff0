/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/guardian_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "host/loop/clock.h"
#include "host/loop/descriptor_packet.h"
#include "host/process/guardian_fence.h"
#include "host/process/inherited_descriptors.h"
#include "host/process/process_name.h"
#include "host/process/process_table.h"

#define NOTICES_FD 3 /* the socket is moved here, behind the standard descriptors */

/* Signals that terminals and service managers send to whole groups. The guardian ignores them,
 * because it must not end before the agent. */
static const int ignored_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGUSR1,
    SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU};

static void settle_signals(void) {
    for (int signal_number = 1; signal_number < NSIG; signal_number++) {
        signal(signal_number, SIG_DFL);
    }
    for (size_t i = 0; i < sizeof ignored_signals / sizeof *ignored_signals; i++) {
        signal(ignored_signals[i], SIG_IGN);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Closes all of the agent's descriptors but the socket, and standard error if it is needed. */
static void settle_descriptors(int notices_fd, bool keeps_stderr) {
    if (dup2(notices_fd, NOTICES_FD) == -1) {
        _exit(EXIT_FAILURE);
    }
    int null_fd = open("/dev/null", O_RDWR);
    int last = keeps_stderr ? STDOUT_FILENO : STDERR_FILENO;
    for (int fd = STDIN_FILENO; fd <= last; fd++) {
        if (null_fd == -1 || dup2(null_fd, fd) == -1) {
            close(fd);
        }
    }
    inherited_descriptors_close(NOTICES_FD + 1);
}

/* A notice and the path behind it. */
struct packet {
    struct guardian_notice notice;
    char path[GUARDIAN_PATH_MAXIMUM + 1];
};

struct guardian_state {
    struct guardian_charge *charge;
    struct guardian_fence fence;
    int connection_fd; /* see guardian_hold_connection; -1: none */
};

/* The connection of the agent. */

static void let_go(struct guardian_state *state) {
    if (state->connection_fd != -1) {
        close(state->connection_fd);
        state->connection_fd = -1;
    }
}

/* The other nodes know at once that the agent is gone. */
static void shut_connection(struct guardian_state *state) {
    if (state->connection_fd != -1) {
        shutdown(state->connection_fd, SHUT_RDWR);
        let_go(state);
    }
}

/* The fence. */

/* A console that takes nothing must not hold up the guardian, nor one that has room for half a
 * line: such a terminal can be written to, and the write waits. A file is written to as it is
 * open, at its end. */
static void say(const char *line, size_t length) {
    struct pollfd console = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct stat status;
    if (poll(&console, 1, 0) != 1 || (console.revents & POLLOUT) == 0) {
        return;
    }
    bool may_wait =
        fstat(STDERR_FILENO, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode));
    int fd = may_wait ? open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    ssize_t written = write(fd >= 0 ? fd : STDERR_FILENO, line, length);
    (void)written;
    if (fd >= 0) {
        close(fd);
    }
}

static void say_closed(const struct guardian_state *state) {
    struct text message = {0};
    struct text line = {0};
    text_append_format(&message,
        "the agent (process %lld) stands still for %.1f s: its guardian has ended its workers, "
        "because the other nodes take such a node for lost",
        (long long)state->charge->agent, duration_seconds(state->fence.silence));
    struct log_time time = clock_log_time();
    log_format(&line, LOG_LEVEL_ERROR, &time, getpid(), LOG_ORIGIN, text_string(&message));
    say(text_string(&line), line.length);
    text_clear(&line);
    text_clear(&message);
}

/* The workers are gone before the other nodes begin a world without this one. */
static void close_fence(struct guardian_state *state) {
    const struct guardian_charge *charge = state->charge;
    struct guardian_word word = {state->fence.silence};
    send(NOTICES_FD, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
    guardian_sweep(&charge->sessions, &charge->fingerprint);
    shut_connection(state);
    say_closed(state);
}

/* The agent goes on with what it was doing, and that was to start workers. */
static void end_if_closed(const struct guardian_state *state, pid_t leader) {
    if (state->fence.is_closed && leader > 1) {
        kill(-leader, SIGKILL);
    }
}

static void hear_sign(struct guardian_state *state) {
    struct guardian_fence *fence = &state->fence;
    struct instant given = {atomic_load(&state->charge->sign->given)};
    if (instant_is_before(fence->heard, given)) {
        guardian_fence_hear(fence, fence->patience, given);
    }
}

static void look(struct guardian_state *state) {
    hear_sign(state);
    if (state->charge->sessions.count > 0 && guardian_fence_look(&state->fence, clock_now())) {
        close_fence(state);
    }
}

/* Notices. */

/* Takes the descriptor that has come with a notice, or none. */
static void take_connection(struct guardian_state *state, int fd) {
    let_go(state);
    state->connection_fd = fd;
    if (state->fence.is_closed) {
        shut_connection(state);
    }
}

static void take_notice(struct guardian_state *state, const struct packet *packet, int fd) {
    const struct guardian_notice *notice = &packet->notice;
    struct guardian_charge *charge = state->charge;
    switch (notice->kind) {
    case GUARDIAN_SESSION_BEGINS:
        guardian_sessions_add(&charge->sessions, notice->leader, notice->start_time);
        end_if_closed(state, notice->leader);
        break;
    case GUARDIAN_SESSION_ENDS:
        guardian_sessions_remove(&charge->sessions, notice->leader);
        break;
    case GUARDIAN_REMAINS:
        guardian_remains_add(&charge->remains, notice->remains, packet->path);
        break;
    case GUARDIAN_PATIENCE:
        guardian_fence_hear(&state->fence, notice->patience, clock_now());
        break;
    case GUARDIAN_CONNECTION:
        take_connection(state, fd);
        break;
    case GUARDIAN_HEARD:
        guardian_fence_open(&state->fence, clock_now());
        break;
    case GUARDIAN_FAREWELL:
        _exit(EXIT_SUCCESS);
    }
}

/* Returns false when the agent is gone without a farewell. */
static bool receive(struct guardian_state *state) {
    struct packet packet;
    int fd;
    ssize_t length = descriptor_packet_receive(NOTICES_FD, &packet, sizeof packet - 1, &fd);
    if (length >= (ssize_t)sizeof packet.notice) {
        ((char *)&packet)[length] = '\0';
        take_notice(state, &packet, fd);
    }
    return length > 0 || (length == -1 && (errno == EINTR || errno == EAGAIN));
}

static void keep_watch(struct guardian_charge *charge) {
    struct guardian_state state = {.charge = charge, .connection_fd = -1};
    struct pollfd notices = {.fd = NOTICES_FD, .events = POLLIN};
    for (;;) {
        int count = poll(&notices, 1, guardian_fence_pause(&state.fence));
        if (count > 0 && !receive(&state)) {
            shut_connection(&state);
            return;
        }
        if (count == 0) {
            look(&state);
        }
    }
}

_Noreturn void guardian_process_run(int notices_fd, int ready_fd, struct guardian_charge *charge) {
    int32_t pid = getpid();
    setsid();
    settle_signals();
    process_name_take(GUARDIAN_NAME);
    ssize_t written = write(ready_fd, &pid, sizeof pid);
    (void)written; /* four bytes into an empty socket are written whole, or the agent is gone */
    settle_descriptors(notices_fd, charge->may_fence);
    if (chdir("/") != 0) {
        _exit(EXIT_FAILURE); /* unreachable: /dev/null always exists */
    }
    keep_watch(charge);
    guardian_sweep(&charge->sessions, &charge->fingerprint);
    guardian_remains_remove(&charge->remains);
    _exit(EXIT_SUCCESS);
}
