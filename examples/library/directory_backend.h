/* SPDX-License-Identifier: BSD-3-Clause */
/* A rendezvous backend that keeps the record in the working directory: RendezvousBackend, by files
 * alone. All nodes of the job have the same working directory, on one machine. */
#ifndef DIRECTORY_BACKEND_H
#define DIRECTORY_BACKEND_H

#include <stdint.h>

#include <muster/rendezvous.h>

struct directory {
    char *file; /* what was read last: a version, and the state after it */
    size_t length;
    uint64_t version;
    int watch_fd;
};

/* Fills in the backend, which uses the directory from then on. Returns whether there is a watch. */
int directory_open(struct directory *directory, struct muster_rendezvous_backend *out_backend);

/* After the rendezvous was freed. */
void directory_close(struct directory *directory);

#endif
