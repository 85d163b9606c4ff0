/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/agent/restart_policy.h"

void restart_policy_init(struct restart_policy *policy, int maximum) {
    *policy = (struct restart_policy){.maximum = maximum};
}

int restart_policy_attempt(const struct restart_policy *policy) {
    return policy->used;
}

int restart_policy_remaining(const struct restart_policy *policy) {
    return policy->used < policy->maximum ? policy->maximum - policy->used : 0;
}

bool restart_policy_take(struct restart_policy *policy) {
    if (policy->used >= policy->maximum) {
        return false;
    }
    policy->used++;
    return true;
}

bool restart_policy_advance_to(struct restart_policy *policy, int attempt) {
    if (attempt > policy->maximum) {
        return false;
    }
    if (attempt > policy->used) {
        policy->used = attempt;
    }
    return true;
}

void restart_policy_set(struct restart_policy *policy, int used) {
    policy->used = used;
}
