/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents in programs that have a loop, signals and children of their own. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "library/agent_fixture.h"
#include "library/process_look.h"

/* Each takes two processes and more. With MUSTER_TEST_CYCLES=10000 they take minutes. */
#define USUAL_CYCLES 300
#define WARM_CYCLES 100
#define GROWTH_BYTES (1 << 20)

static volatile sig_atomic_t deaths;

static void note_death(int signal) {
    (void)signal;
    deaths++;
}

/* The program's own SIGCHLD handler, a mask of its own, and SIGPIPE's default. */
TEST(agent_in_a_loop_leaves_signals_and_children_alone) {
    struct fixture fixture;
    struct sigaction mine = {.sa_handler = note_death};
    struct sigaction now;
    sigset_t before;
    sigset_t after;
    const struct muster_run_result *result;
    sigaction(SIGCHLD, &mine, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    set_up(&fixture, 2, "exit 0");
    start(&fixture);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    int fd = muster_agent_fd(fixture.agent);
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
    deaths = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(7);
    }
    while (muster_agent_result(fixture.agent, &result, NULL) == MUSTER_ERROR_STATE) {
        if (epoll_wait(epoll, &event, 1, -1) == 1) {
            assert_int_equal(muster_agent_process(fixture.agent, NULL), MUSTER_OK);
        }
    }
    int status;
    assert_int_equal(waitpid(-1, &status, 0), child); /* there is no other child */
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(waitpid(-1, &status, 0), -1);
    assert_int_equal(deaths, 1);
    sigaction(SIGCHLD, NULL, &now);
    assert_ptr_equal(now.sa_handler, note_death);
    sigaction(SIGPIPE, NULL, &now);
    assert_ptr_equal(now.sa_handler, SIG_DFL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int signal = 1; signal < NSIG; signal++) {
        assert_int_equal(sigismember(&before, signal), sigismember(&after, signal));
    }
    int is_subreaper;
    assert_int_equal(prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper), 0);
    assert_int_equal(is_subreaper, 0);
    signal(SIGCHLD, SIG_DFL);
    close(epoll);
    tear_down(&fixture);
}

/* The kernel waits for the children of such a program. */
TEST(program_that_ignores_its_children_can_have_agents) {
    struct fixture fixture;
    signal(SIGCHLD, SIG_IGN);
    set_up(&fixture, 1, "test $RANK = 0");
    start(&fixture);
    assert_int_equal(wait_for_end(&fixture)->state, MUSTER_WORKER_STATE_SUCCEEDED);
    signal(SIGCHLD, SIG_DFL);
    tear_down(&fixture);
}

TEST(two_agents_of_one_program_are_apart) {
    struct fixture left;
    struct fixture right;
    set_up(&left, 1, "touch $DIR/ready; while :; do sleep 0.01; done");
    set_up(&right, 1, "exit 4");
    start(&left);
    wait_for_file(left.directory, "ready");
    start(&right);
    assert_int_equal(wait_for_end(&right)->failures[0].exitcode, 4);
    assert_int_equal(left.ended, 0);
    /* The second agent does not hold what is the first one's: its end is seen. */
    assert_int_equal(muster_agent_kill(left.agent, NULL), MUSTER_OK);
    assert_int_equal(wait_for_end(&left)->state, MUSTER_WORKER_STATE_UNKNOWN);
    tear_down(&left);
    tear_down(&right);
}

/* They have begun, so that none of them holds what beginning takes, and end when the agent has. */
static pthread_barrier_t beginning;
static pthread_barrier_t ending;

static void *hold_still(void *context) {
    (void)context;
    pthread_barrier_wait(&beginning);
    pthread_barrier_wait(&ending);
    return NULL;
}

static int exit_well(void *context, struct muster_return_value *out_value) {
    (void)out_value;
    (void)context;
    char *memory = malloc(1 << 20);
    bool is_good = memory != NULL && getenv("RANK") != NULL;
    free(memory);
    return is_good ? 0 : 1;
}

TEST(program_may_have_threads) {
    struct fixture fixture;
    pthread_t threads[4];
    pthread_barrier_init(&beginning, NULL, 5);
    pthread_barrier_init(&ending, NULL, 5);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hold_still, NULL), 0);
    }
    pthread_barrier_wait(&beginning);
    set_up_function(&fixture, 3, exit_well);
    start(&fixture);
    assert_int_equal(wait_for_end(&fixture)->state, MUSTER_WORKER_STATE_SUCCEEDED);
    pthread_barrier_wait(&ending);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&beginning);
    pthread_barrier_destroy(&ending);
    tear_down(&fixture);
}

/* Threads that take libc's own locks again and again: of time zones, names and translations. */
static atomic_bool is_over;

static void *ask_for_time(void *context) {
    struct tm local;
    for (time_t moment = 0; !atomic_load(&is_over); moment++) {
        localtime_r(&moment, &local);
    }
    return context;
}

static void *ask_for_names(void *context) {
    while (!atomic_load(&is_over)) {
        struct addrinfo *found = NULL;
        if (getaddrinfo("localhost", NULL, NULL, &found) == 0) {
            freeaddrinfo(found);
        }
    }
    return context;
}

static void *change_the_locale(void *context) {
    while (!atomic_load(&is_over)) {
        setlocale(LC_MESSAGES, "C.UTF-8");
        setlocale(LC_MESSAGES, "C");
    }
    return context;
}

/* An agent that starts while a thread holds such a lock would wait for it for ever, at the first
 * line of its log. */
TEST(locks_of_the_programs_threads_are_not_asked_for) {
    static void *(*const busy[])(void *) = {ask_for_time, ask_for_names, change_the_locale};
    pthread_t threads[sizeof busy / sizeof *busy];
    if (PROCESS_IS_SANITIZED) {
        SKIP_BECAUSE("a sanitizer has locks of its own, which a copy of a process finds held");
    }
    for (size_t i = 0; i < sizeof busy / sizeof *busy; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, busy[i], NULL), 0);
    }
    for (int i = 0; i < 12; i++) {
        struct fixture fixture;
        set_up(&fixture, 1, "exit 3");
        start(&fixture);
        assert_int_equal(wait_for_end(&fixture)->failures[0].exitcode, 3);
        tear_down(&fixture);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < sizeof busy / sizeof *busy; i++) {
        pthread_join(threads[i], NULL);
    }
}

static int has_no_token(void *context, struct muster_return_value *out_value) {
    (void)context;
    (void)out_value;
    return getenv("MUSTER_JOB_TOKEN") == NULL && getenv("RANK") != NULL ? 0 : 1;
}

/* The agent has the token, its workers do not, and the program's variables stay as they are. */
TEST(programs_with_a_token_keep_it_to_themselves) {
    static const char token[] = "of a program with an agent";
    setenv("MUSTER_JOB_TOKEN", token, 1);
    for (int i = 0; i < 4; i++) {
        struct fixture fixture;
        if (i % 2 == 0) {
            set_up(&fixture, 1, "test -z \"$MUSTER_JOB_TOKEN\"");
        } else {
            set_up_function(&fixture, 1, has_no_token);
        }
        fixture.settings.env = NULL;
        fixture.settings.options = (const char *const[]){"--standalone", "--auth=token", NULL};
        start(&fixture);
        assert_int_equal(wait_for_end(&fixture)->state, MUSTER_WORKER_STATE_SUCCEEDED);
        assert_string_equal(getenv("MUSTER_JOB_TOKEN"), token);
        tear_down(&fixture);
    }
    unsetenv("MUSTER_JOB_TOKEN");
}

TEST(output_goes_where_it_is_wanted) {
    struct fixture fixture;
    char said[256];
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    set_up(&fixture, 1, "echo out; echo err >&2");
    fixture.settings.stdout_fd = ends[1];
    fixture.settings.stderr_fd = ends[1];
    start(&fixture);
    close(ends[1]);
    (void)wait_for_end(&fixture);
    size_t length = 0;
    ssize_t count;
    while ((count = read(ends[0], said + length, sizeof said - 1 - length)) > 0) {
        length += (size_t)count;
    }
    said[length] = '\0';
    assert_non_null(strstr(said, "out\n"));
    assert_non_null(strstr(said, "err\n"));
    close(ends[0]);
    tear_down(&fixture);
}

/* Calls from inside a callback. */

static void stop_at_the_start(void *context, const struct muster_agent_event *event) {
    struct fixture *fixture = context;
    if (event->kind == MUSTER_AGENT_EVENT_WORKER && strcmp(event->state, "START") == 0) {
        assert_int_equal(event->global_rank, 0);
        assert_true(event->pid > 0);
        assert_int_equal(muster_agent_process(fixture->agent, NULL), MUSTER_ERROR_STATE);
        assert_int_equal(muster_agent_stop(fixture->agent, SIGINT, NULL), MUSTER_OK);
    }
}

FIXTURE_TEST_AFTER(agent_is_stopped_from_inside_a_callback, set_up(&fixture, 1, "sleep 1000")) {
    fixture->settings.event = stop_at_the_start;
    start(fixture);
    assert_int_equal(wait_for_end(fixture)->signal, SIGINT);
}

static void free_at_the_start(void *context, const struct muster_agent_event *event) {
    struct fixture *fixture = context;
    (void)event;
    muster_agent_free(fixture->agent);
    fixture->agent = NULL;
}

FIXTURE_TEST_AFTER(agent_is_freed_from_inside_a_callback, set_up(&fixture, 1, "sleep 1000")) {
    fixture->settings.event = free_at_the_start;
    fixture->settings.metric = NULL;
    start(fixture);
    while (fixture->agent != NULL) {
        process_once(fixture->agent);
    }
    assert_int_equal(fixture->ended, 0);
}

/* Ends well, or is killed at once, as most are. */
static void live_once(struct fixture *fixture, bool is_killed) {
    start(fixture);
    if (is_killed) {
        assert_int_equal(muster_agent_kill(fixture->agent, NULL), MUSTER_OK);
    } else {
        (void)wait_for_end(fixture);
        fixture->ended = 0;
    }
    muster_agent_free(fixture->agent);
    fixture->agent = NULL;
    text_clear(&fixture->story);
    text_clear(&fixture->metrics);
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

/* Agents, their guardians and workers become children of this process, so that it sees each end. */
TEST(many_agents_leave_nothing_behind) {
    struct fixture fixture;
    long warm = 0;
    int cycles = process_cycles(USUAL_CYCLES);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    set_up(&fixture, 1, "exit 0");
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    fixture.settings.stdout_fd = nothing;
    fixture.settings.stderr_fd = nothing;
    size_t before = count_descriptors();
    for (int i = 0; i < cycles; i++) {
        live_once(&fixture, i % 100 != 0);
        if (i == WARM_CYCLES) {
            warm = process_resident_bytes();
        }
    }
    assert_int_equal(count_descriptors(), before);
    if (!PROCESS_IS_SANITIZED && warm > 0) { /* they keep what was freed */
        assert_true(process_resident_bytes() - warm < GROWTH_BYTES);
    }
    while (waitpid(-1, NULL, 0) > 0) { /* what has not ended yet */
    }
    assert_int_equal(errno, ECHILD);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    close(nothing);
    tear_down(&fixture);
}
