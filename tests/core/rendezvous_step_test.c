/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous_step.h"

static void a_moment_has_come_when_it_is_reached(void **state) {
    (void)state;
    struct moment moment = {0};
    assert_false(moment_has_come(&moment, (struct instant){INT64_MAX}));
    moment_set(&moment, (struct instant){10});
    assert_false(moment_has_come(&moment, (struct instant){9}));
    assert_true(moment_has_come(&moment, (struct instant){10}));
    moment_clear(&moment);
    assert_false(moment_has_come(&moment, (struct instant){10}));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_moment_has_come_when_it_is_reached),
};

TEST_MAIN(tests)
