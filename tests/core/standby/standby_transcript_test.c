/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/standby/standby_plan.h"

static void expect_event(struct standby_event event, const char *expected) {
    struct text line = {0};
    standby_event_describe(&event, &line);
    assert_string_equal(text_string(&line), expected);
    text_clear(&line);
}

TEST(an_event_is_one_line) {
    expect_event(
        (struct standby_event){.kind = STANDBY_EVENT_WORKERS_STARTED}, "workers_started last");
    expect_event(
        (struct standby_event){.kind = STANDBY_EVENT_HELLO, .local_rank = 3}, "hello rank=3");
    expect_event((struct standby_event){.kind = STANDBY_EVENT_RECORDS,
                     .records = {duration_from_seconds(2.5), 7, 9}},
        "records quiet=2.500 modules=7 memory=9");
    expect_event(
        (struct standby_event){.kind = STANDBY_EVENT_SPARE_READY, .ready = {1, 4096, false}},
        "spare_ready rank=1 bytes=4096");
    expect_event(
        (struct standby_event){.kind = STANDBY_EVENT_SPARE_UNSUITED, .unsuited = {1, false}},
        "spare_unsuited rank=1 nothing new");
    expect_event((struct standby_event){.kind = STANDBY_EVENT_PARENT, .parent = {.is_there = true}},
        "parent ready");
    expect_event((struct standby_event){.kind = STANDBY_EVENT_PARENT, .parent = {.has_cut = true}},
        "parent gone unsuited");
    expect_event((struct standby_event){.kind = STANDBY_EVENT_PARENT}, "parent gone");
    expect_event((struct standby_event){.kind = STANDBY_EVENT_SPARE_ENDED,
                     .ended = {1, {.is_signal = true, .value = 9}}},
        "spare_ended rank=1 signal=9");
    expect_event(
        (struct standby_event){.kind = STANDBY_EVENT_SPARE_ENDED, .ended = {1, {.value = 2}}},
        "spare_ended rank=1 status=2");
}

TEST(every_event_and_every_effect_has_a_name) {
    for (int kind = 0; kind < STANDBY_EVENT_COUNT; kind++) {
        struct text line = {0};
        struct standby_event event = {.kind = (enum standby_event_kind)kind};
        standby_event_describe(&event, &line);
        assert_true(line.length > 0);
        text_clear(&line);
    }
    for (int kind = 0; kind < STANDBY_EFFECT_COUNT; kind++) {
        struct text line = {0};
        struct standby_effect effect = {.kind = (enum standby_effect_kind)kind};
        standby_effect_describe(&effect, &line);
        assert_true(line.length > 0);
        text_clear(&line);
    }
    for (int why = 0; why < STANDBY_OFF_COUNT; why++) {
        assert_non_null(standby_off_name((enum standby_off)why));
    }
}
