/* SPDX-License-Identifier: BSD-3-Clause */
/* PyTorch's TCPStore as a server on an event loop: accepts connections, feeds what arrives through
 * the request decoder into the store table, and sends what the table answers. It decides nothing
 * about keys (core/store_table) or bytes (wire/store_request_codec, wire/store_reply_codec); its
 * own are sockets, buffers and their limits.
 *
 * A client that breaks the protocol, passes a limit or does not read its replies loses its own
 * connection, with a log line that names it; nobody else notices. Half a request costs its bytes
 * and nothing else. As in upstream the server has no timeouts: clients cancel their waits. */
#ifndef MUSTER_HOST_STORE_SERVER_H
#define MUSTER_HOST_STORE_SERVER_H

#include <stddef.h>

#include "base/failure.h"
#include "host/event_loop.h"
#include "host/store_server_settings.h"

struct store_server;

/* Serves `listening_fd`, a non-blocking listening socket (tcp_listener_open), which the server owns
 * from then on; on failure it stays the caller's. The number of connections is also bounded by
 * RLIMIT_NOFILE: clients beyond either are turned away with a log line, and served once others have
 * left. */
__attribute__((warn_unused_result)) enum failure_code store_server_new(struct event_loop *loop,
    int listening_fd, const struct store_server_settings *settings,
    struct store_server **out_server, struct failure *failure);

/* Closes the port and all connections. Run the loop (or free it) afterwards, so that it can let go
 * of them. NULL is fine. */
void store_server_free(struct store_server *server);

/* The port clients connect to. */
int store_server_port(const struct store_server *server);

/* Makes the store a fresh one, on the same port.
 * NULL: forgets everything and closes every connection made so far, also those the kernel has
 * finished but the server has not yet accepted.
 * A prefix: forgets all keys and queues whose raw name (with its leading '/') does not start with
 * it; connections stay, but for those that wait for a forgotten key. What clients sent before the
 * renewal and has arrived is carried out first, so that a dead worker's last words are forgotten
 * too. */
void store_server_renew(struct store_server *server, const char *kept_prefix);

/* Closes the connection that holds the presence key `name`; the observer is told that it is gone.
 * Nothing happens when none does (any more). */
void store_server_drop(struct store_server *server, const char *name);

/* Connections open now. */
size_t store_server_connections(const struct store_server *server);

#endif
