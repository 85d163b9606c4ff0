/* SPDX-License-Identifier: BSD-3-Clause */
/* A new node that has standby workers makes them ready before it asks a running world to let it in:
 * that world stands still from then on until the workers of the new node have imported what they
 * need. The struct is one part of a rendezvous machine. Only this module changes it; others read
 * it. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_WARMING_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_WARMING_H

#include <stdbool.h>

#include "core/rendezvous/moment.h"
#include "core/rendezvous/rendezvous_view.h"

/* A zeroed struct is valid: this node does not hold back. */
struct rendezvous_warming {
    struct duration patience; /* how long it holds back at most; zero: not at all */
    struct moment end;        /* set while it holds back */
};

/* Whether this node holds back now, in no list of the record that it has seen. It does when a world
 * of Muster's nodes runs without it; when that world is no more, it is waited for. `out_begins`
 * becomes true when it begins to, which is only once. */
bool rendezvous_warming_holds(struct rendezvous_warming *warming,
    const struct rendezvous_view *view, struct instant now, bool *out_begins);

/* The standby workers are ready, or will not be. It does not hold back any more. */
void rendezvous_warming_finish(struct rendezvous_warming *warming);

void rendezvous_warming_wake(
    const struct rendezvous_warming *warming, struct instant now, struct moment *next);

#endif
