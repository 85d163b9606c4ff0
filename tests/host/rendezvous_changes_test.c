/* SPDX-License-Identifier: BSD-3-Clause */
/* What several nodes hear of each other's changes is tested in rendezvous_backend_test.c; here it
 * is one node's account of them. */
#include "unit.h"

#include "host/rendezvous_changes.h"
#include "host/store_thread.h"
#include "host/tcp_listener.h"

struct fixture {
    struct event_loop *loop;
    struct store_thread *store;
    char host[16];
    struct rendezvous_lanes lanes[2];
    struct rendezvous_changes changes[2];
    int connected_count;
    int changed_count;
    int told_count;
    int unusable_count;
};

static void connected(void *context) {
    struct fixture *fixture = context;
    if (++fixture->connected_count == 2) {
        event_loop_stop(fixture->loop);
    }
}

static void ended(void *context, const struct failure *failure) {
    (void)context;
    fail_msg("%s", failure->message);
}

static bool is_answer(void *context, const struct store_client_result *result) {
    struct fixture *fixture = context;
    fixture->unusable_count += result->code != FAILURE_NONE;
    return result->code == FAILURE_NONE;
}

static void changed(void *context) {
    struct fixture *fixture = context;
    fixture->changed_count++;
    event_loop_stop(fixture->loop);
}

static void told(void *context) {
    struct fixture *fixture = context;
    fixture->told_count++;
}

static void start_store(struct fixture *fixture, int *out_port) {
    struct store_server_settings settings = {0};
    int fd;
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, out_port, NULL), FAILURE_NONE);
    assert_int_equal(
        store_thread_start(fixture->loop, fd, &settings, &fixture->store, NULL), FAILURE_NONE);
}

static void set_up(struct fixture *fixture) {
    int port;
    *fixture = (struct fixture){.host = "127.0.0.1"};
    start_store(fixture, &port);
    for (int i = 0; i < 2; i++) {
        fixture->lanes[i] = (struct rendezvous_lanes){
            .loop = fixture->loop,
            .host = fixture->host,
            .port = port,
            .silence_timeout = duration_from_seconds(3),
            .answer_timeout = duration_from_seconds(20),
            .connected = connected,
            .ended = ended,
            .context = fixture,
        };
        fixture->changes[i] = (struct rendezvous_changes){
            .lanes = &fixture->lanes[i],
            .run_id = "job",
            .is_answer = is_answer,
            .changed = changed,
            .told = told,
            .context = fixture,
        };
        rendezvous_lanes_open(&fixture->lanes[i], duration_from_seconds(20));
    }
    event_loop_run(fixture->loop);
}

static void caught_up(void *context, const struct store_client_result *result) {
    struct fixture *fixture = context;
    assert_int_equal(result->code, FAILURE_NONE);
    event_loop_stop(fixture->loop);
}

/* From here on the second node hears of the first one's changes. */
static void watch(struct fixture *fixture) {
    struct store_request fence = {.operation = STORE_ADD, .key = slice_from_string("/fence")};
    rendezvous_changes_read(&fixture->changes[1]);
    rendezvous_lanes_ask(&fixture->lanes[1], &fence, caught_up, fixture);
    event_loop_run(fixture->loop);
}

static void tear_down(struct fixture *fixture) {
    for (int i = 0; i < 2; i++) {
        rendezvous_changes_forget(&fixture->changes[i]);
        rendezvous_lanes_drop(&fixture->lanes[i]);
    }
    store_thread_stop(fixture->store);
    assert_true(event_loop_free(fixture->loop));
}

static void a_watcher_hears_of_each_change_after_it_has_read_the_count(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    for (int i = 1; i <= 3; i++) {
        watch(&fixture);
        rendezvous_changes_tell(&fixture.changes[0]);
        event_loop_run(fixture.loop);
        assert_int_equal(fixture.changed_count, i);
    }
    assert_int_equal(fixture.told_count, 0);
    tear_down(&fixture);
}

static void a_write_is_told_before_its_watchers_can_have_heard_of_it(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    watch(&fixture);
    rendezvous_changes_tell_of_write(&fixture.changes[0]);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.told_count, 1);
    tear_down(&fixture);
}

static void nothing_is_heard_of_a_connection_that_was_dropped(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    rendezvous_changes_read(&fixture.changes[0]);
    rendezvous_changes_tell_of_write(&fixture.changes[0]);
    rendezvous_changes_forget(&fixture.changes[0]);
    rendezvous_lanes_drop(&fixture.lanes[0]);
    assert_int_equal(fixture.unusable_count, 2);
    assert_int_equal(fixture.changed_count + fixture.told_count, 0);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_watcher_hears_of_each_change_after_it_has_read_the_count),
    cmocka_unit_test(a_write_is_told_before_its_watchers_can_have_heard_of_it),
    cmocka_unit_test(nothing_is_heard_of_a_connection_that_was_dropped),
};

TEST_MAIN(tests)
