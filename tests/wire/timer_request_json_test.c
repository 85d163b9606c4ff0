/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "wire/timer_request_json.h"

static struct watchdog_request read_request(const char *line) {
    struct watchdog_request request;
    struct text reason = {0};
    if (timer_request_json_read(slice_from_string(line), &request, &reason) != FAILURE_NONE) {
        fail_msg("%s: %s", line, text_string(&reason));
    }
    assert_int_equal(reason.length, 0);
    text_clear(&reason);
    return request;
}

struct expected {
    enum watchdog_request_kind kind;
    const char *scope;
    int64_t nanoseconds;
    int signal;
};

static void expect(const char *line, const struct expected *expected) {
    struct watchdog_request request = read_request(line);
    assert_int_equal(request.kind, expected->kind);
    assert_int_equal(request.pid, 19374);
    assert_string_equal(request.scope, expected->scope);
    if (expected->kind == WATCHDOG_ACQUIRE) {
        assert_int_equal(request.expiration.nanoseconds, expected->nanoseconds);
        assert_int_equal(request.signal, expected->signal);
    }
    watchdog_request_clear(&request);
}

static void expect_refusal(const char *line, const char *part) {
    struct watchdog_request request = {.pid = 1234};
    struct text reason = {0};
    assert_int_equal(
        timer_request_json_read(slice_from_string(line), &request, &reason), FAILURE_MALFORMED);
    if (strstr(text_string(&reason), part) == NULL) {
        fail_msg("%s: %s", line, text_string(&reason));
    }
    assert_int_equal(request.pid, 1234);
    text_clear(&reason);
}

static struct expected timer(const char *scope, int64_t nanoseconds, int signal) {
    return (struct expected){WATCHDOG_ACQUIRE, scope, nanoseconds, signal};
}

static const struct expected released = {.kind = WATCHDOG_RELEASE, .scope = "s"};

static void what_the_client_writes_is_read(void **state) {
    (void)state;
    struct watchdog_request request =
        read_request("{\"version\": 1, \"pid\": 19374, \"scope_id\": \"myscope\", "
                     "\"expiration_time\": 1795174638.7299848, \"signal\": 9}\n");
    assert_int_equal(request.kind, WATCHDOG_ACQUIRE);
    assert_int_equal(request.pid, 19374);
    assert_string_equal(request.scope, "myscope");
    assert_in_range(request.expiration.nanoseconds, 1795174638729984000, 1795174638729985000);
    assert_int_equal(request.signal, 9);
    watchdog_request_clear(&request);
    expect("{\"version\": 1, \"pid\": 19374, \"scope_id\": \"s\", \"expiration_time\": -1, "
           "\"signal\": 0}\n",
        &released);
}

static void order_version_and_strange_members_do_not_matter(void **state) {
    (void)state;
    struct expected expected = timer("s", 5000000000, 15);
    expect("{\"signal\":15,\"expiration_time\":5,\"scope_id\":\"s\",\"pid\":19374}", &expected);
    expect("{\"version\":\"x\",\"more\":[{\"a\":NaN}],\"signal\":15,\"expiration_time\":5,"
           "\"scope_id\":\"s\",\"pid\":19374}",
        &expected);
}

static void infinity_never_expires_and_minus_infinity_releases(void **state) {
    (void)state;
    expect(
        "{\"pid\":19374,\"scope_id\":\"s\",\"expiration_time\":Infinity,\"signal\":9}", &released);
    expect(
        "{\"pid\":19374,\"scope_id\":\"s\",\"expiration_time\":-Infinity,\"signal\":9}", &released);
    expect("{\"pid\":19374,\"scope_id\":\"s\",\"expiration_time\":1e300,\"signal\":9}", &released);
    expect_refusal("{\"pid\":19374,\"scope_id\":\"s\",\"expiration_time\":NaN,\"signal\":9}",
        "expiration_time");
}

static void signals_below_one_are_no_signal(void **state) {
    (void)state;
    struct expected expected = timer("s", 0, 0);
    expect("{\"pid\":19374,\"scope_id\":\"s\",\"expiration_time\":0,\"signal\":-9}", &expected);
}

static void scopes_that_are_no_text_go_by_their_spelling(void **state) {
    (void)state;
    struct expected expected = timer("5", 0, 9);
    expect("{\"pid\":19374,\"scope_id\":5,\"expiration_time\":0,\"signal\":9}", &expected);
    expected = timer("null", 0, 9);
    expect("{\"pid\":19374,\"scope_id\":null,\"expiration_time\":0,\"signal\":9}", &expected);
    expected = timer("\xc3\xa9{\"", 0, 9);
    expect("{\"pid\":19374,\"scope_id\":\"\\u00e9{\\\"\",\"expiration_time\":0,\"signal\":9}",
        &expected);
}

static void a_request_behind_an_unfinished_one_is_read(void **state) {
    (void)state;
    struct expected expected = timer("s", 5000000000, 9);
    expect("{\"version\": 1, \"pid\": 1, \"scope_{\"version\": 1, \"pid\": 19374, "
           "\"scope_id\": \"s\", \"expiration_time\": 5, \"signal\": 9}\n",
        &expected);
    expect("{\"pid\": 1, \"scope_id\": \"a{\"pid\": 2, \"sc{\"pid\": 19374, \"scope_id\": \"s\", "
           "\"expiration_time\": 5, \"signal\": 9}",
        &expected);
}

static void what_is_no_request_is_refused_with_the_reason(void **state) {
    (void)state;
    expect_refusal("", "no JSON");
    expect_refusal("\n", "no JSON");
    expect_refusal("{\"pid\": 19374, \"scope_id\"", "no JSON");
    expect_refusal("[1]", "no object");
    expect_refusal("\xff\xfe", "no JSON");
    expect_refusal("{\"scope_id\":\"s\",\"expiration_time\":0,\"signal\":9}", "pid");
    expect_refusal("{\"pid\":\"7\",\"scope_id\":\"s\",\"expiration_time\":0,\"signal\":9}", "pid");
    expect_refusal("{\"pid\":7.5,\"scope_id\":\"s\",\"expiration_time\":0,\"signal\":9}", "pid");
    expect_refusal("{\"pid\":0,\"scope_id\":\"s\",\"expiration_time\":0,\"signal\":9}", "pid");
    expect_refusal("{\"pid\":-1,\"scope_id\":\"s\",\"expiration_time\":0,\"signal\":9}", "pid");
    expect_refusal("{\"pid\":7,\"expiration_time\":0,\"signal\":9}", "scope_id");
    expect_refusal("{\"pid\":7,\"scope_id\":[],\"expiration_time\":0,\"signal\":9}", "scope_id");
    expect_refusal(
        "{\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":\"1\",\"signal\":9}", "expiration_time");
    expect_refusal("{\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1}", "signal");
    expect_refusal("{\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":9.5}", "signal");
    expect_refusal("{\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":33}", "signal");
    expect_refusal(
        "{\"pid\":7,\"scope_id\":\"s\",\"expiration_time\":1,\"signal\":4294967305}", "signal");
}

static void an_endless_line_is_refused(void **state) {
    (void)state;
    struct watchdog_request request;
    struct bytes line = {0};
    assert_int_equal(bytes_reserve(&line, TIMER_REQUEST_JSON_MAXIMUM_SIZE + 1), FAILURE_NONE);
    line.length = TIMER_REQUEST_JSON_MAXIMUM_SIZE + 1;
    memset(line.data, ' ', line.length);
    assert_int_equal(timer_request_json_read(bytes_slice(&line), &request, NULL), FAILURE_LIMIT);
    bytes_clear(&line);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_the_client_writes_is_read),
    cmocka_unit_test(order_version_and_strange_members_do_not_matter),
    cmocka_unit_test(infinity_never_expires_and_minus_infinity_releases),
    cmocka_unit_test(signals_below_one_are_no_signal),
    cmocka_unit_test(scopes_that_are_no_text_go_by_their_spelling),
    cmocka_unit_test(a_request_behind_an_unfinished_one_is_read),
    cmocka_unit_test(what_is_no_request_is_refused_with_the_reason),
    cmocka_unit_test(an_endless_line_is_refused),
};

TEST_MAIN(tests)
