/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent at work: what the host's shells report goes to core/agent_machine as events, and the
 * effects it answers with are carried out. Decides nothing. */
#ifndef MUSTER_AGENT_AGENT_EVENTS_H
#define MUSTER_AGENT_AGENT_EVENTS_H

#include "agent/agent_state.h"

/* Takes an event, now or after those under way: what an effect causes at once waits until its
 * step's other effects are done. `message` is copied; START_FAILED borrows it. */
void agent_take_event(struct agent *agent, struct agent_event event, const char *message);

/* What the shells call; contexts are the agent. */
void agent_deadline_passed(void *context);
void agent_signal_received(void *context, int signal);
void agent_timer_expired(void *context); /* and this node's part of the job is to end */
void agent_watchdog_event(
    void *context, enum event_watchdog what, const struct event_timer_record *timer);
void agent_worker_stuck(void *context, int local_rank, struct duration how_long);
/* A worker is being looked at, and that is over; each beginning has its end, unless everybody is
 * gone before. */
void agent_look_begun(void *context);
void agent_look_over(void *context);
struct agent_rendezvous_observer agent_rendezvous_events(struct agent *agent);
struct agent_workers_observer agent_workers_events(struct agent *agent);

#endif
