/* SPDX-License-Identifier: BSD-3-Clause */
/* The standard streams of a standby worker, which become those of a worker. A part of
 * libmuster-standby that is not seen outside. */
#ifndef MUSTER_CLIENT_STANDBY_STREAMS_H
#define MUSTER_CLIENT_STANDBY_STREAMS_H

#include <stddef.h>

#define STANDBY_STREAMS 3

#pragma GCC visibility push(hidden)

/* Refuses where more was printed than is kept. */
void muster_standby_check_printed(int gate);

/* Gives the descriptors other numbers than those of the streams, which may be closed. */
void muster_standby_move_away(int gate, int *fds, size_t count);

/* Takes the descriptors. What was printed before goes first into the new files. */
void muster_standby_replace_streams(int gate, const int fds[STANDBY_STREAMS]);

#pragma GCC visibility pop

#endif
