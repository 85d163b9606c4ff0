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

static char *text;
static struct muster_timer_server *made;

static int begin_rows(void **state) {
    (void)state;
    text = bad_input_text(4097);
    begin();
    assert_int_equal(muster_timer_server_start(server, NULL), MUSTER_OK);
    return 0;
}

static int end_rows(void **state) {
    (void)state;
    assert_null(made);
    end();
    free(text);
    return 0;
}

#include "bad_timer_server_rows.h"

TEST(processes_that_are_none) {
    ALLOWED(muster_timer_is_process_running, pid, BELOW, "what is no process does not run",
        muster_timer_is_process_running(LONG_MIN) == 0);
    ALLOWED(muster_timer_is_process_running, pid, ABOVE, "what is no process does not run",
        muster_timer_is_process_running(LONG_MAX) == 0);
}

/* The last one. */
TEST(each_situation_was_played) {
    bad_input_assert_all_played();
}
