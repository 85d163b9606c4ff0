/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/process/guardian_process.h"
#include "host/process/process_table.h"

struct guardian {
    int notices_fd;
    pid_t pid;
};

/* Never blocks and raises no SIGPIPE, because a failing guardian must not harm the job. */
static void send_notice(int fd, const struct guardian_notice *notice) {
    if (fd != -1) {
        send(fd, notice, sizeof *notice, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
}

/* Runs in a child of the agent. The child forks the guardian and exits, so that the guardian is not
 * the agent's child. */
static _Noreturn void run_intermediate_child(
    int notices_fd, int ready_fd, const struct text_list *fingerprint) {
    pid_t pid = fork();
    if (pid == 0) {
        guardian_process_run(notices_fd, ready_fd, fingerprint);
    }
    _exit(pid == -1 ? errno : 0);
}

/* Forks twice. Returns an errno, or 0 when the guardian runs. */
static int fork_guardian(int notices_fd, int ready_fd, const struct text_list *fingerprint) {
    pid_t between = fork();
    if (between == 0) {
        run_intermediate_child(notices_fd, ready_fd, fingerprint);
    }
    if (between == -1) {
        return errno;
    }
    int status = 0;
    while (waitpid(between, &status, 0) == -1 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

/* Calls fork_guardian in a process that may have signal handlers (which must not run in the child)
 * and may be a subreaper (which must not adopt the guardian). */
static int fork_apart(int notices_fd, int ready_fd, const struct text_list *fingerprint) {
    sigset_t all;
    sigset_t before;
    int was_subreaper = 0;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    prctl(PR_GET_CHILD_SUBREAPER, &was_subreaper, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    int system_error = fork_guardian(notices_fd, ready_fd, fingerprint);
    prctl(PR_SET_CHILD_SUBREAPER, was_subreaper, 0, 0, 0);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return system_error;
}

/* Returns an errno, or 0 on success. */
static int start(
    const int notices[2], const struct text_list *fingerprint, struct guardian *guardian) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) {
        return errno;
    }
    int system_error = fork_apart(notices[1], ready[1], fingerprint);
    close(ready[1]);
    int32_t pid = 0;
    ssize_t length = 0;
    do {
        length = read(ready[0], &pid, sizeof pid);
    } while (length == -1 && errno == EINTR);
    if (system_error == 0 && length != (ssize_t)sizeof pid) {
        system_error = ECHILD;
    }
    close(ready[0]);
    *guardian = (struct guardian){.notices_fd = notices[0], .pid = pid};
    return system_error;
}

enum failure_code guardian_start(
    const struct text_list *fingerprint, struct guardian **out_guardian, struct failure *failure) {
    int notices[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, notices) != 0) {
        return failure_set_system(failure, errno, "cannot start the guardian process");
    }
    struct text_list none = {0};
    struct guardian guardian;
    int system_error = start(notices, fingerprint == NULL ? &none : fingerprint, &guardian);
    close(notices[1]);
    if (system_error != 0) {
        close(notices[0]);
        return failure_set_system(failure, system_error, "cannot start the guardian process");
    }
    *out_guardian = memory_duplicate(&guardian, sizeof guardian);
    return FAILURE_NONE;
}

void guardian_free(struct guardian *guardian) {
    if (guardian != NULL) {
        send_notice(guardian->notices_fd, &(struct guardian_notice){.kind = GUARDIAN_FAREWELL});
        close(guardian->notices_fd);
        free(guardian);
    }
}

int guardian_descriptor(const struct guardian *guardian) {
    return guardian == NULL ? -1 : guardian->notices_fd;
}

void guardian_end_session(struct guardian *guardian, pid_t leader) {
    send_notice(guardian_descriptor(guardian),
        &(struct guardian_notice){.kind = GUARDIAN_SESSION_ENDS, .leader = leader});
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
