/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of a node in the shared record. It is the triple by which torchrun names its nodes, and
 * where a register decides who hosts the job's store, the process behind it: containers of one
 * machine's network, and pods that come again, have one host name and one process id. This module
 * also has the two orders of nodes, and tells Muster's nodes from torchrun's nodes. Matches
 * _NodeDesc in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */
#ifndef MUSTER_CORE_RENDEZVOUS_NODE_IDENTITY_H
#define MUSTER_CORE_RENDEZVOUS_NODE_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

/* The size of the longest address with its NUL. A DNS name has at most 253 characters. */
#define NODE_ADDRESS_SIZE 256

/* 128 random bits, drawn once in the life of a process. 0 and 0: of a node that is told apart by
 * its triple alone, as torchrun's are. */
struct node_process {
    uint64_t high;
    uint64_t low;
};

#define NODE_PROCESS_TEXT_SIZE 33

struct node_identity {
    char address[NODE_ADDRESS_SIZE]; /* --local-addr, or the qualified host name; UTF-8 */
    int64_t pid;
    int64_t local_id; /* torchrun counts from 0 within a process; for Muster see below */
    struct node_process process;
};

/* Cuts an address that is longer than NODE_ADDRESS_SIZE allows. The process is not known. */
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

bool node_process_is_known(const struct node_process *process);
/* Writes the bits as 32 lower-case hexadecimal digits and a NUL; "" where they are not known. */
void node_process_write(const struct node_process *process, char out_text[NODE_PROCESS_TEXT_SIZE]);
/* Reads such digits. Returns false, and leaves `out_process` as it is, for another text. */
bool node_process_parse(const char *text, struct node_process *out_process);

/* Whether both are names of one process, which keeps its bits when it changes its name. Where
 * neither has any, its address and its process id decide. */
bool node_identity_is_same_process(
    const struct node_identity *left, const struct node_identity *right);

/* What all names of one process have in common, as the name of a node: to be found in a node_table.
 */
struct node_identity node_identity_of_process(const struct node_identity *identity);

/* The order by which torchrun assigns ranks: first the address by code point, then the pid, then
 * the local id. Returns a negative number, 0 or a positive number. */
int node_identity_compare(const struct node_identity *left, const struct node_identity *right);

/* The order that people expect: runs of digits in an address count as numbers, so node2 comes
 * before node10. Nodes that are equal in this order follow torchrun's order. */
int node_identity_compare_naturally(
    const struct node_identity *left, const struct node_identity *right);

/* Appends torchrun's text form: address_pid_localid. It is for people. */
void node_identity_describe(const struct node_identity *identity, struct text *out);

/* Appends the text by which nodes know each other: the same and, where the process is known, '_'
 * and its bits as 32 lower-case hexadecimal digits. */
void node_identity_write(const struct node_identity *identity, struct text *out);

/* Reads either text. Returns false, and leaves `out_identity` as it is, when the text does not
 * have this form. */
bool node_identity_parse(const char *text, struct node_identity *out_identity);

#endif
