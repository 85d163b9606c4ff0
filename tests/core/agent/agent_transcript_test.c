/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/agent/agent_machine.h"

static void check_event(struct agent_event event, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    agent_event_describe(&event, &text);
    assert_string_equal(text_string(&text), expected);
}

static void check_effect(struct agent_effect effect, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    agent_effect_describe(&effect, &text);
    assert_string_equal(text_string(&text), expected);
}

TEST(events_read_as_one_line) {
    check_event((struct agent_event){.kind = AGENT_EVENT_START}, "start");
    check_event((struct agent_event){.kind = AGENT_EVENT_JOINED,
                    .joined = {.ticket = 3, .restarts = 1, .node_count = 2}},
        "joined ticket=3 restarts=1 nodes=2");
    check_event(
        (struct agent_event){.kind = AGENT_EVENT_JOIN_FAILED, .ticket = 3}, "join_failed ticket=3");
    check_event((struct agent_event){.kind = AGENT_EVENT_ROUND_OVER}, "round_over");
    check_event((struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
                    .worker_exited = {.local_rank = 3,
                        .exit = {.is_signal = true, .value = 11, .has_dumped_core = true}}},
        "worker_exited rank=3 signal=11 core");
    check_event((struct agent_event){.kind = AGENT_EVENT_START_FAILED,
                    .start_failed = {.local_rank = 1, .message = "exec of 'x' failed"}},
        "start_failed rank=1 exec of 'x' failed");
    check_event((struct agent_event){.kind = AGENT_EVENT_WORKER_ENDING,
                    .worker_exited = {.local_rank = 2, .exit = {.is_signal = true, .value = 9}}},
        "worker_ending rank=2 signal=9");
    check_event((struct agent_event){.kind = AGENT_EVENT_WORKER_STUCK,
                    .worker_stuck = {.local_rank = 1, .stuck = duration_from_seconds(5)}},
        "worker_stuck rank=1 seconds=5.000");
    check_event((struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = 2},
        "signal_received 2");
}

TEST(effects_read_as_one_line) {
    check_effect((struct agent_effect){.kind = AGENT_EFFECT_JOIN, .join = {3, 2}},
        "join ticket=3 attempt=2");
    check_effect((struct agent_effect){.kind = AGENT_EFFECT_ANNOUNCE_LEAVE}, "announce_leave");
    check_effect((struct agent_effect){.kind = AGENT_EFFECT_ARM_TIMER,
                     .deadline = {.nanoseconds = INT64_C(30007500000)}},
        "arm_timer at=30.007");
    check_effect((struct agent_effect){.kind = AGENT_EFFECT_FINISH,
                     .outcome = {.kind = AGENT_OUTCOME_SIGNALLED,
                         .signal = 15,
                         .has_abandoned_processes = true}},
        "finish signalled=15 abandoned");
}

TEST(every_kind_has_a_name) {
    for (int kind = 0; kind < AGENT_EVENT_COUNT; kind++) {
        CLEARED_BY(text_clear) struct text text = {0};
        struct agent_event event = {.kind = (enum agent_event_kind)kind};
        if (event.kind == AGENT_EVENT_START_FAILED) {
            event.start_failed.message = "";
        }
        agent_event_describe(&event, &text);
        assert_true(text.length > 0);
    }
    for (int kind = 0; kind < AGENT_EFFECT_COUNT; kind++) {
        CLEARED_BY(text_clear) struct text text = {0};
        struct agent_effect effect = {.kind = (enum agent_effect_kind)kind};
        agent_effect_describe(&effect, &text);
        assert_true(text.length > 0);
    }
    for (int phase = 0; phase < AGENT_PHASE_COUNT; phase++) {
        assert_non_null(agent_phase_name((enum agent_phase)phase));
    }
}
