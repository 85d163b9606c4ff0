/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's end of a socket to the program that has started it. Lines go out, in order, and never
 * hold up the agent: what the program has not taken waits in memory, up to a limit. What comes in
 * is one byte for each signal by which the program asks the agent to end, or a byte that is no
 * signal with a message of a fixed size behind it.
 *
 * A program that ends or closes its end asks for SIGTERM in this way, unless it has asked before.
 */
#ifndef MUSTER_HOST_TELLING_PROGRAM_CHANNEL_H
#define MUSTER_HOST_TELLING_PROGRAM_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "host/loop/event_loop.h"

/* The most bytes of lines that may be lost and wait for the program. */
#define PROGRAM_CHANNEL_CEILING ((size_t)16 * 1024 * 1024)

/* The byte before a message. */
#define PROGRAM_CHANNEL_MESSAGE 0xFF

struct program_channel;

struct program_channel_settings {
    int fd;      /* a connected stream socket; borrowed */
    int program; /* a pidfd of the program, borrowed; -1: there is none */
    void (*asked)(void *context, int signal);
    void (*told)(void *context, const void *message); /* aligned; borrowed */
    size_t message_size;
    void *context;
};

__attribute__((warn_unused_result)) enum failure_code program_channel_new(struct event_loop *loop,
    const struct program_channel_settings *settings, struct program_channel **out_channel,
    struct failure *failure);

/* Copies the line. One that `may_be_lost` is, where too much waits already. */
void program_channel_tell(struct program_channel *channel, const char *line, bool may_be_lost);

/* Waits until the program has taken everything, or is gone. Before the loop is freed; accepts NULL.
 */
void program_channel_free(struct program_channel *channel);

#endif
