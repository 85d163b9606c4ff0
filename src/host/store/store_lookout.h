/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of a store server whose machines it looks at every second: those that hold a presence
 * key. It judges their silence (core/store/connection_silence), and answers the signs of life that
 * they have left in its kernel. Of a client whose connection is calm no signs come any more
 * (core/store/connection_calm); its silence is left to the kernel until one comes again, and
 * nothing is done for it meanwhile. This is a part of store_peers and is not used elsewhere. */
#ifndef MUSTER_HOST_STORE_STORE_LOOKOUT_H
#define MUSTER_HOST_STORE_STORE_LOOKOUT_H

#include <stdbool.h>

#include "base/duration.h"
#include "core/store/store_request.h"
#include "host/store/store_peer.h"

/* The client has sent this request. */
void store_lookout_note(struct store_peer *peer, const struct store_request *request);
/* What has arrived was served, and nothing is left of it. A sign of life that comes alone need not
 * wake the server. */
void store_lookout_serve(struct store_peer *peer, bool is_all_served);
/* The client is looked at no more. For one that ends: when the loop has let go of it. */
void store_lookout_forget(struct store_peer *peer);

/* Closes the clients whose machines are gone. Returns after how long to look again. */
struct duration store_lookout_look(struct store_peers *peers);
/* `gone` of the client's presence keys follows because its machine is silent, or it has stalled. */
void store_lookout_report_silent(const struct store_peer *peer);

#endif
