/* SPDX-License-Identifier: BSD-3-Clause */
/* One line of the watchdog's FIFO, as FileTimerClient in
 * torch/distributed/elastic/timer/file_based_local_timer.py writes it:
 *     {"version": 1, "pid": 19374, "scope_id": "s", "expiration_time": 1795174638.72, "signal": 9}
 * The version and unknown members are ignored, as there. Whether the process may hold timers is not
 * asked here. */
#ifndef MUSTER_WIRE_TIMER_REQUEST_JSON_H
#define MUSTER_WIRE_TIMER_REQUEST_JSON_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/watchdog.h"

/* Longer lines are refused. FileTimerClient writes at most PIPE_BUF (4096) bytes and a newline. */
#define TIMER_REQUEST_JSON_MAXIMUM_SIZE 65536

/* A negative expiration is a RELEASE; so is one that never comes (Infinity), since it takes the
 * place of the scope's timer and cannot expire. Where a writer was stopped within its line, the
 * next writer's line follows on the same one: what does not parse as a whole is read from the last
 * place where an object begins. FAILURE_MALFORMED or FAILURE_LIMIT with a reason of one line
 * appended to `out_reason` (may be NULL). watchdog_request_clear when done. */
__attribute__((warn_unused_result)) enum failure_code timer_request_json_read(
    struct slice line, struct watchdog_request *out_request, struct text *out_reason);

#endif
