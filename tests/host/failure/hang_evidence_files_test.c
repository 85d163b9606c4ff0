/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "hang_fixture.h"
#include "host/failure/hang_evidence.h"

/* The fixture's shell inherits no sockets, so this looks at the test's own process. */
static void expect_of_this_process(struct hang_fixture *fixture, const char *part) {
    hang_evidence_write_files(&fixture->report, getpid());
    hang_fixture_expect(fixture, part);
}

static void connections_are_told_with_their_peer(void **state) {
    (void)state;
    struct hang_fixture fixture;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, size), 0);
    hang_fixture_init(&fixture, "echo; kill -STOP $$");
    char *peer = text_format("-> 127.0.0.1:%d ESTABLISHED", ntohs(address.sin_port));
    expect_of_this_process(&fixture, peer);
    hang_fixture_expect(&fixture, "LISTEN, 1 waiting to be accepted");
    free(peer);
    close(listener);
    close(client);
    hang_fixture_clear(&fixture);
}

static void unix_sockets_and_files_are_told(void **state) {
    (void)state;
    struct hang_fixture fixture;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    hang_fixture_init(&fixture, "echo; kill -STOP $$");
    expect_of_this_process(&fixture, "] unix unnamed CONNECTED");
    close(pair[0]);
    close(pair[1]);
    hang_fixture_clear(&fixture);
}

static void another_process_is_told_of_too(void **state) {
    (void)state;
    struct hang_fixture fixture;
    hang_fixture_init(&fixture, "exec 7</dev/zero; echo; kill -STOP $$");
    hang_evidence_write_files(&fixture.report, fixture.process.pid);
    hang_fixture_expect(&fixture, "  7 -> /dev/zero\n");
    hang_fixture_clear(&fixture);
}

static void more_files_than_are_told_are_counted(void **state) {
    (void)state;
    struct hang_fixture fixture;
    int fds[HANG_EVIDENCE_MAXIMUM_FILES];
    for (int i = 0; i < HANG_EVIDENCE_MAXIMUM_FILES; i++) {
        fds[i] = dup(0);
        assert_true(fds[i] >= 0);
    }
    hang_fixture_init(&fixture, "echo; kill -STOP $$");
    hang_evidence_write_files(&fixture.report, getpid());
    hang_fixture_expect(&fixture, "  and ");
    for (int i = 0; i < HANG_EVIDENCE_MAXIMUM_FILES; i++) {
        close(fds[i]);
    }
    hang_fixture_clear(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(connections_are_told_with_their_peer),
    cmocka_unit_test(unix_sockets_and_files_are_told),
    cmocka_unit_test(another_process_is_told_of_too),
    cmocka_unit_test(more_files_than_are_told_are_counted),
};

UNIT_TESTS(tests)
