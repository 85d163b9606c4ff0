/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "host/loop/event_loop.h"
#include "host/process/process_family.h"
#include "host/process/process_table.h"
#include "processes.h"

struct fixture {
    struct event_loop *loop;
    struct process_family *family;
    int descriptors; /* number of open descriptors before the test */
    int output[2];   /* the workers' standard output; it ends when all of them are gone */
    int exit_count;
    int gone_count;
    int spare_exit_count;
    pid_t last_spare;
    int last_value; /* of the last exit */
    struct process_exit last_exit;
    bool lacks_pidfds;  /* as on a kernel without them */
    struct text pids;   /* of those that have ended, each with a blank */
    bool stops_at_exit; /* the loop stops when a worker ends; otherwise when the family is empty */
    const char *next;   /* a worker to start when another one ends, as in a restart */
    int signal_when_exited; /* sent when a worker ends; 0: no signal */
    struct text orphans;    /* of what is told: "rank command\n" */
};

static void add(struct fixture *fixture, struct process process) {
    if (fixture->lacks_pidfds && process.pidfd != -1) {
        close(process.pidfd);
        process.pidfd = -1;
    }
    process_family_add(fixture->family, &process, 0);
}

static void start(struct fixture *fixture, const char *script) {
    struct process process = processes_start_shell(script, fixture->output[1], -1);
    add(fixture, process);
}

static void note_exit(void *context, pid_t pid, const struct process_exit *how) {
    struct fixture *fixture = context;
    text_append_format(&fixture->pids, "%d ", (int)pid);
    fixture->exit_count++;
    fixture->last_exit = *how;
    fixture->last_value = how->value;
    assert_int_equal(fixture->gone_count, 0);
    assert_false(process_family_is_gone(fixture->family));
    if (fixture->signal_when_exited != 0) {
        process_family_signal(fixture->family, fixture->signal_when_exited);
    }
    if (fixture->next != NULL) {
        start(fixture, fixture->next);
        fixture->next = NULL;
    }
    if (fixture->stops_at_exit) {
        event_loop_stop(fixture->loop);
    }
}

static void note_gone(void *context) {
    struct fixture *fixture = context;
    fixture->gone_count++;
    assert_true(process_family_is_gone(fixture->family));
    assert_int_equal(process_family_worker_count(fixture->family), 0);
    event_loop_stop(fixture->loop);
}

static void note_spare_exit(void *context, pid_t pid, const struct process_exit *how) {
    struct fixture *fixture = context;
    fixture->spare_exit_count++;
    fixture->last_spare = pid;
    fixture->last_value = how->value;
    event_loop_stop(fixture->loop);
}

static void note_orphan(void *context, const struct process_orphan *orphan) {
    struct fixture *fixture = context;
    assert_true(orphan->pid > 1);
    text_append_format(&fixture->orphans, "%d %s\n", orphan->local_rank, orphan->command);
}

static void set_up_marked(struct fixture *fixture, const struct process_family_marks *marks) {
    *fixture = (struct fixture){.descriptors = processes_open_descriptors()};
    const struct process_family_events events = {
        note_exit, note_gone, note_spare_exit, fixture, note_orphan};
    processes_make_pipe(fixture->output);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        process_family_new(fixture->loop, &events, marks, NULL, &fixture->family, NULL),
        FAILURE_NONE);
    assert_true(process_family_is_gone(fixture->family));
}

static void set_up(struct fixture *fixture) {
    set_up_marked(fixture, &(struct process_family_marks){0});
}

static void tear_down(struct fixture *fixture) {
    text_clear(&fixture->orphans);
    text_clear(&fixture->pids);
    process_family_free(fixture->family);
    assert_true(event_loop_free(fixture->loop));
    close(fixture->output[0]);
    if (fixture->output[1] != -1) {
        close(fixture->output[1]);
    }
    processes_assert_no_children();
    /* libuv keeps a pipe for signals, made with the process' first loop. */
    assert_in_range(processes_open_descriptors(), fixture->descriptors, fixture->descriptors + 2);
}

/* A number that a worker printed. */
static int read_number(struct fixture *fixture) {
    char line[16];
    processes_read_line(fixture->output[0], line, sizeof line);
    return atoi(line);
}

/* Checks the report: no process holds the workers' output any more. */
static void assert_all_gone(struct fixture *fixture) {
    assert_int_equal(fixture->gone_count, 1);
    close(fixture->output[1]);
    fixture->output[1] = -1;
    processes_wait_for_silence(fixture->output[0]);
}

FIXTURE_TEST(gone_comes_after_the_last_exit) {
    start(fixture, "exit 1");
    start(fixture, "exit 2");
    assert_int_equal(process_family_worker_count(fixture->family), 2);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->exit_count, 2);
    assert_all_gone(fixture);
}

static void wait_for_end(pid_t pid) {
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

/* With pidfds and without, those that have ended before they are added and those that end later. */
TEST(each_exit_is_told_as_it_was) {
    static const struct {
        const char *script;
        bool is_signal;
        int value;
    } cases[] = {{"exit 0", false, 0}, {"exit 77", false, 77}, {"kill -TERM $$", true, SIGTERM}};
    for (int i = 0; i < 12; i++) {
        struct fixture fixture;
        set_up(&fixture);
        fixture.lacks_pidfds = i % 2 == 1;
        struct process process = processes_start_shell(cases[i / 4].script, -1, -1);
        if (i / 2 % 2 == 1) {
            wait_for_end(process.pid);
        }
        add(&fixture, process);
        assert_int_equal(fixture.exit_count, 0); /* never from within the call */
        event_loop_run(fixture.loop);
        assert_int_equal(fixture.exit_count, 1);
        assert_int_equal(fixture.last_exit.is_signal, cases[i / 4].is_signal);
        assert_int_equal(fixture.last_value, cases[i / 4].value);
        tear_down(&fixture);
    }
}

TEST(exits_come_in_the_order_of_the_deaths) {
    int own_pidfd = pidfd_open_process(getpid());
    if (own_pidfd == -1) {
        SKIP_BECAUSE("there are no pidfds here"); /* without pidfds no order is promised */
    }
    close(own_pidfd);
    static const size_t order[] = {2, 0, 3, 1};
    struct fixture fixture;
    struct process processes[4];
    struct text expected = {0};
    set_up(&fixture);
    for (size_t i = 0; i < 4; i++) {
        processes[i] = processes_start_shell("exec sleep 1000", -1, -1);
        add(&fixture, processes[i]);
    }
    event_loop_run_ready(fixture.loop); /* all pidfds are registered with the kernel */
    for (size_t i = 0; i < 4; i++) {
        kill(processes[order[i]].pid, SIGKILL);
        wait_for_end(processes[order[i]].pid);
        text_append_format(&expected, "%d ", (int)processes[order[i]].pid);
    }
    event_loop_run(fixture.loop);
    assert_string_equal(text_string(&fixture.pids), text_string(&expected));
    text_clear(&expected);
    tear_down(&fixture);
}

FIXTURE_TEST(children_of_both_kinds_are_all_told) {
    for (int i = 0; i < 32; i++) {
        fixture->lacks_pidfds = i % 2 == 1;
        start(fixture, "exit 1");
    }
    assert_int_equal(process_family_worker_count(fixture->family), 32);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->exit_count, 32);
}

/* Whether a core is written depends on limits of the machine. The same death is first waited for
 * directly, and the family must report what the kernel reported then. */
TEST(core_dump_is_told) {
    struct process by_hand = processes_start_shell("kill -SEGV $$", -1, -1);
    int status = processes_wait(&by_hand);
    struct fixture fixture;
    set_up(&fixture);
    start(&fixture, "kill -SEGV $$");
    event_loop_run(fixture.loop);
    assert_true(fixture.last_exit.is_signal);
    assert_int_equal(fixture.last_value, SIGSEGV);
    assert_int_equal(fixture.last_exit.has_dumped_core, WCOREDUMP(status) != 0);
    tear_down(&fixture);
}

FIXTURE_TEST(signal_reaches_the_children_of_a_worker_that_is_gone) {
    fixture->stops_at_exit = true;
    start(fixture, "sleep 1000 & exit 3");
    event_loop_run(fixture->loop);
    assert_int_equal(process_family_worker_count(fixture->family), 0);
    process_family_signal(fixture->family, SIGTERM);
    event_loop_run(fixture->loop);
    assert_all_gone(fixture);
}

FIXTURE_TEST(signal_reaches_other_sessions_and_groups) {
    /* setsid(1) forks when it leads a group, so that its parent is gone; set -m makes groups. */
    start(
        fixture, "set -m 2>/dev/null; setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000 & wait");
    pid_t elsewhere = read_number(fixture);
    struct kernel_process_stat stat;
    assert_true(process_table_read(elsewhere, &stat));
    assert_int_equal(stat.session, elsewhere);
    process_family_signal(fixture->family, SIGTERM);
    event_loop_run(fixture->loop);
    assert_all_gone(fixture);
}

FIXTURE_TEST(signal_comes_once) {
    start(fixture, "n=0; (trap '' USR1; echo 0; exec sleep 1000) & p=$!;"
                   "trap 'n=$((n+1)); echo $n' USR1; trap 'echo $n; exit 0' TERM; echo 0;"
                   "while :; do wait $p; done");
    read_number(fixture); /* both are ready */
    read_number(fixture);
    process_family_signal(fixture->family, SIGUSR1);
    assert_int_equal(read_number(fixture), 1);
    process_family_signal(fixture->family, SIGTERM);
    event_loop_run(fixture->loop);
    assert_int_equal(read_number(fixture), 1);
    assert_all_gone(fixture);
}

FIXTURE_TEST(kill_stays_in_force_for_processes_that_slip_through) {
    fixture->stops_at_exit = true;
    /* The killed worker's child is in a session of its own. After it has been adopted, only the
     * family itself can send the second signal. */
    start(fixture, "setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1000; done' & wait");
    read_number(fixture);
    process_family_signal(fixture->family, SIGTERM);
    event_loop_run(fixture->loop);
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->gone_count, 0); /* it ignores SIGTERM */
    process_family_signal(fixture->family, SIGKILL);
    event_loop_run(fixture->loop);
    assert_all_gone(fixture);
}

FIXTURE_TEST(signal_may_be_sent_from_the_exit_callback) {
    fixture->signal_when_exited = SIGKILL;
    start(fixture, "exec sleep 1000");
    start(fixture, "exec sleep 1000");
    start(fixture, "sleep 1000 & exit 1");
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->exit_count, 3);
    assert_all_gone(fixture);
}

FIXTURE_TEST(worker_started_in_the_exit_callback_keeps_the_family_alive) {
    fixture->next = "exit 6";
    start(fixture, "exit 5");
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->exit_count, 2);
    assert_int_equal(fixture->last_value, 6);
    assert_all_gone(fixture);
}

FIXTURE_TEST(signal_to_nobody_does_nothing) {
    process_family_signal(fixture->family, SIGKILL);
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->gone_count, 0);
    assert_true(process_family_is_gone(fixture->family));
    start(fixture, "exit 0");
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->last_value, 0); /* the earlier signal does not affect this worker */
    assert_all_gone(fixture);
}

TEST(children_from_before_are_left_alone) {
    int silent[2];
    processes_make_pipe(silent);
    struct process stranger = processes_start_shell("exec sleep 1000", silent[1], -1);
    struct fixture fixture;
    set_up(&fixture);
    start(&fixture, "sleep 1000 & exec sleep 1000");
    process_family_signal(fixture.family, SIGKILL);
    event_loop_run(fixture.loop);
    assert_all_gone(&fixture);
    assert_int_equal(waitpid(stranger.pid, NULL, WNOHANG), 0); /* the stranger is alive */
    assert_int_equal(kill(stranger.pid, SIGKILL), 0);
    assert_int_equal(WTERMSIG(processes_wait(&stranger)), SIGKILL);
    close(silent[0]);
    close(silent[1]);
    fixture.descriptors -= 3;
    tear_down(&fixture);
}

TEST(orphans_are_neither_workers_nor_children_from_before) {
    struct process_ids orphans = {0};
    struct process stranger = processes_start_shell("exec sleep 1000", -1, -1);
    struct fixture fixture;
    set_up(&fixture);
    start(&fixture, "exec sleep 1000");
    start(&fixture, "sleep 1000 &");
    fixture.stops_at_exit = true;
    event_loop_run(fixture.loop);
    process_family_orphans(fixture.family, &orphans);
    assert_int_equal(orphans.count, 1);
    process_family_signal(fixture.family, SIGKILL);
    fixture.stops_at_exit = false;
    event_loop_run(fixture.loop);
    process_ids_clear(&orphans);
    process_family_orphans(fixture.family, &orphans);
    assert_int_equal(orphans.count, 0);
    kill(-stranger.pid, SIGKILL);
    processes_wait(&stranger);
    process_ids_clear(&orphans);
    fixture.descriptors--; /* the stranger's */
    tear_down(&fixture);
}

/* Orphans and strangers. */

FIXTURE_TEST(a_descendant_in_a_session_of_its_own_gets_its_signal_after_the_worker) {
    fixture->stops_at_exit = true;
    start(fixture,
        "setsid sh -c 'trap \"echo 1; exit\" TERM; echo 0; while :; do sleep 0.02; done'&"
        "trap 'echo 2; exit 0' TERM; while :; do sleep 0.02; done");
    assert_int_equal(read_number(fixture), 0);
    process_family_signal(fixture->family, SIGTERM);
    assert_int_equal(read_number(fixture), 2);
    event_loop_run(fixture->loop);
    fixture->stops_at_exit = false;
    event_loop_run(fixture->loop);
    assert_int_equal(read_number(fixture), 1);
    assert_all_gone(fixture);
}

TEST(an_orphan_that_was_ended_is_told_of_with_its_worker) {
    struct fixture fixture;
    struct text_list fingerprint = {0};
    text_list_add(&fingerprint, "MUSTER_WORKER=family:");
    text_list_add(&fingerprint, "ERROR_FILE=/tmp/run/attempt_");
    const struct process_family_marks marks = {.fingerprint = &fingerprint};
    set_up_marked(&fixture, &marks);
    fixture.stops_at_exit = true;
    text_list_clear(&fingerprint);
    start(&fixture, "MUSTER_WORKER=family:7/x:9 setsid sleep 1000 & sleep 1001 &"
                    "ERROR_FILE=/tmp/run/attempt_2/5/error.json setsid sleep 1002 &"
                    "(trap '' TERM; echo 0; exec sleep 0.3) & sleep 0.1; exit 0");
    read_number(&fixture);
    event_loop_run(fixture.loop);
    process_family_signal(fixture.family, SIGTERM);
    event_loop_run(fixture.loop);
    assert_non_null(strstr(text_string(&fixture.orphans), "7 sleep 1000\n"));
    assert_non_null(strstr(text_string(&fixture.orphans), "0 sleep 1001\n"));
    assert_non_null(strstr(text_string(&fixture.orphans), "5 sleep 1002\n"));
    assert_null(strstr(text_string(&fixture.orphans), "0.3")); /* it has ended by itself */
    assert_all_gone(&fixture);
    tear_down(&fixture);
}

TEST(what_a_stranger_leaves_is_a_stranger) {
    int output[2];
    char line[16];
    processes_make_pipe(output);
    struct process stranger = processes_start_shell(
        "trap 'sleep 1000 & echo $!; exit 0' USR1; echo 0; while :; do sleep 0.02; done", output[1],
        -1);
    processes_read_line(output[0], line, sizeof line);
    const struct process_family_marks marks = {.limit = process_kin_choose_limit()};
    struct fixture fixture;
    set_up_marked(&fixture, &marks);
    kill(stranger.pid, SIGUSR1);
    processes_read_line(output[0], line, sizeof line);
    pid_t left = atoi(line);
    start(&fixture, "exec sleep 1000");
    process_family_signal(fixture.family, SIGTERM);
    event_loop_run(fixture.loop);
    assert_all_gone(&fixture);
    assert_int_equal(kill(left, SIGKILL), 0); /* it was alive */
    while (kill(left, 0) == 0 || kill(stranger.pid, 0) == 0) {
        event_loop_run_ready(fixture.loop); /* both are reaped even so, in whichever order */
    }
    tear_down(&fixture);
    close(stranger.pidfd);
    close(output[0]);
    close(output[1]);
}

/* Spares. */

static pid_t start_spare(struct fixture *fixture, const char *script) {
    struct process process = processes_start_shell(script, fixture->output[1], -1);
    process_family_add_spare(fixture->family, &process);
    return process.pid;
}

TEST(the_family_is_gone_without_its_spares) {
    struct fixture fixture;
    set_up(&fixture);
    start_spare(&fixture, "exec sleep 1000");
    assert_true(process_family_is_gone(fixture.family));
    start(&fixture, "exit 4");
    assert_int_equal(process_family_worker_count(fixture.family), 1);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.exit_count, 1);
    assert_int_equal(fixture.gone_count, 1);
    assert_int_equal(fixture.spare_exit_count, 0);
    tear_down(&fixture); /* nothing of the spare is left then */
}

FIXTURE_TEST(a_child_of_a_spare_may_become_a_spare) {
    char line[32];
    pid_t parent = start_spare(fixture, "(setsid sleep 1000 & echo $!); exec sleep 1000");
    processes_read_line(fixture->output[0], line, sizeof line);
    pid_t child = atoi(line);
    assert_false(process_family_adopt_spare(fixture->family, 1)); /* nobody's child here */
    assert_false(process_family_adopt_spare(fixture->family, 0));
    assert_false(process_family_adopt_spare(fixture->family, parent)); /* it is known */
    while (getsid(child) != child || !process_family_adopt_spare(fixture->family, child)) {
        sched_yield(); /* until it has a session, and the process between them has ended */
    }
    assert_true(process_family_is_gone(fixture->family));
    assert_int_equal(process_family_worker_count(fixture->family), 0);
    process_family_end_spare(fixture->family, child);
    while (fixture->spare_exit_count == 0) {
        event_loop_run_ready(fixture->loop);
    }
    assert_int_equal(kill(parent, 0), 0);
}

FIXTURE_TEST(a_family_that_waited_for_a_child_of_a_spare_is_gone_when_that_is_known) {
    siginfo_t info;
    char line[32];
    start_spare(fixture, "(setsid sleep 1000 & echo $!); exec sleep 1000");
    processes_read_line(fixture->output[0], line, sizeof line);
    pid_t child = atoi(line);
    while (getsid(child) != child ||
           waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
        sched_yield(); /* until it is a child of this process */
    }
    start(fixture, "exit 4");
    while (fixture->exit_count == 0) {
        event_loop_run_ready(fixture->loop);
    }
    assert_int_equal(fixture->gone_count, 0); /* it may be the worker's */
    assert_true(process_family_adopt_spare(fixture->family, child));
    while (fixture->gone_count == 0) {
        event_loop_run_ready(fixture->loop);
    }
}

FIXTURE_TEST(spares_get_no_signal_and_are_no_orphans) {
    struct process_ids orphans = {0};
    pid_t spare = start_spare(fixture, "exec sleep 1000");
    start(fixture, "sleep 1000");
    process_family_orphans(fixture->family, &orphans);
    assert_int_equal(orphans.count, 0);
    process_family_signal(fixture->family, SIGKILL);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->gone_count, 1);
    assert_int_equal(fixture->spare_exit_count, 0);
    assert_int_equal(kill(spare, 0), 0);
    process_ids_clear(&orphans);
}

FIXTURE_TEST(the_end_of_a_spare_is_no_workers) {
    pid_t spare = start_spare(fixture, "exit 7");
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->spare_exit_count, 1);
    assert_int_equal(fixture->last_spare, spare);
    assert_int_equal(fixture->last_value, 7);
    assert_int_equal(fixture->exit_count, 0);
    assert_int_equal(fixture->gone_count, 0);
    spare = start_spare(fixture, "exec sleep 1000");
    process_family_end_spare(fixture->family, spare);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->last_spare, spare);
    assert_int_equal(fixture->last_value, SIGKILL);
}

FIXTURE_TEST(a_spare_that_was_given_is_a_worker) {
    pid_t spare = start_spare(fixture, "exec sleep 1000");
    process_family_give(fixture->family, spare, 0);
    assert_false(process_family_is_gone(fixture->family));
    assert_int_equal(process_family_worker_count(fixture->family), 1);
    process_family_end_spare(fixture->family, spare); /* it is none any more */
    process_family_signal(fixture->family, SIGTERM);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->exit_count, 1);
    assert_int_equal(fixture->last_value, SIGTERM);
    assert_all_gone(fixture);
}

FIXTURE_TEST(a_spare_that_is_taken_back_was_never_a_worker) {
    pid_t spare = start_spare(fixture, "exec sleep 1000");
    process_family_give(fixture->family, spare, 0);
    process_family_take_back(fixture->family, spare);
    assert_true(process_family_is_gone(fixture->family));
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->spare_exit_count, 1);
    assert_int_equal(fixture->exit_count, 0);
    assert_int_equal(fixture->gone_count, 0);
    process_family_give(fixture->family, spare, 0); /* one that has ended is no worker either */
    process_family_take_back(fixture->family, spare);
    assert_int_equal(process_family_worker_count(fixture->family), 0);
}
