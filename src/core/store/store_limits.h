/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a store server. They are one value, so that options, decoder, table and host use
 * the same numbers. The defaults of the first three are those of PyTorch's libuv server
 * (TCPStoreLibUvBackend.cpp), which does not have the others. Each field names the module that
 * enforces it. */
#ifndef MUSTER_CORE_STORE_STORE_LIMITS_H
#define MUSTER_CORE_STORE_STORE_LIMITS_H

#include <stddef.h>

struct store_limits {
    size_t key_bytes;          /* decoder: one key, with its leading '/' */
    size_t value_bytes;        /* decoder: one value of one request */
    size_t keys_per_request;   /* decoder: keys of one CHECK, WAIT, MULTI_GET or MULTI_SET */
    size_t request_bytes;      /* decoder: the whole of such a request */
    size_t memory_bytes;       /* table and host: all memory held for clients */
    size_t queued_reply_bytes; /* host: one reply, with those before it that were not read yet */
    size_t unread_bytes;       /* host: a client with more unread bytes is served no request */
    size_t connections;        /* host: clients at the same time */
};

#define STORE_LIMITS_DEFAULT                                                                       \
    ((struct store_limits){                                                                        \
        .key_bytes = 8192,                                                                         \
        .value_bytes = 8388608,                                                                    \
        .keys_per_request = 131072,                                                                \
        .request_bytes = (size_t)256 << 20,                                                        \
        .memory_bytes = (size_t)4 << 30,                                                           \
        .queued_reply_bytes = (size_t)256 << 20,                                                   \
        .unread_bytes = (size_t)1 << 20,                                                           \
        .connections = 131072,                                                                     \
    })

#endif
