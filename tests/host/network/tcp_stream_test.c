/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>

#include "host/network/tcp_stream.h"
#include "host/raw_client.h"

#define MESSAGE_SIZE 10

/* One stream over a socket pair, whose owner takes messages of ten bytes. */
struct fixture {
    struct tcp_stream stream; /* first */
    struct event_loop *loop;
    struct tcp_stream_pool pool;
    int far_end;
    int asked; /* times `received` was called */
    struct bytes messages;
    bool closes_on_message;
    bool holds_on_message; /* and takes one message at a time */
    enum failure_code end;
    int drained;
    int released;
    size_t given; /* by make_room, beyond the pool's ceiling */
    size_t wanted;
};

static size_t received(struct tcp_stream *stream, struct slice input, size_t *out_needed) {
    struct fixture *fixture = (struct fixture *)(void *)stream;
    fixture->asked++;
    size_t whole = input.length - input.length % MESSAGE_SIZE;
    if (whole > 0 && fixture->holds_on_message) {
        whole = MESSAGE_SIZE;
        tcp_stream_hold(stream);
    }
    assert_int_equal(bytes_append(&fixture->messages, input.data, whole), FAILURE_NONE);
    if (whole > 0 && fixture->closes_on_message) {
        tcp_stream_close(stream);
    }
    *out_needed = whole == input.length || whole == 0 ? MESSAGE_SIZE : 0;
    return whole;
}

static void drained(struct tcp_stream *stream) {
    ((struct fixture *)(void *)stream)->drained++;
}

static void ended(struct tcp_stream *stream, const struct failure *failure) {
    ((struct fixture *)(void *)stream)->end = failure->code;
}

static void released(struct tcp_stream *stream) {
    ((struct fixture *)(void *)stream)->released++;
}

static void make_room(struct tcp_stream *stream, size_t wanted) {
    struct fixture *fixture = (struct fixture *)(void *)stream;
    fixture->wanted = wanted;
    fixture->pool.buffer_ceiling += fixture->given;
}

static const struct tcp_stream_owner owner = {.received = received,
    .make_room = make_room,
    .drained = drained,
    .ended = ended,
    .released = released};

static void set_up(struct fixture *fixture, size_t queue_ceiling, size_t buffer_ceiling) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    tcp_stream_pool_init(&fixture->pool, &owner, queue_ceiling, buffer_ceiling);
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    fixture->far_end = ends[1];
    assert_int_equal(
        tcp_stream_open(&fixture->stream, fixture->loop, &fixture->pool, ends[0], false, NULL),
        FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    tcp_stream_close(&fixture->stream);
    close(fixture->far_end);
    assert_true(event_loop_free(fixture->loop));
    assert_int_equal(fixture->released, 1);
    assert_int_equal(fixture->pool.buffered_bytes, 0);
    tcp_stream_pool_clear(&fixture->pool);
    bytes_clear(&fixture->messages);
}

static void feed(struct fixture *fixture, const char *data) {
    client_send(fixture->far_end, data, strlen(data));
    event_loop_run_ready(fixture->loop);
}

static void expect_messages(const struct fixture *fixture, const char *expected) {
    assert_int_equal(fixture->messages.length, strlen(expected));
    assert_memory_equal(fixture->messages.data, expected, strlen(expected));
}

FIXTURE_TEST_AFTER(whole_messages_leave_no_memory_behind, set_up(&fixture, 100, 1000)) {
    feed(fixture, "0123456789abcdefghij");
    expect_messages(fixture, "0123456789abcdefghij");
    assert_int_equal(fixture->pool.buffered_bytes, 0);
}

FIXTURE_TEST_AFTER(
    pieces_are_put_together_and_the_owner_is_not_asked_in_vain, set_up(&fixture, 100, 1000)) {
    feed(fixture, "01234");
    assert_int_equal(fixture->asked, 1);
    feed(fixture, "56");
    assert_int_equal(fixture->asked, 1);
    feed(fixture, "789abc");
    assert_int_equal(fixture->asked, 2);
    expect_messages(fixture, "0123456789");
    assert_int_not_equal(fixture->pool.buffered_bytes, 0);
    feed(fixture, "defghij");
    expect_messages(fixture, "0123456789abcdefghij");
    assert_int_equal(fixture->pool.buffered_bytes, 0);
}

FIXTURE_TEST_AFTER(owner_may_close_while_receiving, set_up(&fixture, 100, 1000)) {
    fixture->closes_on_message = true;
    feed(fixture, "01234");
    feed(fixture, "56789");
    assert_true(fixture->stream.is_closed);
    assert_int_equal(fixture->end, FAILURE_NONE);
}

FIXTURE_TEST_AFTER(unfinished_input_beyond_the_memory_ends_the_stream, set_up(&fixture, 100, 3)) {
    feed(fixture, "0123");
    assert_int_equal(fixture->end, FAILURE_LIMIT);
    assert_true(fixture->stream.is_closed);
}

FIXTURE_TEST_AFTER(a_full_pool_asks_its_owner_for_room, set_up(&fixture, 100, 3)) {
    fixture->given = 5;
    feed(fixture, "0123");
    assert_int_equal(fixture->wanted, 4);
    feed(fixture, "45678");
    assert_int_equal(fixture->wanted, 5);
    assert_int_equal(fixture->end, FAILURE_NONE);
    feed(fixture, "9");
    expect_messages(fixture, "0123456789");
}

FIXTURE_TEST_AFTER(a_buffer_doubles_up_to_its_message, set_up(&fixture, 100, 1000)) {
    feed(fixture, "012");
    assert_int_equal(fixture->pool.buffered_bytes, 3);
    feed(fixture, "3");
    assert_int_equal(fixture->pool.buffered_bytes, 6);
    feed(fixture, "456");
    assert_int_equal(fixture->pool.buffered_bytes, MESSAGE_SIZE);
}

FIXTURE_TEST_AFTER(peer_that_leaves_ends_the_stream, set_up(&fixture, 100, 1000)) {
    shutdown(fixture->far_end, SHUT_WR);
    event_loop_run_ready(fixture->loop);
    assert_int_equal(fixture->end, FAILURE_DISCONNECTED);
}

FIXTURE_TEST_AFTER(
    sending_to_a_peer_that_left_ends_the_stream_without_a_signal, set_up(&fixture, 100, 1000)) {
    close(fixture->far_end);
    tcp_stream_send(&fixture->stream, slice_from_string("hello"));
    assert_int_equal(fixture->end, FAILURE_DISCONNECTED);
    tcp_stream_send(&fixture->stream, slice_from_string("again"));
}

/* More than the kernel takes at once, in a pattern that shows lost or doubled bytes. */
static struct slice large_data(size_t length) {
    uint8_t *data = malloc(length);
    for (size_t i = 0; i < length; i++) {
        data[i] = (uint8_t)(i * 7 + i / 251);
    }
    return (struct slice){data, length};
}

TEST(what_the_kernel_does_not_take_follows_when_it_does) {
    struct fixture fixture;
    size_t length = (size_t)4 << 20;
    set_up(&fixture, 2 * length, 8 * length);
    struct slice data = large_data(length);
    tcp_stream_send(&fixture.stream, data);
    assert_false(tcp_stream_is_drained(&fixture.stream));
    tcp_stream_send(&fixture.stream, slice_from_string("the end"));
    client_expect(fixture.loop, fixture.far_end, data.data, data.length);
    client_expect(fixture.loop, fixture.far_end, "the end", 7);
    event_loop_run_ready(fixture.loop);
    assert_true(tcp_stream_is_drained(&fixture.stream));
    assert_int_equal(fixture.drained, 1);
    assert_int_equal(fixture.pool.buffered_bytes, 0);
    free((void *)(uintptr_t)data.data);
    tear_down(&fixture);
}

TEST(unread_output_beyond_the_ceiling_ends_the_stream) {
    struct fixture fixture;
    size_t length = (size_t)4 << 20;
    set_up(&fixture, length, 8 * length);
    struct slice data = large_data(length);
    tcp_stream_send(&fixture.stream, data);
    assert_false(fixture.stream.is_closed);
    tcp_stream_send(&fixture.stream, data);
    assert_int_equal(fixture.end, FAILURE_LIMIT);
    assert_true(fixture.stream.is_closed);
    free((void *)(uintptr_t)data.data);
    tear_down(&fixture);
}

FIXTURE_TEST_AFTER(catching_up_receives_without_the_loop, set_up(&fixture, 100, 1000)) {
    client_send(fixture->far_end, "0123456789", 10);
    tcp_stream_catch_up(&fixture->stream);
    expect_messages(fixture, "0123456789");
}

FIXTURE_TEST_AFTER(a_turn_receives_little_and_the_rest_of_a_message, set_up(&fixture, 100, 1000)) {
    fixture->pool.turn_bytes = 4;
    feed(fixture, "0123456789abcdefghijABC");
    expect_messages(fixture, "0123456789");
    event_loop_run_ready(fixture->loop);
    expect_messages(fixture, "0123456789abcdefghij");
}

FIXTURE_TEST_AFTER(a_held_stream_goes_on_in_the_next_turn, set_up(&fixture, 100, 1000)) {
    fixture->holds_on_message = true;
    feed(fixture, "0123456789abcdefghijABC");
    expect_messages(fixture, "0123456789");
    event_loop_run_ready(fixture->loop);
    expect_messages(fixture, "0123456789abcdefghij");
    feed(fixture, "DEFGHIJ");
    feed(fixture, "");
    expect_messages(fixture, "0123456789abcdefghijABCDEFGHIJ");
}

FIXTURE_TEST_AFTER(
    a_held_stream_receives_nothing_until_its_peer_has_read, set_up(&fixture, 4 << 20, 8 << 20)) {
    uint8_t data[1 << 20] = {0};
    fixture->pool.held_above = 1000;
    fixture->holds_on_message = true;
    tcp_stream_send(&fixture->stream, (struct slice){data, sizeof data});
    assert_true(tcp_stream_unsent(&fixture->stream) > 1000);
    feed(fixture, "0123456789abcdefghij");
    for (int i = 0; i < 10; i++) {
        event_loop_run_ready(fixture->loop);
    }
    expect_messages(fixture, "0123456789");
    tcp_stream_catch_up(&fixture->stream);
    expect_messages(fixture, "0123456789");
    client_expect(fixture->loop, fixture->far_end, data, sizeof data);
    event_loop_run_ready(fixture->loop);
    expect_messages(fixture, "0123456789abcdefghij");
}

FIXTURE_TEST_AFTER(a_held_stream_notices_the_end_of_its_peer, set_up(&fixture, 4 << 20, 8 << 20)) {
    uint8_t data[1 << 20] = {0};
    fixture->pool.held_above = 1000;
    fixture->holds_on_message = true;
    tcp_stream_send(&fixture->stream, (struct slice){data, sizeof data});
    feed(fixture, "0123456789abcdefghij");
    close(fixture->far_end);
    for (int i = 0; i < 10; i++) {
        event_loop_run_ready(fixture->loop);
    }
    assert_int_equal(fixture->end, FAILURE_DISCONNECTED);
    fixture->far_end = -1;
}
