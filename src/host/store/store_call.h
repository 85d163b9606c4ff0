/* SPDX-License-Identifier: BSD-3-Clause */
/* A request given to a store client, with everything needed to send it later, and the queue of such
 * requests. host/store_client sends it and takes the answer. */
#ifndef MUSTER_HOST_STORE_STORE_CALL_H
#define MUSTER_HOST_STORE_STORE_CALL_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "host/store/store_client.h"

enum store_call_stage {
    STORE_CALL_QUEUED,
    STORE_CALL_WAITING_FIRST, /* its WAIT has been sent */
    STORE_CALL_SENT,          /* the request itself has been sent */
    STORE_CALL_CANCELLING,    /* its time is up; CANCEL_WAIT has been sent */
};

struct store_call {
    struct store_call *next;
    enum store_call_stage stage;
    enum store_call_stage cancelled_stage; /* the stage before STORE_CALL_CANCELLING */
    bool is_released;                      /* the wait was answered while we were cancelling it */
    bool waits_first;
    bool rests;
    struct store_request request; /* operation and count only; the operands are in `bytes` */
    struct bytes wait_bytes;      /* the encoded WAIT, when `waits_first` */
    struct bytes bytes;           /* the encoded request */
    struct instant deadline;
    void (*done)(void *context, const struct store_client_result *result);
    void *context;
};

/* Copies the call. Never NULL. */
struct store_call *store_call_new(const struct store_client_call *call, struct instant now);
void store_call_free(struct store_call *call);

/* Whether the request is in a stage that the server may answer late and that can be cancelled. */
bool store_call_is_waiting(const struct store_call *call);

/* Calls `done` and frees the call. */
void store_call_finish(struct store_call *call_taken, const struct store_client_result *result);

/* First in, first out. A zeroed struct is empty. */
struct store_call_queue {
    struct store_call *first;
    struct store_call *last;
};

void store_call_queue_push(struct store_call_queue *queue, struct store_call *call_taken);
/* Removes and returns the first call; NULL when the queue is empty. The caller owns it. */
struct store_call *store_call_queue_pop(struct store_call_queue *queue);
/* Removes and returns the first call whose deadline has passed, or NULL. */
struct store_call *store_call_queue_pop_expired(struct store_call_queue *queue, struct instant now);
/* Removes and returns the first call that rests with these bytes, or NULL. */
struct store_call *store_call_queue_pop_resting(
    struct store_call_queue *queue, struct slice queue_pop);
/* The earliest deadline; an instant that never comes when the queue is empty. */
struct instant store_call_queue_deadline(const struct store_call_queue *queue);

#endif
