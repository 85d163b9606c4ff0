/* SPDX-License-Identifier: BSD-3-Clause */
/* PyTorch's TCPStore as a server on an event loop. It accepts connections, passes the received
 * bytes through the request decoder to the store table, and sends the table's answers.
 * core/store/store_table decides about keys, wire/store/store_codec about bytes; this module owns
 * sockets, buffers and their limits.
 *
 * A client that breaks the protocol or passes a limit loses its own connection, with a log line
 * that names it. Other clients are not affected. An incomplete request costs only the memory for
 * its bytes. As in upstream the server has no timeouts: clients cancel their waits.
 *
 * In one turn of the loop a client is served little, so that a client that sends many requests at
 * once does not keep the others waiting. A client that does not read is served no further request
 * while more than a mebibyte waits for it (store_limits.unread_bytes). Its requests stay in the
 * socket, and when it reads they are served. It loses its connection only when the settings'
 * silence timeout has passed without its reading anything (host/tcp_stream), or at a renewal. */
#ifndef MUSTER_HOST_STORE_STORE_SERVER_H
#define MUSTER_HOST_STORE_STORE_SERVER_H

#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "host/loop/event_loop.h"
#include "host/store/store_server_settings.h"

/* Copies key and value. Of seeds with the same key the last one holds. */
void store_seeds_add(struct store_seeds *seeds, const char *key, struct slice value);
void store_seeds_clear(struct store_seeds *seeds);

struct store_server;

/* Serves a non-blocking listening socket (tcp_listener_open) and those of the settings
 * (local_listener_open). All are closed on failure, too. RLIMIT_NOFILE also limits the number of
 * connections. A client beyond either limit is closed with a log line; it can connect again when
 * another client has left. */
__attribute__((warn_unused_result)) enum failure_code store_server_new(struct event_loop *loop,
    int listening_fd_taken, const struct store_server_settings *settings,
    struct store_server **out_server, struct failure *failure);

/* Closes the listening socket and those of the settings, which nobody is to serve. */
void store_server_close_listeners(int listening_fd, const struct store_server_settings *settings);

/* Closes the port and all connections. Run the loop (or free it) afterwards, so that it can release
 * them. Accepts NULL. */
void store_server_free(struct store_server *server);

/* The port clients connect to. */
int store_server_port(const struct store_server *server);

/* Makes the store empty, on the same port.
 * NULL: drops everything and closes every connection made so far, even connections that the kernel
 * has completed but the server has not yet accepted. A prefix: drops all keys and queues whose raw
 * name (with its leading '/') does not start with it. Connections stay, except those that wait for
 * a dropped key. Requests that clients sent before the renewal and that have arrived are carried
 * out first, so that the last writes of a dead worker are dropped, too. */
void store_server_renew(struct store_server *server, const char *kept_prefix);

/* Begins to serve what stood by (see standby_key), with these keys. Connections stay. */
void store_server_serve(struct store_server *server, const struct store_seeds *seeds);

/* Needs a standby_key, of which `answer` is the value from now on. Where the store was served, this
 * ends it: every connection is closed as at a renewal, and every key is forgotten. */
void store_server_stand_by(struct store_server *server, struct slice answer);

/* Closes the connection that holds the presence key `name`; the observer's `gone` is called. Does
 * nothing when no connection holds it. */
void store_server_drop(struct store_server *server, const char *name);

/* Puts a value into the queue of this key, in place of all that is in it, so that a reader finds
 * the latest and an idle one costs no memory. NULL: the queue is emptied. A client that waits for
 * the key is answered. */
void store_server_tell(struct store_server *server, const char *raw_key, const char *value_or_null);

#endif
