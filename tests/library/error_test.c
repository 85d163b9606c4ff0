/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/error.h as a program sees it. */
#include "unit.h"

#include <muster/error.h>

TEST(each_code_has_a_text_of_its_own) {
    for (int left = MUSTER_OK; left <= MUSTER_ERROR_GRACEFUL_EXIT; left++) {
        const char *text = muster_error_text((enum muster_error)left);
        assert_string_not_equal(text, "unknown");
        for (int right = MUSTER_OK; right < left; right++) {
            assert_string_not_equal(text, muster_error_text((enum muster_error)right));
        }
    }
}

TEST(library_says_its_version) {
    assert_string_equal(muster_version(), MUSTER_VERSION);
}
