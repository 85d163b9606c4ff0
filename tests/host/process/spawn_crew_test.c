/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <poll.h>
#include <signal.h>

#include "host/process/process_spawn.h"
#include "processes.h"

#define TASKS 6

/* Programs that write back what they read. All have the same pipes. */
struct fixture {
    struct text_list arguments;
    struct text_list environment;
    struct spawn_task tasks[TASKS];
    int into[2];
    int out_of[2];
    int descriptors; /* before */
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.descriptors = processes_open_descriptors()};
    text_list_add(&fixture->arguments, "cat");
    processes_make_pipe(fixture->into);
    processes_make_pipe(fixture->out_of);
    for (int i = 0; i < TASKS; i++) {
        struct process_request *request = &fixture->tasks[i].request;
        process_request_init(request, &fixture->arguments, &fixture->environment);
        request->stdin_fd = fixture->into[0];
        request->stdout_fd = fixture->out_of[1];
    }
}

static void tear_down(struct fixture *fixture) {
    text_list_clear(&fixture->arguments);
    text_list_clear(&fixture->environment);
    close(fixture->into[0]);
    close(fixture->out_of[0]);
    assert_int_equal(processes_open_descriptors(), fixture->descriptors);
    processes_assert_no_children();
}

/* Only the programs hold these ends from now on. */
static void leave_to_programs(const struct fixture *fixture) {
    close(fixture->out_of[1]);
}

static int reap(const struct spawn_task *task) {
    int status = 0;
    assert_int_equal(waitpid(task->process.pid, &status, 0), task->process.pid);
    close(task->process.pidfd);
    return status;
}

static void assert_each_is_another(const struct fixture *fixture) {
    for (int i = 0; i < TASKS; i++) {
        for (int j = 0; j < i; j++) {
            assert_int_not_equal(fixture->tasks[i].process.pid, fixture->tasks[j].process.pid);
        }
    }
}

static void start_all(int processors) {
    struct fixture fixture;
    char letter;
    set_up(&fixture);
    struct spawn_crew *crew = spawn_crew_new(processors);
    spawn_crew_start(crew, fixture.tasks, 2); /* fewer than have threads */
    spawn_crew_start(crew, fixture.tasks + 2, TASKS - 2);
    leave_to_programs(&fixture);
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(fixture.tasks[i].code, FAILURE_NONE);
    }
    assert_each_is_another(&fixture);
    assert_int_equal(write(fixture.into[1], "x", 1), 1); /* one of them answers */
    assert_int_equal(read(fixture.out_of[0], &letter, 1), 1);
    close(fixture.into[1]); /* and all of them see the end */
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(reap(&fixture.tasks[i]), 0);
    }
    spawn_crew_free(crew);
    tear_down(&fixture);
}

TEST(all_are_started_and_live_on) {
    start_all(1);
    start_all(4);
}

static void start_all_but_one(int processors) {
    struct fixture fixture;
    struct text_list nothing = {0};
    set_up(&fixture);
    text_list_add(&nothing, "/nowhere/program");
    fixture.tasks[1].request.arguments = &nothing;
    struct spawn_crew *crew = spawn_crew_new(processors);
    spawn_crew_start(crew, fixture.tasks, TASKS);
    leave_to_programs(&fixture);
    close(fixture.into[1]);
    for (int i = 0; i < TASKS; i++) {
        assert_int_equal(fixture.tasks[i].code, i == 1 ? FAILURE_SYSTEM : FAILURE_NONE);
        assert_true(i == 1 || reap(&fixture.tasks[i]) == 0);
    }
    assert_non_null(strstr(fixture.tasks[1].failure.message, "'/nowhere/program'"));
    spawn_crew_free(crew);
    text_list_clear(&nothing);
    tear_down(&fixture);
}

TEST(one_that_cannot_be_started_keeps_no_other_back) {
    start_all_but_one(1);
    start_all_but_one(4);
}

/* What a thread has started ends with the thread. So the threads must not end before. */
FIXTURE_TEST(programs_end_with_the_crew_and_not_before) {
    int killed = 0;
    struct spawn_crew *crew = spawn_crew_new(4);
    spawn_crew_start(crew, fixture->tasks, TASKS);
    leave_to_programs(fixture);
    spawn_crew_free(crew);
    close(fixture->into[1]);
    for (int i = 0; i < TASKS; i++) {
        int status = reap(&fixture->tasks[i]);
        assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
        killed += status == 0 ? 0 : 1;
    }
    assert_true(killed < TASKS); /* the calling thread has started one at least */
}

TEST(a_crew_without_work_is_freed) {
    struct spawn_crew *crew = spawn_crew_new(4);
    spawn_crew_start(crew, NULL, 0);
    spawn_crew_free(crew);
    spawn_crew_free(NULL);
}
