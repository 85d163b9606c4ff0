/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/register/dir_register.h"
#include "temporary_place.h"

#define NONCE "0123456789abcdef0123456789abcdef"

struct fixture {
    char *path;
    struct event_loop *loop;
    struct job_register *job_register;
    enum register_event_kind kind;
    uint64_t request;
    int64_t number;
    struct text renewal;
    struct failure failure;
    bool is_final;
    bool frees_the_register;
};

/* Whether a thread of the register is at work still, or about to end. */
static bool has_blocking_calls(void) {
    bool found = false;
    DIR *directory = opendir("/proc/self/task");
    assert_non_null(directory);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        char *path = text_format("/proc/self/task/%s/comm", entry->d_name);
        char name[32] = "";
        FILE *file = fopen(path, "r");
        if (file != NULL) {
            found = (fgets(name, sizeof name, file) != NULL &&
                        text_starts_with(name, "muster-blocking")) ||
                    found;
            fclose(file);
        }
        free(path);
    }
    closedir(directory);
    return found;
}

static void told(void *context, const struct register_event *event) {
    struct fixture *fixture = context;
    fixture->kind = event->kind;
    fixture->request = event->request;
    fixture->number = event->entry == NULL ? 0 : event->entry->number;
    fixture->is_final = event->is_final;
    text_clear(&fixture->renewal);
    text_append(&fixture->renewal, event->renewal == NULL ? "" : event->renewal);
    if (event->failure != NULL) {
        fixture->failure = *event->failure;
    }
    if (fixture->frees_the_register) {
        register_free(fixture->job_register);
        fixture->job_register = NULL;
    }
    event_loop_stop(fixture->loop);
}

static void open_at(struct fixture *fixture, const char *path) {
    const struct register_settings settings = {
        .endpoint = path,
        .run_id = "job",
        .node_name = "node",
        .observer = {told, fixture},
    };
    assert_int_equal(
        register_open(fixture->loop, &dir_register_engine, &settings, &fixture->job_register, NULL),
        FAILURE_NONE);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.path = temporary_place_new()};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
}

/* A visit to the directory goes on after the register was freed. */
static void tear_down(struct fixture *fixture) {
    register_free(fixture->job_register);
    while (has_blocking_calls()) {
        usleep(1000);
    }
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->renewal);
    temporary_place_free(fixture->path);
}

static struct instant far(const struct fixture *fixture) {
    return instant_after(event_loop_now(fixture->loop), duration_from_seconds(3600));
}

static void expect_answer(
    struct fixture *fixture, uint64_t request, enum register_event_kind kind) {
    assert_int_not_equal(request, 0);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->request, request);
    assert_int_equal(fixture->kind, kind);
}

static void requests_go_to_the_directory(void **state) {
    (void)state;
    struct fixture fixture;
    struct register_entry entry = {.number = 1,
        .kind = REGISTER_ENTRY_CLAIM,
        .term = 1,
        .host = memory_duplicate_string("h"),
        .addresses = memory_duplicate_string(""),
        .settings = memory_duplicate_string(""),
        .nonce = NONCE};
    set_up(&fixture);
    open_at(&fixture, fixture.path);
    struct job_register *reg = fixture.job_register;
    expect_answer(&fixture, register_read(reg, far(&fixture)), REGISTER_READ);
    assert_int_equal(fixture.number, 0);
    expect_answer(&fixture, register_append(reg, &entry, far(&fixture)), REGISTER_WON);
    expect_answer(&fixture, register_read(reg, far(&fixture)), REGISTER_READ);
    assert_int_equal(fixture.number, 1);
    entry.nonce[0] = 'f';
    expect_answer(&fixture, register_append(reg, &entry, far(&fixture)), REGISTER_LOST);
    assert_int_equal(fixture.number, 1);
    entry.nonce[0] = '0'; /* what was won is won, however often it is asked for */
    expect_answer(&fixture, register_append(reg, &entry, far(&fixture)), REGISTER_WON);
    register_entry_clear(&entry);
    tear_down(&fixture);
}

static void each_renewal_changes_the_text(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    open_at(&fixture, fixture.path);
    struct job_register *reg = fixture.job_register;
    expect_answer(&fixture, register_renew(reg, 1, far(&fixture)), REGISTER_RENEWED);
    expect_answer(&fixture, register_renewal(reg, 1, far(&fixture)), REGISTER_RENEWAL);
    char *before = memory_duplicate_string(text_string(&fixture.renewal));
    expect_answer(&fixture, register_renewal(reg, 1, far(&fixture)), REGISTER_RENEWAL);
    assert_string_equal(text_string(&fixture.renewal), before);
    expect_answer(&fixture, register_renew(reg, 1, far(&fixture)), REGISTER_RENEWED);
    expect_answer(&fixture, register_renewal(reg, 1, far(&fixture)), REGISTER_RENEWAL);
    assert_string_not_equal(text_string(&fixture.renewal), before);
    free(before);
    tear_down(&fixture);
}

static void directory_that_cannot_be_used_is_told(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    char *path = text_format("%s/missing", fixture.path);
    open_at(&fixture, path);
    expect_answer(&fixture, register_read(fixture.job_register, far(&fixture)), REGISTER_FAILED);
    assert_true(fixture.is_final);
    assert_non_null(strstr(fixture.failure.message, path));
    free(path);
    tear_down(&fixture);
}

static void relative_directory_does_not_open(void **state) {
    (void)state;
    struct event_loop *loop;
    struct job_register *reg;
    struct failure failure;
    const struct register_settings settings = {
        .endpoint = "shared", .run_id = "job", .node_name = "node"};
    assert_int_equal(event_loop_new(&loop, NULL), FAILURE_NONE);
    assert_int_equal(
        register_open(loop, &dir_register_engine, &settings, &reg, &failure), FAILURE_INVALID);
    assert_true(event_loop_free(loop));
}

static void register_may_be_freed_where_it_tells(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    open_at(&fixture, fixture.path);
    fixture.frees_the_register = true;
    register_renew(fixture.job_register, 1, far(&fixture));
    register_read(fixture.job_register, far(&fixture));
    event_loop_run(fixture.loop); /* until one of the two is answered */
    assert_null(fixture.job_register);
    assert_int_not_equal(fixture.request, 0);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(requests_go_to_the_directory),
    cmocka_unit_test(each_renewal_changes_the_text),
    cmocka_unit_test(directory_that_cannot_be_used_is_told),
    cmocka_unit_test(relative_directory_does_not_open),
    cmocka_unit_test(register_may_be_freed_where_it_tells),
};

UNIT_TESTS(tests)
