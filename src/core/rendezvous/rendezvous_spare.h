/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node that waits beside a job is told about it: whether it is a spare of this job, or a job
 * of its own that was given the same name. The nodes of a job run the same program, and each on a
 * machine of its own. Nodes learn from a key of the store what the job runs. The module decides
 * nothing about the rendezvous. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_SPARE_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_SPARE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_state.h"

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

#endif
