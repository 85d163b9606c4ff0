/* SPDX-License-Identifier: BSD-3-Clause */
/* Which nodes of the record are gone, and which have never come. This node knows it in one of two
 * ways. It hosts a store that serves presence, and the backend told it that a node has shown itself
 * there, and that its connection ended. Or the heartbeat of a node in the record has not changed
 * for too long. This module does not decide what is done about it. The struct is one part of a
 * rendezvous machine. Only this module uses it. */
#ifndef MUSTER_CORE_RENDEZVOUS_FAILURE_DETECTOR_H
#define MUSTER_CORE_RENDEZVOUS_FAILURE_DETECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_member.h"
#include "core/rendezvous/rendezvous_state.h"

/* This module finds the nodes that have fallen silent by their heartbeats in the record. It
 * compares no clocks of different nodes: it measures, on this node's own clock, how long a
 * heartbeat has not changed. Only time in which this node read the record counts. So a node that
 * was stopped for a minute does not take the other nodes for silent. Replaces the comparison of
 * wall clocks in _BackendRendezvousStateHolder._sanitize of
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */

struct heartbeat_entry {
    struct node_identity identity;
    struct wall_time heartbeat; /* as this node saw it last */
    struct duration silent_for;
};

/* A zeroed struct is valid and empty. */
struct heartbeat_watch {
    struct heartbeat_entry *entries; /* of the nodes that are looked at, in torchrun's order */
    size_t count;
    struct instant last_look;
    bool has_looked;
};

/* A zeroed struct is valid: no node is known to be gone. */
struct failure_detector {
    /* Nodes that the backend has reported, the last ones and those before them. The number says
     * whether the node's workers were done. */
    struct node_table gone;
    struct node_table gone_earlier;
    size_t gone_count; /* reported since the last were made those before */
    /* Where this node hosts a store that serves presence: who has shown itself there. */
    struct node_table here;
    struct heartbeat_watch heartbeats;
};

enum rendezvous_loss {
    RENDEZVOUS_LOSS_NONE,
    RENDEZVOUS_LOSS_GONE,
    RENDEZVOUS_LOSS_FINISHED, /* gone after its workers were done: the round runs on without it */
    RENDEZVOUS_LOSS_SILENT,   /* a silent node of torchrun, which may be gone or in the exit barrier
                               */
};

void failure_detector_clear(struct failure_detector *detector);

/* `note` remembers that a node is gone, also when it is no longer in the record: where the record
 * is lost, a node may write one again that still has it. `forget` drops nodes that are not in the
 * record, when there are thousands. */
void failure_detector_note(
    struct failure_detector *detector, const struct node_identity *identity, bool has_finished);
void failure_detector_forget(
    struct failure_detector *detector, const struct rendezvous_state *seen);
/* Drops all nodes that the backend has reported gone, since the connection to the store has ended;
 * and those that are there, unless this node hosts the store on. */
void failure_detector_forget_all(struct failure_detector *detector, bool keeps_hosting);

/* The node has shown itself to this one, which hosts the store, and is there until it is noted. */
void failure_detector_hear(struct failure_detector *detector, const struct node_identity *identity);
bool failure_detector_has_noted(
    const struct failure_detector *detector, const struct node_identity *identity);

/* Takes note of the heartbeats in the record seen that count, `has_presence`: see below; and marks
 * those who wait or are spares there, and may be nowhere: nobody has heard of them. Each node shows
 * itself, or its heartbeat, before it is let in. */
void failure_detector_look(struct failure_detector *detector, struct rendezvous_view *view,
    struct instant now, struct duration keep_alive_interval, bool has_presence, bool is_host);

/* What is known of a node of the record seen. `has_presence`: the backend reports Muster's nodes
 * that are gone, and their heartbeats are ignored. */
enum rendezvous_loss failure_detector_judge(const struct failure_detector *detector,
    const struct rendezvous_view *view, const struct rendezvous_node *node,
    const struct rendezvous_settings *settings, bool has_presence);

#endif
