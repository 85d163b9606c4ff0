/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/process/death_notice.h"
#include "host/process/process_table.h"

#define MAXIMUM 2

struct fixture {
    struct event_loop *loop;
    struct death_watch *watch;
    pid_t children[3];
    pid_t ended[3];
    int count;
};

static void note_end(void *context, pid_t pid) {
    struct fixture *fixture = context;
    fixture->ended[fixture->count++] = pid;
}

/* Valgrind does not support pidfds. */
static void skip_without_pidfds(void) {
    int fd = pidfd_open_process(getpid());
    if (fd < 0) {
        SKIP_BECAUSE("there are no pidfds here");
    }
    close(fd);
}

static void set_up(struct fixture *fixture) {
    skip_without_pidfds();
    *fixture = (struct fixture){0};
    for (int i = 0; i < 3; i++) {
        fixture->children[i] = fork();
        if (fixture->children[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) {
                pause();
            }
        }
    }
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    fixture->watch = death_watch_new(fixture->loop, MAXIMUM, note_end, fixture);
}

static void tear_down(struct fixture *fixture) {
    for (int i = 0; i < 3; i++) {
        kill(fixture->children[i], SIGKILL);
        waitpid(fixture->children[i], NULL, 0);
    }
    death_watch_free(fixture->watch);
    assert_true(event_loop_free(fixture->loop));
}

/* Kills a child, which then is a zombie. */
static void end_child(const struct fixture *fixture, int index) {
    siginfo_t info;
    kill(fixture->children[index], SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)fixture->children[index], &info, WEXITED | WNOWAIT), 0);
}

FIXTURE_TEST(the_end_of_each_is_told_once) {
    assert_true(death_watch_add(fixture->watch, fixture->children[0]));
    assert_true(death_watch_add(fixture->watch, fixture->children[0]));
    assert_true(death_watch_add(fixture->watch, fixture->children[1]));
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->count, 0);
    end_child(fixture, 1);
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->count, 1);
    assert_int_equal(fixture->ended[0], fixture->children[1]);
    end_child(fixture, 0);
    assert_false(event_loop_run_ready(fixture->loop)); /* no process is watched any more */
    assert_int_equal(fixture->count, 2);
    assert_int_equal(fixture->ended[1], fixture->children[0]);
}

FIXTURE_TEST(one_that_ended_before_is_told_unless_nothing_is_left_of_it) {
    end_child(fixture, 0);
    assert_true(death_watch_add(fixture->watch, fixture->children[0]));
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->count, 1);
    waitpid(fixture->children[0], NULL, 0);
    assert_false(death_watch_add(fixture->watch, fixture->children[0]));
    assert_false(event_loop_run_ready(fixture->loop));
}

FIXTURE_TEST(there_is_room_again_when_one_has_ended) {
    for (int i = 0; i < 3; i++) {
        assert_true(death_watch_add(fixture->watch, fixture->children[i]));
    }
    end_child(fixture, 2);
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->count, 0);
    end_child(fixture, 0);
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->count, 1);
    assert_true(death_watch_add(fixture->watch, fixture->children[2]));
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->ended[1], fixture->children[2]);
}

FIXTURE_TEST(the_end_of_one_that_was_removed_is_not_told) {
    assert_true(death_watch_add(fixture->watch, fixture->children[0]));
    assert_true(death_watch_add(fixture->watch, fixture->children[1]));
    death_watch_remove(fixture->watch, fixture->children[0]);
    death_watch_remove(fixture->watch, fixture->children[0]);
    end_child(fixture, 0);
    event_loop_run_ready(fixture->loop);
    death_watch_remove_all(fixture->watch);
    end_child(fixture, 1);
    assert_false(event_loop_run_ready(fixture->loop));
    assert_int_equal(fixture->count, 0);
}
