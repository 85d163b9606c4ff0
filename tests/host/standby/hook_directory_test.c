/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <sys/stat.h>
#include <unistd.h>

#include "host/loop/files.h"
#include "host/standby/hook_directory.h"
#include "temporary_tree.h"

static void install(const struct temporary_tree *tree) {
    for (size_t i = 0; i < hook_file_count; i++) {
        if (hook_files[i].text != NULL) {
            char *name = text_format("share/muster/standby/%s", hook_files[i].name);
            temporary_tree_write(tree, name, "pass");
            free(name);
        }
    }
    temporary_tree_write(tree, "bin/muster", "");
    char *program = temporary_tree_path(tree, "bin/muster");
    char *link = temporary_tree_path(tree, "exe");
    assert_int_equal(symlink(program, link), 0);
    free(program);
    free(link);
}

#define PATIENCE duration_from_seconds(60)

/* Whether it is the installed one. */
static bool is_used(const struct temporary_tree *tree) {
    struct hook_directory directory;
    char *link = temporary_tree_path(tree, "exe");
    assert_int_equal(
        hook_directory_open_within(PATIENCE, link, tree->root, &directory, NULL), FAILURE_NONE);
    bool is_installed = !directory.is_private;
    hook_directory_close_within(PATIENCE, &directory);
    free(link);
    return is_installed;
}

/* What others may change becomes no code of this user's. */
TEST(a_hook_that_others_could_have_changed_is_not_used) {
    static const char *const names[] = {"share", "share/muster", "share/muster/standby",
        "share/muster/standby/sitecustomize.py", "share/muster/standby/muster_standby",
        "share/muster/standby/muster_standby/spare.py", "share/muster/standby/__pycache__",
        "share/muster/standby/muster_standby/__pycache__"};
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    install(&tree);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = temporary_tree_path(&tree, names[i]);
        struct stat before;
        (void)mkdir(path, 0755); /* what Python makes */
        assert_int_equal(stat(path, &before), 0);
        assert_true(is_used(&tree));
        assert_int_equal(chmod(path, before.st_mode | S_IWOTH), 0);
        assert_false(is_used(&tree));
        assert_int_equal(chmod(path, before.st_mode), 0);
        if (geteuid() == 0) {
            assert_int_equal(lchown(path, 65534, before.st_gid), 0);
            assert_false(is_used(&tree));
            assert_int_equal(lchown(path, before.st_uid, before.st_gid), 0);
        }
        free(path);
    }
    temporary_tree_clear(&tree);
}

TREE_TEST(a_hook_that_is_not_whole_is_not_used) {
    install(fixture);
    char *part = temporary_tree_path(fixture, "share/muster/standby/muster_standby/gate.py");
    assert_true(is_used(fixture));
    assert_int_equal(unlink(part), 0);
    assert_false(is_used(fixture));
    assert_int_equal(symlink("spare.py", part), 0);
    assert_false(is_used(fixture));
    free(part);
}

TREE_TEST(the_installed_hook_is_used_where_there_is_one) {
    struct hook_directory directory;
    install(fixture);
    char *link = temporary_tree_path(fixture, "exe");
    assert_int_equal(
        hook_directory_open_within(PATIENCE, link, "/no/such", &directory, NULL), FAILURE_NONE);
    char *expected = temporary_tree_path(fixture, "share/muster/standby");
    assert_string_equal(directory.path, expected);
    assert_false(directory.is_private);
    hook_directory_close_within(PATIENCE, &directory);
    char *hook = temporary_tree_path(fixture, "share/muster/standby/sitecustomize.py");
    assert_int_equal(access(hook, R_OK), 0);
    free(hook);
    free(expected);
    free(link);
}

static void assert_holds(const char *directory, const struct hook_file *file) {
    struct stat status;
    struct bytes text = {0};
    char *path = text_format("%s/%s", directory, file->name);
    if (file->text == NULL) {
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 07777, 0700);
    } else {
        assert_int_equal(whole_file_read(path, false, 1 << 20, &text, NULL), FAILURE_NONE);
        assert_true(slice_equals(bytes_slice(&text), (struct slice){file->text, file->length}));
    }
    bytes_clear(&text);
    free(path);
}

TEST(otherwise_the_programs_own_hook_gets_a_directory_for_this_user_alone) {
    struct temporary_tree tree;
    struct hook_directory directory;
    struct stat status;
    temporary_tree_init(&tree);
    assert_int_equal(
        hook_directory_open_within(PATIENCE, "/proc/self/exe", tree.root, &directory, NULL),
        FAILURE_NONE);
    assert_true(directory.is_private);
    assert_true(text_starts_with(directory.path, tree.root));
    assert_int_equal(stat(directory.path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0700);
    assert_string_equal(hook_files[0].name, "sitecustomize.py");
    for (size_t i = 0; i < hook_file_count; i++) {
        assert_holds(directory.path, &hook_files[i]);
    }
    char *cache = text_format("%s/__pycache__", directory.path);
    assert_int_equal(mkdir(cache, 0700), 0);
    hook_directory_close_within(PATIENCE, &directory);
    assert_int_equal(rmdir(tree.root), 0); /* nothing is left in it */
    free(cache);
}

TEST(a_directory_that_cannot_be_made_is_told) {
    struct hook_directory directory;
    struct failure failure;
    assert_int_equal(
        hook_directory_open_within(PATIENCE, "/proc/self/exe", "/no/such", &directory, &failure),
        FAILURE_SYSTEM);
    assert_non_null(strstr(failure.message, "/no/such"));
}

TEST(it_is_made_and_removed_on_a_thread_as_well) {
    struct temporary_tree tree;
    struct hook_directory directory;
    struct failure failure;
    temporary_tree_init(&tree);
    assert_int_equal(
        hook_directory_open_within(PATIENCE, "/proc/self/exe", tree.root, &directory, &failure),
        FAILURE_NONE);
    assert_true(text_starts_with(directory.path, tree.root));
    hook_directory_close_within(PATIENCE, &directory);
    assert_null(directory.path);
    assert_int_equal(rmdir(tree.root), 0);
    assert_int_equal(
        hook_directory_open_within(PATIENCE, "/proc/self/exe", tree.root, &directory, &failure),
        FAILURE_SYSTEM);
    assert_non_null(strstr(failure.message, tree.root));
}

TEST(what_is_removed_is_made_anew_at_its_path) {
    struct temporary_tree tree;
    struct hook_directory directory;
    struct failure failure;
    bool is_renewed = true;
    temporary_tree_init(&tree);
    assert_int_equal(
        hook_directory_open_within(PATIENCE, "/proc/self/exe", tree.root, &directory, &failure),
        FAILURE_NONE);
    assert_int_equal(
        hook_directory_renew_within(PATIENCE, &directory, &is_renewed, &failure), FAILURE_NONE);
    assert_false(is_renewed);
    char *entry = text_format("%s/%s", directory.path, hook_files[0].name);
    assert_int_equal(unlink(entry), 0); /* one that nobody has read for long */
    assert_int_equal(
        hook_directory_renew_within(PATIENCE, &directory, &is_renewed, &failure), FAILURE_NONE);
    assert_true(is_renewed);
    for (size_t i = 0; i < hook_file_count; i++) {
        assert_holds(directory.path, &hook_files[i]);
    }
    hook_directory_close_within(PATIENCE, &directory);
    assert_int_equal(rmdir(tree.root), 0);
    free(entry);
}
