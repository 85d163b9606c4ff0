/* SPDX-License-Identifier: BSD-3-Clause */
/* One line for each event and each effect of a rendezvous machine, as core/agent_machine has
 * them for the agent. So the debug log of a running agent reads like the transcript of a
 * simulation. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_TRANSCRIPT_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_TRANSCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/rendezvous/rendezvous_step.h"
#include "core/telling/event_record.h"

/* What a node that waits for others says meanwhile: who is here, how many are missing and, where it
 * is known, which. It decides nothing: a user learns why nothing happens. */

/* What a node that waits beside a job is told about it: whether it is a spare of this job, or a job
 * of its own that was given the same name. The nodes of a job run the same program, and each on a
 * machine of its own. Nodes learn from a key of the store what the job runs. The module decides
 * nothing about the rendezvous. */

/* Appends what this node runs, in short: a number for the name of the program, without its folders,
 * and one for all else of the command line but for its digits, which may be a node's own. */
void rendezvous_spare_write_program(const struct launch_config *config, struct text *out);

/* Whether the nodes of one world seem to be of two jobs: they run programs of different names, or a
 * node on the machine of this one runs its program with other arguments. What is no program, as a
 * stranger may have written it, differs from nothing. */
bool rendezvous_spare_is_mixed(const struct rendezvous_state *world,
    const struct node_identity *self, struct slice theirs, const char *own);

/* Appends why a node at this address, which waits beside the job of this record, does not seem to
 * be of that job; `theirs`: what the job runs. Returns false where it does. */
bool rendezvous_spare_find_misplaced(const struct rendezvous_state *record, const char *address,
    struct slice theirs, const char *own, struct text *out);

/* Appends one line: this node is a spare, or waits until it is let in, and what follows.
 * `misplaced`: why it does not seem to be one of this job, or NULL. */
void rendezvous_spare_describe(const struct launch_config *config, const char *run_id,
    const char *where, bool is_spare, const char *misplaced, struct text *out);

/* For how long a node has waited when it says so for the `count`th time, from 0: 5, 15 and 60 s,
 * and then each minute. */
struct duration rendezvous_waiting_moment(int count);

/* Appends one line without an end: who is here, and what follows when nobody else comes. `expected`
 * holds the names of all nodes that will come; it is empty where they are not known. A node is the
 * expected one if its address is that name, or a qualified form of it. */
void rendezvous_waiting_describe(const struct rendezvous_state *state,
    const struct rendezvous_settings *settings, const struct text_list *expected,
    struct duration waited, struct wall_time now, struct text *out);

/* The same where this node is in a round that has all its nodes, but not all of them are ready.
 * `unready` holds the names of those that are not, as far as they are known. */
void rendezvous_waiting_describe_round(const struct rendezvous_state *state,
    const struct text_list *unready, struct duration waited, struct text *out);

/* When a node is let into the world beside which it waits, and why not sooner: a pause, since nodes
 * that were let in did not stay; or the interval of --scale-up. */
void rendezvous_waiting_describe_admission(struct duration left, bool is_paused, struct text *out);

/* Who speaks for all. Of the nodes that wait for the same, the one that will be first says so, as
 * far as it is known by now; where nodes delegate, the host, which alone knows all of them. Returns
 * whether another node speaks for `me`, and appends a line that names it. A node for which the
 * others do not wait speaks for itself. */
bool rendezvous_waiting_describe_speaker(const struct rendezvous_state *state,
    const struct node_identity *me, bool is_host_of_delegates, struct duration waited,
    struct text *out);
/* The same among fixed nodes. */
bool rendezvous_waiting_describe_fixed_speaker(
    const struct launch_config *config, struct duration waited, struct text *out);

/* Another job at the same store, as its record says. Where it waits for nodes, too, one of both may
 * have been given a wrong name: appends a line that says so. Returns false where it does not wait.
 */
bool rendezvous_waiting_describe_neighbour(const struct rendezvous_state *state,
    const char *their_run_id, const char *run_id, struct text *out);

/* What is waited for by a node of a job whose nodes are fixed, which learns nothing of the others
 * before all are there: what they need, and where they meet. Two nodes with one rank wait like
 * this, too. */
void rendezvous_waiting_describe_fixed(
    const struct launch_config *config, struct duration waited, struct text *out);

/* In the place of the lines above: the store where the nodes meet is not reached, and why. `config`
 * is that of fixed nodes; NULL: nodes come and go, as `settings` say. */
void rendezvous_waiting_describe_obstacle(const struct launch_config *config,
    const struct rendezvous_settings *settings, const char *obstacle, struct duration waited,
    struct text *out);

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
