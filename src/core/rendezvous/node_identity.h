/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of a node in the shared record. It is the triple by which torchrun names its nodes. This
 * module also has the two orders of nodes, and tells Muster's nodes from torchrun's nodes. Matches
 * _NodeDesc in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */
#ifndef MUSTER_CORE_RENDEZVOUS_NODE_IDENTITY_H
#define MUSTER_CORE_RENDEZVOUS_NODE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* The size of the longest address with its NUL. A DNS name has at most 253 characters. */
#define NODE_ADDRESS_SIZE 256

struct node_identity {
    char address[NODE_ADDRESS_SIZE]; /* --local-addr, or the qualified host name; UTF-8 */
    int64_t pid;
    int64_t local_id; /* torchrun counts from 0 within a process; for Muster see below */
};

/* Cuts an address that is longer than NODE_ADDRESS_SIZE allows. */
void node_identity_init(
    struct node_identity *identity, const char *address, int64_t pid, int64_t local_id);

/* A local id that marks a node as Muster's. It consists of a mark that torchrun's counters do not
 * reach, and of 28 bits of `random`, which tell apart nodes with the same process id. It fits in a
 * signed 32-bit integer. */
int64_t node_identity_muster_local_id(uint32_t random);
/* A local id without the mark, for a node that others are to take for one of torchrun's. */
int64_t node_identity_foreign_local_id(uint32_t random);
bool node_identity_is_muster(const struct node_identity *identity);

bool node_identity_equals(const struct node_identity *left, const struct node_identity *right);

/* The order by which torchrun assigns ranks: first the address by code point, then the pid, then
 * the local id. Returns a negative number, 0 or a positive number. */
int node_identity_compare(const struct node_identity *left, const struct node_identity *right);

/* The order that people expect: runs of digits in an address count as numbers, so node2 comes
 * before node10. Nodes that are equal in this order follow torchrun's order. */
int node_identity_compare_naturally(
    const struct node_identity *left, const struct node_identity *right);

/* Appends torchrun's text form: address_pid_localid. */
void node_identity_describe(const struct node_identity *identity, struct text *out);

/* Reads that text form. Returns false, and leaves `out_identity` as it is, when the text does not
 * have this form. */
bool node_identity_parse(const char *text, struct node_identity *out_identity);

#endif
