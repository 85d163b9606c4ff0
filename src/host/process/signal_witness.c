/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/signal_witness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/descriptors.h"
#include "host/process/process_table.h"

/* In the witness. */
#define SOCKET_FILENO 0
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
    ssize_t sent = send(SOCKET_FILENO, &number, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
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
    return recv(SOCKET_FILENO, &question, 1, 0) == 1;
}

/* Signals come after a question and before its answer. */
static void tell_until_the_agent_ends(void) {
    struct pollfd polled[] = {
        {.fd = SOCKET_FILENO, .events = POLLIN}, {.fd = SIGNALS_FILENO, .events = POLLIN}};
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
    if (dup2(socket_aside, SOCKET_FILENO) < 0 || dup2(signals_aside, SIGNALS_FILENO) < 0) {
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
