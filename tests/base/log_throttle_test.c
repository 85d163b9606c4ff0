/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/log.h"

static struct instant at_seconds(int64_t seconds) {
    return (struct instant){1000000000000 + seconds * 1000000000};
}

static void burst_passes_and_the_rest_is_held_back(void **state) {
    (void)state;
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

static void time_admits_records_again_and_they_say_what_is_missing(void **state) {
    (void)state;
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

static void quiet_time_gives_one_burst_back_and_no_more(void **state) {
    (void)state;
    struct log_throttle throttle = {0};
    uint64_t held_back;
    int admitted = 0;
    assert_true(log_throttle_admits(&throttle, at_seconds(0), &held_back));
    for (int i = 0; i < 3 * LOG_THROTTLE_BURST; i++) {
        admitted += log_throttle_admits(&throttle, at_seconds(100000), &held_back);
    }
    assert_int_equal(admitted, LOG_THROTTLE_BURST);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(burst_passes_and_the_rest_is_held_back),
    cmocka_unit_test(time_admits_records_again_and_they_say_what_is_missing),
    cmocka_unit_test(quiet_time_gives_one_burst_back_and_no_more),
};

UNIT_TESTS(tests)
