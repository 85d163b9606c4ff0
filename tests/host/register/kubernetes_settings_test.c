/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "host/register/kubernetes_register.h"
#include "temporary_place.h"

/* A pod's service account in a directory of the test. */
struct fixture {
    char *place;
    struct kubernetes_pod pod;
    struct text_list conf;
    struct kubernetes_settings settings;
    struct failure failure;
};

static void write_file(const struct fixture *fixture, const char *name, const char *text) {
    char *path = text_format("%s/%s", fixture->place, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
    free(path);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.place = temporary_place_new()};
    fixture->pod = (struct kubernetes_pod){"10.0.0.1", "443", fixture->place};
    write_file(fixture, "token", "secret.token\n");
    write_file(fixture, "ca.crt", "certificate");
    write_file(fixture, "namespace", "ml");
}

static void tear_down(struct fixture *fixture) {
    kubernetes_settings_clear(&fixture->settings);
    text_list_clear(&fixture->conf);
    temporary_place_free(fixture->place);
}

static enum failure_code read_settings(struct fixture *fixture, const char *endpoint) {
    kubernetes_settings_clear(&fixture->settings);
    fixture->failure = (struct failure){0};
    return kubernetes_settings_read(
        endpoint, &fixture->conf, &fixture->pod, &fixture->settings, &fixture->failure);
}

static void expect_failure(struct fixture *fixture, const char *endpoint, const char *words) {
    assert_int_not_equal(read_settings(fixture, endpoint), FAILURE_NONE);
    if (strstr(fixture->failure.message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", fixture->failure.message, words);
    }
    assert_null(strstr(fixture->failure.message, "secret"));
}

static void pod_knows_everything(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    assert_int_equal(read_settings(&fixture, "train"), FAILURE_NONE);
    assert_string_equal(fixture.settings.server, "https://10.0.0.1:443");
    assert_string_equal(fixture.settings.place.space, "ml");
    assert_string_equal(fixture.settings.place.name, "train");
    assert_true(fixture.settings.trust.is_tls);
    assert_non_null(strstr(fixture.settings.trust.ca, "/ca.crt"));
    fixture.pod.host = "fd00::1";
    fixture.pod.port = NULL;
    assert_int_equal(read_settings(&fixture, "other/train"), FAILURE_NONE);
    assert_string_equal(fixture.settings.server, "https://[fd00::1]:443");
    assert_string_equal(fixture.settings.place.space, "other");
    tear_down(&fixture);
}

static void token_is_read_each_time(void **state) {
    (void)state;
    struct fixture fixture;
    char *token = NULL;
    set_up(&fixture);
    assert_int_equal(read_settings(&fixture, "train"), FAILURE_NONE);
    assert_int_equal(kubernetes_settings_read_token(&fixture.settings, &token, NULL), FAILURE_NONE);
    assert_string_equal(token, "secret.token");
    free(token);
    write_file(&fixture, "token", " \n");
    struct failure failure = {0};
    assert_int_equal(
        kubernetes_settings_read_token(&fixture.settings, &token, &failure), FAILURE_MALFORMED);
    assert_non_null(strstr(failure.message, "/token holds no token"));
    write_file(&fixture, "token", "secret\r\nhost: x");
    assert_int_equal(
        kubernetes_settings_read_token(&fixture.settings, &token, &failure), FAILURE_MALFORMED);
    assert_null(strstr(failure.message, "secret"));
    write_file(&fixture, "token", "another");
    assert_int_equal(kubernetes_settings_read_token(&fixture.settings, &token, NULL), FAILURE_NONE);
    assert_string_equal(token, "another");
    free(token);
    tear_down(&fixture);
}

static void another_server_has_no_token_unless_one_is_given(void **state) {
    (void)state;
    struct fixture fixture;
    char *token = NULL;
    set_up(&fixture);
    text_list_add(&fixture.conf, "k8s_server=http://127.0.0.1:8001/");
    assert_int_equal(read_settings(&fixture, "x/train"), FAILURE_NONE);
    assert_string_equal(fixture.settings.server, "http://127.0.0.1:8001");
    assert_false(fixture.settings.trust.is_tls);
    assert_null(fixture.settings.trust.ca);
    assert_int_equal(kubernetes_settings_read_token(&fixture.settings, &token, NULL), FAILURE_NONE);
    assert_null(token);
    text_list_set_variable(&fixture.conf, "k8s_server", "https://host:6443/clusters/one");
    text_list_add_taken(&fixture.conf, text_format("k8s_token_file=%s/token", fixture.place));
    text_list_add_taken(&fixture.conf, text_format("k8s_ca=%s/ca.crt", fixture.place));
    assert_int_equal(read_settings(&fixture, "x/train"), FAILURE_NONE);
    assert_string_equal(fixture.settings.server, "https://host:6443/clusters/one");
    assert_non_null(fixture.settings.token_file);
    assert_non_null(fixture.settings.trust.ca);
    tear_down(&fixture);
}

static void servers_that_are_none_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"host:6443", "tcp://host", "https://", "https://host:x",
        "https://a:b:c", "https://user@host", "https://host/a?b", "https://host/a b",
        "https://host:99999"};
    struct fixture fixture;
    set_up(&fixture);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        text_list_set_variable(&fixture.conf, "k8s_server", wrong[i]);
        expect_failure(&fixture, "x/train", "invalid --rdzv-conf k8s_server=");
        expect_failure(&fixture, "x/train", "; give https://HOST:PORT");
    }
    tear_down(&fixture);
}

static void token_is_not_sent_in_the_clear(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    text_list_add(&fixture.conf, "k8s_server=http://host:8080");
    text_list_add_taken(&fixture.conf, text_format("k8s_token_file=%s/token", fixture.place));
    expect_failure(&fixture, "x/train", "over http the token would be readable on its way");
    text_list_set_variable(&fixture.conf, "k8s_server", "http://localhost:8080");
    assert_int_equal(read_settings(&fixture, "x/train"), FAILURE_NONE);
    tear_down(&fixture);
}

static void what_a_pod_lacks_is_named(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    fixture.pod.host = NULL;
    expect_failure(&fixture, "train", "give --rdzv-conf k8s_server=https://HOST:PORT");
    fixture.pod.host = "10.0.0.1";
    write_file(&fixture, "namespace", "Not A Name");
    expect_failure(&fixture, "train", "give NAMESPACE/train");
    text_list_add(&fixture.conf, "k8s_token_file=/nowhere/token");
    expect_failure(&fixture, "x/train", "k8s_token_file: /nowhere/token: No such file");
    text_list_set_variable(&fixture.conf, "k8s_token_file", "/dev/null");
    text_list_add(&fixture.conf, "k8s_ca=/nowhere/ca");
    expect_failure(&fixture, "x/train", "k8s_ca: /nowhere/ca: No such file");
    text_list_clear(&fixture.conf);
    char *path = text_format("%s/token", fixture.place);
    assert_int_equal(unlink(path), 0);
    free(path);
    expect_failure(&fixture, "x/train", "automountServiceAccountToken");
    expect_failure(&fixture, "x/Train", "--rdzv-endpoint: ");
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pod_knows_everything),
    cmocka_unit_test(token_is_read_each_time),
    cmocka_unit_test(another_server_has_no_token_unless_one_is_given),
    cmocka_unit_test(servers_that_are_none_are_refused),
    cmocka_unit_test(token_is_not_sent_in_the_clear),
    cmocka_unit_test(what_a_pod_lacks_is_named),
};

UNIT_TESTS(tests)
