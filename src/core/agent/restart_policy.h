/* SPDX-License-Identifier: BSD-3-Clause */
/* The restarts that a job may use: each restart of the worker group uses one of --max-restarts,
 * whichever worker failed. The number of used restarts is the attempt that runs
 * (TORCHELASTIC_RESTART_COUNT, the attempt_N directory). Where the record of the job keeps this
 * number, the agent takes it from there. Matches `_remaining_restarts` in
 * torch/distributed/elastic/agent/server/api.py SimpleElasticAgent. */
#ifndef MUSTER_CORE_AGENT_RESTART_POLICY_H
#define MUSTER_CORE_AGENT_RESTART_POLICY_H

#include <stdbool.h>

struct restart_policy {
    int maximum; /* restarts allowed after the first start */
    int used;
};

void restart_policy_init(struct restart_policy *policy, int maximum);

/* The attempt that runs: 0 for the first start. */
int restart_policy_attempt(const struct restart_policy *policy);

/* Never negative. */
int restart_policy_remaining(const struct restart_policy *policy);

/* Uses one restart. Returns false, and uses none, when none is left. */
bool restart_policy_take(struct restart_policy *policy);

/* Goes to `attempt`, to which another node has restarted the job. Returns false, and changes
 * nothing, when this node allows fewer restarts. Never goes back to an earlier attempt. */
bool restart_policy_advance_to(struct restart_policy *policy, int attempt);

/* Takes over the number of restarts that the job has used. It may be smaller or larger than the
 * number here. When it is larger than this node allows, no restart remains. */
void restart_policy_set(struct restart_policy *policy, int used);

#endif
