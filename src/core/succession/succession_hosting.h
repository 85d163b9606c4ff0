/* SPDX-License-Identifier: BSD-3-Clause */
/* What a succession machine does as the host of a term: it begins and ends to host, makes rounds
 * that are whole entries of its term, and renews it. When its most nodes are missing it does
 * neither for a while. This is a part of succession_machine. */
#ifndef MUSTER_CORE_SUCCESSION_SUCCESSION_HOSTING_H
#define MUSTER_CORE_SUCCESSION_SUCCESSION_HOSTING_H

#include <stdbool.h>

#include "core/succession/succession_step.h"

/* This node is the host of the entry known last. */
void succession_host(struct succession_step *step);
void succession_end_hosting(struct succession_step *step);

/* SEEN: perhaps there is something to append. */
void succession_take_seen(struct succession_step *step);
/* NODE_SILENT. Those who fall silent at one moment are counted once, when the timer fires. */
void succession_take_silent_node(struct succession_step *step);
void succession_count_missing(struct succession_step *step);

/* Appends the record of a round that is whole and no entry yet, if nothing else is being appended.
 */
void succession_commit(struct succession_step *step);
/* What this node has appended is the last entry. */
void succession_take_commit_won(struct succession_step *step);
/* Whether `seen` has to become an entry after `known`. */
bool succession_is_news(const struct rendezvous_state *seen, const struct rendezvous_state *known);
/* The last entry's round may be used by those who are connected. */
void succession_tell_committed(struct succession_step *step);

/* Whether what this host writes there is taken; told where it has changed. */
void succession_tell_register(struct succession_step *step, bool is_stuck);
/* Renews the term when it is time. */
void succession_renew(struct succession_step *step);

#endif
