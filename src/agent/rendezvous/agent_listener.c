/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_listener.h"

#include <inttypes.h>

#include "core/store/store_limits.h"
#include "host/loop/descriptor_limit.h"
#include "host/network/tcp_listener.h"

enum failure_code agent_listener_open(const struct launch_config *config, const char *name,
    int port, struct store_server_settings *settings, int *out_fd, struct failure *failure) {
    struct local_listener local;
    settings->unproven_maximum = (size_t)store_descriptors_unproven(
        (uint64_t)config->maximum_nodes, descriptor_limit_read());
    enum failure_code code = FAILURE_MISSING;
    if (config->is_local) {
        code = local_listener_open(name, port, &local, failure);
    }
    if (code == FAILURE_MISSING) {
        int bound_port;
        return tcp_listener_open(NULL, port, out_fd, &bound_port, failure);
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    *out_fd = local.fds[0];
    settings->is_local = true;
    settings->is_for_this_user = !config->is_store_for_every_user;
    settings->further_count = local.count - 1;
    for (size_t i = 1; i < local.count; i++) {
        settings->further_fds[i - 1] = local.fds[i];
    }
    return FAILURE_NONE;
}

void agent_listener_warn(const struct launch_config *config,
    const struct store_server_settings *settings, int port, const struct log *log) {
    if (!settings->is_local && settings->key == NULL && config->auth != LAUNCH_AUTH_NONE) {
        log_warning(log,
            "the job's store at port %d is open to whoever reaches this machine: they could join "
            "this job, or end it; give all nodes a job token (MUSTER_JOB_TOKEN or --token-file), "
            "or "
            "munge",
            port);
    }
}

void agent_listener_warn_of_limit(
    const struct launch_config *config, int connections_of_node, const struct log *log) {
    uint64_t connections = (uint64_t)connections_of_node;
    uint64_t kept = descriptor_limit_kept();
    uint64_t needed = store_descriptors_needed((uint64_t)config->maximum_nodes, connections, kept);
    uint64_t limit = descriptor_limit_read();
    if (limit < needed) {
        log_warning(log,
            "this agent may have %" PRIu64 " files open, but to host the job's store for %d nodes "
            "it needs %" PRIu64 ": when more than about %" PRIu64 " nodes come, others are turned "
            "away; raise the hard limit of open files (ulimit -Hn)",
            limit, config->maximum_nodes, needed,
            store_descriptors_nodes(limit, connections, kept));
    }
}
