/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/store.h when it is used wrongly, and when the server goes: an error, and nothing else. */
#include "unit.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "library/store_fixture.h"

static const char *const keys[] = {"key"};
static const struct muster_slice values[] = {{"value", 5}};

static char *long_text(size_t length) {
    char *text = malloc(length + 1);
    assert_non_null(text);
    memset(text, 'x', length);
    text[length] = '\0';
    return text;
}

/* Every function that takes a store, with arguments that are right. All return the same. */
static void assert_all(struct muster_store *store, enum muster_error expected) {
    struct muster_store *prefixed = NULL;
    struct muster_bytes value = {0};
    struct muster_failure failure = {0};
    const struct muster_store_request request = MUSTER_STORE_REQUEST;
    int64_t number = -1;
    int flag = -1;
    assert_int_equal(muster_store_new_prefix(store, "p", &prefixed, &failure), expected);
    assert_int_equal(failure.error, expected);
    assert_string_not_equal(failure.message, "");
    assert_int_equal(muster_store_connect(store, NULL), expected);
    assert_int_equal(muster_store_set_timeout(store, 1, NULL), expected);
    assert_int_equal(muster_store_set(store, "k", "v", 1, NULL), expected);
    assert_int_equal(muster_store_get(store, "k", &value, NULL), expected);
    assert_int_equal(muster_store_add(store, "k", 1, &number, NULL), expected);
    assert_int_equal(muster_store_append(store, "k", "v", 1, NULL), expected);
    assert_int_equal(
        muster_store_compare_set(store, "k", values[0], values[0], &value, NULL), expected);
    assert_int_equal(muster_store_check(store, keys, 1, &flag, NULL), expected);
    assert_int_equal(muster_store_wait(store, keys, 1, 1, NULL), expected);
    assert_int_equal(muster_store_delete_key(store, "k", &flag, NULL), expected);
    assert_int_equal(muster_store_num_keys(store, &number, NULL), expected);
    assert_int_equal(muster_store_multi_get(store, keys, 1, &value, NULL), expected);
    assert_int_equal(muster_store_multi_set(store, keys, values, 1, NULL), expected);
    assert_int_equal(muster_store_queue_push(store, "k", "v", 1, NULL), expected);
    assert_int_equal(muster_store_queue_pop(store, "k", 0, &value, NULL), expected);
    assert_int_equal(muster_store_queue_len(store, "k", &number, NULL), expected);
    assert_int_equal(muster_store_submit(store, &request, NULL, NULL, NULL), expected);
    assert_int_equal(muster_store_call(store, &request, NULL, NULL, NULL), expected);
    assert_int_equal(muster_store_process(store, NULL), expected);
    assert_int_equal(muster_store_fd(store), -1);
    assert_null(prefixed);
    assert_null(value.data);
    assert_int_equal(number, -1);
    assert_int_equal(flag, -1);
}

static void no_store_is_an_error_of_each_function(void **state) {
    (void)state;
    assert_all(NULL, MUSTER_ERROR_INVALID);
    assert_true(muster_store_timeout(NULL) < 0);
    muster_store_free(NULL);
    muster_bytes_clear(NULL);
    muster_bytes_clear(&(struct muster_bytes){0});
}

static void missing_arguments_are_errors(void **state) {
    (void)state;
    struct fixture fixture;
    struct muster_bytes value = {0};
    const struct muster_slice bad = {NULL, 1};
    static const char *const missing[] = {"key", NULL};
    int64_t number;
    int flag;
    set_up(&fixture);
    struct muster_store *store = fixture.store;
    assert_int_equal(muster_store_new_prefix(store, NULL, &store, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_new_prefix(store, "p", NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_set(store, NULL, "v", 1, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_set(store, "k", NULL, 1, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_append(store, NULL, "v", 1, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_append(store, "k", NULL, 1, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_get(store, NULL, &value, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_get(store, "k", NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_add(store, NULL, 1, &number, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_add(store, "k", 1, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_compare_set(store, NULL, values[0], values[0], &value, NULL),
        MUSTER_ERROR_INVALID);
    assert_int_equal(
        muster_store_compare_set(store, "k", bad, values[0], &value, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(
        muster_store_compare_set(store, "k", values[0], bad, &value, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_compare_set(store, "k", values[0], values[0], NULL, NULL),
        MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_check(store, NULL, 1, &flag, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_check(store, keys, 0, &flag, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_check(store, keys, 1, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_check(store, missing, 2, &flag, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_wait(store, NULL, 1, 0, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_wait(store, keys, 1, NAN, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_delete_key(store, NULL, &flag, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_num_keys(store, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_multi_get(store, keys, 1, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_multi_get(store, missing, 2, &value, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_multi_set(store, keys, NULL, 1, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_multi_set(store, keys, &bad, 1, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_queue_push(store, NULL, "v", 1, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_queue_pop(store, NULL, 0, &value, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_queue_pop(store, "k", 0, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_queue_len(store, NULL, &number, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_queue_len(store, "k", NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_set_timeout(store, 0, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_set_timeout(store, NAN, NULL), MUSTER_ERROR_INVALID);
    set_text(store, "key", "still usable");
    assert_text(store, "key", "still usable");
    tear_down(&fixture);
}

static void requests_that_are_none_are_errors(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct muster_store_request request = {0};
    assert_int_equal(
        muster_store_call(fixture.store, &request, NULL, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(
        muster_store_call(fixture.store, NULL, NULL, NULL, NULL), MUSTER_ERROR_INVALID);
    request.size = sizeof request;
    for (int operation = -1; operation < 40; operation++) {
        bool is_one = operation >= MUSTER_STORE_SET && operation <= MUSTER_STORE_PING;
        request.operation = (enum muster_store_operation)operation;
        if (!is_one) {
            assert_int_equal(
                muster_store_call(fixture.store, &request, NULL, NULL, NULL), MUSTER_ERROR_INVALID);
        }
    }
    request.operation = MUSTER_STORE_BARRIER;
    request.key = "key";
    assert_int_equal(
        muster_store_call(fixture.store, &request, NULL, NULL, NULL), MUSTER_ERROR_INVALID);
    tear_down(&fixture);
}

static void settings_of_a_newer_header_are_told_apart(void **state) {
    (void)state;
    struct {
        struct muster_store_request known;
        int more;
    } newer = {.known = MUSTER_STORE_REQUEST};
    struct fixture fixture;
    set_up(&fixture);
    newer.known.size = sizeof newer;
    assert_int_equal(muster_store_call(fixture.store, &newer.known, NULL, NULL, NULL), MUSTER_OK);
    newer.more = 1;
    assert_int_equal(
        muster_store_call(fixture.store, &newer.known, NULL, NULL, NULL), MUSTER_ERROR_UNSUPPORTED);
    tear_down(&fixture);
}

static void what_is_too_long_is_not_sent(void **state) {
    (void)state;
    struct fixture fixture;
    struct muster_store *prefixed;
    set_up(&fixture);
    struct muster_store *store = fixture.store;
    char *key = long_text(MUSTER_STORE_KEY_MAXIMUM + 1);
    char *value = long_text(MUSTER_STORE_VALUE_MAXIMUM + 1);
    assert_int_equal(muster_store_set(store, key, "v", 1, NULL), MUSTER_ERROR_LIMIT);
    assert_int_equal(muster_store_set(store, "k", value, MUSTER_STORE_VALUE_MAXIMUM + 1, NULL),
        MUSTER_ERROR_LIMIT);
    assert_int_equal(
        muster_store_wait(store, keys, MUSTER_STORE_KEYS_MAXIMUM + 1, 0, NULL), MUSTER_ERROR_LIMIT);
    assert_int_equal(muster_store_new_prefix(store, key, &prefixed, NULL), MUSTER_ERROR_LIMIT);
    assert_int_equal(muster_store_new_prefix(store, "p", &prefixed, NULL), MUSTER_OK);
    key[MUSTER_STORE_KEY_MAXIMUM] = '\0';
    assert_int_equal(muster_store_set(prefixed, key, "v", 1, NULL), MUSTER_ERROR_LIMIT);
    muster_store_free(prefixed);
    /* The longest ones are taken. */
    assert_int_equal(
        muster_store_set(store, key, value, MUSTER_STORE_VALUE_MAXIMUM, NULL), MUSTER_OK);
    value[MUSTER_STORE_VALUE_MAXIMUM] = '\0';
    assert_text(store, key, value);
    free(key);
    free(value);
    tear_down(&fixture);
}

static void assert_bad_server(
    const struct muster_tcp_store_settings *settings, enum muster_error expected) {
    struct muster_store *store = NULL;
    assert_int_equal(muster_store_new_tcp(settings, &store, NULL), expected);
    assert_null(store);
}

static void bad_settings_of_a_server_are_errors(void **state) {
    (void)state;
    const struct muster_tcp_store_settings good = {
        .size = sizeof good, .host = "localhost", .port = 29500};
    struct muster_tcp_store_settings settings = good;
    char *host = long_text(2000);
    assert_int_equal(muster_store_new_tcp(&good, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_bad_server(NULL, MUSTER_ERROR_INVALID);
    settings.size = 0;
    assert_bad_server(&settings, MUSTER_ERROR_INVALID);
    settings = good;
    settings.host = NULL;
    assert_bad_server(&settings, MUSTER_ERROR_INVALID);
    settings.host = "";
    assert_bad_server(&settings, MUSTER_ERROR_INVALID);
    settings.host = host;
    assert_bad_server(&settings, MUSTER_ERROR_LIMIT);
    settings = good;
    for (int i = -1; i < 2; i++) {
        settings.port = i < 1 ? i : 65536;
        assert_bad_server(&settings, MUSTER_ERROR_INVALID);
    }
    settings = good;
    settings.timeout = NAN;
    assert_bad_server(&settings, MUSTER_ERROR_INVALID);
    settings = good;
    settings.silence_timeout = 1;
    assert_bad_server(&settings, MUSTER_ERROR_INVALID);
    settings = good;
    settings.value_maximum = ((size_t)1 << 30) + 1;
    assert_bad_server(&settings, MUSTER_ERROR_LIMIT);
    settings = good;
    settings.token_file = "/nowhere/token";
    assert_bad_server(&settings, MUSTER_ERROR_SYSTEM);
    free(host);
}

static void bad_settings_of_a_file_are_errors(void **state) {
    (void)state;
    struct muster_file_store_settings settings = MUSTER_FILE_STORE_SETTINGS;
    struct muster_store *store = NULL;
    char *path = long_text(5000);
    assert_int_equal(muster_store_new_file(NULL, &store, NULL), MUSTER_ERROR_INVALID);
    assert_int_equal(muster_store_new_file(&settings, &store, NULL), MUSTER_ERROR_INVALID);
    settings.path = "";
    assert_int_equal(muster_store_new_file(&settings, &store, NULL), MUSTER_ERROR_INVALID);
    settings.path = path;
    assert_int_equal(muster_store_new_file(&settings, &store, NULL), MUSTER_ERROR_LIMIT);
    settings.path = "/nowhere/file";
    assert_int_equal(muster_store_new_file(&settings, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_null(store);
    assert_int_equal(muster_store_new_file(&settings, &store, NULL), MUSTER_OK);
    assert_int_equal(muster_store_connect(store, NULL), MUSTER_ERROR_SYSTEM);
    assert_int_equal(muster_store_set(store, "k", "v", 1, NULL), MUSTER_ERROR_DISCONNECTED);
    muster_store_free(store);
    free(path);
}

static void nobody_at_the_port_is_an_error_of_every_later_call(void **state) {
    (void)state;
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    struct muster_store *store = NULL;
    struct muster_failure failure = {0};
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    /* Nobody can listen at a port that is bound here. */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    settings.host = "127.0.0.1";
    settings.port = ntohs(address.sin_port);
    settings.timeout = 0.05;
    assert_int_equal(muster_store_new_tcp(&settings, &store, NULL), MUSTER_OK);
    assert_int_equal(muster_store_connect(store, &failure), MUSTER_ERROR_TIMEOUT);
    assert_non_null(strstr(failure.message, "127.0.0.1"));
    assert_int_equal(muster_store_set(store, "k", "v", 1, NULL), MUSTER_ERROR_TIMEOUT);
    assert_int_equal(muster_store_connect(store, NULL), MUSTER_ERROR_TIMEOUT);
    muster_store_free(store);
    close(fd);
}

static void server_that_ends_is_an_error_and_no_signal(void **state) {
    (void)state;
    struct fixture fixture;
    struct muster_failure failure = {0};
    enum muster_error error = MUSTER_OK;
    int64_t sum;
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    set_up(&fixture);
    set_text(fixture.store, "key", "value");
    assert_text(fixture.store, "key", "value");
    stop_server(&fixture);
    error = muster_store_add(fixture.store, "k", 1, &sum, &failure);
    assert_int_equal(error, MUSTER_ERROR_DISCONNECTED);
    assert_string_not_equal(failure.message, "");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            muster_store_set(fixture.store, "k", "v", 1, NULL), MUSTER_ERROR_DISCONNECTED);
    }
    tear_down(&fixture);
}

static void store_is_of_no_use_in_a_child_and_unharmed_by_it(void **state) {
    (void)state;
    struct fixture fixture;
    int status;
    set_up(&fixture);
    set_text(fixture.store, "key", "before");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        assert_all(fixture.store, MUSTER_ERROR_FORKED); /* a failure ends the child, with 255 */
        muster_store_free(fixture.store);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_text(fixture.store, "key", "before");
    set_text(fixture.store, "key", "after");
    assert_text(fixture.store, "key", "after");
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_store_is_an_error_of_each_function),
    cmocka_unit_test(missing_arguments_are_errors),
    cmocka_unit_test(requests_that_are_none_are_errors),
    cmocka_unit_test(settings_of_a_newer_header_are_told_apart),
    cmocka_unit_test(what_is_too_long_is_not_sent),
    cmocka_unit_test(bad_settings_of_a_server_are_errors),
    cmocka_unit_test(bad_settings_of_a_file_are_errors),
    cmocka_unit_test(nobody_at_the_port_is_an_error_of_every_later_call),
    cmocka_unit_test(server_that_ends_is_an_error_and_no_signal),
    cmocka_unit_test(store_is_of_no_use_in_a_child_and_unharmed_by_it),
};

TEST_MAIN(tests)
