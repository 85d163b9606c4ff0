/* SPDX-License-Identifier: BSD-3-Clause */
/* The register of a job as an agent uses it: what core/succession/succession_machine wants to read,
 * append and renew there, and the answers as its events. It keeps the entry known last, for what
 * the machine does not know: where the host of that entry listens. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_REGISTER_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_REGISTER_H

#include "agent/rendezvous/agent_rendezvous.h"
#include "core/rendezvous/endpoint_match.h"

struct agent_register;

struct agent_register_settings {
    const struct agent_rendezvous_settings *agent; /* borrowed */
    void (*settled)(void *context);                /* no READ and no APPEND is under way any more */
    void *context;
};

/* Failures as register_open. */
__attribute__((warn_unused_result)) enum failure_code agent_register_new(struct event_loop *loop,
    const struct agent_register_settings *settings, struct agent_register **out_register,
    struct failure *failure);
/* NULL is fine. An append under way may still take effect. */
void agent_register_free(struct agent_register *reg);

/* Where this node listens; copied. Before it appends. */
void agent_register_set_place(struct agent_register *reg, const char *place);

/* Carries out READ, APPEND, RENEW, LOOK and WATCH. */
void agent_register_perform(struct agent_register *reg, const struct succession_effect *effect);
/* Whether a READ or an APPEND is under way. An APPEND may have to wait for either. */
bool agent_register_is_busy(const struct agent_register *reg);

/* Appends why what was asked last of the register has failed, if it has. */
void agent_register_write_obstacle(const struct agent_register *reg, struct text *out);

int64_t agent_register_term(const struct agent_register *reg);
/* Where the host of the entry known last listens. False: nowhere that can be read. The caller
 * clears the place. */
bool agent_register_find_host(const struct agent_register *reg, struct host_place *out_place);

/* Whether there is nothing to be kept of the record. */
bool agent_register_is_empty(const struct rendezvous_state *record);

#endif
