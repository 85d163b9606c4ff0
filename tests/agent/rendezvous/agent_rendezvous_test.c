/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "site_fixture.h"

/* Which performer carries out what. */

static struct agent_rendezvous *open_rendezvous(struct site_node *node) {
    struct agent_rendezvous *rendezvous = NULL;
    assert_int_equal(
        agent_rendezvous_new(node->site->loop, &node->settings, &rendezvous, NULL), FAILURE_NONE);
    return rendezvous;
}

static void perform_membership(
    struct agent_rendezvous *rendezvous, const struct membership_effect *effect) {
    agent_rendezvous_perform(
        rendezvous, &(struct node_effect){.part = NODE_MEMBERSHIP, .membership = *effect});
}

static void keep_record(
    void *context, enum log_level level, const char *origin, const char *message) {
    (void)origin;
    text_append_format(context, "%d %s;", (int)level, message);
}

SITE_TEST(notes_are_written_to_the_log_at_their_level) {
    struct text records = {0};
    struct log log = {LOG_LEVEL_INFO, keep_record, &records};
    struct site_node *node = site_make_fixed(fixture, 1, 2);
    node->settings.log = &log;
    struct agent_rendezvous *rendezvous = open_rendezvous(node);
    perform_membership(rendezvous, &(struct membership_effect){.kind = MEMBERSHIP_EFFECT_NOTE,
                                       .note = {LOG_LEVEL_WARNING, "100% of it is text"}});
    perform_membership(rendezvous, &(struct membership_effect){.kind = MEMBERSHIP_EFFECT_NOTE,
                                       .note = {LOG_LEVEL_DEBUG, "too little to be heard"}});
    assert_string_equal(text_string(&records), "2 100% of it is text;");
    agent_rendezvous_free(rendezvous);
    text_clear(&records);
}

SITE_TEST(the_memberships_timer_is_told_and_can_be_set_again) {
    struct site_node *node = site_make_fixed(fixture, 1, 2);
    struct agent_rendezvous *rendezvous = open_rendezvous(node);
    struct membership_effect arm = {
        .kind = MEMBERSHIP_EFFECT_ARM_TIMER, .deadline = site_soon(fixture)};
    perform_membership(rendezvous, &arm);
    arm.deadline = event_loop_now(fixture->loop);
    perform_membership(rendezvous, &arm);
    site_await(node, "timer_fired");
    perform_membership(rendezvous, &arm);
    agent_rendezvous_free(rendezvous);
    event_loop_run_ready(fixture->loop);
    site_expect(node, "timer_fired");
}

/* Fixed nodes: what keeps the host is known by its connections alone. */

static void perform_fixed(struct agent_rendezvous *rendezvous, enum round_effect_kind kind) {
    agent_rendezvous_perform(
        rendezvous, &(struct node_effect){.part = NODE_ROUND, .round = {.kind = kind}});
}

static void linger(struct agent_rendezvous *rendezvous) {
    perform_membership(rendezvous, &(struct membership_effect){.kind = MEMBERSHIP_EFFECT_LINGER,
                                       .patience = DURATION_FOREVER});
}

SITE_TEST(the_host_of_fixed_nodes_stays_until_nobody_else_is_connected) {
    struct site_node *host = site_make_fixed(fixture, 0, 2);
    struct site_node *guest = site_make_fixed(fixture, 1, 2);
    struct agent_rendezvous *rendezvous = open_rendezvous(host);
    struct agent_rendezvous *other = open_rendezvous(guest);
    perform_fixed(rendezvous, ROUND_EFFECT_CONNECT);
    perform_fixed(other, ROUND_EFFECT_CONNECT);
    site_await(host, "connected");
    site_await(guest, "connected");
    site_hear(fixture);
    linger(rendezvous);
    assert_int_equal(site_count(host, "left"), 0);
    agent_rendezvous_free(other);
    site_await(host, "left");
    other = open_rendezvous(guest); /* who comes and goes later is no news */
    perform_fixed(other, ROUND_EFFECT_CONNECT);
    site_await(guest, "connected");
    agent_rendezvous_free(other);
    perform_fixed(rendezvous, ROUND_EFFECT_OPEN_WORKER_STORE);
    site_await(host, "store_opened");
    site_hear(fixture);
    assert_int_equal(site_count(host, "left"), 1);
    agent_rendezvous_free(rendezvous);
}

SITE_TEST(a_rendezvous_that_lingers_is_freed_without_a_word) {
    struct site_node *host = site_make_fixed(fixture, 0, 2);
    struct site_node *guest = site_make_fixed(fixture, 1, 2);
    struct agent_rendezvous *rendezvous = open_rendezvous(host);
    struct agent_rendezvous *other = open_rendezvous(guest);
    perform_fixed(rendezvous, ROUND_EFFECT_CONNECT);
    perform_fixed(other, ROUND_EFFECT_CONNECT);
    site_await(host, "connected");
    site_await(guest, "connected");
    site_hear(fixture);
    linger(rendezvous);
    site_expect(host, "hosting; connected");
    agent_rendezvous_free(rendezvous);
    site_expect(host, "");
    agent_rendezvous_free(other);
}
