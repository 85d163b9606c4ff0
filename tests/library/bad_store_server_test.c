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

static char *text;

static int begin_rows(void **state) {
    (void)state;
    text = bad_input_text(70000);
    begin(&polled); /* what the first one of a process opens stays open */
    end();
    return 0;
}

static int end_rows(void **state) {
    (void)state;
    free(text);
    assert_null(server);
    return 0;
}

#include "bad_store_server_rows.h"

/* The last one. */
TEST(each_situation_was_played) {
    NEVER_HAPPENS(muster_store_server, BEING_FREED, "its callback must not free it");
    NEVER_HAPPENS(muster_store_server, TOO_EARLY, "clients can connect when it has been made");
    NEVER_HAPPENS(muster_store_server, TOO_LATE, "it serves until it is freed");
    bad_input_assert_all_played();
}
