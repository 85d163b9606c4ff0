/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of muster/health.h. */
#include "unit.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <muster/health.h>

#include "host/raw_client.h"
#include "library/bad_input.h"

static struct muster_health_server *server;
static size_t descriptors;

static void renew(enum situation now) {
    (void)now;
}

static void play(enum situation now) {
    IN_EACH(muster_health_server_port, muster_health_server_port(server) < 0 ? -1 : 0, -1, -1, 0,
        NEVER, NEVER, NEVER);
    IN_EACH(muster_health_server_fd, muster_health_server_fd(server) < 0 ? -1 : 0, -1, -1, 0, NEVER,
        NEVER, NEVER);
    IN_EACH(muster_health_server_process, muster_health_server_process(server, NULL),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, NEVER, NEVER, NEVER);
    IN_EACH(muster_health_server_free, (muster_health_server_free(server), 0), 0, 0, 0, NEVER,
        NEVER, NEVER);
}

static int64_t play_in_callback(void *context) {
    (void)context;
    play(IN_CALLBACK);
    return (int64_t)time(NULL);
}

static const struct muster_health_settings good = {
    .size = sizeof good, .alive = play_in_callback, .address = "127.0.0.1", .timeout = 60};

static void begin(void) {
    enum muster_error error = muster_health_server_new(&good, &server, NULL);
    if (error == MUSTER_ERROR_MISSING) {
        SKIP_BECAUSE("libmicrohttpd is not installed");
    }
    muster_health_server_free(server); /* what the first one of a process opens stays open */
    descriptors = process_descriptors();
    assert_int_equal(muster_health_server_new(&good, &server, NULL), MUSTER_OK);
}

static void end(void) {
    muster_health_server_free(server);
    server = NULL;
    assert_int_equal(process_descriptors(), descriptors);
}

TEST(without_a_server) {
    play(IS_NULL);
}

TEST(in_a_child) {
    begin();
    bad_input_play_in_child(play);
    assert_true(muster_health_server_port(server) > 0);
    end();
}

/* The answer comes all the same. */
TEST(from_inside_its_callback) {
    static const char request[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char answer[16] = {0};
    begin();
    struct pollfd places[2] = {
        {.fd = client_connect(muster_health_server_port(server)), .events = POLLIN},
        {.fd = muster_health_server_fd(server), .events = POLLIN}};
    client_send(places[0].fd, request, sizeof request - 1);
    while (places[0].revents == 0) {
        assert_int_equal(muster_health_server_process(server, NULL), MUSTER_OK);
        assert_true(poll(places, 2, -1) > 0);
    }
    assert_int_equal(recv(places[0].fd, answer, 12, 0), 12);
    assert_string_equal(answer, "HTTP/1.1 200");
    assert_true(bad_input_played[IN_CALLBACK]);
    close(places[0].fd);
    end();
}

static struct {
    struct muster_health_settings known;
    long more; /* a field that the library does not know */
} given = {.more = 1};

static enum muster_error make(struct muster_failure *failure) {
    struct muster_health_server *made = NULL;
    enum muster_error error = muster_health_server_new(&given.known, &made, failure);
    assert_true((error == MUSTER_OK) == (made != NULL));
    muster_health_server_free(made);
    return error;
}

#define WITH(member, value) (given.known = good, given.known.member = (value), make(failure))

TEST(settings) {
    char *text = bad_input_text(70000);
    begin();
    REFUSED(muster_health_settings, size, BELOW, MUSTER_ERROR_INVALID, WITH(size, 0));
    REFUSED(muster_health_settings, size, BELOW, MUSTER_ERROR_INVALID,
        WITH(size, sizeof given.known - 1));
    REFUSED(muster_health_settings, size, ABOVE, MUSTER_ERROR_INVALID, WITH(size, SIZE_MAX));
    REFUSED(
        muster_health_settings, size, NEWER, MUSTER_ERROR_UNSUPPORTED, WITH(size, sizeof given));
    REFUSED(muster_health_settings, alive, IS_NULL, MUSTER_ERROR_INVALID, WITH(alive, NULL));
    ALLOWED(muster_health_settings, address, IS_NULL, "every address is listened on",
        WITH(address, NULL) == MUSTER_OK);
    REFUSED(muster_health_settings, address, EMPTY, MUSTER_ERROR_INVALID, WITH(address, ""));
    REFUSED(muster_health_settings, address, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(address, text));
    REFUSED(
        muster_health_settings, address, NOT_UTF8, MUSTER_ERROR_INVALID, WITH(address, NO_UTF8));
    REFUSED(muster_health_settings, address, NEWLINE, MUSTER_ERROR_INVALID,
        WITH(address, "127.0.0.1\n"));
    REFUSED(muster_health_settings, port, BELOW, MUSTER_ERROR_INVALID, WITH(port, -1));
    REFUSED(muster_health_settings, port, BELOW, MUSTER_ERROR_INVALID, WITH(port, INT_MIN));
    REFUSED(muster_health_settings, port, ABOVE, MUSTER_ERROR_INVALID, WITH(port, 65536));
    REFUSED(muster_health_settings, port, ABOVE, MUSTER_ERROR_INVALID, WITH(port, INT_MAX));
    REFUSED(
        muster_health_settings, timeout, NOT_A_NUMBER, MUSTER_ERROR_INVALID, WITH(timeout, NAN));
    ALLOWED(muster_health_settings, timeout, BELOW, "negative is for ever",
        WITH(timeout, -INFINITY) == MUSTER_OK);
    ALLOWED(muster_health_settings, timeout, ABOVE, "so long is for ever",
        WITH(timeout, INFINITY) == MUSTER_OK);
    struct muster_health_server *made = NULL;
    REFUSED(muster_health_server_new, settings, IS_NULL, MUSTER_ERROR_INVALID,
        muster_health_server_new(NULL, &made, failure));
    REFUSED(muster_health_server_new, out_server, IS_NULL, MUSTER_ERROR_INVALID,
        muster_health_server_new(&good, NULL, failure));
    assert_null(made);
    free(text);
    end();
}

/* The last one. */
TEST(each_situation_was_played) {
    begin(); /* or all were skipped */
    end();
    NEVER_HAPPENS(muster_health_server, BEING_FREED, "its callback must not free it");
    NEVER_HAPPENS(muster_health_server, TOO_EARLY, "probes can connect when it has been made");
    NEVER_HAPPENS(muster_health_server, TOO_LATE, "it serves until it is freed");
    bad_input_assert_all_played();
}
