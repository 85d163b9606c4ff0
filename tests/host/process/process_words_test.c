/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "host/process/process_table.h"
#include "processes.h"

static const char environment[] = "PATH=/bin\0A=12\0AB=3";

static void assert_rest(const char *start, const char *expected) {
    size_t length = 0;
    const char *rest = process_words_variable(start, environment, sizeof environment, &length);
    assert_non_null(rest);
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(rest, expected, length);
}

static void a_variable_is_found_by_how_it_begins(void **state) {
    (void)state;
    size_t length;
    assert_rest("A=", "12");
    assert_rest("A=1", "2");
    assert_rest("AB=3", "");
    assert_null(process_words_variable("B=", environment, sizeof environment, &length));
    assert_null(process_words_variable("PATH=/bin/", environment, sizeof environment, &length));
    assert_null(process_words_variable("PATH=/bin", environment, 3, &length)); /* it is cut */
    assert_null(process_words_variable("A=", environment, 0, &length));
}

/* Once it has said that its program runs. */
static struct process start(const char *script, int output[2]) {
    char line[16];
    processes_make_pipe(output);
    struct process process = processes_start_shell(script, output[1], -1);
    processes_read_line(output[0], line, sizeof line);
    return process;
}

static void end(const struct process *process, int output[2]) {
    kill(-process->pid, SIGKILL);
    processes_wait(process);
    close(output[0]);
    close(output[1]);
}

static void a_process_shows_what_it_was_started_with(void **state) {
    (void)state;
    int output[2];
    char rest[8];
    struct process process =
        start("exec env -i MUSTER_WORDS=begin-123456789 sh -c 'echo; sleep 1000 & wait' \"a\tb\"",
            output);
    assert_true(process_words_find(process.pid, "MUSTER_WORDS=begin-", rest, sizeof rest));
    assert_string_equal(rest, "1234567"); /* as much as fits */
    assert_false(process_words_find(process.pid, "MUSTER_WORD=", rest, sizeof rest));
    char *command = process_words_command(process.pid);
    assert_string_equal(command, "sh -c echo; sleep 1000 & wait a b");
    free(command);
    end(&process, output);
}

static void a_long_command_is_cut_between_characters(void **state) {
    (void)state;
    int output[2];
    /* 31 bytes before letters of two bytes each, and 100 are shown */
    struct process process = start("exec sh -c 'echo; sleep 1000 & wait' "
                                   "xéééééééééééééééééééééééééééééééééééééééééééééééééé",
        output);
    char *command = process_words_command(process.pid);
    assert_int_equal(strncmp(command, "sh -c echo; sleep 1000 & wait xé", 33), 0);
    assert_int_equal(strlen(command), 99 + strlen("…"));
    assert_string_equal(command + 97, "é…");
    free(command);
    end(&process, output);
}

static void nothing_is_known_of_a_process_that_is_gone(void **state) {
    (void)state;
    char rest[8];
    int output[2];
    struct process process = start("echo", output);
    end(&process, output);
    assert_false(process_words_find(process.pid, "PATH=", rest, sizeof rest));
    char *command = process_words_command(process.pid);
    assert_string_equal(command, "?");
    free(command);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_variable_is_found_by_how_it_begins),
    cmocka_unit_test(a_process_shows_what_it_was_started_with),
    cmocka_unit_test(a_long_command_is_cut_between_characters),
    cmocka_unit_test(nothing_is_known_of_a_process_that_is_gone),
};

UNIT_TESTS(tests)
