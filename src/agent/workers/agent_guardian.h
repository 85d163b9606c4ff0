/* SPDX-License-Identifier: BSD-3-Clause */
/* The guardian of this agent: knows by what the processes of this job are found, says so when a
 * guardian has to be replaced, and gives it signs of life from the agent's loop where the other
 * nodes may begin a world without a node that stands still. What a guardian does is in
 * host/process/guardian.h. */
#ifndef MUSTER_AGENT_WORKERS_AGENT_GUARDIAN_H
#define MUSTER_AGENT_WORKERS_AGENT_GUARDIAN_H

#include "agent/workers/agent_preparation.h"
#include "agent/workers/agent_workers.h"
#include "base/failure.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "core/workers/worker_group.h"
#include "host/loop/event_loop.h"
#include "host/process/guardian.h"

struct agent_guardian_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct agent_preparation *preparation;
    const struct log *log;
    /* How long the agent may stand still from now on; zero: for ever. NULL: there are no other
     * nodes. */
    struct duration (*patience)(void *context);
    /* The agent has stood still for that long, and its workers are being ended. Called on the loop,
     * and by agent_guardian_listen. */
    void (*fenced)(void *context, struct duration silence);
    void *context;
};

struct agent_guardian;

/* Call it before other threads are started. */
__attribute__((warn_unused_result)) enum failure_code agent_guardian_new(struct event_loop *loop,
    const struct agent_guardian_settings *settings, struct agent_guardian **out_guardian,
    struct failure *failure);

/* The guardian ends without ending any process. Accepts NULL. */
void agent_guardian_free(struct agent_guardian *guardian);

/* Takes what the guardian has said: call it before the end of a worker is told. Accepts NULL. */
void agent_guardian_listen(const struct agent_guardian *guardian);

/* Gives a sign of life now, with the patience that holds from now on: call it before workers start.
 * Accepts NULL. */
void agent_guardian_speak(struct agent_guardian *guardian);

/* For those who tell it something. NULL for NULL. */
struct guardian *agent_guardian_process(const struct agent_guardian *guardian);

/* Passes the agent's signals on to its workers, but not those that the workers have got already.
 * Slurm may signal every process of a step, and systemd every process of a unit's cgroup; then a
 * handler of a worker would run twice. A witness beside the workers tells: what it gets within a
 * short time of the agent, the workers have got, too. What else is sent to workers is none of its
 * business. */

struct signal_passing;

/* Call it when workers have been started: the witness is no older than they are, and who has listed
 * it to signal it has listed them. It is no worker (agent_workers_leave_out). Where no witness can
 * be started, every signal is passed on, and `log` says so. */
struct signal_passing *signal_passing_new(struct event_loop *loop, const struct log *log);

/* Accepts NULL, as all functions: then every signal is passed on at once. A signal that waits is
 * forgotten. */
void signal_passing_free(struct signal_passing *passing);

/* `signal` has come to the agent from outside, or, relayed, to another node that has told of it:
 * then it may be on its way to this one. Call it before what follows from that. */
void signal_passing_note(struct signal_passing *passing, int signal, bool is_relayed);

/* Workers are being started, or have been. One that has just been started may have missed what the
 * witness got. */
void signal_passing_note_start(struct signal_passing *passing, bool is_over);

/* Sends `signal` to the workers and says so for each one that runs: at once, or soon, or not at
 * all. A signal that waits is forgotten. All but `passing` stay as they are until it is sent or
 * freed. */
void signal_passing_send(struct signal_passing *passing, struct agent_workers *workers,
    const struct worker_group *group, const struct log *log, int signal);

/* For tests: the witness, and whether it has told of such a signal. */
pid_t signal_passing_witness(const struct signal_passing *passing);
bool signal_passing_has_seen(const struct signal_passing *passing, int signal);

#endif
