/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "cluster_fixture.h"

/* A node alone. */

static int connect_to(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* How many keys the store holds after these requests. */
static int count_keys(int fd, const void *requests, size_t size) {
    uint8_t count[8];
    assert_int_equal(send(fd, requests, size, 0), size);
    assert_int_equal(recv(fd, count, 8, MSG_WAITALL), 8);
    return count[0];
}

static bool the_first_has_joined_again(const struct cluster *cluster) {
    return cluster->nodes[0].joined_count == 2;
}

static void node_alone_has_all_ranks(void **state) {
    (void)state;
    struct cluster cluster;
    cluster_init(&cluster, MEMBERSHIP_ALONE, 1);
    cluster_start_node(&cluster, 0);
    const struct node_placement *placement = cluster_placement(&cluster, 0);
    assert_int_equal(cluster.nodes[0].joined_count, 1);
    assert_int_equal(placement->ranks.world_size, 1);
    assert_int_equal(placement->group_world_size, 1);
    close(connect_to(placement->master_port)); /* the workers' store is served there */
    cluster_clear(&cluster);
}

static void next_attempt_finds_an_empty_store_on_the_same_port(void **state) {
    (void)state;
    struct cluster cluster;
    cluster_init(&cluster, MEMBERSHIP_ALONE, 1);
    cluster.max_restarts = 1;
    cluster_start_node(&cluster, 0);
    int port = cluster_placement(&cluster, 0)->master_port;
    int worker = connect_to(port);
    /* handshake, SET "/k" = "v", COUNT_KEYS */
    static const uint8_t requests[] = "\x00\xce\xf7\x85\x3c"
                                      "\x01\x02\0\0\0\0\0\0\0/k\x01\0\0\0\0\0\0\0v"
                                      "\x07";
    assert_int_equal(count_keys(worker, requests, sizeof requests - 1), 1);
    cluster_exit(&cluster.nodes[0], 0, 1);
    cluster_await(&cluster, the_first_has_joined_again);
    assert_int_equal(cluster_placement(&cluster, 0)->attempt, 1);
    assert_int_equal(cluster_placement(&cluster, 0)->master_port, port);
    char nothing;
    assert_int_equal(recv(worker, &nothing, 1, 0), 0); /* the old connection is closed */
    close(worker);
    worker = connect_to(port);
    static const uint8_t only_count[] = "\x00\xce\xf7\x85\x3c\x07";
    assert_int_equal(count_keys(worker, only_count, sizeof only_count - 1), 0);
    close(worker);
    cluster_clear(&cluster);
}

static void taken_master_port_is_named(void **state) {
    (void)state;
    struct site site;
    struct failure failure = {0};
    struct agent_rendezvous *rendezvous = NULL;
    int fd;
    int port;
    site_init(&site);
    assert_int_equal(tcp_listener_open(NULL, site.port, &fd, &port, NULL), FAILURE_NONE);
    struct site_node *node = site_make_fixed(&site, 0, 2);
    assert_int_equal(
        agent_rendezvous_new(site.loop, &node->settings, &rendezvous, &failure), FAILURE_SYSTEM);
    assert_null(rendezvous);
    char *expected = text_format("%d", port);
    assert_non_null(strstr(failure.message, expected));
    free(expected);
    site_expect(node, "");
    close(fd);
    site_clear(&site);
}

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

static void who_hosts_the_store_is_told_its_port(void **state) {
    (void)state;
    struct site site;
    site_init(&site);
    struct site_node *host = site_make_fixed(&site, 0, 2);
    struct site_node *guest = site_make_fixed(&site, 1, 2);
    struct agent_rendezvous *rendezvous = open_rendezvous(host);
    struct agent_rendezvous *other = open_rendezvous(guest);
    assert_int_equal(site_await(host, "hosting")->membership.port, site.port);
    site_expect(guest, "");
    agent_rendezvous_free(other);
    agent_rendezvous_free(rendezvous);
    site_clear(&site);
}

static void store_of_a_node_alone_is_renewed_when_it_is_asked_for(void **state) {
    (void)state;
    struct site site;
    site_init(&site);
    struct site_node *node = site_make_alone(&site);
    struct agent_rendezvous *rendezvous = open_rendezvous(node);
    perform_membership(
        rendezvous, &(struct membership_effect){.kind = MEMBERSHIP_EFFECT_RENEW_WORKER_STORE});
    site_await(node, "store_renewed");
    site_expect(node, "hosting; store_renewed");
    agent_rendezvous_free(rendezvous);
    site_clear(&site);
}

static void keep_record(
    void *context, enum log_level level, const char *origin, const char *message) {
    (void)origin;
    text_append_format(context, "%d %s;", (int)level, message);
}

static void notes_are_written_to_the_log_at_their_level(void **state) {
    (void)state;
    struct site site;
    struct text records = {0};
    struct log log = {LOG_LEVEL_INFO, keep_record, &records};
    site_init(&site);
    struct site_node *node = site_make_fixed(&site, 1, 2);
    node->settings.log = &log;
    struct agent_rendezvous *rendezvous = open_rendezvous(node);
    perform_membership(rendezvous, &(struct membership_effect){.kind = MEMBERSHIP_EFFECT_NOTE,
                                       .note = {LOG_LEVEL_WARNING, "100% of it is text"}});
    perform_membership(rendezvous, &(struct membership_effect){.kind = MEMBERSHIP_EFFECT_NOTE,
                                       .note = {LOG_LEVEL_DEBUG, "too little to be heard"}});
    assert_string_equal(text_string(&records), "2 100% of it is text;");
    agent_rendezvous_free(rendezvous);
    text_clear(&records);
    site_clear(&site);
}

static void the_memberships_timer_is_told_and_can_be_set_again(void **state) {
    (void)state;
    struct site site;
    site_init(&site);
    struct site_node *node = site_make_fixed(&site, 1, 2);
    struct agent_rendezvous *rendezvous = open_rendezvous(node);
    struct membership_effect arm = {
        .kind = MEMBERSHIP_EFFECT_ARM_TIMER, .deadline = site_soon(&site)};
    perform_membership(rendezvous, &arm);
    arm.deadline = event_loop_now(site.loop);
    perform_membership(rendezvous, &arm);
    site_await(node, "timer_fired");
    perform_membership(rendezvous, &arm);
    agent_rendezvous_free(rendezvous);
    event_loop_run_ready(site.loop);
    site_expect(node, "timer_fired");
    site_clear(&site);
}

/* What is recorded, as by torchrun's rendezvous; see core/rendezvous/rendezvous_transcript. */

static void keep_event(void *context, const struct event_rendezvous *record) {
    text_append_format(context, "%s;", event_node_state_name(record->state));
}

static bool one_has_joined(const struct cluster *cluster) {
    return cluster->nodes[0].joined_count == 1;
}

static bool the_first_is_settled(const struct cluster *cluster) {
    return cluster->nodes[0].settled_position > 0;
}

/* How many records a job of one node that ends well makes. */
static int count_records(const char *backend, enum membership_kind kind) {
    struct cluster cluster;
    struct text records = {0};
    int count = 0;
    cluster_init(&cluster, kind, 1);
    free(cluster.site.agent.config.rdzv_backend);
    cluster.site.agent.config.rdzv_backend = memory_duplicate_string(backend);
    cluster.recorded = keep_event;
    cluster.recorded_context = &records;
    cluster_start_node(&cluster, 0);
    cluster_await(&cluster, one_has_joined);
    cluster_finish_workers(&cluster.nodes[0]);
    cluster_await(&cluster, the_first_is_settled);
    for (const char *next = text_string(&records); *next != '\0'; next++) {
        count += *next == ';' ? 1 : 0;
    }
    text_clear(&records);
    cluster_clear(&cluster);
    return count;
}

static void a_dynamic_rendezvous_is_recorded_and_a_static_one_is_not(void **state) {
    (void)state;
    assert_int_equal(count_records("static", MEMBERSHIP_ALONE), 0);
    assert_true(count_records("c10d", MEMBERSHIP_ALONE) > 0);
    assert_true(count_records("c10d", MEMBERSHIP_CHANGING) > 0);
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

static void the_host_of_fixed_nodes_stays_until_nobody_else_is_connected(void **state) {
    (void)state;
    struct site site;
    site_init(&site);
    struct site_node *host = site_make_fixed(&site, 0, 2);
    struct site_node *guest = site_make_fixed(&site, 1, 2);
    struct agent_rendezvous *rendezvous = open_rendezvous(host);
    struct agent_rendezvous *other = open_rendezvous(guest);
    perform_fixed(rendezvous, ROUND_EFFECT_CONNECT);
    perform_fixed(other, ROUND_EFFECT_CONNECT);
    site_await(host, "connected");
    site_await(guest, "connected");
    site_hear(&site);
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
    site_hear(&site);
    assert_int_equal(site_count(host, "left"), 1);
    agent_rendezvous_free(rendezvous);
    site_clear(&site);
}

static void the_host_of_fixed_nodes_that_is_alone_does_not_stay(void **state) {
    (void)state;
    struct site site;
    site_init(&site);
    struct site_node *host = site_make_fixed(&site, 0, 2);
    struct agent_rendezvous *rendezvous = open_rendezvous(host);
    linger(rendezvous);
    site_expect(host, "hosting; left");
    agent_rendezvous_free(rendezvous);
    site_clear(&site);
}

static void a_rendezvous_that_lingers_is_freed_without_a_word(void **state) {
    (void)state;
    struct site site;
    site_init(&site);
    struct site_node *host = site_make_fixed(&site, 0, 2);
    struct site_node *guest = site_make_fixed(&site, 1, 2);
    struct agent_rendezvous *rendezvous = open_rendezvous(host);
    struct agent_rendezvous *other = open_rendezvous(guest);
    perform_fixed(rendezvous, ROUND_EFFECT_CONNECT);
    perform_fixed(other, ROUND_EFFECT_CONNECT);
    site_await(host, "connected");
    site_await(guest, "connected");
    site_hear(&site);
    linger(rendezvous);
    site_expect(host, "hosting; connected");
    agent_rendezvous_free(rendezvous);
    site_expect(host, "");
    agent_rendezvous_free(other);
    site_clear(&site);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(node_alone_has_all_ranks),
    cmocka_unit_test(next_attempt_finds_an_empty_store_on_the_same_port),
    cmocka_unit_test(taken_master_port_is_named),
    cmocka_unit_test(who_hosts_the_store_is_told_its_port),
    cmocka_unit_test(store_of_a_node_alone_is_renewed_when_it_is_asked_for),
    cmocka_unit_test(notes_are_written_to_the_log_at_their_level),
    cmocka_unit_test(the_memberships_timer_is_told_and_can_be_set_again),
    cmocka_unit_test(a_dynamic_rendezvous_is_recorded_and_a_static_one_is_not),
    cmocka_unit_test(the_host_of_fixed_nodes_stays_until_nobody_else_is_connected),
    cmocka_unit_test(the_host_of_fixed_nodes_that_is_alone_does_not_stay),
    cmocka_unit_test(a_rendezvous_that_lingers_is_freed_without_a_word),
};

UNIT_TESTS(tests)
