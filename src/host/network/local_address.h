/* SPDX-License-Identifier: BSD-3-Clause */
/* The names and addresses of this machine. The resolver is called directly (no thread is started)
 * and may wait for a name server; this happens once, before the first workers start.
 * core/rendezvous/endpoint_match chooses between the answers. */
#ifndef MUSTER_HOST_NETWORK_LOCAL_ADDRESS_H
#define MUSTER_HOST_NETWORK_LOCAL_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/rendezvous/endpoint_match.h"
#include "host/loop/event_loop.h"
#include "host/network/tcp_address.h"

/* IP addresses of a name or of this machine, as the system knows them. Other modules decide what to
 * do with them. The resolver is called directly (no thread is started) and may wait for a name
 * server. */

/* A zeroed struct is a valid empty list. */
struct address_list {
    struct network_address *items;
    size_t count;
    size_t capacity;
};

void address_list_clear(struct address_list *list);

/* The addresses of a name, or of an address as text; empty when it does not resolve.
 * `out_canonical_name` becomes the resolver's name for it, which the caller frees, or NULL; pass
 * NULL if it is not wanted. */
struct address_list address_list_of_name(const char *name, char **out_canonical_name);

/* The addresses of all interfaces that are up, in the kernel's order. */
struct address_list address_list_of_interfaces(void);

/* Whether the host is one of these, or any loopback address. */
bool address_list_is_of_interface(const union tcp_address *address);

/* gethostname(). The caller frees the result. */
__attribute__((warn_unused_result)) enum failure_code local_address_host_name(
    char **out_name, struct failure *failure);

/* Python's socket.getfqdn(): torchrun's name for this node. When the resolver fails, the result is
 * the host name. The caller frees the result. */
__attribute__((warn_unused_result)) enum failure_code local_address_qualified_name(
    char **out_name, struct failure *failure);

/* MASTER_ADDR of a job on this node alone: a name by which this machine's own processes reach it;
 * see address_choice_for_one_node. The caller frees the result. */
__attribute__((warn_unused_result)) enum failure_code local_address_for_one_node(
    char **out_name, struct failure *failure);

/* MASTER_ADDR of a job of several nodes; see address_choice_for_many_nodes. The caller frees the
 * result. Appends the addresses to which this machine's name leads, each with a blank after it. */
__attribute__((warn_unused_result)) enum failure_code local_address_for_many_nodes(
    char **out_name, struct text *addresses, struct failure *failure);

/* Appends the addresses from which other machines may see this one, parted by blanks: those of the
 * interfaces that are up, but for loopback and link-local ones; first those from which packets go
 * to far networks. Addresses that would make it more than `most` bytes are left out. */
void local_address_write_interfaces(size_t most, struct text *out);

/* Whether the text is an address of one of this machine's interfaces, as programs write it, that
 * other machines may reach: no loopback, no link-local one. No name is looked up. */
bool local_address_is_beyond_loopback(const char *text);

/* Finds out whether an endpoint's host is this machine, by the rules of core/endpoint_match. Some
 * hosts are recognised at once. For others the resolver is asked. The resolver may be slow, and a
 * name that it does not know now it may know later. So it is asked on a thread, and the user of
 * this module decides when to ask again. */

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
