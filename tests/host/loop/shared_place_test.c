/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "host/loop/files.h"

#define NOBODY 65534
#define WRITING (O_WRONLY | O_CLOEXEC)

static int make_directory(void **state) {
    char path[] = "/tmp/muster_shared_place_XXXXXX";
    *state = mkdtemp(path) == NULL ? NULL : strdup(path);
    return *state == NULL ? -1 : chmod(*state, 01777);
}

static int remove_directory(void **state) {
    char *command = text_format("rm -r '%s'", (const char *)*state);
    int status = system(command);
    free(command);
    free(*state);
    return status;
}

static int open_in(const char *directory, const char *name, struct failure *failure) {
    char *path = text_format("%s/%s", directory, name);
    int fd = shared_place_open(path, WRITING, failure);
    free(path);
    return fd;
}

static mode_t mode_of(int fd) {
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    return status.st_mode & 0777;
}

#define IN_DIRECTORY(test) TEST_WITH(test, make_directory, remove_directory)

IN_DIRECTORY(a_new_file_in_a_shared_directory_is_this_users_alone) {
    struct failure failure;
    mode_t before = umask(022);
    int fd = open_in(*state, "new", &failure);
    assert_int_equal(mode_of(fd), 0600);
    close(fd);
    fd = open_in(*state, "new", &failure); /* and is used again */
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(chmod(*state, 0755), 0);
    fd = open_in(*state, "elsewhere", &failure);
    assert_int_equal(mode_of(fd), 0644);
    close(fd);
    umask(before);
}

IN_DIRECTORY(a_link_of_ones_own_is_followed) {
    struct failure failure;
    char *link = text_format("%s/link", (const char *)*state);
    char *target = text_format("%s/target", (const char *)*state);
    close(open(target, O_CREAT | WRITING, 0600));
    assert_int_equal(symlink(target, link), 0);
    assert_int_equal(shared_place_check(link, &failure), FAILURE_NONE);
    int fd = shared_place_open(link, WRITING, &failure);
    assert_true(fd >= 0);
    close(fd);
    free(link);
    free(target);
}

IN_DIRECTORY(what_another_user_has_put_there_is_not_used) {
    static const char *const names[] = {"link", "file"};
    struct failure failure;
    if (geteuid() != 0) {
        SKIP_BECAUSE("only root can make another user's file");
    }
    for (size_t i = 0; i < 2; i++) {
        char *path = text_format("%s/%s", (const char *)*state, names[i]);
        char *target = text_format("%s/target%zu", (const char *)*state, i);
        if (i == 0) {
            assert_int_equal(symlink(target, path), 0);
        } else {
            close(open(path, O_CREAT | WRITING, 0666));
        }
        assert_int_equal(lchown(path, NOBODY, NOBODY), 0);
        assert_int_equal(shared_place_check(path, &failure), FAILURE_INVALID);
        assert_int_equal(shared_place_open(path, WRITING, &failure), -1);
        assert_int_equal(failure.code, FAILURE_INVALID);
        assert_non_null(strstr(failure.message, "belongs to another user"));
        assert_int_equal(access(target, F_OK), -1);
        free(target);
        free(path);
    }
    assert_int_equal(chmod(*state, 0755), 0); /* where only its owner makes files */
    char *path = text_format("%s/file", (const char *)*state);
    assert_int_equal(shared_place_check(path, &failure), FAILURE_NONE);
    free(path);
}

TEST(what_cannot_be_opened_is_named_with_the_reason) {
    struct failure failure;
    assert_int_equal(shared_place_open("/nowhere/file", WRITING, &failure), -1);
    assert_string_equal(failure.message, "No such file or directory");
    assert_int_equal(failure.code, FAILURE_SYSTEM);
    assert_int_equal(failure.system_error, ENOENT);
}
