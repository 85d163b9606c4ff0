/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "host/loop/files.h"

TEST(a_file_has_the_bytes_it_was_made_of) {
    int fd;
    struct bytes read = {0};
    assert_int_equal(memory_file_of("test", slice_from_string("words"), &fd, NULL), FAILURE_NONE);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    memory_file_read(fd, 0, 100, &read);
    assert_true(slice_equals(bytes_slice(&read), slice_from_string("words")));
    bytes_clear(&read);
    assert_int_equal(pwrite(fd, "x", 1, 0), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(ftruncate(fd, 100), -1);
    memory_file_read(fd, 0, 3, &read);
    assert_true(slice_equals(bytes_slice(&read), slice_from_string("wor")));
    bytes_clear(&read);
    close(fd);
}

TEST(who_appends_does_not_write_over_anything) {
    int fd;
    struct bytes read = {0};
    assert_int_equal(memory_file_new("test", true, &fd, NULL), FAILURE_NONE);
    assert_int_equal(memory_file_length(fd), 0);
    assert_int_equal(write(fd, "one", 3), 3);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(write(fd, "two", 3), 3);
    assert_int_equal(memory_file_length(fd), 6);
    memory_file_read(fd, 0, 100, &read);
    assert_true(slice_equals(bytes_slice(&read), slice_from_string("onetwo")));
    bytes_clear(&read);
    close(fd);
}

TEST(a_head_stays_in_front_of_what_is_appended) {
    int fd;
    struct bytes read = {0};
    assert_int_equal(memory_file_with_head("test", 8, &fd, NULL), FAILURE_NONE);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(write(fd, "words", 5), 5);
    memory_file_read(fd, 8, 100, &read);
    assert_true(slice_equals(bytes_slice(&read), slice_from_string("words")));
    bytes_clear(&read);
    memory_file_read(fd, 8, 3, &read);
    assert_int_equal(read.length, 3);
    bytes_clear(&read);
    memory_file_read(fd, 13, 3, &read);
    assert_int_equal(read.length, 0);
    assert_int_equal(ftruncate(fd, 8), -1);
    close(fd);
}
