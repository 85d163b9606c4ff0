/* SPDX-License-Identifier: BSD-3-Clause */
/* A small blocking client of PyTorch's TCPStore. It is what a worker in any language needs to
 * exchange data with its peers. The server may be Muster's or PyTorch's own. It is not for
 * production use: it makes one request at a time, and a failure ends the worker. */
#ifndef MUSTER_EXAMPLES_TRAIN_STORE_CONNECTION_H
#define MUSTER_EXAMPLES_TRAIN_STORE_CONNECTION_H

#include <stddef.h>

struct store_connection {
    int fd;
};

/* Connects to MASTER_ADDR:MASTER_PORT and shakes hands. Exits with a message on any failure. */
void store_connect(struct store_connection *store, const char *host, const char *port);

/* Sets a key. The store sends no reply: the next request shows whether the connection still stands.
 */
void store_set(struct store_connection *store, const char *key, const void *value, size_t size);

/* Waits until the key exists, then reads exactly `size` bytes of value. */
void store_get(struct store_connection *store, const char *key, void *out_value, size_t size);

void store_delete(struct store_connection *store, const char *key);

void store_disconnect(struct store_connection *store);

#endif
