/* SPDX-License-Identifier: BSD-3-Clause */
/* These tests work with any installed Python. If it has a table for debuggers, its stacks are read;
 * otherwise the report says that they cannot be read. tests/interop provides a Python with such a
 * table. */
#include "unit.h"

#include "hang_fixture.h"
#include "host/failure/hang_evidence.h"

#define HANG                                                                                       \
    "import signal\n"                                                                              \
    "def wait():\n"                                                                                \
    "    print(flush=True); signal.pause()\n"                                                      \
    "wait()\n"

static void python_is_read_or_said_to_be_unreadable(void **state) {
    (void)state;
    struct hang_fixture fixture;
    char *place;
    if (system("python3 -c '' 2>/dev/null") != 0) {
        fail_msg("no python3 on the PATH");
    }
    hang_fixture_init(&fixture, "exec python3 -c '" HANG "'");
    if (hang_evidence_write_python(&fixture.report, fixture.process.pid, "so be it", &place)) {
        assert_string_equal(place, "<string>:3 in wait");
        hang_fixture_expect(&fixture, "    <string>:4 in <module>\n");
    } else {
        assert_null(place);
        hang_fixture_expect(&fixture, "cannot be read; so be it\n");
    }
    free(place);
    hang_fixture_clear(&fixture);
}

static void other_programs_have_no_python_stack(void **state) {
    (void)state;
    struct hang_fixture fixture;
    char *place;
    hang_fixture_init(&fixture, "echo; kill -STOP $$");
    assert_false(
        hang_evidence_write_python(&fixture.report, fixture.process.pid, "so be it", &place));
    assert_null(place);
    assert_string_equal(hang_fixture_read(&fixture), "");
    hang_fixture_clear(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(python_is_read_or_said_to_be_unreadable),
    cmocka_unit_test(other_programs_have_no_python_stack),
};

UNIT_TESTS(tests)
