/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/store/store_peers.h"
#include "host/store_peers_fixture.h"

FIXTURE_TEST_AFTER(presence_ends_with_its_connection, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    int other = add_client(fixture);
    client_set(node, "/p/a", "1");
    client_set(node, "/p/b", "2");
    client_set(node, "/p/a", "3");
    await_news(fixture, 3);
    expect_news(fixture, "a beats 1\nb beats 2\na beats 3\n");
    client_expect_value(fixture->loop, other, "/p/a", "3");
    close(node);
    await_news(fixture, 2);
    expect_news(fixture, "a is gone 3\nb is gone 2\n");
    client_expect_value(fixture->loop, other, "/p/a", "");
    client_expect_value(fixture->loop, other, "/p/b", "");
    close(other);
}

FIXTURE_TEST_AFTER(presence_ends_with_a_breach_of_the_protocol, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    client_set(node, "/p/a", "1");
    client_send(node, "\xff", 1);
    await_news(fixture, 2);
    expect_news(fixture, "a beats 1\na is gone 1\n");
    client_expect_close(fixture->loop, node);
    close(node);
}

FIXTURE_TEST_AFTER(goodbye_is_no_loss, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    client_set(node, "/p/a", "1");
    client_ask(
        node, &(struct store_request){.operation = STORE_DELETE, .key = slice_from_string("/p/a")});
    close(node);
    while (fixture->count > 0) {
        event_loop_run_ready(fixture->loop);
    }
    expect_news(fixture, "a beats 1\n");
}

/* A released waiter has a broken connection, so it ends while the effects of the SET are carried
 * out. A later effect still borrows its presence key, so the key must be deleted only after
 * that. */
FIXTURE_TEST_AFTER(
    presence_may_end_while_a_request_is_carried_out, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    int other = add_client(fixture);
    client_set(node, "/p/a", "1");
    client_wait(node, "/k");
    await_news(fixture, 1);
    shutdown(node, SHUT_RD); /* the reply cannot be delivered */
    client_set(other, "/k", "v");
    client_expect_value(fixture->loop, other, "/p/a", "");
    expect_news(fixture, "a beats 1\na is gone 1\n");
    close(node);
    close(other);
}
