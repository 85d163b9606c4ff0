/* SPDX-License-Identifier: BSD-3-Clause */
/* The few messages of etcd's API of version 3 by which a register is kept (etcd.proto), and the
 * frame in which gRPC carries one. protobuf-c spells them, and is seen by this module alone. Only
 * the fields that are used here are known; others are skipped. */
#ifndef MUSTER_WIRE_REGISTER_ETCD_MESSAGE_H
#define MUSTER_WIRE_REGISTER_ETCD_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"

/* The largest reply that is read: one entry, and what surrounds it. */
#define ETCD_MESSAGE_MAXIMUM ((size_t)2 << 20)

/* A key, or with `end` all keys from `key` up to and without `end`. */
struct etcd_range {
    const char *key;
    const char *end; /* NULL: one key */
};

/* Every function appends one message. */

/* The last key of the range. */
void etcd_write_range_last(struct etcd_range range, struct bytes *out);
void etcd_write_put(const char *key, struct slice value, struct bytes *out);
void etcd_write_authenticate(const char *name, const char *password, struct bytes *out);

/* Puts the value, if there is no key in `absent` and the key `present` is there (NULL: any). Then
 * it also removes the ranges of `removed`. Otherwise it reads the last key of `otherwise`. */
struct etcd_append {
    struct etcd_range absent;
    const char *present;
    const char *key;
    struct slice value;
    struct etcd_range removed[2]; /* those whose key is not NULL */
    struct etcd_range otherwise;
};
void etcd_write_append(const struct etcd_append *append, struct bytes *out);

/* Tells of each key of the range that is put from now on. (What was put since an earlier revision
 * etcd tells only with its next round over all such watches, every 100 ms.) */
void etcd_write_watch(struct etcd_range range, struct bytes *out);

/* What was read. The slices borrow from `memory`. */
struct etcd_reply {
    bool has_succeeded; /* of an append */
    bool is_created;    /* of a watch: from now on everything is told */
    bool is_canceled;   /* of a watch: nothing more will come */
    bool has_key;       /* a key was found */
    struct slice key;
    struct slice value;
    void *memory;
};
void etcd_reply_clear(struct etcd_reply *reply);

/* FAILURE_MALFORMED for what is no such message. FAILURE_LIMIT for one longer than
 * ETCD_MESSAGE_MAXIMUM, for one of so many pieces that they take much more memory than its bytes,
 * and where there is no memory. */
__attribute__((warn_unused_result)) enum failure_code etcd_read_range(
    struct slice message, struct etcd_reply *out_reply);
__attribute__((warn_unused_result)) enum failure_code etcd_read_append(
    struct slice message, struct etcd_reply *out_reply);
/* The last key that was put, of those that the message tells of. */
__attribute__((warn_unused_result)) enum failure_code etcd_read_watch(
    struct slice message, struct etcd_reply *out_reply);
/* The caller frees the token with free(). */
__attribute__((warn_unused_result)) enum failure_code etcd_read_token(
    struct slice message, char **out_token);

/* gRPC's frame around one message that is not compressed. */
void grpc_write_frame(struct slice message, struct bytes *out);
/* FAILURE_INCOMPLETE when bytes are missing, FAILURE_MALFORMED for a compressed message or more
 * bytes than one message, FAILURE_LIMIT for one longer than ETCD_MESSAGE_MAXIMUM. */
__attribute__((warn_unused_result)) enum failure_code grpc_read_frame(
    struct slice frame, struct slice *out_message);
/* The first of the messages that follow each other, and the length of its frame. False: it has not
 * come as a whole, or is none that grpc_read_frame takes. */
bool grpc_take_frame(struct slice frames, struct slice *out_message, size_t *out_length);

#endif
