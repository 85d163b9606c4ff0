/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_step.h"

struct room {
    struct store_entries entries;
    struct store_effects effects;
    struct store_connection client;
    struct store_request request;
    struct store_step step;
};

static int setup(void **state) {
    struct room *room = calloc(1, sizeof *room);
    store_entries_init(&room->entries, 1000);
    room->request =
        (struct store_request){.operation = STORE_ADD, .key = slice_from_string("/counter")};
    room->step = (struct store_step){.entries = &room->entries,
        .connection = &room->client,
        .request = &room->request,
        .effects = &room->effects};
    *state = room;
    return 0;
}

static int teardown(void **state) {
    struct room *room = *state;
    store_entries_clear(&room->entries);
    store_effects_clear(&room->effects);
    free(room);
    return 0;
}

#define STEP_TEST(function) TEST_WITH(function, setup, teardown)

STEP_TEST(counting_starts_at_zero_and_stores_text) {
    struct room *room = *state;
    int64_t value = 0;
    struct store_entry *entry = store_step_count(&room->step, 41, 0, &value);
    assert_int_equal(value, 41);
    assert_ptr_equal(store_step_find(&room->step, room->request.key), entry);
    assert_ptr_equal(store_step_count(&room->step, 1, 0, &value), entry);
    assert_true(slice_equals(store_entry_value(entry), slice_from_string("42")));
}

STEP_TEST(what_must_find_room_besides_is_refused_before_the_count) {
    struct room *room = *state;
    int64_t value = 7;
    assert_null(store_step_count(&room->step, 1, 900, &value));
    assert_int_equal(value, 7);
    assert_int_equal(room->entries.memory, 0);
    assert_int_equal(room->effects.count, 1);
    assert_int_equal(room->effects.items[0].kind, STORE_EFFECT_CLOSE);
}

STEP_TEST(the_reason_names_operation_and_limit) {
    struct room *room = *state;
    assert_true(store_step_admit(&room->step, 1000));
    assert_int_equal(room->effects.count, 0);
    assert_false(store_step_admit(&room->step, 1001));
    assert_string_equal(room->effects.items[0].reason,
        "ADD: there is no room for 1001 bytes more: 0 keys take 0 bytes of the store's memory "
        "limit "
        "of 1000 bytes");
}
