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

#include <stdint.h>

#include "host/register/register_engine.h"

struct job_register;

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

#endif
