/* SPDX-License-Identifier: BSD-3-Clause */
/* Performs a node's rendezvous by a backend of the program's own: get and compare-and-set of the
 * record, and perhaps a descriptor that tells of changes, and presence. The machine is told of
 * nodes that are gone, but not that presence is served: nobody writes heartbeats for others, and
 * where the backend knows nothing of a node, the machine goes by its heartbeats. It looks at the
 * record now and then. */
#ifndef MUSTER_LIBRARY_RENDEZVOUS_OWN_BACKEND_H
#define MUSTER_LIBRARY_RENDEZVOUS_OWN_BACKEND_H

#include <muster/rendezvous.h>

#include "base/failure.h"
#include "base/log.h"
#include "host/loop/event_loop.h"
#include "library/rendezvous_member.h"

struct rendezvous_own_backend;

/* The backend is borrowed for the call, and has its full size and its functions; the log for the
 * life of the result. FAILURE_SYSTEM when its descriptor cannot be watched. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_own_backend_new(
    struct event_loop *loop, const struct muster_rendezvous_backend *backend,
    struct rendezvous_member *node, const struct log *log, struct rendezvous_own_backend **out_own,
    struct failure *failure);
/* The program has freed the rendezvous, perhaps from inside a callback: this node is no longer
 * present, and the program's functions are called no more, though what has called back goes on.
 * Accepts NULL. */
void rendezvous_own_backend_silence(struct rendezvous_own_backend *own);
/* Accepts NULL. */
void rendezvous_own_backend_free(struct rendezvous_own_backend *own);

/* Calls the program's functions. */
void rendezvous_own_backend_perform(
    struct rendezvous_own_backend *own, const struct rendezvous_effect *effect);

#endif
