/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/launch_options.h"

static void clearing_twice_is_harmless(void **state) {
    (void)state;
    struct text_list none = {0};
    struct launch_options options;
    launch_options_parse("torchrun", &none, &none, &options);
    assert_int_equal(options.outcome, OPTION_OUTCOME_MISTAKE);
    launch_options_clear(&options);
    launch_options_clear(&options);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(clearing_twice_is_harmless),
};

TEST_MAIN(tests)
