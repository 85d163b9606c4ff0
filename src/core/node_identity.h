/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node of a job is called in the shared record: the triple by which torchrun names its
 * nodes, its two orders, and how Muster's own nodes are told from torchrun's. Matches _NodeDesc in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */
#ifndef MUSTER_CORE_NODE_IDENTITY_H
#define MUSTER_CORE_NODE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* Longest address with its NUL: a name of the DNS has at most 253 characters. */
#define NODE_ADDRESS_SIZE 256

struct node_identity {
    char address[NODE_ADDRESS_SIZE]; /* --local-addr, or the qualified host name; UTF-8 */
    int64_t pid;
    int64_t local_id; /* torchrun counts from 0 within a process; Muster: see below */
};

/* A longer address is cut. */
void node_identity_init(
    struct node_identity *identity, const char *address, int64_t pid, int64_t local_id);

/* A local id that says "Muster" and tells apart nodes of one process id: 28 bits of `random` beside
 * a mark that torchrun's counters do not reach. It fits a signed 32-bit integer. */
int64_t node_identity_muster_local_id(uint32_t random);
bool node_identity_is_muster(const struct node_identity *identity);

bool node_identity_equals(const struct node_identity *left, const struct node_identity *right);

/* torchrun's order, which gives its ranks: address by code point, then pid, then local id.
 * Negative, 0 or positive. */
int node_identity_compare(const struct node_identity *left, const struct node_identity *right);

/* The order people mean: runs of digits in addresses count as numbers, so node2 comes before
 * node10; what is equal then follows torchrun's order. */
int node_identity_compare_naturally(
    const struct node_identity *left, const struct node_identity *right);

/* Appends torchrun's text form: address_pid_localid. */
void node_identity_describe(const struct node_identity *identity, struct text *out);

/* Reads that form back; false, and nothing is written, when it is none. */
bool node_identity_parse(const char *text, struct node_identity *out_identity);

#endif
