/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent at work: what the host's shells report goes on the queue of core/node/node_machine, and
 * the effects of each of its steps are carried out. Decides nothing. */
#ifndef MUSTER_AGENT_AGENT_EVENTS_H
#define MUSTER_AGENT_AGENT_EVENTS_H

#include "agent/agent_state.h"

/* The node runs from here on. */
void agent_start(struct agent *agent);

/* Puts an event on the node's queue, for all shells; `context` is the agent. It is taken at once,
 * or after those before it: what an effect causes waits until its step's other effects are done. */
void agent_post(void *context, const struct node_event *event);

/* What the shells call; contexts are the agent. */
void agent_deadline_passed(void *context);
void agent_signal_came(
    void *context, int signal); /* from outside, which workers may have got, too */
void agent_watch_signals(
    void *context); /* from now on it is known which of them workers have got */
void agent_signal_received(void *context, int signal);
void agent_timer_expired(void *context); /* and this node's part of the job is to end */
void agent_watchdog_event(
    void *context, enum event_watchdog what, const struct event_timer_record *timer);
/* A worker is being looked at, and that is over; each beginning has its end, unless everybody is
 * gone before. */
void agent_look_begun(void *context);
void agent_look_over(void *context);
/* How long the agent may stand still before its guardian ends its workers; zero: for ever. */
struct duration agent_standstill(void *context);
void agent_stood_still(void *context, struct duration how_long);
void agent_rendezvous_recorded(void *context, const struct event_rendezvous *record);

#endif
