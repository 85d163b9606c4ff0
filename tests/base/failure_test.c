/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>

#include "base/failure.h"

static void wrapping_puts_context_in_front(void **state) {
    (void)state;
    struct failure failure = {0};
    failure_set(&failure, FAILURE_INVALID, "port %d", 70000);
    assert_int_equal(failure_wrap(&failure, "endpoint %s", "a:70000"), FAILURE_INVALID);
    assert_string_equal(failure.message, "endpoint a:70000: port 70000");
}

static void system_failure_carries_the_reason(void **state) {
    (void)state;
    struct failure failure = {0};
    assert_int_equal(failure_set_system(&failure, ENOENT, "open x"), FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, ENOENT);
    assert_string_equal(failure.message, "open x: No such file or directory");
}

static void over_long_message_is_cut(void **state) {
    (void)state;
    char long_text[3 * FAILURE_MESSAGE_SIZE];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    struct failure failure = {0};
    failure_set(&failure, FAILURE_LIMIT, "%s", long_text);
    failure_wrap(&failure, "context");
    assert_int_equal(strlen(failure.message), FAILURE_MESSAGE_SIZE - 1);
}

static void no_place_for_a_message_still_returns_the_code(void **state) {
    (void)state;
    assert_int_equal(failure_set(NULL, FAILURE_TIMEOUT, "x"), FAILURE_TIMEOUT);
}

static void lack_of_descriptors_names_the_limit(void **state) {
    (void)state;
    struct failure failure;
    failure_set_system(&failure, EMFILE, "cannot open x");
    assert_string_equal(
        failure.message, "cannot open x: Too many open files (limit on open files, see ulimit -n)");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lack_of_descriptors_names_the_limit),
    cmocka_unit_test(wrapping_puts_context_in_front),
    cmocka_unit_test(system_failure_carries_the_reason),
    cmocka_unit_test(over_long_message_is_cut),
    cmocka_unit_test(no_place_for_a_message_still_returns_the_code),
};

UNIT_TESTS(tests)
