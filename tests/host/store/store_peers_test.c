/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/store_peers_fixture.h"

FIXTURE_TEST_AFTER(clients_are_counted_until_they_leave, set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    int first = add_client(fixture);
    int second = add_client(fixture);
    assert_int_equal(fixture->count, 2);
    close(first);
    while (fixture->count > 1) {
        event_loop_run_ready(fixture->loop);
    }
    store_peers_close_all(fixture->peers);
    assert_int_equal(fixture->count, 0);
    client_expect_close(fixture->loop, second);
    close(second);
}

FIXTURE_TEST_AFTER(
    lines_about_hostile_clients_are_held_back, set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    for (int i = 0; i < 200; i++) {
        int client = add_client(fixture);
        client_send(client, "\xff", 1);
        event_loop_run_ready(fixture->loop);
        close(client);
    }
    assert_in_range(fixture->log.count, 1, 60);
}

FIXTURE_TEST_AFTER(
    catching_up_carries_out_what_has_arrived, set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    int first = add_client(fixture);
    int second = add_client(fixture);
    client_set(first, "/k", "v");
    store_peers_catch_up(fixture->peers);
    client_expect_value(fixture->loop, second, "/k", "v");
    close(first);
    close(second);
}

FIXTURE_TEST_AFTER(
    renewal_closes_those_who_wait_for_what_is_forgotten, set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    int for_kept = add_client(fixture);
    int for_gone = add_client(fixture);
    client_wait(for_kept, "/kept/k");
    client_wait(for_gone, "/gone/k");
    store_peers_catch_up(fixture->peers);
    store_peers_renew_table(fixture->peers, "/kept/");
    client_expect_close(fixture->loop, for_gone);
    client_set(for_kept, "/kept/k", "v");
    client_expect_byte(fixture->loop, for_kept, STORE_STOP_WAITING);
    close(for_kept);
    close(for_gone);
}

FIXTURE_TEST_AFTER(client_can_ask_whether_presence_is_served, set_up_presence(&fixture, false)) {
    int client = add_client(fixture);
    client_expect_value(fixture->loop, client, "/p/served", "1");
    store_peers_renew_table(fixture->peers, "/kept/");
    client_expect_value(fixture->loop, client, "/p/served", "1");
    close(client);
}

FIXTURE_TEST_AFTER(renewal_does_not_forget_who_is_there, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    client_set(node, "/p/a", "1");
    await_news(fixture, 1);
    store_peers_renew_table(fixture->peers, "/kept/");
    close(node);
    await_news(fixture, 2);
    expect_news(fixture, "a beats 1\na is gone 1\n");
}

FIXTURE_TEST_AFTER(stalled_client_is_dropped_by_its_name, set_up_presence(&fixture, false)) {
    int node = add_client(fixture);
    int other = add_client(fixture);
    client_set(node, "/p/a", "1");
    client_set(other, "/p/b", "2");
    await_news(fixture, 2);
    store_peers_drop(fixture->peers, "nobody");
    store_peers_drop(fixture->peers, "a");
    store_peers_drop(fixture->peers, "a");
    expect_news(fixture, "a beats 1\nb beats 2\na is silent\na is gone 1\n");
    assert_true(remembered_log_has(&fixture->log, "stalled"));
    client_expect_close(fixture->loop, node);
    client_expect_value(fixture->loop, other, "/p/b", "2");
    close(node);
    close(other);
}

FIXTURE_TEST_AFTER(connections_are_told_as_they_come_and_go, set_up_presence(&fixture, true)) {
    int first = add_client(fixture);
    int second = add_client(fixture);
    client_set(second, "/p/a", "1");
    await_news(fixture, 3);
    close(second);
    await_news(fixture, 5);
    store_peers_close_all(fixture->peers);
    expect_news(fixture,
        "1 connections\n2 connections\na beats 1\na is gone 1\n1 connections\n0 connections\n");
    close(first);
}

TEST(ending_the_store_tells_nothing) {
    struct fixture fixture;
    set_up_presence(&fixture, false);
    int node = add_client(&fixture);
    client_set(node, "/p/a", "1");
    await_news(&fixture, 1);
    store_peers_free(fixture.peers);
    assert_true(event_loop_free(fixture.loop));
    expect_news(&fixture, "a beats 1\n");
    close(node);
    text_clear(&fixture.log.text);
}

FIXTURE_TEST_AFTER(
    renewal_does_not_wait_for_clients_that_do_not_read, set_up(&fixture, &STORE_LIMITS_DEFAULT)) {
    enum { TIMES = 60, LENGTH = 200000 };
    static uint8_t value[LENGTH];
    int slow = add_client(fixture);
    int other = add_client(fixture);
    set_big(fixture, other, value, LENGTH);
    ask_for_much_and_count(slow, TIMES, "/n");
    turn(fixture);
    store_peers_catch_up(fixture->peers);
    store_peers_renew_table(fixture->peers, "/kept/");
    client_expect_close(fixture->loop, slow);
    assert_true(remembered_log_has(&fixture->log, "has not read its replies"));
    client_expect_value(fixture->loop, other, "/n", "");
    close(slow);
    close(other);
}
