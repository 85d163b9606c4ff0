/* SPDX-License-Identifier: BSD-3-Clause */
/* The debuggers are shell scripts of the test, in the first directory of the PATH. */
#include "unit.h"

#include "hang_fixture.h"
#include "host/failure/hang_evidence.h"
#include "host/loop/clock.h"

static void install(struct hang_fixture *fixture, const char *name, const char *script) {
    char *path = temporary_tree_path(&fixture->tree, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
    free(path);
    char *search = text_format("%s:/usr/bin:/bin", fixture->tree.root);
    setenv("PATH", search, 1);
    free(search);
}

/* In this test no other module waits for the program. */
static void reap(void) {
    assert_true(waitpid(-1, NULL, 0) > 0);
}

static void what_the_program_says_is_in_the_report(void **state) {
    (void)state;
    struct hang_fixture fixture;
    hang_fixture_init(&fixture, "echo; exec sleep 1000");
    install(&fixture, "py-spy",
        "echo asked with $*; echo 'Thread 1 (idle): \"MainThread\"'; echo '    step (a.py:3)'");
    char *place = NULL;
    hang_evidence_write_py_spy(&fixture.report, fixture.process.pid, &place);
    char *words = text_format("asked with dump --pid %d\n", (int)fixture.process.pid);
    hang_fixture_expect(&fixture, words);
    free(words);
    assert_string_equal(place, "a.py:3 in step");
    free(place);
    reap();
    hang_fixture_clear(&fixture);
}

static void a_program_that_takes_too_long_is_killed(void **state) {
    (void)state;
    struct hang_fixture fixture;
    hang_fixture_init(&fixture, "echo; exec sleep 1000");
    install(&fixture, "gdb", "echo some; exec sleep 1000");
    fixture.report.end = instant_after(clock_now(), duration_from_milliseconds(300));
    hang_evidence_write_gdb(&fixture.report, fixture.process.pid);
    hang_fixture_expect(&fixture, "no time was left");
    reap();
    hang_fixture_clear(&fixture);
}

static void a_program_that_is_not_installed_is_missed(void **state) {
    (void)state;
    struct hang_fixture fixture;
    hang_fixture_init(&fixture, "echo; exec sleep 1000");
    setenv("PATH", fixture.tree.root, 1);
    char *place = NULL;
    hang_evidence_write_gdb(&fixture.report, fixture.process.pid);
    hang_evidence_write_py_spy(&fixture.report, fixture.process.pid, &place);
    assert_null(place);
    hang_fixture_expect(&fixture, ": it is not installed\npy-spy of process ");
    setenv("PATH", "/usr/bin:/bin", 1);
    hang_fixture_clear(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_the_program_says_is_in_the_report),
    cmocka_unit_test(a_program_that_takes_too_long_is_killed),
    cmocka_unit_test(a_program_that_is_not_installed_is_missed),
};

UNIT_TESTS(tests)
