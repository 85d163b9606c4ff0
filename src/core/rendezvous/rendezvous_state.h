/* SPDX-License-Identifier: BSD-3-Clause */
/* The record that all nodes of a job share: the round and its participants, the wait list and the
 * spares. This module has the record as a value, and the ways to change it. rendezvous_decision
 * decides when to change it by torchrun's rules, rendezvous_regroup makes the changes of Muster's
 * nodes among themselves, and wire/rendezvous_state_pickle spells it. Matches _RendezvousState and
 * the actions of _DistributedRendezvousOpExecutor in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. Its four maps are one list of nodes
 * here. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_STATE_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/table.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/workers/restart_history.h"

/* The name of a node in the shared record. It is the triple by which torchrun names its nodes, and
 * where a register decides who hosts the job's store, the process behind it: containers of one
 * machine's network, and pods that come again, have one host name and one process id. This module
 * also has the two orders of nodes, and tells Muster's nodes from torchrun's nodes. Matches
 * _NodeDesc in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */

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

/* A map from nodes to numbers. A node is found at once, however many there are: a record of
 * thousands of nodes is not searched once for each of them. */

#define NODE_TABLE_ABSENT SIZE_MAX

/* A zeroed struct is valid and empty. */
struct node_table {
    struct table *numbers;
};

void node_table_clear(struct node_table *table);

/* Copies the identity. A number that the node already has is replaced; it is less than
 * NODE_TABLE_ABSENT. */
void node_table_put(struct node_table *table, const struct node_identity *identity, size_t number);
/* Nothing happens when the node is not in the table. */
void node_table_remove(struct node_table *table, const struct node_identity *identity);
/* The number of the node, or NODE_TABLE_ABSENT. */
size_t node_table_find(const struct node_table *table, const struct node_identity *identity);

/* The largest number of nodes in a record that is read from a store. */
#define RENDEZVOUS_NODES_MAXIMUM 65536
#define RENDEZVOUS_REASON_SIZE 256

struct rendezvous_node {
    struct node_identity identity;
    bool is_participant;
    bool is_waiting;    /* on the wait list: the node asks for a new round */
    bool is_redundant;  /* on the redundancy list: the node is a spare */
    bool has_heartbeat; /* torchrun keeps heartbeats in a map of its own */
    /* A participant whose workers are done in this round, so that it may be gone. Muster notes it
     * of a node of which the next host of the store could not learn it. */
    bool is_done;
    /* Of whoever waits or is a spare: the node that looks at the record has not heard of it, so it
     * may be nowhere. No record has this. */
    bool is_awaited;
    int64_t rank; /* the rank of a participant of a complete round; else 0 */
    struct wall_time heartbeat;
};

/* Nodes of a record that are counted and not listed. A node that delegates (rendezvous_delegating)
 * is told so of all others. A record with a crowd is never written. */
struct rendezvous_crowd {
    size_t participants;
    size_t waiting;
    size_t redundant;
    bool has_gaps; /* the ranks of all participants, the listed ones too, are not whole */
};

/* Of so many nodes it is kept how often their workers have failed first. */
#define RENDEZVOUS_BLAMES_MAXIMUM 64

/* A node, by its address, whose workers have failed first so often. */
struct rendezvous_blame {
    char address[NODE_ADDRESS_SIZE];
    int64_t count;
};

struct rendezvous_state {
    int64_t round;
    bool is_complete; /* the round has its participants and ranks */
    bool has_deadline;
    bool is_closed;                /* a closed record stays closed */
    struct wall_time deadline;     /* the end of the last call, in an open round */
    struct rendezvous_node *nodes; /* in the order in which they came; each has a flag set */
    size_t count;
    size_t capacity;
    struct rendezvous_crowd crowd; /* zero in every record that a store has */
    /* Only Muster's nodes use the following members. torchrun's nodes keep them as they are. */
    /* A number that differs in a record that was begun anew: because there was none, or because it
     * was lost. 0: no node of Muster has written it yet. */
    int64_t origin;
    /* The number from which this record counts its rounds, and the one from which it will count
     * from the next round on. Both are 0 as long as the record was never lost. */
    int64_t base;
    int64_t next_base;
    int64_t restarts; /* how many restarts the job has used */
    /* As many the next round has at least: somebody knew of more, in a round that had begun. */
    int64_t next_restarts;
    /* How old the last of them are, as of when the record was written. */
    struct restart_ages ages;
    struct rendezvous_blame *blames; /* the last one first; NULL: there are none */
    size_t blame_count;
    /* An open round becomes complete with this many participants; 0: by torchrun's rule. */
    int64_t wanted;
    int64_t size; /* of the largest world so far */
    /* The host of the store tells each node of this round its ranks: the number of the round and 1.
     * Any other number says nothing. */
    int64_t ranked;
    bool is_draining; /* the workers of a participant are done: no node is admitted */
    /* The host of the store cannot write its register, so that no other round would be committed:
     * no node is admitted. */
    bool is_frozen;
    bool is_charged; /* the last restart was charged, and not given back */
    bool is_doubted; /* a participant doubts a failure: all participants answer a roll call */
    bool has_failed; /* closed because of a failure; `reason` describes it */
    /* A node was told to end by this signal, and therefore began this round or closed the record;
     * 0: none. */
    int64_t signal;
    /* Why this round was begun, or why the record was closed; UTF-8. */
    char reason[RENDEZVOUS_REASON_SIZE];
};

/* A zeroed struct is valid: it is the empty record. */
void rendezvous_state_clear(struct rendezvous_state *state);
/* `out_copy` is cleared first. */
void rendezvous_state_copy(const struct rendezvous_state *state, struct rendezvous_state *out_copy);

/* Whether the round is complete, and the host of the store tells each of its nodes its ranks. */
bool rendezvous_state_is_ranked(const struct rendezvous_state *state);
/* How many rounds of the job came before this one, as far as those who wrote the record knew. */
int64_t rendezvous_state_ordinal(const struct rendezvous_state *state);
/* The number of the round becomes that of the next round, and what was kept for it holds. */
void rendezvous_state_count_round(struct rendezvous_state *state);
/* Numbers from `base` on what is not complete yet: the open round, or the next one. */
void rendezvous_state_renumber(struct rendezvous_state *state, int64_t base);
/* The job has used so many restarts at least. All nodes of a round are to tell their workers the
 * same number, so a complete round keeps what it has. Beside torchrun's nodes, which restart their
 * workers within the round, it does not. */
void rendezvous_state_raise_restarts(struct rendezvous_state *state, int64_t restarts);

/* The workers of the node have failed first once more. Returns how often they have by now. */
int64_t rendezvous_state_blame(struct rendezvous_state *state, const char *address);
/* The last blame is taken back: the loss of another node was the cause. */
void rendezvous_state_take_blame_back(struct rendezvous_state *state);
/* The node is not blamed any more. */
void rendezvous_state_forgive(struct rendezvous_state *state, const char *address);

/* Whether `left` was the job's record before `right` was. Then somebody has lost what was written
 * since: rounds only count up, a complete round does not open again, and a closed record stays
 * closed. */
bool rendezvous_state_is_before(
    const struct rendezvous_state *left, const struct rendezvous_state *right);

/* The node, or NULL. The pointer is valid until a node is added or removed. */
struct rendezvous_node *rendezvous_state_find(
    const struct rendezvous_state *state, const struct node_identity *identity);
/* The node. When it is missing it is added without a flag, and the caller sets one. */
struct rendezvous_node *rendezvous_state_obtain(
    struct rendezvous_state *state, const struct node_identity *identity);
/* The places of all nodes, to find many of them. The caller clears the table. It is valid until a
 * node is added or removed. */
struct node_table rendezvous_state_places(const struct rendezvous_state *state);
/* Drops nodes without any flag. */
void rendezvous_state_prune(struct rendezvous_state *state);

size_t rendezvous_state_participants(const struct rendezvous_state *state);
size_t rendezvous_state_waiting(const struct rendezvous_state *state);
size_t rendezvous_state_redundant(const struct rendezvous_state *state);

/* Whether a foreign node (one that is not Muster's) is a participant, or is in the record at all.
 */
bool rendezvous_state_has_foreign_participant(const struct rendezvous_state *state);
bool rendezvous_state_has_foreign_node(const struct rendezvous_state *state);

/* Settles the record after participants have left (_remove_participant_epilogue). After a complete
 * round without participants the next round begins. An open round with too few participants loses
 * its deadline. What Muster notes of a round (wanted, is_draining, is_done, is_doubted, reason,
 * signal) is cleared when the next round begins. */
void rendezvous_state_settle(
    struct rendezvous_state *state, const struct rendezvous_settings *settings);

/* Clears is_draining, is_doubted and each node's is_done: they are of a round that is over. */
void rendezvous_state_forget_round(struct rendezvous_state *state);

/* Removes nodes from every list. Returns whether a participant was among them. The identities may
 * point into the record. */
bool rendezvous_state_take_out(
    struct rendezvous_state *state, const struct node_identity *gone, size_t gone_count);

/* Whether the n participants have the ranks 0 to n - 1. A participant that leaves a complete round
 * leaves a gap in the ranks, unless its rank was the highest. */
bool rendezvous_state_is_whole(const struct rendezvous_state *state);
/* All nodes of the record, counted. */
struct rendezvous_crowd rendezvous_state_crowd(const struct rendezvous_state *state);

/* Completes the round: it has all its participants. Assigns their ranks. */
void rendezvous_state_complete(struct rendezvous_state *state);

/* Appends one line for transcripts: "round 3 complete [a_1_0:0 b_2_0:1] wait [] spare [c_3_0]". A
 * round that is not complete is "open", or "last_call" once its last call has begun. Marks follow
 * if they are set: "closed", "closed failed", "draining", "frozen", "doubted", "restarts 2",
 * "recent 2", "charged", "wanted 4", "ranked", "signal 15", "because REASON". */
void rendezvous_state_describe(const struct rendezvous_state *state, struct text *out);

#endif
