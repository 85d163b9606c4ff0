/* SPDX-License-Identifier: BSD-3-Clause */
/* Countdown timers between a parent and the children it forks, without a FIFO: the children put
 * requests into a queue, the parent serves them. Compare LocalTimerClient and LocalTimerServer in
 * torch/distributed/elastic/timer/local_timer.py and TimerServer in its api.py, with these
 * differences: a deadline is noticed when it is due and not at the end of an interval, only
 * descendants of the parent can be ended, and a process that got the pid of one that died is not.
 */
#ifndef MUSTER_AGENT_LOCAL_TIMER_H
#define MUSTER_AGENT_LOCAL_TIMER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/duration.h"
#include "base/failure.h"
#include "base/log.h"
#include "core/watchdog.h"
#include "host/timer_queue.h"

/* The child's side. For this process; `seconds` from now; FAILURE_LIMIT and FAILURE_TIMEOUT as
 * timer_queue_put. */
__attribute__((warn_unused_result)) enum failure_code local_timer_acquire(
    struct timer_queue *queue, const char *scope, struct duration after, struct failure *failure);
__attribute__((warn_unused_result)) enum failure_code local_timer_release(
    struct timer_queue *queue, const char *scope, struct failure *failure);

/* The parent's side. */
struct local_timer_server;

/* The queue and the log are borrowed. */
struct local_timer_server *local_timer_server_new(struct timer_queue *queue, const struct log *log);
/* Accepts NULL. */
void local_timer_server_free(struct local_timer_server *server);

/* Takes in one request; one of a process that is no descendant is passed over, and logged. */
void local_timer_server_register(
    struct local_timer_server *server, const struct watchdog_request *request);

/* Ends all timers of a process. */
void local_timer_server_clear(struct local_timer_server *server, pid_t pid);

/* Takes out the next process with expired timers; false when there is none. The caller clears it.
 */
bool local_timer_server_expired(
    struct local_timer_server *server, struct watchdog_expiry *out_expiry);

/* Ends a process with SIGKILL; true when it is gone, also when it was before. */
bool local_timer_server_reap(
    struct local_timer_server *server, const struct watchdog_expiry *expiry);

/* One round: takes what requests there are, or waits for one until `maximum` has passed or a timer
 * is due, and ends whose timers have expired. Returns how many processes were ended. */
size_t local_timer_server_serve(struct local_timer_server *server, struct duration maximum);

size_t local_timer_server_timer_count(const struct local_timer_server *server);

#endif
