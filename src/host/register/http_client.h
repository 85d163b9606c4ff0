/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges over HTTP, one request and one reply each, by libcurl on the event loop. It knows
 * connections, TLS and what a server's silence means, and nothing of what is asked. Connections are
 * kept and shared between exchanges where a question does not say otherwise. */
#ifndef MUSTER_HOST_REGISTER_HTTP_CLIENT_H
#define MUSTER_HOST_REGISTER_HTTP_CLIENT_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "host/loop/event_loop.h"

/* Loads libcurl when a job's register is in etcd or in Kubernetes. Linking it would add
 * milliseconds and megabytes to every start, and most jobs have no such register. */

struct curl_library {
    void *handle;
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_version_info) *version_info;
    __typeof__(curl_easy_init) *easy_init;
    __typeof__(curl_easy_setopt) *easy_setopt;
    __typeof__(curl_easy_getinfo) *easy_getinfo;
    __typeof__(curl_easy_cleanup) *easy_cleanup;
    __typeof__(curl_easy_strerror) *easy_strerror;
    __typeof__(curl_slist_append) *slist_append;
    __typeof__(curl_slist_free_all) *slist_free_all;
    __typeof__(curl_multi_init) *multi_init;
    __typeof__(curl_multi_setopt) *multi_setopt;
    __typeof__(curl_multi_add_handle) *multi_add_handle;
    __typeof__(curl_multi_remove_handle) *multi_remove_handle;
    __typeof__(curl_multi_socket_action) *multi_socket_action;
    __typeof__(curl_multi_info_read) *multi_info_read;
    __typeof__(curl_multi_cleanup) *multi_cleanup;
};

/* `library` is CURL_LIBRARY_NAME except in tests. FAILURE_MISSING when it is not installed, lacks a
 * function, or cannot speak HTTP/2. It stays loaded: what it has started cannot be undone. */
#define CURL_LIBRARY_NAME "libcurl.so.4"
__attribute__((warn_unused_result)) enum failure_code curl_library_load(
    const char *library, struct curl_library *out_library, struct failure *failure);

struct http_client;
struct http_exchange;

/* Whom to trust, and how to be trusted. The strings are borrowed as long as the client lives; NULL:
 * not given. */
struct http_trust {
    bool is_tls;
    const char *ca;          /* a file; NULL: the system's */
    const char *certificate; /* this client's; files */
    const char *key;
};

enum http_version {
    HTTP_VERSION_1,     /* an exchange that ends in silence ends its connection */
    HTTP_VERSION_2_ONLY /* without TLS each exchange has a connection of its own */
};

/* Borrowed for the call that gets it. */
struct http_result {
    bool is_answered;          /* the whole reply has come: the two below */
    long status;               /* of HTTP */
    struct slice body;         /* of the reply */
    const struct failure *why; /* otherwise, without the server's name */
    bool is_trust_failure;     /* TLS: certificates, or no TLS at all; it will be the same again */
    bool is_unheard;           /* no connection was made: the server cannot have acted */
    bool is_strange;           /* the server was reached, and did not speak as was expected */
};

struct http_question {
    const char *url;
    const char *method;              /* as HTTP writes it */
    const struct text_list *headers; /* "name: value" */
    struct slice body;
    enum http_version version;
    size_t ceiling; /* of the reply */
    struct duration patience;
    /* Each line of the reply's headers and trailers; may be NULL. */
    void (*header)(void *context, struct slice line);
    /* The part of a reply with a status of 2xx that has come so far, when there is more of it. On
     * the loop, never from inside a call of this module. False: that is enough; the exchange is
     * gone, and `done` is not called. May be NULL. */
    bool (*heard)(void *context, struct slice body);
    /* On the loop, never from inside a call of this module; once, unless cancelled. */
    void (*done)(void *context, const struct http_result *result);
    void *context;
};

/* The library is borrowed as long as the client lives. FAILURE_SYSTEM. */
__attribute__((warn_unused_result)) enum failure_code http_client_new(struct event_loop *loop,
    const struct curl_library *library, const struct http_trust *trust,
    struct http_client **out_client, struct failure *failure);
/* All exchanges must have been answered or cancelled. Not from inside `done`. Accepts NULL. */
void http_client_free(struct http_client *client);

/* Borrows the question for the call. Never NULL. Valid until `done` has been called. */
struct http_exchange *http_exchange_start(
    struct http_client *client, const struct http_question *question);
void http_exchange_cancel(struct http_exchange *exchange);

/* Calls over gRPC with one request message and one reply message, or several, by libcurl's HTTP/2
 * on the event loop. It knows frames and statuses of gRPC, and nothing of what the messages mean.
 */

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
