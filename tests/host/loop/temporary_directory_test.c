/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "host/loop/directory_tree.h"

static void expect(const struct text_list *environment, const char *const expected[]) {
    size_t i = 0;
    for (; expected[i] != NULL; i++) {
        assert_string_equal(temporary_directory_candidate(environment, i), expected[i]);
    }
    assert_null(temporary_directory_candidate(environment, i));
}

static void variables_come_first_and_only_those_that_are_set(void **state) {
    (void)state;
    struct text_list environment = {0};
    const char *const none[] = {"/tmp", "/var/tmp", "/usr/tmp", ".", NULL};
    expect(&environment, none);
    text_list_set_variable(&environment, "TMP", "/third");
    text_list_set_variable(&environment, "TEMP", "");
    text_list_set_variable(&environment, "TMPDIR", "/first");
    const char *const two[] = {"/first", "/third", "/tmp", "/var/tmp", "/usr/tmp", ".", NULL};
    expect(&environment, two);
    text_list_clear(&environment);
}

static void without_an_environment_it_is_that_of_the_process(void **state) {
    (void)state;
    setenv("TMPDIR", "/mine", 1);
    assert_string_equal(temporary_directory_candidate(NULL, 0), "/mine");
    unsetenv("TMPDIR");
    assert_string_not_equal(temporary_directory_candidate(NULL, 0), "/mine");
}

static void what_is_not_there_is_not_usable(void **state) {
    (void)state;
    struct text_list environment = {0};
    char directory[] = "/tmp/temporary_directory_test_XXXXXX";
    assert_non_null(mkdtemp(directory));
    text_list_set_variable(&environment, "TMPDIR", "/there/is/no/such/place");
    text_list_set_variable(&environment, "TEMP", directory);
    assert_string_equal(temporary_directory_usable(&environment), directory);
    rmdir(directory);
    text_list_clear(&environment);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(variables_come_first_and_only_those_that_are_set),
    cmocka_unit_test(without_an_environment_it_is_that_of_the_process),
    cmocka_unit_test(what_is_not_there_is_not_usable),
};

UNIT_TESTS(tests)
