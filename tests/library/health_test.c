/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <muster/health.h>

#include "base/text.h"
#include "host/raw_client.h"

static const struct muster_health_settings defaults = MUSTER_HEALTH_SETTINGS;

struct fixture {
    struct muster_health_server *server;
    int64_t silent_seconds;
    int asked;
};

static int64_t alive(void *context) {
    struct fixture *fixture = context;
    fixture->asked++;
    assert_int_equal(muster_health_server_process(fixture->server, NULL), MUSTER_ERROR_STATE);
    muster_health_server_free(fixture->server); /* does nothing from here */
    return (int64_t)time(NULL) - fixture->silent_seconds;
}

static struct muster_health_settings settings_of(struct fixture *fixture) {
    struct muster_health_settings settings = defaults;
    settings.alive = alive;
    settings.context = fixture;
    settings.address = "127.0.0.1";
    return settings;
}

static void serve(struct fixture *fixture) {
    struct muster_failure failure = {0};
    struct muster_health_settings settings = settings_of(fixture);
    enum muster_error error = muster_health_server_new(&settings, &fixture->server, &failure);
    if (error == MUSTER_ERROR_MISSING) {
        SKIP_BECAUSE("libmicrohttpd is not installed");
    }
    assert_int_equal(error, MUSTER_OK);
}

/* The answer to one request, from the program's own loop. */
static void ask(const struct fixture *fixture, const char *request, struct text *out) {
    struct pollfd places[2] = {
        {.fd = client_connect(muster_health_server_port(fixture->server)), .events = POLLIN},
        {.fd = muster_health_server_fd(fixture->server), .events = POLLIN}};
    char part[1024];
    ssize_t count = 1;
    client_send(places[0].fd, request, strlen(request));
    while (count != 0) {
        assert_true(poll(places, 2, -1) > 0);
        if (places[1].revents != 0) {
            assert_int_equal(muster_health_server_process(fixture->server, NULL), MUSTER_OK);
        }
        if (places[0].revents != 0) {
            count = recv(places[0].fd, part, sizeof part, 0);
            assert_true(count >= 0);
            text_append_bytes(out, part, (size_t)count);
        }
    }
    close(places[0].fd);
}

static void assert_answer(
    const struct fixture *fixture, const char *path, const char *status, const char *words) {
    struct text answer = {0};
    char *request = text_format("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    ask(fixture, request, &answer);
    assert_true(text_starts_with(text_string(&answer), status));
    assert_non_null(strstr(text_string(&answer), words));
    free(request);
    text_clear(&answer);
}

TEST(probes_hear_what_the_callback_says) {
    struct fixture fixture = {0};
    serve(&fixture);
    assert_answer(&fixture, "/health", "HTTP/1.1 200 ", "\"status\": \"alive\"");
    fixture.silent_seconds = 3600;
    assert_answer(&fixture, "/health", "HTTP/1.1 503 ", "\"status\": \"stalled\"");
    assert_int_equal(fixture.asked, 2);
    assert_answer(&fixture, "/other", "HTTP/1.1 404 ", "/health");
    assert_int_equal(fixture.asked, 2);
    muster_health_server_free(fixture.server);
}
