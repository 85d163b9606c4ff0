/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be said without a server. tests/command has one. */
#include "unit.h"

#include "base/memory.h"
#include "host/register/http_client.h"
#include "host/register/kubernetes_register.h"

struct fixture {
    struct event_loop *loop;
    struct job_register *job_register;
    struct text_list conf;
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
    *fixture = (struct fixture){0};
    /* port 1 of the loopback: nobody listens there */
    text_list_add(&fixture->conf, "k8s_server=http://127.0.0.1:1");
    const struct register_settings settings = {
        .endpoint = endpoint,
        .run_id = "job",
        .node_name = "node",
        .conf = &fixture->conf,
        .observer = {told, fixture},
    };
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    return register_open(fixture->loop, &kubernetes_register_engine, &settings,
        &fixture->job_register, &fixture->failure);
}

static void tear_down(struct fixture *fixture) {
    register_free(fixture->job_register);
    text_list_clear(&fixture->conf);
    assert_true(event_loop_free(fixture->loop));
}

static bool has_curl(void) {
    struct curl_library library;
    return curl_library_load(CURL_LIBRARY_NAME, &library, NULL) == FAILURE_NONE;
}

static struct instant soon(const struct fixture *fixture) {
    return instant_after(event_loop_now(fixture->loop), duration_from_milliseconds(50));
}

static void endpoint_that_cannot_be_read_does_not_open(void **state) {
    (void)state;
    struct fixture fixture;
    assert_int_equal(open_at(&fixture, "ml/Train"), FAILURE_INVALID);
    assert_non_null(strstr(fixture.failure.message, "--rdzv-endpoint"));
    tear_down(&fixture);
}

static void server_that_is_not_there_is_named_at_the_deadline(void **state) {
    (void)state;
    struct fixture fixture;
    if (!has_curl()) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    assert_int_equal(open_at(&fixture, "ml/train"), FAILURE_NONE);
    register_read(fixture.job_register, soon(&fixture));
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
    assert_int_equal(open_at(&fixture, "ml/train"), FAILURE_NONE);
    register_append(fixture.job_register, &entry, soon(&fixture));
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
    assert_int_equal(open_at(&fixture, "ml/train"), FAILURE_NONE);
    register_renew(fixture.job_register, 1,
        instant_after(event_loop_now(fixture.loop), duration_from_seconds(3600)));
    event_loop_run_ready(fixture.loop);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(endpoint_that_cannot_be_read_does_not_open),
    cmocka_unit_test(server_that_is_not_there_is_named_at_the_deadline),
    cmocka_unit_test(append_that_nobody_hears_is_unknown),
    cmocka_unit_test(request_under_way_ends_with_the_register),
};

UNIT_TESTS(tests)
