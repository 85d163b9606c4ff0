/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "agent/rendezvous/agent_round.h"
#include "host/store/store_client.h"
#include "host/store/store_thread.h"
#include "site_fixture.h"

/* Node 0 of two without a machine, whose round goes over its connections, the store it hosts, and
 * somebody else who uses that. What the
 * store has to say stalls its thread, until a test lets it go on. */
struct fixture {
    struct site site;
    struct site_node *node;
    struct store_thread *store;
    struct agent_fixed_nodes *nodes;
    struct agent_round *round;
    struct store_client *other;
    struct log store_log;
    int stalled[2]; /* a pipe: a byte of the store's thread, which stalls … */
    int go_on[2];   /* … and of the test, which lets it go on */
};

/* On the store's thread. */
static void stall(void *context, enum log_level level, const char *origin, const char *message) {
    struct fixture *fixture = context;
    char byte = 0;
    (void)level;
    (void)origin;
    (void)message;
    if (write(fixture->stalled[1], &byte, 1) != 1 || read(fixture->go_on[0], &byte, 1) != 1) {
        abort();
    }
}

/* The store answers nobody from here on. */
static void stall_store(struct fixture *fixture) {
    char byte;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)fixture->site.port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(fd, "no handshake", 12, 0), 12);
    assert_int_equal(read(fixture->stalled[0], &byte, 1), 1);
    close(fd);
}

static void let_store_go_on(struct fixture *fixture) {
    assert_int_equal(write(fixture->go_on[1], "", 1), 1);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.store_log = {LOG_LEVEL_WARNING, stall, fixture}};
    struct store_server_settings settings = {.log = &fixture->store_log};
    int fd;
    int port;
    assert_int_equal(pipe2(fixture->stalled, O_CLOEXEC), 0);
    assert_int_equal(pipe2(fixture->go_on, O_CLOEXEC), 0);
    site_init(&fixture->site);
    fixture->node = site_make_fixed(&fixture->site, 0, 2);
    assert_int_equal(tcp_listener_open(NULL, fixture->site.port, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(
        store_thread_start(fixture->site.loop, fd, &settings, &fixture->store, NULL), FAILURE_NONE);
    fixture->nodes =
        agent_fixed_nodes_new(fixture->site.loop, &fixture->node->settings, fixture->store);
    fixture->round =
        agent_round_new(fixture->site.loop, &fixture->node->settings, NULL, fixture->nodes);
    struct store_client_settings other = {
        .host = "127.0.0.1", .port = port, .connect_timeout = duration_from_seconds(20)};
    fixture->other = store_client_new(fixture->site.loop, &other);
}

static void free_nodes(struct fixture *fixture) {
    agent_fixed_nodes_free(fixture->nodes);
    agent_round_free(fixture->round);
    fixture->nodes = NULL;
    fixture->round = NULL;
}

static void tear_down(struct fixture *fixture) {
    store_client_free(fixture->other);
    free_nodes(fixture);
    store_thread_stop(fixture->store);
    site_clear(&fixture->site);
    for (int i = 0; i < 2; i++) {
        close(fixture->stalled[i]);
        close(fixture->go_on[i]);
    }
}

static void perform(struct fixture *fixture, struct round_effect effect) {
    effect.round = ROUND_OF_FIXED_NODES;
    agent_round_perform(fixture->round, &effect);
}

static void perform_kind(struct fixture *fixture, enum round_effect_kind kind) {
    perform(fixture, (struct round_effect){.kind = kind});
}

static void perform_key(
    struct fixture *fixture, enum round_effect_kind kind, enum round_key_kind key) {
    perform(fixture, (struct round_effect){.kind = kind, .key = {.kind = key}});
}

static void connect_nodes(struct fixture *fixture) {
    perform_kind(fixture, ROUND_EFFECT_CONNECT);
    site_await(fixture->node, "connected");
    site_forget_told(fixture->node);
}

static void set_elsewhere(struct fixture *fixture, const struct round_key *key, const char *value) {
    struct text_list name = {0};
    round_key_list(key, "job", &name);
    struct store_client_call call = {
        .request = {.operation = STORE_SET,
            .key = slice_from_string(name.items[0]),
            .value = slice_from_string(value)},
        .is_raw = true,
        .timeout = duration_from_seconds(20),
    };
    store_client_send(fixture->other, &call);
    text_list_clear(&name);
}

FIXTURE_TEST(connected_is_told_once_for_both_connections) {
    perform_kind(fixture, ROUND_EFFECT_CONNECT);
    site_await(fixture->node, "connected");
    perform_key(fixture, ROUND_EFFECT_WAIT, ROUND_KEY_START);
    perform_key(fixture, ROUND_EFFECT_CHECK, ROUND_KEY_START);
    site_await(fixture->node, "checked");
    site_expect(fixture->node, "connected; checked start/0 absent");
}

/* The store takes no second one. */
SITE_TEST(one_connection_alone_is_none) {
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    struct store_thread *store;
    int fd;
    int port;
    limits.connections = 1;
    struct site_node *node = site_make_fixed(fixture, 0, 2);
    node->config.store_timeout = duration_from_milliseconds(100);
    assert_int_equal(tcp_listener_open(NULL, fixture->port, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(store_thread_start(fixture->loop, fd,
                         &(struct store_server_settings){.limits = &limits}, &store, NULL),
        FAILURE_NONE);
    struct agent_fixed_nodes *nodes = agent_fixed_nodes_new(fixture->loop, &node->settings, store);
    struct agent_round *round = agent_round_new(fixture->loop, &node->settings, NULL, nodes);
    agent_round_perform(round, &(struct round_effect){.kind = ROUND_EFFECT_CONNECT});
    site_await(node, "connection_lost");
    site_expect(node, "connection_lost");
    agent_fixed_nodes_free(nodes);
    agent_round_free(round);
    store_thread_stop(store);
}

FIXTURE_TEST(each_answer_of_the_store_is_told) {
    connect_nodes(fixture);
    perform_key(fixture, ROUND_EFFECT_WAIT, ROUND_KEY_END);
    perform(fixture, (struct round_effect){
                         .kind = ROUND_EFFECT_ADD, .key = {.kind = ROUND_KEY_READY}, .amount = 1});
    perform_key(fixture, ROUND_EFFECT_CHECK, ROUND_KEY_GATHERED);
    perform(fixture,
        (struct round_effect){
            .kind = ROUND_EFFECT_DECIDE, .key = {.kind = ROUND_KEY_GATHERED}, .text = "all"});
    perform_key(fixture, ROUND_EFFECT_GET, ROUND_KEY_GATHERED);
    site_await(fixture->node, "values");
    site_expect(fixture->node, "counted ready/0 1; checked gathered/0 absent; "
                               "values gathered/0 all");
    perform(fixture, (struct round_effect){
                         .kind = ROUND_EFFECT_SET, .key = {.kind = ROUND_KEY_END}, .text = "done"});
    site_await(fixture->node, "waited");
    site_expect(fixture->node, "waited end/0");
}

FIXTURE_TEST(a_store_that_is_renewed_keeps_what_is_the_agents) {
    connect_nodes(fixture);
    perform(
        fixture, (struct round_effect){
                     .kind = ROUND_EFFECT_SET, .key = {.kind = ROUND_KEY_GATHERED}, .text = "all"});
    perform_key(fixture, ROUND_EFFECT_CHECK, ROUND_KEY_GATHERED);
    site_await(fixture->node, "checked");
    perform_kind(fixture, ROUND_EFFECT_OPEN_WORKER_STORE);
    site_await(fixture->node, "store_opened");
    perform_key(fixture, ROUND_EFFECT_GET, ROUND_KEY_GATHERED);
    site_await(fixture->node, "values gathered/0 all");
}

/* Trouble. */

static void keep_record(
    void *context, enum log_level level, const char *origin, const char *message) {
    (void)level;
    (void)origin;
    text_append_format(context, "%s;", message);
}

/* Both connections end, and with them what was waited for. */
FIXTURE_TEST(a_lost_store_is_told_once_and_named) {
    struct text records = {0};
    struct log log = {LOG_LEVEL_WARNING, keep_record, &records};
    fixture->node->settings.log = &log;
    connect_nodes(fixture);
    perform_key(fixture, ROUND_EFFECT_WAIT, ROUND_KEY_END);
    store_thread_stop(fixture->store);
    fixture->store = NULL;
    site_await(fixture->node, "connection_lost");
    site_hear(&fixture->site);
    site_expect(fixture->node, "connection_lost");
    char *name = text_format("the job's store at 127.0.0.1:%d cannot be used", fixture->site.port);
    assert_true(site_begins_with(text_string(&records), name));
    free(name);
    text_clear(&records);
}

SITE_TEST(a_store_that_is_never_reached_is_a_lost_one) {
    struct site_node *node = site_make_fixed(fixture, 1, 2);
    node->config.store_timeout = duration_from_milliseconds(1);
    struct agent_fixed_nodes *nodes = agent_fixed_nodes_new(fixture->loop, &node->settings, NULL);
    struct agent_round *round = agent_round_new(fixture->loop, &node->settings, NULL, nodes);
    agent_round_perform(round, &(struct round_effect){.kind = ROUND_EFFECT_CONNECT});
    site_await(node, "connection_lost");
    site_hear(fixture);
    site_expect(node, "connection_lost");
    agent_fixed_nodes_free(nodes);
    agent_round_free(round);
}

FIXTURE_TEST(an_answer_without_sense_is_a_lost_store) {
    connect_nodes(fixture);
    set_elsewhere(
        fixture, &(struct round_key){.kind = ROUND_KEY_END}, "more than any decision has to say");
    perform_key(fixture, ROUND_EFFECT_WAIT, ROUND_KEY_END);
    site_await(fixture->node, "waited");
    perform_key(fixture, ROUND_EFFECT_GET, ROUND_KEY_END);
    site_await(fixture->node, "connection_lost");
}

/* The end. */

FIXTURE_TEST(nothing_is_flushed_where_all_is_answered) {
    connect_nodes(fixture);
    perform_key(fixture, ROUND_EFFECT_WAIT, ROUND_KEY_END); /* on the other connection */
    agent_fixed_nodes_flush(fixture->nodes, duration_from_seconds(1000));
    site_expect(fixture->node, "left");
}

FIXTURE_TEST(a_node_stays_until_its_last_request_is_answered) {
    connect_nodes(fixture);
    stall_store(fixture);
    perform_key(fixture, ROUND_EFFECT_CHECK, ROUND_KEY_START);
    perform_key(fixture, ROUND_EFFECT_CHECK, ROUND_KEY_END);
    agent_fixed_nodes_flush(fixture->nodes, duration_from_seconds(1000));
    site_hear(&fixture->site);
    site_expect(fixture->node, "");
    let_store_go_on(fixture);
    site_await(fixture->node, "left");
    site_expect(fixture->node, "checked start/0 absent; checked end/0 absent; left");
}

FIXTURE_TEST(a_node_stays_no_longer_than_its_patience) {
    connect_nodes(fixture);
    stall_store(fixture);
    perform_key(fixture, ROUND_EFFECT_CHECK, ROUND_KEY_END);
    agent_fixed_nodes_flush(fixture->nodes, duration_from_milliseconds(1));
    site_await(fixture->node, "left");
    let_store_go_on(fixture);
    site_await(fixture->node, "checked");
    site_expect(fixture->node, "left; checked end/0 absent"); /* and not left twice */
}

FIXTURE_TEST(nothing_is_flushed_without_a_connection) {
    perform_kind(fixture, ROUND_EFFECT_CONNECT);
    perform_key(fixture, ROUND_EFFECT_CHECK, ROUND_KEY_END);
    agent_fixed_nodes_flush(fixture->nodes, duration_from_seconds(1000));
    site_expect(fixture->node, "left");
}

/* Its time is up, which costs the connection: no answer comes any more. */
FIXTURE_TEST(a_store_that_is_lost_is_waited_for_by_nobody) {
    connect_nodes(fixture);
    stall_store(fixture);
    fixture->node->config.store_timeout = duration_from_milliseconds(1);
    perform_key(fixture, ROUND_EFFECT_CHECK, ROUND_KEY_END);
    agent_fixed_nodes_flush(fixture->nodes, duration_from_seconds(1000));
    site_await(fixture->node, "left");
    site_expect(fixture->node, "connection_lost; left");
    let_store_go_on(fixture);
}

FIXTURE_TEST(fixed_nodes_are_freed_without_a_word) {
    connect_nodes(fixture);
    stall_store(fixture);
    perform_key(fixture, ROUND_EFFECT_CHECK, ROUND_KEY_END);
    perform_key(fixture, ROUND_EFFECT_WAIT, ROUND_KEY_END);
    perform(fixture, (struct round_effect){.kind = ROUND_EFFECT_ARM_TIMER,
                         .deadline = event_loop_now(fixture->site.loop)});
    agent_fixed_nodes_flush(fixture->nodes, duration_from_milliseconds(1));
    free_nodes(fixture);
    site_hear(&fixture->site);
    site_expect(fixture->node, "");
    let_store_go_on(fixture);
}

FIXTURE_TEST(nodes_that_were_never_connected_are_freed_without_a_word) {
    perform_kind(fixture, ROUND_EFFECT_CONNECT);
    perform_key(fixture, ROUND_EFFECT_CHECK, ROUND_KEY_END);
    free_nodes(fixture);
    site_expect(fixture->node, "");
}
