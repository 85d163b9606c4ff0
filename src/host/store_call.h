/* SPDX-License-Identifier: BSD-3-Clause */
/* A request a store client has been asked to make, with everything needed to send it later, and
 * the queue of such requests. Sending and answering are host/store_client's. */
#ifndef MUSTER_HOST_STORE_CALL_H
#define MUSTER_HOST_STORE_CALL_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "host/store_client.h"

enum store_call_stage {
    STORE_CALL_QUEUED,
    STORE_CALL_WAITING_FIRST, /* its WAIT is sent */
    STORE_CALL_SENT,          /* the request itself is sent */
    STORE_CALL_CANCELLING,    /* time is up; CANCEL_WAIT is sent */
};

struct store_call {
    struct store_call *next;
    enum store_call_stage stage;
    enum store_call_stage cancelled_stage; /* the one before STORE_CALL_CANCELLING */
    bool is_released;                      /* the wait's answer crossed our cancelling it */
    bool waits_first;
    struct store_request request; /* operation and count alone: its operands are in `bytes` */
    struct bytes wait_bytes;      /* the WAIT, when `waits_first` */
    struct bytes bytes;           /* the request */
    struct instant deadline;
    void (*done)(void *context, const struct store_client_result *result);
    void *context;
};

/* Copies all of it. Never NULL. */
struct store_call *store_call_new(const struct store_client_call *call, struct instant now);
void store_call_free(struct store_call *call);

/* Whether the server may take its time to answer this stage, and it can be cancelled. */
bool store_call_is_waiting(const struct store_call *call);

/* Calls back and frees. */
void store_call_finish(struct store_call *call_taken, const struct store_client_result *result);

/* First in, first out. A zeroed struct is empty. */
struct store_call_queue {
    struct store_call *first;
    struct store_call *last;
};

void store_call_queue_push(struct store_call_queue *queue, struct store_call *call_taken);
/* NULL when there is none; the caller owns the call. */
struct store_call *store_call_queue_pop(struct store_call_queue *queue);
/* Takes out the first call whose deadline has passed, or NULL. */
struct store_call *store_call_queue_pop_expired(struct store_call_queue *queue, struct instant now);
/* The earliest deadline; an instant that never comes when the queue is empty. */
struct instant store_call_queue_deadline(const struct store_call_queue *queue);

#endif
