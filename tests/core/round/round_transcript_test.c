/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/round/round_exchange.h"

static void check_event(struct round_event event, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    round_event_describe(&event, &text);
    assert_string_equal(text_string(&text), expected);
}

static void check_effect(struct round_effect effect, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    round_effect_describe(&effect, &text);
    assert_string_equal(text_string(&text), expected);
}

TEST(events_read_as_one_line) {
    check_event(
        (struct round_event){
            .kind = ROUND_EVENT_BEGIN, .round = 3, .begin = {.group_rank = 1, .node_count = 4}},
        "begin 3 rank=1 of 4");
    check_event((struct round_event){.kind = ROUND_EVENT_ABANDON}, "abandon");
    check_event((struct round_event){.kind = ROUND_EVENT_STORE_OPENED,
                    .opened = {.address = "node0", .port = 7}},
        "store_opened node0:7");
    check_event((struct round_event){.kind = ROUND_EVENT_STORE_FAILED, .reason = "no port"},
        "store_failed no port");
    check_event((struct round_event){.kind = ROUND_EVENT_CHECKED,
                    .key = {.kind = ROUND_KEY_ADDRESS, .round = 2},
                    .is_present = true},
        "checked 2/address present");
    check_event(
        (struct round_event){
            .kind = ROUND_EVENT_COUNTED, .key = {.kind = ROUND_KEY_NUM_MEMBERS}, .count = 2},
        "counted 0/num_members 2");
}

TEST(values_read_as_what_was_found) {
    struct round_event event = {.kind = ROUND_EVENT_VALUES, .key = {.kind = ROUND_KEY_WORLD}};
    check_event(event, "values 0/world/0");
    event.values = (struct round_values){
        .address = "a", .port = 7, .publisher = "a_1_0", .has_ranks = true, .ranks = {1, 3, 0, 2}};
    check_event(event, "values 0/world/0 a:7 of a_1_0 [1, 3, 0, 2]");
}

TEST(effects_read_as_one_line) {
    struct round_key key = {.kind = ROUND_KEY_PUBLICATION, .round = 3};
    check_effect((struct round_effect){.kind = ROUND_EFFECT_OPEN_WORKER_STORE, .is_fresh = true},
        "open_worker_store fresh");
    check_effect((struct round_effect){.kind = ROUND_EFFECT_PUBLISH,
                     .key = key,
                     .publication = {"node0", "29400", "node0_7_0"}},
        "publish 3/publication node0:29400 of node0_7_0");
    check_effect(
        (struct round_effect){
            .kind = ROUND_EFFECT_ADD, .key = {.kind = ROUND_KEY_NUM_MEMBERS}, .amount = 1},
        "add 0/num_members 1");
    check_effect((struct round_effect){.kind = ROUND_EFFECT_ARM_TIMER,
                     .deadline = {.nanoseconds = INT64_C(900000000000)}},
        "arm_timer at=900.000");
    check_effect((struct round_effect){.kind = ROUND_EFFECT_JOINED,
                     .round = 2,
                     .joined = {.node_count = 1,
                         .ranks = {0, 2, 0, 2},
                         .master_address = "a",
                         .master_port = 7,
                         .restarts = 1}},
        "joined 2 rank=0 of 1 [0, 2, 0, 2] a:7 restarts=1");
    check_effect((struct round_effect){.kind = ROUND_EFFECT_BARRIER_FAILED, .reason = "late"},
        "barrier_failed late");
}
