/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/store_server.h as a program sees it, with muster/store.h as its client. */
#include "unit.h"

#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <muster/store.h>
#include <muster/store_server.h>

#define LONG_MILLISECONDS 60000

static const struct muster_store_server_settings defaults = {
    .size = sizeof defaults, .host = "127.0.0.1"};

static struct muster_store_server *serve(const struct muster_store_server_settings *settings) {
    struct muster_store_server *server = NULL;
    struct muster_failure failure = {0};
    if (muster_store_server_new(settings, &server, &failure) != MUSTER_OK) {
        fail_msg("%s", failure.message);
    }
    return server;
}

static struct muster_store *connect_to(const struct muster_store_server *server) {
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    struct muster_store *store = NULL;
    settings.host = "127.0.0.1";
    settings.port = muster_store_server_port(server);
    assert_int_equal(muster_store_new_tcp(&settings, &store, NULL), MUSTER_OK);
    return store;
}

TEST(server_with_a_thread_serves_a_waiting_client) {
    struct muster_store_server *server = serve(&defaults);
    struct muster_store *store = connect_to(server);
    struct muster_bytes value = {0};
    assert_int_equal(muster_store_set(store, "key", "value", 5, NULL), MUSTER_OK);
    assert_int_equal(muster_store_get(store, "key", &value, NULL), MUSTER_OK);
    assert_string_equal(value.data, "value");
    muster_bytes_clear(&value);
    assert_int_equal(muster_store_server_fd(server), -1);
    assert_int_equal(muster_store_server_process(server, NULL), MUSTER_ERROR_STATE);
    muster_store_free(store);
    muster_store_server_free(server);
}

static void note(void *context, const struct muster_store_result *result) {
    *(int64_t *)context = result->error == MUSTER_OK ? result->number : -1;
}

TEST(server_without_a_thread_serves_in_the_programs_loop) {
    struct muster_store_server_settings settings = defaults;
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    int64_t sum = 0;
    settings.is_polled = 1;
    struct muster_store_server *server = serve(&settings);
    struct muster_store *store = connect_to(server);
    request.operation = MUSTER_STORE_ADD;
    request.key = "number";
    request.number = 7;
    assert_int_equal(muster_store_submit(store, &request, note, &sum, NULL), MUSTER_OK);
    while (sum == 0) {
        struct pollfd polled[] = {{.fd = muster_store_server_fd(server), .events = POLLIN},
            {.fd = muster_store_fd(store), .events = POLLIN}};
        assert_true(poll(polled, 2, LONG_MILLISECONDS) > 0);
        assert_int_equal(muster_store_server_process(server, NULL), MUSTER_OK);
        assert_int_equal(muster_store_process(store, NULL), MUSTER_OK);
    }
    assert_int_equal(sum, 7);
    muster_store_free(store);
    muster_store_server_free(server);
}

TEST(socket_that_is_handed_in_is_served) {
    struct muster_store_server_settings settings = defaults;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    settings.has_fd = 1;
    settings.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(settings.fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(settings.fd, (struct sockaddr *)&address, &length), 0);
    struct muster_store_server *server = serve(&settings);
    assert_int_equal(muster_store_server_port(server), ntohs(address.sin_port));
    struct muster_store *store = connect_to(server);
    assert_int_equal(muster_store_connect(store, NULL), MUSTER_OK);
    muster_store_free(store);
    muster_store_server_free(server);
}

static struct muster_store_request request(enum muster_store_operation operation) {
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    request.operation = operation;
    return request;
}

static struct muster_store_request set_of(const char *key, const char *value) {
    struct muster_store_request set = request(MUSTER_STORE_SET);
    set.key = key;
    set.value = (struct muster_slice){value, strlen(value)};
    return set;
}

static struct muster_store_request check_of(size_t count) {
    static const char *const keys[] = {"a", "b", "c"};
    struct muster_store_request check = request(MUSTER_STORE_CHECK);
    check.keys = keys;
    check.count = count;
    return check;
}

/* The first request is served, and the second costs the client its connection. */
static void assert_limit(const struct muster_store_server_settings *settings,
    struct muster_store_request served, struct muster_store_request refused) {
    int64_t count;
    struct muster_store_server *server = serve(settings);
    struct muster_store *store = connect_to(server);
    assert_int_equal(muster_store_call(store, &served, NULL, NULL, NULL), MUSTER_OK);
    assert_int_equal(muster_store_num_keys(store, &count, NULL), MUSTER_OK);
    (void)muster_store_call(store, &refused, NULL, NULL, NULL); /* SET has no answer */
    assert_int_equal(muster_store_num_keys(store, &count, NULL), MUSTER_ERROR_DISCONNECTED);
    muster_store_free(store);
    muster_store_server_free(server);
}

TEST(limits_of_one_key_hold) {
    struct muster_store_server_settings settings = defaults;
    settings.key_maximum = 5; /* with the '/' */
    assert_limit(&settings, set_of("four", "four"), set_of("fives", "four"));
    settings = defaults;
    settings.value_maximum = 4;
    assert_limit(&settings, set_of("key", "four"), set_of("key", "fives"));
}

TEST(limits_of_several_keys_hold) {
    struct muster_store_server_settings settings = defaults;
    settings.request_keys = 2;
    assert_limit(&settings, check_of(2), check_of(3));
    settings = defaults;
    settings.request_maximum = 34; /* a byte, the count, and for each key its length, '/', letter */
    assert_limit(&settings, check_of(2), check_of(3));
}

TEST(limit_of_what_waits_for_a_client_holds) {
    static char large[4096];
    struct muster_store_server_settings settings = defaults;
    struct muster_store_request get = request(MUSTER_STORE_GET);
    memset(large, 'x', sizeof large - 1);
    get.key = "key";
    settings.reply_maximum = 1024;
    assert_limit(&settings, set_of("key", large), get);
}

static void assert_bad(
    const struct muster_store_server_settings *settings, enum muster_error expected) {
    struct muster_store_server *server = NULL;
    struct muster_failure failure = {0};
    assert_int_equal(muster_store_server_new(settings, &server, &failure), expected);
    assert_int_equal(failure.error, expected);
    assert_string_not_equal(failure.message, "");
    assert_null(server);
}

TEST(bad_settings_are_errors) {
    struct muster_store_server_settings settings = defaults;
    int pipe_fds[2];
    assert_int_equal(muster_store_server_new(&defaults, NULL, NULL), MUSTER_ERROR_INVALID);
    assert_bad(NULL, MUSTER_ERROR_INVALID);
    settings.size = 1;
    assert_bad(&settings, MUSTER_ERROR_INVALID);
    settings = defaults;
    settings.host = "";
    assert_bad(&settings, MUSTER_ERROR_INVALID);
    settings = defaults;
    settings.port = -1;
    assert_bad(&settings, MUSTER_ERROR_INVALID);
    settings.port = 65536;
    assert_bad(&settings, MUSTER_ERROR_INVALID);
    settings = defaults;
    settings.silence_timeout = NAN;
    assert_bad(&settings, MUSTER_ERROR_INVALID);
    settings.silence_timeout = 1;
    assert_bad(&settings, MUSTER_ERROR_INVALID);
    settings = defaults;
    settings.memory_percent = -1;
    assert_bad(&settings, MUSTER_ERROR_INVALID);
    settings.memory_percent = 101;
    assert_bad(&settings, MUSTER_ERROR_INVALID);
    settings = defaults;
    settings.token_file = "/nowhere/token";
    assert_bad(&settings, MUSTER_ERROR_SYSTEM);
    settings = defaults;
    settings.has_fd = 1;
    settings.fd = -1;
    assert_bad(&settings, MUSTER_ERROR_INVALID);
    assert_int_equal(pipe(pipe_fds), 0);
    settings.fd = pipe_fds[0];
    assert_bad(&settings, MUSTER_ERROR_INVALID);
    assert_true(fcntl(pipe_fds[0], F_GETFD) >= 0); /* it stays the caller's */
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

TEST(port_that_is_taken_is_an_error) {
    struct muster_store_server *server = serve(&defaults);
    struct muster_store_server_settings settings = defaults;
    settings.port = muster_store_server_port(server);
    assert_bad(&settings, MUSTER_ERROR_SYSTEM);
    muster_store_server_free(server);
}
