/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's register: the sequence of entries of core/register/register_entry.h, kept by something
 * that outlives every node, the engine. Nothing here blocks: each
 * request is answered later by one event, on the thread that runs the loop, and never from inside a
 * call of this module. Requests may overlap; each has a number and a deadline.
 *
 * What a caller can rely on, whichever the engine is:
 * - Of all entries that nodes append with one number, one is won, and it stays the entry of that
 *   number. Numbers have no gap.
 * - REGISTER_LOST carries an entry with that number or a later one. A caller follows it: whatever
 *   became of its own, it is not the last entry.
 * - What is read may be older than what others have won, but not than what this node has been told.
 *   An append finds out.
 * - The register finds out itself what became of an append whose reply was lost: it asks again
 *   until the deadline. REGISTER_UNKNOWN is rare, then, but an append that ended so may take effect
 *   at any later time.
 * - Nothing orders the clocks of nodes: a renewal is a text that changes each time. */
#ifndef MUSTER_HOST_REGISTER_REGISTER_H
#define MUSTER_HOST_REGISTER_REGISTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/register/register_entry.h"
#include "host/loop/event_loop.h"

struct job_register;
struct register_engine;

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

/* The engine for --rdzv-backend NAME, or NULL. */
const struct register_engine *register_engine_named(const char *name);

/* Copies the settings. Does not wait for anything. FAILURE_INVALID with a message for the user when
 * an endpoint or a setting cannot be used, FAILURE_MISSING when a library is not installed,
 * FAILURE_SYSTEM. */
__attribute__((warn_unused_result)) enum failure_code register_open(struct event_loop *loop,
    const struct register_engine *engine, const struct register_settings *settings,
    struct job_register **out_register, struct failure *failure);
/* Requests under way get no answer. An append among them may still take effect. May be called from
 * inside `told`. Accepts NULL. */
void register_free(struct job_register *job_register);

/* Each function but register_watch returns the number of its request, never 0. A request that is
 * not done at its deadline fails with FAILURE_TIMEOUT; an append is REGISTER_UNKNOWN then. */

/* The last entry. Answered by REGISTER_READ or REGISTER_FAILED. */
uint64_t register_read(struct job_register *job_register, struct instant deadline);

/* Appends the entry, whose number is one more than that of the last entry the caller knows of.
 * The entry must pass register_entry_check, and each append has a fresh nonce. Answered by
 * REGISTER_WON, REGISTER_LOST, REGISTER_UNKNOWN or REGISTER_FAILED. */
uint64_t register_append(
    struct job_register *job_register, const struct register_entry *entry, struct instant deadline);

/* Says that the host of this term is alive. Answered by REGISTER_RENEWED or REGISTER_FAILED. */
uint64_t register_renew(struct job_register *job_register, int64_t term, struct instant deadline);

/* Asks for the renewal of this term: a text (perhaps empty) that changes each time. Answered by
 * REGISTER_RENEWAL or REGISTER_FAILED. */
uint64_t register_renewal(struct job_register *job_register, int64_t term, struct instant deadline);

/* Waits for an entry later than the one with this number, which the caller knows of. Answered by
 * REGISTER_NEWS as soon as there is one, which it need not ask for then, or by REGISTER_FAILED. A
 * watch may be silent although there is such an entry: it only makes waiting shorter. Returns 0
 * where the engine cannot watch. */
uint64_t register_watch(struct job_register *job_register, int64_t number, struct instant deadline);

/* The request gets no answer. An append may still take effect. Does nothing for a number that is
 * not under way. May be called from inside `told`. */
void register_cancel(struct job_register *job_register, uint64_t request);

/* What an engine of a job's register gives to host/register/register.c, which does for all engines
 * what they have in common: numbers and deadlines of requests, the spelling of entries, and the
 * search for what became of an append whose reply was lost. An engine knows entries as text. All
 * functions are called on the thread that runs the loop, and must not block. */

enum register_request_kind {
    REGISTER_REQUEST_READ,
    REGISTER_REQUEST_APPEND,
    REGISTER_REQUEST_RENEW,
    REGISTER_REQUEST_RENEWAL,
    REGISTER_REQUEST_WATCH,
};

/* All but the last two are unchanging for the engine. */
struct register_request {
    enum register_request_kind kind;
    struct slice text;                     /* APPEND: the entry */
    int64_t number;                        /* APPEND; WATCH: of the entry that is known */
    char nonce[REGISTER_ENTRY_NONCE_SIZE]; /* APPEND */
    int64_t term;                          /* APPEND, RENEW, RENEWAL */
    struct instant deadline;               /* for the engine to choose how patient to be */
    void *work;                            /* the engine's own */
    struct failure trouble; /* what it has met so far, for who asks why it took long */
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

struct register_engine {
    const char *name;
    bool watches; /* it may be asked for WATCH */
    /* As register_open. The settings are borrowed. */
    enum failure_code (*open)(struct event_loop *loop, const struct register_settings *settings,
        void **out_state, struct failure *failure);
    /* All requests have been cancelled before. */
    void (*close)(void *state);
    /* The engine calls register_request_answer later or at once. After a
     * DONE, LOST, UNKNOWN or FAILED it has forgotten the request. */
    void (*begin)(void *state, struct register_request *request);
    /* The request is freed after the call. */
    void (*cancel)(void *state, struct register_request *request);
};

/* For the engine. The caller of the request hears of it in the loop's next turn, so that neither
 * the request nor the engine is freed by this call. */
void register_request_answer(
    struct register_request *request, const struct register_result *result);

#endif
