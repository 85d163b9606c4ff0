/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent calls of the program that has started it: hooks at moments of its life, and the
 * backend that keeps the record of its job. agent.c has the agent itself. */
#ifndef MUSTER_LIBRARY_AGENT_CALLS_H
#define MUSTER_LIBRARY_AGENT_CALLS_H

#include <muster/agent.h>
#include <muster/rendezvous.h>
#include <stdbool.h>

#include "agent/agent.h"
#include "core/launch/launch_config.h"
#include "core/telling/run_result.h"
#include "library/rendezvous_object.h"

/* Begin with zero. What the settings point to is borrowed: the process of an agent has a copy. */
struct agent_calls {
    const struct muster_agent_settings *settings;
    bool has_record;                                 /* the job's is kept by … */
    const struct muster_rendezvous_backend *backend; /* … this, or … */
    const struct rendezvous_registered *registered;  /* … what this creates */
    struct muster_rendezvous_parameters parameters;  /* for that */
    const struct launch_config *lent; /* of the rendezvous; NULL: there is none, … */
    char *configs;                    /* … and of what the settings say instead */
    struct agent_kept_record record;
};

/* Checks what the settings have of a rendezvous of the program's own. Where they have one, they are
 * changed to those of a job whose store is at `rdzv_store`. `settings` outlive the calls. */
enum muster_error agent_calls_read(struct muster_agent_settings *settings,
    struct agent_calls *out_calls, struct muster_failure *failure);
void agent_calls_clear(struct agent_calls *calls);

/* What such a rendezvous says is put into the configuration. */
void agent_calls_apply(const struct agent_calls *calls, struct launch_config *config);

/* The program is to be called. It borrows the calls. */
void agent_calls_give(struct agent_calls *calls, struct agent_program *program);

/* A descriptor of the program's that the agent needs, or -1. */
int agent_calls_descriptor(const struct agent_calls *calls);

/* A worker group in the words of muster/agent.h; its texts are those of `group`, and the caller
 * frees its workers, which are the result. */
struct muster_worker *agent_calls_word_group(
    const struct run_group *group, struct muster_worker_group *out_group);

#endif
