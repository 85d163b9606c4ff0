/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/metrics.h. */
#include <muster/metrics.h>

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "library/library_settings.h"

enum muster_error muster_metric_format(const struct muster_metric *metric, char *buffer,
    size_t size, size_t *out_length, struct muster_failure *failure) {
    if (metric == NULL || metric->name == NULL || metric->group_name == NULL) {
        return library_fail(
            failure, MUSTER_ERROR_INVALID, "there is no metric, or it has no name or no group");
    }
    if (buffer == NULL && size > 0) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no buffer");
    }
    size_t room = size < INT_MAX ? size : INT_MAX; /* glibc 2.37 and later refuse more */
    int length = snprintf(buffer, room, "[%.6f][%s]: %s=%" PRId64, metric->timestamp,
        metric->group_name, metric->name, metric->value);
    if (length < 0) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "the metric cannot be written");
    }
    if (out_length != NULL) {
        *out_length = (size_t)length;
    }
    if ((size_t)length >= size) {
        return library_fail(
            failure, MUSTER_ERROR_LIMIT, "the line has %d bytes, and the buffer %zu", length, size);
    }
    return MUSTER_OK;
}
