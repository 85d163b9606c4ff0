/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/guardian.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/clock.h"
#include "host/loop/descriptor_packet.h"
#include "host/process/guardian_process.h"
#include "host/process/process_table.h"

/* A guardian that ends at once is not replaced without a pause. */
#define PAUSE_SECONDS 1

struct guardian {
    int notices_fd; /* -1: no guardian runs */
    pid_t pid;
    struct guardian_charge charge; /* as the guardian has it */
    struct guardian_sign *sign;    /* a mapping that it shares */
    struct duration patience;      /* what it has been told */
    int connection_fd;             /* the agent's; -1: none */
    struct event_loop *loop;       /* NULL: not watched, as what follows */
    struct event_descriptor *watch;
    struct event_timer *pause;
    struct guardian_events events;
    struct instant replaced; /* the last time */
    bool is_failure_told;
};

/* Never blocks and raises no SIGPIPE, because a failing guardian must not harm the job. */
static bool send_bytes(int fd, const void *bytes, size_t length) {
    return fd != -1 && send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length;
}

static bool send_notice(int fd, const struct guardian_notice *notice) {
    return send_bytes(fd, notice, sizeof *notice);
}

static void send_connection(int notices_fd, int connection_fd) {
    const struct guardian_notice notice = {.kind = GUARDIAN_CONNECTION};
    (void)descriptor_packet_send(notices_fd,
        (struct slice){(const uint8_t *)&notice, sizeof notice}, &connection_fd,
        connection_fd == -1 ? 0 : 1);
}

/* Starting. */

/* The guardian's ends of the sockets are the second ones. */
struct guardian_sockets {
    int notices[2];
    int ready[2]; /* the guardian's pid or a negative errno; its end tells the process between to
                     end */
};

static void close_pair(int ends[2]) {
    close(ends[0]);
    close(ends[1]);
}

/* Runs in a child of the agent, which forks the guardian, so that the guardian is not the agent's
 * child. It exits when it is told. */
static _Noreturn void run_between(
    const struct guardian_sockets *sockets, struct guardian_charge *charge) {
    pid_t pid = fork();
    if (pid == 0) {
        guardian_process_run(sockets->notices[1], sockets->ready[1], charge);
    }
    char byte;
    int32_t error = -errno;
    close(sockets->ready[0]);
    ssize_t length = pid == -1 ? write(sockets->ready[1], &error, sizeof error) : 0;
    length += read(sockets->ready[1], &byte, sizeof byte);
    _exit(length < 0);
}

static void wait_for(pid_t pid) {
    while (waitpid(pid, NULL, 0) == -1 && errno == EINTR) {
    }
}

/* The guardian's parent ends. The agent may be a subreaper, which must not adopt the guardian: so
 * it is none for as short as possible, because it would miss workers' orphans meanwhile. */
static void end_between(pid_t between, int ready_fd) {
    int was_subreaper = 0;
    prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    shutdown(ready_fd, SHUT_WR);
    wait_for(between);
    prctl(PR_SET_CHILD_SUBREAPER, was_subreaper, 0, 0, 0);
    close(ready_fd);
}

/* Returns the guardian's pid or a negative errno. */
static int32_t read_pid(int fd) {
    int32_t pid;
    ssize_t length;
    do {
        length = read(fd, &pid, sizeof pid);
    } while (length == -1 && errno == EINTR);
    return length == (ssize_t)sizeof pid ? pid : -ECHILD;
}

/* Signal handlers of the agent must not run in the children. Returns the guardian's pid or a
 * negative errno. The memory that a later guardian gets is a copy of the agent's at that time. */
static int32_t fork_guardian(struct guardian_sockets *sockets, struct guardian_charge *charge) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t between = fork();
    if (between == 0) {
        run_between(sockets, charge);
    }
    int32_t pid = between == -1 ? -errno : 0;
    close(sockets->ready[1]);
    if (between == -1) {
        close(sockets->ready[0]);
    } else {
        pid = read_pid(sockets->ready[0]);
        end_between(between, sockets->ready[0]);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid;
}

static enum failure_code start(struct guardian *guardian, struct failure *failure) {
    static const char sentence[] = "cannot start the guardian process";
    struct guardian_sockets sockets;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.notices) != 0) {
        return failure_set_system(failure, errno, sentence);
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.ready) != 0) {
        int error = errno;
        close_pair(sockets.notices);
        return failure_set_system(failure, error, sentence);
    }
    int32_t pid = fork_guardian(&sockets, &guardian->charge);
    close(sockets.notices[1]);
    if (pid < 0) {
        close(sockets.notices[0]);
        return failure_set_system(failure, -pid, sentence);
    }
    guardian->notices_fd = sockets.notices[0];
    guardian->pid = pid;
    guardian->patience = (struct duration){0};
    if (guardian->connection_fd != -1) {
        send_connection(guardian->notices_fd, guardian->connection_fd);
    }
    return FAILURE_NONE;
}

static enum failure_code share_sign(struct guardian *guardian, struct failure *failure) {
    void *page = mmap(
        NULL, sizeof *guardian->sign, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return failure_set_system(failure, errno, "cannot share memory with the guardian process");
    }
    guardian->sign = page;
    guardian->charge.sign = page;
    return FAILURE_NONE;
}

enum failure_code guardian_start(const struct text_list *fingerprint, bool may_fence,
    struct guardian **out_guardian, struct failure *failure) {
    struct guardian *guardian = memory_allocate(sizeof *guardian);
    guardian->notices_fd = -1;
    guardian->connection_fd = -1;
    guardian->charge.may_fence = may_fence;
    guardian->charge.agent = getpid();
    for (size_t i = 0; fingerprint != NULL && i < fingerprint->count; i++) {
        text_list_add(&guardian->charge.fingerprint, fingerprint->items[i]);
    }
    enum failure_code code = share_sign(guardian, failure);
    if (code == FAILURE_NONE) {
        code = start(guardian, failure);
    }
    if (code != FAILURE_NONE) {
        guardian_free(guardian);
        return code;
    }
    *out_guardian = guardian;
    return FAILURE_NONE;
}

static void stop_listening(struct guardian *guardian) {
    if (guardian->notices_fd != -1) {
        event_descriptor_free(guardian->watch);
        guardian->watch = NULL;
        close(guardian->notices_fd);
        guardian->notices_fd = -1;
    }
}

void guardian_free(struct guardian *guardian) {
    if (guardian != NULL) {
        send_notice(guardian->notices_fd, &(struct guardian_notice){.kind = GUARDIAN_FAREWELL});
        stop_listening(guardian);
        event_timer_free(guardian->pause);
        guardian_sessions_clear(&guardian->charge.sessions);
        guardian_remains_clear(&guardian->charge.remains);
        text_list_clear(&guardian->charge.fingerprint);
        if (guardian->sign != NULL) {
            munmap(guardian->sign, sizeof *guardian->sign);
        }
        free(guardian);
    }
}

/* Watching. */

static void hear(void *context);

static enum failure_code listen_to(struct guardian *guardian, struct failure *failure) {
    return event_descriptor_new(
        guardian->loop, guardian->notices_fd, hear, guardian, &guardian->watch, failure);
}

/* Comes at once, if the last time is long ago, or there was none. */
static void replace_soon(struct guardian *guardian) {
    event_timer_set(
        guardian->pause, instant_after(guardian->replaced, duration_from_seconds(PAUSE_SECONDS)));
}

static void replace(void *context) {
    struct guardian *guardian = context;
    struct failure failure;
    pid_t old = guardian->pid;
    guardian->replaced = event_loop_now(guardian->loop);
    enum failure_code code = start(guardian, &failure);
    if (code == FAILURE_NONE) {
        code = listen_to(guardian, &failure);
    }
    if (code == FAILURE_NONE) {
        guardian->is_failure_told = false;
        guardian->events.ended(guardian->events.context, old, NULL);
        return;
    }
    stop_listening(guardian);
    replace_soon(guardian);
    if (!guardian->is_failure_told) {
        guardian->is_failure_told = true;
        guardian->events.ended(guardian->events.context, old, &failure);
    }
}

static void hear(void *context) {
    struct guardian *guardian = context;
    struct guardian_word word;
    ssize_t length = recv(guardian->notices_fd, &word, sizeof word, MSG_DONTWAIT);
    if (length == (ssize_t)sizeof word) {
        send_notice(guardian->notices_fd, &(struct guardian_notice){.kind = GUARDIAN_HEARD});
        guardian->events.fenced(guardian->events.context, word.silence);
    } else if (length == 0 || errno != EAGAIN) {
        stop_listening(guardian);
        replace_soon(guardian);
    }
}

void guardian_listen(struct guardian *guardian) {
    if (guardian != NULL && guardian->watch != NULL) {
        hear(guardian);
    }
}

enum failure_code guardian_watch(struct guardian *guardian, struct event_loop *loop,
    const struct guardian_events *events, struct failure *failure) {
    guardian->loop = loop;
    guardian->events = *events;
    guardian->pause = event_timer_new(loop, replace, guardian);
    return listen_to(guardian, failure);
}

/* Telling. */

int guardian_descriptor(const struct guardian *guardian) {
    return guardian == NULL ? -1 : guardian->notices_fd;
}

void guardian_note_session(struct guardian *guardian, pid_t leader) {
    struct kernel_process_stat stat;
    if (guardian != NULL) {
        guardian_sessions_add(&guardian->charge.sessions, leader,
            process_table_read(leader, &stat) ? stat.start_time : 0);
    }
}

void guardian_end_session(struct guardian *guardian, pid_t leader) {
    if (guardian != NULL) {
        guardian_sessions_remove(&guardian->charge.sessions, leader);
        send_notice(guardian->notices_fd,
            &(struct guardian_notice){.kind = GUARDIAN_SESSION_ENDS, .leader = leader});
    }
}

/* The caller frees it; NULL when there is no working directory. */
static char *absolute_path(const char *path) {
    if (*path == '/') {
        return memory_duplicate_string(path);
    }
    char *directory = getcwd(NULL, 0);
    char *absolute = directory == NULL ? NULL : text_format("%s/%s", directory, path);
    free(directory);
    return absolute;
}

void guardian_remove_at_end(
    struct guardian *guardian, enum guardian_remains_kind kind, const char *path) {
    char *absolute = guardian == NULL ? NULL : absolute_path(path);
    if (absolute != NULL && strlen(absolute) <= GUARDIAN_PATH_MAXIMUM) {
        struct text notice = {0};
        struct guardian_notice head = {.kind = GUARDIAN_REMAINS, .remains = kind};
        text_append_bytes(&notice, (const char *)&head, sizeof head);
        text_append(&notice, absolute);
        guardian_remains_add(&guardian->charge.remains, kind, absolute);
        send_bytes(guardian->notices_fd, notice.data, notice.length);
        text_clear(&notice);
    }
    free(absolute);
}

void guardian_speak(struct guardian *guardian, struct duration patience) {
    atomic_store(&guardian->sign->given, clock_now().nanoseconds);
    if (patience.nanoseconds != guardian->patience.nanoseconds &&
        send_notice(guardian->notices_fd,
            &(struct guardian_notice){.kind = GUARDIAN_PATIENCE, .patience = patience})) {
        guardian->patience = patience;
    }
}

void guardian_hold_connection(struct guardian *guardian, int fd) {
    if (guardian != NULL) {
        guardian->connection_fd = fd;
        send_connection(guardian->notices_fd, fd);
    }
}

pid_t guardian_pid(const struct guardian *guardian) {
    return guardian->pid;
}

void guardian_announce_self(int guardian_fd) {
    if (guardian_fd == -1) {
        return;
    }
    struct guardian_notice notice = {.kind = GUARDIAN_SESSION_BEGINS, .leader = getpid()};
    struct kernel_process_stat self;
    if (process_table_read(getpid(), &self)) {
        notice.start_time = self.start_time;
    }
    send_notice(guardian_fd, &notice);
}

void guardian_withdraw_self(int guardian_fd) {
    send_notice(
        guardian_fd, &(struct guardian_notice){.kind = GUARDIAN_SESSION_ENDS, .leader = getpid()});
}
