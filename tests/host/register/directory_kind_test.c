/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "host/loop/directory_tree.h"
#include "host/register/dir_register.h"

TEST(failure_names_the_directory_and_says_what_to_do) {
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

TEST(failure_that_may_pass_is_not_final) {
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

TEST(local_file_systems_have_names) {
    assert_string_equal(file_system_local_name(0xef53), "ext4");
    assert_string_equal(file_system_local_name(0x01021994), "tmpfs");
    assert_null(file_system_local_name(0x6969));     /* NFS */
    assert_null(file_system_local_name(0x0bd00bd0)); /* Lustre */
    assert_null(file_system_local_name(0x65735546)); /* FUSE, which may be anything */
}

TEST(description_names_the_directory) {
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct text text = {0};
    assert_true(fd >= 0);
    directory_kind_describe(fd, "/shared", &text);
    assert_non_null(strstr(text_string(&text), "the directory of --rdzv-endpoint, /shared"));
    assert_int_equal(close(fd), 0);
    text_clear(&text);
}
