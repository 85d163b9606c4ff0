/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of muster/timer_server.h. */
#include "unit.h"

#include <sys/stat.h>

#include <muster/timer_server.h>

#include "library/bad_input.h"

static char directory[32];
static char path[64];
static char odd_path[64];
static struct muster_timer_server *server;
static size_t descriptors;
static bool plays; /* when it is told that the server was started */

static void play(enum situation now);

static void take_event(void *context, const struct muster_timer_event *event) {
    (void)context;
    if (event->kind == MUSTER_TIMER_SERVER_STARTED && plays) {
        plays = false;
        play(IN_CALLBACK);
        play(BEING_FREED);
        server = NULL;
    }
}

static enum muster_error make(struct muster_timer_server **out_server) {
    struct muster_timer_server_settings settings = MUSTER_TIMER_SERVER_SETTINGS;
    settings.path = path;
    settings.event = take_event;
    return muster_timer_server_new(&settings, out_server, NULL);
}

static void begin(void) {
    strcpy(directory, "/tmp/muster-timer-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/timers", directory);
    snprintf(odd_path, sizeof odd_path, "%s/" NO_UTF8, directory);
    assert_int_equal(make(&server), MUSTER_OK);
    muster_timer_server_free(server); /* what the first one of a process opens stays open */
    descriptors = process_descriptors();
    assert_int_equal(make(&server), MUSTER_OK);
}

static void end(void) {
    muster_timer_server_free(server);
    server = NULL;
    assert_int_equal(process_descriptors(), descriptors);
    assert_int_equal(rmdir(directory), 0); /* the FIFO and the socket are gone */
}

static void renew(enum situation now) {
    if (now == TOO_EARLY) {
        muster_timer_server_free(server);
        assert_int_equal(make(&server), MUSTER_OK);
    }
}

static int forget(enum situation now) {
    if (now == TOO_EARLY || now == TOO_LATE) {
        server = NULL;
    }
    return 0;
}

static size_t count = 99;
static double progress = -1;

/* What has not gone well has given nothing. */
static int dropped(enum muster_error error) {
    bool is_untouched = count == 99 && progress < 0;
    count = 99;
    progress = -1;
    return error == MUSTER_OK || is_untouched ? (int)error : -1;
}

static void visit(void *context, const struct muster_timer_request *timer) {
    (void)context;
    (void)timer;
}

static void play(enum situation now) {
    IN_EACH(muster_timer_server_stop, dropped(muster_timer_server_stop(server, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE,
        MUSTER_ERROR_STATE, MUSTER_ERROR_STATE);
    IN_EACH(muster_timer_server_start, dropped(muster_timer_server_start(server, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_OK);
    IN_EACH(muster_timer_server_process, dropped(muster_timer_server_process(server, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_OK);
    IN_EACH(muster_timer_server_clear, dropped(muster_timer_server_clear(server, 1, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_OK);
    IN_EACH(muster_timer_server_count, dropped(muster_timer_server_count(server, &count, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_OK);
    IN_EACH(muster_timer_server_register,
        dropped(muster_timer_server_register(server, getpid(), "scope", -1, 0, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_ERROR_STATE, MUSTER_OK); /* it was started again */
    IN_EACH(muster_timer_server_each_expired,
        dropped(muster_timer_server_each_expired(server, 1, visit, NULL, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_OK);
    IN_EACH(muster_timer_server_last_progress_time,
        dropped(muster_timer_server_last_progress_time(server, &progress, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_OK);
    IN_EACH(
        muster_timer_server_fd, muster_timer_server_fd(server) < 0 ? -1 : 0, -1, -1, 0, -1, 0, 0);
    IN_EACH(muster_timer_server_free, (muster_timer_server_free(server), forget(now)), 0, 0, 0, 0,
        0, 0);
}

TEST(without_a_server) {
    play(IS_NULL);
}

TEST(in_a_child) {
    begin();
    bad_input_play_in_child(play);
    assert_int_equal(muster_timer_server_start(server, NULL), MUSTER_OK);
    assert_int_equal(muster_timer_server_start(server, NULL), MUSTER_ERROR_STATE); /* twice */
    end();
}

TEST(from_inside_a_callback_and_while_it_is_freed) {
    begin();
    plays = true;
    assert_int_equal(muster_timer_server_start(server, NULL), MUSTER_OK);
    assert_null(server);
    end();
}

TEST(before_it_is_started) {
    begin();
    play(TOO_EARLY);
    end();
}

TEST(after_it_was_stopped) {
    begin();
    assert_int_equal(muster_timer_server_start(server, NULL), MUSTER_OK);
    assert_int_equal(muster_timer_server_stop(server, NULL), MUSTER_OK);
    play(TOO_LATE);
    end();
}

static struct {
    struct muster_timer_server_settings known;
    long more; /* a field that the library does not know */
} given = {.more = 1};
static const struct muster_timer_server_settings defaults = MUSTER_TIMER_SERVER_SETTINGS;

static enum muster_error make_given(struct muster_failure *failure) {
    struct muster_timer_server *made = NULL;
    enum muster_error error = muster_timer_server_new(&given.known, &made, failure);
    assert_true((error == MUSTER_OK) == (made != NULL));
    muster_timer_server_free(made);
    return error;
}

#define WITH(member, value)                                                                        \
    (given.known = defaults, given.known.path = odd_path, given.known.member = (value),            \
        make_given(failure))

TEST(settings) {
    char *text = bad_input_text(4096);
    (void)state;
    begin();
    REFUSED(muster_timer_server_settings, size, BELOW, MUSTER_ERROR_INVALID, WITH(size, 0));
    REFUSED(muster_timer_server_settings, size, BELOW, MUSTER_ERROR_INVALID,
        WITH(size, sizeof given.known - 1));
    REFUSED(muster_timer_server_settings, size, ABOVE, MUSTER_ERROR_INVALID, WITH(size, SIZE_MAX));
    REFUSED(muster_timer_server_settings, size, NEWER, MUSTER_ERROR_UNSUPPORTED,
        WITH(size, sizeof given));
    REFUSED(muster_timer_server_settings, path, IS_NULL, MUSTER_ERROR_INVALID, WITH(path, NULL));
    REFUSED(muster_timer_server_settings, path, EMPTY, MUSTER_ERROR_INVALID, WITH(path, ""));
    REFUSED(muster_timer_server_settings, path, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(path, text));
    ALLOWED(muster_timer_server_settings, path, NOT_UTF8, "a path is any bytes",
        WITH(path, odd_path) == MUSTER_OK);
    ALLOWED(muster_timer_server_settings, may_ask, IS_NULL, "each callback may be NULL",
        WITH(may_ask, NULL) == MUSTER_OK);
    ALLOWED(muster_timer_server_settings, kill, IS_NULL, "each callback may be NULL",
        WITH(kill, NULL) == MUSTER_OK);
    ALLOWED(muster_timer_server_settings, event, IS_NULL, "each callback may be NULL",
        WITH(event, NULL) == MUSTER_OK);
    ALLOWED(muster_timer_server_settings, log, IS_NULL, "each callback may be NULL",
        WITH(log, NULL) == MUSTER_OK);
    free(text);
    end();
}

TEST(arguments) {
    char *text = bad_input_text(4096);
    struct muster_timer_server *made = NULL;
    (void)state;
    begin();
    REFUSED(muster_timer_server_new, settings, IS_NULL, MUSTER_ERROR_INVALID,
        muster_timer_server_new(NULL, &made, failure));
    REFUSED(muster_timer_server_new, out_server, IS_NULL, MUSTER_ERROR_INVALID,
        muster_timer_server_new(&given.known, NULL, failure));
    assert_null(made);
    REFUSED(muster_timer_server_clear, pid, BELOW, MUSTER_ERROR_INVALID,
        muster_timer_server_clear(server, 0, failure));
    REFUSED(muster_timer_server_clear, pid, BELOW, MUSTER_ERROR_INVALID,
        muster_timer_server_clear(server, LONG_MIN, failure));
    REFUSED(muster_timer_server_clear, pid, ABOVE, MUSTER_ERROR_INVALID,
        muster_timer_server_clear(server, LONG_MAX, failure));
    REFUSED(muster_timer_server_count, out_count, IS_NULL, MUSTER_ERROR_INVALID,
        muster_timer_server_count(server, NULL, failure));
    REFUSED(muster_timer_server_last_progress_time, out_time, IS_NULL, MUSTER_ERROR_INVALID,
        muster_timer_server_last_progress_time(server, NULL, failure));
    REFUSED(muster_timer_server_list, path, IS_NULL, MUSTER_ERROR_INVALID,
        muster_timer_server_list(NULL, visit, NULL, failure));
    REFUSED(muster_timer_server_list, path, EMPTY, MUSTER_ERROR_INVALID,
        muster_timer_server_list("", visit, NULL, failure));
    REFUSED(muster_timer_server_list, path, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_timer_server_list(text, visit, NULL, failure));
    REFUSED(muster_timer_server_list, path, NOT_UTF8, MUSTER_ERROR_SYSTEM,
        muster_timer_server_list(odd_path, visit, NULL, failure)); /* nobody serves there */
    REFUSED(muster_timer_server_list, visit, IS_NULL, MUSTER_ERROR_INVALID,
        muster_timer_server_list(path, NULL, NULL, failure));
    free(text);
    end();
}

TEST(arguments_of_a_timer) {
    char *text = bad_input_text(4097);
    (void)state;
    begin();
    assert_int_equal(muster_timer_server_start(server, NULL), MUSTER_OK);
    REFUSED(muster_timer_server_register, pid, BELOW, MUSTER_ERROR_INVALID,
        muster_timer_server_register(server, 0, "scope", 1e9, 0, failure));
    REFUSED(muster_timer_server_register, pid, ABOVE, MUSTER_ERROR_INVALID,
        muster_timer_server_register(server, LONG_MAX, "scope", 1e9, 0, failure));
    REFUSED(muster_timer_server_register, scope, IS_NULL, MUSTER_ERROR_INVALID,
        muster_timer_server_register(server, 1, NULL, 1e9, 0, failure));
    ALLOWED(muster_timer_server_register, scope, EMPTY, "a scope is any text",
        muster_timer_server_register(server, getpid(), "", -1, 0, failure) == MUSTER_OK);
    REFUSED(muster_timer_server_register, scope, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_timer_server_register(server, 1, text, 1e9, 0, failure));
    REFUSED(muster_timer_server_register, scope, NOT_UTF8, MUSTER_ERROR_INVALID,
        muster_timer_server_register(server, 1, NO_UTF8, 1e9, 0, failure));
    ALLOWED(muster_timer_server_register, expiration, BELOW, "it releases the timer",
        muster_timer_server_register(server, 1, "scope", -INFINITY, 0, failure) == MUSTER_OK);
    REFUSED(muster_timer_server_register, expiration, ABOVE, MUSTER_ERROR_LIMIT,
        muster_timer_server_register(server, 1, "scope", INFINITY, 0, failure));
    REFUSED(muster_timer_server_register, expiration, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        muster_timer_server_register(server, 1, "scope", NAN, 0, failure));
    REFUSED(muster_timer_server_register, signal, BELOW, MUSTER_ERROR_INVALID,
        muster_timer_server_register(server, 1, "scope", 1e9, -1, failure));
    REFUSED(muster_timer_server_register, signal, ABOVE, MUSTER_ERROR_INVALID,
        muster_timer_server_register(server, 1, "scope", 1e9, SIGRTMAX + 1, failure));
    ALLOWED(muster_timer_server_each_expired, deadline, BELOW, "nothing expires so early",
        muster_timer_server_each_expired(server, -INFINITY, visit, NULL, failure) == MUSTER_OK);
    ALLOWED(muster_timer_server_each_expired, deadline, ABOVE, "all expire some day",
        muster_timer_server_each_expired(server, INFINITY, visit, NULL, failure) == MUSTER_OK);
    REFUSED(muster_timer_server_each_expired, deadline, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        muster_timer_server_each_expired(server, NAN, visit, NULL, failure));
    REFUSED(muster_timer_server_each_expired, visit, IS_NULL, MUSTER_ERROR_INVALID,
        muster_timer_server_each_expired(server, 1, NULL, NULL, failure));
    ALLOWED(muster_timer_is_process_running, pid, BELOW, "what is no process does not run",
        muster_timer_is_process_running(LONG_MIN) == 0);
    ALLOWED(muster_timer_is_process_running, pid, ABOVE, "what is no process does not run",
        muster_timer_is_process_running(LONG_MAX) == 0);
    free(text);
    end();
}

/* The last one. */
TEST(each_situation_was_played) {
    bad_input_assert_all_played();
}
