/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of the queue of muster/local_timer.h. */
#include "unit.h"

#include <muster/local_timer.h>

#include "library/bad_input.h"

#define LONG_SECONDS 3600

static struct muster_local_timer_queue *queue;
static size_t descriptors;
static char name[MUSTER_LOCAL_TIMER_NAME_SIZE];
static int visits;

static void begin(void) {
    descriptors = process_descriptors();
    queue = muster_local_timer_queue_new();
    assert_non_null(queue);
    assert_int_equal(muster_local_timer_acquire(queue, "scope", LONG_SECONDS), 0);
}

static void end(void) {
    muster_local_timer_queue_free(queue);
    queue = NULL;
    assert_int_equal(process_descriptors(), descriptors);
}

/* Each function in each situation. */

static void renew(enum situation now) {
    (void)now;
}

static void visit(void *context, const struct muster_local_timer_request *request) {
    (void)context;
    assert_non_null(request->scope);
    visits++;
}

/* errno, where the last function has failed. */
static int failed(bool has_failed) {
    return has_failed ? errno : 0;
}

/* Frees what has come. */
static bool has_come(struct muster_local_timer_server *server) {
    int error = errno;
    muster_local_timer_server_free(server);
    errno = error;
    return server != NULL;
}

static int forget(enum situation now) {
    if (now == TOO_LATE) {
        queue = NULL;
    }
    return 0;
}

/* In the rows of a queue that is not there the errno of functions that return numbers counts. */
static void play(enum situation now) {
    errno = 0;
    IN_EACH(muster_local_timer_queue_size, failed(muster_local_timer_queue_size(queue) == 0),
        EINVAL, 0, 0, NEVER, NEVER, 0);
    IN_EACH(muster_local_timer_acquire, failed(muster_local_timer_acquire(queue, "s", 60) != 0),
        EINVAL, 0, 0, NEVER, NEVER, EPIPE);
    IN_EACH(muster_local_timer_release, failed(muster_local_timer_release(queue, "s") != 0), EINVAL,
        0, 0, NEVER, NEVER, EPIPE);
    IN_EACH(muster_local_timer_scope_begin, muster_local_timer_scope_begin(queue, "s", 60).error,
        EINVAL, 0, 0, NEVER, NEVER, EPIPE);
    IN_EACH(muster_local_timer_queue_hand_on,
        failed(muster_local_timer_queue_hand_on(queue, name, sizeof name) != 0), EINVAL, 0, 0,
        NEVER, NEVER, 0);
    IN_EACH(muster_local_timer_queue_get,
        failed(muster_local_timer_queue_get(queue, 1, 0, visit, NULL) == 0), EINVAL, 0, 0, NEVER,
        NEVER, EINVAL);
    IN_EACH(muster_local_timer_server_new, failed(!has_come(muster_local_timer_server_new(queue))),
        EINVAL, 0, 0, NEVER, NEVER, EINVAL);
    IN_EACH(muster_local_timer_queue_free,
        (now == IN_CALLBACK ? (void)0 : muster_local_timer_queue_free(queue), forget(now)), 0, 0, 0,
        NEVER, NEVER, 0);
}

TEST(without_a_queue) {
    play(IS_NULL);
}

/* Each process may use it, and frees its own copy. */
TEST(in_a_child) {
    begin();
    bad_input_play_in_child(play);
    assert_int_equal(muster_local_timer_queue_get(queue, 1, 0, visit, NULL), 1);
    end();
}

static void play_in_callback(void *context, const struct muster_local_timer_request *request) {
    (void)context;
    (void)request;
    play(IN_CALLBACK);
}

TEST(from_inside_a_callback) {
    begin();
    assert_int_equal(muster_local_timer_acquire(queue, "another", LONG_SECONDS), 0);
    assert_int_equal(muster_local_timer_queue_get(queue, 1, 0, play_in_callback, NULL), 1);
    end();
}

/* One that was opened by its name, when the queue itself is gone. */
TEST(after_its_parent_has_gone) {
    begin();
    assert_int_equal(muster_local_timer_queue_hand_on(queue, name, sizeof name), 0);
    struct muster_local_timer_queue *opened = muster_local_timer_queue_open(name);
    assert_non_null(opened);
    muster_local_timer_queue_free(queue);
    queue = opened;
    play(TOO_LATE);
    end();
}

/* Arguments. */

TEST(arguments_of_requests) {
    char *text = bad_input_text(MUSTER_LOCAL_TIMER_SCOPE_SIZE + 1);
    begin();
    REFUSED_ERRNO(muster_local_timer_acquire, scope, IS_NULL, EINVAL,
        muster_local_timer_acquire(queue, NULL, 60) == -1);
    REFUSED_ERRNO(muster_local_timer_acquire, scope, TOO_LONG, EMSGSIZE,
        muster_local_timer_acquire(queue, text, 60) == -1);
    ALLOWED(muster_local_timer_acquire, scope, EMPTY, "as LocalTimerClient's may be",
        muster_local_timer_acquire(queue, "", 60) == 0);
    ALLOWED(muster_local_timer_acquire, scope, NOT_UTF8, "it is only compared",
        muster_local_timer_acquire(queue, NO_UTF8, 60) == 0);
    REFUSED_ERRNO(muster_local_timer_release, scope, IS_NULL, EINVAL,
        muster_local_timer_release(queue, NULL) == -1);
    REFUSED_ERRNO(muster_local_timer_release, scope, TOO_LONG, EMSGSIZE,
        muster_local_timer_release(queue, text) == -1);
    ALLOWED(muster_local_timer_release, scope, EMPTY, "as LocalTimerClient's may be",
        muster_local_timer_release(queue, "") == 0);
    ALLOWED(muster_local_timer_release, scope, NOT_UTF8, "it is only compared",
        muster_local_timer_release(queue, NO_UTF8) == 0);
    ALLOWED(muster_local_timer_scope_begin, scope, IS_NULL, "the error is in the scope",
        muster_local_timer_scope_begin(queue, NULL, 60).error == EINVAL);
    ALLOWED(muster_local_timer_scope_begin, scope, TOO_LONG, "the error is in the scope",
        muster_local_timer_scope_begin(queue, text, 60).error == EMSGSIZE);
    ALLOWED(muster_local_timer_scope_begin, scope, EMPTY, "as LocalTimerClient's may be",
        muster_local_timer_scope_begin(queue, "", 60).error == 0);
    ALLOWED(muster_local_timer_scope_begin, scope, NOT_UTF8, "it is only compared",
        muster_local_timer_scope_begin(queue, NO_UTF8, 60).error == 0);
    REFUSED_ERRNO(muster_local_timer_acquire, seconds, BELOW, EINVAL,
        muster_local_timer_acquire(queue, "s", -1) == -1);
    ALLOWED(muster_local_timer_scope_begin, seconds, BELOW, "the error is in the scope",
        muster_local_timer_scope_begin(queue, "s", -1).error == EINVAL);
    REFUSED_ERRNO(muster_local_timer_acquire, seconds, BELOW, EINVAL,
        muster_local_timer_acquire(queue, "s", -INFINITY) == -1);
    ALLOWED(muster_local_timer_scope_begin, seconds, BELOW, "the error is in the scope",
        muster_local_timer_scope_begin(queue, "s", -INFINITY).error == EINVAL);
    REFUSED_ERRNO(muster_local_timer_acquire, seconds, ABOVE, EINVAL,
        muster_local_timer_acquire(queue, "s", 1e10) == -1);
    ALLOWED(muster_local_timer_scope_begin, seconds, ABOVE, "the error is in the scope",
        muster_local_timer_scope_begin(queue, "s", 1e10).error == EINVAL);
    REFUSED_ERRNO(muster_local_timer_acquire, seconds, ABOVE, EINVAL,
        muster_local_timer_acquire(queue, "s", INFINITY) == -1);
    ALLOWED(muster_local_timer_scope_begin, seconds, ABOVE, "the error is in the scope",
        muster_local_timer_scope_begin(queue, "s", INFINITY).error == EINVAL);
    REFUSED_ERRNO(muster_local_timer_acquire, seconds, NOT_A_NUMBER, EINVAL,
        muster_local_timer_acquire(queue, "s", (double)NAN) == -1);
    ALLOWED(muster_local_timer_scope_begin, seconds, NOT_A_NUMBER, "the error is in the scope",
        muster_local_timer_scope_begin(queue, "s", (double)NAN).error == EINVAL);
    ALLOWED(muster_local_timer_scope_end, scope, IS_NULL, "there is nothing to release",
        (muster_local_timer_scope_end(NULL), true));
    free(text);
    end();
}

/* A child asks while this process waits. */
static size_t wait_for_child(double seconds) {
    int status;
    while (muster_local_timer_queue_get(queue, 1, 0, visit, NULL) > 0) {
    }
    pid_t child = fork();
    if (child == 0) {
        usleep(10000);
        _exit(muster_local_timer_acquire(queue, "late", LONG_SECONDS) == 0 ? 0 : 1);
    }
    size_t count = muster_local_timer_queue_get(queue, 1, seconds, visit, NULL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    return count;
}

TEST(arguments_of_getting) {
    begin();
    visits = 0;
    REFUSED_ERRNO(muster_local_timer_queue_get, visit, IS_NULL, EINVAL,
        muster_local_timer_queue_get(queue, 1, 0, NULL, NULL) == 0);
    REFUSED_ERRNO(muster_local_timer_queue_get, timeout, NOT_A_NUMBER, EINVAL,
        muster_local_timer_queue_get(queue, 1, (double)NAN, visit, NULL) == 0);
    ALLOWED(muster_local_timer_queue_get, count, BELOW, "none are asked for",
        muster_local_timer_queue_get(queue, 0, 0, visit, NULL) == 0);
    assert_int_equal(visits, 0);
    ALLOWED(muster_local_timer_queue_get, count, ABOVE, "as many as there are",
        muster_local_timer_queue_get(queue, SIZE_MAX, 0, visit, NULL) == 1);
    ALLOWED(muster_local_timer_queue_get, timeout, BELOW, "it does not wait",
        muster_local_timer_queue_get(queue, 1, -INFINITY, visit, NULL) == 0);
    ALLOWED(muster_local_timer_queue_get, timeout, ABOVE,
        "muster_local_timer_queue_get waits for ever", wait_for_child(INFINITY) == 1);
    end();
}

TEST(arguments_of_a_name) {
    char *text = bad_input_text(70000);
    begin();
    text[0] = '1';
    strcpy(name, "untouched");
    REFUSED_ERRNO(muster_local_timer_queue_hand_on, out_name, IS_NULL, EINVAL,
        muster_local_timer_queue_hand_on(queue, NULL, sizeof name) == -1);
    REFUSED_ERRNO(muster_local_timer_queue_hand_on, size, BELOW, ERANGE,
        muster_local_timer_queue_hand_on(queue, name, 0) == -1);
    REFUSED_ERRNO(muster_local_timer_queue_hand_on, size, BELOW, ERANGE,
        muster_local_timer_queue_hand_on(queue, name, 3) == -1);
    assert_string_equal(name, "untouched");
    ALLOWED(muster_local_timer_queue_hand_on, size, ABOVE, "no more is written than there is",
        muster_local_timer_queue_hand_on(queue, name, SIZE_MAX) == 0);
    assert_int_equal(unsetenv(MUSTER_LOCAL_TIMER_VARIABLE), 0);
    REFUSED_ERRNO(muster_local_timer_queue_open, name, IS_NULL, ENOENT,
        muster_local_timer_queue_open(NULL) == NULL);
    REFUSED_ERRNO(muster_local_timer_queue_open, name, EMPTY, ENOENT,
        muster_local_timer_queue_open("") == NULL);
    REFUSED_ERRNO(muster_local_timer_queue_open, name, TOO_LONG, EINVAL,
        muster_local_timer_queue_open(text) == NULL);
    REFUSED_ERRNO(muster_local_timer_queue_open, name, NOT_UTF8, EINVAL,
        muster_local_timer_queue_open(NO_UTF8) == NULL);
    free(text);
    end();
}

static int put_nothing(void *context, const struct muster_local_timer_request *request) {
    (void)context;
    (void)request;
    return 0;
}

static size_t get_nothing(void *context, size_t count, double timeout,
    void (*visit_one)(void *context, const struct muster_local_timer_request *request),
    void *visitor) {
    (void)context;
    (void)count;
    (void)timeout;
    (void)visit_one;
    (void)visitor;
    return 0;
}

/* Whether there is a queue over these functions; and what is asked of it, by errno. */
static bool is_over(
    const struct muster_local_timer_queue_functions *functions, int when_put, int when_served) {
    struct muster_local_timer_queue *over = muster_local_timer_queue_over(functions);
    if (over == NULL) {
        return false;
    }
    int put_error = failed(muster_local_timer_acquire(over, "s", 1) != 0);
    int served = failed(!has_come(muster_local_timer_server_new(over)));
    int handed_on = failed(muster_local_timer_queue_hand_on(over, name, sizeof name) != 0);
    size_t size = muster_local_timer_queue_size(over);
    muster_local_timer_queue_free(over);
    return put_error == when_put && served == when_served && handed_on == EINVAL && size == 0;
}

TEST(arguments_of_a_queue_of_ones_own) {
    struct muster_local_timer_queue_functions none = {.fd = -1};
    struct muster_local_timer_queue_functions no_put = {.get = get_nothing, .fd = -1};
    struct muster_local_timer_queue_functions no_get = {.put = put_nothing, .fd = INT_MAX};
    struct muster_local_timer_queue_functions no_file = {.get = get_nothing, .fd = INT_MAX};
    (void)state;
    begin();
    REFUSED_ERRNO(muster_local_timer_queue_over, functions, IS_NULL, EINVAL,
        muster_local_timer_queue_over(NULL) == NULL);
    REFUSED_ERRNO(muster_local_timer_queue_over, functions, IS_NULL, EINVAL,
        muster_local_timer_queue_over(&none) == NULL);
    ALLOWED(muster_local_timer_queue_functions, put, IS_NULL, "it is served alone",
        is_over(&no_put, EINVAL, 0) && no_put.put == NULL);
    ALLOWED(muster_local_timer_queue_functions, get, IS_NULL, "it is put into alone",
        is_over(&no_get, 0, EINVAL) && no_get.get == NULL);
    ALLOWED(muster_local_timer_queue_functions, size, IS_NULL, "one request is asked for",
        is_over(&no_put, EINVAL, 0) && no_put.size == NULL);
    ALLOWED(muster_local_timer_queue_functions, fd, BELOW, "there is none to be polled",
        is_over(&no_put, EINVAL, 0) && no_put.fd < 0);
    ALLOWED(muster_local_timer_queue_functions, fd, ABOVE, "the server says that it is no file",
        is_over(&no_file, EINVAL, EBADF) && no_file.fd > 0);
    end();
}

/* The last one. */
TEST(each_situation_was_played) {
    NEVER_HAPPENS(muster_local_timer_queue, BEING_FREED, "its callback must not free it");
    NEVER_HAPPENS(muster_local_timer_queue, TOO_EARLY, "it is of use when it has been made");
    bad_input_assert_all_played();
}
