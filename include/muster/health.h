/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers probes over HTTP with what a callback says: HealthCheckServer and
 * create_healthcheck_server of torch/distributed/elastic/agent/server/health_check_server.py, with
 * its alive_callback, port and timeout. PyTorch's starts no server; this one does.
 *
 *     struct muster_health_settings settings = MUSTER_HEALTH_SETTINGS;
 *     settings.port = 8080;
 *     settings.alive = last_progress_time;
 *     struct muster_health_server *server;
 *     if (muster_health_server_new(&settings, &server, &failure) == MUSTER_OK) {
 *         … poll muster_health_server_fd(server) for reading; then:
 *         muster_health_server_process(server, NULL);
 *     }
 *     muster_health_server_free(server);
 *
 * `GET /health` answers 200 while the time that the callback returns is not older than `timeout`
 * seconds, else 503; the body is JSON. A program that does not come to process the server does not
 * answer, which is right: it hangs. A request whose Host is neither an address, nor `localhost`,
 * nor the machine's host name, nor one of $MUSTER_HEALTH_CHECK_HOSTS, gets 421. An agent of
 * muster/agent.h answers by itself where $TORCHELASTIC_HEALTH_CHECK_PORT is in its `env`.
 *
 * The callback comes from inside muster_health_server_process. From inside it the server must be
 * neither processed nor freed. It needs libmicrohttpd, which is loaded when a server is made. What
 * muster/error.h says holds here. */
#ifndef MUSTER_HEALTH_H
#define MUSTER_HEALTH_H

#include <stddef.h>
#include <stdint.h>

#include <muster/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct muster_health_server;

/* Begin with MUSTER_HEALTH_SETTINGS. */
struct muster_health_settings {
    size_t size; /* of this struct */
    /* When the program last made progress, in seconds since 1970 (alive_callback). Has to be given.
     */
    int64_t (*alive)(void *context);
    void *context;
    const char *address; /* without brackets; NULL: every address of this machine */
    int port;            /* 0: a free one */
    double timeout;      /* seconds; default 60. Negative: for ever */
};
#define MUSTER_HEALTH_SETTINGS                                                                     \
    { sizeof(struct muster_health_settings), 0, 0, 0, 0, 60 }

/* Probes can connect when this returns. MUSTER_ERROR_INVALID for an address or a port that is none;
 * MUSTER_ERROR_LIMIT for an address of more than 256 bytes; MUSTER_ERROR_MISSING where
 * libmicrohttpd is not installed; MUSTER_ERROR_SYSTEM. */
enum muster_error muster_health_server_new(const struct muster_health_settings *settings,
    struct muster_health_server **out_server, struct muster_failure *failure);

/* Closes the port and every connection. Accepts NULL. */
void muster_health_server_free(struct muster_health_server *server);

/* -1 for NULL, and in a child, as below. */
int muster_health_server_port(const struct muster_health_server *server);

/* To be polled for reading. */
int muster_health_server_fd(const struct muster_health_server *server);

/* Does what there is to do, and does not wait. */
enum muster_error muster_health_server_process(
    struct muster_health_server *server, struct muster_failure *failure);

#ifdef __cplusplus
}
#endif

#endif
