/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of the log modules: a directory for files, and pipes that act as the
 * console. */
#ifndef MUSTER_TESTS_HOST_LOG_FIXTURE_H
#define MUSTER_TESTS_HOST_LOG_FIXTURE_H

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "host/loop/event_loop.h"

/* A directory for one test; `path_in` names a file in it. */
static char fixture_directory[] = "/tmp/muster_log_test_XXXXXX";

static inline int make_directory(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    memcpy(fixture_directory + sizeof fixture_directory - 7, "XXXXXX", 6);
    return mkdtemp(fixture_directory) == NULL ? -1 : 0;
}

static inline int remove_directory(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", fixture_directory);
    return system(command);
}

static inline const char *path_in(char *out_path, const char *name) {
    snprintf(out_path, 128, "%s/%s", fixture_directory, name);
    return out_path;
}

/* A signal may cut a write into a pipe short: that of a child of the test before. */
static inline void write_bytes(int fd, const char *bytes, size_t length) {
    for (size_t done = 0; done < length;) {
        ssize_t count = write(fd, bytes + done, length - done);
        assert_true(count > 0);
        done += (size_t)count;
    }
}

static inline void write_all(int fd, const char *text) {
    write_bytes(fd, text, strlen(text));
}

/* Reads everything until the end, or until a non-blocking descriptor has no more. Adds a NUL. */
static inline void read_more(int fd, struct text *out_text) {
    char buffer[4096];
    ssize_t length;
    while ((length = read(fd, buffer, sizeof buffer)) > 0) {
        text_append_bytes(out_text, buffer, (size_t)length);
    }
    assert_true(length == 0 || errno == EAGAIN);
}

static inline struct text read_file(const char *path) {
    struct text text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    read_more(fd, &text);
    close(fd);
    return text;
}

static inline void assert_file(const char *path, const char *expected) {
    struct text text = read_file(path);
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
}

/* A pipe that acts as the console. Its writing end blocks, as a shell's does; its reading end does
 * not. */
struct fake_console {
    int read_fd;
    int write_fd;
    struct text seen;
};

static inline struct fake_console open_fake_console(void) {
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    return (struct fake_console){.read_fd = ends[0], .write_fd = ends[1]};
}

static inline void close_fake_console(struct fake_console *console) {
    if (console->read_fd >= 0) {
        close(console->read_fd);
    }
    close(console->write_fd);
    text_clear(&console->seen);
}

static inline const char *look_at(struct fake_console *console) {
    read_more(console->read_fd, &console->seen);
    return text_string(&console->seen);
}

static inline size_t count_open_descriptors(void) {
    size_t count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

#endif
