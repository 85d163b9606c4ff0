/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_end.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_events.h"
#include "agent/failure/agent_report.h"
#include "base/memory.h"
#include "core/telling/event_record.h"
#include "core/telling/run_result.h"
#include "core/workers/signal_name.h"

#define EXIT_JOB_FAILED 1
#define SIGNAL_EXIT_BASE 128

/* An empty name is none, as torchrun takes it. */
static const char *parent_error_file(const struct agent *agent) {
    const char *path = text_list_variable(agent->environment, "TORCHELASTIC_ERROR_FILE");
    return path == NULL || *path == '\0' ? NULL : path;
}

static void note_trouble(struct agent *agent, const char *message) {
    free(agent->trouble);
    agent->trouble = memory_duplicate_string(message);
}

int agent_end_of_itself(struct agent *agent, const char *error, const char *message) {
    note_trouble(agent, message);
    log_error(agent->log, "%s", message);
    agent_report_launcher_failure(parent_error_file(agent), agent->log, error, message);
    return EXIT_JOB_FAILED;
}

static int report_rendezvous_failure(struct agent *agent, const char *what) {
    char *message = text_format("%s: %s", what, node_machine_knowledge(agent->node)->trouble);
    int status = agent_end_of_itself(agent, "RendezvousError", message);
    free(message);
    return status;
}

/* The file has the words of torchrun's SignalException. */
int agent_end_by_signal(struct agent *agent) {
    int signal = agent->outcome.signal;
    char *message = text_format("Process %lld got signal: %d", (long long)getpid(), signal);
    log_error(agent->log, "stopped by %s", signal_name_from_number(signal));
    agent_report_launcher_failure(parent_error_file(agent), agent->log, "SignalException", message);
    free(message);
    return agent_report_signal_status(agent->config, signal);
}

/* The node of the worker that failed first has the report. The others name it. */
static bool is_told_elsewhere(const struct agent *agent) {
    return node_machine_knowledge(agent->node)->has_root_cause;
}

static void name_root_cause(const struct agent *agent, const char *what) {
    struct text sentence = {0};
    failure_account_describe(&node_machine_knowledge(agent->node)->root_cause, &sentence);
    log_error(agent->log, "%s: %s; the report is that node's", what, text_string(&sentence));
    text_clear(&sentence);
}

static int report_failures(struct agent *agent) {
    struct worker_group *workers = node_machine_workers(agent->node);
    const struct membership_knowledge *knowledge = node_machine_knowledge(agent->node);
    struct agent_report_settings settings = {
        .config = agent->config,
        .sources = {&agent->preparation, agent->workers, &knowledge->placement},
        .workers = agent->workers,
        .log = agent->log,
        .root_cause = knowledge->has_root_cause ? &knowledge->root_cause : NULL,
        .parent_error_file = parent_error_file(agent),
    };
    struct text report = {0};
    int status = agent_report_failures(&settings, workers, &report);
    if (!is_told_elsewhere(agent) || agent->log->threshold <= LOG_LEVEL_DEBUG) {
        log_sink_write_text(agent->sink, text_string(&report));
    }
    text_clear(&report);
    return status;
}

/* What replaces the node reads the status. */
static int end_as_worker(struct agent *agent) {
    if (worker_group_has_failure(node_machine_workers(agent->node))) {
        (void)report_failures(agent);
    }
    return agent->exit_on.is_signal ? SIGNAL_EXIT_BASE + agent->exit_on.value
                                    : agent->exit_on.value;
}

int agent_end_unbegun(struct agent *agent, const struct failure *failure) {
    bool is_refusal = failure->code == FAILURE_SYSTEM;
    const char *why = agent->has_no_memory ? AGENT_MEMORY_SENTENCE : failure->message;
    agent->has_no_memory = agent->has_no_memory || failure->system_error == ENOMEM;
    return agent_end_of_itself(agent, is_refusal ? "OSError" : "RuntimeError", why);
}

/* The agent has said so when it began to end. Workers that have failed before are reported, too. */
static int end_without_memory(struct agent *agent) {
    const struct worker_group *group = node_machine_workers(agent->node);
    note_trouble(agent, AGENT_MEMORY_SENTENCE);
    agent_report_launcher_failure(
        parent_error_file(agent), agent->log, "MemoryError", AGENT_MEMORY_SENTENCE);
    if (worker_group_has_failure(group) &&
        !group->failures[worker_group_root_cause(group)].is_from_our_signal) {
        (void)report_failures(agent);
    }
    return EXIT_JOB_FAILED;
}

void agent_memory_exhausted(void *context) {
    struct agent *agent = context;
    if (!agent->has_no_memory) {
        agent->has_no_memory = true;
        log_error(agent->log, "%s", AGENT_MEMORY_SENTENCE);
    }
    if (agent->node == NULL) { /* it is still being prepared */
        event_loop_stop(agent->loop);
        return;
    }
    agent_post(agent,
        &(struct node_event){.part = NODE_AGENT, .agent = {.kind = AGENT_EVENT_CANNOT_GO_ON}});
}

int agent_end_report(struct agent *agent) {
    static const char left_behind[] =
        "some processes did not end after SIGKILL (they hang in the kernel) and were left behind";
    const struct membership_knowledge *knowledge = node_machine_knowledge(agent->node);
    bool has_failures = worker_group_has_failure(&node_machine_agent(agent->node)->workers) ||
                        knowledge->has_root_cause;
    bool is_only_left_behind = agent->outcome.kind == AGENT_OUTCOME_FAILED && !has_failures;
    if (agent->outcome.has_abandoned_processes && !is_only_left_behind) {
        log_error(agent->log, "%s", left_behind);
    }
    switch (agent->outcome.kind) {
    case AGENT_OUTCOME_SUCCEEDED:
        return EXIT_SUCCESS;
    case AGENT_OUTCOME_FAILED:
        if (agent->has_no_memory) {
            return end_without_memory(agent);
        }
        if (is_only_left_behind) {
            return agent_end_of_itself(agent, "RuntimeError", left_behind);
        }
        if (knowledge->has_root_cause) {
            name_root_cause(agent, "a worker of another node failed first");
        }
        return report_failures(agent);
    case AGENT_OUTCOME_PEER_FAILED:
        if (!knowledge->has_root_cause) {
            return report_rendezvous_failure(agent, "stopped because another node failed");
        }
        name_root_cause(agent, "stopped because another node failed");
        return report_failures(agent);
    case AGENT_OUTCOME_JOIN_FAILED:
        return report_rendezvous_failure(agent, "cannot join the job");
    case AGENT_OUTCOME_SIGNALLED:
        return agent->has_exit_on ? end_as_worker(agent) : agent_end_by_signal(agent);
    }
    return EXIT_JOB_FAILED;
}

void agent_end_record(struct agent *agent) {
    const struct worker_group *workers = &node_machine_agent(agent->node)->workers;
    const char *trouble = node_machine_knowledge(agent->node)->trouble;
    char *signalled = NULL;
    if (agent->outcome.kind == AGENT_OUTCOME_SIGNALLED) {
        signalled = text_format("stopped by %s", signal_name_from_number(agent->outcome.signal));
        trouble = signalled;
    } else if (agent->outcome.kind == AGENT_OUTCOME_FAILED && agent->has_no_memory) {
        trouble = AGENT_MEMORY_SENTENCE;
    } else if (agent->outcome.kind == AGENT_OUTCOME_FAILED && workers->failure_count > 0) {
        trouble = workers->failures[worker_group_root_cause(workers)].start_message;
    }
    agent_event_log_end(agent->event_log, agent->workers, &agent->outcome, trouble);
    free(signalled);
}

/* The failures of this node, without the workers that the agent itself has ended. */
static void collect_failures(struct agent *agent, struct run_result *result) {
    struct worker_group *group = node_machine_workers(agent->node);
    const struct agent_findings_sources sources = {
        &agent->preparation, agent->workers, &node_machine_knowledge(agent->node)->placement};
    result->failures = memory_allocate(group->failure_count * sizeof *result->failures);
    for (size_t i = 0; i < group->failure_count; i++) {
        struct agent_finding finding;
        if (group->failures[i].is_from_our_signal) {
            continue;
        }
        agent_finding_collect(&sources, group, i, &finding);
        failure_account_copy(&finding.account, &result->failures[result->failure_count++]);
        if (i == worker_group_root_cause(group) && !result->has_root_cause) {
            result->has_root_cause = true;
            failure_account_copy(&finding.account, &result->root_cause);
        }
        agent_finding_clear(&finding);
    }
}

/* Those that have ended by themselves. */
static void collect_workers(struct agent *agent, struct run_result *result) {
    const struct worker_group *group = node_machine_workers(agent->node);
    int base_rank = node_machine_knowledge(agent->node)->placement.ranks.base_rank;
    result->workers = memory_allocate(group->count * sizeof *result->workers);
    for (size_t rank = 0; rank < group->count; rank++) {
        const struct worker_failure *failure = event_plan_failure(group, (int)rank);
        bool has_ended =
            group->states[rank] == WORKER_SUCCEEDED ||
            (failure != NULL && failure->start_message == NULL && failure->stuck.nanoseconds == 0);
        if (has_ended) {
            struct run_worker *worker = &result->workers[result->worker_count++];
            *worker = (struct run_worker){
                .global_rank = base_rank + (int)rank,
                .local_rank = (int)rank,
                .pid = agent_workers_pid(agent->workers, (int)rank),
                .exit_code = failure != NULL ? process_exit_python_code(failure->exit) : 0,
            };
            if (worker->exit_code == 0) {
                agent_workers_return_value(agent->workers, (int)rank, &worker->return_value);
            }
        }
    }
}

static enum run_state final_state(const struct agent_outcome *outcome) {
    switch (outcome->kind) {
    case AGENT_OUTCOME_SUCCEEDED:
        return RUN_STATE_SUCCEEDED;
    case AGENT_OUTCOME_FAILED:
        return RUN_STATE_FAILED;
    case AGENT_OUTCOME_PEER_FAILED:
    case AGENT_OUTCOME_JOIN_FAILED:
    case AGENT_OUTCOME_SIGNALLED:
        break;
    }
    return RUN_STATE_STOPPED;
}

/* Of an agent whose machine has run. */
static void describe_run(struct agent *agent, struct run_result *result) {
    const struct membership_knowledge *knowledge = node_machine_knowledge(agent->node);
    const struct agent_machine *machine = node_machine_agent(agent->node);
    result->state = final_state(&agent->outcome);
    result->restarts = agent_machine_attempt(machine);
    if (knowledge->has_root_cause) {
        result->has_root_cause = true;
        failure_account_copy(&knowledge->root_cause, &result->root_cause);
    }
    if (result->state != RUN_STATE_STOPPED) {
        collect_workers(agent, result);
    }
    if (agent->outcome.kind != AGENT_OUTCOME_SUCCEEDED) {
        collect_failures(agent, result);
    }
    agent_audience_end(agent->audience, machine, &agent->outcome);
}

void agent_end_tell(struct agent *agent, int status) {
    if (agent->program != NULL && agent->program->out_has_no_memory != NULL) {
        *agent->program->out_has_no_memory = agent->has_no_memory && status != EXIT_SUCCESS;
    }
    if (agent->audience == NULL) {
        return;
    }
    bool is_signalled = agent->outcome.kind == AGENT_OUTCOME_SIGNALLED;
    struct run_result result = {
        .state = RUN_STATE_STOPPED,
        .exit_status = status,
        .signal = is_signalled ? agent->outcome.signal : 0,
        .message = memory_duplicate_string(agent->trouble),
    };
    if (agent->has_run) {
        describe_run(agent, &result);
    }
    agent_audience_result(agent->audience, &result);
    run_result_clear(&result);
}
