/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/worker_value.h"

#include <unistd.h>

#include "core/telling/run_result.h"
#include "host/standby/memory_file.h"

enum failure_code worker_value_open(
    struct worker_value *value, int *out_fd, struct failure *failure) {
    enum failure_code code = memory_file_new("muster-return-value", false, &value->fd, failure);
    if (code == FAILURE_NONE) {
        *out_fd = value->fd;
    }
    return code;
}

enum failure_code worker_value_write(int fd, struct slice bytes, struct failure *failure) {
    if (bytes.length > RUN_RETURN_VALUE_MAXIMUM) {
        return failure_set(failure, FAILURE_LIMIT,
            "the function gives %zu bytes back; up to %zu are possible", bytes.length,
            RUN_RETURN_VALUE_MAXIMUM);
    }
    return memory_file_write(fd, bytes, failure);
}

void worker_value_read(const struct worker_value *value, struct bytes *out_bytes) {
    struct bytes bytes = {0};
    if (value->fd > 0) {
        memory_file_read(value->fd, 0, RUN_RETURN_VALUE_MAXIMUM + 1, &bytes);
    }
    if (bytes.length <= RUN_RETURN_VALUE_MAXIMUM) {
        (void)!bytes_append(out_bytes, bytes.data, bytes.length);
    }
    bytes_clear(&bytes);
}

void worker_value_clear(struct worker_value *value) {
    if (value->fd > 0) {
        close(value->fd);
    }
    *value = (struct worker_value){0};
}
