/* SPDX-License-Identifier: BSD-3-Clause */
/* A key-value store that the processes of a job share: torch.distributed's TCPStore, FileStore and
 * PrefixStore (torch/csrc/distributed/c10d), as a client. The server may be Muster's
 * (muster/store_server.h, or the one that an agent has for its workers at MASTER_ADDR and
 * MASTER_PORT) or PyTorch's. The file may be shared with PyTorch's processes.
 *
 *     struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
 *     settings.host = "node0";
 *     settings.port = 29500;
 *     struct muster_store *store;
 *     struct muster_failure failure;
 *     if (muster_store_new_tcp(&settings, &store, &failure) != MUSTER_OK ||
 *         muster_store_set(store, "rank0", "ready", 5, &failure) != MUSTER_OK) {
 *         fprintf(stderr, "%s\n", failure.message);
 *     }
 *     muster_store_free(store);
 *
 * The names are those of PyTorch's class Store. The differences: TCPStore's constructor serves,
 * too, where it is asked to; here that is muster/store_server.h. Every answer has a deadline, so a
 * server that says nothing is noticed. A lost connection is not made again. A FileStore's file is
 * never removed. num_keys and queues of a file are as in PyTorch: the former counts every key, the
 * latter do not exist.
 *
 * A store can be used in two ways, which go together. The functions with a name from PyTorch wait
 * for their answer. muster_store_submit does not: it takes a callback. Then poll
 * muster_store_fd for reading, and call muster_store_process when it is readable. Callbacks come
 * from inside muster_store_process, and also from inside a function that waits; never from inside
 * muster_store_submit. A callback may submit and may free the store; it may not wait.
 *
 * Keys are texts of at most MUSTER_STORE_KEY_MAXIMUM bytes, with all prefixes. Values are bytes.
 * Lengths are in bytes, times in seconds. What is handed in is copied. What muster/error.h says
 * holds here. */
#ifndef MUSTER_STORE_H
#define MUSTER_STORE_H

#include <stddef.h>
#include <stdint.h>

#include <muster/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* PyTorch's servers close the connection of a client that sends more than this. */
#define MUSTER_STORE_KEY_MAXIMUM 8191
#define MUSTER_STORE_VALUE_MAXIMUM 8388608
#define MUSTER_STORE_KEYS_MAXIMUM 131072

struct muster_store;

/* Bytes that belong to the caller. `data` has a zero byte behind its end; it is NULL in a zeroed
 * struct, which is valid. */
struct muster_bytes {
    char *data;
    size_t length;
};

/* Frees the bytes. Accepts NULL and a zeroed struct, which it leaves behind. */
void muster_bytes_clear(struct muster_bytes *bytes);

/* Bytes that belong to somebody else. */
struct muster_slice {
    const void *data; /* may be NULL when the length is 0 */
    size_t length;
};

/* Making and freeing a store. */

/* TCPStore. Begin with MUSTER_TCP_STORE_SETTINGS; zero stands for the default. */
struct muster_tcp_store_settings {
    size_t size;            /* of this struct, for programs that were built with an older one */
    const char *host;       /* a name or an address; has to be given */
    int port;               /* 1 to 65535; has to be given */
    double timeout;         /* to connect, and for each answer; default 300, negative: for ever */
    double silence_timeout; /* how long the server's machine may not answer at all; 2 or more,
                               default 180 */
    const char *token_file; /* a file with the job's token; NULL: there is none */
    size_t value_maximum;   /* the largest value that may be sent; default
                               MUSTER_STORE_VALUE_MAXIMUM, at most 1 GiB. Muster's servers can be
                               told to take more than PyTorch's */
    /* Called once, with MUSTER_OK when the server has answered, else with the reason why there is
     * no connection. May be NULL. */
    void (*connected)(void *context, enum muster_error error, const char *message);
    /* Called once when an established connection has ended. May be NULL. */
    void (*lost)(void *context, enum muster_error error, const char *message);
    void *context;
};
#define MUSTER_TCP_STORE_SETTINGS                                                                  \
    { sizeof(struct muster_tcp_store_settings), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Begins to connect, and returns at once. Requests may be made from now on; they are carried out
 * when there is a connection. MUSTER_ERROR_INVALID for a host or a port that is none, and for a
 * token file that others may read; MUSTER_ERROR_LIMIT for a host of more than 1024 bytes, or a path
 * of more than 4095; MUSTER_ERROR_SYSTEM. */
enum muster_error muster_store_new_tcp(const struct muster_tcp_store_settings *settings,
    struct muster_store **out_store, struct muster_failure *failure);

/* FileStore. Begin with MUSTER_FILE_STORE_SETTINGS. */
struct muster_file_store_settings {
    size_t size;
    const char *path; /* created when it is missing; has to be given */
    double timeout;   /* as above */
    int is_visitor;   /* only looks: does not create the file, and is not counted as a user of it */
    void (*connected)(void *context, enum muster_error error, const char *message);
    void (*lost)(void *context, enum muster_error error, const char *message);
    void *context;
};
#define MUSTER_FILE_STORE_SETTINGS                                                                 \
    { sizeof(struct muster_file_store_settings), 0, 0, 0, 0, 0, 0 }

/* MUSTER_ERROR_INVALID; MUSTER_ERROR_LIMIT for a path of more than 4095 bytes. A file that cannot
 * be had is told when the store connects. */
enum muster_error muster_store_new_file(const struct muster_file_store_settings *settings,
    struct muster_store **out_store, struct muster_failure *failure);

/* PrefixStore: the same store, and "prefix/" goes before every key. It shares the connection of
 * `base`, its time limit as it is now, and its descriptor; `base` may be freed before it. Of one
 * connection it does not matter which store is processed. Prefixes may be nested, and the prefix
 * may be empty. */
enum muster_error muster_store_new_prefix(struct muster_store *base, const char *prefix,
    struct muster_store **out_store, struct muster_failure *failure);

/* With the last store of a connection the connection is closed. Requests that were submitted to
 * this store are called back with MUSTER_ERROR_CANCELLED before this returns. May be called from
 * inside a callback. Accepts NULL. */
void muster_store_free(struct muster_store *store);

/* Waits until there is a connection, or there will be none: TCPStore's constructor. The other
 * functions that wait do so by themselves. */
enum muster_error muster_store_connect(struct muster_store *store, struct muster_failure *failure);

/* Functions that wait. The time limit of the store applies to each. MUSTER_ERROR_TIMEOUT when it
 * has passed: after a wait for keys the store stays usable; a server that does not answer anything
 * else in time is given up. MUSTER_ERROR_DISCONNECTED, _TIMEOUT, _PROTOCOL or _SYSTEM, from then on
 * for every call, when there is no connection any more. MUSTER_ERROR_UNSUPPORTED for what a file
 * cannot do. MUSTER_ERROR_STATE from inside a callback. */

/* In seconds; negative: for ever. Zero is MUSTER_ERROR_INVALID. */
enum muster_error muster_store_set_timeout(
    struct muster_store *store, double seconds, struct muster_failure *failure);
/* -1 for ever, and for NULL. */
double muster_store_timeout(const struct muster_store *store);

/* Returns when the request was given to the kernel; a server that refuses it closes the
 * connection. The same holds for append, multi_set and queue_push. */
enum muster_error muster_store_set(struct muster_store *store, const char *key, const void *value,
    size_t length, struct muster_failure *failure);

/* Waits until the key exists. */
enum muster_error muster_store_get(struct muster_store *store, const char *key,
    struct muster_bytes *out_value, struct muster_failure *failure);

/* Adds to a number that is kept as its decimal digits; a missing key counts as 0. */
enum muster_error muster_store_add(struct muster_store *store, const char *key, int64_t number,
    int64_t *out_sum, struct muster_failure *failure);

enum muster_error muster_store_append(struct muster_store *store, const char *key,
    const void *value, size_t length, struct muster_failure *failure);

/* Sets the key to `desired` when it has the value `expected`; an empty `expected` stands for a
 * missing key, too. What the key has then is in `out_value`: `desired` when it was set; of a
 * missing key that was expected to have a value, `expected`. */
enum muster_error muster_store_compare_set(struct muster_store *store, const char *key,
    struct muster_slice expected, struct muster_slice desired, struct muster_bytes *out_value,
    struct muster_failure *failure);

/* Whether all of the keys exist: 1 or 0. */
enum muster_error muster_store_check(struct muster_store *store, const char *const *keys,
    size_t count, int *out_exists, struct muster_failure *failure);

/* Waits until all of the keys exist. `timeout` in seconds: 0 is the store's, negative for ever. */
enum muster_error muster_store_wait(struct muster_store *store, const char *const *keys,
    size_t count, double timeout, struct muster_failure *failure);

/* `out_deleted` is 1 when the key had a value, and may be NULL. */
enum muster_error muster_store_delete_key(
    struct muster_store *store, const char *key, int *out_deleted, struct muster_failure *failure);

/* The keys of the whole store, whatever the prefix; a TCPStore's own "init/" among them. */
enum muster_error muster_store_num_keys(
    struct muster_store *store, int64_t *out_count, struct muster_failure *failure);

/* Waits until all of the keys exist. `out_values` has room for `count`; the caller clears each. */
enum muster_error muster_store_multi_get(struct muster_store *store, const char *const *keys,
    size_t count, struct muster_bytes *out_values, struct muster_failure *failure);

/* One request for all pairs. */
enum muster_error muster_store_multi_set(struct muster_store *store, const char *const *keys,
    const struct muster_slice *values, size_t count, struct muster_failure *failure);

/* Queues have names of their own beside the keys. */
enum muster_error muster_store_queue_push(struct muster_store *store, const char *key,
    const void *value, size_t length, struct muster_failure *failure);
/* With `blocks` it waits until there is something; else the error is MUSTER_ERROR_MISSING. */
enum muster_error muster_store_queue_pop(struct muster_store *store, const char *key, int blocks,
    struct muster_bytes *out_value, struct muster_failure *failure);
enum muster_error muster_store_queue_len(struct muster_store *store, const char *key,
    int64_t *out_length, struct muster_failure *failure);

/* Since 0.3: several processes with one store, of `world_size` and at most
 * MUSTER_STORE_KEYS_MAXIMUM: torch/distributed/elastic/utils/store.py, under its keys, so that its
 * programs may take part. Each prefix is of use once. `timeout` as in muster_store_wait. */

/* barrier: waits until `world_size` processes have called it. */
enum muster_error muster_store_barrier(struct muster_store *store, int world_size,
    const char *key_prefix, double timeout, struct muster_failure *failure);

/* get_all: waits for the keys `prefix`0, `prefix`1 and so on. `out_values` has room for
 * `world_size`; the caller clears each. The process of rank 0 also waits until all others have
 * done the same, since it may be the one that serves. */
enum muster_error muster_store_get_all(struct muster_store *store, int rank, const char *prefix,
    int world_size, double timeout, struct muster_bytes *out_values,
    struct muster_failure *failure);

/* synchronize: the same, and sets this process's value first. */
enum muster_error muster_store_synchronize(struct muster_store *store, const void *data,
    size_t length, int rank, int world_size, const char *key_prefix, double timeout,
    struct muster_bytes *out_values, struct muster_failure *failure);

/* Requests that are not waited for. */

/* The fields that a request uses; the others are zero. */
enum muster_store_operation {
    MUSTER_STORE_SET = 1,         /* key, value */
    MUSTER_STORE_GET = 2,         /* key; waits for it */
    MUSTER_STORE_ADD = 3,         /* key, number; result: number */
    MUSTER_STORE_APPEND = 4,      /* key, value */
    MUSTER_STORE_COMPARE_SET = 5, /* key, expected, value; result: value */
    MUSTER_STORE_CHECK = 6,       /* keys, count; result: number, 1 when all exist */
    MUSTER_STORE_WAIT = 7,        /* keys, count */
    MUSTER_STORE_DELETE_KEY = 8,  /* key; result: number, 1 when it had a value */
    MUSTER_STORE_NUM_KEYS = 9,    /* result: number */
    MUSTER_STORE_MULTI_GET = 10,  /* keys, count; waits for them; result: values */
    MUSTER_STORE_MULTI_SET = 11,  /* keys, values, count */
    MUSTER_STORE_QUEUE_PUSH = 12, /* key, value */
    MUSTER_STORE_QUEUE_POP = 13,  /* key, number: 1 waits; result: value, and number: how many
                                     there were */
    MUSTER_STORE_QUEUE_LEN = 14,  /* key; result: number */
    MUSTER_STORE_LIST_KEYS = 15,  /* result: values, the names as they are on the server */
    MUSTER_STORE_BARRIER = 16,    /* key, number: of how many; waits for that many. Muster's server
                                     and PyTorch's since 2.9 */
    MUSTER_STORE_PING = 17,       /* the answer shows that all before it was carried out */
};

struct muster_store_request {
    size_t size; /* of this struct */
    enum muster_store_operation operation;
    const char *key;
    struct muster_slice value;
    struct muster_slice expected;
    int64_t number;
    const char *const *keys;           /* `count` of them */
    const struct muster_slice *values; /* `count` of them */
    size_t count;
    double timeout; /* until the answer, with the time behind other requests; 0: the store's,
                       negative: for ever */
    int is_raw;     /* the keys are those of the server: neither the prefix nor the '/' that
                       TCPStore has before each of its users' keys is put in front */
};
#define MUSTER_STORE_REQUEST                                                                       \
    { sizeof(struct muster_store_request), MUSTER_STORE_PING, 0, {0, 0}, {0, 0}, 0, 0, 0, 0, 0, 0 }

/* How one request has ended. Everything is borrowed for the callback. */
struct muster_store_result {
    enum muster_error error;
    const char *message; /* the reason; "" with MUSTER_OK */
    int system_error;    /* errno, or 0 */
    int is_over;         /* there is no connection: this and every later request fails */
    int64_t number;
    struct muster_slice value;
    const struct muster_slice *values; /* `count` of them */
    size_t count;
};

/* `done` is called once, unless this fails; it may be NULL. The requests of one connection are
 * carried out one after the other: one that waits for a key holds up those behind it. */
enum muster_error muster_store_submit(struct muster_store *store,
    const struct muster_store_request *request,
    void (*done)(void *context, const struct muster_store_result *result), void *context,
    struct muster_failure *failure);

/* The same, and waits until `done` was called, which may be NULL. Returns the result's error. */
enum muster_error muster_store_call(struct muster_store *store,
    const struct muster_store_request *request,
    void (*done)(void *context, const struct muster_store_result *result), void *context,
    struct muster_failure *failure);

/* To be polled for reading. The same for the life of the connection. -1 for NULL, and in a child.
 */
int muster_store_fd(const struct muster_store *store);

/* Does what there is to do, and does not wait. It is no error when there is nothing. */
enum muster_error muster_store_process(struct muster_store *store, struct muster_failure *failure);

#ifdef __cplusplus
}
#endif

#endif
