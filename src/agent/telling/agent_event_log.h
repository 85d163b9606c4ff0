/* SPDX-License-Identifier: BSD-3-Clause */
/* Records what happens to the job, for programs that read along: fills in core/event_record from
 * what the agent knows and writes it to where --event-log-handler says. Which events there are is
 * decided in core. Compare the calls of `record` in
 * torch/distributed/elastic/agent/server/api.py and torch/distributed/launcher/api.py. */
#ifndef MUSTER_AGENT_TELLING_AGENT_EVENT_LOG_H
#define MUSTER_AGENT_TELLING_AGENT_EVENT_LOG_H

#include "agent/failure/agent_report.h"
#include "agent/telling/agent_audience.h"
#include "base/duration.h"
#include "base/failure.h"
#include "core/agent/agent_machine.h"
#include "core/telling/event_record.h"
#include "host/log/log_sink.h"
#include "host/loop/event_loop.h"

struct agent_event_log;

struct agent_event_log_settings {
    const struct launch_config *config;  /* borrowed, as all of this */
    const struct text_list *environment; /* of a program that gets the records */
    const struct agent_preparation *preparation;
    const struct agent_machine *machine;
    const struct node_placement *placement; /* of the round that was joined last */
    struct log_sink *sink;
    struct agent_audience *audience; /* hears everything; or NULL */
};

/* *out_log is NULL when nobody wants events; the functions below accept that. FAILURE_SYSTEM when
 * the file cannot be written to, FAILURE_TIMEOUT when its disk does not answer. */
__attribute__((warn_unused_result)) enum failure_code agent_event_log_new(struct event_loop *loop,
    const struct agent_event_log_settings *settings, struct agent_event_log **out_log,
    struct failure *failure);
void agent_event_log_free(struct agent_event_log *log);

/* The machine has taken an event, at `now`; nothing of what it wants has been done yet. */
void agent_event_log_step(struct agent_event_log *log, const struct agent_workers *workers,
    enum agent_phase before, struct instant now);

/* The agent has ended so; `trouble` says why it could not go on, or is NULL. */
void agent_event_log_end(struct agent_event_log *log, const struct agent_workers *workers,
    const struct agent_outcome *outcome, const char *trouble);

/* What a rendezvous records of itself goes to files and the audience alone, as torchrun's console
 * shows none of it. */
bool agent_event_log_wants_rendezvous(const struct agent_event_log *log);
/* Where that is wanted. */
void agent_event_log_rendezvous(struct agent_event_log *log, const struct event_rendezvous *record);

/* Of the standby workers. */
void agent_event_log_standby(
    struct agent_event_log *log, const struct event_standby_record *standby);

/* Of the watchdog; `timer` is NULL where the event is about none. */
void agent_event_log_watchdog(
    struct agent_event_log *log, enum event_watchdog what, const struct event_timer_record *timer);

#endif
