/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two files about torchrun's nodes share. */
#ifndef MUSTER_TESTS_WHOLE_TORCH_H
#define MUSTER_TESTS_WHOLE_TORCH_H

#include "whole_parts.h"

enum torch_phase {
    TORCH_JOINING,
    TORCH_EXCHANGING, /* its round is complete, its workers are not started yet */
    TORCH_RUNNING,
    TORCH_STOPPING,
    TORCH_IN_BARRIER,
    TORCH_CLOSING,
};

enum torch_operation { TORCH_NOTHING, TORCH_EXIT, TORCH_JOIN, TORCH_CLOSE, TORCH_BEAT, TORCH_LOOK };

/* What it asks the store; the record's over one connection, its round's over another. */
enum torch_question {
    TORCH_ASKS_FOR_RECORD,
    TORCH_WRITES_RECORD,
    TORCH_WAITS_FOR_ADDRESS,
    TORCH_WAITS_FOR_ROLES,
    TORCH_ASKS_FOR_ROLES,
    TORCH_WAITS_FOR_WORLD,
    TORCH_ASKS_FOR_WORLD,
    TORCH_COUNTS_MEMBERS,
    TORCH_WAITS_FOR_LAST,
    TORCH_TELLS, /* nobody waits for an answer */
};

struct whole_torch {
    enum torch_phase phase;
    uint64_t phase_life; /* which stay in a phase this is */
    enum torch_operation operation;
    uint64_t life;                 /* of the operation */
    struct rendezvous_state state; /* as it knows it, without those it thinks dead */
    struct bytes token;            /* the record's text as seen last */
    bool is_dirty;
    bool is_beat_due;
    int64_t deadline; /* of the operation */
    int64_t round;
    int rank;
    int size;
};

/* whole_torch_record.c: one operation at a time. */
void torch_begin(
    struct whole_cluster *cluster, struct whole_node *node, enum torch_operation operation);
void torch_take_record(
    struct whole_cluster *cluster, struct whole_node *node, const struct store_reply *reply);

/* whole_torch_node.c */
void torch_set_phase(struct whole_torch *torch, enum torch_phase phase);
void torch_send(struct whole_cluster *cluster, struct whole_node *node, enum rendezvous_lane lane,
    const struct store_request *request, enum torch_question question);
/* An operation is done … */
void torch_finish(
    struct whole_cluster *cluster, struct whole_node *node, enum torch_operation operation);
/* … or the agent is. */
void torch_give_up(struct whole_cluster *cluster, struct whole_node *node);

#endif
