/* SPDX-License-Identifier: BSD-3-Clause */
/* The other jobs that wait for nodes at the same store: of two nodes with different names for one
 * job, each would wait for the other. An agent that waits lists its job in the store, reads the
 * records of those listed before, and says in the log which of them wait, too. Any store will do; a
 * job of torchrun's nodes alone is not listed. Nothing follows from it. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_NEIGHBOURS_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_NEIGHBOURS_H

#include "base/log.h"
#include "host/rendezvous/rendezvous_backend.h"

/* How many jobs are looked at, of those that were listed last. */
#define AGENT_NEIGHBOURS_MAXIMUM 4

struct agent_neighbours;

struct agent_neighbours_settings {
    const char *run_id; /* borrowed, as the log */
    const struct log *log;
    struct duration answer_timeout;
};

/* `backend` is borrowed. Never NULL. */
struct agent_neighbours *agent_neighbours_new(
    struct rendezvous_backend *backend, const struct agent_neighbours_settings *settings);
/* This and the following accept NULL. Only after the backend has been freed, so that nothing is
 * under way. */
void agent_neighbours_free(struct agent_neighbours *neighbours);

/* Does nothing while a look is under way, or without a connection. */
void agent_neighbours_look(struct agent_neighbours *neighbours);

#endif
