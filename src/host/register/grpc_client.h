/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls over gRPC with one request message and one reply message, or several, by libcurl's HTTP/2
 * on the event loop. It knows frames and statuses of gRPC, and nothing of what the messages mean.
 */
#ifndef MUSTER_HOST_REGISTER_GRPC_CLIENT_H
#define MUSTER_HOST_REGISTER_GRPC_CLIENT_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "host/loop/event_loop.h"
#include "host/register/http_client.h"

/* The statuses of gRPC that matter here. */
enum grpc_status {
    GRPC_OK = 0,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_UNAVAILABLE = 14,
    GRPC_UNAUTHENTICATED = 16,
};

struct grpc_client;
struct grpc_call;

/* Borrowed for the call that gets it. */
struct grpc_result {
    bool is_answered;          /* by a server that speaks gRPC: the two below */
    int status;                /* enum grpc_status, or another number of gRPC */
    struct slice message;      /* the reply, if the status is GRPC_OK */
    const struct failure *why; /* otherwise, without the endpoint */
    bool is_trust_failure;     /* TLS: certificates, or no TLS at all; it will be the same again */
};

struct grpc_question {
    const char *endpoint; /* HOST:PORT */
    const char *path;     /* "/package.Service/Method" */
    struct slice message; /* borrowed for the call below */
    const char *token;    /* of etcd; NULL: none */
    struct duration patience;
    /* For a reply of several messages: each. False: that is enough; the call is gone, and `done` is
     * not called. NULL: there is one message, which `done` is given. */
    bool (*heard)(void *context, struct slice message);
    /* On the loop, never from inside a call of this module; once, unless cancelled. */
    void (*done)(void *context, const struct grpc_result *result);
    void *context;
};

/* The library and what is in `trust` are borrowed as long as the client lives. FAILURE_SYSTEM. */
__attribute__((warn_unused_result)) enum failure_code grpc_client_new(struct event_loop *loop,
    const struct curl_library *library, const struct http_trust *trust,
    struct grpc_client **out_client, struct failure *failure);
/* All calls must have been answered or cancelled. Not from inside `done`. Accepts NULL. */
void grpc_client_free(struct grpc_client *client);

/* Never NULL. Valid until `done` has been called. */
struct grpc_call *grpc_call_start(struct grpc_client *client, const struct grpc_question *question);
void grpc_call_cancel(struct grpc_call *call);

#endif
