/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/process_apart.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/descriptors.h"
#include "host/process/process_table.h"

/* Where the copy has its end of the socket, and after it the program's pidfd; or after what is kept
 * of the program's. */
#define SOCKET_FILENO 3

static const char apart_sentence[] = "cannot start a process for the agent";

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
        return failure_set_system(failure, error, apart_sentence);
    }
    int32_t pid = read_pid(ends[0]);
    if (pid < 0) {
        return failure_set_system(failure, -pid, apart_sentence);
    }
    *out_process = (struct process_apart){pid, pidfd_open_process(pid), ends[0]};
    return FAILURE_NONE;
}

enum failure_code process_apart_start(const struct process_apart_settings *settings,
    struct process_apart *out_process, struct failure *failure) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return failure_set_system(failure, errno, apart_sentence);
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

/* Signal witness. */

#define SIGNAL_WITNESS_NAME "muster-witness"

/* In the witness. */
#define SIGNAL_WITNESS_SOCKET_FILENO 0
#define SIGNALS_FILENO 1

struct signal_witness {
    pid_t pid;
    int fd;
    struct event_descriptor *watch; /* NULL: it has ended */
    struct event_loop *loop;
    void (*seen)(void *context, int signal);
    void *context;
};

/* In the witness. All signals are blocked. */

static void tell(unsigned char number) {
    ssize_t sent = send(SIGNAL_WITNESS_SOCKET_FILENO, &number, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)sent; /* an agent that does not read is told later that the socket has ended */
}

static void tell_signals(void) {
    struct signalfd_siginfo info;
    while (read(SIGNALS_FILENO, &info, sizeof info) == (ssize_t)sizeof info) {
        tell((unsigned char)info.ssi_signo);
    }
}

/* False: the agent has closed its end, or has ended. */
static bool take_question(void) {
    unsigned char question;
    return recv(SIGNAL_WITNESS_SOCKET_FILENO, &question, 1, 0) == 1;
}

/* Signals come after a question and before its answer. */
static void tell_until_the_agent_ends(void) {
    struct pollfd polled[] = {{.fd = SIGNAL_WITNESS_SOCKET_FILENO, .events = POLLIN},
        {.fd = SIGNALS_FILENO, .events = POLLIN}};
    while (poll(polled, 2, -1) > 0) {
        bool is_asked = polled[0].revents != 0;
        if (is_asked && !take_question()) {
            return;
        }
        tell_signals();
        if (is_asked) {
            tell(SIGNAL_WITNESS_ANSWER);
        }
    }
}

static _Noreturn void run(pid_t agent, int fd) {
    sigset_t all;
    sigfillset(&all);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != agent) {
        _exit(0);
    }
    (void)setsid(); /* cannot fail in a process that has just been forked */
    process_name_take(SIGNAL_WITNESS_NAME);
    int signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    /* neither of the two may be where the other one goes */
    int socket_aside = fcntl(fd, F_DUPFD_CLOEXEC, SIGNALS_FILENO + 1);
    int signals_aside = fcntl(signals, F_DUPFD_CLOEXEC, SIGNALS_FILENO + 1);
    if (dup2(socket_aside, SIGNAL_WITNESS_SOCKET_FILENO) < 0 ||
        dup2(signals_aside, SIGNALS_FILENO) < 0) {
        _exit(1);
    }
    inherited_descriptors_close(SIGNALS_FILENO + 1);
    tell_until_the_agent_ends();
    _exit(0);
}

/* In the agent. */

/* No handler of the agent may run in the witness. */
static pid_t fork_witness(const int ends[2]) {
    sigset_t all;
    sigset_t before;
    pid_t agent = getpid();
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        run(agent, ends[1]);
    }
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

static void stop_listening(struct signal_witness *witness) {
    if (witness->watch != NULL) {
        event_descriptor_free(witness->watch);
        witness->watch = NULL;
    }
}

bool signal_witness_listen(struct signal_witness *witness) {
    unsigned char number;
    ssize_t length = -1;
    while (witness->watch != NULL && (length = recv(witness->fd, &number, 1, MSG_DONTWAIT)) == 1) {
        witness->seen(witness->context, number);
    }
    if (length == 0 || (length < 0 && errno != EAGAIN)) {
        stop_listening(witness);
    }
    return witness->watch != NULL;
}

bool signal_witness_ask(struct signal_witness *witness) {
    static const unsigned char question = 0;
    return witness->watch != NULL &&
           send(witness->fd, &question, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

static void readable(void *context) {
    (void)signal_witness_listen(context);
}

static enum failure_code start(struct signal_witness *witness, struct failure *failure) {
    static const char sentence[] = "cannot start the process that witnesses signals";
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return failure_set_system(failure, errno, sentence);
    }
    witness->fd = ends[0];
    witness->pid = fork_witness(ends);
    int error = errno;
    close(ends[1]);
    return witness->pid < 0 ? failure_set_system(failure, error, sentence)
                            : event_descriptor_new(witness->loop, witness->fd, readable, witness,
                                  &witness->watch, failure);
}

enum failure_code signal_witness_new(struct event_loop *loop,
    void (*seen)(void *context, int signal), void *context, struct signal_witness **out_witness,
    struct failure *failure) {
    const struct signal_witness initial = {
        .pid = -1, .fd = -1, .loop = loop, .seen = seen, .context = context};
    struct signal_witness *witness = memory_duplicate(&initial, sizeof initial);
    enum failure_code code = start(witness, failure);
    if (code != FAILURE_NONE) {
        signal_witness_free(witness);
        return code;
    }
    *out_witness = witness;
    return FAILURE_NONE;
}

/* While it has not been waited for, its number is no other process'. It may be stopped, so it is
 * not asked. */
static void end_process(pid_t pid) {
    if (waitpid(pid, NULL, WNOHANG) == 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) == -1 && errno == EINTR) {
        }
    }
}

void signal_witness_free(struct signal_witness *witness) {
    if (witness != NULL) {
        stop_listening(witness);
        if (witness->pid > 0) {
            end_process(witness->pid);
        }
        if (witness->fd >= 0) {
            close(witness->fd);
        }
        free(witness);
    }
}

pid_t signal_witness_pid(const struct signal_witness *witness) {
    return witness->pid;
}
