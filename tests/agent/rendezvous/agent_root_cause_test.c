/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/rendezvous/agent_root_cause.h"
#include "base/memory.h"
#include "host/store/store_thread.h"
#include "host/network/tcp_listener.h"

/* Two nodes and the store they share, on one loop. */
struct fixture {
    struct event_loop *loop;
    struct store_thread *store;
    struct rendezvous_backend *backends[2];
    struct agent_root_cause *root_causes[2];
    struct text learnt; /* hosts */
    int looked_count;
    struct text records; /* of the log */
    struct log log;
};

static void connected(void *context, bool has_presence) {
    (void)has_presence;
    event_loop_stop(((struct fixture *)context)->loop);
}

static void told(void *context, const struct rendezvous_event *event) {
    if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        connected(context, event->connected.has_presence);
    }
}

static void learnt(void *context, const struct failure_account *account) {
    struct fixture *fixture = context;
    text_append_format(&fixture->learnt, "%s;", account->host);
}

static void looked(void *context) {
    struct fixture *fixture = context;
    fixture->looked_count++;
    event_loop_stop(fixture->loop);
}

static void keep_record(
    void *context, enum log_level level, const char *origin, const char *message) {
    struct fixture *fixture = context;
    (void)level;
    (void)origin;
    text_append_format(&fixture->records, "%s;", message);
}

static void add_node(struct fixture *fixture, int index) {
    struct rendezvous_backend_settings settings = {
        .run_id = "job",
        .minimum_nodes = 1,
        .maximum_nodes = 2,
        .answer_timeout = duration_from_seconds(20),
        .observer = {.told = told, .context = fixture},
    };
    struct agent_root_cause_settings root_cause = {
        .run_id = "job",
        .log = &fixture->log,
        .answer_timeout = duration_from_seconds(20),
        .learnt = learnt,
        .looked = looked,
        .context = fixture,
    };
    fixture->backends[index] = rendezvous_backend_new(fixture->loop, &settings);
    rendezvous_backend_connect(fixture->backends[index],
        &(struct rendezvous_backend_trying){.host = "127.0.0.1",
            .port = store_thread_port(fixture->store),
            .deadline = instant_after(event_loop_now(fixture->loop), duration_from_seconds(20))});
    event_loop_run(fixture->loop);
    fixture->root_causes[index] = agent_root_cause_new(fixture->backends[index], &root_cause);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.log = {LOG_LEVEL_WARNING, keep_record, fixture}};
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
    text_clear(&fixture->records);
    assert_true(event_loop_free(fixture->loop));
}

/* Looks, and waits for the answer. */
static void look(struct fixture *fixture, int index, int64_t round) {
    int before = fixture->looked_count;
    agent_root_cause_look(fixture->root_causes[index], round);
    while (fixture->looked_count == before) {
        event_loop_run(fixture->loop);
    }
    assert_int_equal(fixture->looked_count, before + 1);
}

static void publish_in(struct fixture *fixture, int index, int64_t round, const char *host) {
    char *copy = memory_duplicate_string(host);
    struct failure_account account = {.host = copy, .exit = {.value = 1}};
    agent_root_cause_publish(fixture->root_causes[index], round, &account);
    free(copy);
}

static void publish(struct fixture *fixture, int index, const char *host) {
    publish_in(fixture, index, 7, host);
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
    agent_root_cause_look(fixture.root_causes[0], 7);
    assert_int_equal(fixture.looked_count, 1); /* from inside */
    tear_down(&fixture);
}

/* Another round's answer would say that this one has none. */
static void the_answer_to_an_earlier_look_does_not_end_a_later_one(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    publish_in(&fixture, 0, 8, "first");
    agent_root_cause_look(fixture.root_causes[0], 7);
    look(&fixture, 0, 8);
    assert_string_equal(text_string(&fixture.learnt), "first;");
    tear_down(&fixture);
}

static void marker_answered(void *context, const struct store_client_result *result) {
    struct fixture *fixture = context;
    assert_int_equal(result->code, FAILURE_NONE);
    event_loop_stop(fixture->loop);
}

/* Runs until what was asked for before is answered, and what followed from it is under way. */
static void await_answer(struct fixture *fixture, int index) {
    struct slice key = slice_from_string("/marker");
    struct store_client_call marker = {
        .request = {.operation = STORE_CHECK, .keys = &key, .count = 1},
        .is_raw = true,
        .timeout = duration_from_seconds(20),
        .done = marker_answered,
        .context = fixture,
    };
    assert_true(rendezvous_backend_ask(fixture->backends[index], &marker));
    event_loop_run(fixture->loop);
}

/* It would be reported as the cause of what happened in the later round. */
static void what_an_earlier_look_finds_is_not_learnt_by_a_later_one(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    publish_in(&fixture, 1, 7, "first");
    await_answer(&fixture, 1);
    agent_root_cause_look(fixture.root_causes[0], 7);
    await_answer(&fixture, 0); /* it is there; what it says is on its way */
    assert_int_equal(fixture.looked_count, 0);
    look(&fixture, 0, 8);
    assert_string_equal(text_string(&fixture.learnt), "");
    tear_down(&fixture);
}

static void look_at(struct fixture *fixture, const char *account) {
    struct store_client_call call = {
        .request = {.operation = STORE_SET,
            .key = slice_from_string("/torch.rendezvous.job.7/muster/root_cause"),
            .value = slice_from_string(account)},
        .is_raw = true,
        .timeout = duration_from_seconds(20),
    };
    assert_true(rendezvous_backend_ask(fixture->backends[0], &call));
    look(fixture, 0, 7);
}

static void an_account_without_sense_is_left_out(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    look_at(&fixture, "{");
    assert_string_equal(text_string(&fixture.learnt), "");
    assert_non_null(strstr(text_string(&fixture.records), "makes no sense"));
    tear_down(&fixture);
}

/* A store answers so when the key is deleted between the two requests of a look. */
static void an_account_that_was_cleared_away_is_none(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    look_at(&fixture, "");
    assert_string_equal(text_string(&fixture.learnt), "");
    assert_string_equal(text_string(&fixture.records), "");
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_account_that_was_cleared_away_is_none),
    cmocka_unit_test(a_round_without_a_failure_has_no_root_cause),
    cmocka_unit_test(the_first_failure_to_reach_the_store_is_everybodys_root_cause),
    cmocka_unit_test(without_a_connection_nothing_is_waited_for),
    cmocka_unit_test(the_answer_to_an_earlier_look_does_not_end_a_later_one),
    cmocka_unit_test(what_an_earlier_look_finds_is_not_learnt_by_a_later_one),
    cmocka_unit_test(an_account_without_sense_is_left_out),
};

TEST_MAIN(tests)
