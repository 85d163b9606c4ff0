/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of one store server: their sockets, the bytes of requests that are not yet complete,
 * and the replies they have not yet taken. Requests go through the table one by one, in the order
 * of arrival; replies to several requests that arrived together leave together. Listening, and what
 * a renewal means, are the server's (host/store_server). */
#ifndef MUSTER_HOST_STORE_PEERS_H
#define MUSTER_HOST_STORE_PEERS_H

#include <stddef.h>

#include "host/event_loop.h"
#include "host/store_server_settings.h"
#include "host/tcp_address.h"

struct store_peers;

/* A new, empty store without clients. The sockets added have the settings' silence timeout (it is
 * named in log lines). Never NULL. */
struct store_peers *store_peers_new(
    struct event_loop *loop, const struct store_server_settings *settings);

/* Closes all connections and forgets the store; the memory goes when the loop has let go of the
 * sockets. NULL is fine. */
void store_peers_free(struct store_peers *peers);

/* Takes a connected, non-blocking socket; closes it when there are too many. */
void store_peers_add(struct store_peers *peers, int fd_taken, const union tcp_address *address);

/* Connections open now. */
size_t store_peers_count(const struct store_peers *peers);

/* Closes the connection that holds the presence key `name`, if there is one. */
void store_peers_drop(struct store_peers *peers, const char *name);

/* Closes every connection. */
void store_peers_close_all(struct store_peers *peers);

/* Carries out what has arrived on every connection so far. */
void store_peers_catch_up(struct store_peers *peers);

/* Forgets all keys and queues that do not start with the prefix; see store_table_renew. Who is
 * there is not forgotten, and the key that says that presence is served is there again. */
void store_peers_renew_table(struct store_peers *peers, const char *kept_prefix);

#endif
