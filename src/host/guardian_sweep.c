/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/guardian_sweep.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/memory.h"
#include "host/guardian_process.h"
#include "host/number_directory.h"
#include "host/process_table.h"

#define PATIENCE_MILLISECONDS 800
#define FIRST_PAUSE_MILLISECONDS 1
#define LONGEST_PAUSE_MILLISECONDS 32
/* A process in the middle of exec shows no environment, so one look that finds nobody proves
 * little. */
#define CLEAN_LOOKS 8

/* The most of an environment that is looked at; the kernel's own limit is a quarter of the stack's
 * (2 MiB). */
#define ENVIRONMENT_CEILING (4 << 20)

struct sweep {
    struct guardian_sessions sessions; /* those still ours */
    const struct text_list *fingerprint;
    char *environment; /* ENVIRONMENT_CEILING bytes; NULL until needed */
    bool has_found;    /* this round met somebody */
};

void guardian_sessions_add(struct guardian_sessions *sessions, pid_t leader, uint64_t start_time) {
    if (leader <= 1) {
        return; /* kill() would take its negative for "everybody" */
    }
    guardian_sessions_remove(sessions, leader);
    sessions->items = memory_reserve(
        sessions->items, &sessions->capacity, sessions->count + 1, sizeof *sessions->items);
    sessions->items[sessions->count++] = (struct guardian_session){leader, start_time};
}

void guardian_sessions_remove(struct guardian_sessions *sessions, pid_t leader) {
    for (size_t i = 0; i < sessions->count; i++) {
        if (sessions->items[i].leader == leader) {
            sessions->items[i] = sessions->items[--sessions->count];
            return;
        }
    }
}

void guardian_sessions_clear(struct guardian_sessions *sessions) {
    free(sessions->items);
    *sessions = (struct guardian_sessions){0};
}

/* Whether one NUL-ended string of the environment begins with `start`. */
static bool has_variable(const char *start, const char *environment, size_t length) {
    size_t start_length = strlen(start);
    for (size_t offset = 0; offset < length;) {
        size_t entry_length = strnlen(environment + offset, length - offset);
        if (entry_length >= start_length &&
            memcmp(environment + offset, start, start_length) == 0) {
            return true;
        }
        offset += entry_length + 1;
    }
    return false;
}

bool guardian_fingerprint_fits(
    const struct text_list *fingerprint, const char *environment, size_t length) {
    for (size_t i = 0; i < fingerprint->count; i++) {
        if (!has_variable(fingerprint->items[i], environment, length)) {
            return false;
        }
    }
    return fingerprint->count > 0;
}

/* Reads /proc/<pid>/<file> up to `size` bytes; 0 when that is not allowed or there is none. */
static size_t read_process_file(pid_t pid, const char *file, char *buffer, size_t size) {
    char path[NUMBER_PATH_SIZE];
    size_t used = 0;
    number_path_format(path, "/proc/", pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t length;
    while (used < size && (length = read(fd, buffer + used, size - used)) > 0) {
        used += (size_t)length;
    }
    close(fd);
    return used;
}

/* A guardian of a job within this job: it has its own workers to end, and then leaves. */
static bool is_guardian(pid_t pid) {
    char name[sizeof GUARDIAN_NAME];
    size_t length = read_process_file(pid, "/comm", name, sizeof name);
    return length == sizeof name && memcmp(name, GUARDIAN_NAME, sizeof name - 1) == 0;
}

static bool has_fingerprint(struct sweep *sweep, pid_t pid) {
    if (sweep->fingerprint->count == 0) {
        return false;
    }
    if (sweep->environment == NULL) {
        sweep->environment = memory_allocate(ENVIRONMENT_CEILING);
    }
    size_t length = read_process_file(pid, "/environ", sweep->environment, ENVIRONMENT_CEILING);
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

/* A number stays a session's as long as the session has a member. It is somebody else's only when a
 * process of that number is there which is not the leader we knew. */
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

/* The quick blow, before anybody looks through /proc: most members are in their leader's group. */
static void kill_groups(const struct guardian_sessions *sessions) {
    for (size_t i = 0; i < sessions->count; i++) {
        kill(-sessions->items[i].leader, SIGKILL);
    }
}

static void pause_for(int milliseconds) {
    struct timespec time = {.tv_nsec = milliseconds * 1000000L};
    nanosleep(&time, NULL);
}

static struct instant read_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (struct instant){(int64_t)now.tv_sec * 1000000000 + now.tv_nsec};
}

/* One look at every process; false when nobody was left. */
static bool end_all_found(struct sweep *sweep) {
    sweep->has_found = false;
    drop_foreign_sessions(&sweep->sessions);
    kill_groups(&sweep->sessions);
    process_table_each(end_if_ours, sweep);
    return sweep->has_found;
}

void guardian_sweep(const struct guardian_sessions *sessions, const struct text_list *fingerprint) {
    struct sweep sweep = {.fingerprint = fingerprint};
    for (size_t i = 0; i < sessions->count; i++) {
        guardian_sessions_add(
            &sweep.sessions, sessions->items[i].leader, sessions->items[i].start_time);
    }
    struct instant deadline =
        instant_after(read_clock(), duration_from_milliseconds(PATIENCE_MILLISECONDS));
    int pause = FIRST_PAUSE_MILLISECONDS;
    int clean_looks = 0;
    while (instant_is_before(read_clock(), deadline)) {
        clean_looks = end_all_found(&sweep) ? 0 : clean_looks + 1;
        if (clean_looks == CLEAN_LOOKS) {
            break;
        }
        pause_for(pause);
        pause = pause * 2 < LONGEST_PAUSE_MILLISECONDS ? pause * 2 : LONGEST_PAUSE_MILLISECONDS;
    }
    free(sweep.environment);
    guardian_sessions_clear(&sweep.sessions);
}
