/* SPDX-License-Identifier: BSD-3-Clause */
/* A small HTTP server on an event loop, for probes and scrapers: GET and HEAD, one request per
 * connection, no request body. The owner gives the answers; no thread is started. A request for
 * another machine's name is refused (wire/telling/http_host). The number of
 * connections, their duration and the size of a request are limited. When there are many
 * connections, a new one takes the place of the oldest. So clients that only connect keep no probe
 * waiting, however many they are. */
#ifndef MUSTER_HOST_NETWORK_HEALTH_ENDPOINT_H
#define MUSTER_HOST_NETWORK_HEALTH_ENDPOINT_H

#include "base/failure.h"
#include "base/text.h"
#include "host/loop/event_loop.h"

#define HEALTH_ENDPOINT_KEPT_CONNECTIONS 24        /* more than that: the oldest is closed */
#define HEALTH_ENDPOINT_MAXIMUM_CONNECTIONS 48     /* with those that are being closed */
#define HEALTH_ENDPOINT_BYTES_PER_CONNECTION 16384 /* both ways, without the answer's body */

/* Literals. */
struct health_header {
    const char *name;
    const char *value;
};

struct health_answer {
    const char *authorization; /* what the request has; NULL: nothing */
    int status;                /* of HTTP */
    const char *content_type;  /* a literal */
    struct text body;
    const struct health_header *headers; /* more than each answer has */
    size_t header_count;
};

struct health_endpoint_settings {
    const char *address; /* without brackets; NULL: every address of this machine */
    int port;            /* 0: a free one */
    /* This machine's names, to which the owner may add; NULL: none but what always is. */
    const struct text_list *names;
    /* Fills in an answer, which is empty at first. `path` is borrowed. */
    void (*answer)(void *context, const char *path, struct health_answer *answer);
    void *context;
};

struct health_endpoint;

/* FAILURE_SYSTEM when the port cannot be used, FAILURE_INVALID when `address` is no address,
 * FAILURE_MISSING when the HTTP library is not installed. */
__attribute__((warn_unused_result)) enum failure_code health_endpoint_new(struct event_loop *loop,
    const struct health_endpoint_settings *settings, struct health_endpoint **out_endpoint,
    struct failure *failure);

/* Closes connections, also those whose answer is being sent. Accepts NULL. */
void health_endpoint_free(struct health_endpoint *endpoint);

int health_endpoint_port(const struct health_endpoint *endpoint);

#endif
