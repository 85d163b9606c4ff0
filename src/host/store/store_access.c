/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_access.h"

#include <stdlib.h>

#include "base/memory.h"
#include "host/network/network_address.h"

/* Exactly one of the two pointers is not NULL. */
struct store_access {
    struct store_client *client;
    struct file_store *file;
};

struct store_access *store_access_over_tcp(
    struct event_loop *loop, const struct store_client_settings *settings) {
    struct store_access *access = memory_allocate(sizeof *access);
    access->client = store_client_new(loop, settings);
    return access;
}

struct store_access *store_access_over_file(
    struct event_loop *loop, const struct file_store_settings *settings) {
    struct store_access *access = memory_allocate(sizeof *access);
    access->file = file_store_new(loop, settings);
    return access;
}

void store_access_free(struct store_access *access) {
    if (access != NULL) {
        store_client_free(access->client);
        file_store_free(access->file);
        free(access);
    }
}

void store_access_send(struct store_access *access, const struct store_client_call *call) {
    if (access->client != NULL) {
        store_client_send(access->client, call);
    } else {
        file_store_send(access->file, call);
    }
}

struct duration store_access_look(struct store_access *access) {
    return access->client != NULL ? store_client_look(access->client) : DURATION_FOREVER;
}

struct duration store_access_silence(const struct store_access *access) {
    return access->client != NULL ? store_client_silence(access->client) : (struct duration){0};
}

int store_access_descriptor(const struct store_access *access) {
    return access->client != NULL ? store_client_descriptor(access->client) : -1;
}

void store_access_write_server(const struct store_access *access, struct text *out) {
    if (access->client != NULL) {
        store_client_write_server(access->client, out);
    }
}

void store_access_write_own(const struct store_access *access, struct text *out) {
    char text[INET6_ADDRSTRLEN];
    if (tcp_address_write_own(store_access_descriptor(access), text)) {
        text_append(out, text);
    }
}

void store_access_write_address(const struct store_access *access, struct text *out) {
    if (access->client != NULL) {
        store_client_write_address(access->client, out);
    }
}

void store_access_write_obstacle(const struct store_access *access, struct text *out) {
    if (access->client != NULL) {
        store_client_write_obstacle(access->client, out);
    }
}
