/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections whose other machine vanishes without a word: power lost, cable pulled, firewall
 * closed. TCP alone waits for a quarter of an hour when it has something to send, and for ever when
 * it has not. The kernel's keep-alive probes and TCP_USER_TIMEOUT shorten both. */
#ifndef MUSTER_HOST_TCP_SILENCE_H
#define MUSTER_HOST_TCP_SILENCE_H

#include <stdbool.h>

#include "base/duration.h"

/* For those whose settings name no timeout. */
#define TCP_SILENCE_DEFAULT ((struct duration){.nanoseconds = INT64_C(180000000000)})

/* Ends the connection with ETIMEDOUT (or what the network said was wrong) when the other machine
 * has not answered for about `timeout`: with three probes while the connection is idle, at the
 * first retransmission after it while something is on its way. Whole seconds, at least two, as the
 * kernel's probes are. Set on a listening socket it holds for every connection accepted.
 *
 * It is the machine's kernel that answers, so a stopped program is not silent; but one that reads
 * nothing while more is to be sent than the buffers hold is taken for it. */
void tcp_silence_limit(int fd, struct duration timeout);

/* Whether an established connection that ended with this errno ended by silence: by itself after
 * the timeout, or because the way there is known to be gone. */
bool tcp_silence_is(int system_error);

#endif
