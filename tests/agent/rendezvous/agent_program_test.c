/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "agent/rendezvous/agent_node_settings.h"
#include "base/memory.h"
#include "host/remembered_log.h"
#include "shared_store_fixture.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* The node of a job, and one that waits beside it. */
struct fixture {
    struct shared_store shared;
    struct launch_config configs[2];
    struct remembered_log logs[2];
    struct agent_program *programs[2];
    char *misplaced;
    int judgements;
    struct agent_said said[2];
    struct text heard; /* by both nodes, each with a blank */
};

static void heard(void *context, struct slice first) {
    struct fixture *fixture = context;
    text_append_bytes(&fixture->heard, (const char *)first.data, first.length);
    text_append(&fixture->heard, " ");
}

static void judged(void *context, const char *misplaced) {
    struct fixture *fixture = context;
    free(fixture->misplaced);
    fixture->misplaced = memory_duplicate_string(misplaced);
    fixture->judgements++;
}

static void answered(void *context, const struct store_client_result *result) {
    assert_int_equal(result->code, FAILURE_NONE);
    event_loop_stop(((struct fixture *)context)->shared.loop);
}

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

/* Requests of a node are answered in order, so everything before this one has been answered. */
static void settle(struct fixture *fixture, int index) {
    ask(fixture, index,
        (struct store_request){
            .operation = STORE_ADD, .key = slice_from_string("/a"), .number = 1});
}

static void write_record(struct fixture *fixture, const char *address) {
    struct rendezvous_node node = {.is_participant = true};
    struct rendezvous_state record = {.nodes = &node, .count = 1, .is_complete = true};
    struct bytes text = {0};
    node_identity_init(&node.identity, address, 7, 0);
    assert_int_equal(rendezvous_state_write_text(&record, &text), FAILURE_NONE);
    struct store_client_call call = {
        .request = {.operation = STORE_SET,
            .key = slice_from_string("/torch.rendezvous.job"),
            .value = bytes_slice(&text)},
        .is_raw = true,
        .timeout = duration_from_seconds(20),
    };
    assert_true(rendezvous_backend_ask(fixture->shared.backends[0], &call));
    settle(fixture, 0);
    bytes_clear(&text);
}

static void add_node(struct fixture *fixture, int index, const char *script) {
    fixture->configs[index] = (struct launch_config){
        .script = memory_duplicate_string(script), .minimum_nodes = 1, .maximum_nodes = 1};
    remembered_log_init(&fixture->logs[index]);
    struct agent_program_settings settings = {
        .config = &fixture->configs[index],
        .run_id = "job",
        .where = "host:1",
        .address = "node2",
        .log = &fixture->logs[index].log,
        .answer_timeout = duration_from_seconds(20),
        .judged = judged,
        .context = fixture,
        .said = &fixture->said[index],
    };
    fixture->said[index] = (struct agent_said){index == 0 ? "a" : "b", heard, fixture};
    fixture->programs[index] = agent_program_new(fixture->shared.backends[index], &settings);
    agent_program_take_connected(fixture->programs[index]);
    settle(fixture, index);
}

static void set_up(struct fixture *fixture, const char *address, const char *other_script) {
    *fixture = (struct fixture){0};
    shared_store_open(&fixture->shared, "job", "job");
    add_node(fixture, 0, "train.py");
    write_record(fixture, address);
    add_node(fixture, 1, other_script);
}

static void tear_down(struct fixture *fixture) {
    text_clear(&fixture->heard);
    shared_store_disconnect(&fixture->shared);
    for (int i = 0; i < 2; i++) {
        agent_program_free(fixture->programs[i]);
        text_clear(&fixture->logs[i].text);
        free(fixture->configs[i].script);
    }
    free(fixture->misplaced);
    shared_store_close(&fixture->shared);
}

static void park(struct fixture *fixture, enum rendezvous_parking parking) {
    agent_program_take_parking(fixture->programs[1], parking);
    settle(fixture, 1);
}

FIXTURE_TEST_AFTER(the_first_node_that_has_something_to_say_is_heard_by_all_and_once,
    set_up(&fixture, "node1", "train.py")) {
    agent_program_take_connected(fixture->programs[1]); /* again: the store has another host */
    settle(fixture, 1);
    assert_string_equal(text_string(&fixture->heard), "a a ");
}

TEST(what_is_too_long_for_a_program_is_not_kept) {
    struct fixture fixture;
    char longer[100];
    memset(longer, 'f', sizeof longer);
    set_up(&fixture, "node1", "train.py");
    struct store_client_call call = {
        .request = {.operation = STORE_SET,
            .key = slice_from_string("/torch.rendezvous.job/muster/program"),
            .value = {(const uint8_t *)longer, sizeof longer}},
        .is_raw = true,
        .timeout = duration_from_seconds(20),
    };
    assert_true(rendezvous_backend_ask(fixture.shared.backends[1], &call));
    park(&fixture, RENDEZVOUS_IS_SPARE);
    assert_null(fixture.misplaced);
    tear_down(&fixture);
}
