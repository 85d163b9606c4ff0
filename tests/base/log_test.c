/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/log.h"

TEST(every_line_of_a_message_gets_the_prefix) {
    CLEARED_BY(text_clear) struct text out = {0};
    struct log_time time = {11, 20, 9, 5, 3, 42000};
    log_format(&out, LOG_LEVEL_WARNING, &time, 77, "../src/host/x.c:5", "one\ntwo");
    assert_string_equal(text_string(&out), "W1120 09:05:03.042000 77 muster/host/x.c:5] one\n"
                                           "W1120 09:05:03.042000 77 muster/host/x.c:5] two\n");
}

static void keep_last(
    void *context, enum log_level level, const char *origin, const char *message) {
    (void)level;
    (void)origin;
    struct text *out = context;
    text_append(out, message);
}

TEST(records_below_the_threshold_are_dropped) {
    CLEARED_BY(text_clear) struct text out = {0};
    struct log log = {LOG_LEVEL_WARNING, keep_last, &out};
    log_info(&log, "quiet");
    log_error(&log, "loud %d", 1);
    log_error(NULL, "nowhere");
    assert_string_equal(text_string(&out), "loud 1");
}

TEST(levels_have_names_and_numbers) {
    enum log_level level;
    assert_int_equal(log_parse_level("INFO", &level), FAILURE_NONE);
    assert_int_equal(level, LOG_LEVEL_INFO);
    assert_int_equal(log_parse_level("40", &level), FAILURE_NONE);
    assert_int_equal(level, LOG_LEVEL_ERROR);
    assert_int_equal(log_parse_level("info", &level), FAILURE_MALFORMED);
}

/* Log throttle. */

static struct instant at_seconds(int64_t seconds) {
    return (struct instant){1000000000000 + seconds * 1000000000};
}

TEST(burst_passes_and_the_rest_is_held_back) {
    struct log_throttle throttle = {0};
    uint64_t held_back = 99;
    for (int i = 0; i < LOG_THROTTLE_BURST; i++) {
        assert_true(log_throttle_admits(&throttle, at_seconds(0), &held_back));
        assert_int_equal(held_back, 0);
    }
    held_back = 99;
    assert_false(log_throttle_admits(&throttle, at_seconds(0), &held_back));
    assert_int_equal(held_back, 99);
}

TEST(time_admits_records_again_and_they_say_what_is_missing) {
    struct log_throttle throttle = {0};
    uint64_t held_back = 0;
    for (int i = 0; i < LOG_THROTTLE_BURST + 5; i++) {
        (void)log_throttle_admits(&throttle, at_seconds(0), &held_back);
    }
    for (int i = 0; i < LOG_THROTTLE_PER_SECOND; i++) {
        assert_true(log_throttle_admits(&throttle, at_seconds(1), &held_back));
        assert_int_equal(held_back, i == 0 ? 5 : 0);
    }
    assert_false(log_throttle_admits(&throttle, at_seconds(1), &held_back));
}

TEST(quiet_time_gives_one_burst_back_and_no_more) {
    struct log_throttle throttle = {0};
    uint64_t held_back;
    int admitted = 0;
    assert_true(log_throttle_admits(&throttle, at_seconds(0), &held_back));
    for (int i = 0; i < 3 * LOG_THROTTLE_BURST; i++) {
        admitted += log_throttle_admits(&throttle, at_seconds(100000), &held_back);
    }
    assert_int_equal(admitted, LOG_THROTTLE_BURST);
}
