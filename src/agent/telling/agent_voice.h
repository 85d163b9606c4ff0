/* SPDX-License-Identifier: BSD-3-Clause */
/* Many nodes, one voice: what all nodes of a job would say alike is said by one of them. Of what
 * concerns the place where nodes meet, that is the node which hosts the store there; where none of
 * them does, and of all else, it is the first node of the first round. A node that never came to a
 * round says at its end what nobody may have said. A job of one node says all at once. At the
 * log level DEBUG each node says what was asked for.
 *
 * Warnings about the options, which may differ from node to node, are said by the first node that
 * comes to the store with any. Each other node says only those which that one does not have. A node
 * that does not learn what others say says its own when it has waited for a while, or at its end.
 */
#ifndef MUSTER_AGENT_TELLING_AGENT_VOICE_H
#define MUSTER_AGENT_TELLING_AGENT_VOICE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_state.h"
#include "host/log/log_sink.h"

/* A zeroed struct but for the first three members, which are borrowed. */
struct agent_voice {
    const struct launch_config *config;
    const struct log *log;
    struct log_sink *sink;
    bool is_place_settled;   /* what is to be said of the meeting place has been, or is another's */
    bool is_threads_settled; /* the same of OMP_NUM_THREADS */
    bool is_sharing_said;    /* that another agent of this machine takes part */
    bool is_followers;       /* of the last round that this node took part in, another node tells */
    struct text launch;      /* what was asked for, which another node may say */
    struct text_list held;   /* warnings about the options that another node may say */
    struct text words;       /* who this is, and a number for each of these warnings */
};

/* The agent starts. */
void agent_voice_begin(struct agent_voice *voice);
/* It knows how many workers it has, and which options do not fit them. */
void agent_voice_count(
    struct agent_voice *voice, int worker_count, const struct text_list *misfits);
/* Lines, at the level INFO, of what was asked for. */
void agent_voice_launch(struct agent_voice *voice, const char *lines);
/* What the store is to keep of the warnings that are held back, for the other nodes: NULL if there
 * are none. `name` is this node's alone. */
const char *agent_voice_write_words(struct agent_voice *voice, const char *name);
/* What the store keeps: of this node, or of one before it. Empty: it is not known. */
void agent_voice_hear(struct agent_voice *voice, struct slice words);
/* This node has waited for a while. */
void agent_voice_wait(struct agent_voice *voice);
/* This node hosts the store at which nodes meet. */
void agent_voice_host(struct agent_voice *voice);
/* This node has its place in a round. `has_host`: an agent hosts the store. */
void agent_voice_place(struct agent_voice *voice, int group_rank, bool has_host, int worker_count);
/* This node, `me`, has its place in a round of `record`. Under Slurm, where a step has one task for
 * each node, it speaks of a node of its machine that came before it. */
void agent_voice_nodes(struct agent_voice *voice, const struct node_identity *me,
    const struct rendezvous_state *record);
/* The agent ends. */
void agent_voice_end(struct agent_voice *voice);
void agent_voice_clear(struct agent_voice *voice);

#endif
