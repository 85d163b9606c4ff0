/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_store_memory.h"

#include "core/store/store_limits.h"
#include "host/machine/memory_limit.h"

struct store_limits agent_store_memory_limits(
    const struct launch_config *config, const struct log *log) {
    const struct store_memory asked = {
        .bytes = config->store_memory_bytes, .percent = config->store_memory_percent};
    uint64_t available = memory_limit_read("");
    struct store_limits limits = store_memory_limits(&asked, available);
    if (limits.memory_bytes > available) {
        log_warning(log,
            "--store-memory: a store may use %.1f MiB, but this agent may use only %.1f MiB",
            (double)limits.memory_bytes / 1048576, (double)available / 1048576);
    }
    return limits;
}
