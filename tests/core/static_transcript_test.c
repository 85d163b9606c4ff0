/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/static_transcript.h"

static void check_event(struct static_event event, const char *expected) {
    struct text text = {0};
    static_event_describe(&event, &text);
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
}

static void check_effect(struct static_effect effect, const char *expected) {
    struct text text = {0};
    static_effect_describe(&effect, &text);
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
}

static void events_read_as_one_line(void **state) {
    (void)state;
    check_event((struct static_event){.kind = STATIC_EVENT_CONNECTED}, "connected");
    check_event((struct static_event){.kind = STATIC_EVENT_COUNTED,
                    .key = {.kind = STATIC_KEY_READY, .attempt = 1},
                    .count = 2},
        "counted ready/1 2");
    check_event(
        (struct static_event){
            .kind = STATIC_EVENT_VALUE, .key = {.kind = STATIC_KEY_END}, .text = "failed 3"},
        "value end/0 failed 3");
    check_event((struct static_event){.kind = STATIC_EVENT_ASSIGNMENT, .assignment = {1, 3, 0, 2}},
        "assignment [1, 3, 0, 2]");
}

static void effects_read_as_one_line(void **state) {
    (void)state;
    check_effect(
        (struct static_effect){
            .kind = STATIC_EFFECT_COMPARE_SET, .key = {.kind = STATIC_KEY_END}, .value = "restart"},
        "compare_set end/0 restart");
    check_effect((struct static_effect){.kind = STATIC_EFFECT_JOINED,
                     .joined = {.attempt = 1, .ranks = {0, 2, 0, 2}}},
        "joined attempt=1 [0, 2, 0, 2]");
    check_effect((struct static_effect){.kind = STATIC_EFFECT_ARM_TIMER,
                     .deadline = {.nanoseconds = INT64_C(900000000000)}},
        "arm_timer at=900.000");
    check_effect((struct static_effect){.kind = STATIC_EFFECT_SET_ASSIGNMENTS,
                     .assignments = {.count = 2, .is_coordinated = true}},
        "set_assignments 2 coordinated");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(events_read_as_one_line),
    cmocka_unit_test(effects_read_as_one_line),
};

TEST_MAIN(tests)
