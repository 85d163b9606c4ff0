/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/rendezvous/agent_record.h"
#include "agent/rendezvous/agent_succession.h"
#include "host/raw_client.h"
#include "site_fixture.h"
#include "temporary_tree.h"

struct fixture {
    struct site site;
    struct temporary_tree tree;
    struct agent_succession *successions[2];
};

static struct site_node *node_begin(struct fixture *fixture, int index) {
    struct site_node *node = site_make_registered(&fixture->site, index, fixture->tree.root);
    assert_int_equal(agent_succession_new(
                         fixture->site.loop, &node->settings, &fixture->successions[index], NULL),
        FAILURE_NONE);
    return node;
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    temporary_tree_init(&fixture->tree);
    site_init(&fixture->site);
    (void)node_begin(fixture, 0);
    (void)node_begin(fixture, 1);
}

static void tear_down(struct fixture *fixture) {
    agent_succession_free(fixture->successions[0]);
    agent_succession_free(fixture->successions[1]);
    site_clear(&fixture->site);
    temporary_tree_clear(&fixture->tree);
}

static void perform(struct fixture *fixture, int index, struct succession_effect effect) {
    agent_succession_perform(fixture->successions[index], &effect);
}

static void await(struct fixture *fixture, int index, const char *beginning) {
    (void)site_await(&fixture->site.nodes[index], beginning);
}

static struct succession_effect claim(const struct rendezvous_state *record) {
    return (struct succession_effect){.kind = SUCCESSION_EFFECT_APPEND,
        .append = {.is_claim = true, .number = 1, .term = 1, .record = record}};
}

FIXTURE_TEST(of_two_that_claim_one_wins_and_the_other_is_told_which) {
    struct rendezvous_state none = {0};
    perform(fixture, 0, (struct succession_effect){.kind = SUCCESSION_EFFECT_READ});
    await(fixture, 0, "entry_read nothing");
    perform(fixture, 0, claim(&none));
    await(fixture, 0, "append_won");
    perform(fixture, 1, claim(&none));
    await(fixture, 1, "append_lost 1 term 1 of 127.0.0.1_");
    perform(fixture, 1, (struct succession_effect){.kind = SUCCESSION_EFFECT_READ});
    await(fixture, 1, "entry_read 1 term 1 of 127.0.0.1_");
}

FIXTURE_TEST(an_entry_has_the_record_that_it_commits) {
    struct rendezvous_state closed = {.round = 3, .restarts = 2, .is_closed = true};
    perform(fixture, 0, claim(&closed));
    await(fixture, 0, "append_won");
    perform(fixture, 1, (struct succession_effect){.kind = SUCCESSION_EFFECT_READ});
    await(fixture, 1, "entry_read 1 term 1 of ");
    const struct site_node *node = &fixture->site.nodes[1];
    const struct succession_event *read = &node->told[node->told_count - 1]->owned.event.succession;
    assert_int_equal(read->record->round, 3);
    assert_int_equal(read->record->restarts, 2);
    assert_true(read->record->is_closed);
}

FIXTURE_TEST(a_renewal_differs_from_the_one_before) {
    perform(fixture, 0, (struct succession_effect){.kind = SUCCESSION_EFFECT_LOOK, .term = 1});
    await(fixture, 0, "renewal");
    perform(fixture, 0, (struct succession_effect){.kind = SUCCESSION_EFFECT_RENEW, .term = 1});
    await(fixture, 0, "renewed");
    perform(fixture, 1, (struct succession_effect){.kind = SUCCESSION_EFFECT_LOOK, .term = 1});
    await(fixture, 1, "renewal ");
    const struct site_node *node = &fixture->site.nodes[1];
    assert_string_not_equal(text_string(&node->told[node->told_count - 1]->line), "renewal ");
}

TEST(hosting_is_told_and_who_was_host_before_is_gone) {
    struct fixture fixture;
    struct rendezvous_state record = {.round = 1, .is_complete = true};
    struct node_identity former;
    node_identity_init(&former, "node7", 7, node_identity_muster_local_id(7));
    rendezvous_state_obtain(&record, &former)->is_participant = true;
    set_up(&fixture);
    perform(&fixture, 0,
        (struct succession_effect){
            .kind = SUCCESSION_EFFECT_HOST, .host = {2, &former, 1, &record}});
    await(&fixture, 0, "hosting");
    await(&fixture, 0, "node_gone node7_7_");
    rendezvous_state_clear(&record);
    tear_down(&fixture);
}

TEST(a_directory_that_is_not_there_is_an_error) {
    struct fixture fixture = {0};
    struct failure failure = {0};
    static char nowhere[] = "/nowhere/at/all";
    struct agent_succession *none = NULL;
    set_up(&fixture);
    struct site_node *node = &fixture.site.nodes[0];
    node->config.dynamic.register_endpoint = nowhere;
    enum failure_code code =
        agent_succession_new(fixture.site.loop, &node->settings, &none, &failure);
    if (code == FAILURE_NONE) { /* then the first answer says so */
        struct succession_effect effect = {.kind = SUCCESSION_EFFECT_READ};
        agent_succession_perform(none, &effect);
        await(&fixture, 0, "register_failed ");
    }
    agent_succession_free(none);
    tear_down(&fixture);
}

/* How a host leaves. */

#define PRESENCE "/torch.rendezvous.job/muster/presence/"
#define STANDING "/torch.rendezvous.job/muster/standing/"
#define NODE7 "node7_1_1073741824"
#define NODE8 "node8_1_1073741824"

/* The record of a node that hosts the store and is about to leave it. */
struct leaving {
    struct site site;
    struct temporary_tree tree;
    struct site_node *node;
    struct agent_record *record;
    int port;
};

static void begin_leaving(struct leaving *leaving) {
    struct rendezvous_state none = {0};
    *leaving = (struct leaving){0};
    temporary_tree_init(&leaving->tree);
    site_init(&leaving->site);
    leaving->node = site_make_registered(&leaving->site, 0, leaving->tree.root);
    assert_int_equal(
        agent_record_new(leaving->site.loop, &leaving->node->settings, &leaving->record, NULL),
        FAILURE_NONE);
    agent_record_perform_succession(
        leaving->record, &(struct succession_effect){
                             .kind = SUCCESSION_EFFECT_HOST, .host = {.term = 1, .record = &none}});
    leaving->port = site_await(leaving->node, "hosting")->membership.port;
    for (int turn = 0; turn < TURNS && site_count(leaving->node, "leave_store") == 0; turn++) {
        site_forget_told(leaving->node); /* it is not served yet, and left at once */
        event_loop_run_ready(leaving->site.loop);
        (void)poll(NULL, 0, 1);
        agent_record_linger(leaving->record, duration_from_seconds(0));
    }
    (void)site_await(leaving->node, "leave_store");
}

static void end_leaving(struct leaving *leaving) {
    agent_record_free(leaving->record);
    site_clear(&leaving->site);
    temporary_tree_clear(&leaving->tree);
}

/* The connection of a node that the host knows. */
static int join(struct leaving *leaving, const char *presence_key) {
    int client = client_open(leaving->port);
    client_set(client, presence_key, "running");
    client_expect_ping(leaving->site.loop, client, 1);
    site_hear(&leaving->site);
    return client;
}

static void expect_word(struct leaving *leaving, int client, const char *key, const char *word) {
    uint64_t length = strlen(word);
    uint64_t item_count = 0;
    client_ask(client,
        &(struct store_request){.operation = STORE_QUEUE_POP, .key = slice_from_string(key)});
    client_await(leaving->site.loop, client);
    assert_int_equal(recv(client, &item_count, sizeof item_count, MSG_WAITALL), sizeof item_count);
    client_expect(leaving->site.loop, client, &length, sizeof length);
    client_expect(leaving->site.loop, client, word, length);
}

static void expect_word_count(
    struct leaving *leaving, int client, const char *key, uint64_t count) {
    client_ask(client,
        &(struct store_request){.operation = STORE_QUEUE_LENGTH, .key = slice_from_string(key)});
    client_expect(leaving->site.loop, client, &count, sizeof count);
}

static void name_node7(struct leaving *leaving) {
    struct succession_effect name = {.kind = SUCCESSION_EFFECT_NAME};
    assert_true(node_identity_parse(NODE7, &name.successor));
    agent_record_perform_succession(leaving->record, &name);
}

static void dismiss(struct leaving *leaving, bool has_successor) {
    agent_record_perform_succession(
        leaving->record, &(struct succession_effect){
                             .kind = SUCCESSION_EFFECT_DISMISS, .has_successor = has_successor});
}

TEST_OF(
    leaving, the_successor_is_named_and_its_leaving_is_told, begin_leaving(&fixture), end_leaving) {
    int client = join(fixture, PRESENCE NODE7);
    name_node7(fixture);
    expect_word(fixture, client, STANDING NODE7, "named");
    close(client);
    (void)site_await(fixture->node, "node_left " NODE7);
    assert_int_equal(site_count(fixture->node, "left"), 0);
}

TEST_OF(leaving, who_is_not_connected_is_told_to_have_left, begin_leaving(&fixture), end_leaving) {
    name_node7(fixture);
    (void)site_await(fixture->node, "node_left " NODE7);
}

TEST_OF(leaving, all_are_told_and_the_store_stays_until_they_have_left, begin_leaving(&fixture),
    end_leaving) {
    int one = join(fixture, PRESENCE NODE7);
    int other = join(fixture, PRESENCE NODE8);
    dismiss(fixture, true);
    expect_word(fixture, one, STANDING NODE7, "moved");
    expect_word(fixture, other, STANDING NODE8, "moved");
    close(one);
    close(other);
    (void)site_await(fixture->node, "left");
}

/* One who does not leave is not waited for long, and nobody is where nobody follows. */
TEST(a_host_goes_though_others_stay) {
    for (int has_successor = 0; has_successor < 2; has_successor++) {
        struct leaving leaving;
        begin_leaving(&leaving);
        int client = join(&leaving, PRESENCE NODE7);
        dismiss(&leaving, has_successor);
        (void)site_await(leaving.node, "left");
        expect_word_count(&leaving, client, STANDING NODE7, has_successor == 0 ? 0 : 1);
        close(client);
        end_leaving(&leaving);
    }
}
