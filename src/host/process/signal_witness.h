/* SPDX-License-Identifier: BSD-3-Clause */
/* A small child of the agent that only tells which signals reach it. It has a session of its own,
 * as workers have. So who signals every process below the agent signals the witness, too, and who
 * signals the agent alone, or its process group, does not. No signal but SIGKILL ends it; it ends
 * with the agent. It holds no descriptor of the agent's. */
#ifndef MUSTER_HOST_PROCESS_SIGNAL_WITNESS_H
#define MUSTER_HOST_PROCESS_SIGNAL_WITNESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/failure.h"
#include "host/loop/event_loop.h"

#define SIGNAL_WITNESS_NAME "muster-witness"

/* In the place of a signal: it has answered signal_witness_ask. */
#define SIGNAL_WITNESS_ANSWER 0

struct signal_witness;

/* Starts the witness. `seen` is called on the loop, and by signal_witness_listen, for each signal;
 * one that comes again before it was told is told once. A process_family has to leave it out. */
__attribute__((warn_unused_result)) enum failure_code signal_witness_new(struct event_loop *loop,
    void (*seen)(void *context, int signal), void *context, struct signal_witness **out_witness,
    struct failure *failure);

/* Ends the witness, and waits for it. Accepts NULL. */
void signal_witness_free(struct signal_witness *witness);

/* Takes what the witness has told and the loop has not taken yet. False: it has ended, and tells
 * nothing any more. */
bool signal_witness_listen(struct signal_witness *witness);

/* Asks for an answer, which comes after all signals that reached the witness before the question.
 * False: it cannot be asked. */
bool signal_witness_ask(struct signal_witness *witness);

/* For tests. */
pid_t signal_witness_pid(const struct signal_witness *witness);

#endif
