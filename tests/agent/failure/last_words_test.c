/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <sys/stat.h>

#include "agent/failure/agent_report.h"
#include "agent_fixture.h"
#include "workers_fixture.h"

/* Says what was warned of. */
static void keep_line(
    void *context, enum log_level level, const char *origin, const char *message) {
    (void)origin;
    assert_int_equal(level, LOG_LEVEL_WARNING);
    text_append(context, message);
}

static void end_of_the_file_is_read(void **state) {
    (void)state;
    struct workers_fixture fixture;
    struct text warnings = {0};
    const struct log log = {LOG_LEVEL_WARNING, keep_line, &warnings};
    workers_fixture_init(&fixture, 1, "printf 'one\\ntwo' > $DIR/log; exit 1");
    workers_fixture_run(&fixture);
    char *path = text_format("%s/log", fixture.agent.directory);
    char *lines = last_words_read(fixture.workers, path, &log);
    assert_string_equal(lines, "one\ntwo\n");
    assert_int_equal(warnings.length, 0);
    free(lines);
    free(path);
    workers_fixture_clear(&fixture);
}

static void file_that_cannot_be_read_is_told_of(void **state) {
    (void)state;
    struct workers_fixture fixture;
    struct text warnings = {0};
    const struct log log = {LOG_LEVEL_WARNING, keep_line, &warnings};
    workers_fixture_init(&fixture, 1, "exit 1");
    workers_fixture_run(&fixture);
    assert_null(last_words_read(fixture.workers, NULL, &log));
    assert_int_equal(warnings.length, 0);
    assert_null(last_words_read(fixture.workers, fixture.agent.directory, &log));
    assert_non_null(strstr(text_string(&warnings), "the report is without the last lines: "));
    assert_non_null(strstr(text_string(&warnings), "is not a regular file"));
    text_clear(&warnings);
    workers_fixture_clear(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(end_of_the_file_is_read),
    cmocka_unit_test(file_that_cannot_be_read_is_told_of),
};

UNIT_TESTS(tests)
