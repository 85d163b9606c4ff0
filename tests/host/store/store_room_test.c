/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store_fixture.h"
#include "host/store/store_peers.h"

#define MIB ((size_t)1 << 20)

struct fixture {
    struct event_loop *loop;
    struct store_fixture store;
    struct tcp_stream_pool pool;
    struct store_room room;
};

static void set_up(struct fixture *fixture, size_t memory_bytes) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    fixture_init(&fixture->store, memory_bytes);
    store_room_init(
        &fixture->room, fixture->loop, memory_bytes, fixture->store.table, &fixture->pool);
}

static void tear_down(struct fixture *fixture) {
    store_room_clear(&fixture->room);
    fixture_clear(&fixture->store);
    assert_true(event_loop_free(fixture->loop));
}

static void store_value(struct fixture *fixture, size_t length) {
    uint8_t *value = calloc(1, length);
    apply_value(&fixture->store, 0, STORE_SET, S("/k"), (struct slice){value, length});
    free(value);
}

static void each_may_use_what_the_other_leaves(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 64 * MIB);
    store_value(&fixture, 40 * MIB);
    fixture.pool.buffered_bytes = 10 * MIB;
    store_room_share(&fixture.room, 2 * MIB);
    assert_in_range(fixture.pool.buffer_ceiling, 23 * MIB, 24 * MIB);
    store_value(&fixture, 57 * MIB); /* with 8 MiB of buffers it does not fit */
    assert_true(fixture.store.effects.is_full);
    store_value(&fixture, 55 * MIB);
    assert_silent(&fixture.store);
    tear_down(&fixture);
}

static void buffers_have_a_little_beside_a_full_store(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 64 * MIB);
    store_value(&fixture, 64 * MIB - 1000);
    store_room_share(&fixture.room, 0);
    assert_int_equal(fixture.pool.buffer_ceiling, 2 * MIB);
    tear_down(&fixture);
}

static void buffers_are_given_up_before_the_table_finds_no_room(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 64 * MIB);
    fixture.pool.buffered_bytes = 50 * MIB;
    assert_false(store_room_lacks(&fixture.room, 0, 8 * MIB));
    assert_true(store_room_lacks(&fixture.room, 0, 12 * MIB));
    assert_false(store_room_lacks(&fixture.room, 8 * MIB, 12 * MIB));
    fixture.pool.buffered_bytes = 1 * MIB;
    assert_false(store_room_lacks(&fixture.room, 0, 70 * MIB));
    assert_int_equal(store_room_modest(&fixture.room), MIB);
    tear_down(&fixture);
}

static void what_fills_the_table_explains_why_buffers_have_no_room(void **state) {
    (void)state;
    struct fixture fixture;
    struct text text = {0};
    set_up(&fixture, 64 * MIB);
    assert_false(store_room_explain(&fixture.room, "no room", &text));
    assert_string_equal(text_string(&text), "no room");
    text_clear(&text);
    store_value(&fixture, 60 * MIB);
    assert_true(store_room_explain(&fixture.room, "no room", &text));
    assert_true(text_starts_with(text_string(&text), "no room: 1 keys take 60.0 MiB of"));
    text_clear(&text);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_may_use_what_the_other_leaves),
    cmocka_unit_test(buffers_have_a_little_beside_a_full_store),
    cmocka_unit_test(buffers_are_given_up_before_the_table_finds_no_room),
    cmocka_unit_test(what_fills_the_table_explains_why_buffers_have_no_room),
};

UNIT_TESTS(tests)
