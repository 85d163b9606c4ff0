/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/store/file_store.h"
#include "temporary_tree.h"

struct fixture {
    struct temporary_tree tree;
    struct event_loop *loop;
    char *path;
    struct file_change_watch *watch;
    int changes;
    bool frees_watch; /* from the callback */
};

static void changed(void *context) {
    struct fixture *fixture = context;
    fixture->changes++;
    if (fixture->frees_watch) {
        file_change_watch_free(fixture->watch);
        fixture->watch = NULL;
    }
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    temporary_tree_init(&fixture->tree);
    temporary_tree_write(&fixture->tree, "file", "before");
    fixture->path = temporary_tree_path(&fixture->tree, "file");
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    fixture->watch = file_change_watch_new(fixture->loop, fixture->path, changed, fixture);
    assert_non_null(fixture->watch);
}

static void tear_down(struct fixture *fixture) {
    file_change_watch_free(fixture->watch);
    assert_true(event_loop_free(fixture->loop));
    free(fixture->path);
    temporary_tree_clear(&fixture->tree);
}

static void turn(struct fixture *fixture) {
    (void)event_loop_run_ready(fixture->loop);
    (void)event_loop_run_ready(fixture->loop);
}

static void tells_of_a_file_that_was_written(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    turn(&fixture);
    assert_int_equal(fixture.changes, 0);
    temporary_tree_write(&fixture.tree, "file", "after");
    temporary_tree_write(&fixture.tree, "file", "later");
    turn(&fixture);
    assert_int_equal(fixture.changes, 1);
    tear_down(&fixture);
}

static void tells_of_a_file_that_was_removed_while_it_is_open(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    FILE *file = fopen(fixture.path, "rb");
    assert_non_null(file);
    assert_int_equal(unlink(fixture.path), 0);
    turn(&fixture);
    assert_int_equal(fixture.changes, 1);
    assert_int_equal(fclose(file), 0);
    tear_down(&fixture);
}

static void reading_is_no_change(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    FILE *file = fopen(fixture.path, "rb");
    assert_non_null(file);
    assert_int_equal(fgetc(file), 'b');
    assert_int_equal(fclose(file), 0);
    turn(&fixture);
    assert_int_equal(fixture.changes, 0);
    tear_down(&fixture);
}

static void what_was_drained_is_not_told(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    assert_false(file_change_watch_drain(fixture.watch));
    temporary_tree_write(&fixture.tree, "file", "after");
    assert_true(file_change_watch_drain(fixture.watch));
    turn(&fixture);
    assert_int_equal(fixture.changes, 0);
    assert_false(file_change_watch_drain(NULL));
    tear_down(&fixture);
}

static void may_be_freed_by_whom_it_tells(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    fixture.frees_watch = true;
    temporary_tree_write(&fixture.tree, "file", "after");
    turn(&fixture);
    assert_int_equal(fixture.changes, 1);
    tear_down(&fixture);
}

static void a_missing_file_is_not_watched(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    assert_null(file_change_watch_new(fixture.loop, "/nowhere/file", changed, &fixture));
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tells_of_a_file_that_was_written),
    cmocka_unit_test(tells_of_a_file_that_was_removed_while_it_is_open),
    cmocka_unit_test(reading_is_no_change),
    cmocka_unit_test(what_was_drained_is_not_told),
    cmocka_unit_test(may_be_freed_by_whom_it_tells),
    cmocka_unit_test(a_missing_file_is_not_watched),
};

UNIT_TESTS(tests)
