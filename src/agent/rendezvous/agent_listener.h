/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the ports of the stores that an agent serves: on every address, or where the whole job is
 * on this machine only for processes of this machine. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_LISTENER_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_LISTENER_H

#include "base/failure.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "host/store/store_server.h"

/* `name` is the one by which the store is found; `port` 0 is any free one. Completes `settings`:
 * where the job is local, and the name is this machine's alone, with what makes the store local,
 * and this user's unless the job's stores are for every user. Also with how many clients may be
 * there without a proof.
 * Failures as tcp_listener_open. */
__attribute__((warn_unused_result)) enum failure_code agent_listener_open(
    const struct launch_config *config, const char *name, int port,
    struct store_server_settings *settings, int *out_fd, struct failure *failure);

/* Warns when the job's store that was opened with these settings is open to everybody. Not where
 * the user said --auth none: that was said at the start. */
void agent_listener_warn(const struct launch_config *config,
    const struct store_server_settings *settings, int port, const struct log *log);

/* Warns when this process may not have enough files open to serve the job's store to all nodes that
 * may come, with so many connections each. The soft limit was raised before. */
void agent_listener_warn_of_limit(
    const struct launch_config *config, int connections_of_node, const struct log *log);

#endif
