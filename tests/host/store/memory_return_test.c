/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/store/store_peers.h"

#define MIB ((size_t)1 << 20)

struct fixture {
    struct event_loop *loop;
    struct memory_return *memory_return;
};

static void set_up(struct fixture *fixture) {
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    fixture->memory_return = memory_return_new(fixture->loop, (struct duration){0});
}

static void tear_down(struct fixture *fixture) {
    memory_return_free(fixture->memory_return);
    assert_true(event_loop_free(fixture->loop));
}

/* Tells how much is in use, and how often memory has been given back after that. */
static size_t note(struct fixture *fixture, size_t bytes) {
    memory_return_note(fixture->memory_return, bytes);
    (void)event_loop_run_ready(fixture->loop);
    (void)event_loop_run_ready(fixture->loop);
    return memory_return_count(fixture->memory_return);
}

static void memory_is_given_back_once_when_much_was_freed(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    assert_int_equal(note(&fixture, 100 * MIB), 0);
    assert_int_equal(note(&fixture, 80 * MIB), 0);
    assert_int_equal(note(&fixture, 70 * MIB), 1);
    assert_int_equal(note(&fixture, 60 * MIB), 1);
    assert_int_equal(note(&fixture, 50 * MIB), 2);
    tear_down(&fixture);
}

static void a_little_is_kept(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    assert_int_equal(note(&fixture, 15 * MIB), 0);
    assert_int_equal(note(&fixture, 0), 0);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_is_given_back_once_when_much_was_freed),
    cmocka_unit_test(a_little_is_kept),
};

UNIT_TESTS(tests)
