/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the chronicle of the job as this node knows it (core/telling/chronicle), appends it to a
 * file (--chronicle), and answers who asks for it on this machine. The file is written on a thread
 * of its own: a disk that does not answer delays nothing, and is told once. */
#ifndef MUSTER_AGENT_TELLING_AGENT_CHRONICLE_H
#define MUSTER_AGENT_TELLING_AGENT_CHRONICLE_H

#include "agent/failure/agent_report.h"
#include "agent/telling/agent_job_chronicle.h"
#include "agent/workers/agent_preparation.h"
#include "agent/workers/agent_workers.h"
#include "base/log.h"
#include "core/agent/agent_machine.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/standby/standby_plan.h"
#include "core/telling/event_record.h"
#include "core/telling/job_hang.h"
#include "host/loop/event_loop.h"
#include "host/loop/snapshot_socket.h"

struct agent_chronicle;

struct agent_chronicle_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct agent_preparation *preparation;
    const struct node_placement *placement; /* of the round that was joined last */
    const struct standby_plan *standby;     /* NULL: there are no standby workers */
    const struct log *log;
    struct agent_job_chronicle *job; /* the whole job's */
    /* Answers who has this ticket. */
    void (*answer)(void *context, uint64_t ticket, struct text *text_taken);
    void (*wake)(void *context); /* who follows is to be told what is new */
    void *context;
};

/* Where the file cannot be written to, the log says so and there is none. */
struct agent_chronicle *agent_chronicle_new(
    struct event_loop *loop, const struct agent_chronicle_settings *settings);
/* Accepts NULL, as do the functions below. */
void agent_chronicle_free(struct agent_chronicle *chronicle);
/* Of the workers of whom is told; not before it is known who they are. */
void agent_chronicle_know_workers(struct agent_chronicle *chronicle,
    const struct agent_workers *workers, struct last_words *last_words);

/* The machine has taken an event; nothing of what it wants has been done yet. `outcome`: it
 * finishes; else NULL. */
void agent_chronicle_step(struct agent_chronicle *chronicle, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event,
    const struct agent_outcome *outcome);
/* So many of the standby workers are ready. */
void agent_chronicle_note_spares(struct agent_chronicle *chronicle, int ready, int of);
/* This node hosts the store of the job. */
void agent_chronicle_note_host(struct agent_chronicle *chronicle);
/* It is to stay out of the job, for this reason; or ends for it. */
void agent_chronicle_note_excluded(struct agent_chronicle *chronicle, const char *reason);
void agent_chronicle_note_kept(struct agent_chronicle *chronicle, const char *reason);
void agent_chronicle_note_end(struct agent_chronicle *chronicle, const char *reason);
/* This node leaves: as agent_job_chronicle_hurry. */
bool agent_chronicle_hurry(
    struct agent_chronicle *chronicle, void (*done)(void *context), void *context);
/* It has joined the round of this record: those of its nodes that are torchrun's tell nothing. */
void agent_chronicle_note_record(
    struct agent_chronicle *chronicle, const struct rendezvous_state *record);
void agent_chronicle_note_progress(
    struct agent_chronicle *chronicle, const struct progress_news *news);
/* It waits with others: so many nodes are here. */
void agent_chronicle_note_waiting(struct agent_chronicle *chronicle, int here);
/* The whole job hangs, and this worker is to blame. */
void agent_chronicle_note_hang(
    struct agent_chronicle *chronicle, int local_rank, const struct job_hang *hang);
/* Of the watchdog. */
void agent_chronicle_note_timer(
    struct agent_chronicle *chronicle, const struct event_timer_record *timer);

/* So often a worker of this node has failed before all others, as far as this node knows. */
int agent_chronicle_failed_first(struct agent_chronicle *chronicle);

/* The answer to who asks at the socket, as HTTP has it: how this node's chronicle stands, its
 * entries at once or as they come, and the same of the whole job, which its host is asked for. */
enum snapshot_answer agent_chronicle_answer(
    struct agent_chronicle *chronicle, struct snapshot_question *question, struct text *out);

#endif
