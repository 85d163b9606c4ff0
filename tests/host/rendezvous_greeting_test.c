/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "base/text.h"
#include "core/rendezvous_key.h"
#include "host/rendezvous_greeting.h"
#include "host/store_thread.h"
#include "host/tcp_listener.h"

/* One node's lanes to a store of its own; each test greets it once or twice. */
struct fixture {
    struct event_loop *loop;
    struct store_thread *store;
    struct rendezvous_lanes lanes;
    char host[16];
    int greeted_count;
    bool has_presence;
    char *reason;
};

static void lanes_connected(void *context) {
    event_loop_stop(((struct fixture *)context)->loop);
}

static void lanes_ended(void *context, const struct failure *failure) {
    (void)context;
    fail_msg("%s", failure->message);
}

static void greeted(void *context, bool has_presence) {
    struct fixture *fixture = context;
    fixture->greeted_count++;
    fixture->has_presence = has_presence;
    event_loop_stop(fixture->loop);
}

static void refused(void *context, const char *reason) {
    struct fixture *fixture = context;
    fixture->reason = memory_duplicate_string(reason);
    event_loop_stop(fixture->loop);
}

static void failed(void *context, const struct store_client_result *result) {
    (void)context;
    fail_msg("%s", result->message);
}

static void set_up(struct fixture *fixture, const char *presence_prefix) {
    *fixture = (struct fixture){.host = "127.0.0.1"};
    struct store_server_settings settings = {.presence_prefix = presence_prefix};
    int fd;
    int port;
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(
        store_thread_start(fixture->loop, fd, &settings, &fixture->store, NULL), FAILURE_NONE);
    fixture->lanes = (struct rendezvous_lanes){
        .loop = fixture->loop,
        .host = fixture->host,
        .port = port,
        .answer_timeout = duration_from_seconds(20),
        .connected = lanes_connected,
        .ended = lanes_ended,
        .context = fixture,
    };
    rendezvous_lanes_open(&fixture->lanes, duration_from_seconds(20));
    event_loop_run(fixture->loop);
}

static void tear_down(struct fixture *fixture) {
    rendezvous_lanes_drop(&fixture->lanes);
    store_thread_stop(fixture->store);
    free(fixture->reason);
    assert_true(event_loop_free(fixture->loop));
}

static void greet(struct fixture *fixture, int minimum_nodes, int maximum_nodes) {
    struct rendezvous_greeting greeting = {
        .lanes = &fixture->lanes,
        .run_id = "job",
        .minimum_nodes = minimum_nodes,
        .maximum_nodes = maximum_nodes,
        .answer_timeout = duration_from_seconds(20),
        .greeted = greeted,
        .refused = refused,
        .failed = failed,
        .context = fixture,
    };
    rendezvous_greeting_begin(&greeting);
    event_loop_run(fixture->loop);
}

static void presence_is_asked_for(void **state) {
    (void)state;
    struct fixture fixture;
    struct text prefix = {0};
    rendezvous_key_write_presences("job", &prefix);
    set_up(&fixture, text_string(&prefix));
    greet(&fixture, 1, 2);
    assert_true(fixture.has_presence);
    tear_down(&fixture);
    text_clear(&prefix);
    set_up(&fixture, NULL);
    greet(&fixture, 1, 2);
    assert_false(fixture.has_presence);
    tear_down(&fixture);
}

static void all_nodes_of_a_job_have_the_same_sizes(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, NULL);
    greet(&fixture, 1, 2);
    greet(&fixture, 1, 2);
    assert_int_equal(fixture.greeted_count, 2);
    greet(&fixture, 2, 2);
    assert_int_equal(fixture.greeted_count, 2);
    assert_non_null(strstr(fixture.reason, "'job'"));
    assert_non_null(strstr(fixture.reason, "it has --nnodes 1:2, this node was given 2:2"));
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(presence_is_asked_for),
    cmocka_unit_test(all_nodes_of_a_job_have_the_same_sizes),
};

TEST_MAIN(tests)
