/* SPDX-License-Identifier: BSD-3-Clause */
/* What failures may cost: each restart of the worker group uses one of --max-restarts, whichever
 * worker failed. The number of restarts used is the attempt that runs (TORCHELASTIC_RESTART_COUNT,
 * the attempt_N directory). Where the job keeps the count, its word is taken. Matches
 * `_remaining_restarts` in torch/distributed/elastic/agent/server/api.py SimpleElasticAgent. */
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

/* Never negative. */
int restart_policy_remaining(const struct restart_policy *policy);

/* Uses one restart; false, and nothing is used, when none is left. */
bool restart_policy_take(struct restart_policy *policy);

/* Catches up with a job that is at `attempt` already, because another node asked for the restart.
 * False, and nothing changes, when that is more than this node allows. Never goes back. */
bool restart_policy_advance_to(struct restart_policy *policy, int attempt);

/* Takes over what the job says it has used, be it less or more than was thought here, and even more
 * than this node allows: then nothing remains. */
void restart_policy_set(struct restart_policy *policy, int used);

#endif
