/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/remembered_log.h"
#include "host/store/store_peers.h"

struct fixture {
    struct event_loop *loop;
    struct remembered_log log;
    struct client_log client_log;
    union tcp_address address;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.address.ipv4.sin_family = AF_INET};
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    client_log_init(&fixture->client_log, fixture->loop, &fixture->log.log);
}

static void tear_down(struct fixture *fixture) {
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->log.text);
}

static void a_line_names_the_client(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    client_log_say(&fixture.client_log, &fixture.address, "it did this");
    assert_true(remembered_log_has(&fixture.log, "store: client 0.0.0.0:0: it did this"));
    tear_down(&fixture);
}

static void many_lines_do_not_keep_out_that_the_store_is_full(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    for (int i = 0; i < 1000; i++) {
        client_log_say(&fixture.client_log, &fixture.address, "it did this");
    }
    assert_in_range(fixture.log.count, 1, 100);
    client_log_say_full(&fixture.client_log, &fixture.address, "no room");
    assert_true(remembered_log_has(&fixture.log, "no room; --store-memory gives it more"));
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_line_names_the_client),
    cmocka_unit_test(many_lines_do_not_keep_out_that_the_store_is_full),
};

UNIT_TESTS(tests)
