/* SPDX-License-Identifier: BSD-3-Clause */
/* What a failed worker of this node left behind, gathered into an account of its failure: its error
 * file as it was read when the worker ended, how it ended, what the kernel knows, and its place in
 * the job. Opens nothing, judges nothing. */
#ifndef MUSTER_AGENT_FAILURE_AGENT_FINDINGS_H
#define MUSTER_AGENT_FAILURE_AGENT_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/workers/agent_preparation.h"
#include "agent/workers/agent_workers.h"
#include "base/bytes.h"
#include "core/failure/failure_report.h"
#include "core/workers/worker_command.h"
#include "core/workers/worker_group.h"

struct agent_finding {
    struct failure_account account;
    bool has_error;          /* it wrote an error file that could be read: … */
    struct slice error_file; /* the workers'; good until the loop runs on */
};

/* Where findings come from; borrowed. */
struct agent_findings_sources {
    const struct agent_preparation *preparation;
    const struct agent_workers *workers;
    const struct node_placement *placement; /* of the workers */
};

/* Looks into the failure at `index` of the group; the time of its error file is noted in `group`.
 * agent_finding_clear when done. */
void agent_finding_collect(const struct agent_findings_sources *sources, struct worker_group *group,
    size_t index, struct agent_finding *out_finding);
void agent_finding_clear(struct agent_finding *finding);

#endif
