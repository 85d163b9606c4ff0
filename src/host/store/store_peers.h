/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of one store server: their sockets, the bytes of incomplete requests, and the replies
 * they have not read yet. Requests go through the table one by one, in order of arrival. Replies to
 * several requests that arrived together are sent together. host/store_server listens and decides
 * what a renewal means. */
#ifndef MUSTER_HOST_STORE_STORE_PEERS_H
#define MUSTER_HOST_STORE_STORE_PEERS_H

#include <stdbool.h>
#include <stddef.h>

#include "host/loop/event_loop.h"
#include "host/network/tcp_address.h"
#include "host/store/store_seeds.h"
#include "host/store/store_server_settings.h"

struct client_log;
struct store_peers;

/* Creates a new, empty store without clients. The sockets that are added must already have the
 * settings' silence timeout; here it is only named in log lines. Never NULL. */
struct store_peers *store_peers_new(
    struct event_loop *loop, const struct store_server_settings *settings);

/* Closes all connections and drops the store. The memory is freed when the loop no longer uses the
 * sockets. Accepts NULL. */
void store_peers_free(struct store_peers *peers);

/* Takes a connected, non-blocking socket. Closes it when there are too many. */
void store_peers_add(struct store_peers *peers, int fd_taken, const union tcp_address *address);

/* The lines about clients. */
struct client_log *store_peers_log(struct store_peers *peers);

/* The number of open connections. */
size_t store_peers_count(const struct store_peers *peers);

/* Closes the connection that holds the presence key `name`, if there is one. */
void store_peers_drop(struct store_peers *peers, const char *name);

/* Closes every connection. */
void store_peers_close_all(struct store_peers *peers);

/* Carries out the requests that have arrived on every connection so far. */
void store_peers_catch_up(struct store_peers *peers);

/* Drops all keys and queues that do not start with the prefix; see store_table_renew. Presence is
 * not dropped. The key that says that presence is served is set again. */
void store_peers_renew_table(struct store_peers *peers, const char *kept_prefix);

/* Begins to serve, with these keys. */
void store_peers_serve(struct store_peers *peers, const struct store_seeds *seeds);

/* From now on only PING and GET of the standby key are answered, the latter with this. */
void store_peers_stand_by(struct store_peers *peers, struct slice answer);

bool store_peers_are_standing_by(const struct store_peers *peers);

/* See store_server_tell. */
void store_peers_tell(struct store_peers *peers, const char *raw_key, const char *value_or_null);

#endif
