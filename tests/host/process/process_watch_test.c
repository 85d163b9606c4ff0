/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>

#include "host/loop/event_loop.h"
#include "host/process/pidfd.h"
#include "host/process/process_family.h"
#include "processes.h"

#define MOST_EXITS 64

struct fixture {
    struct event_loop *loop;
    struct process_watch *watch;
    int descriptors; /* open before */
    int children;    /* the loop stops after this many children */
    int reaped_calls;
    bool stops_when_childless;
    size_t exit_count;
    pid_t pids[MOST_EXITS];
    struct process_exit exits[MOST_EXITS];
};

static void note_exit(void *context, pid_t pid, const struct process_exit *how) {
    struct fixture *fixture = context;
    assert_true(fixture->exit_count < MOST_EXITS);
    fixture->pids[fixture->exit_count] = pid;
    fixture->exits[fixture->exit_count++] = *how;
}

static void note_reaped(void *context) {
    struct fixture *fixture = context;
    fixture->reaped_calls++;
    bool is_done = fixture->stops_when_childless ? !process_watch_has_children(fixture->watch)
                                                 : fixture->exit_count == (size_t)fixture->children;
    if (is_done) {
        event_loop_stop(fixture->loop);
    }
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.descriptors = processes_open_descriptors()};
    const struct process_watch_events events = {note_exit, note_reaped, NULL, fixture};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        process_watch_new(fixture->loop, &events, &fixture->watch, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    process_watch_free(fixture->watch);
    assert_true(event_loop_free(fixture->loop));
    processes_assert_no_children();
    /* libuv keeps a pipe for signals, made with the process' first loop. */
    assert_in_range(processes_open_descriptors(), fixture->descriptors, fixture->descriptors + 2);
}

/* As on a kernel without pidfds. */
static struct process without_pidfd(struct process process) {
    if (process.pidfd != -1) {
        close(process.pidfd);
    }
    process.pidfd = -1;
    return process;
}

static void add(struct fixture *fixture, struct process process) {
    process_watch_add(fixture->watch, &process);
    fixture->children++;
}

static void check_exit_codes_and_signals(bool has_pidfd) {
    struct fixture fixture;
    set_up(&fixture);
    static const char *const scripts[] = {"exit 0", "exit 3", "kill -TERM $$", "exit 255"};
    static const struct process_exit expected[] = {
        {.value = 0}, {.value = 3}, {.is_signal = true, .value = SIGTERM}, {.value = 255}};
    for (size_t i = 0; i < 4; i++) {
        struct process process = processes_start_shell(scripts[i], -1, -1);
        pid_t pid = process.pid;
        add(&fixture, has_pidfd ? process : without_pidfd(process));
        event_loop_run(fixture.loop);
        assert_int_equal(fixture.exit_count, i + 1);
        assert_int_equal(fixture.pids[i], pid);
        assert_int_equal(fixture.exits[i].is_signal, expected[i].is_signal);
        assert_int_equal(fixture.exits[i].value, expected[i].value);
        assert_false(fixture.exits[i].has_dumped_core);
    }
    tear_down(&fixture);
}

static void exit_code_and_signal_are_reported(void **state) {
    (void)state;
    check_exit_codes_and_signals(true);
}

static void exit_code_and_signal_are_reported_without_pidfd(void **state) {
    (void)state;
    check_exit_codes_and_signals(false);
}

/* Waits until the child is a zombie, without taking its status. */
static void wait_for_end(pid_t pid) {
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void check_child_that_ended_before_it_was_added(bool has_pidfd) {
    struct fixture fixture;
    set_up(&fixture);
    struct process process = processes_start_shell("exit 5", -1, -1);
    wait_for_end(process.pid);
    add(&fixture, has_pidfd ? process : without_pidfd(process));
    assert_int_equal(fixture.exit_count, 0); /* never from within the call */
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.exit_count, 1);
    assert_int_equal(fixture.exits[0].value, 5);
    tear_down(&fixture);
}

static void child_that_ended_before_it_was_added_is_reported(void **state) {
    (void)state;
    check_child_that_ended_before_it_was_added(true);
    check_child_that_ended_before_it_was_added(false);
}

static void exits_come_in_the_order_of_the_deaths(void **state) {
    (void)state;
    int own_pidfd = pidfd_open_process(getpid());
    if (own_pidfd == -1) {
        SKIP_BECAUSE("there are no pidfds here"); /* without pidfds no order is promised */
    }
    close(own_pidfd);
    struct fixture fixture;
    set_up(&fixture);
    struct process processes[4];
    for (size_t i = 0; i < 4; i++) {
        processes[i] = processes_start_shell("exec sleep 1000", -1, -1);
        add(&fixture, processes[i]);
    }
    event_loop_run_ready(fixture.loop); /* all pidfds are registered with the kernel */
    static const size_t order[] = {2, 0, 3, 1};
    for (size_t i = 0; i < 4; i++) {
        kill(processes[order[i]].pid, SIGKILL);
        wait_for_end(processes[order[i]].pid);
    }
    event_loop_run(fixture.loop);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(fixture.pids[i], processes[order[i]].pid);
        assert_int_equal(fixture.exits[i].value, SIGKILL);
    }
    tear_down(&fixture);
}

static void adopted_orphan_is_reaped_and_told(void **state) {
    (void)state;
    struct fixture fixture;
    sigset_t blocked; /* the parent process may have left it blocked */
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    set_up(&fixture);
    fixture.stops_when_childless = true;
    int told[2];
    processes_make_pipe(told);
    struct process process = processes_start_shell("sleep 1000 & echo $!; exit 9", told[1], -1);
    close(told[1]);
    char line[16];
    processes_read_line(told[0], line, sizeof line);
    pid_t orphan = atoi(line);
    wait_for_end(process.pid);
    add(&fixture, process);
    assert_int_equal(kill(orphan, SIGKILL), 0);
    wait_for_end(orphan); /* both are zombies now; the orphan's status is not used */
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.exit_count, 1);
    assert_int_equal(fixture.pids[0], process.pid);
    assert_int_equal(fixture.exits[0].value, 9);
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
    close(told[0]);
    tear_down(&fixture);
}

static void mixed_children_are_all_reported(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    for (int i = 0; i < 32; i++) {
        struct process process = processes_start_shell("exit 1", -1, -1);
        add(&fixture, i % 2 == 0 ? process : without_pidfd(process));
    }
    assert_int_equal(process_watch_count(fixture.watch), 32);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.exit_count, 32);
    assert_int_equal(process_watch_count(fixture.watch), 0);
    tear_down(&fixture);
}

static void core_dump_is_told(void **state) {
    (void)state;
    /* Whether a core is written depends on limits of the machine. The same death is first waited
     * for directly, and the watch must report what the kernel reported then. */
    struct process by_hand = processes_start_shell("kill -SEGV $$", -1, -1);
    int status = processes_wait(&by_hand);
    assert_true(WIFSIGNALED(status));
    struct fixture fixture;
    set_up(&fixture);
    add(&fixture, processes_start_shell("kill -SEGV $$", -1, -1));
    event_loop_run(fixture.loop);
    assert_true(fixture.exits[0].is_signal);
    assert_int_equal(fixture.exits[0].value, SIGSEGV);
    assert_int_equal(fixture.exits[0].has_dumped_core, WCOREDUMP(status) != 0);
    tear_down(&fixture);
}

static void freed_watch_leaves_the_children_alone(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct process process = processes_start_shell("exec sleep 1000", -1, -1);
    process_watch_add(fixture.watch, &process);
    process_watch_free(fixture.watch);
    fixture.watch = NULL;
    assert_int_equal(kill(process.pid, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
    assert_int_equal(WTERMSIG(status), SIGKILL);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(exit_code_and_signal_are_reported),
    cmocka_unit_test(exit_code_and_signal_are_reported_without_pidfd),
    cmocka_unit_test(child_that_ended_before_it_was_added_is_reported),
    cmocka_unit_test(exits_come_in_the_order_of_the_deaths),
    cmocka_unit_test(adopted_orphan_is_reaped_and_told),
    cmocka_unit_test(mixed_children_are_all_reported),
    cmocka_unit_test(core_dump_is_told),
    cmocka_unit_test(freed_watch_leaves_the_children_alone),
};

UNIT_TESTS(tests)
