/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be said without etcd. tests/interop asks a real one. */
#include "unit.h"

#include "base/memory.h"
#include "host/register/curl_library.h"
#include "host/register/etcd_register.h"

struct fixture {
    struct event_loop *loop;
    struct job_register *job_register;
    enum register_event_kind kind;
    bool is_final;
    struct failure failure;
};

static void told(void *context, const struct register_event *event) {
    struct fixture *fixture = context;
    fixture->kind = event->kind;
    fixture->is_final = event->is_final;
    if (event->failure != NULL) {
        fixture->failure = *event->failure;
    }
    event_loop_stop(fixture->loop);
}

static enum failure_code open_at(struct fixture *fixture, const char *endpoint) {
    const struct register_settings settings = {
        .endpoint = endpoint,
        .run_id = "job",
        .node_name = "node",
        .observer = {told, fixture},
    };
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    return register_open(
        fixture->loop, &etcd_register_engine, &settings, &fixture->job_register, &fixture->failure);
}

static void tear_down(struct fixture *fixture) {
    register_free(fixture->job_register);
    assert_true(event_loop_free(fixture->loop));
}

static bool has_curl(void) {
    struct curl_library library;
    return curl_library_load(CURL_LIBRARY_NAME, &library, NULL) == FAILURE_NONE;
}

static void endpoint_that_cannot_be_read_does_not_open(void **state) {
    (void)state;
    struct fixture fixture;
    assert_int_equal(open_at(&fixture, "a:x"), FAILURE_INVALID);
    assert_non_null(strstr(fixture.failure.message, "--rdzv-endpoint"));
    tear_down(&fixture);
}

static void member_that_is_not_there_is_named_at_the_deadline(void **state) {
    (void)state;
    struct fixture fixture;
    if (!has_curl()) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    /* port 1 of the loopback: nobody listens there */
    assert_int_equal(open_at(&fixture, "127.0.0.1:1"), FAILURE_NONE);
    struct instant deadline =
        instant_after(event_loop_now(fixture.loop), duration_from_milliseconds(700));
    register_read(fixture.job_register, deadline);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.kind, REGISTER_FAILED);
    assert_false(fixture.is_final);
    tear_down(&fixture);
}

static void append_that_nobody_hears_is_unknown(void **state) {
    (void)state;
    struct fixture fixture;
    struct register_entry entry = {.number = 1,
        .term = 1,
        .host = memory_duplicate_string("h"),
        .addresses = memory_duplicate_string(""),
        .settings = memory_duplicate_string(""),
        .nonce = "0123456789abcdef0123456789abcdef"};
    if (!has_curl()) {
        register_entry_clear(&entry);
        SKIP_BECAUSE("libcurl is not installed");
    }
    assert_int_equal(open_at(&fixture, "127.0.0.1:1,[::1]:1"), FAILURE_NONE);
    struct instant deadline =
        instant_after(event_loop_now(fixture.loop), duration_from_milliseconds(100));
    register_append(fixture.job_register, &entry, deadline);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.kind, REGISTER_UNKNOWN);
    register_entry_clear(&entry);
    tear_down(&fixture);
}

static void request_under_way_ends_with_the_register(void **state) {
    (void)state;
    struct fixture fixture;
    if (!has_curl()) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    assert_int_equal(open_at(&fixture, "127.0.0.1:1"), FAILURE_NONE);
    register_renew(fixture.job_register, 1,
        instant_after(event_loop_now(fixture.loop), duration_from_seconds(3600)));
    event_loop_run_ready(fixture.loop);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(endpoint_that_cannot_be_read_does_not_open),
    cmocka_unit_test(member_that_is_not_there_is_named_at_the_deadline),
    cmocka_unit_test(append_that_nobody_hears_is_unknown),
    cmocka_unit_test(request_under_way_ends_with_the_register),
};

TEST_MAIN(tests)
