/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_request.h"
#include "core/store/store_table.h"
#include "library/process_look.h"

TEST(a_storm_does_not_leave_large_arrays_behind) {
    CLEARED_BY(store_effects_clear) struct store_effects effects = {0};
    struct store_connection connection = {0};
    struct store_reply reply = {.kind = STORE_REPLY_BYTE};
    for (int i = 0; i < 5000; i++) {
        store_effects_reply(&effects, &connection, &reply);
    }
    assert_non_null(store_effects_blobs(&effects, 131072));
    store_effects_reset(&effects);
    assert_true(effects.capacity <= 1024);
    assert_true(effects.blob_capacity <= 4096);
}

TEST(a_reply_tells_whether_a_comparison_has_written) {
    CLEARED_BY(store_effects_clear) struct store_effects effects = {0};
    struct store_connection connection = {0};
    struct store_request set = {.operation = STORE_SET};
    struct store_request compare = {
        .operation = STORE_COMPARE_SET, .value = slice_from_string("new")};
    assert_true(store_effects_have_written(&effects, &set));
    assert_false(store_effects_have_written(&effects, &compare));
    struct store_reply reply = {.kind = STORE_REPLY_BLOB, .blob = slice_from_string("old")};
    store_effects_reply(&effects, &connection, &reply);
    assert_false(store_effects_have_written(&effects, &compare));
    store_effects_reset(&effects);
    reply.blob = slice_from_string("new");
    store_effects_reply(&effects, &connection, &reply);
    assert_true(store_effects_have_written(&effects, &compare));
    store_effects_reset(&effects);
    store_effects_give_way(&effects, &connection);
    assert_false(store_effects_have_written(&effects, &compare));
    store_effects_reply(&effects, &connection, &reply);
    assert_true(store_effects_have_written(&effects, &compare));
}

TEST(room_that_was_asked_for_is_there) {
    CLEARED_BY(store_effects_clear) struct store_effects effects = {0};
    assert_true(store_effects_have_room(&effects, 100));
    assert_int_equal(effects.capacity, 0); /* which comes with the effects */
    assert_true(store_effects_have_room(&effects, 5000));
    assert_true(effects.capacity >= 5000);
    store_effects_reset(&effects);
    assert_true(effects.capacity <= 1024);
    if (!process_has_memory_of_others()) { /* which end the process for it */
        assert_false(store_effects_have_room(&effects, SIZE_MAX / 128));
    }
}
