/* SPDX-License-Identifier: BSD-3-Clause */
/* One line of the watchdog's FIFO, as FileTimerClient in
 * torch/distributed/elastic/timer/file_based_local_timer.py writes it:
 * {"version": 1, "pid": 19374, "scope_id": "s", "expiration_time": 1795174638.72, "signal": 9}
 * The version and unknown members are ignored, as in PyTorch. This module does not check whether
 * the process may hold timers. */
#ifndef MUSTER_WIRE_WATCHDOG_TIMER_REQUEST_JSON_H
#define MUSTER_WIRE_WATCHDOG_TIMER_REQUEST_JSON_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/watchdog/watchdog.h"

/* Longer lines are refused. FileTimerClient writes at most PIPE_BUF (4096) bytes and a newline. */
#define TIMER_REQUEST_JSON_MAXIMUM_SIZE 65536

/* Reads one request. A negative expiration is a RELEASE. So is one that never comes (Infinity): it
 * replaces the scope's timer and cannot expire. FAILURE_MALFORMED or FAILURE_LIMIT append a reason
 * of one line to `out_reason` (may be NULL). The caller clears the result with
 * watchdog_request_clear. */
__attribute__((warn_unused_result)) enum failure_code timer_request_json_read(
    struct slice text, struct watchdog_request *out_request, struct text *out_reason);

/* Appends the request's line; the expiration has microseconds. */
void timer_request_json_write(const struct watchdog_request *request, struct text *out);

struct timer_request_visitor {
    void (*request)(void *context, const struct watchdog_request *request);
    void (*refused)(void *context, const char *reason);
    void *context;
};

/* Reads a line. If a writer was stopped within its line or left out the newline, the next writer's
 * request follows on the same line. A line that is not one request is therefore split wherever an
 * object begins, and each part is read or refused. A blank line is ignored. */
void timer_request_json_each(struct slice line, const struct timer_request_visitor *visitor);

#endif
