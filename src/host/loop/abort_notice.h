/* SPDX-License-Identifier: BSD-3-Clause */
/* A line and a status in place of a core dump when the machine refuses what the program cannot do
 * without: memory, a file descriptor, a place in an epoll set. libuv calls abort() then, and so
 * does base/memory. Any other abort, as after a failed assertion, stays one. */
#ifndef MUSTER_HOST_LOOP_ABORT_NOTICE_H
#define MUSTER_HOST_LOOP_ABORT_NOTICE_H

/* From now on, an abort whose reason (errno) is such a refusal writes one line to stderr, and the
 * process exits with status 1. */
void abort_notice_install(void);
/* Takes that back. */
void abort_notice_remove(void);

/* Where the refusal is of memory, `words` go to this socket, too. They are borrowed. */
void abort_notice_tell(int fd, const char *words);

#endif
