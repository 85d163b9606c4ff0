/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <arpa/inet.h>
#include <sys/resource.h>

#include "agent/rendezvous/agent_record.h"
#include "agent/rendezvous/agent_round.h"
#include "host/network/network_address.h"
#include "site_fixture.h"

/* What a round's nodes tell each other is core/round_exchange's test; here, that it gets through.
 */

/* Two nodes without machines, and round 3; node 0 hosts the store. */
struct fixture {
    struct site site;
    struct site_node *nodes[2];
    struct agent_record *records[2];
    struct agent_round *rounds[2];
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    site_init(&fixture->site);
    for (int i = 0; i < 2; i++) {
        struct site_node *node = fixture->nodes[i] = site_make_changing(&fixture->site, i, 1);
        assert_int_equal(
            agent_record_new(fixture->site.loop, &node->settings, &fixture->records[i], NULL),
            FAILURE_NONE);
        fixture->rounds[i] = agent_round_new(
            fixture->site.loop, &node->settings, agent_record_backend(fixture->records[i]), NULL);
        agent_record_perform(
            fixture->records[i], &(struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CONNECT,
                                     .deadline = site_soon(&fixture->site)});
        site_await(node, "connected");
    }
    site_hear(&fixture->site); /* what the host of the store hears of others is none of a round's */
    site_forget_told(fixture->nodes[0]);
    site_forget_told(fixture->nodes[1]);
}

static void free_node(struct fixture *fixture, int index) {
    agent_record_free(fixture->records[index]);
    agent_round_free(fixture->rounds[index]);
    fixture->records[index] = NULL;
    fixture->rounds[index] = NULL;
}

static void tear_down(struct fixture *fixture) {
    free_node(fixture, 1);
    free_node(fixture, 0);
    site_clear(&fixture->site);
}

static struct round_effect about(
    enum round_effect_kind kind, enum round_key_kind key, int key_node) {
    return (struct round_effect){
        .kind = kind, .round = 3, .key = {.kind = key, .round = 3, .node = key_node}};
}

static void perform(struct fixture *fixture, int index, struct round_effect effect) {
    agent_round_perform(fixture->rounds[index], &effect);
}

static void set(struct fixture *fixture, int index, enum round_key_kind key, const char *text) {
    struct round_effect effect = about(ROUND_EFFECT_SET, key, 0);
    effect.text = text;
    perform(fixture, index, effect);
}

/* Everything asked for before is answered. */
static void await_answer(struct fixture *fixture, int index) {
    perform(fixture, index, about(ROUND_EFFECT_CHECK, ROUND_KEY_LAST_MEMBER, 0));
    site_await(fixture->nodes[index], "checked 3/last_member");
}

static bool admits_documentation_address(struct store_admission *admission) {
    union tcp_address peer = {.ipv4 = {.sin_family = AF_INET}};
    peer.ipv4.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
    return store_admission_admits(admission, &peer);
}

FIXTURE_TEST(nodes_tell_their_addresses_where_the_store_is_the_rounds) {
    char role[] = "default";
    struct text own = {0};
    struct store_admission *admission = store_admission_new(false);
    fixture->nodes[1]->settings.admission = admission;
    for (int i = 0; i < 2; i++) {
        struct round_effect effect = about(ROUND_EFFECT_SET_ROLE_INFO, ROUND_KEY_ROLE_INFO, i);
        effect.node = (struct node_role){role, 1};
        perform(fixture, i, effect);
        await_answer(fixture, i);
    }
    perform(fixture, 0, about(ROUND_EFFECT_GET, ROUND_KEY_ALL_ROLE_INFOS, 2));
    const struct node_event *event = site_await(fixture->nodes[0], "role_infos");
    local_address_write_interfaces(4096, &own);
    assert_null(event->round.role_infos.infos[0].addresses);
    assert_string_equal(event->round.role_infos.infos[1].addresses, text_string(&own));
    text_clear(&own);
    fixture->nodes[1]->settings.admission = NULL;
    store_admission_free(admission);
}

FIXTURE_TEST(who_is_admitted_follows_the_round) {
    struct store_admission *admission = store_admission_new(false);
    fixture->nodes[0]->settings.admission = admission;
    struct round_effect effect = {.kind = ROUND_EFFECT_ADMIT, .round = 3};
    effect.admitted.addresses = "192.0.2.1";
    perform(fixture, 0, effect);
    assert_true(admits_documentation_address(admission));
    effect.admitted.addresses = "192.0.2.2";
    perform(fixture, 0, effect);
    assert_false(admits_documentation_address(admission));
    effect.admitted.addresses = NULL;
    effect.admitted.silent = "node 1 (b_2_0)";
    perform(fixture, 0, effect);
    assert_true(admits_documentation_address(admission));
    fixture->nodes[0]->settings.admission = NULL;
    store_admission_free(admission);
}

FIXTURE_TEST(an_address_is_told_as_a_copy) {
    struct round_effect publish = about(ROUND_EFFECT_PUBLISH, ROUND_KEY_PUBLICATION, 0);
    publish.publication.address = "127.0.0.1";
    publish.publication.port = "29600";
    publish.publication.publisher = "a_1_1";
    perform(fixture, 0, publish);
    await_answer(fixture, 0);
    perform(fixture, 1, about(ROUND_EFFECT_GET, ROUND_KEY_PUBLICATION, 0));
    const struct node_event *event = site_await(fixture->nodes[1], "values");
    assert_string_equal(event->round.values.address, "127.0.0.1");
    assert_int_equal(event->round.values.port, 29600);
    assert_string_equal(event->round.values.publisher, "a_1_1");
}

FIXTURE_TEST(a_wait_that_is_called_off_is_not_told) {
    perform(fixture, 1, about(ROUND_EFFECT_WAIT, ROUND_KEY_LAST_MEMBER, 0));
    perform(fixture, 1, (struct round_effect){.kind = ROUND_EFFECT_CANCEL_WAIT, .round = 3});
    perform(fixture, 1, about(ROUND_EFFECT_WAIT, ROUND_KEY_PUBLISHER, 0));
    set(fixture, 0, ROUND_KEY_LAST_MEMBER, "1");
    set(fixture, 0, ROUND_KEY_PUBLISHER, "a_1_1");
    site_await(fixture->nodes[1], "waited");
    site_expect(fixture->nodes[1], "waited 3/publisher");
}

static bool is_published(struct fixture *fixture) {
    site_forget_told(fixture->nodes[0]);
    perform(fixture, 0, about(ROUND_EFFECT_CHECK, ROUND_KEY_PUBLISHER, 0));
    return site_await(fixture->nodes[0], "checked 3/publisher")->round.is_present;
}

/* One after the other: nothing else waits for all of them. */
FIXTURE_TEST(the_keys_of_rounds_long_past_are_deleted) {
    set(fixture, 0, ROUND_KEY_PUBLISHER, "a_1_1");
    assert_true(is_published(fixture));
    struct round_effect clear = {.kind = ROUND_EFFECT_CLEAR, .round = 5};
    clear.clear.first = 2;
    clear.clear.last = 3;
    clear.clear.node_count = 2;
    perform(fixture, 0, clear);
    for (int tries = 0; is_published(fixture); tries++) {
        assert_true(tries < 100);
    }
}

/* The workers' store. */

static void open_worker_store(struct fixture *fixture, int64_t round) {
    perform(fixture, 1,
        (struct round_effect){
            .kind = ROUND_EFFECT_OPEN_WORKER_STORE, .round = round, .is_fresh = true});
}

FIXTURE_TEST(the_workers_store_is_where_others_reach_this_node) {
    open_worker_store(fixture, 3);
    const struct node_event *event = site_await(fixture->nodes[1], "store_opened 127.0.0.2:");
    assert_int_equal(event->round.round, 3);
    assert_true(event->round.opened.port > 0);
}

/* No descriptor is left for it. */
FIXTURE_TEST(a_store_that_cannot_be_opened_is_told_with_the_reason) {
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    open_worker_store(fixture, 3);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    site_await(fixture->nodes[1], "store_failed the workers' store cannot be opened: ");
    site_forget_told(fixture->nodes[1]);
    open_worker_store(fixture, 3);
    site_await(fixture->nodes[1], "store_opened");
}

/* The timer. */

FIXTURE_TEST(the_timer_is_told_with_the_round_that_asked_last) {
    struct instant now = event_loop_now(fixture->site.loop);
    perform(fixture, 1,
        (struct round_effect){.kind = ROUND_EFFECT_ARM_TIMER, .round = 3, .deadline = now});
    perform(fixture, 1, (struct round_effect){.kind = ROUND_EFFECT_DISARM_TIMER, .round = 3});
    await_answer(fixture, 0);
    site_hear(&fixture->site);
    site_expect(fixture->nodes[1], "");
    perform(fixture, 1,
        (struct round_effect){.kind = ROUND_EFFECT_ARM_TIMER, .round = 4, .deadline = now});
    assert_int_equal(site_await(fixture->nodes[1], "timer_fired")->round.round, 4);
    site_expect(fixture->nodes[1], "timer_fired");
}

/* The end. */

static void ask_everything(struct fixture *fixture) {
    perform(fixture, 1, about(ROUND_EFFECT_WAIT, ROUND_KEY_LAST_MEMBER, 0));
    perform(fixture, 1, about(ROUND_EFFECT_CHECK, ROUND_KEY_LAST_MEMBER, 0));
    perform(fixture, 1, about(ROUND_EFFECT_GET, ROUND_KEY_ADDRESS, 0));
}

FIXTURE_TEST(a_round_that_has_lost_its_connection_tells_nothing_of_its_requests) {
    ask_everything(fixture);
    agent_record_disconnect(fixture->records[1]);
    ask_everything(fixture); /* in vain: there is no connection */
    await_answer(fixture, 0);
    site_expect(fixture->nodes[1], "");
}

FIXTURE_TEST(a_round_is_freed_without_a_word) {
    ask_everything(fixture);
    open_worker_store(fixture, 3);
    site_await(fixture->nodes[1], "store_opened");
    site_forget_told(fixture->nodes[1]);
    perform(fixture, 1, /* wiped, which takes its time */
        (struct round_effect){.kind = ROUND_EFFECT_OPEN_WORKER_STORE, .round = 3});
    perform(fixture, 1,
        (struct round_effect){.kind = ROUND_EFFECT_ARM_TIMER,
            .round = 3,
            .deadline = event_loop_now(fixture->site.loop)});
    free_node(fixture, 1);
    await_answer(fixture, 0);
    site_expect(fixture->nodes[1], "");
}
