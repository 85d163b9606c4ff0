/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <unistd.h>

#include "agent/workers/agent_workers.h"
#include "base/memory.h"
#include "core/telling/run_result.h"
#include "processes.h"

static void what_was_written_is_read(void **state) {
    (void)state;
    struct worker_value value = {0};
    struct bytes read = {0};
    int fd;
    int before = processes_open_descriptors();
    assert_int_equal(worker_value_open(&value, &fd, NULL), FAILURE_NONE);
    worker_value_read(&value, &read);
    assert_int_equal(read.length, 0);
    assert_int_equal(worker_value_write(fd, slice_from_string("seven"), NULL), FAILURE_NONE);
    worker_value_read(&value, &read);
    assert_true(slice_equals(bytes_slice(&read), slice_from_string("seven")));
    bytes_clear(&read);
    worker_value_clear(&value);
    assert_int_equal(processes_open_descriptors(), before);
}

static void what_is_not_there_is_nothing(void **state) {
    (void)state;
    struct worker_value value = {0};
    struct bytes read = {0};
    worker_value_read(&value, &read);
    assert_int_equal(read.length, 0);
    worker_value_clear(&value);
}

static void too_much_is_neither_written_nor_read(void **state) {
    (void)state;
    struct worker_value value = {0};
    struct bytes read = {0};
    struct failure failure = {0};
    int fd;
    uint8_t *much = memory_allocate(RUN_RETURN_VALUE_MAXIMUM + 1);
    assert_int_equal(worker_value_open(&value, &fd, NULL), FAILURE_NONE);
    const struct slice too_much = {much, RUN_RETURN_VALUE_MAXIMUM + 1};
    assert_int_equal(worker_value_write(fd, too_much, &failure), FAILURE_LIMIT);
    assert_string_equal(
        failure.message, "the function gives 524289 bytes back; up to 524288 are possible");
    const struct slice most = {much, RUN_RETURN_VALUE_MAXIMUM};
    assert_int_equal(worker_value_write(fd, most, NULL), FAILURE_NONE);
    worker_value_read(&value, &read);
    assert_int_equal(read.length, RUN_RETURN_VALUE_MAXIMUM);
    bytes_clear(&read);
    assert_int_equal(write(fd, "x", 1), 1); /* past the function that checks */
    worker_value_read(&value, &read);
    assert_int_equal(read.length, 0);
    bytes_clear(&read);
    worker_value_clear(&value);
    free(much);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_written_is_read),
    cmocka_unit_test(what_is_not_there_is_nothing),
    cmocka_unit_test(too_much_is_neither_written_nor_read),
};

UNIT_TESTS(tests)
