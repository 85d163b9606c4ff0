/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <sys/resource.h>

#include "host/descriptor_limit.h"

static void soft_limit_becomes_the_hard_one(void **state) {
    (void)state;
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    descriptor_limit_raise();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(limit.rlim_cur, limit.rlim_max);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(soft_limit_becomes_the_hard_one),
};

TEST_MAIN(tests)
