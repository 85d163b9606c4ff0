/* SPDX-License-Identifier: BSD-3-Clause */
/* The store a conformance suite is run against, and clients of it: each a connection (or an open
 * file) of its own, asked one thing after the other or several at a time. */
#ifndef MUSTER_TESTS_CONFORMANCE_STORE_UNDER_TEST_H
#define MUSTER_TESTS_CONFORMANCE_STORE_UNDER_TEST_H

#include "unit.h"

#include "base/bytes.h"
#include "host/loop/event_loop.h"
#include "host/store/store_access.h"

/* How long anything may take before the test has failed; nothing here takes a thousandth of it. */
#define PATIENCE duration_from_milliseconds(60000)

/* What a request came back with; its bytes are copied. */
struct answer {
    int calls;
    enum failure_code code;
    struct store_reply reply;
    struct bytes blob;     /* the reply's blob, or all of its list, one after the other */
    size_t lengths[8];     /* of the list's items */
    const char *operation; /* for messages */
};
void answer_clear(struct answer *answer);

/* Reads "own" (a server of ours, in this process), "tcp HOST PORT", "file" (a new one) or "file
 * PATH" from the command line; false when it is none. */
bool store_under_test_parse(int argument_count, char **arguments);

struct store_under_test {
    struct event_loop *loop;
    struct store_access *first; /* two clients that are always there */
    struct store_access *second;
};

/* Group fixtures: the state is a struct store_under_test. */
int store_under_test_set_up(void **state);
int store_under_test_tear_down(void **state);

/* One more client. */
struct store_access *store_client_open(struct store_under_test *store);

/* Where the store is: a path, or else a host and a port. */
struct store_place {
    const char *path;
    const char *host;
    int port;
};
struct store_place store_under_test_place(void);

/* A key no other test uses, also when the store is an old one; the caller frees it. */
char *unused_key(const char *name);

/* Sends a request; the answer is cleared by the caller when it has come. */
void begin(struct store_access *client, const struct store_request *request, struct answer *answer);
/* As upstream's get(): when the keys exist. */
void begin_get(
    struct store_access *client, const struct store_request *request, struct answer *answer);
/* Turns the loop until it has been answered, without a failure. */
void await(struct store_under_test *store, struct answer *answer);

/* Each asks and waits for the answer. A SET has none: set() also asks whether the key exists, so
 * that others find it there afterwards. */
void set(struct store_under_test *store, struct store_access *client, const char *key,
    const char *value);
void expect_stored(struct store_under_test *store, struct store_access *client, const char *key,
    const char *expected);
int64_t add(
    struct store_under_test *store, struct store_access *client, const char *key, int64_t number);
bool exists(struct store_under_test *store, struct store_access *client, const char *key);
bool remove_key(struct store_under_test *store, struct store_access *client, const char *key);
/* The answer is to be cleared. */
struct answer compare_set(struct store_under_test *store, struct store_access *client,
    const char *key, struct slice expected, struct slice desired);

#endif
