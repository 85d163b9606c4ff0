/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "host/loop/directory_tree.h"

static char *make_directories(void) {
    char *path = text_format("/tmp/empty_directory_XXXXXX");
    char *below;
    assert_non_null(mkdtemp(path));
    for (int i = 0; i < 2; i++) {
        below = text_format("%s/%d", path, i);
        assert_int_equal(mkdir(below, 0700), 0);
        free(below);
    }
    return path;
}

static void directories_alone_are_removed(void **state) {
    (void)state;
    char *path = make_directories();
    assert_true(empty_directory_remove(path));
    assert_int_equal(access(path, F_OK), -1);
    assert_false(empty_directory_remove(path));
    free(path);
}

static void a_file_keeps_everything(void **state) {
    (void)state;
    char *path = make_directories();
    char *file = text_format("%s/1/file", path);
    close(open(file, O_CREAT | O_WRONLY, 0600));
    assert_false(empty_directory_remove(path));
    assert_int_equal(access(file, F_OK), 0);
    assert_int_equal(unlink(file), 0);
    assert_true(empty_directory_remove(path));
    free(file);
    free(path);
}

static void a_link_is_kept_and_not_followed(void **state) {
    (void)state;
    char *path = make_directories();
    char *link = text_format("%s/link", path);
    char *target = text_format("%s/0", path);
    assert_int_equal(symlink(target, link), 0);
    assert_false(empty_directory_remove(path));
    assert_int_equal(access(target, F_OK), 0);
    assert_int_equal(unlink(link), 0);
    assert_true(empty_directory_remove(path));
    free(target);
    free(link);
    free(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(directories_alone_are_removed),
    cmocka_unit_test(a_file_keeps_everything),
    cmocka_unit_test(a_link_is_kept_and_not_followed),
};

UNIT_TESTS(tests)
