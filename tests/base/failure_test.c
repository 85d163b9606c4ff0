/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>

#include "base/failure.h"

TEST(wrapping_puts_context_in_front) {
    struct failure failure = {0};
    failure_set(&failure, FAILURE_INVALID, "port %d", 70000);
    assert_int_equal(failure_wrap(&failure, "endpoint %s", "a:70000"), FAILURE_INVALID);
    assert_string_equal(failure.message, "endpoint a:70000: port 70000");
}

TEST(system_failure_carries_the_reason) {
    struct failure failure = {0};
    assert_int_equal(failure_set_system(&failure, ENOENT, "open x"), FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, ENOENT);
    assert_string_equal(failure.message, "open x: No such file or directory");
}

TEST(over_long_message_is_cut) {
    char long_text[3 * FAILURE_MESSAGE_SIZE];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    struct failure failure = {0};
    failure_set(&failure, FAILURE_LIMIT, "%s", long_text);
    failure_wrap(&failure, "context");
    assert_int_equal(strlen(failure.message), FAILURE_MESSAGE_SIZE - 1);
}

TEST(no_place_for_a_message_still_returns_the_code) {
    assert_int_equal(failure_set(NULL, FAILURE_TIMEOUT, "x"), FAILURE_TIMEOUT);
}

TEST(lack_of_descriptors_names_the_limit) {
    struct failure failure;
    failure_set_system(&failure, EMFILE, "cannot open x");
    assert_string_equal(
        failure.message, "cannot open x: Too many open files (limit on open files, see ulimit -n)");
}
