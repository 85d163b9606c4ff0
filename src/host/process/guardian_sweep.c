/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/guardian_sweep.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/memory.h"
#include "host/loop/clock.h"
#include "host/process/guardian_process.h"
#include "host/process/process_table.h"
#include "host/process/process_words.h"

#define PATIENCE_MILLISECONDS 800
#define FIRST_PAUSE_MILLISECONDS 1
#define LONGEST_PAUSE_MILLISECONDS 32
/* The sweep ends after this many looks without a match. One is not enough, because a process in the
 * middle of exec shows no environment. */
#define CLEAN_LOOKS 8

struct sweep {
    struct guardian_sessions sessions; /* sessions whose number still belongs to the job */
    const struct text_list *fingerprint;
    char *environment; /* PROCESS_WORDS_ENVIRONMENT_CEILING bytes; NULL until needed */
    bool has_found;    /* a process was found in this look */
};

void guardian_sessions_add(struct guardian_sessions *sessions, pid_t leader, uint64_t start_time) {
    if (leader <= 1) {
        return; /* kill(-1) and kill(0) would signal other processes than this session */
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

bool guardian_fingerprint_fits(
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

void guardian_sweep(const struct guardian_sessions *sessions, const struct text_list *fingerprint) {
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
        pause = pause * 2 < LONGEST_PAUSE_MILLISECONDS ? pause * 2 : LONGEST_PAUSE_MILLISECONDS;
    }
    free(sweep.environment);
    guardian_sessions_clear(&sweep.sessions);
}
