/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a store_client that connects: addresses, attempts, pauses, and when it gives up. */
#ifndef MUSTER_HOST_STORE_STORE_CLIENT_DIALLING_H
#define MUSTER_HOST_STORE_STORE_CLIENT_DIALLING_H

#include "host/store/store_client_state.h"

/* When this client will have been refused for long enough. */
struct instant store_client_refusals_end(const struct store_client *client);

/* Tries the next address at once. After the last address there is a pause. */
void store_client_retry(struct store_client *client, const struct failure *failure);

/* Does what is due of an attempt that pauses or is under way. */
void store_client_dial_due(struct store_client *client, struct instant now);

#endif
