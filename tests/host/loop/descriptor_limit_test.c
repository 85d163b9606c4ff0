/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <sys/resource.h>

#include "host/loop/descriptors.h"

TEST(soft_limit_becomes_the_hard_one) {
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

TEST(earlier_limit_can_be_given_back) {
    struct rlimit limit;
    descriptor_limit_restore(64);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, 64);
}

TEST(the_limit_that_is_read_is_the_soft_one) {
    descriptor_limit_restore(64);
    assert_int_equal(descriptor_limit_read(), 64);
    assert_int_equal(descriptor_limit_raise(), 64);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    uint64_t hard = limit.rlim_max == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_max;
    assert_true(descriptor_limit_read() == hard);
}
