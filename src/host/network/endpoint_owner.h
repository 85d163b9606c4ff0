/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out whether an endpoint's host is this machine, by the rules of core/endpoint_match. Some
 * hosts are recognised at once. For others the resolver is asked. The resolver may be slow, and a
 * name that it does not know now it may know later. So it is asked on a thread, and the user of
 * this module decides when to ask again. */
#ifndef MUSTER_HOST_NETWORK_ENDPOINT_OWNER_H
#define MUSTER_HOST_NETWORK_ENDPOINT_OWNER_H

#include <stdbool.h>

#include "base/failure.h"
#include "host/loop/event_loop.h"

/* Whether the host (a name, an IPv4 address, or an IPv6 address without brackets) certainly is this
 * machine: by the machine's own name, by the address it was given (--local-addr, or NULL), or by an
 * address as text. False means unknown: ask. Does not ask the resolver and does not block. */
bool endpoint_owner_is_plain(const char *host, const char *given_address);

struct endpoint_owner;

struct endpoint_owner_settings {
    const char *host; /* as in endpoint_owner_is_plain; copied */
    /* The answer to one question. A name that the resolver does not know (yet) does not belong to
     * this machine, unless it is the machine's own name. Called on the loop, never from inside a
     * call below. It may free the owner. */
    void (*answered)(void *context, bool is_own);
    /* The answer to endpoint_owner_ask_for_others, in the same way: addresses of the name that are
     * not this machine's, as endpoint_list_others writes them; empty: there are none. Borrowed. */
    void (*shared)(void *context, const char *others);
    void *context;
};

/* Does not ask yet. FAILURE_SYSTEM when there is no descriptor left. */
__attribute__((warn_unused_result)) enum failure_code endpoint_owner_new(struct event_loop *loop,
    const struct endpoint_owner_settings *settings, struct endpoint_owner **out_owner,
    struct failure *failure);
/* Drops a question under way; its thread ends when the resolver has answered. Accepts NULL. */
void endpoint_owner_free(struct endpoint_owner *owner);

/* Asks; `answered` is called with the answer. FAILURE_SYSTEM when no thread can be started; then
 * there is no answer. While a question is under way the call does nothing. */
__attribute__((warn_unused_result)) enum failure_code endpoint_owner_ask(
    struct endpoint_owner *owner, struct failure *failure);
/* The same, for a host that is this machine: whether it is the name of other machines, too. */
__attribute__((warn_unused_result)) enum failure_code endpoint_owner_ask_for_others(
    struct endpoint_owner *owner, struct failure *failure);

#endif
