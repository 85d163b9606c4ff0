/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/process/process_table.h"
#include "processes.h"

static void read_file(pid_t pid, const char *name, char *content, size_t size) {
    char *path = text_format("/proc/%lld/%s", (long long)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = read(fd, content, size - 1);
    assert_true(length > 0);
    content[length] = '\0';
    close(fd);
    free(path);
}

static void name_is_seen_by_others(void **state) {
    (void)state;
    char content[4096];
    int ends[2];
    char byte;
    processes_make_pipe(ends);
    pid_t pid = fork();
    if (pid == 0) {
        process_name_take("muster-other");
        close(ends[1]);
        pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    read_file(pid, "comm", content, sizeof content);
    assert_string_equal(content, "muster-other\n");
    read_file(pid, "cmdline", content, sizeof content);
    assert_string_equal(content, "muster-other");
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(name_is_seen_by_others),
};

UNIT_TESTS(tests)
