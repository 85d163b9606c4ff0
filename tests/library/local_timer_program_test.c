/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/local_timer.h in programs of other kinds: those that a child executes, those with a loop
 * of their own, and those that use it wrongly. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "muster/local_timer.h"

#define LONG_TIME 3600.0
#define LONG_MILLISECONDS 60000
#define CYCLES 10000

/* What is executed: a program that asks for a timer, and stays. */
static int hold_a_timer(const char *seconds) {
    struct muster_local_timer_queue *queue = muster_local_timer_queue_open(NULL);
    if (queue == NULL || muster_local_timer_acquire(queue, "executed", atof(seconds)) != 0) {
        return 1;
    }
    for (;;) {
        pause();
    }
}

static pid_t start_program(struct muster_local_timer_queue *queue, const char *seconds) {
    pid_t child = fork();
    char name[MUSTER_LOCAL_TIMER_NAME_SIZE];
    if (child == 0) {
        if (muster_local_timer_queue_hand_on(queue, name, sizeof name) == 0 &&
            setenv(MUSTER_LOCAL_TIMER_VARIABLE, name, 1) == 0) {
            execl("/proc/self/exe", "local_timer_program", "--hold", seconds, (char *)NULL);
        }
        _exit(1);
    }
    return child;
}

static int end_of(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void note_end(void *context, const struct muster_local_timer_expiry *expiry) {
    *(struct muster_local_timer_expiry *)context = *expiry;
}

static bool is_readable(struct muster_local_timer_server *server, int milliseconds) {
    struct pollfd waiting = {.fd = muster_local_timer_server_fd(server), .events = POLLIN};
    return poll(&waiting, 1, milliseconds) == 1 && waiting.revents == POLLIN;
}

static void a_program_that_a_child_executes_is_ended(void **state) {
    (void)state;
    struct muster_local_timer_expiry ended = {0};
    const struct muster_local_timer_observer observer = {note_end, NULL, &ended};
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    struct muster_local_timer_server *server = muster_local_timer_server_new(queue);
    pid_t child = start_program(queue, "0.01");
    while (muster_local_timer_serve(server, LONG_TIME, &observer) == 0) {
    }
    int status = end_of(child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(ended.pid, child);
    assert_string_equal(ended.scope, "executed");
    muster_local_timer_server_free(server);
    muster_local_timer_queue_free(queue);
}

static void a_loop_of_ones_own_is_told_of_requests_and_deadlines(void **state) {
    (void)state;
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    struct muster_local_timer_server *server = muster_local_timer_server_new(queue);
    assert_false(is_readable(server, 0));
    pid_t patient = start_program(queue, "3600");
    assert_true(is_readable(server, LONG_MILLISECONDS));
    assert_int_equal(muster_local_timer_serve(server, 0, NULL), 0);
    assert_int_equal(muster_local_timer_count(server), 1);
    assert_false(is_readable(server, 0)); /* its deadline is far away */
    pid_t hanging = start_program(queue, "0.05");
    size_t ended = 0;
    while (ended == 0) {
        assert_true(is_readable(server, LONG_MILLISECONDS)); /* the request, then the deadline */
        ended = muster_local_timer_serve(server, 0, NULL);
    }
    int status = end_of(hanging);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(kill(patient, 0), 0);
    assert_false(is_readable(server, 0));
    kill(patient, SIGKILL);
    end_of(patient);
    muster_local_timer_server_free(server);
    muster_local_timer_queue_free(queue);
}

static void note_request(void *context, const struct muster_local_timer_request *request) {
    char *noted = context;
    strncat(noted, request->expiration < 0 ? "-" : "+", 2);
    strncat(noted, request->scope, 16);
}

static void take_a_step(struct muster_local_timer_queue *queue) {
    MUSTER_LOCAL_TIMER_SCOPE(queue, "step", 30);
    if (muster_local_timer_queue_size(queue) == 1) {
        return;
    }
    fail_msg("nothing was acquired");
}

static void a_scope_is_left_with_its_block(void **state) {
    (void)state;
    char noted[64] = "";
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    take_a_step(queue);
    { MUSTER_LOCAL_TIMER_SCOPE(queue, "too long ago", -1); /* nothing to release */ }
    assert_int_equal(muster_local_timer_queue_get(queue, 9, 0, note_request, noted), 2);
    assert_string_equal(noted, "+step-step");
    muster_local_timer_queue_free(queue);
}

static void a_name_that_leads_nowhere_is_refused(void **state) {
    (void)state;
    int ends[2];
    char name[MUSTER_LOCAL_TIMER_NAME_SIZE];
    char inherited[MUSTER_LOCAL_TIMER_NAME_SIZE];
    static const char *const bad[] = {":", "7", "7:", ":7", "-1:7", "7:8:", "7:8 ", "99999999999:7",
        "0x7:8", "7:99999999999999999999999"};
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    unsetenv(MUSTER_LOCAL_TIMER_VARIABLE);
    assert_null(muster_local_timer_queue_open(NULL));
    assert_int_equal(errno, ENOENT);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_null(muster_local_timer_queue_open(bad[i]));
        assert_int_equal(errno, EINVAL);
    }
    assert_int_equal(muster_local_timer_queue_hand_on(queue, name, 2), -1);
    assert_int_equal(errno, ERANGE);
    assert_int_equal(muster_local_timer_queue_hand_on(queue, name, sizeof name), 0);
    /* Another pipe has the descriptor by now. */
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    snprintf(inherited, sizeof inherited, "%d%s", ends[1], strchr(name, ':'));
    assert_null(muster_local_timer_queue_open(inherited));
    assert_int_equal(errno, EBADF);
    close(ends[0]);
    close(ends[1]);
    assert_null(muster_local_timer_queue_open(inherited)); /* nothing has it */
    assert_int_equal(errno, EBADF);
    muster_local_timer_queue_free(queue);
}

static void a_queue_that_was_opened_is_only_for_requests(void **state) {
    (void)state;
    char name[MUSTER_LOCAL_TIMER_NAME_SIZE];
    char noted[64] = "";
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    assert_int_equal(muster_local_timer_queue_hand_on(queue, name, sizeof name), 0);
    struct muster_local_timer_queue *opened = muster_local_timer_queue_open(name);
    assert_non_null(opened);
    assert_int_equal(muster_local_timer_acquire(opened, "s", 1), 0);
    assert_int_equal(muster_local_timer_queue_size(opened), 1);
    assert_int_equal(muster_local_timer_queue_get(opened, 1, LONG_TIME, note_request, noted), 0);
    assert_int_equal(errno, EINVAL);
    assert_null(muster_local_timer_server_new(opened));
    assert_int_equal(errno, EINVAL);
    /* With the parent's side gone: an error, and no SIGPIPE, whose default this process has. */
    muster_local_timer_queue_free(queue);
    assert_ptr_equal(signal(SIGPIPE, SIG_DFL), SIG_DFL);
    assert_int_equal(muster_local_timer_release(opened, "s"), -1);
    assert_int_equal(errno, EPIPE);
    muster_local_timer_queue_free(opened);
}

/* The call returns this, and errno says that something that was given is not usable. */
#define EXPECT_INVALID(call, result)                                                               \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_int_equal((call), (result));                                                        \
        assert_int_equal(errno, EINVAL);                                                           \
    } while (false)

/* Every function, with what it cannot use. */
static void assert_refused(
    struct muster_local_timer_queue *queue, struct muster_local_timer_server *server) {
    const struct muster_local_timer_request no_scope = {1, NULL, 1};
    struct muster_local_timer_expiry expiry = {0};
    EXPECT_INVALID(muster_local_timer_queue_hand_on(NULL, expiry.scope, sizeof expiry.scope), -1);
    EXPECT_INVALID(muster_local_timer_queue_hand_on(queue, NULL, 64), -1);
    EXPECT_INVALID(muster_local_timer_queue_size(NULL), 0);
    EXPECT_INVALID(muster_local_timer_queue_get(NULL, 1, 0, note_request, NULL), 0);
    EXPECT_INVALID(muster_local_timer_queue_get(queue, 1, 0, NULL, NULL), 0);
    EXPECT_INVALID(muster_local_timer_acquire(NULL, "s", 1), -1);
    EXPECT_INVALID(muster_local_timer_acquire(queue, NULL, 1), -1);
    EXPECT_INVALID(muster_local_timer_release(NULL, "s"), -1);
    EXPECT_INVALID(muster_local_timer_release(queue, NULL), -1);
    EXPECT_INVALID((void *)muster_local_timer_server_new(NULL) != NULL, 0);
    EXPECT_INVALID(muster_local_timer_server_fd(NULL), -1);
    EXPECT_INVALID(muster_local_timer_serve(NULL, 0, NULL), 0);
    EXPECT_INVALID(muster_local_timer_register(NULL, &no_scope), -1);
    EXPECT_INVALID(muster_local_timer_register(server, NULL), -1);
    EXPECT_INVALID(muster_local_timer_register(server, &no_scope), -1);
    EXPECT_INVALID(muster_local_timer_expired(NULL, &expiry), 0);
    EXPECT_INVALID(muster_local_timer_expired(server, NULL), 0);
    EXPECT_INVALID(muster_local_timer_reap(NULL, &expiry), -1);
    EXPECT_INVALID(muster_local_timer_reap(server, NULL), -1);
    EXPECT_INVALID(muster_local_timer_count(NULL), 0);
    assert_int_equal(muster_local_timer_scope_begin(NULL, "s", 1).error, EINVAL);
    muster_local_timer_clear(NULL, 1);
    muster_local_timer_scope_end(NULL);
    muster_local_timer_server_free(NULL);
    muster_local_timer_queue_free(NULL);
}

static void what_is_missing_is_an_error_and_nothing_else(void **state) {
    (void)state;
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    struct muster_local_timer_server *server = muster_local_timer_server_new(queue);
    assert_refused(queue, server);
    assert_int_equal(muster_local_timer_queue_size(queue), 0);
    assert_int_equal(muster_local_timer_count(server), 0);
    muster_local_timer_server_free(server);
    muster_local_timer_queue_free(queue);
}

static void a_child_cannot_use_its_parents_server(void **state) {
    (void)state;
    struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
    struct muster_local_timer_server *server = muster_local_timer_server_new(queue);
    pid_t child = fork();
    if (child == 0) {
        const struct muster_local_timer_request request = {getpid(), "s", 1};
        bool is_refused = muster_local_timer_server_fd(server) == -1 &&
                          muster_local_timer_register(server, &request) == -1 &&
                          muster_local_timer_serve(server, LONG_TIME, NULL) == 0 && errno == EINVAL;
        muster_local_timer_server_free(server);
        muster_local_timer_queue_free(queue);
        _exit(is_refused ? 0 : 1);
    }
    assert_int_equal(end_of(child), 0);
    pid_t hanging = start_program(queue, "0");
    while (muster_local_timer_serve(server, LONG_TIME, NULL) == 0) {
    }
    end_of(hanging);
    muster_local_timer_server_free(server);
    muster_local_timer_queue_free(queue);
}

static size_t count_descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static void many_servers_leave_no_descriptor_behind(void **state) {
    (void)state;
    size_t before = count_descriptors();
    for (int i = 0; i < CYCLES; i++) {
        struct muster_local_timer_queue *queue = muster_local_timer_queue_new();
        struct muster_local_timer_server *server = muster_local_timer_server_new(queue);
        assert_non_null(server);
        muster_local_timer_server_free(server);
        muster_local_timer_queue_free(queue);
    }
    assert_int_equal(count_descriptors(), before);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_program_that_a_child_executes_is_ended),
    cmocka_unit_test(a_loop_of_ones_own_is_told_of_requests_and_deadlines),
    cmocka_unit_test(a_scope_is_left_with_its_block),
    cmocka_unit_test(a_name_that_leads_nowhere_is_refused),
    cmocka_unit_test(a_queue_that_was_opened_is_only_for_requests),
    cmocka_unit_test(what_is_missing_is_an_error_and_nothing_else),
    cmocka_unit_test(a_child_cannot_use_its_parents_server),
    cmocka_unit_test(many_servers_leave_no_descriptor_behind),
};

int main(int argument_count, char **arguments) {
    bool is_executed = argument_count == 3 && strcmp(arguments[1], "--hold") == 0;
    return is_executed ? hold_a_timer(arguments[2]) : cmocka_run_group_tests(tests, NULL, NULL);
}
