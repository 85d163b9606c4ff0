/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of this process itself, through a real FIFO. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/watchdog/agent_watchdog.h"
#include "host/loop/snapshot_socket.h"
#include "host/process/process_table.h"
#include "host/remembered_log.h"
#include "temporary_tree.h"

struct fixture {
    struct temporary_tree tree;
    char *path;
    struct event_loop *loop;
    struct timer_server *server;
    struct remembered_log log;
    struct text expired;
    bool is_admitted;
    bool
        is_released_meanwhile; /* "past" is, and "next" asked for, when "past" has just been read */
};

static void ask(const struct fixture *fixture, int pid, const char *scope, double expiration) {
    char *line = text_format("{\"pid\": %d, \"scope_id\": \"%s\", \"expiration_time\": %f, "
                             "\"signal\": 9}\n",
        pid, scope, expiration);
    int fd = open(fixture->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, line, strlen(line)), strlen(line));
    close(fd);
    free(line);
}

static int find_owner(
    void *context, const struct kernel_process_stat *process, bool is_asking_for_a_timer) {
    const struct fixture *fixture = context;
    assert_true(process->pid == getpid() || process->parent == getpid());
    if (fixture->is_released_meanwhile && is_asking_for_a_timer) {
        ask(fixture, getpid(), "past", -1);
        ask(fixture, getpid(), "next", 2);
    }
    return fixture->is_admitted ? 0 : -1;
}

/* How often this process, which is the one that is to be ended, cannot be signalled. */
static int failures;

static bool pretend_to_signal(
    void *context, const struct kernel_process_stat *process, int signal) {
    (void)context;
    assert_int_equal(process->pid, getpid());
    assert_int_equal(signal, SIGKILL);
    return failures-- <= 0;
}

static void note_end(void *context, const struct watchdog_notice *notice) {
    struct fixture *fixture = context;
    if (notice->kind == WATCHDOG_NOTICE_SIGNALLED) {
        for (size_t i = 0; i < notice->expiry->scopes.count; i++) {
            text_append_format(&fixture->expired, "%s ", notice->expiry->scopes.items[i]);
        }
        event_loop_stop(fixture->loop);
    }
}

static const char *refuse(
    __attribute__((unused)) void *context, __attribute__((unused)) int64_t pid) {
    return "it is not wanted";
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.is_admitted = true};
    failures = 0;
    temporary_tree_init(&fixture->tree);
    remembered_log_init(&fixture->log);
    fixture->path = temporary_tree_path(&fixture->tree, "timers");
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    const struct timer_server_settings settings = {
        .log = &fixture->log.log,
        .log_prefix = "",
        .find_owner = find_owner,
        .refusal = refuse,
        .send_signal = pretend_to_signal,
        .notified = note_end,
        .context = fixture,
    };
    assert_int_equal(
        timer_server_new(fixture->loop, fixture->path, &settings, &fixture->server, NULL),
        FAILURE_NONE);
    timer_server_begin(fixture->server);
}

static void tear_down(struct fixture *fixture) {
    timer_server_free(fixture->server);
    assert_true(event_loop_free(fixture->loop));
    assert_false(temporary_tree_has(&fixture->tree, "timers"));
    assert_false(temporary_tree_has(&fixture->tree, "timers.list"));
    text_clear(&fixture->expired);
    text_clear(&fixture->log.text);
    free(fixture->path);
    temporary_tree_clear(&fixture->tree);
}

FIXTURE_TEST(a_release_that_is_not_read_yet_counts) {
    fixture->is_released_meanwhile = true;
    ask(fixture, getpid(), "past", 1);
    event_loop_run(fixture->loop);
    assert_string_equal(text_string(&fixture->expired), "next ");
}

FIXTURE_TEST(who_cannot_be_ended_stops_all_progress) {
    failures = 2;
    struct wall_time before = event_loop_wall_time(fixture->loop);
    const struct wall_time later = {before.nanoseconds + INT64_C(3600000000000)};
    ask(fixture, getpid(), "past", 1);
    while (failures == 2) {
        event_loop_run_ready(fixture->loop);
    }
    struct wall_time first =
        watchdog_machine_last_progress(timer_server_machine(fixture->server), later);
    assert_true(first.nanoseconds >= before.nanoseconds);
    assert_true(first.nanoseconds < later.nanoseconds);
    while (failures == 1) {
        event_loop_run_ready(fixture->loop);
    }
    assert_int_equal(
        watchdog_machine_last_progress(timer_server_machine(fixture->server), later).nanoseconds,
        first.nanoseconds);
    event_loop_run(fixture->loop); /* until it is ended */
    assert_int_equal(
        watchdog_machine_last_progress(timer_server_machine(fixture->server), later).nanoseconds,
        later.nanoseconds);
}

FIXTURE_TEST(what_was_asked_before_the_beginning_is_forgotten) {
    timer_server_end(fixture->server);
    ask(fixture, getpid(), "early", 1);
    event_loop_run_ready(fixture->loop);
    ask(fixture, getpid(), "unread", 1);
    timer_server_begin(fixture->server);
    ask(fixture, getpid(), "past", 1);
    event_loop_run(fixture->loop);
    assert_string_equal(text_string(&fixture->expired), "past ");
}

/* A child that does nothing until it is killed. */
static pid_t start_child(void) {
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            pause();
        }
    }
    return child;
}

/* Valgrind, for one, knows nothing of pidfds. */
static void skip_without_pidfds(void) {
    int fd = pidfd_open_process(getpid());
    if (fd < 0) {
        SKIP_BECAUSE("there are no pidfds here");
    }
    close(fd);
}

static void await_timers(const struct fixture *fixture, size_t count) {
    while (watchdog_timer_count(watchdog_machine_timers(timer_server_machine(fixture->server))) !=
           count) {
        event_loop_run_ready(fixture->loop);
    }
}

TEST(the_timers_of_a_process_end_with_it) {
    struct fixture fixture;
    skip_without_pidfds();
    set_up(&fixture);
    pid_t child = start_child();
    ask(&fixture, child, "first", 5e9);
    ask(&fixture, child, "second", 5e9);
    ask(&fixture, getpid(), "mine", 5e9);
    await_timers(&fixture, 3);
    kill(child, SIGKILL);
    await_timers(&fixture, 1);
    assert_true(remembered_log_has(&fixture.log, "has ended, its timers do not matter"));
    ask(&fixture, child, "of a zombie", 5e9);
    ask(&fixture, getpid(), "mine, too", 5e9);
    event_loop_run_ready(fixture.loop);
    await_timers(&fixture, 2);
    waitpid(child, NULL, 0);
    assert_int_equal(fixture.expired.length, 0);
    tear_down(&fixture);
}

TEST(ends_are_seen_after_another_beginning_too) {
    struct fixture fixture;
    skip_without_pidfds();
    set_up(&fixture);
    pid_t child = start_child();
    ask(&fixture, child, "of the first attempt", 5e9);
    await_timers(&fixture, 1);
    timer_server_end(fixture.server);
    timer_server_begin(fixture.server);
    ask(&fixture, child, "of the second attempt", 5e9);
    await_timers(&fixture, 1);
    kill(child, SIGKILL);
    await_timers(&fixture, 0);
    waitpid(child, NULL, 0);
    tear_down(&fixture);
}

FIXTURE_TEST(who_holds_no_timers_any_more_ends_unnoticed) {
    pid_t child = start_child();
    ask(fixture, child, "step", 5e9);
    await_timers(fixture, 1);
    ask(fixture, child, "step", -1);
    await_timers(fixture, 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    ask(fixture, getpid(), "past", 1);
    event_loop_run(fixture->loop);
    assert_string_equal(text_string(&fixture->expired), "past ");
    assert_false(remembered_log_has(&fixture->log, "has ended"));
}
