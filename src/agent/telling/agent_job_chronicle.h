/* SPDX-License-Identifier: BSD-3-Clause */
/* The chronicle of the whole job (core/telling/job_chronicle), at work. Each node tells the host of
 * the job's store what has happened to it, a moment after it has, over the connection that it has
 * anyway. The host listens at its own store, and answers who asks there. A node that is asked asks
 * the host. While nothing happens and nobody asks, nothing is sent. */
#ifndef MUSTER_AGENT_TELLING_AGENT_JOB_CHRONICLE_H
#define MUSTER_AGENT_TELLING_AGENT_JOB_CHRONICLE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/log.h"
#include "core/telling/chronicle_status.h"
#include "host/loop/event_loop.h"
#include "host/store/store_client.h"
#include "wire/store/store_proof.h"
#include "wire/telling/node_telling.h"

struct agent_job_chronicle;

/* Borrowed, as all of it. */
struct agent_job_chronicle_settings {
    const struct log *log;
    const char *node; /* this node's one name */
    const char *run_id;
    const char *log_dir;         /* or NULL */
    const char *folder;          /* of the telling's keys; NULL: the store keeps none */
    const struct store_key *key; /* of the job's token; NULL: there is none */
    bool may_move;               /* another node may host the store next */
    const struct node_placement *placement;
    /* The connection of this node to the job's store: a number that another one does not have, or
     * 0 where there is none. */
    uint64_t (*connection)(void *context);
    /* Sends on it; false: there is none. */
    bool (*send)(void *context, const struct store_client_call *call);
    /* Where its store is; false: there is no connection. */
    bool (*find_host)(void *context, const char **out_host, int *out_port);
    /* As the host: a node has told that its workers stand still, which is for agent_hang. */
    void (*standstill_told)(void *context, struct slice told);
    void *context;
};

struct agent_job_chronicle *agent_job_chronicle_new(
    struct event_loop *loop, const struct agent_job_chronicle_settings *settings);
/* When `send` answers no more. Accepts NULL, as do the functions below but the last. */
void agent_job_chronicle_free(struct agent_job_chronicle *job);

/* This node's own chronicle; NULL: it is there no more. */
void agent_job_chronicle_use(
    struct agent_job_chronicle *job, struct chronicle *chronicle, struct wall_time life);
/* It has told this. */
void agent_job_chronicle_note(struct agent_job_chronicle *job, const struct chronicle_entry *entry);
/* This node is connected to a store, perhaps to another one than before. */
void agent_job_chronicle_note_connected(struct agent_job_chronicle *job);
/* This node hosts the job's store at this port; 0: there is no store where anybody meets. */
void agent_job_chronicle_host(struct agent_job_chronicle *job, int port);
/* Another node does. */
void agent_job_chronicle_host_no_more(struct agent_job_chronicle *job);
/* As the host: how the job stands; false: it is another node, or nobody. The caller clears it. */
bool agent_job_chronicle_write_status(
    struct agent_job_chronicle *job, struct chronicle_status *out_status);
bool agent_job_chronicle_is_host(const struct agent_job_chronicle *job);
/* Whether another node listens as the host. */
bool agent_job_chronicle_is_heard(const struct agent_job_chronicle *job);
/* Sends a request to the store of the host, with the key of this name; false: nobody listens. */
bool agent_job_chronicle_send(
    struct agent_job_chronicle *job, struct store_client_call call, const char *name);
/* This node waits for the others to leave its store, and asks for nothing there any more. */
void agent_job_chronicle_leave(struct agent_job_chronicle *job);
/* Tells the host at once what it has not been told yet, and calls back when that is on its way, or
 * cannot be. False: there is nothing to wait for. */
bool agent_job_chronicle_hurry(
    struct agent_job_chronicle *job, void (*done)(void *context), void *context);

/* How the job stands, but for the last seconds (job_chronicle_see_settled); with `is_last` all that
 * has come counts. False: this node does not host the job's store, and knows nothing of others. */
bool agent_job_chronicle_see(struct agent_job_chronicle *job, bool is_last,
    void (*take)(void *context, const struct chronicle_status *status), void *context);
/* By how much this node's clock is ahead of the host's, as the host has said lately. False: it is
 * not known. From time to time the host is asked for the next time. */
bool agent_job_chronicle_find_clock_offset(
    struct agent_job_chronicle *job, struct duration *out_offset);

/* Asks the host, or answers as the host. `done` as in host/telling/job_asking, perhaps from inside.
 * The result is NULL where it was, and freed by its owner else, perhaps from inside `done`. */
struct job_asking *agent_job_chronicle_ask(struct agent_job_chronicle *job,
    enum job_question_kind kind, int64_t after,
    void (*done)(void *context, const struct failure *failure, struct slice answer), void *context);

#endif
