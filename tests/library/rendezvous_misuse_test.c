/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program may do wrong with muster/rendezvous.h: each is an error, and nothing else happens.
 * And objects that are freed in every state. */
#include "unit.h"

#include <math.h>
#include <signal.h>

#include "library/process_look.h"
#include "library/rendezvous_fixture.h"

static void refuse(const struct muster_rendezvous_settings *settings, enum muster_error expected) {
    struct muster_rendezvous *rendezvous = NULL;
    struct muster_failure failure = {0};
    assert_int_equal(muster_rendezvous_new(settings, &rendezvous, &failure), expected);
    assert_int_equal(failure.error, expected);
    assert_string_not_equal(failure.message, "");
    assert_null(rendezvous);
}

static enum muster_error note_presence(
    void *context, const char *node, struct muster_failure *failure) {
    (void)context;
    (void)node;
    (void)failure;
    return MUSTER_OK;
}

static void settings_that_make_no_sense_are_refused(void **state) {
    (void)state;
    struct fixture fixture;
    char long_text[400];
    set_up(&fixture);
    const struct muster_rendezvous_settings good = settings_of(&fixture, 1, 2);
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    struct muster_rendezvous_backend half = fixture.backend;
    half.set_state = NULL;
#define REFUSE(error, field, value)                                                                \
    do {                                                                                           \
        struct muster_rendezvous_settings bad = good;                                              \
        bad.field = (value);                                                                       \
        refuse(&bad, error);                                                                       \
    } while (0)
    REFUSE(MUSTER_ERROR_INVALID, size, 0);
    REFUSE(MUSTER_ERROR_INVALID, run_id, NULL);
    REFUSE(MUSTER_ERROR_INVALID, run_id, "");
    REFUSE(MUSTER_ERROR_INVALID, run_id, "\xff");
    REFUSE(MUSTER_ERROR_LIMIT, run_id, long_text);
    REFUSE(MUSTER_ERROR_INVALID, endpoint, NULL);
    REFUSE(MUSTER_ERROR_INVALID, endpoint, "");
    REFUSE(MUSTER_ERROR_INVALID, endpoint, "host:port");
    REFUSE(MUSTER_ERROR_INVALID, endpoint, "host:70000");
    REFUSE(MUSTER_ERROR_INVALID, backend, &fixture.backend); /* an endpoint, too */
    REFUSE(MUSTER_ERROR_INVALID, min_nodes, -1);
    REFUSE(MUSTER_ERROR_INVALID, min_nodes, 3);
    REFUSE(MUSTER_ERROR_INVALID, min_nodes, MUSTER_RENDEZVOUS_NODES_MAXIMUM + 1);
    REFUSE(MUSTER_ERROR_INVALID, max_nodes, MUSTER_RENDEZVOUS_NODES_MAXIMUM + 1);
    REFUSE(MUSTER_ERROR_INVALID, local_addr, "");
    REFUSE(MUSTER_ERROR_LIMIT, local_addr, long_text);
    REFUSE(MUSTER_ERROR_INVALID, join_timeout, -1);
    REFUSE(MUSTER_ERROR_INVALID, last_call_timeout, (double)NAN);
    REFUSE(MUSTER_ERROR_INVALID, close_timeout, -0.5);
    REFUSE(MUSTER_ERROR_INVALID, keep_alive_interval, 1e-9);
    REFUSE(MUSTER_ERROR_INVALID, keep_alive_max_attempt, -1);
    REFUSE(MUSTER_ERROR_INVALID, linger_timeout, (double)NAN);
    REFUSE(MUSTER_ERROR_INVALID, master_port, 65536);
    REFUSE(MUSTER_ERROR_LIMIT, master_addr, long_text);
    REFUSE(MUSTER_ERROR_SYSTEM, token_file, "/no/such/file");
    struct muster_rendezvous_settings by_backend = good;
    by_backend.endpoint = NULL;
    by_backend.backend = &half;
    refuse(&by_backend, MUSTER_ERROR_INVALID);
    half = fixture.backend;
    half.size = 1;
    refuse(&by_backend, MUSTER_ERROR_INVALID);
    half = fixture.backend;
    half.present = note_presence;
    refuse(&by_backend, MUSTER_ERROR_INVALID); /* without is_gone */
    half = fixture.backend;
    half.has_watch = 1;
    half.watch_fd = -1;
    refuse(&by_backend, MUSTER_ERROR_INVALID);
    refuse(NULL, MUSTER_ERROR_INVALID);
    assert_int_equal(muster_rendezvous_new(&good, NULL, NULL), MUSTER_ERROR_INVALID);
    tear_down(&fixture);
}

static void null_is_an_error_everywhere(void **state) {
    (void)state;
    struct fixture fixture;
    const struct muster_rendezvous_info *info;
    int is_closed;
    size_t count;
    assert_int_equal(muster_rendezvous_next(NULL, 0, &info, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(
        muster_rendezvous_submit_next(NULL, take_round, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_rendezvous_is_closed(NULL, &is_closed, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_rendezvous_num_nodes_waiting(NULL, &count, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_rendezvous_set_closed(NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_rendezvous_shutdown(NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_rendezvous_process(NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_rendezvous_fd(NULL), -1);
    assert_null(muster_rendezvous_run_id(NULL));
    muster_rendezvous_free(NULL);
    set_up(&fixture);
    struct seen *one = add(&fixture, 1, 1);
    assert_int_equal(muster_rendezvous_next(one->rendezvous, 0, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(
        muster_rendezvous_next(one->rendezvous, (double)NAN, &info, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(
        muster_rendezvous_submit_next(one->rendezvous, NULL, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(
        muster_rendezvous_is_closed(one->rendezvous, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(
        muster_rendezvous_num_nodes_waiting(one->rendezvous, NULL, NULL), MUSTER_ERROR_INVALID);
    tear_down(&fixture);
}

/* What a callback may not do, and that it may free. */
static void misbehave(void *context, enum muster_error error, const char *message,
    const struct muster_rendezvous_info *info) {
    struct seen *seen = context;
    const struct muster_rendezvous_info *again;
    take_round(seen, error, message, info);
    assert_int_equal(muster_rendezvous_process(seen->rendezvous, NULL), MUSTER_ERROR_STATE);
    assert_int_equal(muster_rendezvous_next(seen->rendezvous, 0, &again, NULL), MUSTER_ERROR_STATE);
    assert_int_equal(muster_rendezvous_set_closed(seen->rendezvous, NULL), MUSTER_ERROR_STATE);
    assert_int_equal(muster_rendezvous_shutdown(seen->rendezvous, NULL), MUSTER_ERROR_STATE);
    muster_rendezvous_free(seen->rendezvous);
    assert_int_equal(muster_rendezvous_submit_next(seen->rendezvous, take_round, seen, NULL),
        MUSTER_ERROR_STATE);
    seen->rendezvous = NULL;
}

static void callback_may_free_and_may_not_wait(void **state) {
    (void)state;
    for (int by_backend = 0; by_backend < 2; by_backend++) {
        struct fixture fixture;
        set_up(&fixture);
        struct seen *one = by_backend ? add_by_backend(&fixture, 1, 1) : add(&fixture, 1, 1);
        assert_int_equal(
            muster_rendezvous_submit_next(one->rendezvous, misbehave, one, NULL), MUSTER_OK);
        await(&fixture, &one->answers, 1);
        assert_int_equal(one->error, MUSTER_OK);
        tear_down(&fixture);
    }
}

/* `turns` is how far it has come. */
static void live_a_while(struct fixture *fixture, struct seen *seen, int turns) {
    ask(seen);
    for (int i = 0; i < turns; i++) {
        (void)muster_rendezvous_process(seen->rendezvous, NULL);
    }
    drop(seen);
    fixture->count = 0;
    fixture->nodes[0] = (struct seen){0};
}

static void freed_in_every_state_leaves_nothing_behind(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    for (int turns = 0; turns < 60; turns++) {
        live_a_while(&fixture, add(&fixture, 1, 1), turns / 2);
    }
    size_t before = 0;
    for (int turns = 0; turns < 60; turns++) { /* without a server, whose side would lag behind */
        if (fixture.server != NULL) {
            muster_store_server_free(fixture.server);
            fixture.server = NULL;
            before = process_descriptors();
        }
        live_a_while(&fixture, add(&fixture, 1, 1), turns / 2);
        live_a_while(&fixture, add_by_backend(&fixture, 1, 1), turns / 2);
        assert_int_equal(process_descriptors(), before);
    }
    tear_down(&fixture);
}

static void default_of_sigpipe_ends_nobody(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    signal(SIGPIPE, SIG_DFL);
    struct muster_rendezvous_settings settings = settings_of(&fixture, 1, 1);
    settings.close_timeout = 0.2;
    struct seen *one = add_node(&fixture, &settings);
    ask(one);
    await_round(&fixture, one, 1);
    muster_store_server_free(fixture.server);
    fixture.server = NULL;
    assert_int_not_equal(muster_rendezvous_set_closed(one->rendezvous, NULL), MUSTER_OK);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(settings_that_make_no_sense_are_refused),
    cmocka_unit_test(null_is_an_error_everywhere),
    cmocka_unit_test(callback_may_free_and_may_not_wait),
    cmocka_unit_test(freed_in_every_state_leaves_nothing_behind),
    cmocka_unit_test(default_of_sigpipe_ends_nobody),
};

TEST_MAIN(tests)
