/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of the functions of muster/rendezvous.h and
 * muster/rendezvous_state.h. bad_rendezvous_settings_test has what a rendezvous is made of. */
#include "unit.h"

#include <muster/rendezvous_state.h>

#include "library/bad_input.h"
#include "library/rendezvous_fixture.h"

static struct fixture fixture;
static struct muster_rendezvous *rendezvous;

static struct muster_rendezvous *make(void) {
    struct muster_rendezvous_settings settings = settings_of(&fixture, 1, 1);
    struct muster_rendezvous *made = NULL;
    settings.endpoint = NULL;
    settings.backend = &fixture.backend;
    assert_int_equal(muster_rendezvous_new(&settings, &made, NULL), MUSTER_OK);
    return made;
}

static void begin(void) {
    set_up(&fixture);
    rendezvous = make();
}

static void end(void) {
    muster_rendezvous_free(rendezvous);
    rendezvous = NULL;
    tear_down(&fixture);
}

/* Each function has a node that has done nothing yet. */
static void renew(enum situation now) {
    if (now == TOO_EARLY) {
        muster_rendezvous_free(rendezvous);
        free(fixture.memory.state);
        fixture.memory = (struct memory){0};
        rendezvous = make();
    }
}

static int forget(enum situation now) {
    if (now != IS_NULL && now != FORKED) {
        rendezvous = NULL;
    }
    return 0;
}

static const struct muster_rendezvous_info *info;
static int is_closed = -1;
static size_t count = 99;

/* What has not gone well has given nothing. */
static int dropped(enum muster_error error) {
    bool is_untouched = info == NULL && is_closed == -1 && count == 99;
    info = NULL;
    is_closed = -1;
    count = 99;
    return error == MUSTER_OK || is_untouched ? (int)error : -1;
}

static void play(enum situation now) {
    IN_EACH(muster_rendezvous_is_closed,
        dropped(muster_rendezvous_is_closed(rendezvous, &is_closed, NULL)), MUSTER_ERROR_INVALID,
        MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK, MUSTER_OK);
    IN_EACH(muster_rendezvous_num_nodes_waiting,
        dropped(muster_rendezvous_num_nodes_waiting(rendezvous, &count, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_OK);
    IN_EACH(muster_rendezvous_process, dropped(muster_rendezvous_process(rendezvous, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_OK);
    IN_EACH(muster_rendezvous_next, dropped(muster_rendezvous_next(rendezvous, 0, &info, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_STATE);
    IN_EACH(muster_rendezvous_set_closed, dropped(muster_rendezvous_set_closed(rendezvous, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_STATE);
    IN_EACH(muster_rendezvous_shutdown, dropped(muster_rendezvous_shutdown(rendezvous, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_STATE);
    IN_EACH(muster_rendezvous_submit_next,
        dropped(muster_rendezvous_submit_next(rendezvous, take_round, &fixture.nodes[0], NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_ERROR_STATE);
    IN_EACH(
        muster_rendezvous_fd, muster_rendezvous_fd(rendezvous) < 0 ? -1 : 0, -1, -1, 0, -1, 0, 0);
    IN_EACH(muster_rendezvous_run_id, muster_rendezvous_run_id(rendezvous) == NULL ? -1 : 0, -1, -1,
        0, -1, 0, 0);
    IN_EACH(muster_rendezvous_free, (muster_rendezvous_free(rendezvous), forget(now)), 0, 0, 0, 0,
        0, 0);
}

TEST(without_a_rendezvous) {
    play(IS_NULL);
}

TEST(in_a_child) {
    begin();
    bad_input_play_in_child(play);
    assert_int_equal(muster_rendezvous_next(rendezvous, 0, &info, NULL), MUSTER_OK);
    (void)dropped(MUSTER_OK);
    end();
}

static void play_in_callback(void *context, enum muster_error error, const char *message,
    const struct muster_rendezvous_info *round) {
    struct muster_rendezvous *own = rendezvous;
    (void)context;
    (void)message;
    (void)round;
    assert_int_equal(error, MUSTER_OK);
    play(IN_CALLBACK);
    rendezvous = own; /* it was freed, and lives until this function has returned */
    play(BEING_FREED);
    rendezvous = NULL;
}

TEST(from_inside_a_callback_and_while_it_is_freed) {
    begin();
    assert_int_equal(
        muster_rendezvous_submit_next(rendezvous, play_in_callback, NULL, NULL), MUSTER_OK);
    while (rendezvous != NULL) {
        struct pollfd place = {.fd = muster_rendezvous_fd(rendezvous), .events = POLLIN};
        assert_int_equal(poll(&place, 1, LONG_MILLISECONDS), 1);
        assert_int_equal(muster_rendezvous_process(rendezvous, NULL), MUSTER_OK);
    }
    end();
}

TEST(before_a_round_is_asked_for) {
    begin();
    play(TOO_EARLY);
    end();
}

TEST(after_it_was_shut_down) {
    begin();
    assert_int_equal(muster_rendezvous_next(rendezvous, 0, &info, NULL), MUSTER_OK);
    (void)dropped(MUSTER_OK);
    assert_int_equal(muster_rendezvous_shutdown(rendezvous, NULL), MUSTER_OK);
    play(TOO_LATE);
    end();
}

TEST(round_is_not_asked_for_twice) {
    struct seen seen = {0};
    begin();
    assert_int_equal(muster_rendezvous_submit_next(rendezvous, take_round, &seen, NULL), MUSTER_OK);
    assert_int_equal(
        muster_rendezvous_submit_next(rendezvous, take_round, &seen, NULL), MUSTER_ERROR_STATE);
    assert_int_equal(muster_rendezvous_next(rendezvous, 0, &info, NULL), MUSTER_ERROR_STATE);
    assert_null(info);
    end();
}

TEST(arguments) {
    struct muster_rendezvous_settings settings;
    struct muster_rendezvous *made = NULL;
    begin();
    settings = settings_of(&fixture, 1, 1);
    REFUSED(muster_rendezvous_new, settings, IS_NULL, MUSTER_ERROR_INVALID,
        muster_rendezvous_new(NULL, &made, failure));
    REFUSED(muster_rendezvous_new, out_rendezvous, IS_NULL, MUSTER_ERROR_INVALID,
        muster_rendezvous_new(&settings, NULL, failure));
    assert_null(made);
    REFUSED(muster_rendezvous_next, out_info, IS_NULL, MUSTER_ERROR_INVALID,
        muster_rendezvous_next(rendezvous, 0, NULL, failure));
    REFUSED(muster_rendezvous_next, timeout, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        muster_rendezvous_next(rendezvous, (double)NAN, &info, failure));
    REFUSED(muster_rendezvous_submit_next, done, IS_NULL, MUSTER_ERROR_INVALID,
        muster_rendezvous_submit_next(rendezvous, NULL, NULL, failure));
    REFUSED(muster_rendezvous_is_closed, out_is_closed, IS_NULL, MUSTER_ERROR_INVALID,
        muster_rendezvous_is_closed(rendezvous, NULL, failure));
    REFUSED(muster_rendezvous_num_nodes_waiting, out_count, IS_NULL, MUSTER_ERROR_INVALID,
        muster_rendezvous_num_nodes_waiting(rendezvous, NULL, failure));
    assert_null(info);
    ALLOWED(muster_rendezvous_next, timeout, BELOW, "negative is as long as join_timeout has it",
        muster_rendezvous_next(rendezvous, -INFINITY, &info, failure) == MUSTER_OK);
    ALLOWED(muster_rendezvous_next, timeout, ABOVE, "so long is as long as join_timeout has it",
        muster_rendezvous_next(rendezvous, INFINITY, &info, failure) == MUSTER_OK);
    (void)dropped(MUSTER_OK);
    end();
}

/* Names. */

static enum muster_error create(void *context,
    const struct muster_rendezvous_parameters *parameters,
    struct muster_rendezvous_backend *out_backend, struct muster_failure *failure) {
    (void)context;
    (void)parameters;
    (void)out_backend;
    (void)failure;
    return MUSTER_ERROR_UNSUPPORTED;
}

TEST(arguments_of_a_registration) {
    char *text = bad_input_text(256);
    REFUSED(muster_rendezvous_register, name, IS_NULL, MUSTER_ERROR_INVALID,
        muster_rendezvous_register(NULL, create, NULL, failure));
    REFUSED(muster_rendezvous_register, name, EMPTY, MUSTER_ERROR_INVALID,
        muster_rendezvous_register("", create, NULL, failure));
    REFUSED(muster_rendezvous_register, name, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_rendezvous_register(text, create, NULL, failure));
    REFUSED(muster_rendezvous_register, name, NOT_UTF8, MUSTER_ERROR_INVALID,
        muster_rendezvous_register(NO_UTF8, create, NULL, failure));
    REFUSED(muster_rendezvous_register, name, TAKEN, MUSTER_ERROR_INVALID,
        muster_rendezvous_register("c10d", create, NULL, failure));
    REFUSED(muster_rendezvous_register, create, IS_NULL, MUSTER_ERROR_INVALID,
        muster_rendezvous_register("mine", NULL, NULL, failure));
    for (int i = 0; i < 2; i++) { /* the same once more is the same */
        assert_int_equal(muster_rendezvous_register("mine", create, NULL, NULL), MUSTER_OK);
    }
    REFUSED(muster_rendezvous_register, name, TAKEN, MUSTER_ERROR_INVALID,
        muster_rendezvous_register("mine", create, text, failure));
    free(text);
}

/* The record. */

TEST(arguments_of_a_record) {
    struct muster_rendezvous_state *record = NULL;
    char *text = bad_input_text(MUSTER_STORE_KEY_MAXIMUM + 1);
    begin();
    struct muster_store *store = open_store(&fixture);
    REFUSED(muster_rendezvous_state_get, run_id, IS_NULL, MUSTER_ERROR_INVALID,
        muster_rendezvous_state_get(store, NULL, &record, failure));
    REFUSED(muster_rendezvous_state_get, run_id, EMPTY, MUSTER_ERROR_INVALID,
        muster_rendezvous_state_get(store, "", &record, failure));
    REFUSED(muster_rendezvous_state_get, run_id, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_rendezvous_state_get(store, text, &record, failure));
    REFUSED(muster_rendezvous_state_get, run_id, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_rendezvous_state_get(store, text + 10, &record, failure)); /* with its prefix */
    REFUSED(muster_rendezvous_state_get, run_id, NOT_UTF8, MUSTER_ERROR_MISSING,
        muster_rendezvous_state_get(store, NO_UTF8, &record, failure));
    REFUSED(muster_rendezvous_state_get, out_state, IS_NULL, MUSTER_ERROR_INVALID,
        muster_rendezvous_state_get(store, "job", NULL, failure));
    REFUSED(muster_rendezvous_state_read, state, IS_NULL, MUSTER_ERROR_INVALID,
        muster_rendezvous_state_read(NULL, 1, &record, failure));
    REFUSED(muster_rendezvous_state_read, length, BELOW, MUSTER_ERROR_MISSING,
        muster_rendezvous_state_read("", 0, &record, failure));
    REFUSED(muster_rendezvous_state_read, length, ABOVE, MUSTER_ERROR_LIMIT,
        muster_rendezvous_state_read("x", SIZE_MAX, &record, failure));
    REFUSED(muster_rendezvous_state_read, out_state, IS_NULL, MUSTER_ERROR_INVALID,
        muster_rendezvous_state_read("x", 1, NULL, failure));
    assert_null(record);
    ALLOWED(muster_rendezvous_state_free, state, IS_NULL, "there is nothing to free",
        (muster_rendezvous_state_free(NULL), true));
    muster_store_free(store);
    free(text);
    end();
}

/* The last one. */
TEST(each_situation_was_played) {
    bad_input_assert_all_played();
}
