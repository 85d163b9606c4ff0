/* SPDX-License-Identifier: BSD-3-Clause */
/* The record that the nodes of a rendezvous share, for programs that look at a job without taking
 * part in it: _RendezvousState and _NodeDesc of torch/distributed/elastic/rendezvous/
 * dynamic_rendezvous.py. It says which round it is, which nodes take part with which ranks, and
 * which wait. The job may be Muster's or torchrun's. This is what `muster rendezvous show` prints.
 *
 *     struct muster_rendezvous_state *state;
 *     if (muster_rendezvous_state_get(store, "job", &state, &failure) == MUSTER_OK) {
 *         printf("round %lld, %zu nodes\n", (long long)state->round, state->node_count);
 *         muster_rendezvous_state_free(state);
 *     }
 *
 * Reading a record runs nothing that is in it. What others have written into it (addresses, the
 * reason) is UTF-8 with any control characters. What muster/error.h says holds here. */
#ifndef MUSTER_RENDEZVOUS_STATE_H
#define MUSTER_RENDEZVOUS_STATE_H

#include <stddef.h>
#include <stdint.h>

#include <muster/error.h>
#include <muster/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The record of a job is the key with this in front of the run id, in the store at the job's
 * endpoint (the backend c10d). */
#define MUSTER_RENDEZVOUS_STATE_KEY "torch.rendezvous."

/* A node of the record: _NodeDesc, and in which of the record's lists it is. */
struct muster_rendezvous_node {
    const char *addr;
    int64_t pid;
    int64_t local_id;
    int is_muster;         /* else torchrun's, or of a program that does as torchrun does */
    int is_participant;    /* participants */
    int is_waiting;        /* wait_list: it asks for another round */
    int is_redundant;      /* redundancy_list: it is a spare */
    int is_done;           /* a participant whose workers are done: it may be gone */
    int64_t rank;          /* of a participant of a complete round; else -1 */
    double last_heartbeat; /* by the clock of the node; 0: there is none */
};

/* _RendezvousState. Times are seconds since 1970. Fields may be added at the end. */
struct muster_rendezvous_state {
    int64_t round;
    int is_complete; /* its participants have their ranks */
    int is_closed;   /* no round follows */
    double deadline; /* until which an open round that has enough participants waits for more; 0:
                        there is none */
    const struct muster_rendezvous_node *nodes; /* in the order in which they came */
    size_t node_count;
    size_t participant_count; /* of the nodes */
    size_t waiting_count;
    size_t redundant_count;
    /* What only nodes of `muster run` note. In other records it is 0 and "". */
    const char *reason;    /* why this round was begun or, where it is closed, why */
    int has_failed;        /* it was closed because of a failure */
    int64_t restarts;      /* how many the job has used, … */
    int64_t next_restarts; /* … and how many the next round counts at least */
    int64_t wanted;        /* the round is complete with so many participants; 0: by the settings */
    int64_t signal;        /* by which a node was told to end; 0: none */
    int is_draining;       /* the workers of a participant are done: no node is admitted */
    int is_doubted;        /* a participant doubts a failure: all are asked to answer */
    int is_ranked;         /* the host of the store tells each node the ranks of its workers */
};

/* The record of a job, from the store at its endpoint. Waits, as the functions of muster/store.h
 * do; these are its errors. MUSTER_ERROR_MISSING when there is no record, MUSTER_ERROR_PROTOCOL,
 * _LIMIT or _UNSUPPORTED when it is none that can be read. The caller frees the state. */
enum muster_error muster_rendezvous_state_get(struct muster_store *store, const char *run_id,
    struct muster_rendezvous_state **out_state, struct muster_failure *failure);

/* The same of the bytes that a backend keeps: `state` of struct muster_rendezvous_record. */
enum muster_error muster_rendezvous_state_read(const void *state, size_t length,
    struct muster_rendezvous_state **out_state, struct muster_failure *failure);

/* Accepts NULL. */
void muster_rendezvous_state_free(struct muster_rendezvous_state *state);

#ifdef __cplusplus
}
#endif

#endif
