/* SPDX-License-Identifier: BSD-3-Clause */
/* What a store server makes of the bytes of its clients: it carries out their requests, collects
 * the replies, and keeps presence. In one turn of the loop a client gets a share. This is a part of
 * store_peers. */
#ifndef MUSTER_HOST_STORE_STORE_SERVICE_H
#define MUSTER_HOST_STORE_STORE_SERVICE_H

#include <stddef.h>

#include "base/bytes.h"
#include "host/store/store_peer.h"

/* As `received` of tcp_stream_owner. */
size_t store_service_receive(struct tcp_stream *stream, struct slice input, size_t *out_needed);

/* Sends the replies and closes the clients of the step that the table has made last. */
void store_service_carry_out(struct store_peers *peers);

#endif
