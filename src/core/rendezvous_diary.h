/* SPDX-License-Identifier: BSD-3-Clause */
/* What a dynamic rendezvous records of itself, for programs that read along: listens to one node's
 * machine and says, for what torchrun's rendezvous does too, what torchrun's would record of it.
 * Decides nothing and keeps nothing. Compare the calls of `_record` in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py: messages and names are those there.
 *
 * Where Muster's nodes do a thing in another way, the record is that of the same thing: a node that
 * another has put into the next round has not "added itself" and says so by joining it alone; a
 * heartbeat goes to the store's host where it serves presence; and nodes are lost for other reasons
 * than heartbeats too. */
#ifndef MUSTER_CORE_RENDEZVOUS_DIARY_H
#define MUSTER_CORE_RENDEZVOUS_DIARY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/event_record.h"
#include "core/node_identity.h"
#include "core/rendezvous_machine.h"

struct rendezvous_diary {
    const char *run_id; /* borrowed */
    /* Gets each record, borrowed; NULL: nobody wants any. */
    void (*record)(void *context, const struct event_rendezvous *record);
    void *context;
    bool is_joining;
    bool is_closing;
    bool is_connected;
    uint64_t count;      /* of records */
    bool is_change_told; /* of the write under way */
    char *lost;          /* nodes that the write under way takes out of the record; NULL: none */
};

/* For one zeroed but for its first three members. */
void rendezvous_diary_clear(struct rendezvous_diary *diary);

/* The machine is about to take this event; it wants this effect. */
void rendezvous_diary_take(struct rendezvous_diary *diary, const struct rendezvous_machine *machine,
    const struct rendezvous_event *event);
void rendezvous_diary_follow(struct rendezvous_diary *diary,
    const struct rendezvous_machine *machine, const struct rendezvous_effect *effect);

/* This node is to host the store, and cannot. */
void rendezvous_diary_fail_to_host(
    struct rendezvous_diary *diary, const struct node_identity *me, const char *reason);

/* What no machine knows of: this node hosts the store; and the whole of a node that is alone. */
void rendezvous_diary_host(struct rendezvous_diary *diary, const struct node_identity *me);
void rendezvous_diary_attempt(struct rendezvous_diary *diary, const struct node_identity *me);
void rendezvous_diary_join(struct rendezvous_diary *diary, const struct node_identity *me,
    int64_t round, int rank, int count);
void rendezvous_diary_close(
    struct rendezvous_diary *diary, const struct node_identity *me, bool has_closed);

#endif
