/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of muster/metrics.h and muster/error.h. */
#include "unit.h"

#include <muster/metrics.h>

#include "library/bad_input.h"

static const struct muster_metric good = {1.5, "group", "name", 1};
static struct muster_metric metric;
static char buffer[128];

static enum muster_error format(struct muster_failure *failure) {
    return muster_metric_format(&metric, buffer, sizeof buffer, NULL, failure);
}

/* Whether that is the line. */
static bool is_line(enum muster_error error, const char *line) {
    return error == MUSTER_OK && strcmp(buffer, line) == 0;
}

#define WITH(member, value) (metric = good, metric.member = (value), format(failure))

TEST(members_of_a_metric) {
    char *text = bad_input_text(200);
    REFUSED(muster_metric, group_name, IS_NULL, MUSTER_ERROR_INVALID, WITH(group_name, NULL));
    REFUSED(muster_metric, name, IS_NULL, MUSTER_ERROR_INVALID, WITH(name, NULL));
    REFUSED(muster_metric, group_name, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(group_name, text));
    REFUSED(muster_metric, name, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(name, text));
    ALLOWED(muster_metric, group_name, EMPTY, "as TorchElastic's may be",
        is_line(WITH(group_name, ""), "[1.500000][]: name=1"));
    ALLOWED(muster_metric, name, EMPTY, "as TorchElastic's may be",
        is_line(WITH(name, ""), "[1.500000][group]: =1"));
    ALLOWED(muster_metric, group_name, NOT_UTF8, "the line is only made of it",
        is_line(WITH(group_name, NO_UTF8), "[1.500000][" NO_UTF8 "]: name=1"));
    ALLOWED(muster_metric, name, NOT_UTF8, "the line is only made of it",
        is_line(WITH(name, NO_UTF8), "[1.500000][group]: " NO_UTF8 "=1"));
    ALLOWED(muster_metric, timestamp, BELOW, "before 1970",
        is_line(WITH(timestamp, -1), "[-1.000000][group]: name=1"));
    ALLOWED(muster_metric, timestamp, ABOVE, "as Python writes it",
        is_line(WITH(timestamp, INFINITY), "[inf][group]: name=1"));
    ALLOWED(muster_metric, timestamp, NOT_A_NUMBER, "as Python writes it",
        is_line(WITH(timestamp, (double)NAN), "[nan][group]: name=1"));
    ALLOWED(muster_metric, value, BELOW, "any number is one",
        is_line(WITH(value, INT64_MIN), "[1.500000][group]: name=-9223372036854775808"));
    ALLOWED(muster_metric, value, ABOVE, "any number is one",
        is_line(WITH(value, INT64_MAX), "[1.500000][group]: name=9223372036854775807"));
    free(text);
}

TEST(arguments_of_its_line) {
    size_t length = 0;
    metric = good;
    REFUSED(muster_metric_format, metric, IS_NULL, MUSTER_ERROR_INVALID,
        muster_metric_format(NULL, buffer, sizeof buffer, &length, failure));
    REFUSED(muster_metric_format, buffer, IS_NULL, MUSTER_ERROR_INVALID,
        muster_metric_format(&metric, NULL, 1, &length, failure));
    assert_int_equal(length, 0);
    REFUSED(muster_metric_format, size, BELOW, MUSTER_ERROR_LIMIT,
        muster_metric_format(&metric, NULL, 0, &length, failure));
    assert_int_equal(length, strlen("[1.500000][group]: name=1"));
    ALLOWED(muster_metric_format, size, ABOVE, "no more is written than there is",
        is_line(muster_metric_format(&metric, buffer, INT_MAX, NULL, failure),
            "[1.500000][group]: name=1"));
    ALLOWED(muster_metric_format, size, ABOVE, "no more is written than there is",
        is_line(muster_metric_format(&metric, buffer, SIZE_MAX, NULL, failure),
            "[1.500000][group]: name=1"));
    ALLOWED(muster_metric_format, out_length, IS_NULL, "it may be left out",
        muster_metric_format(&metric, buffer, sizeof buffer, NULL, failure) == MUSTER_OK);
}

TEST(codes) {
    ALLOWED(muster_error_text, error, BELOW, "what is no code has a text, too",
        strcmp(muster_error_text((enum muster_error)INT_MIN), "unknown") == 0);
    ALLOWED(muster_error_text, error, ABOVE, "what is no code has a text, too",
        strcmp(muster_error_text((enum muster_error)INT_MAX), "unknown") == 0);
}
