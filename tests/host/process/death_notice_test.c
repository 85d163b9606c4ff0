/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/loop/files.h"
#include "host/process/death_notice.h"

/* A worker that says on a pipe when it has taken its mutex, and what it does then. */
struct fixture {
    struct event_loop *loop;
    struct death_notice *notice;
    int file;
    pid_t worker;
    int said; /* our end of the pipe */
    int told; /* how often */
    struct process_exit exit;
};

static void ending(void *context, pid_t pid, const struct process_exit *exit) {
    struct fixture *fixture = context;
    assert_int_equal(pid, fixture->worker);
    fixture->told++;
    fixture->exit = *exit;
    event_loop_stop(fixture->loop);
}

static void *map_page(int file) {
    void *page = mmap(NULL, DEATH_NOTICE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    return page;
}

static void take_mutex(int file) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t *mutex = map_page(file);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutex_lock(mutex);
}

/* `play` follows the mutex, on the worker's side. */
static void set_up(struct fixture *fixture, void (*play)(int say)) {
    int ends[2];
    char byte;
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(memory_file_with_head("test", DEATH_NOTICE_PAGE, &fixture->file, NULL), 0);
    const struct death_notice_events events = {ending, fixture};
    assert_int_equal(
        death_notice_new(fixture->loop, fixture->file, &events, &fixture->notice, NULL), 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fixture->worker = fork();
    if (fixture->worker == 0) {
        take_mutex(fixture->file);
        (void)!write(ends[1], "m", 1);
        play(ends[1]);
        _exit(99);
    }
    close(ends[1]);
    fixture->said = ends[0];
    assert_int_equal(read(fixture->said, &byte, 1), 1);
}

static void tear_down(struct fixture *fixture) {
    if (fixture->worker != 0) {
        kill(fixture->worker, SIGKILL);
        waitpid(fixture->worker, NULL, 0);
    }
    death_notice_free(fixture->notice);
    close(fixture->said);
    close(fixture->file);
    assert_true(event_loop_free(fixture->loop));
}

/* Threads that wait for a death. */

static bool count_thread(void *context, int thread) {
    int *count = context;
    char path[NUMBER_PATH_SIZE];
    char name[32] = "";
    number_path_format(path, "/proc/self/task/", thread, "/comm");
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        *count += fgets(name, sizeof name, file) != NULL && strcmp(name, "muster-deaths\n") == 0;
        fclose(file);
    }
    return true;
}

static int thread_count(void) {
    int count = 0;
    assert_true(number_directory_each("/proc/self/task", count_thread, &count));
    return count;
}

static void await_no_thread(void) {
    while (thread_count() > 0) {
        sched_yield();
    }
}

static void look(struct fixture *fixture) {
    death_notice_look(fixture->notice, fixture->worker);
}

/* Also what is under way. */
static void expect_nothing(struct fixture *fixture) {
    await_no_thread();
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->told, 0);
}

/* What workers do. */

static void sleep_on(int say) {
    (void)say;
    for (;;) {
        pause();
    }
}

static void wait_for_word(void) {
    sigset_t word;
    int signal;
    sigemptyset(&word);
    sigaddset(&word, SIGUSR1);
    sigwait(&word, &signal);
}

static void exit_with_3_at_word(int say) {
    (void)say;
    wait_for_word();
    _exit(3);
}

static void exit_well_at_word(int say) {
    (void)say;
    wait_for_word();
    _exit(0);
}

static void exec_at_word(int say) {
    (void)say;
    wait_for_word();
    execlp("sleep", "sleep", "1000", (char *)NULL);
}

static void abort_at_word(int say) {
    (void)say;
    wait_for_word();
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(SIGABRT, SIG_DFL);
    abort();
}

static void *sleep_on_thread(void *context) {
    (void)context;
    sleep_on(-1);
    return NULL;
}

static void start_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_on_thread, NULL) != 0) {
        _exit(98);
    }
}

static void exit_beside_a_thread_at_word(int say) {
    (void)say;
    start_thread();
    wait_for_word();
    _exit(4);
}

/* Its status looks as if the process ended. */
static void end_first_thread_alone_at_word(int say) {
    (void)say;
    start_thread();
    wait_for_word();
    syscall(SYS_exit, 5);
}

static void have_a_child_that_fails(int say) {
    pid_t child = fork();
    if (child == 0) {
        _exit(3);
    }
    waitpid(child, NULL, 0);
    (void)!write(say, "c", 1);
    sleep_on(say);
}

/* The word is given before the worker waits for it, so it is blocked from the start. */
static void set_up_for_word(struct fixture *fixture, void (*play)(int say)) {
    sigset_t word;
    sigset_t before;
    sigemptyset(&word);
    sigaddset(&word, SIGUSR1);
    sigprocmask(SIG_BLOCK, &word, &before);
    set_up(fixture, play);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Cases. */

FIXTURE_TEST_AFTER(
    a_killed_worker_is_told_before_anybody_waits_for_it, set_up(&fixture, sleep_on)) {
    look(fixture);
    look(fixture); /* more than once is no mistake */
    assert_int_equal(thread_count(), 1);
    kill(fixture->worker, SIGKILL);
    event_loop_run(fixture->loop);
    assert_true(fixture->exit.is_signal);
    assert_int_equal(fixture->exit.value, SIGKILL);
    await_no_thread();
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->told, 1);
}

TEST(an_end_is_told_as_waitpid_will_tell_it) {
    static const struct {
        void (*play)(int say);
        struct process_exit exit;
    } cases[] = {
        {exit_with_3_at_word, {.value = 3}},
        {exit_beside_a_thread_at_word, {.value = 4}},
        {abort_at_word, {.is_signal = true, .value = SIGABRT}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture fixture;
        set_up_for_word(&fixture, cases[i].play);
        look(&fixture);
        kill(fixture.worker, SIGUSR1);
        event_loop_run(fixture.loop);
        assert_int_equal(fixture.exit.is_signal, cases[i].exit.is_signal);
        assert_int_equal(fixture.exit.value, cases[i].exit.value);
        assert_false(fixture.exit.has_dumped_core);
        tear_down(&fixture);
    }
}

TEST(neither_a_success_nor_an_exec_nor_the_end_of_one_thread_is_told) {
    void (*const plays[])(int say) = {
        exit_well_at_word, exec_at_word, end_first_thread_alone_at_word};
    for (size_t i = 0; i < sizeof plays / sizeof *plays; i++) {
        struct fixture fixture;
        set_up_for_word(&fixture, plays[i]);
        look(&fixture);
        assert_int_equal(thread_count(), 1);
        kill(fixture.worker, SIGUSR1);
        expect_nothing(&fixture);
        tear_down(&fixture);
    }
}

FIXTURE_TEST_AFTER(
    the_end_of_a_workers_child_says_nothing, set_up(&fixture, have_a_child_that_fails)) {
    char byte;
    look(fixture);
    assert_int_equal(read(fixture->said, &byte, 1), 1);
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->told, 0);
    assert_int_equal(thread_count(), 1); /* it waits on */
    kill(fixture->worker, SIGKILL);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->told, 1);
}

FIXTURE_TEST_AFTER(a_worker_without_the_mutex_costs_no_thread, set_up(&fixture, sleep_on)) {
    death_notice_look(fixture->notice, fixture->worker + 1); /* whose number is not in the page */
    death_notice_look(fixture->notice, 0);
    death_notice_look(NULL, fixture->worker);
    assert_int_equal(thread_count(), 0);
}

FIXTURE_TEST_AFTER(nobody_waits_any_more_when_the_notice_is_freed, set_up(&fixture, sleep_on)) {
    look(fixture);
    death_notice_free(fixture->notice);
    fixture->notice = NULL;
    expect_nothing(fixture);
}

/* /proc decides. */
TEST(a_page_that_lies_does_no_harm) {
    static const uint32_t lies[] = {0, FUTEX_OWNER_DIED, 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct fixture fixture;
        set_up(&fixture, sleep_on);
        look(&fixture);
        uint32_t *page = map_page(fixture.file);
        for (size_t word = 0; word < DEATH_NOTICE_MUTEX / sizeof *page; word++) {
            __atomic_store_n(&page[word], lies[i], __ATOMIC_SEQ_CST);
            syscall(SYS_futex, &page[word], FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        }
        expect_nothing(&fixture);
        munmap(page, DEATH_NOTICE_PAGE);
        tear_down(&fixture);
    }
}

FIXTURE_TEST_AFTER(a_page_that_wakes_all_the_time_is_left_alone, set_up(&fixture, sleep_on)) {
    look(fixture);
    uint32_t *page = map_page(fixture->file);
    while (thread_count() > 0) {
        syscall(SYS_futex, page, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        syscall(SYS_futex, page + 1, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
    expect_nothing(fixture);
    munmap(page, DEATH_NOTICE_PAGE);
}

FIXTURE_TEST_AFTER(nobody_takes_the_page_away, set_up(&fixture, sleep_on)) {
    assert_int_equal(ftruncate(fixture->file, 0), -1);
    assert_int_equal(fcntl(fixture->file, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_equal(ftruncate(fixture->file, 2 * DEATH_NOTICE_PAGE), 0);
}
