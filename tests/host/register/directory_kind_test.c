/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "host/register/dir_register.h"

static void failure_names_the_directory_and_says_what_to_do(void **state) {
    (void)state;
    bool is_final = false;
    struct failure failure;
    assert_int_equal(
        directory_kind_fail("/shared", ENOSPC, "cannot write in it", &is_final, &failure),
        FAILURE_SYSTEM);
    assert_true(is_final);
    assert_int_equal(failure.system_error, ENOSPC);
    assert_string_equal(failure.message,
        "the directory of --rdzv-endpoint, /shared: cannot write in it (the file system is full: "
        "remove something): No space left on device");
}

static void failure_that_may_pass_is_not_final(void **state) {
    (void)state;
    bool is_final = true;
    struct failure failure;
    assert_int_equal(
        directory_kind_fail("/shared", EIO, "cannot list it", &is_final, &failure), FAILURE_SYSTEM);
    assert_false(is_final);
    assert_string_equal(failure.message,
        "the directory of --rdzv-endpoint, /shared: cannot list it (its disk or its server fails: "
        "the kernel's log says more): Input/output error");
    assert_int_equal(directory_kind_fail("/shared", ESTALE, "cannot list it", &is_final, &failure),
        FAILURE_SYSTEM);
    assert_false(is_final);
    assert_string_equal(failure.message,
        "the directory of --rdzv-endpoint, /shared: cannot list it (its server has another file "
        "system there by now: mount it again): Stale file handle");
    assert_int_equal(directory_kind_fail("/shared", EBUSY, "cannot list it", &is_final, &failure),
        FAILURE_SYSTEM);
    assert_false(is_final);
    assert_string_equal(failure.message,
        "the directory of --rdzv-endpoint, /shared: cannot list it: Device or resource busy");
}

static void local_file_systems_have_names(void **state) {
    (void)state;
    assert_string_equal(directory_kind_local_name(0xef53), "ext4");
    assert_string_equal(directory_kind_local_name(0x01021994), "tmpfs");
    assert_null(directory_kind_local_name(0x6969));     /* NFS */
    assert_null(directory_kind_local_name(0x0bd00bd0)); /* Lustre */
    assert_null(directory_kind_local_name(0x65735546)); /* FUSE, which may be anything */
}

static void description_names_the_directory(void **state) {
    (void)state;
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct text text = {0};
    assert_true(fd >= 0);
    directory_kind_describe(fd, "/shared", &text);
    assert_non_null(strstr(text_string(&text), "the directory of --rdzv-endpoint, /shared"));
    assert_int_equal(close(fd), 0);
    text_clear(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(failure_names_the_directory_and_says_what_to_do),
    cmocka_unit_test(failure_that_may_pass_is_not_final),
    cmocka_unit_test(local_file_systems_have_names),
    cmocka_unit_test(description_names_the_directory),
};

UNIT_TESTS(tests)
