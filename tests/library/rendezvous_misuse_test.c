/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program may do wrong with muster/rendezvous.h: each is an error, and nothing else happens.
 * And objects that are freed in every state. */
#include "unit.h"

#include <signal.h>

#include "library/process_look.h"
#include "library/rendezvous_fixture.h"

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

TEST(callback_may_free_and_may_not_wait) {
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

FIXTURE_TEST(freed_in_every_state_leaves_nothing_behind) {
    for (int turns = 0; turns < 60; turns++) {
        live_a_while(fixture, add(fixture, 1, 1), turns / 2);
    }
    size_t before = 0;
    for (int turns = 0; turns < 60; turns++) { /* without a server, whose side would lag behind */
        if (fixture->server != NULL) {
            muster_store_server_free(fixture->server);
            fixture->server = NULL;
            before = process_descriptors();
        }
        live_a_while(fixture, add(fixture, 1, 1), turns / 2);
        live_a_while(fixture, add_by_backend(fixture, 1, 1), turns / 2);
        assert_int_equal(process_descriptors(), before);
    }
}

FIXTURE_TEST(default_of_sigpipe_ends_nobody) {
    signal(SIGPIPE, SIG_DFL);
    struct muster_rendezvous_settings settings = settings_of(fixture, 1, 1);
    settings.close_timeout = 0.2;
    struct seen *one = add_node(fixture, &settings);
    ask(one);
    await_round(fixture, one, 1);
    muster_store_server_free(fixture->server);
    fixture->server = NULL;
    assert_int_not_equal(muster_rendezvous_set_closed(one->rendezvous, NULL), MUSTER_OK);
}
