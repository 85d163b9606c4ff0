/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>

#include "host/process/process_spawn.h"

/* process_spawn_test causes the errors that it can cause. The words for the other errors are tested
 * here. */

static void assert_message(
    enum spawn_stage stage, int system_error, const char *program, const char *expected) {
    struct text_list candidates = {0};
    text_list_add(&candidates, program);
    const struct spawn_report report = {.stage = stage, .system_error = system_error};
    struct failure failure;
    assert_int_equal(spawn_failure_set(&failure, &report, program, &candidates), FAILURE_SYSTEM);
    assert_int_equal(failure.code, FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, system_error);
    assert_string_equal(failure.message, expected);
    text_list_clear(&candidates);
}

static void every_stage_has_its_words(void **state) {
    (void)state;
    assert_message(SPAWN_STAGE_SESSION, EPERM, "x",
        "cannot give the process a session of its own: Operation not permitted");
    assert_message(SPAWN_STAGE_DEATH_SIGNAL, EINVAL, "x",
        "cannot tie the process to the agent's life: Invalid argument");
    assert_message(SPAWN_STAGE_DESCRIPTORS, EBADF, "x",
        "cannot redirect the process' output: Bad file descriptor");
    assert_message(
        SPAWN_STAGE_CPUS, EINVAL, "x", "cannot bind the process to its CPUs: Invalid argument");
    assert_message(SPAWN_STAGE_EXECUTE, ENOMEM, "x", "cannot execute 'x': Cannot allocate memory");
}

static void execution_errors_say_what_to_look_for(void **state) {
    (void)state;
    assert_message(SPAWN_STAGE_EXECUTE, E2BIG, "x",
        "cannot execute 'x': Argument list too long (arguments and environment together are too "
        "large)");
    assert_message(SPAWN_STAGE_EXECUTE, ETXTBSY, "x",
        "cannot execute 'x': Text file busy (the file is open for writing)");
    /* The error of a program that exists but whose dynamic loader does not. Any program will do
     * here. */
    assert_message(SPAWN_STAGE_EXECUTE, ENOENT, "/proc/self/exe",
        "cannot execute '/proc/self/exe': No such file or directory (the file exists, but not the "
        "dynamic loader it asks for)");
}

static void limits_are_named(void **state) {
    (void)state;
    struct failure failure;
    assert_int_equal(spawn_failure_set_early(&failure, EAGAIN), FAILURE_SYSTEM);
    assert_string_equal(failure.message,
        "cannot start a process: Resource temporarily unavailable (limit on processes, see ulimit "
        "-u and the pids.max of the control group)");
    assert_int_equal(failure.system_error, EAGAIN);
    assert_int_equal(spawn_failure_set_early(&failure, ENOMEM), FAILURE_SYSTEM);
    assert_string_equal(failure.message, "cannot start a process: Cannot allocate memory");
}

static void failure_may_be_left_out(void **state) {
    (void)state;
    assert_int_equal(spawn_failure_set_early(NULL, EMFILE), FAILURE_SYSTEM);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_stage_has_its_words),
    cmocka_unit_test(execution_errors_say_what_to_look_for),
    cmocka_unit_test(limits_are_named),
    cmocka_unit_test(failure_may_be_left_out),
};

UNIT_TESTS(tests)
