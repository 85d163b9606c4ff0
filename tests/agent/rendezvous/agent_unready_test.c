/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/rendezvous/agent_record.h"
#include "base/memory.h"
#include "core/round/round_key.h"
#include "shared_store_fixture.h"

#define NODES 3

struct fixture {
    struct shared_store shared;
    struct agent_unready *unready;
    struct rendezvous_node nodes[AGENT_UNREADY_NODES_MAXIMUM + 1];
    struct rendezvous_state record;
};

static void set_up(struct fixture *fixture, const char *presence_prefix) {
    *fixture = (struct fixture){.shared.presence_prefix = presence_prefix};
    shared_store_open(&fixture->shared, "job", "job");
    fixture->unready =
        agent_unready_new(fixture->shared.backends[0], "job", duration_from_seconds(20));
    fixture->record = (struct rendezvous_state){
        .nodes = fixture->nodes, .count = NODES, .round = 7, .is_complete = true};
    for (int i = 0; i < NODES; i++) { /* the last one has the first rank */
        char address[] = {'n', (char)('0' + i), '\0'};
        node_identity_init(&fixture->nodes[i].identity, address, 7, 0);
        fixture->nodes[i].is_participant = true;
        fixture->nodes[i].rank = NODES - 1 - i;
    }
}

static void tear_down(struct fixture *fixture) {
    shared_store_disconnect(&fixture->shared);
    agent_unready_free(fixture->unready);
    shared_store_close(&fixture->shared);
}

static void marker_answered(void *context, const struct store_client_result *result) {
    assert_int_equal(result->code, FAILURE_NONE);
    event_loop_stop(((struct fixture *)context)->shared.loop);
}

/* What was asked before is answered before. */
static void ask_and_wait(struct fixture *fixture, const struct store_request *request) {
    const struct store_client_call call = {
        .request = *request,
        .is_raw = true,
        .timeout = duration_from_seconds(20),
        .done = marker_answered,
        .context = fixture,
    };
    assert_true(rendezvous_backend_ask(fixture->shared.backends[0], &call));
    event_loop_run(fixture->shared.loop);
}

static void publish(struct fixture *fixture, int rank) {
    const struct round_key key = {.kind = ROUND_KEY_ROLE_INFO, .round = 7, .node = rank};
    struct text_list keys = {0};
    round_key_list(&key, "job", &keys);
    ask_and_wait(fixture, &(struct store_request){.operation = STORE_SET,
                              .key = slice_from_string(keys.items[0]),
                              .value = slice_from_string("{}")});
    text_list_clear(&keys);
}

static void expect_unready(struct fixture *fixture, int64_t round, const char *expected) {
    struct text_list names = {0};
    struct text text = {0};
    (void)agent_unready_look(fixture->unready, &fixture->record);
    ask_and_wait(fixture,
        &(struct store_request){.operation = STORE_ADD, .key = slice_from_string("/marker")});
    agent_unready_list(fixture->unready, round, &names);
    for (size_t i = 0; i < names.count; i++) {
        text_append_format(&text, "%s ", names.items[i]);
    }
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
    text_list_clear(&names);
}

static char presence_prefix[] = "/torch.rendezvous.job/muster/presence/";

static void who_has_not_published_its_role_is_not_ready(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, presence_prefix);
    expect_unready(&fixture, 7, "n2 n1 n0 ");
    publish(&fixture, 0);
    publish(&fixture, 2);
    expect_unready(&fixture, 7, "n1 ");
    expect_unready(&fixture, 8, "");
    publish(&fixture, 1);
    expect_unready(&fixture, 7, "");
    tear_down(&fixture);
}

static void nobody_asks_where_that_is_not_known_or_costs_too_much(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, presence_prefix);
    fixture.record.ranked = fixture.record.round + 1; /* the host tells the ranks */
    expect_unready(&fixture, 7, "");
    fixture.record.ranked = 0;
    fixture.record.count = AGENT_UNREADY_NODES_MAXIMUM + 1;
    for (size_t i = 0; i < fixture.record.count; i++) {
        fixture.nodes[i].is_participant = true;
    }
    expect_unready(&fixture, 7, "");
    tear_down(&fixture);
}

/* Another store would end the connection of who asks for what is not there. */
static void nobody_asks_a_store_that_is_no_agents(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, NULL);
    expect_unready(&fixture, 7, "");
    tear_down(&fixture);
}

static void without_a_connection_nothing_is_known(void **state) {
    (void)state;
    struct fixture fixture;
    struct text_list names = {0};
    set_up(&fixture, presence_prefix);
    rendezvous_backend_disconnect(fixture.shared.backends[0]);
    assert_false(agent_unready_look(fixture.unready, &fixture.record));
    agent_unready_list(fixture.unready, 7, &names);
    assert_int_equal(names.count, 0);
    tear_down(&fixture);
    agent_unready_free(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_has_not_published_its_role_is_not_ready),
    cmocka_unit_test(nobody_asks_where_that_is_not_known_or_costs_too_much),
    cmocka_unit_test(nobody_asks_a_store_that_is_no_agents),
    cmocka_unit_test(without_a_connection_nothing_is_known),
};

UNIT_TESTS(tests)
