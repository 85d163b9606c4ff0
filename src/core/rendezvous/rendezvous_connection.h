/* SPDX-License-Identifier: BSD-3-Clause */
/* What a connection to the store, and its loss, mean for a node: under which name it goes on,
 * whether its world goes on, and what it still believes. Without a register the record ends for the
 * node with its connection. With one the job goes on at another host: the node keeps its name and a
 * world that is committed. This is a part of rendezvous_machine. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_CONNECTION_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_CONNECTION_H

#include "core/rendezvous/rendezvous_step.h"

/* Takes the event CONNECTED. */
void rendezvous_connection_take(struct rendezvous_step *step);
/* Takes the event CONNECTION_LOST. */
void rendezvous_connection_lose(struct rendezvous_step *step);

#endif
