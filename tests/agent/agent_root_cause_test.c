/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/agent_root_cause.h"
#include "base/memory.h"
#include "host/store_thread.h"
#include "host/tcp_listener.h"

/* Two nodes and the store they share, on one loop. */
struct fixture {
    struct event_loop *loop;
    struct store_thread *store;
    struct rendezvous_backend *backends[2];
    struct agent_root_cause *root_causes[2];
    struct text learnt; /* hosts */
    bool is_done;
};

static void connected(void *context, bool has_presence) {
    (void)has_presence;
    event_loop_stop(((struct fixture *)context)->loop);
}

static void learnt(void *context, const struct failure_account *account) {
    struct fixture *fixture = context;
    text_append_format(&fixture->learnt, "%s;", account->host);
}

static void looked(void *context) {
    struct fixture *fixture = context;
    fixture->is_done = true;
    event_loop_stop(fixture->loop);
}

static void add_node(struct fixture *fixture, int index) {
    struct rendezvous_backend_settings settings = {
        .host = "127.0.0.1",
        .port = store_thread_port(fixture->store),
        .run_id = "job",
        .minimum_nodes = 1,
        .maximum_nodes = 2,
        .answer_timeout = duration_from_seconds(20),
        .observer = {.connected = connected, .context = fixture},
    };
    struct agent_root_cause_settings root_cause = {
        .run_id = "job",
        .answer_timeout = duration_from_seconds(20),
        .learnt = learnt,
        .context = fixture,
    };
    fixture->backends[index] = rendezvous_backend_new(fixture->loop, &settings);
    rendezvous_backend_connect(fixture->backends[index],
        instant_after(event_loop_now(fixture->loop), duration_from_seconds(20)));
    event_loop_run(fixture->loop);
    fixture->root_causes[index] = agent_root_cause_new(fixture->backends[index], &root_cause);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    struct store_server_settings settings = {0};
    int fd;
    int port;
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(tcp_listener_open("127.0.0.1", 0, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(
        store_thread_start(fixture->loop, fd, &settings, &fixture->store, NULL), FAILURE_NONE);
    add_node(fixture, 0);
    add_node(fixture, 1);
}

static void tear_down(struct fixture *fixture) {
    for (int i = 0; i < 2; i++) {
        rendezvous_backend_free(fixture->backends[i]);
        agent_root_cause_free(fixture->root_causes[i]);
    }
    store_thread_stop(fixture->store);
    text_clear(&fixture->learnt);
    assert_true(event_loop_free(fixture->loop));
}

static void look(struct fixture *fixture, int index, int64_t round) {
    fixture->is_done = false;
    agent_root_cause_look(fixture->root_causes[index], round, looked);
    if (!fixture->is_done) {
        event_loop_run(fixture->loop);
    }
}

static void publish(struct fixture *fixture, int index, const char *host) {
    char *copy = memory_duplicate_string(host);
    struct failure_account account = {.host = copy, .exit = {.value = 1}};
    agent_root_cause_publish(fixture->root_causes[index], 7, &account);
    free(copy);
}

static void a_round_without_a_failure_has_no_root_cause(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    look(&fixture, 0, 7);
    assert_string_equal(text_string(&fixture.learnt), "");
    tear_down(&fixture);
}

static void the_first_failure_to_reach_the_store_is_everybodys_root_cause(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    publish(&fixture, 0, "first");
    look(&fixture, 0, 7); /* asked and answered in order: the account is there */
    publish(&fixture, 1, "second");
    look(&fixture, 1, 7);
    assert_string_equal(text_string(&fixture.learnt), "first;first;first;");
    look(&fixture, 1, 8);
    assert_string_equal(text_string(&fixture.learnt), "first;first;first;");
    tear_down(&fixture);
}

static void without_a_connection_nothing_is_waited_for(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    rendezvous_backend_disconnect(fixture.backends[0]);
    publish(&fixture, 0, "first");
    agent_root_cause_look(fixture.root_causes[0], 7, looked);
    assert_true(fixture.is_done);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_round_without_a_failure_has_no_root_cause),
    cmocka_unit_test(the_first_failure_to_reach_the_store_is_everybodys_root_cause),
    cmocka_unit_test(without_a_connection_nothing_is_waited_for),
};

TEST_MAIN(tests)
