/* SPDX-License-Identifier: BSD-3-Clause */
/* Lets the agent know that this process is ending while the kernel still takes its memory down: the
 * main thread takes a robust mutex at the front of its record, and keeps it. A part of the library
 * that is not seen outside. */
#ifndef MUSTER_CLIENT_STANDBY_NOTICE_H
#define MUSTER_CLIENT_STANDBY_NOTICE_H

#pragma GCC visibility push(hidden)

/* Nothing happens on another thread, and where the record, a file in memory to which nothing has
 * been written, has no room for it. The file stays the caller's. */
void muster_standby_arrange_notice(int record);

#pragma GCC visibility pop

#endif
