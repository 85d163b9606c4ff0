/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "agent/rendezvous/agent_record.h"
#include "base/memory.h"
#include "host/remembered_log.h"
#include "shared_store_fixture.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* Two jobs of one node each. */
struct fixture {
    struct shared_store shared;
    struct remembered_log logs[2];
    struct agent_neighbours *neighbours[2];
    struct duration rest;
    int64_t heartbeat; /* that was written last */
};

static const char *const run_ids[] = {"one", "two"};

static void add_job(struct fixture *fixture, int index) {
    remembered_log_init(&fixture->logs[index]);
    struct agent_neighbours_settings own = {
        run_ids[index], &fixture->logs[index].log, duration_from_seconds(20), fixture->rest};
    fixture->neighbours[index] =
        agent_neighbours_new(fixture->shared.loop, fixture->shared.backends[index], &own);
}

static void set_up_with_rest(struct fixture *fixture, struct duration rest) {
    *fixture = (struct fixture){.rest = rest};
    shared_store_open(&fixture->shared, run_ids[0], run_ids[1]);
    add_job(fixture, 0);
    add_job(fixture, 1);
}

static void set_up(struct fixture *fixture) {
    set_up_with_rest(fixture, (struct duration){0});
}

static void tear_down(struct fixture *fixture) {
    shared_store_disconnect(&fixture->shared);
    for (int i = 0; i < 2; i++) {
        agent_neighbours_free(fixture->neighbours[i]);
        text_clear(&fixture->logs[i].text);
    }
    shared_store_close(&fixture->shared);
}

static void answered(void *context, const struct store_client_result *result) {
    assert_int_equal(result->code, FAILURE_NONE);
    event_loop_stop(((struct fixture *)context)->shared.loop);
}

/* Requests of a node are answered in order, so everything before this one has been answered, too.
 */
static void ask(struct fixture *fixture, int index, struct store_request request) {
    struct store_client_call call = {
        .request = request,
        .is_raw = true,
        .timeout = duration_from_seconds(20),
        .done = answered,
        .context = fixture,
    };
    assert_true(rendezvous_backend_ask(fixture->shared.backends[index], &call));
    event_loop_run(fixture->shared.loop);
}

/* What is under way goes on meanwhile. */
static void ask_anything(struct fixture *fixture, int index) {
    ask(fixture, index,
        (struct store_request){
            .operation = STORE_ADD, .key = slice_from_string("/a"), .number = 1});
}

static void look(struct fixture *fixture, int index) {
    agent_neighbours_look(fixture->neighbours[index]);
    while (agent_neighbours_is_looking(fixture->neighbours[index])) {
        ask_anything(fixture, index);
    }
}

static void write_record(struct fixture *fixture, int index, bool is_complete) {
    struct rendezvous_state state = {.is_complete = is_complete};
    struct node_identity identity;
    struct bytes text;
    char *key = text_format("/torch.rendezvous.%s", run_ids[index]);
    bytes_init(&text, 65536);
    node_identity_init(&identity, index == 0 ? "node1" : "node2", 7, 0);
    struct rendezvous_node *node = rendezvous_state_obtain(&state, &identity);
    node->is_participant = node->has_heartbeat = true;
    node->heartbeat.nanoseconds = fixture->heartbeat += NANOSECONDS_PER_SECOND;
    assert_int_equal(rendezvous_state_write_text(&state, &text), FAILURE_NONE);
    struct slice value = bytes_slice(&text);
    struct slice name = slice_from_string(key);
    ask(fixture, index,
        (struct store_request){
            .operation = STORE_MULTI_SET, .keys = &name, .values = &value, .count = 1});
    bytes_clear(&text);
    rendezvous_state_clear(&state);
    free(key);
}

static const char *said(const struct fixture *fixture, int index) {
    return text_string(&fixture->logs[index].text);
}

static bool has_said(const struct fixture *fixture, int index, const char *words) {
    return strstr(said(fixture, index), words) != NULL;
}

/* Looks until it is said, while the other gives signs of life. */
static void look_beside_the_living(struct fixture *fixture, int index, const char *words) {
    while (!has_said(fixture, index, words)) {
        agent_neighbours_look(fixture->neighbours[index]);
        write_record(fixture, 1 - index, false);
    }
}

static void two_jobs_that_wait_are_told_of_each_other(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    write_record(&fixture, 0, false);
    write_record(&fixture, 1, false);
    look(&fixture, 0);
    assert_string_equal(said(&fixture, 0), ""); /* the other is not listed yet */
    look_beside_the_living(&fixture, 1, "--rdzv-id 'one': node1; this one is --rdzv-id 'two'");
    look_beside_the_living(&fixture, 0, "--rdzv-id 'two': node2; this one is --rdzv-id 'one'");
    tear_down(&fixture);
}

static void a_job_whose_agents_were_all_killed_is_no_news(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    write_record(&fixture, 0, false);
    look(&fixture, 0);
    look(&fixture, 1);
    look(&fixture, 1);
    assert_string_equal(said(&fixture, 1), "");
    tear_down(&fixture);
}

static void nothing_is_said_once_the_waiting_is_over(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_with_rest(&fixture, duration_from_seconds(3600));
    write_record(&fixture, 0, false);
    look(&fixture, 0); /* nobody else is there: no rest */
    agent_neighbours_look(fixture.neighbours[1]);
    agent_neighbours_stop(fixture.neighbours[1]); /* while the list is read */
    look(&fixture, 1);
    agent_neighbours_stop(NULL);
    tear_down(&fixture);
}

static void a_rest_is_cut_short(void **state) {
    (void)state;
    struct fixture fixture;
    set_up_with_rest(&fixture, duration_from_seconds(3600));
    write_record(&fixture, 0, false);
    look(&fixture, 0);
    agent_neighbours_look(fixture.neighbours[1]);
    for (int i = 0; i < 4; i++) { /* list, own line, record: then it rests */
        ask_anything(&fixture, 1);
    }
    assert_true(agent_neighbours_is_looking(fixture.neighbours[1]));
    write_record(&fixture, 0, false);
    agent_neighbours_stop(fixture.neighbours[1]);
    assert_false(agent_neighbours_is_looking(fixture.neighbours[1]));
    assert_string_equal(said(&fixture, 1), "");
    tear_down(&fixture);
}

static void a_job_that_has_all_its_nodes_is_no_news(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    look(&fixture, 0);
    look(&fixture, 1); /* the other has no record at all */
    write_record(&fixture, 0, true);
    look(&fixture, 1);
    assert_string_equal(said(&fixture, 1), "");
    tear_down(&fixture);
}

static void a_record_that_makes_no_sense_is_no_news(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    look(&fixture, 0);
    struct slice key = slice_from_string("/torch.rendezvous.one");
    struct slice value = slice_from_string("\xff nonsense");
    ask(&fixture, 0,
        (struct store_request){
            .operation = STORE_MULTI_SET, .keys = &key, .values = &value, .count = 1});
    look(&fixture, 1);
    assert_string_equal(said(&fixture, 1), "");
    tear_down(&fixture);
}

static void without_a_connection_nothing_is_waited_for(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    write_record(&fixture, 0, false);
    look(&fixture, 0);
    rendezvous_backend_disconnect(fixture.shared.backends[0]);
    agent_neighbours_look(fixture.neighbours[0]);
    agent_neighbours_look(NULL);
    agent_neighbours_free(NULL);
    agent_neighbours_look(fixture.neighbours[1]);
    ask_anything(&fixture, 1);
    rendezvous_backend_disconnect(fixture.shared.backends[1]); /* amid the look */
    assert_string_equal(said(&fixture, 1), "");
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(two_jobs_that_wait_are_told_of_each_other),
    cmocka_unit_test(a_job_whose_agents_were_all_killed_is_no_news),
    cmocka_unit_test(nothing_is_said_once_the_waiting_is_over),
    cmocka_unit_test(a_rest_is_cut_short),
    cmocka_unit_test(a_job_that_has_all_its_nodes_is_no_news),
    cmocka_unit_test(a_record_that_makes_no_sense_is_no_news),
    cmocka_unit_test(without_a_connection_nothing_is_waited_for),
};

UNIT_TESTS(tests)
