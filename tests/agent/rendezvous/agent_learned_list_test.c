/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "agent/rendezvous/agent_record.h"
#include "base/memory.h"
#include "shared_store_fixture.h"

struct fixture {
    struct shared_store shared;
    struct agent_learned_list *lists[2];
    struct text found;
    bool is_answered;
};

static void answered(void *context, struct slice text) {
    struct fixture *fixture = context;
    fixture->is_answered = true;
    text_clear(&fixture->found);
    text_append_bytes(&fixture->found, (const char *)text.data, text.length);
    event_loop_stop(fixture->shared.loop);
}

static void add_list(struct fixture *fixture, int index) {
    struct agent_learned_list_settings list = {
        .run_id = "job",
        .answer_timeout = duration_from_seconds(20),
        .answered = answered,
        .context = fixture,
    };
    fixture->lists[index] = agent_learned_list_new(fixture->shared.backends[index], &list);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    shared_store_open(&fixture->shared, "job", "job");
    add_list(fixture, 0);
    add_list(fixture, 1);
}

static void tear_down(struct fixture *fixture) {
    shared_store_disconnect(&fixture->shared);
    for (int i = 0; i < 2; i++) {
        agent_learned_list_free(fixture->lists[i]);
    }
    text_clear(&fixture->found);
    shared_store_close(&fixture->shared);
}

/* Looks, and waits for the answer. */
static void expect(struct fixture *fixture, int index, const char *text) {
    fixture->is_answered = false;
    agent_learned_list_look(fixture->lists[index]);
    while (!fixture->is_answered) {
        event_loop_run(fixture->shared.loop);
    }
    assert_string_equal(text_string(&fixture->found), text);
}

static void publish(struct fixture *fixture, int index, const char *text) {
    agent_learned_list_publish(fixture->lists[index], slice_from_string(text));
    expect(fixture, index, text); /* asked and answered in order: the text is there */
}

static void a_job_that_has_learned_nothing_has_no_list(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    expect(&fixture, 0, "");
    tear_down(&fixture);
}

static void what_one_node_publishes_another_finds(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    publish(&fixture, 0, "json\t/usr/lib/json.py\n");
    expect(&fixture, 1, "json\t/usr/lib/json.py\n");
    publish(&fixture, 1, "json\t/usr/lib/json.py\ntorch\t\n");
    expect(&fixture, 0, "json\t/usr/lib/json.py\ntorch\t\n");
    tear_down(&fixture);
}

static char *long_text(size_t length) {
    char *text = memory_allocate(length + 1);
    memset(text, 'x', length);
    return text;
}

static void a_list_of_the_largest_size_is_passed_on_and_no_longer_one(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    char *largest = long_text(AGENT_LEARNED_LIST_MAXIMUM);
    char *longer = long_text(AGENT_LEARNED_LIST_MAXIMUM + 1);
    publish(&fixture, 0, largest);
    agent_learned_list_publish(fixture.lists[0], slice_from_string(longer));
    expect(&fixture, 0, largest);
    free(largest);
    free(longer);
    tear_down(&fixture);
}

/* Any program can write the key. */
static void a_list_that_is_too_long_is_not_believed(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    char *longer = long_text(AGENT_LEARNED_LIST_MAXIMUM + 1);
    struct store_client_call call = {
        .request = {.operation = STORE_SET,
            .key = slice_from_string("/torch.rendezvous.job/muster/standby"),
            .value = slice_from_string(longer)},
        .is_raw = true,
        .timeout = duration_from_seconds(20),
    };
    assert_true(rendezvous_backend_ask(fixture.shared.backends[0], &call));
    expect(&fixture, 0, "");
    free(longer);
    tear_down(&fixture);
}

static void without_a_connection_nothing_is_waited_for(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    rendezvous_backend_disconnect(fixture.shared.backends[0]);
    agent_learned_list_publish(fixture.lists[0], slice_from_string("json\t\n"));
    expect(&fixture, 0, "");
    expect(&fixture, 1, "");
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_job_that_has_learned_nothing_has_no_list),
    cmocka_unit_test(what_one_node_publishes_another_finds),
    cmocka_unit_test(a_list_of_the_largest_size_is_passed_on_and_no_longer_one),
    cmocka_unit_test(a_list_that_is_too_long_is_not_believed),
    cmocka_unit_test(without_a_connection_nothing_is_waited_for),
};

UNIT_TESTS(tests)
