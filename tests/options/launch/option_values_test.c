/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/launch/option_values.h"

static struct text reason;

static int clear(void **state) {
    (void)state;
    text_clear(&reason);
    return 0;
}

static void expect_reason(const char *part) {
    if (strstr(text_string(&reason), part) == NULL) {
        print_message("\"%s\" does not say \"%s\"\n", text_string(&reason), part);
        fail();
    }
    text_clear(&reason);
}

TEST_WITH(impossible_node_ranges_say_why, NULL, clear) {
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {{"", "a range MIN:MAX"}, {"x", "invalid value 'x'"}, {"1:2:3", "a range MIN:MAX"},
        {"1:", "a range MIN:MAX"}, {"0", "at least 1 node"}, {"0:2", "at least 1 node"},
        {"3:2", "smaller number"}, {"-1", "at least 1 node"}, {"1:99999999", "at most 65536"},
        {"99999999999999999999", "at most 65536"}, {"1.5", "a number of nodes"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int minimum = 7;
        int maximum = 7;
        assert_int_equal(
            option_parse_node_range(cases[i].text, &minimum, &maximum, &reason), FAILURE_INVALID);
        assert_int_equal(minimum + maximum, 14);
        expect_reason(cases[i].why);
    }
}

TEST_WITH(worker_counts_are_numbers_or_words, NULL, clear) {
    static const struct {
        const char *text;
        enum launch_worker_count kind;
        int count;
    } cases[] = {{"1", LAUNCH_COUNT_NUMBER, 1}, {" 4096 ", LAUNCH_COUNT_NUMBER, 4096},
        {"cpu", LAUNCH_COUNT_CPU, 0}, {"gpu", LAUNCH_COUNT_GPU, 0}, {"xpu", LAUNCH_COUNT_XPU, 0},
        {"auto", LAUNCH_COUNT_AUTO, 0}, {"npu", LAUNCH_COUNT_NAMED, 0},
        {"privateuse1", LAUNCH_COUNT_NAMED, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum launch_worker_count kind;
        int count;
        assert_int_equal(
            option_parse_worker_count(cases[i].text, &kind, &count, &reason), FAILURE_NONE);
        assert_int_equal(kind, cases[i].kind);
        assert_int_equal(count, cases[i].count);
    }
}

TEST_WITH(impossible_worker_counts_say_what_is_possible, NULL, clear) {
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {{"0", "at least 1 worker"}, {"-3", "at least 1 worker"}, {"", "cpu, gpu"},
        {"GPU", "cpu, gpu"}, {"2x", "invalid value '2x'"}, {"../npu", "such as npu"},
        {"1000000000", "at most 4096"}, {"-99999999999999999999", "at least 1"},
        {"99999999999999999999", "at most 4096"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum launch_worker_count kind;
        int count;
        assert_int_equal(
            option_parse_worker_count(cases[i].text, &kind, &count, &reason), FAILURE_INVALID);
        expect_reason(cases[i].why);
    }
}

TEST_WITH(streams_by_rank_leave_the_others_alone, NULL, clear) {
    struct launch_streams streams;
    assert_int_equal(option_parse_streams("0:1,2:3,0:2", &streams, &reason), FAILURE_NONE);
    assert_int_equal(launch_streams_for(&streams, 0), LAUNCH_STREAM_STDERR);
    assert_int_equal(launch_streams_for(&streams, 1), 0);
    assert_int_equal(launch_streams_for(&streams, 2), 3);
    assert_int_equal(launch_streams_for(&streams, 3), 0);
    free(streams.by_rank);
}

TEST_WITH(broken_streams_repeat_the_value, NULL, clear) {
    static const char *const wrong[] = {"", "4", "-1", "x", "0:4", "0:1,", ",0:1", "0:1 ,1:1",
        "0:", ":1", "00", "0:11", "0;1", "0:1:2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct launch_streams streams;
        assert_int_equal(option_parse_streams(wrong[i], &streams, &reason), FAILURE_INVALID);
        expect_reason("RANK:VALUE");
    }
    struct launch_streams streams;
    assert_int_equal(
        option_parse_streams("99999999999999999999:1", &streams, &reason), FAILURE_INVALID);
    expect_reason("from 0 to 4095");
}

TEST_WITH(rank_lists_are_sorted_and_without_repetition, NULL, clear) {
    int *ranks;
    size_t count;
    assert_int_equal(option_parse_rank_list("3, 1,3 ,-1", &ranks, &count, &reason), FAILURE_NONE);
    assert_int_equal(count, 3);
    assert_int_equal(ranks[0], -1);
    assert_int_equal(ranks[1], 1);
    assert_int_equal(ranks[2], 3);
    free(ranks);
    static const char *const wrong[] = {"0,,1", "0,", "a", "1-3", "99999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(
            option_parse_rank_list(wrong[i], &ranks, &count, &reason), FAILURE_INVALID);
        expect_reason("between commas");
    }
}

TEST_WITH(signals_are_named_in_full, NULL, clear) {
    int signals[LAUNCH_MAXIMUM_SIGNALS];
    size_t count;
    assert_int_equal(
        option_parse_signals(" SIGTERM, SIGINT,SIGTERM,SIGRTMIN+1", signals, &count, &reason),
        FAILURE_NONE);
    assert_int_equal(count, 3);
    assert_int_equal(signals[0], 15);
    assert_int_equal(signals[1], 2);
    assert_int_equal(signals[2], 35);
    assert_int_equal(option_parse_signals("", signals, &count, &reason), FAILURE_NONE);
    assert_int_equal(count, 0);
}

TEST_WITH(impossible_signals_say_why, NULL, clear) {
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {{"SIGKILL", "no process handle"}, {"SIGTERM,SIGSTOP", "no process handle"},
        {"SIGCHLD", "leave it out"}, {"TERM", "with SIG in front"}, {"15", "no signal"},
        {"SIGTERM,", "no signal"}, {"sigterm", "invalid value 'sigterm'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int signals[LAUNCH_MAXIMUM_SIGNALS];
        size_t count = 9;
        assert_int_equal(
            option_parse_signals(cases[i].text, signals, &count, &reason), FAILURE_INVALID);
        assert_int_equal(count, 9);
        expect_reason(cases[i].why);
    }
}

static void expect_amount(const char *text, uint64_t expected_bytes, int expected_percent) {
    uint64_t bytes;
    int percent;
    assert_int_equal(option_parse_memory(text, &bytes, &percent, &reason), FAILURE_NONE);
    assert_true(bytes == expected_bytes);
    assert_int_equal(percent, expected_percent);
}

TEST_WITH(memory_is_bytes_or_a_percentage, NULL, clear) {
    expect_amount("1048576", 1 << 20, 0);
    expect_amount(" 512M ", 512 << 20, 0);
    expect_amount("2g", UINT64_C(2) << 30, 0);
    expect_amount("1024K", 1 << 20, 0);
    expect_amount("1T", UINT64_C(1) << 40, 0);
    expect_amount("1%", 0, 1);
    expect_amount("100%", 0, 100);
    static const char *const mistakes[] = {"", "%", "0", "-1", "1048575", "1X", "M", "0%", "101%",
        "1.5G", "1MB", "9223372036854775807T", "4611686018427387905"};
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        uint64_t bytes;
        int percent;
        assert_int_equal(
            option_parse_memory(mistakes[i], &bytes, &percent, &reason), FAILURE_INVALID);
        assert_non_null(strstr(text_string(&reason), "give bytes, at least 1M"));
        text_clear(&reason);
    }
}

TEST_WITH(scratch_is_bytes_or_none, NULL, clear) {
    uint64_t bytes = 7;
    assert_int_equal(option_parse_scratch("64m", &bytes, &reason), FAILURE_NONE);
    assert_int_equal(bytes, 64 << 20);
    assert_int_equal(option_parse_scratch("0", &bytes, &reason), FAILURE_NONE);
    assert_int_equal(bytes, 0);
    static const char *const mistakes[] = {
        "", "2", "1023K", "-1", "10%", "1.5G", "G", "2GB", "4611686018427387905"};
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        assert_int_equal(option_parse_scratch(mistakes[i], &bytes, &reason), FAILURE_INVALID);
        assert_int_equal(bytes, 0);
        assert_non_null(strstr(text_string(&reason), "at least 1M"));
        text_clear(&reason);
    }
}

static void expect_scale_up(const char *text, enum rendezvous_scale_up expected, double seconds) {
    enum rendezvous_scale_up scale_up;
    struct duration interval;
    assert_int_equal(option_parse_scale_up(text, &scale_up, &interval, &reason), FAILURE_NONE);
    assert_int_equal(scale_up, expected);
    assert_true(duration_seconds(interval) == seconds);
}

TEST_WITH(new_nodes_are_admitted_at_once_or_never_or_now_and_then, NULL, clear) {
    expect_scale_up("immediate", RENDEZVOUS_SCALE_UP_ALLOWED, 0);
    expect_scale_up("0", RENDEZVOUS_SCALE_UP_ALLOWED, 0);
    expect_scale_up("90.5", RENDEZVOUS_SCALE_UP_ALLOWED, 90.5);
    expect_scale_up("never", RENDEZVOUS_SCALE_UP_NEVER, 0);
    static const char *const wrong[] = {"", "-1", "often", "1m", "nan", "inf", "Never"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        enum rendezvous_scale_up scale_up;
        struct duration interval;
        assert_int_equal(
            option_parse_scale_up(wrong[i], &scale_up, &interval, &reason), FAILURE_INVALID);
        expect_reason("give immediate, never");
    }
}

TEST(ends_of_workers_are_codes_and_signals) {
    struct launch_exit_on exit_on = {0};
    CLEARED_BY(text_clear) struct text why = {0};
    assert_int_equal(option_parse_exit_on("", &exit_on, &why), FAILURE_NONE);
    assert_false(exit_on.codes[17]);
    assert_int_equal(option_parse_exit_on("17, SIGBUS,255", &exit_on, &why), FAILURE_NONE);
    assert_true(exit_on.codes[17] && exit_on.codes[255] && exit_on.signals[7]);
    assert_false(exit_on.codes[7] || exit_on.signals[17]);
    static const char *const refused[] = {"0", "256", "-1", "SIGNOPE", "17,", "1.5", "BUS"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        text_clear(&why);
        assert_int_equal(option_parse_exit_on(refused[i], &exit_on, &why), FAILURE_INVALID);
        assert_non_null(strstr(text_string(&why), "is neither an exit code from 1 to 255 nor"));
    }
    assert_true(exit_on.codes[17]);
}
