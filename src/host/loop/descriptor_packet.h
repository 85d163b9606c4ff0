/* SPDX-License-Identifier: BSD-3-Clause */
/* One packet over a local socket, with open descriptors for the process at the other end. It never
 * waits, and raises no SIGPIPE. */
#ifndef MUSTER_HOST_LOOP_DESCRIPTOR_PACKET_H
#define MUSTER_HOST_LOOP_DESCRIPTOR_PACKET_H

#include <stddef.h>
#include <sys/types.h>

#include "base/bytes.h"

/* How many descriptors a packet may have. */
#define DESCRIPTOR_PACKET_MOST ((size_t)8)

/* The descriptors stay the caller's. Returns 0, or the errno. */
int descriptor_packet_send(int fd, struct slice packet, const int *descriptors, size_t count);

/* Receives a packet, and the first of its descriptors, which is the caller's then, and is closed in
 * programs; -1: it had none. Of a longer packet the rest is lost, and so are further descriptors.
 * Returns the length; 0 at the end of the connection; -1 with errno. */
ssize_t descriptor_packet_receive(int fd, void *data, size_t size, int *out_descriptor);

#endif
