/* SPDX-License-Identifier: BSD-3-Clause */
/* Which nodes of the record are gone, and taking them out. Two ways to know: the backend that
 * serves presence told this node, its host, that a connection ended; or a heartbeat in the record
 * has stood still. A part of rendezvous_machine; not for others. */
#ifndef MUSTER_CORE_RENDEZVOUS_LOSSES_H
#define MUSTER_CORE_RENDEZVOUS_LOSSES_H

#include <stdbool.h>

#include "core/rendezvous_regroup.h"
#include "core/rendezvous_step.h"

/* Remembers that a node is gone until a record that was read later does not show it. */
void rendezvous_losses_note(
    struct rendezvous_machine *machine, const struct node_identity *identity, bool has_finished);
bool rendezvous_losses_include(
    const struct rendezvous_machine *machine, const struct node_identity *identity);

/* Takes the nodes that are gone out of the record, and begins the next round if they were missing
 * in this one. Whether there was something to write. */
bool rendezvous_losses_take_out(struct rendezvous_step *step);

/* Begins the next round in one write, without the nodes that are gone: those that `how` names, or
 * all that this node knows of. True: it has written. */
bool rendezvous_losses_regroup(struct rendezvous_step *step, struct rendezvous_regroup how);

/* A reason that names a node: "node a (pid 1) is gone". */
void rendezvous_losses_name(
    char *out, size_t size, const struct node_identity *identity, const char *what);

#endif
