/* SPDX-License-Identifier: BSD-3-Clause */
/* What failures may cost: each restart of the worker group uses one of --max-restarts, whichever
 * worker failed. The number of restarts used is the attempt that runs (TORCHELASTIC_RESTART_COUNT,
 * the attempt_N directory). Matches `_remaining_restarts` in
 * torch/distributed/elastic/agent/server/api.py SimpleElasticAgent. */
#ifndef MUSTER_CORE_RESTART_POLICY_H
#define MUSTER_CORE_RESTART_POLICY_H

#include <stdbool.h>

struct restart_policy {
    int maximum; /* restarts allowed after the first start */
    int used;
};

void restart_policy_init(struct restart_policy *policy, int maximum);

/* The attempt that runs: 0 for the first start. */
int restart_policy_attempt(const struct restart_policy *policy);

int restart_policy_remaining(const struct restart_policy *policy);

/* Uses one restart; false, and nothing is used, when none is left. */
bool restart_policy_take(struct restart_policy *policy);

/* Catches up with a job that is at `attempt` already, because another node asked for the restart.
 * False, and nothing changes, when that is more than this node allows. Never goes back. */
bool restart_policy_advance_to(struct restart_policy *policy, int attempt);

#endif
