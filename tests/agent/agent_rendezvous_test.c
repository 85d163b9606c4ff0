/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/agent_rendezvous.h"
#include "agent_fixture.h"
#include "host/tcp_listener.h"

struct fixture {
    struct agent_fixture agent;
    struct agent_preparation preparation;
    struct event_loop *loop;
    struct agent_rendezvous *rendezvous;
    struct node_placement placement;
    int64_t ticket; /* of the last answer */
    int joined_count;
};

static void joined(void *context, int64_t ticket, const struct node_placement *placement) {
    struct fixture *fixture = context;
    fixture->ticket = ticket;
    fixture->placement = *placement;
    if (++fixture->joined_count == 2) { /* the first comes at once, without a loop */
        event_loop_stop(fixture->loop);
    }
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    agent_fixture_init(&fixture->agent, 2, "exit 0");
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(agent_prepare(&fixture->agent.config, &fixture->agent.environment,
                         &fixture->preparation, NULL),
        FAILURE_NONE);
}

static enum failure_code open_rendezvous(struct fixture *fixture, struct failure *failure) {
    struct agent_rendezvous_settings settings = {
        .config = &fixture->agent.config,
        .preparation = &fixture->preparation,
        .environment = &fixture->agent.environment,
        .observer = {.joined = joined, .context = fixture},
    };
    return agent_rendezvous_new(fixture->loop, &settings, &fixture->rendezvous, failure);
}

static void tear_down(struct fixture *fixture) {
    agent_rendezvous_free(fixture->rendezvous);
    assert_true(event_loop_free(fixture->loop));
    agent_preparation_clear(&fixture->preparation);
    agent_fixture_clear(&fixture->agent);
}

static int connect_to(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void node_alone_has_all_ranks(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    assert_int_equal(open_rendezvous(&fixture, NULL), FAILURE_NONE);
    agent_rendezvous_join(fixture.rendezvous, 1, 0);
    assert_int_equal(fixture.joined_count, 1);
    assert_int_equal(fixture.placement.ranks.world_size, 2);
    assert_int_equal(fixture.placement.group_world_size, 1);
    assert_true(fixture.placement.master_port > 0);
    tear_down(&fixture);
}

static void next_attempt_finds_an_empty_store_on_the_same_port(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    assert_int_equal(open_rendezvous(&fixture, NULL), FAILURE_NONE);
    agent_rendezvous_join(fixture.rendezvous, 1, 0);
    int port = fixture.placement.master_port;
    int worker = connect_to(port);
    /* handshake, SET "/k" = "v", COUNT_KEYS */
    static const uint8_t requests[] = "\x00\xce\xf7\x85\x3c"
                                      "\x01\x02\0\0\0\0\0\0\0/k\x01\0\0\0\0\0\0\0v"
                                      "\x07";
    uint8_t count[8];
    assert_int_equal(send(worker, requests, sizeof requests - 1, 0), sizeof requests - 1);
    assert_int_equal(recv(worker, count, 8, MSG_WAITALL), 8);
    assert_int_equal(count[0], 1);
    agent_rendezvous_join(fixture.rendezvous, 2, 1);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.joined_count, 2);
    assert_int_equal(fixture.ticket, 2);
    assert_int_equal(fixture.placement.attempt, 1);
    assert_int_equal(fixture.placement.master_port, port);
    assert_int_equal(recv(worker, count, 1, 0), 0); /* the old connection is closed */
    close(worker);
    worker = connect_to(port);
    static const uint8_t count_keys[] = "\x00\xce\xf7\x85\x3c\x07";
    assert_int_equal(send(worker, count_keys, sizeof count_keys - 1, 0), sizeof count_keys - 1);
    assert_int_equal(recv(worker, count, 8, MSG_WAITALL), 8);
    assert_int_equal(count[0], 0);
    close(worker);
    tear_down(&fixture);
}

static void taken_master_port_is_named(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    int fd;
    int port;
    assert_int_equal(tcp_listener_open(NULL, 0, &fd, &port, NULL), FAILURE_NONE);
    fixture.agent.config.rendezvous = LAUNCH_RENDEZVOUS_STATIC;
    fixture.agent.config.master_port = port;
    struct failure failure = {0};
    assert_int_equal(open_rendezvous(&fixture, &failure), FAILURE_SYSTEM);
    char *expected = text_format("%d", port);
    assert_non_null(strstr(failure.message, expected));
    free(expected);
    close(fd);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(node_alone_has_all_ranks),
    cmocka_unit_test(next_attempt_finds_an_empty_store_on_the_same_port),
    cmocka_unit_test(taken_master_port_is_named),
};

TEST_MAIN(tests)
