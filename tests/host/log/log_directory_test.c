/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <unistd.h>

#include "host/log/log_directory.h"
#include "temporary_tree.h"

static const struct duration long_patience = {INT64_C(60000000000)};

static struct log_directory opened(const char *log_dir, const char *run_id) {
    struct log_directory directory;
    struct failure failure = {0};
    if (log_directory_open_within(long_patience, NULL, log_dir, run_id, &directory, &failure) !=
        FAILURE_NONE) {
        fail_msg("%s", failure.message);
    }
    return directory;
}

/* The fifth round of the rendezvous. */
static char *begun(const struct log_directory *directory, int restart_count, int worker_count) {
    struct log_tree_attempt attempt = {.restart_count = restart_count, .round = 5};
    char *path;
    struct failure failure = {0};
    if (log_directory_begin_attempt(directory, &attempt, worker_count, &path, &failure) !=
        FAILURE_NONE) {
        fail_msg("%s", failure.message);
    }
    return path;
}

static unsigned mode_of(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_true(S_ISDIR(status.st_mode));
    return status.st_mode & 07777U;
}

static bool has_name_like(const char *path, const char *start, size_t random_length) {
    const char *name = strrchr(path, '/') + 1;
    return text_starts_with(name, start) && strlen(name) == strlen(start) + random_length;
}

TREE_TEST(relative_directory_becomes_absolute) {
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(fixture->root), 0);
    struct log_directory directory = opened("logs", "job");
    assert_int_equal(chdir(before), 0);
    char *base = temporary_tree_path(fixture, "logs");
    assert_string_equal(directory.base_path, base);
    assert_true(temporary_tree_has(fixture, "logs"));
    free(base);
    free(before);
    log_directory_clear(&directory);
}

TREE_TEST(two_jobs_share_a_base_and_nothing_else) {
    struct log_directory first = opened(fixture->root, "none");
    struct log_directory second = opened(fixture->root, "none");
    assert_string_equal(first.base_path, second.base_path);
    assert_string_not_equal(first.run_path, second.run_path);
    log_directory_clear(&first);
    log_directory_clear(&second);
}

TREE_TEST(unusable_run_ids_become_usable) {
    struct log_directory directory = opened(fixture->root, "team/job");
    assert_true(has_name_like(directory.run_path, "team_job_", 8));
    log_directory_clear(&directory);
    char long_id[1001];
    memset(long_id, 'x', 1000);
    long_id[1000] = '\0';
    directory = opened(fixture->root, long_id);
    assert_int_equal(mode_of(directory.run_path), 0700);
    log_directory_clear(&directory);
}

/* Defect 20 of torchrun: a group started anew without using up a restart lost its earlier logs. */
TREE_TEST(logs_of_an_earlier_incarnation_are_kept) {
    struct log_directory directory = opened(fixture->root, "job");
    char *first = begun(&directory, 0, 1);
    char *log = log_tree_file_path(first, 0, LOG_TREE_STDOUT);
    FILE *file = fopen(log, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    char *second = begun(&directory, 0, 1);
    char *third = begun(&directory, 0, 1);
    char *restarted = begun(&directory, 1, 1);
    assert_string_equal(strrchr(first, '/'), "/attempt_0");
    assert_string_equal(strrchr(second, '/'), "/attempt_0_round_5");
    assert_string_equal(strrchr(third, '/'), "/attempt_0_round_5.2");
    assert_string_equal(strrchr(restarted, '/'), "/attempt_1");
    assert_int_equal(access(log, F_OK), 0);
    free(log);
    free(first);
    free(second);
    free(third);
    free(restarted);
    log_directory_clear(&directory);
}

TREE_TEST(default_directory_is_private_and_temporary) {
    assert_int_equal(setenv("TMPDIR", fixture->root, 1), 0);
    struct log_directory directory = opened(NULL, "job");
    assert_int_equal(unsetenv("TMPDIR"), 0);
    assert_true(text_starts_with(directory.base_path, fixture->root));
    assert_true(has_name_like(directory.base_path, "torchelastic_", 8));
    assert_int_equal(mode_of(directory.base_path), 0700);
    assert_true(directory.is_temporary);
    log_directory_clear(&directory);
}

TREE_TEST(unusable_temporary_places_are_passed_over) {
    temporary_tree_write(fixture, "file", "");
    char *file = temporary_tree_path(fixture, "file");
    assert_int_equal(setenv("TMPDIR", "/no/such/place", 1), 0);
    assert_int_equal(setenv("TEMP", file, 1), 0);
    assert_int_equal(setenv("TMP", fixture->root, 1), 0);
    struct log_directory directory = opened(NULL, "job");
    assert_true(text_starts_with(directory.base_path, fixture->root));
    log_directory_clear(&directory);
    assert_int_equal(unsetenv("TMPDIR"), 0);
    assert_int_equal(unsetenv("TEMP"), 0);
    assert_int_equal(unsetenv("TMP"), 0);
    free(file);
}

TREE_TEST(one_file_keeps_the_whole_default_directory) {
    assert_int_equal(setenv("TMPDIR", fixture->root, 1), 0);
    struct log_directory directory = opened(NULL, "job");
    assert_int_equal(unsetenv("TMPDIR"), 0);
    char *attempt = begun(&directory, 0, 2);
    char *error_file = log_tree_file_path(attempt, 1, LOG_TREE_ERROR);
    assert_int_equal(symlink("nowhere", error_file), 0);
    log_directory_remove_if_empty_within(long_patience, &directory);
    assert_int_equal(access(attempt, F_OK), 0);
    char *other_rank = text_format("%s/0", attempt);
    assert_int_equal(access(other_rank, F_OK), 0);
    free(other_rank);
    free(error_file);
    free(attempt);
    log_directory_clear(&directory);
}

TREE_TEST(given_directory_stays_when_empty) {
    struct log_directory directory = opened(fixture->root, "job");
    log_directory_remove_if_empty_within(long_patience, &directory);
    assert_int_equal(mode_of(directory.run_path), 0700);
    log_directory_clear(&directory);
}

/* The kernel's own refusal of a new directory, without a file system to fill. */
TEST(attempt_that_cannot_be_made_is_named) {
    struct log_tree_attempt attempt = {.restart_count = 2};
    char run_path[] = "/proc/self";
    struct log_directory directory = {.run_path = run_path};
    char *path = run_path;
    struct failure failure;
    assert_int_equal(
        log_directory_begin_attempt(&directory, &attempt, 1, &path, &failure), FAILURE_SYSTEM);
    assert_non_null(strstr(failure.message, "/proc/self/attempt_2"));
    assert_ptr_equal(path, run_path);
}

TREE_TEST(what_others_may_write_to_is_not_taken_for_a_removed_directory) {
    struct failure failure;
    bool is_renewed;
    char *given = temporary_tree_path(fixture, "logs");
    struct log_directory directory = opened(given, "job");
    char *other = temporary_tree_path(fixture, "other");
    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(chmod(other, 0777), 0);
    assert_int_equal(rename(other, directory.run_path), 0); /* over an empty one */
    assert_int_equal(log_directory_renew(&directory, &is_renewed, &failure), FAILURE_INVALID);
    assert_non_null(strstr(failure.message, directory.run_path));
    assert_int_equal(rmdir(directory.run_path), 0);
    assert_int_equal(symlink("/", directory.run_path), 0);
    assert_int_equal(log_directory_renew(&directory, &is_renewed, &failure), FAILURE_INVALID);
    log_directory_clear(&directory);
    free(other);
    free(given);
}
