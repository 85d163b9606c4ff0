/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "host/process/guardian.h"
#include "host/process/process_table.h"
#include "processes.h"

static const struct text_list no_fingerprint;

static bool fits(const char *fingerprint, const char *environment, size_t length) {
    struct text_list list = {0};
    text_list_add(&list, "A=1/");
    text_list_add(&list, fingerprint);
    bool result = guardian_fingerprint_fits(&list, environment, length);
    text_list_clear(&list);
    return result;
}

static void fingerprint_fits_when_one_assignment_does(void **state) {
    (void)state;
    static const char environment[] = "PATH=/bin\0A=12\0ERROR_FILE=/tmp/job/0/error.json";
    assert_true(fits("ERROR_FILE=/tmp/job/", environment, sizeof environment));
    assert_true(fits("PATH=/bin", environment, sizeof environment));
    assert_false(fits("ERROR_FILE=/tmp/other/", environment, sizeof environment));
    assert_false(fits("FILE=/tmp/job/", environment, sizeof environment));
    assert_false(fits("PATH=/bin/", environment, sizeof environment));
    assert_false(fits("PATH=/bin", environment, 3)); /* cut in the middle of a variable */
    assert_false(fits("PATH=/bin", environment, 0));
    assert_true(fits("B=/bin", "A=1/", 4)); /* the other one does */
}

static void empty_fingerprint_fits_nothing(void **state) {
    (void)state;
    assert_false(guardian_fingerprint_fits(&no_fingerprint, "A=1", 4));
}

static void sessions_are_a_set(void **state) {
    (void)state;
    struct guardian_sessions sessions = {0};
    guardian_sessions_add(&sessions, 10, 1);
    guardian_sessions_add(&sessions, 11, 1);
    guardian_sessions_add(&sessions, 10, 2);
    assert_int_equal(sessions.count, 2);
    guardian_sessions_remove(&sessions, 11);
    guardian_sessions_remove(&sessions, 12);
    assert_int_equal(sessions.count, 1);
    assert_int_equal(sessions.items[0].leader, 10);
    assert_int_equal(sessions.items[0].start_time, 2);
    guardian_sessions_clear(&sessions);
}

static void numbers_that_mean_everybody_are_not_taken(void **state) {
    (void)state;
    struct guardian_sessions sessions = {0};
    guardian_sessions_add(&sessions, 1, 0);
    guardian_sessions_add(&sessions, 0, 0);
    guardian_sessions_add(&sessions, -1, 0);
    assert_int_equal(sessions.count, 0);
}

static void every_group_of_a_session_is_ended(void **state) {
    (void)state;
    int output[2];
    processes_make_pipe(output);
    struct process process = processes_start_shell(
        "set -m 2>/dev/null; sleep 1000 & sleep 1000 & echo ready; wait", output[1], -1);
    close(output[1]);
    char line[16];
    processes_read_line(output[0], line, sizeof line);
    struct kernel_process_stat stat;
    assert_true(process_table_read(process.pid, &stat));
    struct guardian_sessions sessions = {0};
    guardian_sessions_add(&sessions, process.pid, stat.start_time);
    guardian_sweep(&sessions, &no_fingerprint);
    processes_wait_for_silence(output[0]);
    assert_int_equal(WTERMSIG(processes_wait(&process)), SIGKILL);
    guardian_sessions_clear(&sessions);
    close(output[0]);
}

static void session_whose_leader_is_gone_is_ended(void **state) {
    (void)state;
    int output[2];
    processes_make_pipe(output);
    struct process process = processes_start_shell("sleep 1000 & exit 0", output[1], -1);
    close(output[1]);
    struct kernel_process_stat stat;
    assert_true(process_table_read(process.pid, &stat));
    assert_int_equal(processes_wait(&process), 0);
    struct guardian_sessions sessions = {0};
    guardian_sessions_add(&sessions, process.pid, stat.start_time);
    guardian_sweep(&sessions, &no_fingerprint);
    processes_wait_for_silence(output[0]);
    guardian_sessions_clear(&sessions);
    close(output[0]);
}

static void session_number_that_was_used_anew_is_spared(void **state) {
    (void)state;
    struct process process = processes_start_shell("exec sleep 1000", -1, -1);
    struct kernel_process_stat stat;
    assert_true(process_table_read(process.pid, &stat));
    struct guardian_sessions sessions = {0};
    guardian_sessions_add(&sessions, process.pid, stat.start_time - 1);
    guardian_sweep(&sessions, &no_fingerprint);
    assert_int_equal(waitpid(process.pid, NULL, WNOHANG), 0);
    kill(process.pid, SIGKILL);
    processes_wait(&process);
    guardian_sessions_clear(&sessions);
}

static void process_with_the_fingerprint_is_ended_wherever_it_is(void **state) {
    (void)state;
    char *mark = text_format("MARK=/job/%d/0/error.json", (int)getpid());
    char *start = text_format("MARK=/job/%d/", (int)getpid());
    struct process other = processes_start_shell("exec sleep 1000", -1, -1);
    assert_int_equal(putenv(mark), 0);
    struct process marked = processes_start_shell("exec sleep 1000", -1, -1);
    assert_int_equal(unsetenv("MARK"), 0);
    struct text_list fingerprint = {0};
    text_list_add(&fingerprint, start);
    struct guardian_sessions none = {0};
    guardian_sweep(&none, &fingerprint);
    assert_int_equal(WTERMSIG(processes_wait(&marked)), SIGKILL);
    assert_int_equal(waitpid(other.pid, NULL, WNOHANG), 0);
    kill(other.pid, SIGKILL);
    processes_wait(&other);
    text_list_clear(&fingerprint);
    free(mark);
    free(start);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fingerprint_fits_when_one_assignment_does),
    cmocka_unit_test(empty_fingerprint_fits_nothing),
    cmocka_unit_test(sessions_are_a_set),
    cmocka_unit_test(numbers_that_mean_everybody_are_not_taken),
    cmocka_unit_test(every_group_of_a_session_is_ended),
    cmocka_unit_test(session_whose_leader_is_gone_is_ended),
    cmocka_unit_test(session_number_that_was_used_anew_is_spared),
    cmocka_unit_test(process_with_the_fingerprint_is_ended_wherever_it_is),
};

UNIT_TESTS(tests)
