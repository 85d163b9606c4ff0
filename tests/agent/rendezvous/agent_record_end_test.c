/* SPDX-License-Identifier: BSD-3-Clause */
/* Of a node's record: what goes wrong, and the end. */
#include "unit.h"

#include "record_fixture.h"

/* Trouble. */

SITE_TEST(a_file_that_is_not_there_is_no_matter_of_the_endpoint) {
    char path[] = "/nowhere/to/be/found";
    struct site_node *node = site_make_changing(fixture, 1, 1);
    node->config.dynamic.store = LAUNCH_RECORD_FILE_STORE;
    node->config.dynamic.file = path;
    struct agent_record *record = open_record(node);
    connect_record(record, fixture);
    const struct node_event *event = site_await(node, "connection_lost");
    assert_null(strstr(event->rendezvous.lost.reason, "--rdzv-endpoint"));
    assert_non_null(strstr(event->rendezvous.lost.reason, path));
    agent_record_free(record);
}

FIXTURE_TEST(a_node_that_is_cut_off_is_told_from_which_store) {
    agent_record_free(fixture->records[0]);
    fixture->records[0] = NULL;
    const struct node_event *event = site_await(fixture->nodes[1], "connection_lost");
    char *expected = text_format(
        "this node is cut off from the job's store at 127.0.0.1:%d: ", fixture->site.port);
    assert_true(site_begins_with(event->rendezvous.lost.reason, expected));
    free(expected);
}

/* The end. */

static void publish(struct fixture *fixture, int index, const char *host) {
    char *copy = memory_duplicate_string(host);
    struct failure_account account = {.host = copy, .exit = {.value = 1}};
    agent_record_publish_root_cause(fixture->records[index], 7, &account);
    free(copy);
}

FIXTURE_TEST(the_host_stays_until_the_others_have_left) {
    site_hear(&fixture->site);
    agent_record_disconnect(fixture->records[0]);
    agent_record_linger(fixture->records[0], duration_from_seconds(1000));
    assert_int_equal(site_count(fixture->nodes[0], "left"), 0);
    agent_record_disconnect(fixture->records[1]);
    site_await(fixture->nodes[0], "left");
}

FIXTURE_TEST(the_host_stays_no_longer_than_its_patience) {
    site_hear(&fixture->site);
    agent_record_disconnect(fixture->records[0]);
    agent_record_linger(fixture->records[0], duration_from_milliseconds(1));
    assert_int_equal(site_count(fixture->nodes[0], "left"), 0);
    site_await(fixture->nodes[0], "left");
    assert_int_equal(site_count(fixture->nodes[1], "connection_lost"), 0);
}

FIXTURE_TEST(a_record_that_is_disconnected_tells_nothing_more) {
    site_forget_told(fixture->nodes[1]);
    perform(fixture->records[1], RENDEZVOUS_EFFECT_FETCH);
    call_roll(fixture, 1, 3);
    agent_record_disconnect(fixture->records[1]);
    fetch(fixture, 0);
    site_expect(fixture->nodes[1], "");
}

/* With everything under way that can be. */
TEST(a_record_is_freed_without_a_word) {
    struct fixture fixture;
    set_up(&fixture);
    struct node_identity identity = identity_of(fixture.nodes[1]);
    present(fixture.records[1], &identity, false);
    fetch(&fixture, 1);
    site_hear(&fixture.site);
    for (int i = 0; i < 2; i++) {
        perform(fixture.records[i], RENDEZVOUS_EFFECT_FETCH);
        publish(&fixture, i, "host");
        agent_record_look_for_root_cause(fixture.records[i], 7);
        agent_record_perform(
            fixture.records[i], &(struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_ARM_TIMER,
                                    .deadline = event_loop_now(fixture.site.loop)});
    }
    call_roll(&fixture, 0, 3);
    agent_record_linger(fixture.records[0], duration_from_milliseconds(1));
    site_forget_told(fixture.nodes[0]);
    site_forget_told(fixture.nodes[1]);
    agent_record_free(fixture.records[1]);
    agent_record_free(fixture.records[0]);
    event_loop_run_ready(fixture.site.loop);
    site_expect(fixture.nodes[1], "");
    site_expect(fixture.nodes[0], "");
    site_clear(&fixture.site);
}
