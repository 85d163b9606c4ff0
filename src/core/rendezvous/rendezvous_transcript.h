/* SPDX-License-Identifier: BSD-3-Clause */
/* One line for each event and each effect of a rendezvous machine, as core/agent_machine has
 * them for the agent. So the debug log of a running agent reads like the transcript of a
 * simulation. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_TRANSCRIPT_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_TRANSCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/rendezvous/rendezvous_step.h"
#include "core/telling/event_record.h"

/* Appends one line without a newline, for example "written lost round 3 open [a_1_0] wait [] spare
 * []". */
void rendezvous_event_describe(const struct rendezvous_event *event, struct text *out);
void rendezvous_effect_describe(const struct rendezvous_effect *effect, struct text *out);

/* The diary turns what a rendezvous machine does into event records, for programs that read
 * torchrun's event records. It watches the machine of one node. For everything that torchrun's
 * rendezvous does too, it gives the record that torchrun would give. It decides nothing. Compare
 * the calls of `_record` in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py; the
 * messages and names here are torchrun's.
 *
 * Muster's nodes do some things in another way; the record then is the one that comes closest.
 * Another node may have put this node into the next round: then this node does not record that it
 * has "added itself", but only that it has joined. Where the host of the store serves presence, a
 * heartbeat is a message to that host. And nodes are removed for more reasons than a missing
 * heartbeat. */

struct rendezvous_diary {
    const char *run_id; /* borrowed */
    /* Gets each record, borrowed. NULL: no record is wanted. */
    void (*record)(void *context, const struct event_rendezvous *record);
    void *context;
    bool is_joining;
    bool is_closing;
    bool is_connected;
    uint64_t count;      /* of the records given so far */
    bool is_change_told; /* the write under way changes something that has a record */
    char *lost;          /* names of the nodes that the write under way removes; NULL: none */
};

/* Frees what the diary holds. A diary is valid when all but its first three members are zeroed. */
void rendezvous_diary_clear(struct rendezvous_diary *diary);

/* Call `take` before the machine takes the event, and `follow` for each effect that the machine
 * wants. */
void rendezvous_diary_take(struct rendezvous_diary *diary, const struct rendezvous_machine *machine,
    const struct rendezvous_event *event);
void rendezvous_diary_follow(struct rendezvous_diary *diary,
    const struct rendezvous_machine *machine, const struct rendezvous_effect *effect);

/* This node should host the store, but it cannot. */
void rendezvous_diary_fail_to_host(
    struct rendezvous_diary *diary, const struct node_identity *me, const char *reason);

/* Records of what no rendezvous machine does: this node hosts the store; and everything that a node
 * without other nodes records. */
void rendezvous_diary_host(struct rendezvous_diary *diary, const struct node_identity *me);
void rendezvous_diary_attempt(struct rendezvous_diary *diary, const struct node_identity *me);
void rendezvous_diary_join(struct rendezvous_diary *diary, const struct node_identity *me,
    int64_t round, int rank, int count);
void rendezvous_diary_close(
    struct rendezvous_diary *diary, const struct node_identity *me, bool has_closed);

#endif
