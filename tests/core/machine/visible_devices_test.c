/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/machine/visible_devices.h"

static struct text_list known_uuids(void) {
    struct text_list uuids = {0};
    text_list_add(&uuids, "GPU-aaaa-1");
    text_list_add(&uuids, "GPU-aabb-2");
    text_list_add(&uuids, "GPU-cccc-3");
    text_list_add(&uuids, "GPU-dddd-4");
    return uuids;
}

static void assert_visible(const char *value, const char *expected) {
    struct text_list uuids = known_uuids();
    struct visible_devices visible;
    assert_int_equal(visible_devices_select(value, 4, &uuids, &visible), FAILURE_NONE);
    struct text text = {0};
    for (size_t i = 0; i < visible.count; i++) {
        text_append_format(&text, "%s%d", i > 0 ? " " : "", visible.ordinals[i]);
    }
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
    visible_devices_clear(&visible);
    text_list_clear(&uuids);
}

static void unset_shows_every_device(void **state) {
    (void)state;
    assert_visible(NULL, "0 1 2 3");
}

static void empty_shows_none(void **state) {
    (void)state;
    assert_visible("", "");
    assert_visible(" ", "");
    assert_visible("NoDevFiles", "");
}

static void ordinals_keep_the_users_order(void **state) {
    (void)state;
    assert_visible("2,0", "2 0");
    assert_visible(" 3 , 1 ", "3 1");
    assert_visible("1gpu2,2ampere", "1 2");
    assert_visible("+1,02", "1 2");
}

static void first_unusable_ordinal_ends_the_list(void **state) {
    (void)state;
    assert_visible("0,-1,2", "0");
    assert_visible("1,4,2", "1");
    assert_visible("1,,2", "1");
    assert_visible("0,x,2", "0");
    assert_visible("-1", "");
    assert_visible("0,99999999999999999999999,1", "0");
    assert_visible("0,+,1", "0");
}

static void repeated_device_leaves_none(void **state) {
    (void)state;
    assert_visible("0,1,0", "");
    assert_visible("0,9,9", "");
    assert_visible("0,-1,0", "0");
    assert_visible("GPU-cc,GPU-cc", "");
    assert_visible("GPU-cc,GPU-cccc", "");
    assert_visible("GPU-cc,GPU-x,GPU-x", "");
}

static void uuids_are_known_by_their_start(void **state) {
    (void)state;
    assert_visible("GPU-dddd-4,GPU-aab", "3 1");
    assert_visible("GPU-cccc-3,2", "2");
    assert_visible("GPU-cc,GPU-nobody,GPU-dd", "2");
}

static void ambiguous_uuid_ends_the_list(void **state) {
    (void)state;
    assert_visible("GPU-d,GPU-aa,GPU-c", "3");
}

static void what_cannot_be_told_is_refused(void **state) {
    (void)state;
    struct visible_devices visible = {.count = 77};
    assert_int_equal(visible_devices_select("GPU-a", 4, NULL, &visible), FAILURE_MISSING);
    assert_int_equal(visible_devices_select("MIG-a", 4, NULL, &visible), FAILURE_UNSUPPORTED);
    assert_int_equal(visible_devices_select(NULL, 4097, NULL, &visible), FAILURE_LIMIT);
    assert_int_equal(visible.count, 77);
}

static void machine_without_devices_shows_none(void **state) {
    (void)state;
    struct visible_devices visible;
    assert_int_equal(visible_devices_select("0,1", 0, NULL, &visible), FAILURE_NONE);
    assert_int_equal(visible.count, 0);
    visible_devices_clear(&visible);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(unset_shows_every_device),
    cmocka_unit_test(empty_shows_none),
    cmocka_unit_test(ordinals_keep_the_users_order),
    cmocka_unit_test(first_unusable_ordinal_ends_the_list),
    cmocka_unit_test(repeated_device_leaves_none),
    cmocka_unit_test(uuids_are_known_by_their_start),
    cmocka_unit_test(ambiguous_uuid_ends_the_list),
    cmocka_unit_test(what_cannot_be_told_is_refused),
    cmocka_unit_test(machine_without_devices_shows_none),
};

UNIT_TESTS(tests)
