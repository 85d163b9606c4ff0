/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells the other nodes what this one runs, and finds out whether a node that waits beside a job is
 * of that job at all (core/rendezvous/rendezvous_spare has the rules). The store holds what the job
 * runs: the first node says it, and later the one of rank 0. Nothing is asked twice, and nothing
 * waits for an answer. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_PROGRAM_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_PROGRAM_H

#include "base/duration.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "host/rendezvous/rendezvous_backend.h"

struct agent_program;

struct agent_program_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const char *run_id;
    const char *where;   /* the store of the job, for messages */
    const char *address; /* of this node, as the record has it */
    const struct log *log;
    struct duration answer_timeout;
    /* Whether this node, which waits beside a job, seems to be of that job: NULL, or why not. */
    void (*judged)(void *context, const char *misplaced);
    void *context;
};

/* Copies the settings; the backend is borrowed. */
struct agent_program *agent_program_new(
    struct rendezvous_backend *backend, const struct agent_program_settings *settings);
/* NULL is fine. */
void agent_program_free(struct agent_program *program);

/* The backend has connected: says what this node runs, where nobody has yet. */
void agent_program_take_connected(struct agent_program *program);
/* This node is in a world now: WORLD. */
void agent_program_take_world(struct agent_program *program, const struct rendezvous_effect *told);
/* Where this node stands now; it may be as before. */
void agent_program_take_parking(struct agent_program *program, enum rendezvous_parking parking);

#endif
