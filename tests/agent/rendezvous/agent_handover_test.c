/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/rendezvous/agent_store_host.h"
#include "agent/rendezvous/agent_succession.h"
#include "host/raw_client.h"
#include "site_fixture.h"
#include "temporary_tree.h"

#define PRESENCE "/torch.rendezvous.job/muster/presence/"
#define STANDING "/torch.rendezvous.job/muster/standing/"
#define NODE7 "node7_1_1073741824"
#define NODE8 "node8_1_1073741824"

struct fixture {
    struct site site;
    struct temporary_tree tree;
    struct agent_hosted_store *store;
    struct agent_register *reg;
    struct agent_handover *handover;
    int done_count;
};

static void gone(void *context, const struct node_identity *identity, bool has_finished) {
    struct fixture *fixture = context;
    (void)has_finished;
    agent_handover_note_gone(fixture->handover, identity);
}

static void record_written(void *context) {
    (void)context;
}

static void settled(void *context) {
    const struct fixture *fixture = context;
    agent_handover_go_on(fixture->handover);
}

static void done(void *context) {
    struct fixture *fixture = context;
    fixture->done_count++;
}

static void begin(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    temporary_tree_init(&fixture->tree);
    site_init(&fixture->site);
    struct site_node *node = site_make_registered(&fixture->site, 0, fixture->tree.root);
    struct agent_hosted_store_settings store = {
        .config = &node->config,
        .run_id = "job",
        .gone = gone,
        .record_written = record_written,
        .context = fixture,
    };
    struct agent_register_settings reg = {&node->settings, settled, fixture};
    assert_int_equal(
        agent_hosted_store_open(fixture->site.loop, &store, "localhost", 0, &fixture->store, NULL),
        FAILURE_NONE);
    assert_int_equal(
        agent_register_new(fixture->site.loop, &reg, &fixture->reg, NULL), FAILURE_NONE);
    fixture->handover = agent_handover_new(
        fixture->site.loop, node->settings.mailbox, fixture->store, fixture->reg);
}

static void end(struct fixture *fixture) {
    agent_handover_free(fixture->handover);
    agent_register_free(fixture->reg);
    agent_hosted_store_free(fixture->store);
    site_clear(&fixture->site);
    temporary_tree_clear(&fixture->tree);
}

/* A node is known when its presence has come over the store's thread to this one. */
static int join(struct fixture *fixture, const char *presence_key, const char *name) {
    struct node_identity identity;
    int client = client_open(agent_hosted_store_port(fixture->store));
    client_set(client, presence_key, "running");
    assert_true(node_identity_parse(name, &identity));
    for (int turn = 0; turn < TURNS && !agent_hosted_store_knows(fixture->store, &identity);
         turn++) {
        event_loop_run_ready(fixture->site.loop);
        (void)poll(NULL, 0, 1);
    }
    assert_true(agent_hosted_store_knows(fixture->store, &identity));
    return client;
}

static void expect_word(struct fixture *fixture, int client, const char *key, const char *word) {
    uint64_t length = strlen(word);
    uint64_t item_count = 0;
    client_ask(client,
        &(struct store_request){.operation = STORE_QUEUE_POP, .key = slice_from_string(key)});
    client_await(fixture->site.loop, client);
    assert_int_equal(recv(client, &item_count, sizeof item_count, MSG_WAITALL), sizeof item_count);
    client_expect(fixture->site.loop, client, &length, sizeof length);
    client_expect(fixture->site.loop, client, word, length);
}

static void await_done(struct fixture *fixture) {
    for (int turn = 0; turn < TURNS && fixture->done_count == 0; turn++) {
        event_loop_run_ready(fixture->site.loop);
        (void)poll(NULL, 0, 1);
    }
    assert_int_equal(fixture->done_count, 1);
}

static void the_successor_is_named_and_its_leaving_is_told(void **state) {
    (void)state;
    struct fixture fixture;
    struct node_identity node7;
    begin(&fixture);
    int client = join(&fixture, PRESENCE NODE7, NODE7);
    assert_true(node_identity_parse(NODE7, &node7));
    agent_handover_begin(fixture.handover, duration_from_seconds(0), done, &fixture);
    (void)site_await(&fixture.site.nodes[0], "leave_store");
    agent_handover_name(fixture.handover, &node7);
    expect_word(&fixture, client, STANDING NODE7, "named");
    close(client);
    (void)site_await(&fixture.site.nodes[0], "node_left " NODE7);
    assert_int_equal(fixture.done_count, 0);
    end(&fixture);
}

static void who_is_not_connected_is_told_to_have_left(void **state) {
    (void)state;
    struct fixture fixture;
    struct node_identity node7;
    begin(&fixture);
    assert_true(node_identity_parse(NODE7, &node7));
    agent_handover_begin(fixture.handover, duration_from_seconds(0), done, &fixture);
    agent_handover_name(fixture.handover, &node7);
    (void)site_await(&fixture.site.nodes[0], "node_left " NODE7);
    end(&fixture);
}

static void all_are_told_and_the_store_stays_until_they_have_left(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    int one = join(&fixture, PRESENCE NODE7, NODE7);
    int other = join(&fixture, PRESENCE NODE8, NODE8);
    agent_handover_begin(fixture.handover, duration_from_seconds(0), done, &fixture);
    agent_handover_dismiss(fixture.handover, true);
    expect_word(&fixture, one, STANDING NODE7, "moved");
    expect_word(&fixture, other, STANDING NODE8, "moved");
    close(one);
    close(other);
    await_done(&fixture);
    end(&fixture);
}

static void who_does_not_leave_is_not_waited_for_long(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    int client = join(&fixture, PRESENCE NODE7, NODE7);
    agent_handover_begin(fixture.handover, duration_from_seconds(0), done, &fixture);
    agent_handover_dismiss(fixture.handover, true);
    await_done(&fixture);
    close(client);
    end(&fixture);
}

static void where_nobody_follows_nobody_is_waited_for(void **state) {
    (void)state;
    struct fixture fixture;
    begin(&fixture);
    int client = join(&fixture, PRESENCE NODE7, NODE7);
    agent_handover_begin(fixture.handover, duration_from_seconds(0), done, &fixture);
    agent_handover_dismiss(fixture.handover, false);
    await_done(&fixture);
    client_expect_ping(fixture.site.loop, client, 1);
    close(client);
    end(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_successor_is_named_and_its_leaving_is_told),
    cmocka_unit_test(who_is_not_connected_is_told_to_have_left),
    cmocka_unit_test(all_are_told_and_the_store_stays_until_they_have_left),
    cmocka_unit_test(who_does_not_leave_is_not_waited_for_long),
    cmocka_unit_test(where_nobody_follows_nobody_is_waited_for),
};

UNIT_TESTS(tests)
