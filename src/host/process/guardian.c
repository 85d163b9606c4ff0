/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "host/loop/clock.h"
#include "host/loop/descriptors.h"
#include "host/loop/files.h"
#include "host/process/process_table.h"

#define LOOKS 16      /* at a silent agent, in the time that it may be silent */
#define USUAL_LOOKS 4 /* at one that was not silent at the last look */
#define GUARDIAN_FENCE_LONGEST_PAUSE_MILLISECONDS 500 /* while it is silent */
#define LONGEST_USUAL_PAUSE_MILLISECONDS 60000

void guardian_fence_hear(
    struct guardian_fence *fence, struct duration patience, struct instant now) {
    fence->patience = patience;
    fence->silence = (struct duration){0};
    fence->heard = now;
    fence->counted_until = now;
}

/* The pause between two looks at a silent agent, in milliseconds. */
static int64_t short_pause(const struct guardian_fence *fence) {
    int64_t pause = duration_milliseconds_ceiling(fence->patience) / LOOKS + 1;
    return pause < GUARDIAN_FENCE_LONGEST_PAUSE_MILLISECONDS
               ? pause
               : GUARDIAN_FENCE_LONGEST_PAUSE_MILLISECONDS;
}

int guardian_fence_pause(const struct guardian_fence *fence) {
    if (fence->patience.nanoseconds <= 0 || fence->is_closed) {
        return -1;
    }
    struct duration usual = {fence->patience.nanoseconds / USUAL_LOOKS};
    if (fence->silence.nanoseconds <= usual.nanoseconds) {
        int64_t pause = duration_milliseconds_ceiling(usual);
        return (int)(pause < LONGEST_USUAL_PAUSE_MILLISECONDS ? pause
                                                              : LONGEST_USUAL_PAUSE_MILLISECONDS);
    }
    int64_t left = fence->patience.nanoseconds - fence->silence.nanoseconds;
    int64_t pause = duration_milliseconds_ceiling((struct duration){left > 0 ? left : 1});
    return (int)(pause < short_pause(fence) ? pause : short_pause(fence));
}

bool guardian_fence_look(struct guardian_fence *fence, struct instant now) {
    int pause = guardian_fence_pause(fence);
    if (pause < 0) {
        return false;
    }
    int64_t most = duration_from_milliseconds(pause + short_pause(fence)).nanoseconds;
    int64_t passed = instant_until(fence->counted_until, now).nanoseconds;
    fence->silence.nanoseconds += passed < most ? passed : most;
    fence->counted_until = now;
    fence->is_closed = fence->silence.nanoseconds >= fence->patience.nanoseconds;
    return fence->is_closed;
}

void guardian_fence_open(struct guardian_fence *fence, struct instant now) {
    fence->is_closed = false;
    guardian_fence_hear(fence, fence->patience, now);
}

/* Guardian remains. */

struct guardian_remainder {
    enum guardian_remains_kind kind;
    char *path;                 /* absolute */
    struct directory_tree tree; /* GUARDIAN_REMAINS_TREE */
};

/* A zeroed struct is a valid empty list. */
struct guardian_remains {
    struct guardian_remainder *items;
    size_t count;
    size_t capacity;
};

/* Copies the path. Looks at what is there when that is a tree. */
static void guardian_remains_add(
    struct guardian_remains *remains, enum guardian_remains_kind kind, const char *path) {
    remains->items = memory_reserve(
        remains->items, &remains->capacity, remains->count + 1, sizeof *remains->items);
    struct guardian_remainder item = {.kind = kind, .path = memory_duplicate_string(path)};
    if (kind == GUARDIAN_REMAINS_TREE) {
        (void)directory_tree_note(
            path, &item.tree); /* one that is not there is not removed later */
    }
    remains->items[remains->count++] = item;
}

static void guardian_remains_clear(struct guardian_remains *remains) {
    for (size_t i = 0; i < remains->count; i++) {
        free(remains->items[i].path);
    }
    free(remains->items);
    *remains = (struct guardian_remains){0};
}

static bool is_ours(const char *path, mode_t type) {
    struct stat status;
    return lstat(path, &status) == 0 && (status.st_mode & S_IFMT) == type &&
           status.st_uid == geteuid();
}

static bool has_reader(const char *path) {
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    int error = errno;
    if (fd != -1) {
        close(fd);
    }
    return fd != -1 || error != ENXIO;
}

/* The directory of the socket is the working directory: an address has room for short paths only.
 */
static bool has_listener(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(name) >= sizeof address.sun_path) {
        return true;
    }
    strcpy(address.sun_path, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_refused = fd != -1 &&
                      connect(fd, (const struct sockaddr *)&address, sizeof address) == -1 &&
                      errno == ECONNREFUSED;
    if (fd != -1) {
        close(fd);
    }
    return !is_refused;
}

static void remove_fifo(const char *path) {
    if (is_ours(path, S_IFIFO) && !has_reader(path)) {
        unlink(path);
    }
}

static void remove_socket(const char *path) {
    const char *name = strrchr(path, '/') + 1;
    char *directory = text_format("%.*s", (int)(name - path), path);
    if (chdir(directory) == 0 && is_ours(name, S_IFSOCK) && !has_listener(name)) {
        unlink(name);
    }
    free(directory);
}

/* Removes everything in the list. Changes the working directory. It waits for the disk. */
static void guardian_remains_remove(const struct guardian_remains *remains) {
    for (size_t i = 0; i < remains->count; i++) {
        const struct guardian_remainder *item = &remains->items[i];
        switch (item->kind) {
        case GUARDIAN_REMAINS_FIFO:
            remove_fifo(item->path);
            break;
        case GUARDIAN_REMAINS_SOCKET:
            remove_socket(item->path);
            break;
        case GUARDIAN_REMAINS_DIRECTORY:
            (void)empty_directory_remove(item->path);
            break;
        case GUARDIAN_REMAINS_TREE:
            (void)directory_tree_remove(item->path, &item->tree, NULL);
            break;
        }
    }
}

/* Guardian sweep. */

#define PATIENCE_MILLISECONDS 800
#define FIRST_PAUSE_MILLISECONDS 1
#define GUARDIAN_SWEEP_LONGEST_PAUSE_MILLISECONDS 32
/* The sweep ends after this many looks without a match. One is not enough, because a process in the
 * middle of exec shows no environment. */
#define CLEAN_LOOKS 8

/* Ends what is left of a job whose agent is gone: the sessions in a list, and the processes with
 * the job's fingerprint. The guardian process decides when. */

struct guardian_session {
    pid_t leader;
    uint64_t start_time; /* 0: unknown */
};

/* A zeroed struct is a valid empty list. */
struct guardian_sessions {
    struct guardian_session *items;
    size_t count;
    size_t capacity;
};

struct sweep {
    struct guardian_sessions sessions; /* sessions whose number still belongs to the job */
    const struct text_list *fingerprint;
    char *environment; /* PROCESS_WORDS_ENVIRONMENT_CEILING bytes; NULL until needed */
    bool has_found;    /* a process was found in this look */
};

static void guardian_sessions_remove(struct guardian_sessions *sessions, pid_t leader) {
    for (size_t i = 0; i < sessions->count; i++) {
        if (sessions->items[i].leader == leader) {
            sessions->items[i] = sessions->items[--sessions->count];
            return;
        }
    }
}

static void guardian_sessions_add(
    struct guardian_sessions *sessions, pid_t leader, uint64_t start_time) {
    if (leader <= 1) {
        return; /* kill(-1) and kill(0) would signal other processes than this session */
    }
    guardian_sessions_remove(sessions, leader);
    sessions->items = memory_reserve(
        sessions->items, &sessions->capacity, sessions->count + 1, sizeof *sessions->items);
    sessions->items[sessions->count++] = (struct guardian_session){leader, start_time};
}

static void guardian_sessions_clear(struct guardian_sessions *sessions) {
    free(sessions->items);
    *sessions = (struct guardian_sessions){0};
}

/* Whether the environment (NAME=VALUE strings, each ended by NUL) matches the fingerprint: for one
 * NAME=START of it there is a variable NAME whose value begins with START. An empty fingerprint
 * matches nothing. */
static bool guardian_fingerprint_fits(
    const struct text_list *fingerprint, const char *environment, size_t length) {
    for (size_t i = 0; i < fingerprint->count; i++) {
        size_t rest_length;
        if (process_words_variable(fingerprint->items[i], environment, length, &rest_length) !=
            NULL) {
            return true;
        }
    }
    return false;
}

/* The guardian of a job that runs within this job. It must end its own workers first; then it exits
 * by itself. */
static bool is_guardian(pid_t pid) {
    char name[sizeof GUARDIAN_NAME];
    size_t length = process_words_read(pid, "/comm", name, sizeof name);
    return length == sizeof name && memcmp(name, GUARDIAN_NAME, sizeof name - 1) == 0;
}

static bool has_fingerprint(struct sweep *sweep, pid_t pid) {
    if (sweep->fingerprint->count == 0) {
        return false;
    }
    if (sweep->environment == NULL) {
        sweep->environment = memory_allocate(PROCESS_WORDS_ENVIRONMENT_CEILING);
    }
    size_t length =
        process_words_read(pid, "/environ", sweep->environment, PROCESS_WORDS_ENVIRONMENT_CEILING);
    return guardian_fingerprint_fits(sweep->fingerprint, sweep->environment, length) &&
           !is_guardian(pid);
}

static bool is_in_sessions(const struct guardian_sessions *sessions, int64_t session) {
    for (size_t i = 0; i < sessions->count; i++) {
        if (sessions->items[i].leader == session) {
            return true;
        }
    }
    return false;
}

static bool end_if_ours(void *context, pid_t pid) {
    struct sweep *sweep = context;
    struct kernel_process_stat stat;
    if (pid == getpid() || !process_table_read(pid, &stat) || stat.state == 'Z' ||
        stat.state == 'X') {
        return true;
    }
    if (is_in_sessions(&sweep->sessions, stat.session) || has_fingerprint(sweep, pid)) {
        sweep->has_found = process_table_signal(&stat, SIGKILL) || sweep->has_found;
    }
    return true;
}

/* A number stays with a session as long as the session has a member. It was reused only if there is
 * a process of that number which is not the leader that was announced. */
static void drop_foreign_sessions(struct guardian_sessions *sessions) {
    for (size_t i = sessions->count; i > 0; i--) {
        const struct guardian_session *session = &sessions->items[i - 1];
        struct kernel_process_stat now;
        if (session->start_time != 0 && process_table_read(session->leader, &now) &&
            now.start_time != session->start_time) {
            guardian_sessions_remove(sessions, session->leader);
        }
    }
}

/* Signals process groups first, before the slower search through /proc, because most members are in
 * their leader's group. */
static void kill_groups(const struct guardian_sessions *sessions) {
    for (size_t i = 0; i < sessions->count; i++) {
        kill(-sessions->items[i].leader, SIGKILL);
    }
}

static void pause_for(int milliseconds) {
    struct timespec time = {.tv_nsec = milliseconds * 1000000L};
    nanosleep(&time, NULL);
}

/* Looks at every process once and signals those of the job. Returns false when there were none. */
static bool end_all_found(struct sweep *sweep) {
    sweep->has_found = false;
    drop_foreign_sessions(&sweep->sessions);
    kill_groups(&sweep->sessions);
    process_table_each(end_if_ours, sweep);
    return sweep->has_found;
}

/* Sends SIGKILL until no process is left, for at most 0.8 s. A process that is still there then
 * cannot die yet, but has the signal. The caller is never signalled, nor a session whose number now
 * belongs to another process. */
static void guardian_sweep(
    const struct guardian_sessions *sessions, const struct text_list *fingerprint) {
    struct sweep sweep = {.fingerprint = fingerprint};
    for (size_t i = 0; i < sessions->count; i++) {
        guardian_sessions_add(
            &sweep.sessions, sessions->items[i].leader, sessions->items[i].start_time);
    }
    struct instant deadline =
        instant_after(clock_now(), duration_from_milliseconds(PATIENCE_MILLISECONDS));
    int pause = FIRST_PAUSE_MILLISECONDS;
    int clean_looks = 0;
    while (instant_is_before(clock_now(), deadline)) {
        clean_looks = end_all_found(&sweep) ? 0 : clean_looks + 1;
        if (clean_looks == CLEAN_LOOKS) {
            break;
        }
        pause_for(pause);
        pause = pause * 2 < GUARDIAN_SWEEP_LONGEST_PAUSE_MILLISECONDS
                    ? pause * 2
                    : GUARDIAN_SWEEP_LONGEST_PAUSE_MILLISECONDS;
    }
    free(sweep.environment);
    guardian_sessions_clear(&sweep.sessions);
}

/* Guardian process. */

/* What the guardian says, when it ends the workers of an agent that lives, but is silent. It says
 * so before, so that the agent knows it when it sees their ends. */
struct guardian_word {
    struct duration silence;
};

/* The most bytes of a path that follows a notice. */
#define GUARDIAN_PATH_MAXIMUM PATH_MAX

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

/* In memory that the agent and its guardian share, so that a sign of life wakes nobody: the agent's
 * last one, in nanoseconds of the monotonic clock. */
struct guardian_sign {
    _Atomic int64_t given;
};

/* What is ended and removed when the agent is gone. A guardian that takes another one's place
 * begins with all of it. A zeroed struct is valid and empty. */
struct guardian_charge {
    struct guardian_sessions sessions;
    struct guardian_remains remains;
    struct text_list fingerprint; /* see guardian_start */
    bool may_fence;               /* the same; else the guardian has no standard error */
    int32_t agent;
    const struct guardian_sign *sign;
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

/* Runs in a process of its own and never returns. It reads notices from `notices_fd` until the
 * farewell or the end of the socket. It writes its pid (an int32_t) to `ready_fd` when it no longer
 * depends on anything of the agent's. `charge` is where it begins; it is the process's own. */
static _Noreturn void guardian_process_run(
    int notices_fd, int ready_fd, struct guardian_charge *charge) {
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

/* Guardian. */

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
