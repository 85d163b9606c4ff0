/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "agent/workers/attempt_logs.h"
#include "base/memory.h"
#include "temporary_tree.h"

/* Two workers whose stdout is wanted, below the tree. */
static struct attempt_files *plan(const struct temporary_tree *tree) {
    struct attempt_files *files = attempt_files_new(2);
    files->logs.run_path = memory_duplicate_string(tree->root);
    files->attempt.restart_count = 1;
    files->files[0][ATTEMPT_STDOUT].header = memory_duplicate_string("[0]:");
    files->files[1][ATTEMPT_STDOUT].header = memory_duplicate_string("[1]:");
    return files;
}

static void what_is_wanted_is_made_and_no_more(void **state) {
    (void)state;
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    struct attempt_files *files = plan(&tree);
    text_list_add(&files->needles[ATTEMPT_STDERR], "loss");
    attempt_files_make(files);
    assert_int_equal(files->code, FAILURE_NONE);
    assert_true(temporary_tree_has(&tree, "attempt_1/0/stdout.log") &&
                temporary_tree_has(&tree, "attempt_1/1/stdout.log"));
    assert_true(temporary_tree_has(&tree, "attempt_1/filtered_stderr.log"));
    assert_false(temporary_tree_has(&tree, "attempt_1/0/stderr.log"));
    assert_false(temporary_tree_has(&tree, "attempt_1/filtered_stdout.log"));
    assert_non_null(files->files[1][ATTEMPT_STDOUT].stream);
    assert_null(files->files[1][ATTEMPT_STDERR].stream);
    assert_non_null(files->filters[ATTEMPT_STDERR]);
    attempt_files_free(files);
    temporary_tree_clear(&tree);
}

static void the_first_that_cannot_be_made_ends_it(void **state) {
    (void)state;
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    struct attempt_files *files = plan(&tree);
    free(files->logs.run_path);
    files->logs.run_path = temporary_tree_path(&tree, "nowhere/job");
    attempt_files_make(files);
    assert_int_equal(files->code, FAILURE_SYSTEM);
    assert_non_null(strstr(files->failure.message, "/nowhere/job"));
    assert_null(files->directory);
    assert_null(files->files[0][ATTEMPT_STDOUT].stream);
    attempt_files_free(files);
    temporary_tree_clear(&tree);
}

static void without_a_directory_nothing_is_made(void **state) {
    (void)state;
    struct attempt_files *files = attempt_files_new(2);
    attempt_files_make(files);
    assert_int_equal(files->code, FAILURE_NONE);
    assert_null(files->directory);
    attempt_files_free(files);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_is_wanted_is_made_and_no_more),
    cmocka_unit_test(the_first_that_cannot_be_made_ends_it),
    cmocka_unit_test(without_a_directory_nothing_is_made),
};

UNIT_TESTS(tests)
