/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <sys/resource.h>

#include "host/process/process_table.h"
#include "processes.h"

TEST(a_limit_is_chosen_that_nobody_has) {
    struct rlimit before;
    struct rlimit after;
    assert_int_equal(getrlimit(RLIMIT_LOCKS, &before), 0);
    uint64_t limit = process_kin_choose_limit();
    assert_int_equal(getrlimit(RLIMIT_LOCKS, &after), 0);
    assert_true(before.rlim_cur == after.rlim_cur); /* this process has none of it */
    assert_true(limit != 0 && limit != process_kin_choose_limit());
    assert_int_equal(process_kin_has_limit(getpid(), limit), PROCESS_KIN_NO);
}

/* Another session, another parent, another environment. */
TEST(a_process_that_leaves_everything_behind_keeps_its_limit) {
    int output[2];
    char line[16];
    uint64_t limit = process_kin_choose_limit();
    processes_make_pipe(output);
    struct process process;
    struct text_list arguments = {0};
    struct text_list environment = processes_environment();
    const char *const words[] = {
        "sh", "-c", "env -i setsid sh -c 'sleep 1000 >/dev/null & echo $!' & wait; exit 0"};
    for (size_t i = 0; i < 3; i++) {
        text_list_add(&arguments, words[i]);
    }
    struct process_request request;
    process_request_init(&request, &arguments, &environment);
    request.stdout_fd = output[1];
    request.kin_limit = limit;
    assert_int_equal(process_spawn(&request, &process, NULL), FAILURE_NONE);
    processes_read_line(output[0], line, sizeof line);
    pid_t daemon = atoi(line);
    assert_int_equal(processes_wait(&process), 0);
    assert_int_equal(process_kin_has_limit(daemon, limit), PROCESS_KIN_YES);
    assert_int_equal(process_kin_has_limit(daemon, limit - 1), PROCESS_KIN_NO);
    kill(daemon, SIGKILL);
    text_list_clear(&arguments);
    text_list_clear(&environment);
    close(output[0]);
    close(output[1]);
}

TEST(no_limit_tells_nothing) {
    process_kin_take_limit(0);
    assert_int_equal(process_kin_has_limit(getpid(), 0), PROCESS_KIN_UNKNOWN);
    assert_int_equal(process_kin_has_limit(INT32_MAX, 1), PROCESS_KIN_UNKNOWN);
}

TEST(who_has_children_may_meet_strangers) {
    assert_false(process_kin_may_meet_strangers());
    struct process process = processes_start_shell("exec sleep 1000", -1, -1);
    assert_true(process_kin_may_meet_strangers());
    kill(process.pid, SIGKILL);
    processes_wait(&process);
    assert_false(process_kin_may_meet_strangers());
}
