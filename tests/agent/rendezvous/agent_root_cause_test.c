/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/rendezvous/agent_record.h"
#include "base/memory.h"
#include "shared_store_fixture.h"

struct fixture {
    struct shared_store shared;
    struct agent_root_cause *root_causes[2];
    struct text learnt; /* hosts */
    int looked_count;
    struct text records; /* of the log */
    struct log log;
};

static void learnt(void *context, const struct failure_account *account) {
    struct fixture *fixture = context;
    text_append_format(&fixture->learnt, "%s;", account->host);
}

static void looked(void *context) {
    struct fixture *fixture = context;
    fixture->looked_count++;
    event_loop_stop(fixture->shared.loop);
}

static void keep_record(
    void *context, enum log_level level, const char *origin, const char *message) {
    struct fixture *fixture = context;
    (void)level;
    (void)origin;
    text_append_format(&fixture->records, "%s;", message);
}

static void add_root_cause(struct fixture *fixture, int index) {
    struct agent_root_cause_settings root_cause = {
        .run_id = "job",
        .log = &fixture->log,
        .answer_timeout = duration_from_seconds(20),
        .learnt = learnt,
        .looked = looked,
        .context = fixture,
    };
    fixture->root_causes[index] =
        agent_root_cause_new(fixture->shared.backends[index], &root_cause);
}

/* A prefix, or NULL: the store is not an agent's. */
static void set_up(struct fixture *fixture, const char *presence_prefix) {
    *fixture = (struct fixture){.log = {LOG_LEVEL_WARNING, keep_record, fixture}};
    fixture->shared.presence_prefix = presence_prefix;
    shared_store_open(&fixture->shared, "job", "job");
    add_root_cause(fixture, 0);
    add_root_cause(fixture, 1);
}

static void tear_down(struct fixture *fixture) {
    shared_store_disconnect(&fixture->shared);
    for (int i = 0; i < 2; i++) {
        agent_root_cause_free(fixture->root_causes[i]);
    }
    text_clear(&fixture->learnt);
    text_clear(&fixture->records);
    shared_store_close(&fixture->shared);
}

/* Looks, and waits for the answer. */
static void look(struct fixture *fixture, int index, int64_t round) {
    int before = fixture->looked_count;
    agent_root_cause_look(fixture->root_causes[index], round);
    while (fixture->looked_count == before) {
        event_loop_run(fixture->shared.loop);
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
    struct fixture fixture;
    set_up(&fixture, *state);
    look(&fixture, 0, 7);
    assert_string_equal(text_string(&fixture.learnt), "");
    tear_down(&fixture);
}

static void the_first_failure_to_reach_the_store_is_everybodys_root_cause(void **state) {
    struct fixture fixture;
    set_up(&fixture, *state);
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
    struct fixture fixture;
    set_up(&fixture, *state);
    rendezvous_backend_disconnect(fixture.shared.backends[0]);
    publish(&fixture, 0, "first");
    agent_root_cause_look(fixture.root_causes[0], 7);
    assert_int_equal(fixture.looked_count, 1); /* from inside */
    tear_down(&fixture);
}

/* Another round's answer would say that this one has none. */
static void the_answer_to_an_earlier_look_does_not_end_a_later_one(void **state) {
    struct fixture fixture;
    set_up(&fixture, *state);
    publish_in(&fixture, 0, 8, "first");
    agent_root_cause_look(fixture.root_causes[0], 7);
    look(&fixture, 0, 8);
    assert_string_equal(text_string(&fixture.learnt), "first;");
    tear_down(&fixture);
}

static void marker_answered(void *context, const struct store_client_result *result) {
    struct fixture *fixture = context;
    assert_int_equal(result->code, FAILURE_NONE);
    event_loop_stop(fixture->shared.loop);
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
    assert_true(rendezvous_backend_ask(fixture->shared.backends[index], &marker));
    event_loop_run(fixture->shared.loop);
}

/* It would be reported as the cause of what happened in the later round. */
static void what_an_earlier_look_finds_is_not_learnt_by_a_later_one(void **state) {
    struct fixture fixture;
    set_up(&fixture, *state);
    publish_in(&fixture, 1, 7, "first");
    await_answer(&fixture, 1);
    agent_root_cause_look(fixture.root_causes[0], 7);
    if (*state == NULL) {
        await_answer(&fixture, 0); /* it is there; what it says is on its way */
    }
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
    assert_true(rendezvous_backend_ask(fixture->shared.backends[0], &call));
    look(fixture, 0, 7);
}

static void an_account_without_sense_is_left_out(void **state) {
    struct fixture fixture;
    set_up(&fixture, *state);
    look_at(&fixture, "{");
    assert_string_equal(text_string(&fixture.learnt), "");
    assert_non_null(strstr(text_string(&fixture.records), "makes no sense"));
    tear_down(&fixture);
}

/* A store answers so when the key is deleted between the two requests of a look. */
static void an_account_that_was_cleared_away_is_none(void **state) {
    struct fixture fixture;
    set_up(&fixture, *state);
    look_at(&fixture, "");
    assert_string_equal(text_string(&fixture.learnt), "");
    assert_string_equal(text_string(&fixture.records), "");
    tear_down(&fixture);
}

static char presence_prefix[] = "/torch.rendezvous.job/muster/presence/";

/* At an agent's store, and at another one. */
#define test_at_both(function)                                                                     \
    cmocka_unit_test_prestate(function, presence_prefix), cmocka_unit_test_prestate(function, NULL)

static const struct CMUnitTest tests[] = {
    test_at_both(an_account_that_was_cleared_away_is_none),
    test_at_both(a_round_without_a_failure_has_no_root_cause),
    test_at_both(the_first_failure_to_reach_the_store_is_everybodys_root_cause),
    test_at_both(without_a_connection_nothing_is_waited_for),
    test_at_both(the_answer_to_an_earlier_look_does_not_end_a_later_one),
    test_at_both(what_an_earlier_look_finds_is_not_learnt_by_a_later_one),
    test_at_both(an_account_without_sense_is_left_out),
};

UNIT_TESTS(tests)
