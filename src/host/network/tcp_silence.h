/* SPDX-License-Identifier: BSD-3-Clause */
/* Detects connections whose other machine disappears without closing them: power lost, cable
 * pulled, firewall closed. TCP alone waits for a quarter of an hour when it has something to send,
 * and forever when it has not. The kernel's keep-alive probes and TCP_USER_TIMEOUT shorten both. */
#ifndef MUSTER_HOST_NETWORK_TCP_SILENCE_H
#define MUSTER_HOST_NETWORK_TCP_SILENCE_H

#include <stdbool.h>

#include "base/duration.h"
#include "core/store/store_limits.h"

/* The timeout when the settings name none. */
#define TCP_SILENCE_DEFAULT ((struct duration){.nanoseconds = INT64_C(180000000000)})

/* Ends the connection with ETIMEDOUT (or with the error that the network reported) when the other
 * machine has not answered for about `timeout`. An idle connection is tested with three probes.
 * While data is on its way, the connection ends at the first retransmission after the timeout. The
 * timeout is rounded to whole seconds, at least two, because the kernel's probes are. Set on a
 * listening socket, it applies to every accepted connection.
 *
 * The other machine's kernel answers the probes, so a stopped program does not count as silent. But
 * a program that reads nothing while more data waits than the buffers hold does count as silent. */
void tcp_silence_limit(int fd, struct duration timeout);

/* As tcp_silence_limit, but whoever has the connection watches it: measures its silence and decides
 * (core/store/connection_silence). The kernel ends it only after three times the timeout. What is
 * not acknowledged is sent again every 0.2 s for the first seven times, and only then after pauses
 * that double: so lost packets are told from a machine that is gone. An idle connection is probed
 * every second. */
void tcp_silence_watch(int fd, struct duration timeout);

/* Nobody watches the connection any more, or for now: the kernel ends it after the timeout, and up
 * to a second later. For a connection with tcp_silence_watch, which also takes this back. */
void tcp_silence_leave(int fd, struct duration timeout);

/* How long nothing was heard of the other machine's kernel: no new data, and no acknowledgement of
 * data or of a probe. It is not more than the time since the connection was made. And how many
 * packets were sent again. Both are zero when the kernel does not tell. */
struct connection_hearing tcp_silence_measure(int fd);

/* Whether an established connection that ended with this errno ended by silence: after the timeout,
 * or because the network reported that the machine cannot be reached. */
bool tcp_silence_is(int system_error);

#endif
