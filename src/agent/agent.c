/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "agent/failure/agent_report.h"
#include "agent/rendezvous/agent_node_settings.h"
#include "agent/standby/agent_standby.h"
#include "agent/standby/standby_spare.h"
#include "base/failure.h"
#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/rendezvous/rendezvous_step.h"
#include "core/round/round_key.h"
#include "core/store/store_request.h"
#include "core/telling/event_record.h"
#include "core/workers/log_plan.h"
#include "core/workers/signal_name.h"
#include "host/loop/descriptors.h"
#include "host/network/health_endpoint.h"
#include "host/process/process_table.h"

#define EXIT_JOB_FAILED 1
#define EXIT_USAGE 2
#define SIGNAL_EXIT_BASE 128
/* This node is not fit for the job (--node-check). */
#define EXIT_UNFIT 76
/* Its workers have failed first too often (--exclude-after). */
#define EXIT_EXCLUDED 75

/* An empty name is none, as torchrun takes it. */
static const char *parent_error_file(const struct agent *agent) {
    const char *path = text_list_variable(agent->environment, "TORCHELASTIC_ERROR_FILE");
    return path == NULL || *path == '\0' ? NULL : path;
}

static void note_trouble(struct agent *agent, const char *message) {
    free(agent->trouble);
    agent->trouble = memory_duplicate_string(message);
}

/* The end of an agent: what is said of it on stderr, in the launcher's own error file and to other
 * programs, and the exit status that follows from it. Decides nothing: the outcome is the agent
 * machine's. */

/* The same where something kept the agent itself from going on; `error` is what Python calls the
 * like. */
static int agent_end_of_itself(struct agent *agent, const char *error, const char *message) {
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
static int agent_end_by_signal(struct agent *agent) {
    int signal = agent->outcome.signal;
    char *message = text_format("Process %lld got signal: %d", (long long)getpid(), signal);
    log_error(agent->log, "stopped by %s", signal_name_from_number(signal));
    agent_report_launcher_failure(parent_error_file(agent), agent->log, "SignalException", message);
    free(message);
    return agent_report_signal_status(agent->config, signal);
}

/* Workers of two fixed nodes have failed: the other node was first to say so. */
static bool has_failed_second(const struct agent *agent) {
    return agent->node_settings.node.membership.kind == MEMBERSHIP_FIXED &&
           agent->outcome.kind == AGENT_OUTCOME_FAILED &&
           node_machine_knowledge(agent->node)->trouble != NULL &&
           !node_machine_knowledge(agent->node)->is_cut_off;
}

/* The node of the worker that failed first has the report. The others name it. */
static bool is_told_elsewhere(const struct agent *agent) {
    return node_machine_knowledge(agent->node)->has_root_cause || has_failed_second(agent);
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
        .root_cause = agent_ends_with_first_cause(agent) ? &agent->first_cause
                      : knowledge->has_root_cause        ? &knowledge->root_cause
                                                         : NULL,
        .is_shown = !is_told_elsewhere(agent) || agent->log->threshold <= LOG_LEVEL_DEBUG,
        .parent_error_file = parent_error_file(agent),
    };
    struct text report = {0};
    int status = agent_report_failures(&settings, workers, &report);
    if (settings.is_shown) {
        log_sink_write_text(agent->sink, text_string(&report));
    }
    text_clear(&report);
    return status;
}

/* Not of those that this agent has ended. */
static bool has_own_failure(const struct agent *agent) {
    const struct worker_group *group = node_machine_workers(agent->node);
    return worker_group_has_failure(group) &&
           !group->failures[worker_group_root_cause(group)].is_from_our_signal;
}

/* Where no other node has the report, as far as this one knows, its own workers may tell why. */
static int end_without_others(struct agent *agent, const char *what, bool may_be_told_elsewhere) {
    int status = report_rendezvous_failure(agent, what);
    if (!may_be_told_elsewhere && has_own_failure(agent)) {
        (void)report_failures(agent);
    }
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

/* The same where a part of the agent could not be made, for that reason. */
static int agent_end_unbegun(struct agent *agent, const struct failure *failure) {
    bool is_refusal = failure->code == FAILURE_SYSTEM;
    const char *why = agent->has_no_memory ? AGENT_MEMORY_SENTENCE : failure->message;
    agent->has_no_memory = agent->has_no_memory || failure->system_error == ENOMEM;
    if (agent->preparation.is_word_unknown) { /* a mistake of usage; no attempt helps */
        (void)agent_end_of_itself(agent, "ValueError", why);
        return EXIT_USAGE;
    }
    return agent_end_of_itself(agent, is_refusal ? "OSError" : "RuntimeError", why);
}

/* Why this agent cannot go on, though its workers might; or NULL. */
static const char *own_trouble(const struct agent *agent) {
    return agent->has_no_memory ? AGENT_MEMORY_SENTENCE : agent->refusal;
}

/* The agent has said so when it began to end. Workers that have failed before are reported, too. */
static int end_unable(struct agent *agent) {
    note_trouble(agent, own_trouble(agent));
    agent_report_launcher_failure(parent_error_file(agent), agent->log,
        agent->has_no_memory ? "MemoryError" : "RuntimeError", own_trouble(agent));
    if (has_own_failure(agent)) {
        (void)report_failures(agent);
    }
    return EXIT_JOB_FAILED;
}

/* Why it stays out of the job has been said. Workers that have failed before are reported, too. */
static int end_outside(struct agent *agent, int status) {
    note_trouble(agent, agent->unfit);
    agent_report_launcher_failure(
        parent_error_file(agent), agent->log, "RuntimeError", agent->unfit);
    if (worker_group_has_failure(node_machine_workers(agent->node))) {
        (void)report_failures(agent);
    }
    return status;
}

/* There is no memory to go on with: the agent begins to end. As agent_memory_new says. */
static void agent_memory_exhausted(void *context) {
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

/* Says how the job has ended for this node, and returns the exit status. */
static int agent_end_report(struct agent *agent) {
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
        if (own_trouble(agent) != NULL) {
            return end_unable(agent);
        }
        if (is_only_left_behind) {
            return agent_end_of_itself(agent, "RuntimeError", left_behind);
        }
        if (knowledge->has_root_cause) {
            name_root_cause(agent, "a worker of another node failed first");
        } else if (has_failed_second(agent)) {
            log_error(agent->log,
                "a worker of another node failed first: %s; the report is that "
                "node's",
                knowledge->trouble);
        }
        return report_failures(agent);
    case AGENT_OUTCOME_PEER_FAILED:
        if (!knowledge->has_root_cause) {
            return end_without_others(
                agent, "stopped because another node failed", !knowledge->is_cut_off);
        }
        name_root_cause(agent, "stopped because another node failed");
        return report_failures(agent);
    case AGENT_OUTCOME_JOIN_FAILED:
        return end_without_others(agent, "cannot join the job", knowledge->has_root_cause);
    case AGENT_OUTCOME_SIGNALLED:
        return agent->has_exit_on ? end_as_worker(agent) : agent_end_by_signal(agent);
    case AGENT_OUTCOME_UNFIT:
        return end_outside(agent, EXIT_UNFIT);
    case AGENT_OUTCOME_EXCLUDED:
        return end_outside(agent, EXIT_EXCLUDED);
    }
    return EXIT_JOB_FAILED;
}

/* Tells the event log. */
static void agent_end_record(struct agent *agent) {
    const struct worker_group *workers = &node_machine_agent(agent->node)->workers;
    const char *trouble = node_machine_knowledge(agent->node)->trouble;
    char *signalled = NULL;
    if (agent->outcome.kind == AGENT_OUTCOME_SIGNALLED) {
        signalled = text_format("stopped by %s", signal_name_from_number(agent->outcome.signal));
        trouble = signalled;
    } else if (agent->outcome.kind == AGENT_OUTCOME_FAILED && own_trouble(agent) != NULL) {
        trouble = own_trouble(agent);
    } else if (agent->outcome.kind == AGENT_OUTCOME_UNFIT ||
               agent->outcome.kind == AGENT_OUTCOME_EXCLUDED) {
        trouble = agent->unfit;
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
    case AGENT_OUTCOME_UNFIT:
    case AGENT_OUTCOME_EXCLUDED:
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

/* Tells the program that has started the agent, after one of those with a status. */
static void agent_end_tell(struct agent *agent, int status) {
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

/* Agent. */
/* How long the disk of the log directory may be silent before it is told. */
#define SILENT_DISK_SECONDS 3
/* How long a console that takes nothing may hold up the end of a job: no longer than workers may,
 * whose time begins with the signal. It is asked once more where they have used theirs up. */
#define CONSOLE_PATIENCE_SECONDS 30
#define LEAST_CONSOLE_PATIENCE_SECONDS 1
/* How long a disk that does not answer may do so: that of log files that are being written, … */
#define LOG_PATIENCE_SECONDS 15
/* … and that of an empty directory. */
#define DISK_PATIENCE_SECONDS 5

static enum failure_code start_guardian(struct agent *agent, struct failure *failure) {
    bool may_be_missed = agent->node_settings.node.membership.kind == MEMBERSHIP_CHANGING;
    struct agent_guardian_settings settings = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .log = agent->log,
        .patience = may_be_missed ? agent_standstill : NULL,
        .fenced = agent_stood_still,
        .context = agent,
    };
    return agent_guardian_new(agent->loop, &settings, &agent->guardian, failure);
}

static enum failure_code make_scratch(struct agent *agent, struct failure *failure) {
    struct agent_scratch_settings settings = {
        .config = agent->config,
        .environment = agent->environment,
        .log = agent->log,
        .guardian = agent_guardian_process(agent->guardian),
    };
    return agent_scratch_new(&settings, &agent->scratch, failure);
}

/* Events come throughout the job: a console that takes none of them must not hold it up. */
static bool needs_log_thread(const struct agent *agent) {
    return log_plan_redirects(agent->config, agent->preparation.worker_count) ||
           agent->config->event_handler == LAUNCH_EVENTS_CONSOLE;
}

/* What the agent has said must not be lost with a disk that hangs. */
static void write_record(void *context, const char *text) {
    log_sink_write_text(context, text);
}

static enum failure_code start_log_thread(struct agent *agent, struct failure *failure) {
    if (!needs_log_thread(agent)) {
        return FAILURE_NONE;
    }
    struct log_thread_settings settings = {
        .loop = agent->loop,
        .log = agent->log,
        .stdout_fd = STDOUT_FILENO,
        .stderr_fd = STDERR_FILENO,
        .bytes = agent_metrics_log_bytes(agent->metrics),
        .patience = duration_from_seconds(LOG_PATIENCE_SECONDS),
        .rescue = write_record,
        .context = agent->sink,
    };
    enum failure_code code = log_thread_new(&settings, &agent->log_thread, failure);
    if (code == FAILURE_NONE) {
        log_sink_use_thread(agent->sink, agent->log_thread);
    }
    return code;
}

static enum failure_code open_event_log(struct agent *agent, struct failure *failure) {
    struct agent_event_log_settings settings = {
        .config = agent->config,
        .environment = agent->environment,
        .preparation = &agent->preparation,
        .machine = node_machine_agent(agent->node),
        .placement = &node_machine_knowledge(agent->node)->placement,
        .sink = agent->sink,
        .audience = agent->audience,
    };
    return agent_event_log_new(agent->loop, &settings, &agent->event_log, failure);
}

static uint64_t store_connection(void *context) {
    const struct agent *agent = context;
    return agent->rendezvous != NULL ? agent_rendezvous_connection(agent->rendezvous) : 0;
}

static bool ask_store(void *context, const struct store_client_call *call) {
    const struct agent *agent = context;
    return agent->rendezvous != NULL && agent_rendezvous_ask(agent->rendezvous, call);
}

static bool find_store(void *context, const char **out_host, int *out_port) {
    const struct agent *agent = context;
    return agent->rendezvous != NULL &&
           agent_rendezvous_find_store(agent->rendezvous, out_host, out_port);
}

static void store_reached(void *context) {
    const struct agent *agent = context;
    agent_job_chronicle_note_connected(agent->job_chronicle);
}

static void store_leaving(void *context) {
    const struct agent *agent = context;
    agent_job_chronicle_leave(agent->job_chronicle);
}

static void standstill_told(void *context, struct slice told) {
    const struct agent *agent = context;
    agent_hang_take_told(agent->hang, told);
}

static void open_job_chronicle(struct agent *agent) {
    enum membership_kind kind = agent->node_settings.node.membership.kind;
    if (kind == MEMBERSHIP_FIXED) {
        round_key_write_telling(agent->preparation.run_id, &agent->telling_folder);
    } else if (kind == MEMBERSHIP_CHANGING) {
        rendezvous_key_write_telling(agent->preparation.run_id, &agent->telling_folder);
    }
    const struct agent_job_chronicle_settings settings = {
        .log = agent->log,
        .node = agent->preparation.node_name,
        .run_id = agent->preparation.run_id,
        .log_dir = agent->preparation.logs.run_path,
        .folder = kind == MEMBERSHIP_ALONE ? NULL : text_string(&agent->telling_folder),
        .key = agent_proof_key(agent->proof),
        .may_move = agent->config->dynamic.register_engine != NULL,
        .placement = &node_machine_knowledge(agent->node)->placement,
        .connection = store_connection,
        .send = ask_store,
        .find_host = find_store,
        .standstill_told = standstill_told,
        .context = agent,
    };
    agent->job_chronicle = agent_job_chronicle_new(agent->loop, &settings);
}

static void answer_later(void *context, uint64_t ticket, struct text *text_taken) {
    const struct agent *agent = context;
    agent_announcement_answer(agent->announcement, ticket, text_taken);
}

static void wake_followers(void *context) {
    const struct agent *agent = context;
    agent_announcement_wake(agent->announcement);
}

static void open_chronicle(struct agent *agent) {
    open_job_chronicle(agent);
    const struct agent_chronicle_settings settings = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .placement = &node_machine_knowledge(agent->node)->placement,
        .standby = node_machine_standby(agent->node),
        .log = agent->log,
        .job = agent->job_chronicle,
        .answer = answer_later,
        .wake = wake_followers,
        .context = agent,
    };
    agent->chronicle = agent_chronicle_new(agent->loop, &settings);
}

static void tell_progress(void *context, const struct progress_news *news) {
    const struct agent *agent = context;
    agent_chronicle_note_progress(agent->chronicle, news);
}

static void stand_still(void *context, struct duration silence) {
    const struct agent *agent = context;
    agent_hang_stand(agent->hang, silence);
}

static void prepare_progress(struct agent *agent) {
    const struct worker_progress_settings settings = {
        .worker_count = agent->preparation.worker_count,
        .has_hook = agent->standby == NULL && standby_is_for_python(agent->config) &&
                    (agent->program == NULL || agent->program->function == NULL),
        .guardian = agent_guardian_process(agent->guardian),
        .log = agent->log,
        .placement = &node_machine_knowledge(agent->node)->placement,
        .patience = {agent->config->hang.is_learned, agent->config->hang.after},
        .tell = tell_progress,
        .stepped = agent_worker_stepped,
        .stand = stand_still,
        .context = agent,
    };
    if (agent->config->has_progress) {
        agent->progress = worker_progress_new(agent->loop, &settings);
    }
}

/* Of the timers and the program, that of whoever is behind. */
static struct wall_time last_progress(void *context) {
    const struct agent *agent = context;
    struct wall_time now = event_loop_wall_time(agent->loop);
    struct wall_time seen = agent_watchdog_last_progress(agent->watchdog, now);
    if (agent->hooks.last_progress != NULL) {
        struct wall_time said = agent->hooks.last_progress(agent->hooks.context);
        seen = said.nanoseconds < seen.nanoseconds ? said : seen;
    }
    return seen;
}

static void find_facts(void *context, struct agent_metrics_facts *out_facts) {
    const struct agent *agent = context;
    bool has_record = agent->node_settings.node.membership.kind == MEMBERSHIP_CHANGING;
    const struct rendezvous_state *record =
        has_record ? rendezvous_machine_state(node_machine_rendezvous(agent->node)) : NULL;
    *out_facts = (struct agent_metrics_facts){
        .machine = node_machine_agent(agent->node),
        .placement = &node_machine_knowledge(agent->node)->placement,
        .watchdog = agent->watchdog,
        .standby = node_machine_standby(agent->node),
        .job = agent->job_chronicle,
        .failed_first = agent_chronicle_failed_first(agent->chronicle),
        .step = worker_progress_last(agent->progress),
        .spares = record == NULL ? 0
                                 : (int64_t)(rendezvous_state_waiting(record) +
                                             rendezvous_state_redundant(record)),
    };
}

static void write_metrics(void *context, struct text *out) {
    const struct agent *agent = context;
    agent_metrics_write(agent->metrics, out);
}

static void keep_metrics(struct agent *agent) {
    const struct agent_metrics_settings settings = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .worker_store = &agent->worker_store_operations,
        .log = agent->log,
        .find = find_facts,
        .context = agent,
    };
    agent->metrics = agent_metrics_new(agent->loop, &settings);
}

static void serve_health(struct agent *agent) {
    struct agent_health_settings settings = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .machine = node_machine_agent(agent->node),
        .log = agent->log,
        .last_progress = last_progress,
        .write_metrics = write_metrics,
        .context = agent,
    };
    agent->health = agent_health_new(agent->loop, &settings);
}

static const struct rendezvous_state *seen_record(void *context) {
    const struct agent *agent = context;
    return rendezvous_machine_state(node_machine_rendezvous(agent->node));
}

static const struct node_identity *own_identity(void *context, bool *out_is_host_of_delegates) {
    const struct agent *agent = context;
    const struct rendezvous_machine *machine = node_machine_rendezvous(agent->node);
    *out_is_host_of_delegates =
        rendezvous_machine_is_host(machine) && agent->config->dynamic.settings.delegates;
    return rendezvous_machine_identity(machine);
}

static void write_obstacle(void *context, struct text *out) {
    const struct agent *agent = context;
    agent_rendezvous_write_obstacle(agent->rendezvous, out);
}

static bool is_in_round(void *context, struct text_list *out_unready) {
    const struct agent *agent = context;
    return agent_rendezvous_is_in_round(agent->rendezvous, out_unready);
}

static void describe_admission(void *context, struct text *out) {
    const struct agent *agent = context;
    agent_rendezvous_describe_admission(agent->rendezvous, out);
}

static bool ask_who_is_unready(void *context) {
    const struct agent *agent = context;
    return agent_rendezvous_look_for_unready(agent->rendezvous);
}

/* The name of a job that has a world is right, and its spare nodes wait for nobody. Fixed nodes
 * have no record, and no neighbours there. */
static void has_waited(void *context) {
    struct agent *agent = context;
    agent_voice_wait(&agent->voice);
    if (agent->node_settings.node.membership.kind == MEMBERSHIP_CHANGING &&
        !seen_record(context)->is_complete) {
        const struct rendezvous_state *record = seen_record(context);
        agent_chronicle_note_waiting(agent->chronicle, (int)rendezvous_state_participants(record));
        agent_rendezvous_look_for_neighbours(agent->rendezvous);
    }
}

static void waits_no_longer(void *context) {
    const struct agent *agent = context;
    agent_rendezvous_stop_looking_for_neighbours(agent->rendezvous);
}

static void tell_while_joining(struct agent *agent) {
    enum membership_kind kind = agent->node_settings.node.membership.kind;
    struct agent_joining_settings settings = {
        .fixed = kind == MEMBERSHIP_FIXED ? agent->config : NULL,
        .rendezvous = &agent->config->dynamic.settings,
        .expected = &agent->expected_nodes,
        .log = agent->log,
        .sink = agent->sink,
        .state = seen_record,
        .me = own_identity,
        .in_round = is_in_round,
        .context = agent,
        .obstacle = write_obstacle,
        .waited = has_waited,
    };
    if (kind == MEMBERSHIP_CHANGING) {
        settings.ask_before = ask_who_is_unready;
        settings.admission = describe_admission;
        settings.ended = waits_no_longer;
        agent_joining_expect(agent->config, agent->environment, &agent->expected_nodes);
    }
    if (kind != MEMBERSHIP_ALONE) {
        agent->joining = agent_joining_new(agent->loop, &settings);
    }
}

/* Only where there are other nodes to prove anything to. */
static enum failure_code open_proof(struct agent *agent, struct failure *failure) {
    const struct agent_proof_settings settings = {agent->config, agent->preparation.run_id,
        agent->loop, agent->log, NULL,
        duration_from_seconds(AGENT_PROOF_MUNGE_PERSISTENCE_SECONDS)};
    if (agent->node_settings.node.membership.kind == MEMBERSHIP_ALONE) {
        return FAILURE_NONE;
    }
    return agent_proof_open(&settings, &agent->proof, failure);
}

static enum failure_code make_node(struct agent *agent, struct failure *failure) {
    enum failure_code code = agent_node_settings_make(
        agent->config, &agent->preparation, agent->environment, &agent->node_settings, failure);
    if (code == FAILURE_NONE && agent->node_settings.address != NULL) {
        free(agent->preparation.node_name);
        agent->preparation.node_name = memory_duplicate_string(agent->node_settings.address);
    }
    if (code == FAILURE_NONE) {
        code = open_proof(agent, failure);
    }
    if (code == FAILURE_NONE) {
        struct node_settings *node = &agent->node_settings.node;
        node->round.is_store_for_round =
            agent->config->is_store_for_round ||
            (agent->config->is_store_for_proven && agent->proof != NULL);
        node->rendezvous.role = round_settings_role(&node->round);
        agent->node = node_machine_new(node);
    }
    return code;
}

static bool warm_standby(void *context, struct slice list_text) {
    const struct agent *agent = context;
    return agent_standby_invite(agent->standby, list_text);
}

static void hear_words(void *context, struct slice words) {
    struct agent *agent = context;
    agent_voice_hear(&agent->voice, words);
}

static void say_for_all(struct agent *agent) {
    struct text name = {0};
    if (agent->node_settings.node.membership.kind == MEMBERSHIP_FIXED) {
        text_append_format(&name, "%d", agent->config->node_rank); /* its one name there */
    } else {
        node_identity_write(&agent->node_settings.node.rendezvous.identity, &name);
    }
    agent->said = (struct agent_said){
        agent_voice_write_words(&agent->voice, text_string(&name)), hear_words, agent};
    text_clear(&name);
}

static enum failure_code open_rendezvous(struct agent *agent, struct failure *failure) {
    say_for_all(agent);
    struct agent_rendezvous_settings settings = {
        .config = agent->config,
        .environment = agent->environment,
        .preparation = &agent->preparation,
        .node = &agent->node_settings.node,
        .name_leads_to = agent->node_settings.address_leads_to,
        .machine = agent->node,
        .log = agent->log,
        .guardian = agent_guardian_process(agent->guardian),
        .key = agent_proof_key(agent->proof),
        .worker_store_operations = &agent->worker_store_operations,
        .record_store_operations = agent_metrics_record_store_operations(agent->metrics),
        .mailbox = {agent_post, agent},
        .recorded =
            agent_event_log_wants_rendezvous(agent->event_log) ? agent_rendezvous_recorded : NULL,
        .recorded_context = agent,
        .warm = warm_standby,
        .warm_context = agent,
        .reached = store_reached,
        .leaving = store_leaving,
        .reached_context = agent,
        .said = agent->said.text != NULL ? &agent->said : NULL,
        .kept_record = agent->program != NULL ? agent->program->kept_record : NULL,
    };
    return agent_rendezvous_new(agent->loop, &settings, &agent->rendezvous, failure);
}

static void publish_list(void *context, struct slice list_text) {
    const struct agent *agent = context;
    agent_rendezvous_publish_learned_list(agent->rendezvous, list_text);
}

/* A job does without them rather than not at all. */
static void prepare_standby(struct agent *agent) {
    struct failure failure = {0};
    if (node_machine_standby(agent->node) == NULL) {
        standby_tell_choice(agent->log, agent->node_settings.standby,
            agent->preparation.worker_count, agent->node_settings.cpu_count);
        return;
    }
    struct agent_standby_settings settings = {
        .config = agent->config,
        .worker_count = agent->preparation.worker_count,
        .log = agent->log,
        .guardian = agent_guardian_process(agent->guardian),
        .post = agent_post,
        .publish = publish_list,
        .context = agent,
    };
    if (agent_standby_new(agent->loop, &settings, &agent->standby, &failure) != FAILURE_NONE) {
        log_record(agent->log, standby_level_of_none(agent->config), LOG_ORIGIN,
            "there are no standby workers in this job: %s", failure.message);
    }
}

/* The store of fixed nodes is the agents' own, too. */
static void prepare_story(struct agent *agent) {
    bool is_fixed = agent->node_settings.node.membership.kind == MEMBERSHIP_FIXED;
    agent->last_words = last_words_new(agent->loop, agent->workers, agent->log);
    agent->story = (struct agent_story){
        .last_words = agent->last_words,
        .has_standby = agent->standby != NULL,
        .config = agent->config,
        .preparation = &agent->preparation,
        .machine = node_machine_agent(agent->node),
        .placement = &node_machine_knowledge(agent->node)->placement,
        .voice = &agent->voice,
        .workers = agent->workers,
        .worker_store = is_fixed ? NULL : &agent->worker_store_operations,
        .log = agent->log,
    };
}

static enum failure_code prepare_workers(struct agent *agent, struct failure *failure) {
    struct agent_workers_settings settings = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .environment = agent->environment,
        .log = agent->log,
        .descriptor_limit = agent->descriptor_limit,
        .ignored_signals = agent->ignored_signals,
        .kin_limit = process_kin_may_meet_strangers() ? process_kin_choose_limit() : 0,
        .scratch = agent->scratch,
        .function = agent->program != NULL ? agent->program->function : NULL,
        .processors = agent->node_settings.cpu_count,
        .guardian = agent_guardian_process(agent->guardian),
        .log_thread = agent->log_thread,
        .standby = agent->standby,
        .progress = agent->progress,
        .observer = agent_workers_events(agent),
    };
    return agent_workers_new(agent->loop, &settings, &agent->workers, failure);
}

static enum failure_code prepare_watching(struct agent *agent, struct failure *failure) {
    struct agent_stuck_watch_settings stuck_settings = {
        .config = agent->config,
        .workers = agent->workers,
        .worker_count = agent->preparation.worker_count,
        .log = agent->log,
        .read_process = process_table_read,
        .stuck = agent_worker_stuck,
        .context = agent,
    };
    struct agent_evidence_settings evidence_settings = {
        agent->config, agent->workers, agent->log, agent->standby};
    struct agent_node_check_settings check_settings = {
        .command = agent->config->node_check,
        .timeout = agent->config->node_check_timeout,
        .environment = agent->environment,
        .workers = agent->workers,
        .descriptor_limit = agent->descriptor_limit,
        .answered = agent_node_checked,
        .context = agent,
    };
    agent->evidence = agent_evidence_new(agent->loop, &evidence_settings);
    agent->node_check = agent_node_check_new(agent->loop, &check_settings);
    const struct agent_hang_settings hang_settings = {
        .config = agent->config,
        .log = agent->log,
        .placement = &node_machine_knowledge(agent->node)->placement,
        .workers = agent->workers,
        .worker_count = agent->preparation.worker_count,
        .evidence = agent->evidence,
        .job = agent->job_chronicle,
        .found = agent_hang_found,
        .stuck = agent_worker_stuck,
        .context = agent,
    };
    agent->hang = agent_hang_new(agent->loop, &hang_settings);
    struct agent_watchdog_settings settings = {
        .config = agent->config,
        .environment = agent->environment,
        .log = agent->log,
        .workers = agent->workers,
        .end_agent = agent_timer_expired,
        .look_begun = agent_look_begun,
        .look_over = agent_look_over,
        .context = agent,
        .observer = {agent_watchdog_event, agent},
        .evidence = agent->evidence,
        .guardian = agent_guardian_process(agent->guardian),
    };
    agent->stuck_watch = agent_stuck_watch_new(agent->loop, &stuck_settings);
    agent->announcement = agent_announcement_new(agent->loop, agent->environment,
        &agent->node_settings.node.rendezvous.identity.process, agent->log);
    return agent_watchdog_new(agent->loop, &settings, &agent->watchdog, failure);
}

static enum snapshot_answer answer_asked(
    void *context, struct snapshot_question *question, struct text *out) {
    const struct agent *agent = context;
    return agent_stacks_are_meant(question->path)
               ? agent_stacks_answer(agent->stacks, question, out)
               : agent_chronicle_answer(agent->chronicle, question, out);
}

static void announce_job(struct agent *agent) {
    const struct launch_config *config = agent->config;
    struct job_announcement job = {
        .run_id = memory_duplicate_string(agent->preparation.run_id),
        .began = event_loop_wall_time(agent->loop).nanoseconds / NANOSECONDS_PER_SECOND,
    };
    const char *const facts[JOB_FACT_COUNT] = {
        [JOB_FACT_ENDPOINT] = agent->node_settings.where,
        [JOB_FACT_BACKEND] = config->rdzv_backend,
        [JOB_FACT_LOG_DIR] = agent->preparation.logs.run_path,
        [JOB_FACT_SLURM_JOB] = text_list_variable(agent->environment, "SLURM_JOB_ID"),
        [JOB_FACT_VERSION] = MUSTER_VERSION,
        [JOB_FACT_NODE] = agent->preparation.node_name,
    };
    for (int fact = 0; fact < JOB_FACT_COUNT; fact++) {
        job.facts[fact] = memory_duplicate_string(facts[fact]);
    }
    const struct agent_stacks_settings stacks = {
        .workers = agent->workers,
        .placement = &node_machine_knowledge(agent->node)->placement,
        .standby = agent->standby,
        .worker_count = agent->preparation.worker_count,
        .answer = answer_later,
        .context = agent,
    };
    agent->stacks = agent_stacks_new(agent->loop, &stacks);
    agent_announcement_open(agent->announcement, &job, answer_asked, agent);
}

static void warn_about_files(const struct agent *agent) {
    if (agent->preparation.without_logs != NULL) {
        log_warning(agent->log,
            "the workers get no error files, and the report lacks what they would write there: %s",
            agent->preparation.without_logs);
    }
}

static void tell_of_disk(void *context, const char *what) {
    const struct agent *agent = context;
    log_warning(agent->log, "waiting for %s: its disk does not answer", what);
}

static enum failure_code open_audience(struct agent *agent, struct failure *failure) {
    if (agent->program == NULL) {
        return FAILURE_NONE;
    }
    struct agent_audience_settings settings = agent->program->audience;
    settings.asked = agent_signal_received;
    settings.told = agent_placement_told;
    settings.context = agent;
    return agent_audience_new(agent->loop, &settings, agent->config, &agent->audience, failure);
}

static enum failure_code open_loop(struct agent *agent, struct failure *failure) {
    enum failure_code code = event_loop_new(&agent->loop, failure);
    if (code == FAILURE_NONE) {
        agent->deadline = event_timer_new(agent->loop, agent_deadline_passed, agent);
        agent->calm = event_timer_new(agent->loop, agent_watch_signals, agent);
        code =
            agent_memory_new(agent->loop, agent_memory_exhausted, agent, &agent->memory, failure);
    }
    return code;
}

/* Clients of its stores, which anybody may be, leave the agent what it needs for its workers. */
static void keep_descriptors(const struct agent *agent) {
    uint64_t wanted = store_descriptors_for_workers((uint64_t)agent->preparation.worker_count) +
                      (agent->config->serves_health ? HEALTH_ENDPOINT_MAXIMUM_CONNECTIONS : 0);
    descriptor_limit_keep(wanted);
}

/* What whoever has started this process ignores stays ignored, here and in the workers, unless the
 * user names it. */
static void leave_ignored_signals(struct agent *agent) {
    const struct launch_config *config = agent->config;
    agent->ignored_signals = signal_watch_ignored();
    for (size_t i = 0; config->names_signals && i < config->signal_count; i++) {
        agent->ignored_signals &= ~signal_watch_bit(config->signals[i]);
    }
    if ((agent->ignored_signals & signal_watch_bit(SIGTERM)) != 0) {
        log_warning(agent->log,
            "SIGTERM is ignored, because whoever started this agent ignores it: workers that do "
            "not handle it are killed after --shutdown-timeout; --signals-to-handle SIGTERM,… "
            "has it handled");
    }
}

static enum failure_code watch_signals(struct agent *agent, struct failure *failure) {
    const struct launch_config *config = agent->config;
    int signals[LAUNCH_MAXIMUM_SIGNALS];
    size_t count = 0;
    leave_ignored_signals(agent);
    for (size_t i = 0; i < config->signal_count; i++) {
        if ((agent->ignored_signals & signal_watch_bit(config->signals[i])) == 0) {
            signals[count++] = config->signals[i];
        }
    }
    return signal_watch_new(
        agent->loop, signals, count, agent_signal_came, agent, &agent->signals, failure);
}

/* Signals first, so that none is lost; the guardian before any thread; the rest in order of
 * dependence. */
static enum failure_code set_up(struct agent *agent, struct failure *failure) {
    signal_watch_ignore_write_signals();
    agent->descriptor_limit = descriptor_limit_raise();
    enum failure_code code = open_loop(agent, failure);
    if (code == FAILURE_NONE) {
        code = watch_signals(agent, failure);
    }
    if (code == FAILURE_NONE) {
        code = open_audience(agent, failure);
    }
    if (code == FAILURE_NONE) {
        const struct agent_preparation_watch watch = {
            agent->loop, duration_from_seconds(SILENT_DISK_SECONDS), tell_of_disk, agent};
        code =
            agent_prepare(agent->config, agent->environment, &watch, &agent->preparation, failure);
    }
    if (code == FAILURE_NONE && agent->outcome.kind == AGENT_OUTCOME_SIGNALLED) {
        code = failure_set(failure, FAILURE_CANCELLED, "the signal came with the disk's answer");
    }
    if (code == FAILURE_NONE) {
        code = make_node(agent, failure);
    }
    if (code == FAILURE_NONE) {
        warn_about_files(agent);
        agent_voice_count(
            &agent->voice, agent->preparation.worker_count, &agent->preparation.warnings);
        tell_while_joining(agent);
        keep_metrics(agent);
        code = start_guardian(agent, failure);
    }
    if (code == FAILURE_NONE) {
        code = make_scratch(agent, failure);
    }
    if (code == FAILURE_NONE) {
        code = start_log_thread(agent, failure);
    }
    if (code == FAILURE_NONE) {
        open_chronicle(agent);
        code = open_event_log(agent, failure);
    }
    if (code == FAILURE_NONE) {
        keep_descriptors(agent);
        serve_health(agent);
        code = open_rendezvous(agent, failure);
    }
    if (code == FAILURE_NONE) {
        prepare_standby(agent);
        prepare_progress(agent);
        code = prepare_workers(agent, failure);
    }
    if (code == FAILURE_NONE) {
        prepare_story(agent);
        agent_chronicle_know_workers(agent->chronicle, agent->workers, agent->last_words);
        code = prepare_watching(agent, failure);
    }
    if (code == FAILURE_NONE) {
        announce_job(agent);
    }
    return code;
}

static void stop_loop(void *context) {
    event_loop_stop(((struct agent *)context)->loop);
}

static struct duration console_patience(const struct agent *agent) {
    struct duration left = agent->config->shutdown_timeout;
    struct duration most = duration_from_seconds(CONSOLE_PATIENCE_SECONDS);
    struct duration least = duration_from_seconds(LEAST_CONSOLE_PATIENCE_SECONDS);
    if (agent->outcome.kind == AGENT_OUTCOME_SIGNALLED && agent->signalled.nanoseconds != 0) {
        left = instant_until(event_loop_now(agent->loop), instant_after(agent->signalled, left));
    }
    left = left.nanoseconds > most.nanoseconds ? most : left;
    return left.nanoseconds < least.nanoseconds ? least : left;
}

/* False: the thread hangs, and uses what it was given. */
static bool end_log_thread(struct agent *agent) {
    if (agent->log_thread == NULL) {
        return true;
    }
    log_thread_drain(agent->log_thread, console_patience(agent), stop_loop, agent);
    event_loop_run(agent->loop);
    log_sink_use_thread(agent->sink, NULL);
    bool has_ended = log_thread_free(agent->log_thread);
    if (!has_ended) {
        log_warning(agent->log,
            "the workers' last output may be missing: the disk of %s does not answer",
            agent->preparation.logs.run_path != NULL ? agent->preparation.logs.run_path
                                                     : "the log files");
    }
    return has_ended;
}

static void tear_down(struct agent *agent) {
    event_timer_free(agent->calm); /* the loop runs once more, when its workers are freed */
    agent->calm = NULL;
    agent_metrics_end(agent->metrics);
    agent_stacks_free(agent->stacks);
    agent->stacks = NULL; /* it may still be asked */
    agent_announcement_free(agent->announcement);
    agent->announcement = NULL;
    agent_health_free(agent->health);
    agent_hang_end(agent->hang);
    agent_evidence_free(agent->evidence);
    agent_node_check_free(agent->node_check);
    agent_watchdog_free(agent->watchdog);
    agent_stuck_watch_free(agent->stuck_watch);
    worker_progress_free(agent->progress);
    agent_chronicle_free(agent->chronicle); /* it asks for the last words */
    agent->chronicle = NULL;
    last_words_free(agent->last_words);
    agent_workers_free(agent->workers);
    signal_passing_free(agent->passing);
    agent->passing = NULL; /* a signal may still come */
    agent_standby_free(agent->standby);
    agent_rendezvous_free(agent->rendezvous);
    agent->rendezvous = NULL;
    agent_hang_free(agent->hang); /* the host's answer may have been waited for */
    agent_job_chronicle_free(agent->job_chronicle);
    agent->job_chronicle = NULL;
    text_clear(&agent->telling_folder);
    agent_proof_free(agent->proof);
    descriptor_limit_keep(0);
    bool has_log_thread_ended = end_log_thread(agent);
    agent_event_log_free(agent->event_log);
    if (has_log_thread_ended) {
        agent_metrics_free(agent->metrics);
    }
    agent_scratch_free(agent->scratch);
    agent_guardian_free(agent->guardian);
    log_directory_remove_if_empty_within(
        duration_from_seconds(DISK_PATIENCE_SECONDS), &agent->preparation.logs);
    if (agent->program == NULL) { /* a program goes on after its agent */
        signal_watch_go_deaf(agent->signals);
    }
    signal_watch_free(agent->signals);
    agent_joining_free(agent->joining);
    agent_audience_free(agent->audience);
    text_list_clear(&agent->expected_nodes);
    event_timer_free(agent->deadline);
    event_timer_free(agent->monitor);
    agent_memory_free(agent->memory);
    event_loop_free(agent->loop);
    node_machine_free(agent->node);
    agent_node_settings_clear(&agent->node_settings);
    agent_preparation_clear(&agent->preparation);
    agent_voice_clear(&agent->voice);
    free(agent->trouble);
    free(agent->refusal);
    free(agent->unfit);
    failure_account_clear(&agent->last_cause);
    failure_account_clear(&agent->first_cause);
}

/* Runs the job of `config` on this node for a program, which is borrowed, until it is over, and
 * returns the exit status: 0, 1 when the job failed, or the root cause's own with --exit-code
 * worker. `environment` is what the workers inherit. What goes wrong is on stderr when this
 * returns. */
static int agent_run_for(const struct agent_program *program, const struct launch_config *config,
    const struct text_list *environment, struct log_sink *sink) {
    struct agent agent = {
        .program = program,
        .hooks = program != NULL ? program->hooks : (struct agent_hooks){0},
        .config = config,
        .environment = environment,
        .sink = sink,
        .log = log_sink_log(sink),
        .is_queueing = true,
        .voice = {.config = config, .log = log_sink_log(sink), .sink = sink},
    };
    struct failure failure = {0};
    int status = EXIT_JOB_FAILED;
    agent_voice_begin(&agent.voice);
    if (set_up(&agent, &failure) == FAILURE_NONE) {
        agent_start(&agent);
        event_loop_run(agent.loop);
        agent.is_queueing = true; /* what the shells still say is not heard any more */
        agent.has_run = true;
        agent_end_record(&agent);
        agent_voice_end(&agent.voice);
        status = agent_end_report(&agent);
    } else if (agent.outcome.kind == AGENT_OUTCOME_SIGNALLED) {
        agent_voice_end(&agent.voice);
        status = agent_end_by_signal(&agent);
    } else {
        agent_voice_end(&agent.voice);
        status = agent_end_unbegun(&agent, &failure);
    }
    agent_end_tell(&agent, status);
    tear_down(&agent);
    return status;
}

/* Job. */

/* A process's memory that the kernel shows as its environment is no larger. */
#define SHOWN_MAXIMUM ((size_t)8 << 20)

void agent_job_hide_token(void) {
    static const char start[] = "\0" AGENT_JOB_TOKEN_VARIABLE "=";
    /* The kernel puts the environment's texts between these two. */
    char *next = (char *)getauxval(AT_RANDOM);
    char *end = (char *)getauxval(AT_EXECFN);
    if (next == NULL || end <= next || (size_t)(end - next) > SHOWN_MAXIMUM) {
        return;
    }
    while ((next = memmem(next, (size_t)(end - next), start, sizeof start - 1)) != NULL) {
        next += sizeof start - 1;
        explicit_bzero(next, strnlen(next, (size_t)(end - next)));
    }
}

struct text_list agent_job_environment(const struct text_list *environment) {
    struct text_list others = {0};
    for (size_t i = 0; i < environment->count; i++) {
        if (!text_starts_with(environment->items[i], AGENT_JOB_TOKEN_VARIABLE "=")) {
            text_list_add(&others, environment->items[i]);
        }
    }
    return others;
}

int agent_job_run(const struct agent_program *program, const struct launch_config *config,
    const struct text_list *environment) {
    struct log_sink *sink =
        log_sink_new(text_list_variable(environment, "LOGLEVEL"), STDERR_FILENO);
    int status = agent_run_for(program, config, environment, sink);
    log_sink_free(sink);
    return status;
}
