/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of the server of muster/local_timer.h. */
#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>

#include <muster/local_timer.h>

#include "library/bad_input.h"

#define LONG_SECONDS 3600

static struct muster_local_timer_queue *queue;
static struct muster_local_timer_server *server;
static size_t descriptors;
static pid_t child; /* whose timers they are */
static struct muster_local_timer_request request;
static struct muster_local_timer_expiry expiry;

/* A test that fails leaves nobody behind. */
static void wait_for_signals(void) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        pause();
    }
}

static void begin(void) {
    descriptors = process_descriptors();
    queue = muster_local_timer_queue_new();
    server = muster_local_timer_server_new(queue);
    assert_non_null(server);
    child = fork();
    if (child == 0) {
        wait_for_signals();
    }
    assert_true(child > 0);
}

static void end(void) {
    muster_local_timer_server_free(server);
    muster_local_timer_queue_free(queue);
    server = NULL;
    assert_int_equal(waitpid(child, NULL, WNOHANG), 0); /* nobody has ended it */
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(process_descriptors(), descriptors);
}

/* Each function in each situation. */

static void renew(enum situation now) {
    (void)now;
    request = (struct muster_local_timer_request){
        .pid = child, .scope = "s", .expiration = 4e9};                      /* in the year 2096 */
    expiry = (struct muster_local_timer_expiry){.pid = child, .scope = "s"}; /* of a dead one */
    errno = 0;
}

/* errno, where the last function has failed. */
static int failed(bool has_failed) {
    return has_failed ? errno : 0;
}

static void play(enum situation now) {
    IN_EACH(muster_local_timer_server_fd, failed(muster_local_timer_server_fd(server) < 0), EINVAL,
        EINVAL, 0, NEVER, NEVER, NEVER);
    IN_EACH(muster_local_timer_register, failed(muster_local_timer_register(server, &request) != 0),
        EINVAL, EINVAL, 0, NEVER, NEVER, NEVER);
    IN_EACH(muster_local_timer_count, failed(muster_local_timer_count(server) == 0), EINVAL, EINVAL,
        0, NEVER, NEVER, NEVER);
    IN_EACH(muster_local_timer_clear, (muster_local_timer_clear(server, child), errno), EINVAL,
        EINVAL, 0, NEVER, NEVER, NEVER);
    IN_EACH(muster_local_timer_expired, failed(muster_local_timer_expired(server, &expiry) == 0),
        EINVAL, EINVAL, 0, NEVER, NEVER, NEVER);
    IN_EACH(muster_local_timer_reap, failed(muster_local_timer_reap(server, &expiry) != 0), EINVAL,
        EINVAL, 0, NEVER, NEVER, NEVER);
    IN_EACH(muster_local_timer_serve, failed(muster_local_timer_serve(server, 0, NULL) == 0),
        EINVAL, EINVAL, 0, NEVER, NEVER, NEVER);
    IN_EACH(muster_local_timer_server_free,
        (now == IN_CALLBACK ? (void)0 : muster_local_timer_server_free(server), 0), 0, 0, 0, NEVER,
        NEVER, NEVER);
}

TEST(without_a_server) {
    play(IS_NULL);
}

/* What it has inherited it may free. */
TEST(in_a_child) {
    int status;
    begin();
    bad_input_play_in_child(play);
    pid_t other = fork();
    if (other == 0) {
        muster_local_timer_server_free(server);
        _exit(0);
    }
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(status, 0);
    renew(FORKED);
    assert_int_equal(muster_local_timer_register(server, &request), 0);
    assert_int_equal(muster_local_timer_count(server), 1);
    end();
}

static void play_in_callback(
    void *context, const struct muster_local_timer_request *refused, int error) {
    (void)context;
    (void)refused;
    assert_int_equal(error, EPERM);
    play(IN_CALLBACK);
}

/* Of a request of this process, which is not its own child. */
TEST(from_inside_a_callback) {
    const struct muster_local_timer_observer observer = {.refused = play_in_callback};
    begin();
    assert_int_equal(muster_local_timer_acquire(queue, "own", LONG_SECONDS), 0);
    assert_int_equal(muster_local_timer_serve(server, 0, &observer), 0);
    assert_true(bad_input_played[IN_CALLBACK]);
    end();
}

/* Arguments. */

static int put(void) {
    return muster_local_timer_register(server, &request);
}

/* A request that is right but for one member. */
#define WITH(member, value) (renew(SITUATIONS), request.member = (value), put())

TEST(members_of_a_request) {
    char *text = bad_input_text(MUSTER_LOCAL_TIMER_SCOPE_SIZE + 1);
    begin();
    REFUSED_ERRNO(muster_local_timer_request, scope, IS_NULL, EINVAL, WITH(scope, NULL) == -1);
    REFUSED_ERRNO(muster_local_timer_request, scope, TOO_LONG, EMSGSIZE, WITH(scope, text) == -1);
    REFUSED_ERRNO(muster_local_timer_request, pid, BELOW, ESRCH, WITH(pid, 0) == -1);
    REFUSED_ERRNO(muster_local_timer_request, pid, BELOW, ESRCH, WITH(pid, LONG_MIN) == -1);
    REFUSED_ERRNO(muster_local_timer_request, pid, ABOVE, ESRCH, WITH(pid, LONG_MAX) == -1);
    REFUSED_ERRNO(muster_local_timer_request, expiration, NOT_A_NUMBER, EINVAL,
        WITH(expiration, (double)NAN) == -1);
    REFUSED_ERRNO(
        muster_local_timer_request, expiration, ABOVE, EINVAL, WITH(expiration, INFINITY) == -1);
    assert_int_equal(muster_local_timer_count(server), 0);
    ALLOWED(muster_local_timer_request, scope, EMPTY, "as LocalTimerClient's may be",
        WITH(scope, "") == 0 && muster_local_timer_count(server) == 1);
    ALLOWED(muster_local_timer_request, scope, NOT_UTF8, "it is only compared",
        WITH(scope, NO_UTF8) == 0 && muster_local_timer_count(server) == 2);
    ALLOWED(muster_local_timer_request, expiration, BELOW, "negative releases the timer",
        WITH(expiration, -INFINITY) == 0 && muster_local_timer_count(server) == 2);
    REFUSED_ERRNO(muster_local_timer_register, request, IS_NULL, EINVAL,
        muster_local_timer_register(server, NULL) == -1);
    free(text);
    end();
}

/* What is no expiry of a process that runs ends nobody. */
#define EXPIRY(member, value)                                                                      \
    (renew(SITUATIONS), expiry.member = (value), muster_local_timer_reap(server, &expiry))

TEST(members_of_an_expiry) {
    begin();
    ALLOWED(muster_local_timer_expiry, pid, BELOW, "there is no such process to end",
        EXPIRY(pid, 0) == 0 && EXPIRY(pid, LONG_MIN) == 0);
    ALLOWED(muster_local_timer_expiry, pid, ABOVE, "there is no such process to end",
        EXPIRY(pid, LONG_MAX) == 0);
    ALLOWED(muster_local_timer_expiry, start_time, BELOW, "there is no such process to end",
        EXPIRY(start_time, 0) == 0);
    ALLOWED(muster_local_timer_expiry, start_time, ABOVE, "there is no such process to end",
        EXPIRY(start_time, ULLONG_MAX) == 0);
    renew(SITUATIONS);
    REFUSED_ERRNO(muster_local_timer_expiry, scope, UNENDED, EINVAL,
        (memset(expiry.scope, 'x', sizeof expiry.scope),
            muster_local_timer_reap(server, &expiry) == -1));
    REFUSED_ERRNO(muster_local_timer_reap, expiry, IS_NULL, EINVAL,
        muster_local_timer_reap(server, NULL) == -1);
    REFUSED_ERRNO(muster_local_timer_expired, out_expiry, IS_NULL, EINVAL,
        muster_local_timer_expired(server, NULL) == 0);
    end();
}

/* A timer that is due: what waits for ever does not wait then. */
static size_t serve_an_end(size_t (*serve)(struct muster_local_timer_server *, double,
                               const struct muster_local_timer_observer *),
    double maximum, const struct muster_local_timer_observer *observer) {
    pid_t late = fork();
    int status;
    if (late == 0) {
        (void)muster_local_timer_acquire(queue, "late", 0.01);
        wait_for_signals();
    }
    size_t ended = 0;
    while (ended == 0) {
        ended = serve(server, maximum, observer);
    }
    assert_int_equal(waitpid(late, &status, 0), late);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return ended;
}

TEST(arguments_of_a_round) {
    static const struct muster_local_timer_observer nobody = {0};
    begin();
    REFUSED_ERRNO(muster_local_timer_serve, maximum, NOT_A_NUMBER, EINVAL,
        muster_local_timer_serve(server, (double)NAN, NULL) == 0);
    ALLOWED(muster_local_timer_serve, maximum, BELOW, "it does not wait",
        (errno = 0, muster_local_timer_serve(server, -INFINITY, NULL) == 0) && errno == 0);
    ALLOWED(muster_local_timer_serve, maximum, ABOVE, "it waits for ever",
        serve_an_end(muster_local_timer_serve, INFINITY, NULL) == 1);
    ALLOWED(muster_local_timer_serve, observer, IS_NULL, "it need not be told",
        serve_an_end(muster_local_timer_serve, LONG_SECONDS, NULL) == 1);
    ALLOWED(muster_local_timer_observer, ended, IS_NULL, "each callback may be NULL",
        serve_an_end(muster_local_timer_serve, LONG_SECONDS, &nobody) == 1 && nobody.ended == NULL);
    assert_int_equal(muster_local_timer_acquire(queue, "own", LONG_SECONDS), 0);
    ALLOWED(muster_local_timer_observer, refused, IS_NULL, "each callback may be NULL",
        muster_local_timer_serve(server, 0, &nobody) == 0 && nobody.refused == NULL);
    renew(SITUATIONS);
    assert_int_equal(put(), 0);
    ALLOWED(muster_local_timer_clear, pid, BELOW, "there are no timers of such a process",
        (muster_local_timer_clear(server, 0), muster_local_timer_clear(server, LONG_MIN), true));
    ALLOWED(muster_local_timer_clear, pid, ABOVE, "there are no timers of such a process",
        (muster_local_timer_clear(server, LONG_MAX), true));
    assert_int_equal(muster_local_timer_count(server), 1);
    end();
}

/* The last one. */
TEST(each_situation_was_played) {
    NEVER_HAPPENS(muster_local_timer_server, BEING_FREED, "its callbacks must not free it");
    NEVER_HAPPENS(muster_local_timer_server, TOO_EARLY, "it serves when it has been made");
    NEVER_HAPPENS(muster_local_timer_server, TOO_LATE, "it serves until it is freed");
    bad_input_assert_all_played();
}
