/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets between libmuster-standby and the agent, each a letter and a body. A part of the library
 * that is not seen outside. The process ends here when there is nobody to speak to any more. */
#ifndef MUSTER_CLIENT_STANDBY_PACKET_H
#define MUSTER_CLIENT_STANDBY_PACKET_H

#include <stddef.h>
#include <stdint.h>

#define STANDBY_PACKET_MAXIMUM ((size_t)1 << 18)
#define STANDBY_DESCRIPTORS_MAXIMUM 6

#pragma GCC visibility push(hidden)

/* One packet from the agent. */
struct standby_packet {
    char *data; /* STANDBY_PACKET_MAXIMUM bytes, the receiver's */
    size_t length;
    int fds[STANDBY_DESCRIPTORS_MAXIMUM]; /* closed by exec */
    size_t fd_count;
};

/* Returns 0, or -1 and errno. */
int muster_standby_send_packet(int gate, const void *data, size_t length);

/* Sends a letter and numbers. Ends the process with status 0 where the agent needs it no more. */
void muster_standby_say_numbers(int gate, char kind, const uint32_t *numbers, size_t count);

/* Waits for a packet. Ends the process with status 0 where the agent is gone. */
void muster_standby_receive(int gate, struct standby_packet *packet);

/* Tells why this process cannot become a worker, as far as somebody still listens, and ends.
 * `error` is an errno or 0. */
_Noreturn void muster_standby_refuse(int gate, const char *what, int error);

/* Reads a whole file from its start, or refuses. */
void muster_standby_read_file(int gate, int fd, char *data, size_t length);

#pragma GCC visibility pop

#endif
