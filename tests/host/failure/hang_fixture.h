/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that hangs forever, and a report about it. Include after "unit.h". */
#ifndef MUSTER_TESTS_HANG_FIXTURE_H
#define MUSTER_TESTS_HANG_FIXTURE_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "host/failure/hang_report.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"
#include "processes.h"
#include "temporary_tree.h"

struct hang_fixture {
    struct temporary_tree tree;
    char *path; /* path of the report */
    struct hang_report report;
    struct process process;
    struct text text; /* text of the report, set when it is closed */
};

/* Starts the script, which prints a line when it is about to hang. */
static inline void hang_fixture_init(struct hang_fixture *fixture, const char *script) {
    char line[64];
    int pipe[2];
    *fixture = (struct hang_fixture){0};
    temporary_tree_init(&fixture->tree);
    fixture->path = temporary_tree_path(&fixture->tree, "report");
    processes_make_pipe(pipe);
    fixture->process = processes_start_shell(script, pipe[1], -1);
    close(pipe[1]);
    processes_read_line(pipe[0], line, sizeof line);
    close(pipe[0]);
    struct duration a_minute = {60000000000};
    fixture->report.end = instant_after(clock_now(), a_minute);
    assert_true(hang_report_open(&fixture->report, fixture->path));
}

/* What the file says. */
static inline const char *hang_fixture_read(struct hang_fixture *fixture) {
    struct bytes bytes = {0};
    hang_report_close(&fixture->report);
    assert_int_equal(whole_file_read(fixture->path, false, 1 << 20, &bytes, NULL), FAILURE_NONE);
    text_clear(&fixture->text);
    text_append_bytes(&fixture->text, (const char *)bytes.data, bytes.length);
    bytes_clear(&bytes);
    return text_string(&fixture->text);
}

static inline void hang_fixture_expect(struct hang_fixture *fixture, const char *part) {
    if (strstr(hang_fixture_read(fixture), part) == NULL) {
        fail_msg("no \"%s\" in:\n%s", part, text_string(&fixture->text));
    }
}

static inline void hang_fixture_clear(struct hang_fixture *fixture) {
    kill(-fixture->process.pid, SIGKILL);
    processes_wait(&fixture->process);
    text_clear(&fixture->text);
    free(fixture->path);
    temporary_tree_clear(&fixture->tree);
}

/* A test that is given a fixture (unit.h). */
#define HANG_TEST(name, beginning) TEST_OF(hang_fixture, name, beginning, hang_fixture_clear)

#endif
