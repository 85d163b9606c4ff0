/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"
#include "host/process/guardian.h"

struct fixture {
    char directory[64];
    char *path; /* of what is removed */
    struct guardian_remains remains;
};

static void set_up(struct fixture *fixture, enum guardian_remains_kind kind) {
    *fixture = (struct fixture){.directory = "/tmp/guardian_remains_XXXXXX"};
    assert_non_null(mkdtemp(fixture->directory));
    fixture->path = text_format("%s/it", fixture->directory);
    guardian_remains_add(&fixture->remains, kind, fixture->path);
}

static bool is_there(const struct fixture *fixture) {
    struct stat status;
    return lstat(fixture->path, &status) == 0;
}

static void tear_down(struct fixture *fixture) {
    (void)remove(fixture->path);
    assert_int_equal(rmdir(fixture->directory), 0);
    guardian_remains_clear(&fixture->remains);
    free(fixture->path);
}

static void fifo_goes_when_nobody_reads_it(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, GUARDIAN_REMAINS_FIFO);
    assert_int_equal(mkfifo(fixture.path, 0600), 0);
    int fd = open(fixture.path, O_RDWR | O_CLOEXEC);
    guardian_remains_remove(&fixture.remains);
    assert_true(is_there(&fixture));
    close(fd);
    guardian_remains_remove(&fixture.remains);
    assert_false(is_there(&fixture));
    guardian_remains_remove(&fixture.remains);
    tear_down(&fixture);
}

static void file_in_the_place_of_a_fifo_stays(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, GUARDIAN_REMAINS_FIFO);
    close(open(fixture.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    guardian_remains_remove(&fixture.remains);
    assert_true(is_there(&fixture));
    tear_down(&fixture);
}

static void socket_goes_when_nobody_listens(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, GUARDIAN_REMAINS_SOCKET);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", fixture.path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    guardian_remains_remove(&fixture.remains);
    assert_true(is_there(&fixture));
    close(fd);
    guardian_remains_remove(&fixture.remains);
    assert_false(is_there(&fixture));
    tear_down(&fixture);
}

static void directory_goes_when_there_is_no_file(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, GUARDIAN_REMAINS_DIRECTORY);
    assert_int_equal(mkdir(fixture.path, 0700), 0);
    char *file = text_format("%s/file", fixture.path);
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    guardian_remains_remove(&fixture.remains);
    assert_true(is_there(&fixture));
    assert_int_equal(unlink(file), 0);
    guardian_remains_remove(&fixture.remains);
    assert_false(is_there(&fixture));
    free(file);
    tear_down(&fixture);
}

static void tree_goes_with_its_files_while_it_is_the_same(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, GUARDIAN_REMAINS_FIFO);
    char *file = text_format("%s/file", fixture.path);
    guardian_remains_add(&fixture.remains, GUARDIAN_REMAINS_TREE, fixture.path);
    assert_int_equal(mkdir(fixture.path, 0700), 0);
    close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    guardian_remains_remove(&fixture.remains); /* it was not there when it was added */
    assert_true(is_there(&fixture));
    guardian_remains_add(&fixture.remains, GUARDIAN_REMAINS_TREE, fixture.path);
    guardian_remains_remove(&fixture.remains);
    assert_false(is_there(&fixture));
    free(file);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fifo_goes_when_nobody_reads_it),
    cmocka_unit_test(file_in_the_place_of_a_fifo_stays),
    cmocka_unit_test(socket_goes_when_nobody_listens),
    cmocka_unit_test(directory_goes_when_there_is_no_file),
    cmocka_unit_test(tree_goes_with_its_files_while_it_is_the_same),
};

UNIT_TESTS(tests)
