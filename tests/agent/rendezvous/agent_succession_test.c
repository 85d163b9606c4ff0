/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/rendezvous/agent_succession.h"
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

static void begin(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    temporary_tree_init(&fixture->tree);
    site_init(&fixture->site);
    (void)node_begin(fixture, 0);
    (void)node_begin(fixture, 1);
}

static void end(struct fixture *fixture) {
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

TEST(of_two_that_claim_one_wins_and_the_other_is_told_which) {
    struct fixture fixture;
    struct rendezvous_state none = {0};
    begin(&fixture);
    perform(&fixture, 0, (struct succession_effect){.kind = SUCCESSION_EFFECT_READ});
    await(&fixture, 0, "entry_read nothing");
    perform(&fixture, 0, claim(&none));
    await(&fixture, 0, "append_won");
    perform(&fixture, 1, claim(&none));
    await(&fixture, 1, "append_lost 1 term 1 of 127.0.0.1_");
    perform(&fixture, 1, (struct succession_effect){.kind = SUCCESSION_EFFECT_READ});
    await(&fixture, 1, "entry_read 1 term 1 of 127.0.0.1_");
    end(&fixture);
}

TEST(an_entry_has_the_record_that_it_commits) {
    struct fixture fixture;
    struct rendezvous_state closed = {.round = 3, .restarts = 2, .is_closed = true};
    begin(&fixture);
    perform(&fixture, 0, claim(&closed));
    await(&fixture, 0, "append_won");
    perform(&fixture, 1, (struct succession_effect){.kind = SUCCESSION_EFFECT_READ});
    await(&fixture, 1, "entry_read 1 term 1 of ");
    const struct site_node *node = &fixture.site.nodes[1];
    const struct succession_event *read = &node->told[node->told_count - 1]->owned.event.succession;
    assert_int_equal(read->record->round, 3);
    assert_int_equal(read->record->restarts, 2);
    assert_true(read->record->is_closed);
    end(&fixture);
}

TEST(a_renewal_differs_from_the_one_before) {
    struct fixture fixture;
    begin(&fixture);
    perform(&fixture, 0, (struct succession_effect){.kind = SUCCESSION_EFFECT_LOOK, .term = 1});
    await(&fixture, 0, "renewal");
    perform(&fixture, 0, (struct succession_effect){.kind = SUCCESSION_EFFECT_RENEW, .term = 1});
    await(&fixture, 0, "renewed");
    perform(&fixture, 1, (struct succession_effect){.kind = SUCCESSION_EFFECT_LOOK, .term = 1});
    await(&fixture, 1, "renewal ");
    const struct site_node *node = &fixture.site.nodes[1];
    assert_string_not_equal(text_string(&node->told[node->told_count - 1]->line), "renewal ");
    end(&fixture);
}

TEST(hosting_is_told_and_who_was_host_before_is_gone) {
    struct fixture fixture;
    struct rendezvous_state record = {.round = 1, .is_complete = true};
    struct node_identity former;
    node_identity_init(&former, "node7", 7, node_identity_muster_local_id(7));
    rendezvous_state_obtain(&record, &former)->is_participant = true;
    begin(&fixture);
    perform(&fixture, 0,
        (struct succession_effect){
            .kind = SUCCESSION_EFFECT_HOST, .host = {2, &former, 1, &record}});
    await(&fixture, 0, "hosting");
    await(&fixture, 0, "node_gone node7_7_");
    rendezvous_state_clear(&record);
    end(&fixture);
}

TEST(a_directory_that_is_not_there_is_an_error) {
    struct fixture fixture = {0};
    struct failure failure = {0};
    static char nowhere[] = "/nowhere/at/all";
    struct agent_succession *none = NULL;
    begin(&fixture);
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
    end(&fixture);
}
