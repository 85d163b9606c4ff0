/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/health.h: the agent's HTTP server for probes, in the loop of a program. */
#include <muster/health.h>

#include <stdlib.h>

#include "base/memory.h"
#include "host/loop/clock.h"
#include "host/loop/event_loop.h"
#include "host/network/health_endpoint.h"
#include "host/network/network_address.h"
#include "library/library_settings.h"
#include "wire/telling/http_host.h"

#define ADDRESS_MAXIMUM 256
#define STATUS_ALIVE 200
#define STATUS_STALLED 503
#define STATUS_UNKNOWN_PATH 404

struct muster_health_server {
    struct muster_health_settings settings;
    struct duration timeout;
    struct embedded_loop *embedded;
    struct health_endpoint *endpoint;
    struct text_list names; /* of this machine */
};

/* The resolver is not asked, as it could hold the program up. */
static void add_names(struct muster_health_server *server) {
    const char *given = getenv("MUSTER_HEALTH_CHECK_HOSTS");
    char *name = NULL;
    if (local_address_host_name(&name, NULL) == FAILURE_NONE) {
        text_list_add_taken(&server->names, name);
    }
    if (server->settings.address != NULL) {
        text_list_add(&server->names, server->settings.address);
    }
    if (given != NULL) {
        http_host_add_names(given, &server->names);
    }
}

static void answer_health(const struct muster_health_server *server, struct health_answer *answer) {
    int64_t last = server->settings.alive(server->settings.context);
    double silence = (double)clock_wall_time().nanoseconds / NANOSECONDS_PER_SECOND - (double)last;
    bool is_alive = silence <= duration_seconds(server->timeout);
    answer->status = is_alive ? STATUS_ALIVE : STATUS_STALLED;
    answer->content_type = "application/json";
    text_append_format(&answer->body,
        "{\"status\": \"%s\", \"seconds_since_progress\": %.3f, \"timeout_seconds\": %g}\n",
        is_alive ? "alive" : "stalled", silence > 0 ? silence : 0.0,
        duration_seconds(server->timeout));
}

static void answer(void *context, const char *path, struct health_answer *answer) {
    if (text_equals(path, "/health")) {
        answer_health(context, answer);
    } else {
        answer->status = STATUS_UNKNOWN_PATH;
        text_append(&answer->body, "there is /health\n");
    }
}

static void destroy(struct muster_health_server *server) {
    health_endpoint_free(server->endpoint);
    text_list_clear(&server->names);
    embedded_loop_free(server->embedded);
    free(server);
}

static enum muster_error check_settings(const struct muster_health_settings *settings,
    struct duration *out_timeout, struct muster_failure *failure) {
    if (settings->alive == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no alive callback");
    }
    if (settings->port < 0 || settings->port > 65535) {
        return library_fail(
            failure, MUSTER_ERROR_INVALID, "%d is no port; 0 to 65535 are", settings->port);
    }
    if (settings->address != NULL) {
        enum muster_error error =
            library_host_check("address", settings->address, ADDRESS_MAXIMUM, failure);
        if (error != MUSTER_OK) {
            return error;
        }
    }
    return library_time_read(settings->timeout, (struct duration){0}, out_timeout, failure);
}

static enum failure_code serve(struct muster_health_server *server, struct failure *failure) {
    enum failure_code code = embedded_loop_new(&server->embedded, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    add_names(server);
    const struct health_endpoint_settings settings = {
        server->settings.address, server->settings.port, &server->names, answer, server};
    return health_endpoint_new(
        embedded_loop_inside(server->embedded), &settings, &server->endpoint, failure);
}

enum muster_error muster_health_server_new(const struct muster_health_settings *settings,
    struct muster_health_server **out_server, struct muster_failure *out_failure) {
    struct muster_health_settings own;
    struct duration timeout;
    struct failure failure = {0};
    if (out_server == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no place for the server");
    }
    enum muster_error error =
        library_settings_read(settings, sizeof own, &own, sizeof own, out_failure);
    if (error == MUSTER_OK) {
        error = check_settings(&own, &timeout, out_failure);
    }
    if (error == MUSTER_OK) {
        error = library_memory_check(out_failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct muster_health_server *server = memory_allocate(sizeof *server);
    server->settings = own;
    server->timeout = timeout;
    if (serve(server, &failure) != FAILURE_NONE) {
        destroy(server);
        return library_pass_on(out_failure, &failure);
    }
    server->settings.address = NULL; /* the program's */
    embedded_loop_note(server->embedded);
    *out_server = server;
    return MUSTER_OK;
}

static enum muster_error check_server(
    const struct muster_health_server *server, struct muster_failure *failure) {
    return library_server_check(server == NULL ? NULL : server->embedded, failure);
}

void muster_health_server_free(struct muster_health_server *server) {
    if (check_server(server, NULL) == MUSTER_OK && !embedded_loop_is_running(server->embedded)) {
        destroy(server);
    }
}

int muster_health_server_port(const struct muster_health_server *server) {
    return check_server(server, NULL) == MUSTER_OK ? health_endpoint_port(server->endpoint) : -1;
}

int muster_health_server_fd(const struct muster_health_server *server) {
    return check_server(server, NULL) == MUSTER_OK ? embedded_loop_fd(server->embedded) : -1;
}

enum muster_error muster_health_server_process(
    struct muster_health_server *server, struct muster_failure *failure) {
    return library_server_process(server == NULL ? NULL : server->embedded, failure);
}
