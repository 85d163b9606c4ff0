/* SPDX-License-Identifier: BSD-3-Clause */
/* What each answer of a server means. tests/command has a server that keeps objects. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/register/kubernetes_register.h"

#define PATIENCE_SECONDS 3600
#define OBJECT "{\"kind\": \"Lease\", \"metadata\": {\"resourceVersion\": \"7\"}}"

struct fixture {
    struct event_loop *loop;
    struct curl_library library;
    struct kubernetes_settings settings;
    struct kubernetes_client *client;
    int listener;
    size_t answer_count;
    struct kubernetes_answer answer;
    struct text heard; /* the versions */
    const char *enough;
    struct failure why;
};

static void answered(void *context, const struct kubernetes_answer *answer) {
    struct fixture *fixture = context;
    fixture->answer_count++;
    fixture->answer = *answer;
    fixture->why = answer->why == NULL ? (struct failure){0} : *answer->why;
    kubernetes_object_free(answer->object);
    event_loop_stop(fixture->loop);
}

static bool set_up(struct fixture *fixture) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    *fixture = (struct fixture){0};
    if (curl_library_load(CURL_LIBRARY_NAME, &fixture->library, NULL) != FAILURE_NONE) {
        return false;
    }
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    fixture->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fixture->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fixture->listener, (struct sockaddr *)&address, &length), 0);
    fixture->settings = (struct kubernetes_settings){
        .server = text_format("http://127.0.0.1:%d", ntohs(address.sin_port)),
        .place = {memory_duplicate_string("ml"), memory_duplicate_string("train")},
    };
    assert_int_equal(kubernetes_client_new(fixture->loop, &fixture->library, &fixture->settings,
                         &fixture->client, NULL),
        FAILURE_NONE);
    return true;
}

static void tear_down(struct fixture *fixture) {
    kubernetes_client_free(fixture->client);
    kubernetes_settings_clear(&fixture->settings);
    assert_true(event_loop_free(fixture->loop));
    assert_int_equal(close(fixture->listener), 0);
}

/* A child that answers one request, if it begins so. */
static pid_t serve(const struct fixture *fixture, const char *start, const char *reply) {
    assert_int_equal(listen(fixture->listener, 1), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char request[2048] = {0};
        size_t length = 0;
        int connection = accept(fixture->listener, NULL, NULL);
        while (strstr(request, "\r\n\r\n") == NULL) {
            ssize_t count = read(connection, request + length, sizeof request - 1 - length);
            if (count <= 0) {
                _exit(2);
            }
            length += (size_t)count;
        }
        bool is_right = strncmp(request, start, strlen(start)) == 0;
        _exit(is_right && write(connection, reply, strlen(reply)) > 0 ? 0 : 1);
    }
    return child;
}

static struct kubernetes_question *ask(struct fixture *fixture, enum kubernetes_verb verb) {
    struct failure failure;
    return kubernetes_ask(fixture->client, verb, KUBERNETES_LEASE, NULL,
        duration_from_seconds(PATIENCE_SECONDS), answered, fixture, &failure);
}

/* Asks, and is answered with that status, header lines and body. */
static void play(struct fixture *fixture, enum kubernetes_verb verb, int status,
    const char *headers, const char *body) {
    static const char path[] = "/apis/coordination.k8s.io/v1/namespaces/ml/leases";
    char *start = text_format("%s %s%s HTTP/1.1\r\n",
        verb == KUBERNETES_GET      ? "GET"
        : verb == KUBERNETES_UPDATE ? "PUT"
                                    : "POST",
        path, verb == KUBERNETES_CREATE ? "" : "/train");
    char *reply =
        text_format("HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s", status,
            headers, strlen(body), body);
    pid_t child = serve(fixture, start, reply);
    int end = 0;
    ask(fixture, verb);
    event_loop_run(fixture->loop);
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_int_equal(end, 0);
    free(start);
    free(reply);
}

static void expect_words(const struct fixture *fixture, const char *words) {
    if (strstr(fixture->why.message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", fixture->why.message, words);
    }
    assert_non_null(strstr(fixture->why.message, fixture->settings.server));
}

static char *status_of(const char *message) {
    return text_format("{\"kind\": \"Status\", \"message\": \"%s\"}", message);
}

static void objects_are_given(void **state) {
    (void)state;
    struct fixture fixture;
    if (!set_up(&fixture)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    static const enum kubernetes_verb verbs[] = {
        KUBERNETES_GET, KUBERNETES_UPDATE, KUBERNETES_CREATE};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        play(&fixture, verbs[i], verbs[i] == KUBERNETES_CREATE ? 201 : 200, "", OBJECT);
        assert_int_equal(fixture.answer.outcome, KUBERNETES_DONE);
    }
    tear_down(&fixture);
}

static void missing_objects_and_conflicts_are_no_failures(void **state) {
    (void)state;
    struct fixture fixture;
    if (!set_up(&fixture)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    char *body = status_of("leases.coordination.k8s.io \\\"train\\\" not found");
    play(&fixture, KUBERNETES_GET, 404, "", body);
    assert_int_equal(fixture.answer.outcome, KUBERNETES_MISSING);
    play(&fixture, KUBERNETES_UPDATE, 409, "", body);
    assert_int_equal(fixture.answer.outcome, KUBERNETES_CONFLICT);
    play(&fixture, KUBERNETES_CREATE, 404, "", body);
    assert_int_equal(fixture.answer.outcome, KUBERNETES_FAILED);
    assert_true(fixture.answer.is_final && fixture.answer.is_undone);
    expect_words(&fixture, "there is no namespace 'ml'");
    free(body);
    tear_down(&fixture);
}

static void what_will_be_the_same_again_is_final(void **state) {
    (void)state;
    static const struct {
        int status;
        const char *why;
        const char *words;
    } refusals[] = {
        {400, "why", "why (HTTP status 400); for a server with TLS, write https://"},
        {401, "why", "why (HTTP status 401); it does not accept the token"},
        {403, "ann cannot get it", "it (HTTP status 403); apply the Role and RoleBinding"},
        {403, "it is being terminated", "it is being terminated (HTTP status 403)"},
        {422, "Too long: 1", "Too long: 1 (HTTP status 422); a ConfigMap holds 1 MiB"},
        {422, "it is immutable", "it is immutable (HTTP status 422)"},
        {405, "why", "why (HTTP status 405)"},
    };
    struct fixture fixture;
    if (!set_up(&fixture)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        char *body = status_of(refusals[i].why);
        play(&fixture, KUBERNETES_UPDATE, refusals[i].status, "", body);
        bool is_about_access = refusals[i].status == 401 || refusals[i].status == 403;
        assert_true(fixture.answer.is_final && fixture.answer.is_undone);
        assert_int_equal(fixture.answer.may_pass, is_about_access);
        expect_words(&fixture, refusals[i].words);
        bool has_advice = strchr(fixture.why.message, ';') != NULL;
        assert_int_equal(has_advice, strchr(refusals[i].words, ';') != NULL);
        free(body);
    }
    tear_down(&fixture);
}

static void what_may_pass_is_not_final(void **state) {
    (void)state;
    struct fixture fixture;
    if (!set_up(&fixture)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    play(&fixture, KUBERNETES_UPDATE, 503, "", "no leader");
    assert_false(fixture.answer.is_final || fixture.answer.is_undone);
    assert_int_equal(fixture.answer.pause.nanoseconds, 0);
    expect_words(&fixture, "gives no reason as an API server does (HTTP status 503)");
    play(&fixture, KUBERNETES_UPDATE, 429, "retry-AFTER: 2\r\n", "");
    assert_false(fixture.answer.is_final);
    assert_true(fixture.answer.is_undone);
    assert_true(duration_seconds(fixture.answer.pause) == 2);
    play(&fixture, KUBERNETES_UPDATE, 503, "Retry-After: 86400\r\n", "");
    assert_true(duration_seconds(fixture.answer.pause) == 30);
    play(&fixture, KUBERNETES_UPDATE, 503, "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n",
        "{\"kind\": \"Status\", \"details\": {\"retryAfterSeconds\": 4}}");
    assert_true(duration_seconds(fixture.answer.pause) == 4);
    play(&fixture, KUBERNETES_UPDATE, 504, "", "");
    assert_false(fixture.answer.is_undone);
    tear_down(&fixture);
}

static void other_servers_are_found_out(void **state) {
    (void)state;
    static const struct {
        int status;
        const char *body;
    } replies[] = {{200, "<html>welcome</html>"}, {200, "{}"}, {404, "<html>not found</html>"},
        {302, ""}, {204, ""}};
    struct fixture fixture;
    if (!set_up(&fixture)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        play(&fixture, KUBERNETES_GET, replies[i].status, "", replies[i].body);
        assert_true(fixture.answer.is_final);
        expect_words(&fixture, "what answers there is no API server of Kubernetes");
    }
    tear_down(&fixture);
}

static void server_that_is_not_there_is_named(void **state) {
    (void)state;
    struct fixture fixture;
    if (!set_up(&fixture)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    ask(&fixture, KUBERNETES_UPDATE); /* nobody listens */
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.answer.outcome, KUBERNETES_FAILED);
    assert_true(fixture.answer.is_undone);
    assert_false(fixture.answer.is_final);
    expect_words(&fixture, "Kubernetes (http://127.0.0.1:");
    tear_down(&fixture);
}

static void token_that_cannot_be_read_is_told_at_once(void **state) {
    (void)state;
    struct fixture fixture;
    struct failure failure = {0};
    if (!set_up(&fixture)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    fixture.settings.token_file = memory_duplicate_string("/nowhere/token");
    assert_null(kubernetes_ask(fixture.client, KUBERNETES_GET, KUBERNETES_LEASE, NULL,
        duration_from_seconds(1), answered, &fixture, &failure));
    assert_non_null(strstr(failure.message, "/nowhere/token"));
    tear_down(&fixture);
}

/* What was heard; the last of it may be enough. */
static bool heard(void *context, struct kubernetes_object *object_or_null) {
    struct fixture *fixture = context;
    text_append(&fixture->heard,
        object_or_null == NULL ? "over " : kubernetes_object_version(object_or_null));
    text_append(&fixture->heard, object_or_null == NULL ? "" : " ");
    kubernetes_object_free(object_or_null);
    bool is_enough =
        fixture->enough != NULL && text_equals(text_string(&fixture->heard), fixture->enough);
    if (is_enough) {
        event_loop_stop(fixture->loop);
    }
    return !is_enough;
}

#define EVENT(type, version)                                                                       \
    "{\"type\": \"" type "\", \"object\": {\"kind\": \"Lease\", \"metadata\": "                    \
    "{\"resourceVersion\": \"" version "\"}}}\n"

/* Watches from version 7 on, and is answered with that. */
static void play_watch(struct fixture *fixture, int status, const char *body) {
    struct kubernetes_object *known;
    struct failure failure;
    int end = 0;
    assert_int_equal(
        kubernetes_object_read(slice_from_string(OBJECT), KUBERNETES_LEASE, &known), FAILURE_NONE);
    char *reply = text_format("HTTP/1.1 %d X\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
        status, strlen(body), body);
    pid_t child = serve(fixture,
        "GET /apis/coordination.k8s.io/v1/namespaces/ml/leases?watch=true&fieldSelector="
        "metadata.name%3Dtrain&resourceVersion=7&timeoutSeconds=3601 HTTP/1.1\r\n",
        reply);
    assert_non_null(kubernetes_watch(fixture->client, KUBERNETES_LEASE, known,
        duration_from_seconds(PATIENCE_SECONDS), heard, answered, fixture, &failure));
    event_loop_run(fixture->loop);
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_int_equal(end, 0);
    kubernetes_object_free(known);
    free(reply);
}

static void a_watch_tells_of_each_change_until_one_is_enough(void **state) {
    (void)state;
    struct fixture fixture;
    if (!set_up(&fixture)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    fixture.enough = "8 9 ";
    play_watch(&fixture, 200,
        EVENT("ADDED", "8") EVENT("BOOKMARK", "8") EVENT("MODIFIED", "9") EVENT("MODIFIED", "10"));
    assert_string_equal(text_string(&fixture.heard), "8 9 ");
    assert_int_equal(fixture.answer_count, 0);
    text_clear(&fixture.heard);
    tear_down(&fixture);
}

static void a_watch_that_the_server_ends_may_be_begun_again(void **state) {
    (void)state;
    struct fixture fixture;
    if (!set_up(&fixture)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    play_watch(&fixture, 200, EVENT("MODIFIED", "8") EVENT("ERROR", "") "half a line");
    assert_string_equal(text_string(&fixture.heard), "8 over ");
    assert_int_equal(fixture.answer_count, 1);
    assert_int_equal(fixture.answer.outcome, KUBERNETES_FAILED);
    assert_false(fixture.answer.is_final);
    expect_words(&fixture, "it tells of no more changes");
    text_clear(&fixture.heard);
    tear_down(&fixture);
}

static void a_refused_watch_is_an_answer(void **state) {
    (void)state;
    struct fixture fixture;
    if (!set_up(&fixture)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    char *body = status_of("too old resource version");
    play_watch(&fixture, 410, body);
    assert_false(fixture.answer.is_final);
    free(body);
    body = status_of("ann cannot watch it");
    play_watch(&fixture, 403, body);
    assert_true(fixture.answer.is_final);
    assert_string_equal(text_string(&fixture.heard), "");
    free(body);
    tear_down(&fixture);
}

static void cancelled_question_is_not_answered(void **state) {
    (void)state;
    struct fixture fixture;
    if (!set_up(&fixture)) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    struct kubernetes_question *question = ask(&fixture, KUBERNETES_GET);
    ask(&fixture, KUBERNETES_GET);
    kubernetes_question_cancel(question);
    event_loop_run(fixture.loop);
    event_loop_run_ready(fixture.loop);
    assert_int_equal(fixture.answer_count, 1);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(objects_are_given),
    cmocka_unit_test(missing_objects_and_conflicts_are_no_failures),
    cmocka_unit_test(what_will_be_the_same_again_is_final),
    cmocka_unit_test(what_may_pass_is_not_final),
    cmocka_unit_test(other_servers_are_found_out),
    cmocka_unit_test(server_that_is_not_there_is_named),
    cmocka_unit_test(token_that_cannot_be_read_is_told_at_once),
    cmocka_unit_test(a_watch_tells_of_each_change_until_one_is_enough),
    cmocka_unit_test(a_watch_that_the_server_ends_may_be_begun_again),
    cmocka_unit_test(a_refused_watch_is_an_answer),
    cmocka_unit_test(cancelled_question_is_not_answered),
};

UNIT_TESTS(tests)
