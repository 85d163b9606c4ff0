/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "wire/watchdog/timer_request_json.h"

static struct watchdog_request read_request(const char *line) {
    struct watchdog_request request;
    CLEARED_BY(text_clear) struct text reason = {0};
    if (timer_request_json_read(slice_from_string(line), &request, &reason) != FAILURE_NONE) {
        fail_msg("%s: %s", line, text_string(&reason));
    }
    assert_int_equal(reason.length, 0);
    return request;
}

struct expected {
    enum watchdog_request_kind kind;
    const char *scope;
    int64_t nanoseconds;
    int signal;
};

static void expect(const char *line, const struct expected *expected) {
    CLEARED_BY(watchdog_request_clear) struct watchdog_request request = read_request(line);
    assert_int_equal(request.kind, expected->kind);
    assert_int_equal(request.pid, 19374);
    assert_string_equal(request.scope, expected->scope);
    if (expected->kind == WATCHDOG_ACQUIRE) {
        assert_int_equal(request.expiration.nanoseconds, expected->nanoseconds);
        assert_int_equal(request.signal, expected->signal);
    }
}

static void expect_refusal(const char *line, const char *part) {
    struct watchdog_request request = {.pid = 1234};
    CLEARED_BY(text_clear) struct text reason = {0};
    assert_int_equal(
        timer_request_json_read(slice_from_string(line), &request, &reason), FAILURE_MALFORMED);
    if (strstr(text_string(&reason), part) == NULL) {
        fail_msg("%s: %s", line, text_string(&reason));
    }
    assert_int_equal(request.pid, 1234);
}

static struct expected timer(const char *scope, int64_t nanoseconds, int signal) {
    return (struct expected){WATCHDOG_ACQUIRE, scope, nanoseconds, signal};
}

static const struct expected released = {.kind = WATCHDOG_RELEASE, .scope = "s"};

TEST(what_the_client_writes_is_read) {
    CLEARED_BY(watchdog_request_clear)
    struct watchdog_request request =
        read_request("{\"version\": 1, \"pid\": 19374, \"scope_id\": \"myscope\", "
                     "\"expiration_time\": 1795174638.7299848, \"signal\": 9}\n");
    assert_int_equal(request.kind, WATCHDOG_ACQUIRE);
    assert_int_equal(request.pid, 19374);
    assert_string_equal(request.scope, "myscope");
    assert_in_range(request.expiration.nanoseconds, 1795174638729984000, 1795174638729985000);
    assert_int_equal(request.signal, 9);
    expect("{\"version\": 1, \"pid\": 19374, \"scope_id\": \"s\", \"expiration_time\": -1, "
           "\"signal\": 0}\n",
        &released);
}

TEST(signals_below_one_are_no_signal) {
    struct expected expected = timer("s", 0, 0);
    expect("{\"pid\":19374,\"scope_id\":\"s\",\"expiration_time\":0,\"signal\":-9}", &expected);
}

TEST(scopes_that_are_no_text_go_by_their_spelling) {
    struct expected expected = timer("5", 0, 9);
    expect("{\"pid\":19374,\"scope_id\":5,\"expiration_time\":0,\"signal\":9}", &expected);
    expected = timer("null", 0, 9);
    expect("{\"pid\":19374,\"scope_id\":null,\"expiration_time\":0,\"signal\":9}", &expected);
    expected = timer("\xc3\xa9{\"", 0, 9);
    expect("{\"pid\":19374,\"scope_id\":\"\\u00e9{\\\"\",\"expiration_time\":0,\"signal\":9}",
        &expected);
}

static void note_request(void *context, const struct watchdog_request *request) {
    text_append_format(context, "[%s]", request->scope);
}

static void note_refusal(void *context, const char *reason) {
    assert_true(*reason != '\0');
    text_append(context, "-");
}

/* A request is noted as its scope in brackets, a refused part as a dash. */
static void expect_line(const char *line, const char *expected) {
    CLEARED_BY(text_clear) struct text noted = {0};
    const struct timer_request_visitor visitor = {note_request, note_refusal, &noted};
    timer_request_json_each(slice_from_string(line), &visitor);
    assert_string_equal(text_string(&noted), expected);
}

#define REQUEST(scope)                                                                             \
    "{\"version\": 1, \"pid\": 19374, \"scope_id\": \"" scope                                      \
    "\", \"expiration_time\": 5, \"signal\": 9}"

TEST(a_request_behind_an_unfinished_one_is_read) {
    expect_line("{\"version\": 1, \"pid\": 1, \"scope_" REQUEST("s") "\n", "-[s]");
    expect_line("{\"pid\": 1, \"scope_id\": \"a{\"pid\": 2, \"sc" REQUEST("s") "\n", "--[s]");
    expect_line("rest\": 1}" REQUEST("s"), "-[s]");
}

TEST(requests_glued_together_are_all_read) {
    expect_line(REQUEST("a") REQUEST("b") REQUEST("c") "\n", "[a][b][c]");
    expect_line(REQUEST("a") "junk" REQUEST("b") "\n", "-[b]");
    expect_line(REQUEST("a{") "\n", "[a{]");
}

TEST(what_is_written_is_read) {
    char scope[] = "a \"b\"";
    struct watchdog_request request = {
        .pid = 19374, .scope = scope, .expiration = {5000001000}, .signal = 15};
    struct expected expected = timer("a \"b\"", 5000001000, 15);
    CLEARED_BY(text_clear) struct text line = {0};
    timer_request_json_write(&request, &line);
    expect(text_string(&line), &expected);
    text_clear(&line);
    request.kind = WATCHDOG_RELEASE;
    scope[0] = 's';
    scope[1] = '\0';
    timer_request_json_write(&request, &line);
    expect(text_string(&line), &released);
}

/* The fast path and the JSON reader must agree. One more blank at the front selects the JSON
 * reader. */
TEST(both_ways_of_reading_agree) {
    static const char *const times[] = {"5", "1795174638.7299848", "0.000001", "0.5", "-1",
        "9199999999.25", "99999999999", "1e3", "5.", "1.0000000001", "-1.5"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct watchdog_request requests[2];
        enum failure_code codes[2];
        for (size_t j = 0; j < 2; j++) {
            char *line = text_format("%s{\"version\": 1, \"pid\": 19374, \"scope_id\": \"a b\", "
                                     "\"expiration_time\": %s, \"signal\": 9}\n",
                j == 0 ? "" : " ", times[i]);
            codes[j] = timer_request_json_read(slice_from_string(line), &requests[j], NULL);
            free(line);
        }
        assert_int_equal(codes[0], codes[1]);
        if (codes[0] != FAILURE_NONE) {
            continue;
        }
        assert_int_equal(requests[0].kind, requests[1].kind);
        assert_string_equal(requests[0].scope, requests[1].scope);
        assert_int_equal(requests[0].signal, requests[1].signal);
        int64_t difference =
            requests[0].expiration.nanoseconds - requests[1].expiration.nanoseconds;
        assert_true(difference > -2000 && difference < 2000);
        watchdog_request_clear(&requests[0]);
        watchdog_request_clear(&requests[1]);
    }
}

TEST(a_blank_line_is_nothing) {
    expect_line("", "");
    expect_line(" \t\r\n", "");
    expect_line("x\n", "-");
}

TEST(what_is_no_request_is_refused_with_the_reason) {
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

TEST(an_endless_line_is_refused) {
    struct watchdog_request request;
    CLEARED_BY(bytes_clear) struct bytes line = {0};
    assert_int_equal(bytes_reserve(&line, TIMER_REQUEST_JSON_MAXIMUM_SIZE + 1), FAILURE_NONE);
    line.length = TIMER_REQUEST_JSON_MAXIMUM_SIZE + 1;
    memset(line.data, ' ', line.length);
    assert_int_equal(timer_request_json_read(bytes_slice(&line), &request, NULL), FAILURE_LIMIT);
}
