/* SPDX-License-Identifier: BSD-3-Clause */
/* What the workers of a job have imported, as its nodes give it to each other: a text in the store,
 * beside the record. A new node makes its standby workers ready with it before it joins. The text
 * itself is core/standby's; here it is bytes. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_LEARNED_LIST_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_LEARNED_LIST_H

#include "base/bytes.h"
#include "core/standby/learned_list.h"
#include "host/rendezvous/rendezvous_backend.h"

/* Longer texts are neither written nor believed. */
#define AGENT_LEARNED_LIST_MAXIMUM LEARNED_LIST_SHARED_MAXIMUM

struct agent_learned_list;

struct agent_learned_list_settings {
    const char *run_id; /* borrowed */
    struct duration answer_timeout;
    /* Answers a look; borrowed for the call. Empty: there is no list. Perhaps from inside. */
    void (*answered)(void *context, struct slice text);
    void *context;
};

/* `backend` is borrowed. Never NULL. */
struct agent_learned_list *agent_learned_list_new(
    struct rendezvous_backend *backend, const struct agent_learned_list_settings *settings);
/* Only after the backend has been freed, so that nothing is under way. NULL is fine. */
void agent_learned_list_free(struct agent_learned_list *list);

/* Puts the text in the place of any other. It is lost without a connection: the next one follows.
 */
void agent_learned_list_publish(struct agent_learned_list *list, struct slice text);

/* Looks whether there is one. Only one look at a time. */
void agent_learned_list_look(struct agent_learned_list *list);

#endif
