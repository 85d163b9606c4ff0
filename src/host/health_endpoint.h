/* SPDX-License-Identifier: BSD-3-Clause */
/* A small HTTP server on an event loop, for probes and scrapers: GET and HEAD, one request per
 * connection, no body taken. What is answered is the owner's; no thread is started. Connections,
 * their time and the size of a request are limited, so that a client that only connects keeps
 * nobody else from asking, and many of them do so for a few seconds. */
#ifndef MUSTER_HOST_HEALTH_ENDPOINT_H
#define MUSTER_HOST_HEALTH_ENDPOINT_H

#include "base/failure.h"
#include "base/text.h"
#include "host/event_loop.h"

#define HEALTH_ENDPOINT_MAXIMUM_CONNECTIONS 32
#define HEALTH_ENDPOINT_CONNECTIONS_PER_ADDRESS 8 /* so that one client leaves room for others */
#define HEALTH_ENDPOINT_SECONDS_PER_CONNECTION 10
#define HEALTH_ENDPOINT_BYTES_PER_CONNECTION 16384 /* both ways, without the answer's body */

struct health_answer {
    int status;               /* of HTTP */
    const char *content_type; /* a literal */
    struct text body;
};

struct health_endpoint_settings {
    const char *address; /* without brackets; NULL: every one of this machine */
    int port;            /* 0: a free one */
    /* Fills in an answer, which begins as an empty one; `path` is borrowed. */
    void (*answer)(void *context, const char *path, struct health_answer *answer);
    void *context;
};

struct health_endpoint;

/* FAILURE_SYSTEM when the port cannot be had, FAILURE_INVALID for an address that is none,
 * FAILURE_MISSING without the library it needs. */
__attribute__((warn_unused_result)) enum failure_code health_endpoint_new(struct event_loop *loop,
    const struct health_endpoint_settings *settings, struct health_endpoint **out_endpoint,
    struct failure *failure);

/* Cuts off who is being answered. Accepts NULL. */
void health_endpoint_free(struct health_endpoint *endpoint);

int health_endpoint_port(const struct health_endpoint *endpoint);

#endif
