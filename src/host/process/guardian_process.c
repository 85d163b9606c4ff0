/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/guardian_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/process/inherited_descriptors.h"
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

/* Overwrites the command line that was inherited from the agent. A tool that looks for the agent by
 * its command line must not find, count or kill the guardian. */
static void rename_self(void) {
    struct kernel_process_stat self;
    prctl(PR_SET_NAME, GUARDIAN_NAME);
    if (!process_table_read(getpid(), &self) || self.arguments_end <= self.arguments_start) {
        return;
    }
    int fd = open("/proc/self/mem", O_WRONLY | O_CLOEXEC);
    if (fd == -1) {
        return; /* only the name in the process table is changed then */
    }
    size_t size = self.arguments_end - self.arguments_start;
    char *arguments = memory_allocate(size);
    size_t length = strlen(GUARDIAN_NAME) < size ? strlen(GUARDIAN_NAME) : size - 1;
    memcpy(arguments, GUARDIAN_NAME, length);
    ssize_t written = pwrite(fd, arguments, size, (off_t)self.arguments_start);
    (void)written;
    free(arguments);
    close(fd);
}

/* Closes all of the agent's descriptors but the socket. */
static void settle_descriptors(int notices_fd) {
    if (dup2(notices_fd, NOTICES_FD) == -1) {
        _exit(EXIT_FAILURE);
    }
    int null_fd = open("/dev/null", O_RDWR);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
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

static void take_notice(struct guardian_charge *charge, const struct packet *packet) {
    const struct guardian_notice *notice = &packet->notice;
    switch (notice->kind) {
    case GUARDIAN_SESSION_BEGINS:
        guardian_sessions_add(&charge->sessions, notice->leader, notice->start_time);
        break;
    case GUARDIAN_SESSION_ENDS:
        guardian_sessions_remove(&charge->sessions, notice->leader);
        break;
    case GUARDIAN_REMAINS:
        guardian_remains_add(&charge->remains, notice->remains, packet->path);
        break;
    case GUARDIAN_FAREWELL:
        _exit(EXIT_SUCCESS);
    }
}

/* Returns when the agent is gone without a farewell. */
static void take_notices(struct guardian_charge *charge) {
    struct packet packet;
    for (;;) {
        ssize_t length = recv(NOTICES_FD, &packet, sizeof packet - 1, 0);
        if (length >= (ssize_t)sizeof packet.notice) {
            ((char *)&packet)[length] = '\0';
            take_notice(charge, &packet);
        } else if (length == 0 || (length == -1 && errno != EINTR)) {
            return;
        }
    }
}

_Noreturn void guardian_process_run(int notices_fd, int ready_fd, struct guardian_charge *charge) {
    int32_t pid = getpid();
    setsid();
    settle_signals();
    rename_self();
    ssize_t written = write(ready_fd, &pid, sizeof pid);
    (void)written; /* four bytes into an empty socket are written whole, or the agent is gone */
    settle_descriptors(notices_fd);
    if (chdir("/") != 0) {
        _exit(EXIT_FAILURE); /* unreachable: /dev/null always exists */
    }
    take_notices(charge);
    guardian_sweep(&charge->sessions, &charge->fingerprint);
    guardian_remains_remove(&charge->remains);
    _exit(EXIT_SUCCESS);
}
