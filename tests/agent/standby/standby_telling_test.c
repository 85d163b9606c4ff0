/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/standby/standby_spare.h"

static void keep(void *context, enum log_level level, const char *origin, const char *message) {
    (void)origin;
    text_append(context, level == LOG_LEVEL_INFO ? "I " : "W ");
    text_append(context, message);
}

static double rest = 10;
static enum launch_standby wanted = LAUNCH_STANDBY_ON;

static void expect(struct standby_effect effect, const char *expected) {
    struct text said = {0};
    const struct log log = {LOG_LEVEL_DEBUG, keep, &said};
    const struct launch_config config = {
        .standby = wanted, .standby_rest = rest, .standby_after = duration_from_seconds(2.5)};
    standby_tell(&log, &config, &effect);
    assert_string_equal(text_string(&said), expected);
    text_clear(&said);
}

TEST(what_is_ready_is_said_with_its_memory) {
    expect((struct standby_effect){.kind = STANDBY_EFFECT_TELL_READY,
               .told = {8, 8, 2ULL << 30, NULL, 0}},
        "I standby workers ready: 8 of 8, 2.0 GiB");
    expect((struct standby_effect){.kind = STANDBY_EFFECT_TELL_READY,
               .told = {1, 2, 15 << 20, NULL, 0}},
        "I standby workers ready: 1 of 2, 15.0 MiB");
    expect((struct standby_effect){.kind = STANDBY_EFFECT_TELL_READY,
               .told = {2, 2, 15 << 20, .at_line = 2}},
        "I standby workers ready: 2 of 2, 15.0 MiB, 2 at the line of their program");
    expect((struct standby_effect){.kind = STANDBY_EFFECT_TELL_USED, .told = {2, 2, 0, NULL, 0}},
        "I started from standby: 2 of 2 workers");
}

static void expect_awaited(struct standby_awaited awaited, const char *expected) {
    expect(
        (struct standby_effect){.kind = STANDBY_EFFECT_TELL_AWAITED, .awaited = awaited}, expected);
}

TEST(what_is_awaited_is_said_with_what_it_does) {
    expect_awaited((struct standby_awaited){.ready = 1, .total = 4, .importing = 3},
        "I standby workers: 1 of 4 ready, 3 are importing (they rest while workers want the CPU: "
        "--standby-rest)");
    rest = 0;
    expect_awaited((struct standby_awaited){.ready = 3, .total = 4, .importing = 1},
        "I standby workers: 3 of 4 ready, 1 is importing");
    rest = 10;
    expect_awaited((struct standby_awaited){.total = 4, .unbegun = 4},
        "I standby workers: 0 of 4 ready, 4 wait until no worker has imported anything for 2.5 s "
        "(--standby-after)");
    expect_awaited((struct standby_awaited){.ready = 1, .total = 4, .unbegun = 1, .ended = 2},
        "I standby workers: 1 of 4 ready, 1 waits until no worker has imported anything for 2.5 s "
        "(--standby-after), 2 have ended and are made anew later");
}

TEST(who_is_cold_is_said_with_why) {
    const enum standby_cold cold[] = {STANDBY_COLD_IMPORTING, STANDBY_COLD_NOT, STANDBY_COLD_DUE,
        STANDBY_COLD_DUE, STANDBY_COLD_DUE, STANDBY_COLD_REFUSED, STANDBY_COLD_LEARNING,
        STANDBY_COLD_ENDED, STANDBY_COLD_NONE, STANDBY_COLD_SILENT, STANDBY_COLD_SCARCE};
    expect((struct standby_effect){.kind = STANDBY_EFFECT_TELL_USED, .told = {1, 11, 0, cold, 0}},
        "I started from standby: 1 of 11 workers; cold: local rank 0 (importing), 2-4 (none yet: "
        "they import one at a time), 5 (refused), 6 (learning), 7 (ended), 8 (none yet: workers "
        "were not quiet), 9 (none: no worker has reached the hook), 10 (none: memory or processes "
        "are short)");
    const enum standby_cold off[] = {STANDBY_COLD_OFF, STANDBY_COLD_OFF};
    expect((struct standby_effect){.kind = STANDBY_EFFECT_TELL_USED, .told = {0, 2, 0, off, 0}},
        "I started from standby: 0 of 2 workers; cold: local rank 0-1 (none any more)");
}

TEST(the_end_of_standby_is_a_warning_with_its_reason) {
    expect((struct standby_effect){.kind = STANDBY_EFFECT_TELL_OFF,
               .off = {STANDBY_OFF_ENDED, 1, {.value = 3}}},
        "W the standby worker of local rank 1 ended with status 3 before it was ready; there are "
        "no standby workers in this job from now on");
    expect((struct standby_effect){.kind = STANDBY_EFFECT_TELL_OFF,
               .off = {STANDBY_OFF_DEATHS, 1, {.is_signal = true, .value = 9}}},
        "W 3 standby workers have ended, the last by signal 9; there are no standby workers in "
        "this job from now on");
    expect((struct standby_effect){.kind = STANDBY_EFFECT_TELL_OFF,
               .off = {.why = STANDBY_OFF_UNSUITED}},
        "W what nobody may import before the program runs cannot be left out of what standby "
        "workers import; there are no standby workers in this job from now on");
    expect(
        (struct standby_effect){.kind = STANDBY_EFFECT_TELL_OFF, .off = {.why = STANDBY_OFF_DIRTY}},
        "");
}

TEST(nobody_is_warned_of_what_was_not_asked_for_by_name) {
    wanted = LAUNCH_STANDBY_AUTO;
    expect((struct standby_effect){.kind = STANDBY_EFFECT_TELL_OFF,
               .off = {.why = STANDBY_OFF_UNSUITED}},
        "I what nobody may import before the program runs cannot be left out of what standby "
        "workers import; there are no standby workers in this job from now on");
    expect((struct standby_effect){.kind = STANDBY_EFFECT_TELL_SCARCE},
        "I --standby auto: there are no standby workers while they would take more than 1/20 of "
        "the memory that is available, or less than half of the processes of a cgroup are left "
        "(pids.max)");
    wanted = LAUNCH_STANDBY_ON;
}

static void expect_choice(enum standby_choice choice, const char *expected) {
    struct text said = {0};
    const struct log log = {LOG_LEVEL_DEBUG, keep, &said};
    standby_tell_choice(&log, choice, 3, 4);
    assert_string_equal(text_string(&said), expected);
    text_clear(&said);
}

TEST(why_there_are_none_is_said_where_they_were_asked_for) {
    expect_choice(STANDBY_CHOICE_OFF, "");
    expect_choice(STANDBY_CHOICE_WANTED, "");
    expect_choice(STANDBY_CHOICE_NO_RESTART,
        "I there are no standby workers: with --max-restarts 0 and a fixed number of nodes the "
        "workers are never started again");
    expect_choice(STANDBY_CHOICE_NO_PYTHON,
        "I --standby auto: there are no standby workers, since the program is not Python; "
        "--standby on makes them if it calls muster_standby_wait()");
    expect_choice(STANDBY_CHOICE_FEW_CPUS,
        "I --standby auto: there are no standby workers, since 3 worker(s) on 4 CPU(s) leave less "
        "than two CPUs for each; --standby on makes them all the same");
}

TEST(every_effect_can_be_told) {
    const struct launch_config config = {0};
    for (int kind = 0; kind < STANDBY_EFFECT_COUNT; kind++) {
        struct standby_effect effect = {.kind = (enum standby_effect_kind)kind};
        standby_tell(NULL, &config, &effect);
    }
    standby_tell_dirty(NULL, &config, 0, "why");
    standby_tell_unsuited(NULL, 0, "why", 1);
}
