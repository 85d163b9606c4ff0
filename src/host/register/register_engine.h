/* SPDX-License-Identifier: BSD-3-Clause */
/* What an engine of a job's register gives to host/register/register.c, which does for all engines
 * what they have in common: numbers and deadlines of requests, the spelling of entries, and the
 * search for what became of an append whose reply was lost. An engine knows entries as text. All
 * functions are called on the thread that runs the loop, and must not block. */
#ifndef MUSTER_HOST_REGISTER_REGISTER_ENGINE_H
#define MUSTER_HOST_REGISTER_REGISTER_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/register/register_entry.h"
#include "host/loop/event_loop.h"

struct register_observer {
    /* The event and all in it are borrowed for the call. */
    void (*told)(void *context, const struct register_event *event);
    void *context;
};

struct register_settings {
    const char *endpoint;         /* as in --rdzv-endpoint: a directory, HOST:PORT,…, NAME */
    const char *run_id;           /* one place may serve many jobs */
    const char *node_name;        /* of this machine, for people who look there */
    const struct text_list *conf; /* NAME=VALUE of --rdzv-conf; may be NULL */
    struct register_observer observer;
};

enum register_request_kind {
    REGISTER_REQUEST_READ,
    REGISTER_REQUEST_APPEND,
    REGISTER_REQUEST_RENEW,
    REGISTER_REQUEST_RENEWAL,
    REGISTER_REQUEST_WATCH,
};

enum register_outcome {
    REGISTER_OUTCOME_DONE,    /* READ, RENEWAL: `text`; APPEND: won; WATCH: `text`, a later one */
    REGISTER_OUTCOME_LOST,    /* APPEND: `text`; it may also be the request's own entry */
    REGISTER_OUTCOME_UNKNOWN, /* APPEND: it may have happened; the same append is begun again */
    REGISTER_OUTCOME_FAILED,  /* it has not happened */
};

/* Borrowed by the call that takes it. */
struct register_result {
    enum register_outcome outcome;
    struct slice text;             /* an entry as it was appended, or nothing; a renewal */
    const char *place;             /* where the entry is kept, for a message about it */
    const char *note;              /* READ: as in struct register_event */
    const struct failure *failure; /* FAILED, UNKNOWN */
    bool is_final;                 /* as in struct register_event */
};

/* All but the last two are unchanging for the engine. */
struct register_request {
    enum register_request_kind kind;
    struct slice text;                     /* APPEND: the entry */
    int64_t number;                        /* APPEND; WATCH: of the entry that is known */
    char nonce[REGISTER_ENTRY_NONCE_SIZE]; /* APPEND */
    int64_t term;                          /* APPEND, RENEW, RENEWAL */
    struct instant deadline;               /* for the engine to choose how patient to be */
    /* For the engine. The caller of the request hears of it in the loop's next turn, so that
     * neither the request nor the engine is freed by this call. */
    void (*answer)(struct register_request *request, const struct register_result *result);
    void *work;             /* the engine's own */
    struct failure trouble; /* what it has met so far, for who asks why it took long */
};

struct register_engine {
    const char *name;
    bool watches; /* it may be asked for WATCH */
    /* As register_open. The settings are borrowed. */
    enum failure_code (*open)(struct event_loop *loop, const struct register_settings *settings,
        void **out_state, struct failure *failure);
    /* All requests have been cancelled before. */
    void (*close)(void *state);
    /* The engine calls the request's `answer` later or at once, and has forgotten it then. */
    void (*begin)(void *state, struct register_request *request);
    /* The request is freed after the call. */
    void (*cancel)(void *state, struct register_request *request);
};

extern const struct register_engine dir_register_engine;
extern const struct register_engine etcd_register_engine;
extern const struct register_engine kubernetes_register_engine;

#endif
