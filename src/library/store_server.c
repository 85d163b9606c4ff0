/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/store_server.h: the house's store server, on a thread or in the loop of a program. */
#include <muster/store_server.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/store/store_request.h"
#include "host/loop/event_loop.h"
#include "host/machine/machine.h"
#include "host/network/tcp_listener.h"
#include "host/store/store_admission.h"
#include "host/store/store_server.h"
#include "host/store/store_thread.h"
#include "library/library_settings.h"

#define HOST_MAXIMUM 1024
/* Larger limits could not be counted with: what clients send is added to them. */
#define LARGEST_VALUE ((uint64_t)1 << 30)
#define LARGEST_REQUEST ((uint64_t)1 << 40)
#define MOST_KEYS ((uint64_t)1 << 27)
#define MOST_CONNECTIONS ((uint64_t)1 << 30)

struct muster_store_server {
    void (*write)(void *context, int level, const char *origin, const char *message);
    void *context;
    struct log log;
    struct embedded_loop *embedded;
    struct job_token *token;     /* or NULL */
    struct store_thread *thread; /* or */
    struct store_server *server; /* where there is no thread */
    int port;
};

static void write_log(
    void *context, enum log_level level, const char *origin, const char *message) {
    const struct muster_store_server *server = context;
    server->write(server->context, 10 * ((int)level + 1), origin, message);
}

static enum muster_error check_limits(
    const struct muster_store_server_settings *settings, struct muster_failure *failure) {
    const struct {
        const char *name;
        uint64_t asked;
        uint64_t most;
    } limits[] = {
        {"key_maximum", settings->key_maximum, LARGEST_VALUE},
        {"value_maximum", settings->value_maximum, LARGEST_VALUE},
        {"request_keys", settings->request_keys, MOST_KEYS},
        {"request_maximum", settings->request_maximum, LARGEST_REQUEST},
        {"reply_maximum", settings->reply_maximum, LARGEST_REQUEST},
        {"connection_maximum", settings->connection_maximum, MOST_CONNECTIONS},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (limits[i].asked > limits[i].most) {
            return library_fail(failure, MUSTER_ERROR_LIMIT, "%s may be %" PRIu64 " at most",
                limits[i].name, limits[i].most);
        }
    }
    return MUSTER_OK;
}

static enum muster_error check_settings(
    const struct muster_store_server_settings *settings, struct muster_failure *failure) {
    enum muster_error error = MUSTER_OK;
    if (settings->host != NULL) {
        error = library_host_check("host", settings->host, HOST_MAXIMUM, failure);
    }
    if (error == MUSTER_OK && settings->token_file != NULL) {
        error = library_path_check("token file", settings->token_file, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    if (settings->port < 0 || settings->port > 65535) {
        return library_fail(
            failure, MUSTER_ERROR_INVALID, "%d is no port; 0 to 65535 are", settings->port);
    }
    if (settings->has_fd && settings->fd < 0) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "%d is no descriptor", settings->fd);
    }
    if (settings->memory_percent < 0 || settings->memory_percent > 100) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "%d is no part of the memory; 1 to 100 percent are", settings->memory_percent);
    }
    return check_limits(settings, failure);
}

static void limit(size_t *limit, size_t asked) {
    *limit = asked > 0 ? asked : *limit;
}

static struct store_limits limits_of(const struct muster_store_server_settings *settings) {
    const struct store_memory memory = {settings->memory, settings->memory_percent};
    struct store_limits limits = store_memory_limits(&memory, memory_limit_read(""));
    limit(&limits.key_bytes, settings->key_maximum);
    limit(&limits.value_bytes, settings->value_maximum);
    limit(&limits.keys_per_request, settings->request_keys);
    limit(&limits.request_bytes, settings->request_maximum);
    limit(&limits.queued_reply_bytes, settings->reply_maximum);
    limit(&limits.connections, settings->connection_maximum);
    return limits;
}

static enum failure_code open_port(const struct muster_store_server_settings *settings, int *out_fd,
    int *out_port, struct failure *failure) {
    if (settings->has_fd) {
        *out_fd = settings->fd;
        return tcp_listener_adopt(settings->fd, out_port, failure);
    }
    return tcp_listener_open(settings->host, settings->port, out_fd, out_port, failure);
}

static enum failure_code serve(struct muster_store_server *server,
    const struct muster_store_server_settings *given, struct duration silence,
    struct failure *failure) {
    int fd;
    struct event_loop *loop = embedded_loop_inside(server->embedded);
    const struct store_limits limits = limits_of(given);
    const struct store_server_settings settings = {
        .limits = &limits,
        .log = server->write != NULL ? &server->log : NULL,
        .key = job_token_key(server->token),
        .silence_timeout = silence,
    };
    enum failure_code code = open_port(given, &fd, &server->port, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    return given->is_polled ? store_server_new(loop, fd, &settings, &server->server, failure)
                            : store_thread_start(loop, fd, &settings, &server->thread, failure);
}

static void destroy(struct muster_store_server *server) {
    store_thread_stop(server->thread);
    store_server_free(server->server);
    embedded_loop_free(server->embedded);
    job_token_free(server->token);
    free(server);
}

enum muster_error muster_store_server_new(const struct muster_store_server_settings *settings,
    struct muster_store_server **out_server, struct muster_failure *out_failure) {
    struct muster_store_server_settings own;
    struct duration silence;
    struct failure failure = {0};
    if (out_server == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no place for the server");
    }
    enum muster_error error =
        library_settings_read(settings, sizeof own, &own, sizeof own, out_failure);
    if (error == MUSTER_OK) {
        error = check_settings(&own, out_failure);
    }
    if (error == MUSTER_OK) {
        error = library_silence_read(own.silence_timeout, &silence, out_failure);
    }
    if (error == MUSTER_OK) {
        error = library_memory_check(out_failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct muster_store_server *server = memory_allocate(sizeof *server);
    server->write = own.log;
    server->context = own.context;
    server->log = (struct log){LOG_LEVEL_DEBUG, write_log, server};
    enum failure_code code = embedded_loop_new(&server->embedded, &failure);
    if (code == FAILURE_NONE && own.token_file != NULL) {
        code = job_token_open(NULL, own.token_file, &server->token, &failure);
    }
    if (code == FAILURE_NONE) {
        code = serve(server, &own, silence, &failure);
    }
    if (code != FAILURE_NONE) {
        destroy(server);
        return library_pass_on(out_failure, &failure);
    }
    embedded_loop_note(server->embedded);
    *out_server = server;
    return MUSTER_OK;
}

static enum muster_error check_server(
    const struct muster_store_server *server, struct muster_failure *failure) {
    return library_server_check(server == NULL ? NULL : server->embedded, failure);
}

/* What functions ask that need a server without a thread. */
static enum muster_error check_polled(
    const struct muster_store_server *server, struct muster_failure *failure) {
    enum muster_error error = check_server(server, failure);
    if (error == MUSTER_OK && server->thread != NULL) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the server has a thread of its own");
    }
    return error == MUSTER_OK ? library_server_check_outside(server->embedded, failure) : error;
}

void muster_store_server_free(struct muster_store_server *server) {
    if (check_server(server, NULL) == MUSTER_OK && !embedded_loop_is_running(server->embedded)) {
        destroy(server);
    }
}

int muster_store_server_port(const struct muster_store_server *server) {
    return check_server(server, NULL) == MUSTER_OK ? server->port : -1;
}

int muster_store_server_fd(const struct muster_store_server *server) {
    bool is_polled = check_server(server, NULL) == MUSTER_OK && server->thread == NULL;
    return is_polled ? embedded_loop_fd(server->embedded) : -1;
}

enum muster_error muster_store_server_process(
    struct muster_store_server *server, struct muster_failure *failure) {
    enum muster_error error = check_polled(server, failure);
    return error == MUSTER_OK ? library_server_process(server->embedded, failure) : error;
}
