/* SPDX-License-Identifier: BSD-3-Clause */
/* libmuster-standby in a worker that is no standby worker: what it records for the agent. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/standby_record.h"
#include "muster/standby.h"

TEST(without_an_agent_nothing_happens) {
    unsetenv("MUSTER_STANDBY");
    assert_int_equal(muster_standby_wait(), 0);
}

TEST(worker_says_hello_and_goes_on) {
    char order[64];
    int record = memory_file();
    int fd = dup(record);
    snprintf(order, sizeof order, "fd=%d;role=record;pythonpath=0", fd);
    setenv("MUSTER_STANDBY", order, 1);
    assert_int_equal(muster_standby_wait(), 0);
    expect_hello(record, getpid());
    assert_null(getenv("MUSTER_STANDBY"));
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(muster_standby_wait(), 0);
    close(record);
}

/* A robust mutex: its word has the number of the thread that has taken it. */
static bool has_owner(int record, pid_t owner) {
    int words[16] = {0};
    assert_int_equal(pread(record, words, sizeof words, 0), sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (words[i] == (int)owner) {
            return true;
        }
    }
    return false;
}

static void *wait_on_another_thread(void *context) {
    (void)context;
    (void)muster_standby_wait();
    return NULL;
}

/* With a record that has room for it in front. */
TEST(the_first_thread_arranges_for_its_end_to_be_told_early) {
    for (int is_first_thread = 0; is_first_thread < 2; is_first_thread++) {
        char order[64];
        pthread_t thread;
        int record = memory_file();
        assert_int_equal(ftruncate(record, 4096), 0);
        assert_int_equal(fcntl(record, F_SETFL, O_APPEND), 0);
        snprintf(order, sizeof order, "fd=%d;role=record", dup(record));
        setenv("MUSTER_STANDBY", order, 1);
        if (is_first_thread) {
            assert_int_equal(muster_standby_wait(), 0);
        } else {
            assert_int_equal(pthread_create(&thread, NULL, wait_on_another_thread, NULL), 0);
            pthread_join(thread, NULL);
        }
        assert_int_equal(has_owner(record, getpid()), is_first_thread);
        char hello[8] = {0};
        assert_int_equal(pread(record, hello, 7, 4096), 7);
        assert_string_equal(hello, "hello 1");
        close(record);
    }
}

TEST(evidence_of_python_is_closed) {
    char order[64];
    int fds[] = {memory_file(), memory_file()};
    snprintf(order, sizeof order, "fd=%d;role=record;evidence=%d;signal=40", fds[0], fds[1]);
    setenv("MUSTER_STANDBY", order, 1);
    assert_int_equal(muster_standby_wait(), 0);
    assert_int_equal(fcntl(fds[1], F_GETFD), -1);
}

TEST(descriptor_that_is_another_is_left_alone) {
    char order[64];
    char byte;
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    snprintf(order, sizeof order, "fd=%d;role=record", ends[1]);
    setenv("MUSTER_STANDBY", order, 1);
    assert_int_equal(muster_standby_wait(), -1);
    assert_int_equal(errno, EBADF);
    assert_null(getenv("MUSTER_STANDBY"));
    assert_int_equal(read(ends[0], &byte, 1), -1);
    close(ends[0]);
    close(ends[1]);
}

TEST(orders_that_make_no_sense_are_refused) {
    static const char *const orders[] = {"", "fd=3", "role=record", "fd=x;role=record",
        "fd=-1;role=record", "fd=99999999999999999999;role=record", "fd=3;role=other", ";;=;fd"};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        setenv("MUSTER_STANDBY", orders[i], 1);
        assert_int_equal(muster_standby_wait(), -1);
        assert_int_equal(errno, EINVAL);
        assert_null(getenv("MUSTER_STANDBY"));
    }
}
