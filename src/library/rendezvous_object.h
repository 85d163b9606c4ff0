/* SPDX-License-Identifier: BSD-3-Clause */
/* What struct muster_rendezvous is: a node in a loop of its own inside the program, who performs
 * for it, and what the program is to be told. rendezvous.c has the public functions, which check
 * what the program hands in. */
#ifndef MUSTER_LIBRARY_RENDEZVOUS_OBJECT_H
#define MUSTER_LIBRARY_RENDEZVOUS_OBJECT_H

#include <muster/rendezvous.h>

#include "base/failure.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "host/loop/event_loop.h"
#include "host/store/store_admission.h"

struct rendezvous_endpoint;

/* One node's rendezvous machine with its queue of events. Who performs the machine's effects
 * (rendezvous_endpoint, rendezvous_own_backend) is another's to say; what the machine tells its
 * agent is told here. It decides nothing. */

struct rendezvous_member;

/* The record as this node saw it last. */
const struct rendezvous_state *rendezvous_member_state(const struct rendezvous_member *node);

/* Performs a node's rendezvous by a backend of the program's own: get and compare-and-set of the
 * record, and perhaps a descriptor that tells of changes, and presence. The machine is told of
 * nodes that are gone, but not that presence is served: nobody writes heartbeats for others, and
 * where the backend knows nothing of a node, the machine goes by its heartbeats. It looks at the
 * record now and then. */

struct rendezvous_own_backend;

/* Gets what the machine is to be told; the event is borrowed. */
struct rendezvous_own_audience {
    void (*told)(void *context, const struct rendezvous_event *event);
    void *context;
};

/* The backend is borrowed for the call, and has its full size and its functions; the log for the
 * life of the result. FAILURE_SYSTEM when its descriptor cannot be watched. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_own_backend_new(
    struct event_loop *loop, const struct muster_rendezvous_backend *backend,
    const struct rendezvous_own_audience *audience, const struct log *log,
    struct rendezvous_own_backend **out_own, struct failure *failure);
const struct muster_rendezvous_backend *rendezvous_own_backend_functions(
    const struct rendezvous_own_backend *own);
/* Accepts NULL. */
void rendezvous_own_backend_free(struct rendezvous_own_backend *own);
/* Calls the program's functions. */
void rendezvous_own_backend_perform(
    struct rendezvous_own_backend *own, const struct rendezvous_effect *effect);
/* The program has freed the rendezvous, perhaps from inside a callback: this node is no longer
 * present, and the program's functions are called no more, though what has called back goes on.
 * Accepts NULL. */
void rendezvous_own_backend_silence(struct rendezvous_own_backend *own);

/* Who is told of the next round. */
struct rendezvous_asking {
    bool is_asked;
    void (*done)(void *context, enum muster_error error, const char *message,
        const struct muster_rendezvous_info *info);
    void *context;
};

struct muster_rendezvous {
    struct muster_rendezvous_settings settings; /* without what it points to, but the callbacks */
    struct launch_config config;
    struct job_token *token; /* or NULL */
    struct log log;
    struct embedded_loop *embedded;
    struct rendezvous_member *node;
    struct rendezvous_endpoint *endpoint; /* or */
    struct rendezvous_own_backend *own;
    struct event_timer *alarm; /* of a function that waits, … */
    struct event_timer *soon;  /* … and of what is not done from inside the program's call */
    char *master_addr;         /* where this node serves when it is the first */
    int hosted_port;           /* 0: this node hosts no store */
    struct rendezvous_asking asked;
    struct muster_rendezvous_info info;
    struct text node_name;
    struct text prefix;
    char *met_at;                              /* info.master_addr */
    struct muster_store_server *workers_store; /* which this node serves, or NULL */
    bool is_next_asked;                        /* by the program: done soon */
    bool is_close_asked;                       /* the same */
    bool is_joining;                           /* the machine was asked for a round */
    bool has_world;                            /* the node is in the round of `info`, … */
    bool is_met;                               /* which is complete, … */
    bool is_told;                              /* and the program knows it */
    bool is_round_over;                        /* and the next one was not asked for */
    bool is_over;                              /* its part; `end` says how */
    struct muster_failure end;
    bool has_left;
    bool is_shut_down;
    bool is_glancing; /* a function waits for the record to be seen, … */
    bool has_glanced; /* and may go on */
    bool is_alarmed;
    bool is_woken;
    int busy; /* functions that call back */
    bool is_freed;
};

/* Makes what the object needs beside its settings, configuration, token and loop. */
__attribute__((warn_unused_result)) enum failure_code rendezvous_object_open(
    struct muster_rendezvous *rendezvous, const struct muster_rendezvous_backend *backend_or_null,
    const struct rendezvous_machine_settings *machine, struct failure *failure);
void rendezvous_object_destroy(struct muster_rendezvous *rendezvous);

/* What muster_rendezvous_register has been told. */
struct rendezvous_registered {
    struct rendezvous_registered *next;
    char *name;
    enum muster_error (*create)(void *context,
        const struct muster_rendezvous_parameters *parameters,
        struct muster_rendezvous_backend *out_backend, struct muster_failure *failure);
    void *context;
};

/* NULL: nobody has registered the name, which may be NULL. */
const struct rendezvous_registered *rendezvous_registered_find(const char *name);

/* The configuration and the backend of a rendezvous, for an agent, as long as it lives.
 * MUSTER_ERROR_UNSUPPORTED where it has no backend of the program's own. */
enum muster_error rendezvous_lend(const struct muster_rendezvous *rendezvous,
    const struct launch_config **out_config, const struct muster_rendezvous_backend **out_backend,
    struct muster_failure *failure);

/* Copies a backend that a program gives, if it can be one. */
enum muster_error rendezvous_backend_read(const struct muster_rendezvous_backend *given,
    struct muster_rendezvous_backend *out_backend, struct muster_failure *failure);

/* Asks for the next round, for `asked`, or closes the record; both from inside the loop. */
void rendezvous_object_ask_next(struct muster_rendezvous *rendezvous);
void rendezvous_object_ask_close(struct muster_rendezvous *rendezvous);

/* A function waits until the record was seen, or why it cannot be is known: `has_glanced`. A node
 * that has not asked for a round reads it once; else its machine sees it. */
void rendezvous_object_begin_glance(struct muster_rendezvous *rendezvous);
void rendezvous_object_end_glance(struct muster_rendezvous *rendezvous);
/* What was read so; the result is borrowed. */
const struct muster_failure *rendezvous_object_glance(
    const struct muster_rendezvous *rendezvous, bool *out_is_closed, size_t *out_waiting);

bool rendezvous_object_has_seen(const struct muster_rendezvous *rendezvous);
bool rendezvous_object_is_closed(const struct muster_rendezvous *rendezvous);

/* Leaves; `has_left` follows. False: there is nobody to wait for. */
bool rendezvous_object_linger(struct muster_rendezvous *rendezvous);

/* For functions that wait: `is_alarmed` follows after that time, and wakes; waking sets `is_woken`.
 */
void rendezvous_object_set_alarm(struct muster_rendezvous *rendezvous, struct duration timeout);
void rendezvous_object_wake(struct muster_rendezvous *rendezvous);

#endif
