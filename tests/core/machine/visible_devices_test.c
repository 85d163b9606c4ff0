/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/machine/cpu_plan.h"

static struct text_list known_uuids(void) {
    struct text_list uuids = {0};
    text_list_add(&uuids, "GPU-aaaa-1");
    text_list_add(&uuids, "GPU-aabb-2");
    text_list_add(&uuids, "GPU-cccc-3");
    text_list_add(&uuids, "GPU-dddd-4");
    return uuids;
}

static void assert_visible(const char *value, const char *expected) {
    CLEARED_BY(text_list_clear) struct text_list uuids = known_uuids();
    struct visible_devices visible;
    assert_int_equal(visible_devices_select(value, 4, &uuids, &visible), FAILURE_NONE);
    CLEARED_BY(text_clear) struct text text = {0};
    for (size_t i = 0; i < visible.count; i++) {
        text_append_format(&text, "%s%d", i > 0 ? " " : "", visible.ordinals[i]);
    }
    assert_string_equal(text_string(&text), expected);
    visible_devices_clear(&visible);
}

TEST(unset_shows_every_device) {
    assert_visible(NULL, "0 1 2 3");
}

TEST(ordinals_keep_the_users_order) {
    assert_visible("2,0", "2 0");
    assert_visible(" 3 , 1 ", "3 1");
    assert_visible("1gpu2,2ampere", "1 2");
    assert_visible("+1,02", "1 2");
}

TEST(first_unusable_ordinal_ends_the_list) {
    assert_visible("0,-1,2", "0");
    assert_visible("1,4,2", "1");
    assert_visible("1,,2", "1");
    assert_visible("0,x,2", "0");
    assert_visible("-1", "");
    assert_visible("0,99999999999999999999999,1", "0");
    assert_visible("0,+,1", "0");
}

TEST(repeated_device_leaves_none) {
    assert_visible("0,1,0", "");
    assert_visible("0,9,9", "");
    assert_visible("0,-1,0", "0");
    assert_visible("GPU-cc,GPU-cc", "");
    assert_visible("GPU-cc,GPU-cccc", "");
    assert_visible("GPU-cc,GPU-x,GPU-x", "");
}

TEST(uuids_are_known_by_their_start) {
    assert_visible("GPU-dddd-4,GPU-aab", "3 1");
    assert_visible("GPU-cccc-3,2", "2");
    assert_visible("GPU-cc,GPU-nobody,GPU-dd", "2");
}

TEST(ambiguous_uuid_ends_the_list) {
    assert_visible("GPU-d,GPU-aa,GPU-c", "3");
}

TEST(what_cannot_be_told_is_refused) {
    struct visible_devices visible = {.count = 77};
    assert_int_equal(visible_devices_select("GPU-a", 4, NULL, &visible), FAILURE_MISSING);
    assert_int_equal(visible_devices_select("MIG-a", 4, NULL, &visible), FAILURE_UNSUPPORTED);
    assert_int_equal(visible_devices_select(NULL, 4097, NULL, &visible), FAILURE_LIMIT);
    assert_int_equal(visible.count, 77);
}
