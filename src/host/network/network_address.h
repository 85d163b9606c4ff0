/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and names: of a connection's ends, of others, and of this machine. */
#ifndef MUSTER_HOST_NETWORK_NETWORK_ADDRESS_H
#define MUSTER_HOST_NETWORK_NETWORK_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/rendezvous/endpoint_match.h"
#include "host/loop/event_loop.h"

/* The address of a connection's other end, in readable form. */

#define TCP_ADDRESS_TEXT_SIZE 64

/* Room for an address of either family. */
union tcp_address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

/* The port in host byte order; 0 for an address of another family. */
int tcp_address_port(const union tcp_address *address);
void tcp_address_set_port(union tcp_address *address, int port);

/* The host, without the port: an IPv4 address in the form of IPv6, so that families compare. */
#define TCP_ADDRESS_HOST_BYTES 16
void tcp_address_host(
    const union tcp_address *address, uint8_t out_host[static TCP_ADDRESS_HOST_BYTES]);

/* The text of a host in that form. False when it is a loopback address, or none. */
bool tcp_address_write_host(
    const uint8_t host[static TCP_ADDRESS_HOST_BYTES], char out_text[static INET6_ADDRSTRLEN]);

/* Whether the hosts are the same; ports do not count, and neither does whether an IPv4 address came
 * on an IPv6 socket. */
bool tcp_address_is_same_host(const union tcp_address *left, const union tcp_address *right);

/* Whether a socket of this network namespace may have this host, so that a process here may be the
 * other end of a connection that comes from it. False is certain. True is not: some machines let
 * their sockets have any (net.ipv4.ip_nonlocal_bind). Costs three system calls, however many
 * addresses there are. */
bool tcp_address_may_be_here(const union tcp_address *address);

/* Whether the other end of a connection is a process of this machine: its address is loopback, or
 * the one that it has connected to. */
bool tcp_address_is_this_machine(const union tcp_address *peer, const union tcp_address *own);

/* Writes "192.0.2.1:29500" or "[2001:db8::1]:29500"; an IPv4 address that arrived on an IPv6 socket
 * is written as IPv4. */
void tcp_address_describe(
    const union tcp_address *address, char out_text[static TCP_ADDRESS_TEXT_SIZE]);

/* The host in numbers, without the port and without brackets. False where that is not all of it: a
 * link-local address needs the name of a network. */
bool tcp_address_write_numeric(
    const union tcp_address *address, char out_text[static INET6_ADDRSTRLEN]);

/* The same of this end of a connection. False also where the other end is of this machine, or there
 * is no connection. */
bool tcp_address_write_own(int fd, char out_text[static INET6_ADDRSTRLEN]);

/* The addresses of names and the names of addresses, as this system is set up to find them.
 *
 * libc's lookups hold locks. In a copy of a program with threads such a lock may be held for ever,
 * by a thread that is not there. There `getent` looks up, which asks the same libc in a process of
 * its own. */

/* From now on this process asks getent, where there is one. Before any thread is started. */
void name_lookup_use_getent(void);

struct name_addresses {
    union tcp_address *items; /* with port 0 */
    size_t count;
    size_t capacity;
    char *canonical_name; /* or NULL */
};

void name_addresses_clear(struct name_addresses *addresses);

/* As getaddrinfo with `flags`, for sockets of streams. Returns 0 or getaddrinfo's error, which
 * for EAI_SYSTEM is in errno. The caller clears the addresses. `localhost` is this machine also
 * where neither /etc/hosts nor a name server knows it, as in a bare container. */
__attribute__((warn_unused_result)) int name_lookup_addresses(
    const char *name, int flags, struct name_addresses *out_addresses);
/* As gai_strerror. */
const char *name_lookup_words(int status);

/* As gethostbyaddr of 4 or 16 bytes: the name, then its aliases. An address without a name gives an
 * empty list. */
void name_lookup_names(const unsigned char *address, bool is_ipv6, struct text_list *out_names);

/* Finds the addresses of a host (a name, an IPv4 address, or an IPv6 address without brackets), the
 * best first, and writes at most `most` of them. FAILURE_SYSTEM when the name is not known (now).
 * This blocks: the resolver is called on this thread, so that no other thread is started. */
__attribute__((warn_unused_result)) enum failure_code name_lookup_resolve(const char *host,
    int port, union tcp_address *out_addresses, size_t most, size_t *out_count,
    struct failure *failure);

/* The names and addresses of this machine. The resolver is called directly (no thread is started)
 * and may wait for a name server; this happens once, before the first workers start.
 * core/rendezvous/endpoint_match chooses between the answers. */

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
