/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_transcript.h"
#include "rendezvous_fixture.h"

static void check_event(struct rendezvous_event event, const char *line) {
    CLEARED_BY(text_clear) struct text text = {0};
    rendezvous_event_describe(&event, &text);
    assert_string_equal(text_string(&text), line);
}

static void check_effect(struct rendezvous_effect effect, const char *line) {
    CLEARED_BY(text_clear) struct text text = {0};
    rendezvous_effect_describe(&effect, &text);
    assert_string_equal(text_string(&text), line);
}

TEST(events_are_lines) {
    struct rendezvous_state record = {.round = 3};
    check_event((struct rendezvous_event){.kind = RENDEZVOUS_EVENT_JOIN_ASKED}, "join_asked");
    check_event(
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RESTART_ASKED, .reason = "worker 1"},
        "restart_asked worker 1");
    check_event(
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_FAILURE_ASKED, .reason = "worker 1"},
        "failure_asked worker 1");
    check_event((struct rendezvous_event){.kind = RENDEZVOUS_EVENT_ROLL_ANSWERED}, "roll_answered");
    check_event((struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CLOSE_ASKED, .reason = ""},
        "close_asked");
    check_event((struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED,
                    .connected = {.has_presence = true, .is_host = true}},
        "connected presence host");
    check_event((struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                    .lost = {.reason = "no answer", .is_silent = true}},
        "connection_lost silent no answer");
    check_event((struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RECORD}, "record absent");
    check_event((struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RECORD, .state = &record},
        "record round 3 open [] wait [] spare []");
    check_event(
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN, .written.has_won = true},
        "written won");
    check_event(
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN, .written.state = &record},
        "written lost round 3 open [] wait [] spare []");
    check_event((struct rendezvous_event){.kind = RENDEZVOUS_EVENT_NODE_GONE,
                    .gone = {.identity = torch_node("a"), .has_finished = true}},
        "node_gone a_1_0 finished");
    check_event(
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_FINISHED_COUNT, .finished_count = 2},
        "finished_count 2");
}

TEST(effects_are_lines) {
    struct rendezvous_state record = {.round = 3};
    check_effect((struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_FETCH}, "fetch");
    check_effect((struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_PRESENT,
                     .present = {.identity = torch_node("a")}},
        "present a_1_0");
    check_effect((struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WRITE,
                     .write = {.state = &record, .is_quiet = true}},
        "write quietly round 3 open [] wait [] spare []");
    check_effect((struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_COUNT_FINISHED, .round = 4},
        "count_finished 4");
    check_effect((struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CALL_ROLL, .roll = {4, 2}},
        "call_roll round 4 of 2");
    check_effect((struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_ANSWER_ROLL, .roll = {4, 1}},
        "answer_roll round 4 rank 1");
    check_effect(
        (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_FAILURE_STANDS}, "failure_stands");
    check_effect((struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_ARM_TIMER,
                     .deadline = {.nanoseconds = 1500000000}},
        "arm_timer 1.500");
    check_effect((struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CONNECT,
                     .refusal_patience = duration_from_seconds(5),
                     .deadline = {.nanoseconds = 1500000000}},
        "connect 1.500 or refused for 5.000");
    check_effect((struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_STORE_AWAITED,
                     .awaited = {duration_from_seconds(5), duration_from_seconds(25)}},
        "store_awaited for 5.000 left 25.000");
    check_effect((struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WORLD,
                     .world = {.state = &record, .round = 3, .group_rank = 1, .node_count = 2}},
        "world round 3 rank 1 of 2");
    check_effect((struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CLOSED,
                     .told = {.reason = "", .is_spare = true}},
        "closed spare");
    check_effect((struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_FAILED,
                     .told = {.reason = "no store"}},
        "failed no store");
}
