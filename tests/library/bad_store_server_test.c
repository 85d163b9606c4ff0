/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of muster/store_server.h. */
#include "unit.h"

#include <poll.h>

#include <muster/store.h>
#include <muster/store_server.h>

#include "host/raw_client.h"
#include "library/bad_input.h"

static struct muster_store_server *server;
static size_t descriptors;

static const struct muster_store_server_settings polled = {
    .size = sizeof polled, .host = "127.0.0.1", .is_polled = 1};

static void begin(const struct muster_store_server_settings *settings) {
    assert_int_equal(muster_store_server_new(&polled, &server, NULL), MUSTER_OK);
    muster_store_server_free(server); /* what the first one of a process opens stays open */
    descriptors = process_descriptors();
    assert_int_equal(muster_store_server_new(settings, &server, NULL), MUSTER_OK);
}

static void end(void) {
    muster_store_server_free(server);
    server = NULL;
    assert_int_equal(process_descriptors(), descriptors);
}

/* Each function in each situation. */

static void renew(enum situation now) {
    (void)now;
}

static void play(enum situation now) {
    IN_EACH(muster_store_server_port, muster_store_server_port(server) < 0 ? -1 : 0, -1, -1, 0,
        NEVER, NEVER, NEVER);
    IN_EACH(muster_store_server_fd, muster_store_server_fd(server) < 0 ? -1 : 0, -1, -1, 0, NEVER,
        NEVER, NEVER);
    IN_EACH(muster_store_server_process, muster_store_server_process(server, NULL),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, NEVER, NEVER, NEVER);
    IN_EACH(muster_store_server_free, (muster_store_server_free(server), 0), 0, 0, 0, NEVER, NEVER,
        NEVER);
}

TEST(without_a_server) {
    play(IS_NULL);
}

TEST(in_a_child) {
    begin(&polled);
    bad_input_play_in_child(play);
    assert_true(muster_store_server_port(server) > 0);
    end();
}

static void play_in_callback(void *context, int level, const char *origin, const char *message) {
    (void)context;
    (void)level;
    (void)origin;
    (void)message;
    if (server != NULL) {
        play(IN_CALLBACK);
    }
}

/* Makes it log: a client that speaks another protocol. */
TEST(from_inside_its_log) {
    struct muster_store_server_settings settings = polled;
    (void)state;
    settings.log = play_in_callback;
    begin(&settings);
    int client = client_connect(muster_store_server_port(server));
    client_send(client, "GET / HTTP/1.1\r\n\r\n", 18);
    while (!bad_input_played[IN_CALLBACK]) {
        struct pollfd place = {.fd = muster_store_server_fd(server), .events = POLLIN};
        assert_int_equal(poll(&place, 1, 60000), 1);
        assert_int_equal(muster_store_server_process(server, NULL), MUSTER_OK);
    }
    close(client);
    end();
}

TEST(server_with_a_thread_is_not_processed) {
    struct muster_store_server_settings settings = polled;
    (void)state;
    settings.is_polled = 0;
    begin(&settings);
    assert_int_equal(muster_store_server_fd(server), -1);
    assert_int_equal(muster_store_server_process(server, NULL), MUSTER_ERROR_STATE);
    end();
}

/* Settings. */

static struct {
    struct muster_store_server_settings known;
    long more; /* a field that the library does not know */
} given = {.more = 1};

/* A server that is made serves a client, whatever was asked for. */
static void use(struct muster_store_server *made) {
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    struct muster_store *store = NULL;
    settings.host = "127.0.0.1";
    settings.port = muster_store_server_port(made);
    assert_int_equal(muster_store_new_tcp(&settings, &store, NULL), MUSTER_OK);
    assert_int_equal(muster_store_set(store, "key", "value", 5, NULL), MUSTER_OK);
    assert_int_equal(muster_store_wait(store, (const char *const[]){"key"}, 1, 0, NULL), MUSTER_OK);
    muster_store_free(store);
}

static enum muster_error make(struct muster_failure *failure) {
    struct muster_store_server *made = NULL;
    size_t before = process_descriptors();
    enum muster_error error = muster_store_server_new(&given.known, &made, failure);
    assert_true((error == MUSTER_OK) == (made != NULL));
    if (made != NULL && !given.known.is_polled && given.known.token_file == NULL) {
        use(made);
    }
    muster_store_server_free(made);
    assert_int_equal(process_descriptors(), before);
    return error;
}

#define WITH(member, value)                                                                        \
    (given.known = polled, given.known.is_polled = 0, given.known.member = (value), make(failure))

/* No descriptor of ours: is_... and has_... are told by what is not 0. */
#define WITH_FD(member, value)                                                                     \
    (given.known = polled, given.known.has_fd = 1, given.known.fd = STDIN_FILENO,                  \
        given.known.member = (value), make(failure))

TEST(settings_of_a_place) {
    char *text = bad_input_text(70000);
    (void)state;
    REFUSED(muster_store_server_settings, size, BELOW, MUSTER_ERROR_INVALID, WITH(size, 0));
    REFUSED(muster_store_server_settings, size, BELOW, MUSTER_ERROR_INVALID,
        WITH(size, sizeof given.known - 1));
    REFUSED(muster_store_server_settings, size, ABOVE, MUSTER_ERROR_INVALID, WITH(size, SIZE_MAX));
    REFUSED(muster_store_server_settings, size, NEWER, MUSTER_ERROR_UNSUPPORTED,
        WITH(size, sizeof given));
    ALLOWED(muster_store_server_settings, host, IS_NULL, "every address is listened on",
        WITH(host, NULL) == MUSTER_OK);
    REFUSED(muster_store_server_settings, host, EMPTY, MUSTER_ERROR_INVALID, WITH(host, ""));
    REFUSED(muster_store_server_settings, host, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(host, text));
    REFUSED(
        muster_store_server_settings, host, NOT_UTF8, MUSTER_ERROR_INVALID, WITH(host, NO_UTF8));
    REFUSED(muster_store_server_settings, host, NEWLINE, MUSTER_ERROR_INVALID,
        WITH(host, "127.0.0.1\n"));
    REFUSED(muster_store_server_settings, port, BELOW, MUSTER_ERROR_INVALID, WITH(port, -1));
    REFUSED(muster_store_server_settings, port, BELOW, MUSTER_ERROR_INVALID, WITH(port, INT_MIN));
    REFUSED(muster_store_server_settings, port, ABOVE, MUSTER_ERROR_INVALID, WITH(port, 65536));
    REFUSED(muster_store_server_settings, port, ABOVE, MUSTER_ERROR_INVALID, WITH(port, INT_MAX));
    REFUSED(
        muster_store_server_settings, has_fd, NO_FLAG, MUSTER_ERROR_INVALID, WITH_FD(has_fd, -1));
    REFUSED(muster_store_server_settings, fd, BELOW, MUSTER_ERROR_INVALID, WITH_FD(fd, -1));
    REFUSED(muster_store_server_settings, fd, ABOVE, MUSTER_ERROR_INVALID, WITH_FD(fd, INT_MAX));
    ALLOWED(muster_store_server_settings, is_polled, NO_FLAG, "anything but 0 is yes",
        WITH(is_polled, -1) == MUSTER_OK);
    ALLOWED(muster_store_server_settings, token_file, IS_NULL, "there need not be a token",
        WITH(token_file, NULL) == MUSTER_OK);
    REFUSED(muster_store_server_settings, token_file, EMPTY, MUSTER_ERROR_INVALID,
        WITH(token_file, ""));
    REFUSED(muster_store_server_settings, token_file, TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH(token_file, text));
    REFUSED(muster_store_server_settings, token_file, NOT_UTF8, MUSTER_ERROR_SYSTEM,
        WITH(token_file, NO_UTF8));
    ALLOWED(muster_store_server_settings, log, IS_NULL, "it need not be told",
        WITH(log, NULL) == MUSTER_OK);
    REFUSED(muster_store_server_new, settings, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_server_new(NULL, &server, failure));
    REFUSED(muster_store_server_new, out_server, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_server_new(&polled, NULL, failure));
    assert_null(server);
    free(text);
}

TEST(settings_of_limits) {
    REFUSED(muster_store_server_settings, silence_timeout, BELOW, MUSTER_ERROR_INVALID,
        WITH(silence_timeout, 1.9));
    REFUSED(muster_store_server_settings, silence_timeout, BELOW, MUSTER_ERROR_INVALID,
        WITH(silence_timeout, -INFINITY));
    REFUSED(muster_store_server_settings, silence_timeout, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        WITH(silence_timeout, NAN));
    ALLOWED(muster_store_server_settings, silence_timeout, ABOVE,
        "so long is what the kernel has at most", WITH(silence_timeout, INFINITY) == MUSTER_OK);
    ALLOWED(muster_store_server_settings, memory, BELOW, "0 is the default",
        WITH(memory, 0) == MUSTER_OK);
    ALLOWED(muster_store_server_settings, memory, ABOVE, "as much as the machine has",
        WITH(memory, SIZE_MAX) == MUSTER_OK);
    REFUSED(muster_store_server_settings, memory_percent, BELOW, MUSTER_ERROR_INVALID,
        WITH(memory_percent, -1));
    REFUSED(muster_store_server_settings, memory_percent, ABOVE, MUSTER_ERROR_INVALID,
        WITH(memory_percent, 101));
    ALLOWED(muster_store_server_settings, key_maximum, BELOW, "0 is the default",
        WITH(key_maximum, 0) == MUSTER_OK);
    REFUSED(muster_store_server_settings, key_maximum, ABOVE, MUSTER_ERROR_LIMIT,
        WITH(key_maximum, SIZE_MAX));
    ALLOWED(muster_store_server_settings, value_maximum, BELOW, "0 is the default",
        WITH(value_maximum, 0) == MUSTER_OK);
    REFUSED(muster_store_server_settings, value_maximum, ABOVE, MUSTER_ERROR_LIMIT,
        WITH(value_maximum, SIZE_MAX));
    ALLOWED(muster_store_server_settings, request_keys, BELOW, "0 is the default",
        WITH(request_keys, 0) == MUSTER_OK);
    REFUSED(muster_store_server_settings, request_keys, ABOVE, MUSTER_ERROR_LIMIT,
        WITH(request_keys, SIZE_MAX));
    ALLOWED(muster_store_server_settings, request_maximum, BELOW, "0 is the default",
        WITH(request_maximum, 0) == MUSTER_OK);
    REFUSED(muster_store_server_settings, request_maximum, ABOVE, MUSTER_ERROR_LIMIT,
        WITH(request_maximum, SIZE_MAX));
    ALLOWED(muster_store_server_settings, reply_maximum, BELOW, "0 is the default",
        WITH(reply_maximum, 0) == MUSTER_OK);
    REFUSED(muster_store_server_settings, reply_maximum, ABOVE, MUSTER_ERROR_LIMIT,
        WITH(reply_maximum, SIZE_MAX));
    ALLOWED(muster_store_server_settings, connection_maximum, BELOW, "0 is the default",
        WITH(connection_maximum, 0) == MUSTER_OK);
    REFUSED(muster_store_server_settings, connection_maximum, ABOVE, MUSTER_ERROR_LIMIT,
        WITH(connection_maximum, SIZE_MAX));
}

/* The last one. */
TEST(each_situation_was_played) {
    NEVER_HAPPENS(muster_store_server, BEING_FREED, "its callback must not free it");
    NEVER_HAPPENS(muster_store_server, TOO_EARLY, "clients can connect when it has been made");
    NEVER_HAPPENS(muster_store_server, TOO_LATE, "it serves until it is freed");
    bad_input_assert_all_played();
}
