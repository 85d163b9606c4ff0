/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the host of a job's store about the whole job over the job's endpoint
 * (host/telling/job_asking), which it finds as a node would, and proves itself as a node does. */
#ifndef MUSTER_AGENT_JOB_HOST_H
#define MUSTER_AGENT_JOB_HOST_H

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "core/launch/launch_config.h"
#include "wire/telling/node_telling.h"

struct job_host;

#define JOB_HOST_ANSWER_MAXIMUM ((size_t)32 << 20)

/* `config` is that of a node of the job, and is borrowed. `timeout` is for each question. As
 * agent_proof_open. */
__attribute__((warn_unused_result)) enum failure_code job_host_open(
    const struct launch_config *config, struct duration timeout, struct job_host **out_host,
    struct failure *failure);
/* Accepts NULL. */
void job_host_free(struct job_host *host);

/* Appends the answer. As job_asking. */
__attribute__((warn_unused_result)) enum failure_code job_host_ask(struct job_host *host,
    enum job_question_kind kind, int64_t after, struct bytes *answer, struct failure *failure);

#endif
