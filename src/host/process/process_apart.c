/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/process_apart.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/loop/descriptors.h"
#include "host/loop/event_loop.h"
#include "host/process/process_table.h"

/* Where the copy has its end of the socket, and after it the program's pidfd; or after what is kept
 * of the program's. */
#define SOCKET_FILENO 3

static const char sentence[] = "cannot start a process for the agent";

/* Everything the processes need, on the stack of the program's thread. */
struct parting {
    const struct process_apart_settings *settings;
    int socket;  /* the copy's end */
    int program; /* or -1 */
};

/* In the process between and in the copy. */

static void report(int fd, int32_t what) {
    ssize_t written = send(fd, &what, sizeof what, MSG_NOSIGNAL);
    (void)written; /* where it fails, the program sees the end of the socket */
}

static _Noreturn void give_up(const struct parting *parting) {
    report(parting->socket, -errno);
    _exit(1);
}

/* Standard streams that are closed would be taken by what is opened next. */
static bool fill_standard_streams(const struct process_apart_settings *settings) {
    const int given[] = {-1, settings->stdout_fd, settings->stderr_fd};
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (given[fd] >= 0 ? dup2(given[fd], fd) < 0
                           : fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) {
            return false;
        }
    }
    return true;
}

static int socket_number(const struct parting *parting) {
    int kept = parting->settings->kept_fd;
    return kept < SOCKET_FILENO ? SOCKET_FILENO : kept + 1;
}

/* A descriptor that is in nobody's way. */
static int set_aside(const struct parting *parting, int fd) {
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, socket_number(parting) + 2);
}

/* What is kept lies before the socket. */
static void close_others(const struct parting *parting) {
    int kept = parting->settings->kept_fd;
    for (int fd = SOCKET_FILENO; fd < kept; fd++) {
        close(fd);
    }
    if (kept >= SOCKET_FILENO) {
        (void)fcntl(kept, F_SETFD, FD_CLOEXEC);
    }
    inherited_descriptors_close(parting->program >= 0 ? parting->program + 1 : parting->socket + 1);
}

static void keep_only_ours(struct parting *parting) {
    int out = set_aside(parting, parting->settings->stdout_fd);
    int error = set_aside(parting, parting->settings->stderr_fd);
    int program = set_aside(parting, parting->program);
    int ours = set_aside(parting, parting->socket);
    int number = socket_number(parting);
    const struct process_apart_settings streams = {.stdout_fd = out, .stderr_fd = error};
    bool is_lost = (out < 0 && parting->settings->stdout_fd >= 0) ||
                   (error < 0 && parting->settings->stderr_fd >= 0) || ours < 0;
    if (is_lost || !fill_standard_streams(&streams) || dup3(ours, number, O_CLOEXEC) < 0) {
        give_up(parting);
    }
    parting->socket = number;
    if (program >= 0 && dup3(program, number + 1, O_CLOEXEC) < 0) {
        give_up(parting);
    }
    parting->program = program >= 0 ? number + 1 : -1;
    close_others(parting);
}

/* What the program was started to ignore stays ignored. */
static void reset_signals(void) {
    struct sigaction action = {.sa_handler = SIG_DFL};
    uint64_t ignored = signal_watch_ignored();
    sigset_t none;
    for (int signal = 1; signal < NSIG; signal++) {
        if ((ignored & signal_watch_bit(signal)) != 0) {
            continue;
        }
        sigaction(signal, &action, NULL); /* fails for a few signals that cannot be changed */
    }
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static _Noreturn void run_copy(const struct parting *parting) {
    reset_signals();
    (void)setsid(); /* cannot fail in a process that has just been forked */
    report(parting->socket, (int32_t)getpid());
    _exit(parting->settings->run(parting->settings->context, parting->socket, parting->program));
}

static _Noreturn void run_between(struct parting *parting) {
    keep_only_ours(parting);
    pid_t pid = fork();
    if (pid == 0) {
        run_copy(parting);
    }
    if (pid < 0) {
        give_up(parting);
    }
    _exit(0);
}

/* In the program. */

/* No handler of the program may run in the copies. */
static pid_t fork_between(struct parting *parting) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t between = fork();
    if (between == 0) {
        run_between(parting);
    }
    int error = errno;
    /* The program may wait for all its children, or for none. */
    while (between > 0 && waitpid(between, NULL, 0) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return between;
}

/* The copy's pid or a negative errno. */
static int32_t read_pid(int fd) {
    int32_t pid;
    ssize_t length;
    do {
        length = recv(fd, &pid, sizeof pid, MSG_WAITALL);
    } while (length < 0 && errno == EINTR);
    return length == (ssize_t)sizeof pid ? pid : -ECHILD;
}

static enum failure_code part(const struct process_apart_settings *settings, int ends[2],
    struct process_apart *out_process, struct failure *failure) {
    struct parting parting = {settings, ends[1], pidfd_open_process(getpid())};
    pid_t between = fork_between(&parting);
    int error = errno;
    close(ends[1]);
    if (parting.program >= 0) {
        close(parting.program);
    }
    if (between < 0) {
        return failure_set_system(failure, error, sentence);
    }
    int32_t pid = read_pid(ends[0]);
    if (pid < 0) {
        return failure_set_system(failure, -pid, sentence);
    }
    *out_process = (struct process_apart){pid, pidfd_open_process(pid), ends[0]};
    return FAILURE_NONE;
}

enum failure_code process_apart_start(const struct process_apart_settings *settings,
    struct process_apart *out_process, struct failure *failure) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return failure_set_system(failure, errno, sentence);
    }
    enum failure_code code = part(settings, ends, out_process, failure);
    if (code != FAILURE_NONE) {
        close(ends[0]);
    }
    return code;
}

/* Without a pidfd the number alone has to do. It belongs to the process while that has not closed
 * its end of the socket. */
bool process_apart_signal(const struct process_apart *process, int signal) {
    return process->pidfd >= 0 ? pidfd_signal(process->pidfd, signal)
                               : kill(process->pid, signal) == 0;
}
