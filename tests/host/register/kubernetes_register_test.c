/* SPDX-License-Identifier: BSD-3-Clause */
/* What each answer of a server means. tests/command has a server that keeps objects. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "one_register.h"

#define PLACE "ml/train"
#define MAPS "/api/v1/namespaces/ml/configmaps"
#define STATUS(message) "{\"kind\": \"Status\", \"message\": \"" message "\"}"
#define OBJECT(label, data)                                                                        \
    "{\"kind\": \"ConfigMap\", \"metadata\": {\"resourceVersion\": \"7\", \"labels\": {" label     \
    "}}, \"data\": {" data "}}"
#define LABEL "\"app.kubernetes.io/managed-by\": \"muster\""
#define OURS OBJECT(LABEL, "")
#define ENTRY(number)                                                                              \
    "\"entry.job\": \"{\\\"muster_register\\\": 1, \\\"number\\\": " number                        \
    ", \\\"term\\\": 1, \\\"kind\\\": \\\"claim\\\", \\\"host\\\": \\\"h\\\", \\\"addresses\\\": " \
    "\\\"\\\", \\\"settings\\\": \\\"\\\", \\\"nonce\\\": "                                        \
    "\\\"fffffffffffffffffffffffffffffff0\\\", \\\"record\\\": \\\"\\\"}\""

/* The server is a child. It answers one request after the other, each on a connection of its own;
 * an unexpected one ends it with 1. */
struct reply {
    const char *request; /* how it begins; NULL: anyhow */
    int status;
    const char *headers;
    const char *body;
};

struct fixture {
    struct one_register one;
    char *place; /* with the file of a token */
    char *server;
    int listener;
    pid_t child;
};

static bool has_whole_request(const char *request) {
    const char *end = strstr(request, "\r\n\r\n");
    const char *length = strcasestr(request, "content-length:");
    return end != NULL && (length == NULL || length > end ||
                              strlen(end + 4) >= (size_t)atoi(length + strlen("content-length:")));
}

static void answer(int listener, const struct reply *reply) {
    char request[8192] = {0};
    size_t length = 0;
    int connection = accept(listener, NULL, NULL);
    while (!has_whole_request(request)) {
        ssize_t count = read(connection, request + length, sizeof request - 1 - length);
        if (count <= 0) {
            _exit(2);
        }
        length += (size_t)count;
    }
    bool is_right =
        reply->request == NULL || strncmp(request, reply->request, strlen(reply->request)) == 0;
    if (!is_right ||
        dprintf(connection, "HTTP/1.1 %d X\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
            reply->status, reply->headers == NULL ? "" : reply->headers, strlen(reply->body),
            reply->body) < 0) {
        _exit(1);
    }
    close(connection);
}

static void serve(struct fixture *fixture, const struct reply *replies, size_t count) {
    fixture->child = fork();
    assert_true(fixture->child >= 0);
    if (fixture->child == 0) {
        for (size_t i = 0; i < count; i++) {
            answer(fixture->listener, &replies[i]);
        }
        _exit(0);
    }
}

static void expect_served(struct fixture *fixture) {
    int status = 0;
    assert_int_equal(waitpid(fixture->child, &status, 0), fixture->child);
    assert_int_equal(status, 0);
}

static void open_register(struct fixture *fixture) {
    assert_int_equal(one_register_open(&fixture->one, "k8s", PLACE), FAILURE_NONE);
}

static int set_up(void **state) {
    static struct fixture fixture;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    fixture = (struct fixture){.place = temporary_place_new()};
    one_register_set_up(&fixture.one);
    fixture.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fixture.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fixture.listener, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(listen(fixture.listener, 8), 0);
    fixture.server = text_format("http://127.0.0.1:%d", ntohs(address.sin_port));
    text_list_add_taken(&fixture.one.conf, text_format("k8s_server=%s/", fixture.server));
    *state = &fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    one_register_tear_down(&fixture->one);
    assert_int_equal(close(fixture->listener), 0);
    temporary_place_free(fixture->place);
    free(fixture->server);
    return 0;
}

#define SERVED_TEST(name)                                                                          \
    static void served_##name(struct fixture *fixture);                                            \
    TEST_WITH(name, set_up, tear_down) {                                                           \
        if (!has_curl()) {                                                                         \
            SKIP_BECAUSE("libcurl is not installed");                                              \
        }                                                                                          \
        served_##name(*state);                                                                     \
    }                                                                                              \
    static void served_##name(struct fixture *fixture)

/* Appends entry 1, for which the object is read before it is written. */
static void play_append(struct fixture *fixture, const struct reply *reply) {
    const struct reply replies[] = {{"GET " MAPS "/train HTTP/1.1\r\n", 200, NULL, OURS}, *reply,
        {"GET " MAPS "/train HTTP/1.1\r\n", 200, NULL, OURS}, {"PUT ", 200, NULL, OURS}};
    bool is_again = reply->status == 200 || reply->status > 422;
    open_register(fixture);
    serve(fixture, replies, is_again ? 4 : 2);
    one_register_append(&fixture->one, 1, FAR);
    expect_served(fixture);
    assert_int_equal(fixture->one.kind, is_again ? REGISTER_WON : REGISTER_FAILED);
}

static void expect(
    struct fixture *fixture, enum register_event_kind kind, bool is_final, const char *words) {
    one_register_expect(&fixture->one, kind, is_final, words);
    one_register_expect(&fixture->one, kind, is_final, fixture->server);
}

SERVED_TEST(what_will_be_the_same_again_is_final) {
    static const struct {
        int status;
        const char *body;
        const char *words;
        bool has_advice;
    } rows[] = {
        {400, STATUS("why"), "why (HTTP status 400); for a server with TLS, write https://", true},
        {422, STATUS("Too long: 1"), "Too long: 1 (HTTP status 422); a ConfigMap holds 1 MiB",
            true},
        {413, STATUS("large"), "large (HTTP status 413); a ConfigMap holds 1 MiB", true},
        {422, STATUS("it is immutable"), "it is immutable (HTTP status 422)", false},
        {405, STATUS("why"), "why (HTTP status 405)", false},
        {418, "", "the server gives no reason as an API server does (HTTP status 418)", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct reply reply = {
            "PUT " MAPS "/train HTTP/1.1\r\n", rows[i].status, NULL, rows[i].body};
        play_append(fixture, &reply);
        expect(fixture, REGISTER_FAILED, true, rows[i].words);
        bool has_advice = strchr(fixture->one.failure.message, ';') != NULL;
        assert_int_equal(has_advice, rows[i].has_advice);
    }
}

/* Nobody knows whether it was done: the object is read again. */
SERVED_TEST(what_may_pass_is_tried_again) {
    static const struct reply replies[] = {
        {"PUT ", 429, "retry-AFTER: 0\r\n", ""},
        {"PUT ", 503, "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n",
            "{\"kind\": \"Status\", \"details\": {\"retryAfterSeconds\": 0}}"},
        {"PUT ", 504, NULL, "no leader"},
        {"PUT ", 200, NULL, "{}"}, /* no object: it may have been done all the same */
    };
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        play_append(fixture, &replies[i]);
    }
}

/* The account is not let in at first, as by a server that has just started. */
SERVED_TEST(what_has_passed_is_done) {
    const struct reply replies[] = {
        {"GET " MAPS "/train HTTP/1.1\r\n", 503, NULL, ""},
        {"GET " MAPS "/train HTTP/1.1\r\n", 403, NULL, STATUS("ann cannot get it")},
        {"GET " MAPS "/train HTTP/1.1\r\n", 404, NULL, STATUS("not found")},
        {"POST " MAPS " HTTP/1.1\r\n", 409, NULL, STATUS("it is there")},
        {"GET " MAPS "/train HTTP/1.1\r\n", 200, NULL, OURS},
        {"PUT " MAPS "/train HTTP/1.1\r\n", 404, NULL, STATUS("not found")},
        {"GET " MAPS "/train HTTP/1.1\r\n", 404, NULL, STATUS("not found")},
        {"POST " MAPS " HTTP/1.1\r\n", 201, NULL, OURS},
    };
    open_register(fixture);
    serve(fixture, replies, sizeof replies / sizeof *replies);
    one_register_append(&fixture->one, 1, FAR);
    expect_served(fixture);
    assert_int_equal(fixture->one.kind, REGISTER_WON);
}

SERVED_TEST(nothing_is_created_in_a_namespace_that_is_missing) {
    const struct reply replies[] = {
        {"GET ", 404, NULL, STATUS("not found")}, {"POST ", 404, NULL, STATUS("not found")}};
    open_register(fixture);
    serve(fixture, replies, 2);
    one_register_append(&fixture->one, 1, FAR);
    expect_served(fixture);
    expect(fixture, REGISTER_FAILED, true, "there is no namespace 'ml'");
}

SERVED_TEST(object_of_somebody_else_or_without_what_comes_before_is_left_alone) {
    static const struct {
        struct reply reply;
        const char *words;
    } rows[] = {
        {{"GET ", 200, NULL, OBJECT("\"team\": \"vision\"", "")},
            "is not Muster's: it lacks the label"},
        {{"GET ", 200, NULL, OURS}, "entry 1 of this job's register is gone from ConfigMap train"},
        {{"GET ", 404, NULL, STATUS("not found")}, "is gone from ConfigMap train"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        open_register(fixture);
        serve(fixture, &rows[i].reply, 1);
        one_register_append(&fixture->one, 2, FAR);
        expect_served(fixture);
        one_register_expect(&fixture->one, REGISTER_FAILED, true, rows[i].words);
    }
}

SERVED_TEST(other_servers_are_found_out) {
    static const struct reply replies[] = {{"GET ", 200, NULL, "<html>welcome</html>"},
        {"GET ", 200, NULL, "{}"}, {"GET ", 404, NULL, "<html>not found</html>"},
        {"GET ", 302, NULL, ""}, {"GET ", 204, NULL, ""}};
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        open_register(fixture);
        serve(fixture, &replies[i], 1);
        one_register_read(&fixture->one, FAR);
        expect_served(fixture);
        expect(fixture, REGISTER_FAILED, true, "what answers there is no API server of Kubernetes");
    }
}

#define EVENT(type, data) "{\"type\": \"" type "\", \"object\": " OBJECT(LABEL, data) "}\n"
#define WATCH                                                                                      \
    "GET " MAPS "?watch=true&fieldSelector=metadata.name%3Dtrain&resourceVersion=7&"               \
    "timeoutSeconds="

static void play_watch(struct fixture *fixture, const struct reply *replies, size_t count) {
    struct one_register *one = &fixture->one;
    open_register(fixture);
    serve(fixture, replies, count);
    one_register_await(one, register_watch(one->job_register, 1, one_register_deadline(one, FAR)));
    expect_served(fixture);
}

/* The server ends each watch after a while, and does not know for ever what has changed. */
SERVED_TEST(a_watch_goes_on_until_there_is_a_later_entry) {
    static const struct reply replies[] = {
        {"GET " MAPS "/train HTTP/1.1\r\n", 200, NULL, OBJECT(LABEL, ENTRY("1"))},
        {WATCH, 200, NULL, EVENT("MODIFIED", ENTRY("1")) EVENT("BOOKMARK", "") "half a line"},
        {"GET " MAPS "/train HTTP/1.1\r\n", 200, NULL, OBJECT(LABEL, ENTRY("1"))},
        {WATCH, 410, NULL, STATUS("too old resource version")},
        {"GET " MAPS "/train HTTP/1.1\r\n", 200, NULL, OBJECT(LABEL, ENTRY("1"))},
        {WATCH, 200, NULL, EVENT("ERROR", "") EVENT("MODIFIED", ENTRY("9"))},
        {"GET " MAPS "/train HTTP/1.1\r\n", 200, NULL, OBJECT(LABEL, ENTRY("1"))},
        {WATCH, 200, NULL, EVENT("ADDED", ENTRY("2")) EVENT("MODIFIED", ENTRY("3"))},
    };
    play_watch(fixture, replies, sizeof replies / sizeof *replies);
    one_register_expect(&fixture->one, REGISTER_NEWS, false, "");
    assert_int_equal(fixture->one.number, 2);
}

SERVED_TEST(a_watch_that_is_refused_is_told) {
    static const struct reply replies[] = {
        {"GET " MAPS "/train HTTP/1.1\r\n", 200, NULL, OBJECT(LABEL, ENTRY("1"))},
        {WATCH, 403, NULL, STATUS("ann cannot watch it")},
    };
    play_watch(fixture, replies, 2);
    expect(fixture, REGISTER_FAILED, true,
        "it (HTTP status 403); apply the Role and RoleBinding of examples/kubernetes/role.yaml");
}

/* The token. */

SERVED_TEST(token_is_read_each_time) {
    static const struct {
        const char *text;
        const char *words;
    } rows[] = {
        {" \n", "holds no token for Kubernetes: it is empty, or has blanks in it"},
        {"secret\r\nhost: x", "holds no token for Kubernetes"},
        {NULL, "the token for Kubernetes: "},
    };
    char *path = text_format("%s/token", fixture->place);
    write_whole_file(path, "secret.token\n");
    text_list_add_taken(&fixture->one.conf, text_format("k8s_token_file=%s", path));
    open_register(fixture);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].text == NULL) {
            assert_int_equal(unlink(path), 0);
        } else {
            write_whole_file(path, rows[i].text);
        }
        one_register_read(&fixture->one, FAR);
        one_register_expect(&fixture->one, REGISTER_FAILED, true, rows[i].words);
        assert_non_null(strstr(fixture->one.failure.message, path));
        assert_null(strstr(fixture->one.failure.message, "secret"));
    }
    free(path);
}

/* Settings. */

TEST(settings_with_which_no_server_can_be_asked_do_not_open) {
    static const char *const servers[] = {"host:6443", "tcp://host", "https://", "https://host:x",
        "https://a:b:c", "https://user@host", "https://host/a?b", "https://host/a b",
        "https://host:99999"};
    static const struct refused_settings refused[] = {
        {"ml/Train", {"k8s_server=https://host"}, "--rdzv-endpoint: "},
        {"x/train", {"k8s_server=http://host:8080", "k8s_token_file=/dev/null"},
            "over http the token would be readable on its way"},
        {"x/train", {"k8s_token_file=/nowhere/token"},
            "k8s_token_file: /nowhere/token: No such file"},
        {"x/train", {"k8s_ca=/nowhere/ca"}, "k8s_ca: /nowhere/ca: No such file"},
    };
    struct one_register one;
    one_register_set_up(&one);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        one_register_expect_refused(&one, "k8s", &refused[i]);
    }
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        text_list_clear(&one.conf);
        text_list_set_variable(&one.conf, "k8s_server", servers[i]);
        assert_int_equal(one_register_open(&one, "k8s", "x/train"), FAILURE_INVALID);
        assert_non_null(strstr(one.failure.message, "invalid --rdzv-conf k8s_server="));
        assert_non_null(strstr(one.failure.message, "; give https://HOST:PORT"));
    }
    one_register_tear_down(&one);
}

TEST(token_may_go_to_this_machine_or_over_tls) {
    static const char *const servers[] = {
        "http://localhost:8080", "https://host:6443/clusters/one"};
    struct one_register one;
    if (!has_curl()) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    one_register_set_up(&one);
    text_list_add(&one.conf, "k8s_token_file=/dev/null");
    for (size_t i = 0; i < sizeof servers / sizeof *servers; i++) {
        text_list_set_variable(&one.conf, "k8s_server", servers[i]);
        assert_int_equal(one_register_open(&one, "k8s", "x/train"), FAILURE_NONE);
    }
    one_register_tear_down(&one);
}

/* A pod has its service account at a place of its own, so this is played in a process whose
 * directory of such places is its own, too. */

#define PLACE_OF_SECRETS "/var/run/secrets"
#define SERVICE_ACCOUNT PLACE_OF_SECRETS "/kubernetes.io/serviceaccount"

/* {what changes in the pod, the endpoint, what is said; NULL: it opens} */
static const struct pod_row {
    const char *host;
    const char *port;
    const char *file; /* of the service account */
    const char *text; /* NULL: it is removed */
    const char *endpoint;
    const char *words; /* at the opening, or by the first read at its deadline */
    bool is_open;
} pod_rows[] = {
    {"127.0.0.1", "1", "namespace", "ml", "train", "Kubernetes (https://127.0.0.1:1)", true},
    {"::1", NULL, "namespace", "ml", "other/train", "Kubernetes (https://[::1]:443)", true},
    {"127.0.0.1", "1", "namespace", "Not A Name", "train", "give NAMESPACE/train", false},
    {"", "1", "namespace", "ml", "train", "give --rdzv-conf k8s_server=https://HOST:PORT", false},
    {"127.0.0.1", "1", "ca.crt", NULL, "train", "certificate of the cluster's authority", false},
    {"127.0.0.1", "1", "token", NULL, "train", "automountServiceAccountToken", false},
};

static bool is_told(const struct pod_row *row) {
    struct one_register one;
    char *path = text_format("%s/%s", SERVICE_ACCOUNT, row->file);
    one_register_set_up(&one);
    setenv("KUBERNETES_SERVICE_HOST", row->host, 1);
    if (row->port == NULL) {
        unsetenv("KUBERNETES_SERVICE_PORT");
    } else {
        setenv("KUBERNETES_SERVICE_PORT", row->port, 1);
    }
    if (row->text == NULL) {
        unlink(path);
    } else {
        write_whole_file(path, row->text);
    }
    bool is_open = one_register_open(&one, "k8s", row->endpoint) == FAILURE_NONE;
    for (int64_t patience = 60; is_open && strstr(one.failure.message, row->words) == NULL;
         patience *= 2) {
        one_register_read(&one, patience);
    }
    bool is_right = is_open == row->is_open && strstr(one.failure.message, row->words) != NULL;
    if (!is_right) {
        print_message("\"%s\" does not say \"%s\"\n", one.failure.message, row->words);
    }
    one_register_tear_down(&one);
    free(path);
    return is_right;
}

TEST(pod_knows_everything_and_what_it_lacks_is_named) {
    int status = 0;
    if (!has_curl()) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("none", "/var/run", "tmpfs", 0, NULL) != 0) {
            _exit(77);
        }
        bool is_right = system("mkdir -p " SERVICE_ACCOUNT) == 0;
        write_whole_file(SERVICE_ACCOUNT "/token", "secret.token\n");
        write_whole_file(SERVICE_ACCOUNT "/ca.crt", "");
        for (size_t i = 0; i < sizeof pod_rows / sizeof *pod_rows; i++) {
            is_right = is_told(&pod_rows[i]) && is_right;
        }
        exit(is_right ? 0 : 1); /* so that what is counted at an end is counted */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        SKIP_BECAUSE("needs root, for mounts of its own");
    }
    assert_int_equal(status, 0);
}
