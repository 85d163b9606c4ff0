/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <muster/metrics.h>

static const struct muster_metric metric = {
    1700000000.5, "torchelastic", "workers.default.run_total", 1};
static const char line[] = "[1700000000.500000][torchelastic]: workers.default.run_total=1";

TEST(line_is_that_of_the_console) {
    char buffer[128];
    size_t length;
    assert_int_equal(
        muster_metric_format(&metric, buffer, sizeof buffer, &length, NULL), MUSTER_OK);
    assert_string_equal(buffer, line);
    assert_int_equal(length, strlen(line));
}

TEST(line_that_has_no_room_is_cut) {
    char buffer[8];
    size_t length = 0;
    struct muster_failure failure = {0};
    assert_int_equal(muster_metric_format(&metric, buffer, sizeof buffer, &length, &failure),
        MUSTER_ERROR_LIMIT);
    assert_string_equal(buffer, "[170000");
    assert_int_equal(length, strlen(line));
    assert_string_not_equal(failure.message, "");
    assert_int_equal(muster_metric_format(&metric, NULL, 0, &length, NULL), MUSTER_ERROR_LIMIT);
}
