/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/failure/agent_findings.h"

#include <stdlib.h>

#include "base/memory.h"
#include "wire/failure/error_file_json.h"

#define NANOSECONDS_PER_SECOND 1000000000

static void take_error(struct agent_finding *finding, const char *path, struct error_file *error,
    struct worker_group *group) {
    struct failure_account *account = &finding->account;
    finding->has_error = true;
    account->error_file = memory_duplicate_string(path);
    account->message = memory_duplicate_string(error->message);
    account->is_message_object = error->is_message_object;
    account->summary = memory_duplicate_string(error->summary);
    if (error->has_timestamp) {
        account->seconds = error->timestamp;
        worker_group_set_error_time(group, account->local_rank, error->timestamp);
    }
}

static void take_error_file(const char *path, const struct worker_error *read,
    struct agent_finding *finding, struct worker_group *group) {
    struct text reason = {0};
    struct error_file error;
    if (read == NULL || read->code == FAILURE_MISSING) {
        return;
    }
    if (read->code != FAILURE_NONE) {
        finding->account.note = text_format("unreadable error file: %s", read->failure.message);
        return;
    }
    enum failure_code code = error_file_json_read(bytes_slice(&read->content), &error, &reason);
    if (code == FAILURE_NONE) {
        take_error(finding, path, &error, group);
        finding->error_file = bytes_slice(&read->content);
        error_file_clear(&error);
    } else {
        finding->account.note =
            text_format("unreadable error file %s: %s", path, text_string(&reason));
    }
    text_clear(&reason);
}

void agent_finding_collect(const struct agent_findings_sources *sources, struct worker_group *group,
    size_t index, struct agent_finding *out_finding) {
    const struct worker_failure *failure = &group->failures[index];
    const struct node_placement *placement = sources->placement;
    int local_rank = failure->local_rank;
    *out_finding = (struct agent_finding){
        .account = {
            .host = memory_duplicate_string(sources->preparation->host_name),
            .node = memory_duplicate_string(placement->node),
            .group_rank = placement->group_rank,
            .rank = placement->ranks.base_rank + local_rank,
            .local_rank = local_rank,
            .role_rank = placement->ranks.role_base_rank + local_rank,
            .seconds = failure->observed.nanoseconds / NANOSECONDS_PER_SECOND,
            .pid = agent_workers_pid(sources->workers, local_rank),
            .exit = failure->exit,
            .start_message = memory_duplicate_string(failure->start_message),
            .stuck = failure->stuck,
            .log_file = agent_workers_stderr_file(sources->workers, local_rank),
            .evidence =
                memory_duplicate_string(agent_workers_evidence(sources->workers, local_rank)),
        }};
    take_error_file(agent_workers_error_file(sources->workers, local_rank),
        agent_workers_error(sources->workers, local_rank), out_finding, group);
}

void agent_finding_clear(struct agent_finding *finding) {
    failure_account_clear(&finding->account);
    *finding = (struct agent_finding){0};
}
