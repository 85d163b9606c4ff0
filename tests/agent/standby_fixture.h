/* SPDX-License-Identifier: BSD-3-Clause */
/* A family of processes of the test's own, and standby workers that a child of the test plays. */
#ifndef MUSTER_TESTS_AGENT_STANDBY_FIXTURE_H
#define MUSTER_TESTS_AGENT_STANDBY_FIXTURE_H

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/standby/agent_standby.h"
#include "core/standby/standby_plan.h"
#include "host/process/process_family.h"

/* What a standby worker does. */
enum standby_play {
    STANDBY_PLAY_WELL,
    STANDBY_PLAY_DIRTY,         /* says so, and is ended */
    STANDBY_PLAY_UNSUITED,      /* names a module, and ends */
    STANDBY_PLAY_DIRTY_AT_GATE, /* says so when it is to go through */
    STANDBY_PLAY_SILENT,        /* does not go through its gate, and lives */
    STANDBY_PLAY_DEATH_AT_GATE, /* ends when it is to go through */
    STANDBY_PLAY_END,           /* ends at once */
    STANDBY_PLAY_HASTE,         /* goes through and ends at once */
};

struct standby_fixture {
    struct event_loop *loop;
    struct process_family *family;
    struct launch_config config;
    struct agent_standby *standby;
    struct agent_standby_starter starter;
    enum standby_play play;
    bool refuses_to_spawn;
    bool is_hook_missing; /* the probe says nothing */
    struct text published;
    struct text told;    /* the events that were posted */
    struct text settled; /* local rank and + or - */
};

static inline void standby_fixture_say(int gate, const void *bytes, size_t length) {
    if (send(gate, bytes, length, MSG_NOSIGNAL) == -1) {
        _exit(0);
    }
}

/* Returns the letter of the packet. */
static inline char standby_fixture_hear(int gate) {
    char packet[4096];
    if (recv(gate, packet, sizeof packet, 0) <= 0) {
        _exit(0);
    }
    return packet[0];
}

/* In the child. */
static inline _Noreturn void standby_fixture_play(enum standby_play play, int gate) {
    static const char ready[17] = {'P', [14] = 1};
    if (play == STANDBY_PLAY_END) {
        _exit(5);
    }
    standby_fixture_say(gate, "H\1\0\0\0\1\0\0\0", 9);
    standby_fixture_hear(gate);
    if (play == STANDBY_PLAY_DIRTY) {
        standby_fixture_say(gate, "Da \033thread", 10);
        pause(); /* its end would come with its word or after it */
    }
    if (play == STANDBY_PLAY_UNSUITED) {
        standby_fixture_say(gate, "Xlocks", 6);
        standby_fixture_say(gate, "X\033", 2);
        standby_fixture_say(gate, "Uthat opens a door", 18);
        _exit(77);
    }
    standby_fixture_say(gate, ready, sizeof ready);
    while (standby_fixture_hear(gate) == 'T') {
        standby_fixture_say(gate, ready, sizeof ready);
    }
    if (play == STANDBY_PLAY_DIRTY_AT_GATE) {
        standby_fixture_say(gate, "Dmoved", 6);
        _exit(77);
    }
    if (play == STANDBY_PLAY_DEATH_AT_GATE) {
        _exit(9);
    }
    if (play != STANDBY_PLAY_SILENT) {
        standby_fixture_say(gate, "R", 1);
    }
    if (play == STANDBY_PLAY_HASTE) {
        _exit(3);
    }
    for (;;) {
        pause();
    }
}

static inline enum failure_code standby_fixture_spawn(void *context, int local_rank,
    const struct text_list *environment, const int descriptors[4], struct process *out_process,
    struct failure *failure) {
    struct standby_fixture *fixture = context;
    (void)local_rank;
    (void)environment;
    if (fixture->refuses_to_spawn) {
        return failure_set(failure, FAILURE_SYSTEM, "no more processes");
    }
    pid_t pid = fork();
    if (pid == 0) {
        setsid();
        int gate = dup2(descriptors[3], 200);
        for (int fd = 3; fd < 200; fd++) {
            close(fd);
        }
        standby_fixture_play(fixture->play, gate);
    }
    *out_process = (struct process){.pid = pid, .pidfd = -1};
    return FAILURE_NONE;
}

static inline enum failure_code standby_fixture_foresee(
    void *context, int local_rank, struct text_list *out_environment, struct failure *failure) {
    (void)context;
    (void)local_rank;
    (void)failure;
    text_list_add(out_environment, "PATH=/bin");
    return FAILURE_NONE;
}

/* What the hook does in an empty program. */
static inline enum failure_code standby_fixture_probe(void *context,
    const struct text_list *environment, const int descriptors[4], struct process *out_process,
    struct failure *failure) {
    struct standby_fixture *fixture = context;
    char hello[64];
    if (fixture->refuses_to_spawn) {
        return failure_set(failure, FAILURE_SYSTEM, "no more processes");
    }
    assert_string_equal(
        text_list_variable(environment, "MUSTER_STANDBY"), "fd=3;role=record;pythonpath=0");
    pid_t pid = fork();
    if (pid == 0) {
        snprintf(hello, sizeof hello, "hello 1 %d\n", (int)getpid());
        size_t length = fixture->is_hook_missing ? 0 : strlen(hello);
        _exit(write(descriptors[3], hello, length) == (ssize_t)length ? 0 : 1);
    }
    *out_process = (struct process){.pid = pid, .pidfd = -1};
    return FAILURE_NONE;
}

static inline void standby_fixture_publish(void *context, struct slice list_text) {
    struct standby_fixture *fixture = context;
    text_append_bytes(&fixture->published, (const char *)list_text.data, list_text.length);
}

static inline void standby_fixture_post(void *context, const struct node_event *event) {
    struct standby_fixture *fixture = context;
    if (event->part == NODE_STANDBY && event->standby.kind == STANDBY_EVENT_SPARE_HELLO) {
        return; /* it may come with what is said next, or before */
    }
    text_append(&fixture->told, fixture->told.length == 0 ? "" : "; ");
    node_event_describe(event, &fixture->told);
    event_loop_stop(fixture->loop);
}

static inline void standby_fixture_settled(void *context, int local_rank, bool has_gone_through) {
    struct standby_fixture *fixture = context;
    text_append_format(&fixture->settled, "%d%s", local_rank, has_gone_through ? "+" : "-");
}

static inline void standby_fixture_ending(
    void *context, pid_t pid, const struct process_exit *how) {
    struct standby_fixture *fixture = context;
    (void)pid;
    text_append_format(&fixture->settled, "<%d>", how->value);
    event_loop_stop(fixture->loop);
}

/* As agent_workers does. */
static inline void standby_fixture_worker_exited(
    void *context, pid_t pid, const struct process_exit *how) {
    struct standby_fixture *fixture = context;
    (void)pid;
    text_append_format(&fixture->settled, "(%d)", how->value);
    if (strchr(text_string(&fixture->settled), '+') == NULL) {
        agent_standby_settle(fixture->standby, 0);
    }
    event_loop_stop(fixture->loop);
}

static inline void standby_fixture_gone(void *context) {
    (void)context;
}

static inline void standby_fixture_spare_exited(
    void *context, pid_t pid, const struct process_exit *how) {
    struct standby_fixture *fixture = context;
    agent_standby_spare_exited(fixture->standby, pid, how);
    event_loop_stop(fixture->loop);
}

static inline void standby_fixture_open(
    struct standby_fixture *fixture, enum standby_play play, enum launch_entry entry) {
    *fixture = (struct standby_fixture){.play = play};
    fixture->config.entry = entry;
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    const struct process_family_events events = {standby_fixture_worker_exited,
        standby_fixture_gone, standby_fixture_spare_exited, fixture, NULL};
    const struct process_family_marks unmarked = {0};
    assert_int_equal(
        process_family_new(fixture->loop, &events, &unmarked, NULL, &fixture->family, NULL),
        FAILURE_NONE);
    const struct agent_standby_settings settings = {.config = &fixture->config,
        .worker_count = 1,
        .post = standby_fixture_post,
        .publish = standby_fixture_publish,
        .context = fixture};
    assert_int_equal(
        agent_standby_new(fixture->loop, &settings, &fixture->standby, NULL), FAILURE_NONE);
    fixture->starter = (struct agent_standby_starter){fixture->family, standby_fixture_spawn,
        standby_fixture_foresee, standby_fixture_probe, standby_fixture_settled,
        standby_fixture_ending, fixture};
    agent_standby_attach(fixture->standby, &fixture->starter);
}

static inline void standby_fixture_init(struct standby_fixture *fixture, enum standby_play play) {
    standby_fixture_open(fixture, play, LAUNCH_ENTRY_PROGRAM);
}

static inline void standby_fixture_clear(struct standby_fixture *fixture) {
    process_family_signal(fixture->family, SIGKILL);
    while (!process_family_is_gone(fixture->family)) {
        event_loop_run_ready(fixture->loop);
    }
    process_family_free(fixture->family);
    agent_standby_free(fixture->standby);
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->told);
    text_clear(&fixture->settled);
    text_clear(&fixture->published);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static inline void standby_fixture_expect(struct standby_fixture *fixture, const char *told) {
    assert_string_equal(text_string(&fixture->told), told);
    text_clear(&fixture->told);
}

/* A test that is given a fixture (unit.h). */
#define STANDBY_TEST(name)                                                                         \
    STANDBY_TEST_AFTER(name, standby_fixture_init(&fixture, STANDBY_PLAY_WELL))
#define STANDBY_TEST_AFTER(name, beginning)                                                        \
    TEST_OF(standby_fixture, name, beginning, standby_fixture_clear)

#endif
