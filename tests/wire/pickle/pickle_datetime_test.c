/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "pickle_fixture.h"
#include "wire/pickle/pickle_document.h"
#include "wire/pickle/pickle_reader.h"

/* Opcodes, each of which leaves one value. */
#define DATETIME_CLASS "8c086461746574696d65 8c086461746574696d65 93 "
#define TIMEZONE_CLASS "8c086461746574696d65 8c0874696d657a6f6e65 93 "
#define TIMEDELTA_CLASS "8c086461746574696d65 8c0974696d6564656c7461 93 "
#define ENCODE_FUNCTION "8c075f636f64656373 8c06656e636f6465 93 "
#define NAIVE(moment) DATETIME_CLASS "430a" moment " 85 52 "
#define AWARE(moment, zone) DATETIME_CLASS "430a" moment zone " 86 52 "
#define ZONE(days, seconds, microseconds)                                                          \
    TIMEZONE_CLASS TIMEDELTA_CLASS days seconds microseconds " 87 52 85 52 "
#define ZERO "4b00 "
#define MOMENT "07ea0b140b213001e240 " /* 2026-11-20 11:33:48.123456 */

static enum failure_code read_value(
    const char *digits, struct wall_time *out_time, struct text *out_reason) {
    static const struct pickle_limits limits = {.bytes = 2000, .values = 500, .items = 100};
    CLEARED_BY(bytes_clear) struct bytes input = {0};
    append_hexadecimal(&input, "8004");
    append_hexadecimal(&input, digits);
    append_hexadecimal(&input, "2e");
    struct pickle_document document;
    assert_int_equal(
        pickle_read(bytes_slice(&input), &limits, &document, out_reason), FAILURE_NONE);
    enum failure_code code =
        pickle_datetime_read(&document, pickle_document_root(&document), out_time, out_reason);
    pickle_document_clear(&document);
    return code;
}

static void assert_time(const char *digits, int64_t microseconds) {
    struct wall_time time;
    struct text reason = {0};
    assert_int_equal(read_value(digits, &time, &reason), FAILURE_NONE);
    assert_int_equal(time.nanoseconds, microseconds * 1000);
    assert_string_equal(text_string(&reason), "");
}

static void assert_refused(const char *digits, enum failure_code wanted, const char *why) {
    struct wall_time time = {.nanoseconds = 7};
    CLEARED_BY(text_clear) struct text reason = {0};
    assert_int_equal(read_value(digits, &time, &reason), wanted);
    assert_string_equal(text_string(&reason), why);
    assert_int_equal(time.nanoseconds, 7);
}

TEST(dates_that_do_not_exist_are_malformed) {
    static const char *const moments[] = {
        NAIVE("07ea0d140b2130000000"), NAIVE("07ea00140b2130000000"),
        NAIVE("07ea02 1d0b2130000000"), NAIVE("07ea04 1f0b2130000000"),
        NAIVE("07ea0c 200b2130000000"), NAIVE("07ea0b000b2130000000"),
        NAIVE("07ea0b14182130000000"), NAIVE("07ea0b140b3c30000000"), NAIVE("07ea0b140b213c000000"),
        NAIVE("07ea0b140b21300f4240"), NAIVE("076c02 1d0b2130000000"), /* 1900-02-29 */
    };
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        assert_refused(moments[i], FAILURE_MALFORMED, "a date that does not exist");
    }
    assert_time(NAIVE("07d0021d000000000000"), 951782400 * INT64_C(1000000)); /* 2000-02-29 */
}

TEST(dates_nanoseconds_do_not_reach_are_refused) {
    assert_refused(NAIVE("00010101000000000000"), FAILURE_LIMIT,
        "a date in the year 1, where 1678 to 2261 are read");
    assert_refused(NAIVE("270f0c1f173b3b0f423f"), FAILURE_LIMIT,
        "a date in the year 9999, where 1678 to 2261 are read");
    assert_time(NAIVE("068e0101000000000000"), -9214560000 * INT64_C(1000000));
    assert_time(AWARE("08d50c1f173b3b0f423f ", ZONE("4affffffff ", "4b01 ", ZERO)),
        9214646399999999 + 86399 * INT64_C(1000000));
}

TEST(what_is_no_datetime_is_named) {
    static const char odd_zone[] = "a datetime with an odd time zone";
    assert_refused("4e", FAILURE_MALFORMED, "no datetime");
    assert_refused(ZONE(ZERO, ZERO, ZERO), FAILURE_MALFORMED, "no datetime");
    assert_refused(DATETIME_CLASS "29 52", FAILURE_MALFORMED, "a datetime without its ten bytes");
    assert_refused(
        DATETIME_CLASS "430107 85 52", FAILURE_MALFORMED, "a datetime without its ten bytes");
    static const char *const texts[] = {
        DATETIME_CLASS ENCODE_FUNCTION "8c0141 8c066c6174696e31 86 52 85 52",
        DATETIME_CLASS ENCODE_FUNCTION "8c0c 07c4aa0b140b213001c3a240 8c066c6174696e31 86 52 85 52",
        DATETIME_CLASS ENCODE_FUNCTION "8c0c 07c3aa0b140b213001c3a240 8c0475746638 86 52 85 52",
        DATETIME_CLASS ENCODE_FUNCTION "8c0c 07c3aa0b140b213001c3a240 85 52 85 52",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_refused(texts[i], FAILURE_MALFORMED, "a datetime without its ten bytes");
    }
    assert_refused(AWARE(MOMENT, "4e"), FAILURE_MALFORMED, odd_zone);
    assert_refused(AWARE(MOMENT, TIMEZONE_CLASS "29 52"), FAILURE_MALFORMED, odd_zone);
    assert_refused(AWARE(MOMENT, ZONE("4b01 ", ZERO, ZERO)), FAILURE_MALFORMED, odd_zone);
    assert_refused(
        AWARE(MOMENT, ZONE("8a08ffffffffffffff7f ", ZERO, ZERO)), FAILURE_MALFORMED, odd_zone);
    assert_refused(AWARE(MOMENT, TIMEZONE_CLASS TIMEDELTA_CLASS "4b00 85 52 85 52"),
        FAILURE_MALFORMED, odd_zone);
}

TEST(every_day_comes_back) {
    for (int64_t day = -106000; day < 106000; day += 7) {
        uint8_t bytes[PICKLE_DATETIME_BYTES];
        pickle_datetime_encode((struct wall_time){day * 86400 * INT64_C(1000000000)}, bytes);
        struct pickle_value moment = {.kind = PICKLE_VALUE_BYTES, .bytes = {bytes, sizeof bytes}};
        struct pickle_document document = {.maximum_values = 10, .maximum_items = 10};
        struct text reason = {0};
        struct wall_time time;
        const struct pickle_value tuple = {.kind = PICKLE_VALUE_TUPLE};
        uint32_t arguments;
        uint32_t item;
        uint32_t object;
        assert_int_equal(pickle_document_add(&document, &tuple, &arguments, &reason), FAILURE_NONE);
        assert_int_equal(pickle_document_add(&document, &moment, &item, &reason), FAILURE_NONE);
        assert_int_equal(
            pickle_document_put(&document, arguments, &item, 1, &reason), FAILURE_NONE);
        assert_int_equal(pickle_document_add_object(
                             &document, PICKLE_CLASS_DATETIME, arguments, &object, &reason),
            FAILURE_NONE);
        assert_int_equal(pickle_datetime_read(&document, &document.values[object], &time, &reason),
            FAILURE_NONE);
        assert_int_equal(time.nanoseconds, day * 86400 * INT64_C(1000000000));
        pickle_document_clear(&document);
    }
}
