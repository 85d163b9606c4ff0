/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <sys/resource.h>

#include "host/loop/descriptor_limit.h"

static void soft_limit_becomes_the_hard_one(void **state) {
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(descriptor_limit_raise(), 64);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, limit.rlim_max);
    assert_int_equal(descriptor_limit_raise(), -1);
    descriptor_limit_restore(-1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, limit.rlim_max);
}

static void earlier_limit_can_be_given_back(void **state) {
    (void)state;
    struct rlimit limit;
    descriptor_limit_restore(64);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, 64);
}

static void the_limit_that_is_read_is_the_soft_one(void **state) {
    (void)state;
    descriptor_limit_restore(64);
    assert_int_equal(descriptor_limit_read(), 64);
    assert_int_equal(descriptor_limit_raise(), 64);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    uint64_t hard = limit.rlim_max == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_max;
    assert_true(descriptor_limit_read() == hard);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(soft_limit_becomes_the_hard_one),
    cmocka_unit_test(earlier_limit_can_be_given_back),
    cmocka_unit_test(the_limit_that_is_read_is_the_soft_one),
};

UNIT_TESTS(tests)
