/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and results of muster/store.h, in the words of the house. Checks what the program has
 * handed in, and puts a store's prefix before its keys. */
#ifndef MUSTER_LIBRARY_STORE_WORDING_H
#define MUSTER_LIBRARY_STORE_WORDING_H

#include <muster/store.h>

#include "base/text.h"
#include "host/store/store_client.h"

/* A request that can be sent. What it borrows is in the rest of the struct, or is the program's. */
struct store_wording {
    struct store_client_call call;
    struct slice *slices;
    char *keys; /* all keys with their prefixes, one behind the other */
};

/* `prefix` goes before each key as it is; "" for none. `value_maximum` is the largest value.
 * `timeout` is the store's. */
enum muster_error store_wording_of_request(const struct muster_store_request *given,
    const char *prefix, size_t value_maximum, struct duration timeout,
    struct store_wording *out_wording, struct muster_failure *failure);
void store_wording_clear(struct store_wording *wording);

/* Fills in the result of a request, but for its error; `values` has room for every item of a reply
 * that is a list. */
void store_wording_of_reply(const struct store_reply *reply, struct muster_slice *values,
    struct muster_store_result *out_result);
size_t store_wording_value_count(const struct store_reply *reply);

#endif
