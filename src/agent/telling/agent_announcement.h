/* SPDX-License-Identifier: BSD-3-Clause */
/* Announces the job of this agent to other programs of its user on this machine
 * (host/telling/job_directory), from the agent's start until its end: so `muster status` finds it,
 * and can ask it at a socket beside the announcement; and once workers are started, `muster store`
 * finds their store, also when it has moved. A job never fails for want of this, and never waits
 * for it: the disk is used on a thread of its own. */
#ifndef MUSTER_AGENT_TELLING_AGENT_ANNOUNCEMENT_H
#define MUSTER_AGENT_TELLING_AGENT_ANNOUNCEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/workers/worker_group.h"
#include "host/loop/event_loop.h"
#include "host/loop/snapshot_socket.h"
#include "wire/telling/job_announcement.h"

struct agent_announcement;

/* Nothing is announced yet. What is given outlives the object. Where the process of the node is
 * known, its file is made at once, so that the other agents of the machine see when it has died. */
struct agent_announcement *agent_announcement_new(struct event_loop *loop,
    const struct text_list *environment, const struct node_process *process, const struct log *log);

/* The agent is there from now on. What is said of it is taken, and cleared here. `answer` gets what
 * is asked at its socket (host/loop/snapshot_socket). */
void agent_announcement_open(struct agent_announcement *announcement, struct job_announcement *job,
    enum snapshot_answer (*answer)(
        void *context, struct snapshot_question *question, struct text *out),
    void *context);
/* Answers who has asked, later (snapshot_socket_answer). Accepts NULL. */
void agent_announcement_answer(
    struct agent_announcement *announcement, uint64_t ticket, struct text *text_taken);

/* Those who follow at its socket are to be told what is new. Accepts NULL. */
void agent_announcement_wake(struct agent_announcement *announcement);

/* The workers start at this place. Where another announcement is still being written, this one
 * follows. Accepts NULL. */
void agent_announcement_tell(
    struct agent_announcement *announcement, const struct node_placement *placement);

/* Removes the announcement; the loop may run meanwhile. A disk that does not answer holds this up
 * for 5 s. Accepts NULL. */
void agent_announcement_free(struct agent_announcement *announcement);

#endif
