/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/standby/standby_choice.h"

bool standby_is_for_python(const struct launch_config *config) {
    return config->entry != LAUNCH_ENTRY_PROGRAM;
}

static bool may_restart(const struct launch_config *config) {
    return config->max_restarts > 0 || config->maximum_nodes > config->minimum_nodes;
}

enum standby_choice standby_choose(
    const struct launch_config *config, int worker_count, int cpu_count) {
    if (config->standby == LAUNCH_STANDBY_OFF) {
        return STANDBY_CHOICE_OFF;
    }
    if (!may_restart(config)) {
        return STANDBY_CHOICE_NO_RESTART;
    }
    if (config->standby == LAUNCH_STANDBY_AUTO && !standby_is_for_python(config)) {
        return STANDBY_CHOICE_NO_PYTHON;
    }
    if (config->standby == LAUNCH_STANDBY_AUTO && worker_count > cpu_count / 2) {
        return STANDBY_CHOICE_FEW_CPUS;
    }
    return STANDBY_CHOICE_WANTED;
}

bool standby_leaves_memory(uint64_t available, int worker_count, uint64_t size) {
    return available / STANDBY_MEMORY_PART / (uint64_t)worker_count >= size;
}
