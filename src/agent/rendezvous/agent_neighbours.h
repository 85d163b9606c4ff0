/* SPDX-License-Identifier: BSD-3-Clause */
/* The other jobs that wait for nodes at the same store: of two nodes with different names for one
 * job, each would wait for the other. An agent that waits lists its job in the store, reads the
 * records of those listed before, and says in the log which of them wait, too. It reads each record
 * twice, as agents that live write a sign of life into theirs: of a job whose agents were all
 * killed the record still says that it waits. Any store will do; a job of torchrun's nodes alone is
 * not listed. Nothing follows from it. */
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
    struct duration rest; /* between the two readings: longer than agents leave a record alone */
};

/* `backend` is borrowed. Never NULL. */
struct agent_neighbours *agent_neighbours_new(struct event_loop *loop,
    struct rendezvous_backend *backend, const struct agent_neighbours_settings *settings);
/* This and the next two accept NULL. Only after the backend has been freed, so that nothing is
 * under way. */
void agent_neighbours_free(struct agent_neighbours *neighbours);

/* Does nothing while a look is under way, or without a connection. */
void agent_neighbours_look(struct agent_neighbours *neighbours);
/* This job waits no longer: nothing more is said of the look that is under way. */
void agent_neighbours_stop(struct agent_neighbours *neighbours);
/* Whether a look is under way, its rest included. */
bool agent_neighbours_is_looking(const struct agent_neighbours *neighbours);

#endif
