/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/store.h when it is used wrongly, and when the server goes: an error, and nothing else. */
#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "library/store_fixture.h"

static const char *const keys[] = {"key"};

static char *long_text(size_t length) {
    char *text = malloc(length + 1);
    assert_non_null(text);
    memset(text, 'x', length);
    text[length] = '\0';
    return text;
}

TEST(what_is_too_long_is_not_sent) {
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

TEST(bad_settings_of_a_file_are_errors) {
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

TEST(nobody_at_the_port_is_an_error_of_every_later_call) {
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

TEST(server_that_ends_is_an_error_and_no_signal) {
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
