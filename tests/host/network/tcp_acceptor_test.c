/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "host/loop/descriptor_limit.h"
#include "host/network/tcp_listener.h"
#include "host/raw_client.h"
#include "host/remembered_log.h"

#define MOST 64

struct fixture {
    struct event_loop *loop;
    struct tcp_acceptor *acceptor;
    struct remembered_log log;
    int port;
    int accepted[MOST];
    int accepted_count;
    int last_port; /* of the last client */
};

static void keep(void *context, int fd_taken, const union tcp_address *peer) {
    struct fixture *fixture = context;
    assert_true(fixture->accepted_count < MOST);
    fixture->accepted[fixture->accepted_count++] = fd_taken;
    fixture->last_port = tcp_address_port(peer);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    struct tcp_acceptor_settings settings = {
        .name = "test", .log = &fixture->log.log, .accepted = keep, .context = fixture};
    assert_int_equal(
        tcp_listener_open("127.0.0.1", 0, &settings.listening_fd, &fixture->port, NULL),
        FAILURE_NONE);
    assert_int_equal(
        tcp_acceptor_new(fixture->loop, &settings, &fixture->acceptor, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    for (int i = 0; i < fixture->accepted_count; i++) {
        close(fixture->accepted[i]);
    }
    tcp_acceptor_free(fixture->acceptor);
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->log.text);
}

static void turn_until_accepted(struct fixture *fixture, int count) {
    for (int turn = 0; turn < TURNS && fixture->accepted_count < count; turn++) {
        event_loop_run_ready(fixture->loop);
    }
    assert_int_equal(fixture->accepted_count, count);
}

FIXTURE_TEST(clients_are_handed_over_with_their_address) {
    int client = client_connect(fixture->port);
    turn_until_accepted(fixture, 1);
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    assert_int_equal(getsockname(client, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(fixture->last_port, ntohs(address.sin_port));
    assert_true(fcntl(fixture->accepted[0], F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(fixture->accepted[0], F_GETFD) & FD_CLOEXEC);
    close(client);
}

FIXTURE_TEST(drain_accepts_without_the_loop) {
    int clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = client_connect(fixture->port);
    }
    tcp_acceptor_drain(fixture->acceptor);
    assert_int_equal(fixture->accepted_count, 3);
    for (int i = 0; i < 3; i++) {
        close(clients[i]);
    }
}

/* Lets the process open only `left` more descriptors. Returns the earlier limits, to be
 * restored. */
static struct rlimit leave_descriptors(rlim_t left) {
    int next = dup(0);
    close(next);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit tight = {.rlim_cur = (rlim_t)next + left, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    return before;
}

FIXTURE_TEST(without_descriptors_clients_are_turned_away_and_told_once) {
    int clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = client_connect(fixture->port);
    }
    struct rlimit before = leave_descriptors(1);
    client_expect_close(fixture->loop, clients[2]);
    assert_int_equal(fixture->accepted_count, 1);
    assert_int_equal(fixture->log.count, 1);
    assert_true(remembered_log_has(&fixture->log, "no descriptor is left"));
    setrlimit(RLIMIT_NOFILE, &before);
    int late = client_connect(fixture->port);
    turn_until_accepted(fixture, 2);
    close(late);
    for (int i = 0; i < 3; i++) {
        close(clients[i]);
    }
}

FIXTURE_TEST(what_the_process_keeps_no_client_gets) {
    struct rlimit before;
    int next = dup(0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlim_t used = (rlim_t)next + 4; /* two clients, and their two ends here */
    rlim_t kept = used / 3;         /* no more than a fourth of all */
    struct rlimit tight = {.rlim_cur = used + kept, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    descriptor_limit_keep(kept);
    int clients[3];
    for (int i = 0; i < 3; i++) {
        clients[i] = client_connect(fixture->port);
        turn_until_accepted(fixture, i < 2 ? i + 1 : 2);
    }
    client_expect_close(fixture->loop, clients[2]);
    assert_int_equal(fixture->accepted_count, 2);
    assert_int_equal(fixture->log.count, 1);
    assert_true(remembered_log_has(&fixture->log, "the rest is kept for this process itself"));
    descriptor_limit_keep(0);
    setrlimit(RLIMIT_NOFILE, &before);
    for (int i = 0; i < 3; i++) {
        close(clients[i]);
    }
}
