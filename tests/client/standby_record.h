/* SPDX-License-Identifier: BSD-3-Clause */
/* The file in which a worker records, as tests make and read it. Include after "unit.h". */
#ifndef MUSTER_TESTS_CLIENT_STANDBY_RECORD_H
#define MUSTER_TESTS_CLIENT_STANDBY_RECORD_H

#include <stdio.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static inline int memory_file(void) {
    int fd = memfd_create("muster-standby-test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* The worker with this number has said that it is there, and nothing else. */
static inline void expect_hello(int record, pid_t pid) {
    char line[64];
    char expected[64];
    ssize_t length = pread(record, line, sizeof line - 1, 0);
    assert_true(length > 0);
    line[length] = '\0';
    snprintf(expected, sizeof expected, "hello 1 %ld\n", (long)pid);
    assert_string_equal(line, expected);
}

#endif
