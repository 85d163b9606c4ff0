/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/process/death_notice.h"
#include "host/process/process_table.h"

static pid_t start(void (*play)(void)) {
    pid_t pid = fork();
    if (pid == 0) {
        play();
        _exit(99);
    }
    return pid;
}

static uint64_t start_time_of(pid_t pid) {
    struct kernel_process_stat stat;
    assert_true(process_table_read(pid, &stat));
    return stat.start_time;
}

static void reap(pid_t pid) {
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Of a process that has ended and was not waited for. */
static bool read_after(void (*play)(void), struct process_exit *out_exit) {
    pid_t pid = start(play);
    uint64_t start_time = start_time_of(pid);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    bool is_ending = process_ending_read(pid, start_time, out_exit);
    assert_false(process_ending_read(pid, start_time + 1, out_exit)); /* another process */
    reap(pid);
    assert_false(process_ending_read(pid, start_time, out_exit));
    return is_ending;
}

static void be_killed(void) {
    raise(SIGKILL);
}

static void abort_without_core(void) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void exit_with_3(void) {
    _exit(3);
}

static void exit_well(void) {
    _exit(0);
}

static void sleep_on(void) {
    for (;;) {
        pause();
    }
}

static void *sleep_on_thread(void *context) {
    (void)context;
    sleep_on();
    return NULL;
}

static void start_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_on_thread, NULL) != 0) {
        _exit(98);
    }
}

static void exit_beside_a_thread(void) {
    start_thread();
    _exit(4);
}

static void end_first_thread_alone(void) {
    start_thread();
    syscall(SYS_exit, 5);
}

static void it_tells_what_waitpid_will(void **state) {
    (void)state;
    struct process_exit exit;
    assert_true(read_after(be_killed, &exit));
    assert_true(exit.is_signal);
    assert_int_equal(exit.value, SIGKILL);
    assert_true(read_after(abort_without_core, &exit));
    assert_true(exit.is_signal);
    assert_int_equal(exit.value, SIGABRT);
    assert_false(exit.has_dumped_core);
    assert_true(read_after(exit_with_3, &exit));
    assert_false(exit.is_signal);
    assert_int_equal(exit.value, 3);
    assert_true(read_after(exit_beside_a_thread, &exit));
    assert_int_equal(exit.value, 4);
}

static void a_success_is_not_told(void **state) {
    (void)state;
    struct process_exit exit;
    assert_false(read_after(exit_well, &exit));
}

static void a_living_process_is_not_ending(void **state) {
    (void)state;
    struct process_exit exit;
    pid_t pid = start(sleep_on);
    assert_false(process_ending_read(pid, start_time_of(pid), &exit));
    reap(pid);
}

/* Its status looks as if the process ended. */
static void the_end_of_the_first_thread_alone_says_nothing(void **state) {
    (void)state;
    struct process_exit exit;
    struct kernel_process_stat stat;
    pid_t pid = start(end_first_thread_alone);
    do {
        sched_yield();
        assert_true(process_table_read(pid, &stat));
    } while (stat.state != 'Z');
    assert_int_equal(stat.wait_status, 5 << 8);
    assert_false(process_ending_read(pid, stat.start_time, &exit));
    reap(pid);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_tells_what_waitpid_will),
    cmocka_unit_test(a_success_is_not_told),
    cmocka_unit_test(a_living_process_is_not_ending),
    cmocka_unit_test(the_end_of_the_first_thread_alone_says_nothing),
};

UNIT_TESTS(tests)
