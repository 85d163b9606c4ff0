/* SPDX-License-Identifier: BSD-3-Clause */
/* The names and addresses of this machine. The resolver is called directly (no thread is started)
 * and may wait for a name server; this happens once, before the first workers start.
 * core/address_choice chooses between the answers. */
#ifndef MUSTER_HOST_NETWORK_LOCAL_ADDRESS_H
#define MUSTER_HOST_NETWORK_LOCAL_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "base/text.h"

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

#endif
