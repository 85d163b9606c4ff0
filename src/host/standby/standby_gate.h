/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's end of the gate at which a standby worker waits: a pair of connected sockets. Reads
 * the messages of the standby worker on the loop, and sends it the list and the order to go.
 *
 * What the standby worker does when the gate is shut: its R can no longer be sent, and it ends. So
 * a gate that is shut tells for sure whether the standby worker has gone through. */
#ifndef MUSTER_HOST_STANDBY_STANDBY_GATE_H
#define MUSTER_HOST_STANDBY_STANDBY_GATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "host/loop/event_loop.h"
#include "wire/standby/gate_message.h"

struct standby_gate;

struct standby_gate_events {
    /* Also called from standby_gate_drain and standby_gate_shut. Must not free the gate. */
    void (*message)(void *context, const struct gate_message *message);
    /* The loop has taken all messages that were there. May free the gate. */
    void (*taken)(void *context);
    void *context;
};

/* What a standby worker becomes a worker with. */
struct standby_passage {
    const char *directory;
    const struct text_list *environment;
    int descriptors[4]; /* standard input, output and error, and the record; stay the caller's */
};

/* `out_worker_fd` is the other end, which the caller gives to the standby worker and closes. */
__attribute__((warn_unused_result)) enum failure_code standby_gate_new(struct event_loop *loop,
    const struct standby_gate_events *events, struct standby_gate **out_gate, int *out_worker_fd,
    struct failure *failure);
/* Not from within a call of `message`. Accepts NULL. */
void standby_gate_free(struct standby_gate *gate);

/* Neither waits. A failure says that the standby worker cannot be used. */
__attribute__((warn_unused_result)) enum failure_code standby_gate_send_list(
    struct standby_gate *gate, struct slice list, struct failure *failure);
/* To one that is ready: what it is to import, too. */
__attribute__((warn_unused_result)) enum failure_code standby_gate_send_more(
    struct standby_gate *gate, struct slice list, struct failure *failure);
/* To a warm parent that is ready: the end of another gate, for a child of it. */
__attribute__((warn_unused_result)) enum failure_code standby_gate_send_fork(
    struct standby_gate *gate, int worker_fd, struct failure *failure);
/* To a warm parent that is ready: it is to look which pages the worker needed, a child of it. To a
 * child of it, with 0: it is to make pages its own of which the parent knows that. */
__attribute__((warn_unused_result)) enum failure_code standby_gate_send_pages(
    struct standby_gate *gate, pid_t worker, struct failure *failure);
__attribute__((warn_unused_result)) enum failure_code standby_gate_send_go(
    struct standby_gate *gate, const struct standby_passage *passage, struct failure *failure);

/* Nobody is at the other end any more, and all messages were taken. */
bool standby_gate_is_closed(const struct standby_gate *gate);

/* Takes the messages that are there. */
void standby_gate_drain(struct standby_gate *gate);
/* The same; from now on the standby worker can say nothing more. */
void standby_gate_shut(struct standby_gate *gate);

/* How the kernel treats a standby worker: it is ended first when memory is short
 * (/proc/PID/oom_score_adj). Where that cannot be set, nothing happens. */

/* The process is to be ended before all others. */
void spare_treatment_begin(pid_t pid);

/* It is treated like this process again. */
void spare_treatment_end(pid_t pid);

#endif
