/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/standby/standby_choice.h"

bool standby_is_for_python(const struct launch_config *config) {
    return config->entry != LAUNCH_ENTRY_PROGRAM;
}

static bool may_restart(const struct launch_config *config) {
    return config->max_restarts > 0 || config->maximum_nodes > config->minimum_nodes;
}

bool standby_is_wanted(const struct launch_config *config, int worker_count, int cpu_count) {
    switch (config->standby) {
    case LAUNCH_STANDBY_ON:
        return may_restart(config);
    case LAUNCH_STANDBY_AUTO:
        return may_restart(config) && standby_is_for_python(config) &&
               worker_count <= cpu_count / 2;
    case LAUNCH_STANDBY_OFF:
        break;
    }
    return false;
}

bool standby_leaves_memory(uint64_t available, int worker_count, uint64_t size) {
    return available / STANDBY_MEMORY_PART / (uint64_t)worker_count >= size;
}
