/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/worker_start.h"

#include <stdlib.h>

#include "agent/scratch/agent_scratch.h"
#include "core/standby/standby_environment.h"
#include "core/workers/worker_command.h"

enum failure_code worker_start_environment(const struct agent_workers_settings *settings,
    const struct node_placement *placement, int local_rank, const char *error_file,
    const char *timer_file, struct text_list *out_environment, struct failure *failure) {
    enum failure_code code = worker_environment_build(settings->config, placement, local_rank,
        error_file, settings->environment, out_environment);
    if (code != FAILURE_NONE) {
        return failure_set(failure, code,
            "--virtual-local-rank: CUDA_VISIBLE_DEVICES=%s names no device for local rank %d",
            text_list_variable(settings->environment, "CUDA_VISIBLE_DEVICES"), local_rank);
    }
    standby_environment_undress(out_environment);
    if (timer_file != NULL) {
        text_list_set_variable(out_environment, "TORCHELASTIC_TIMER_FILE", timer_file);
    }
    agent_scratch_set_variables(settings->scratch, out_environment);
    if (error_file == NULL) {
        char *mark = text_format("%s%d", settings->preparation->worker_mark, local_rank);
        text_list_set_variable(out_environment, WORKER_MARK_VARIABLE, mark);
        free(mark);
    }
    return FAILURE_NONE;
}

void worker_start_request(const struct agent_workers_settings *settings, int local_rank,
    const struct text_list *environment, const int descriptors[4], struct text_list *out_arguments,
    struct process_request *out_request) {
    const struct cpu_plan *cpus = &settings->preparation->cpus;
    worker_command_build(
        settings->config, settings->preparation->python, local_rank, out_arguments);
    process_request_init(out_request, out_arguments, environment);
    out_request->stdin_fd = descriptors[0];
    out_request->stdout_fd = descriptors[1];
    out_request->stderr_fd = descriptors[2];
    out_request->extra_fd = descriptors[3];
    out_request->cpus = cpus->count > 0 ? &cpus->sets[local_rank] : NULL;
    out_request->descriptor_limit = settings->descriptor_limit;
    out_request->ignored_signals = settings->ignored_signals;
    out_request->kin_limit = settings->kin_limit;
    out_request->function = settings->function;
    out_request->guardian_fd = guardian_descriptor(settings->guardian);
}

enum failure_code worker_start_process(const struct agent_workers_settings *settings,
    int local_rank, const struct text_list *environment, const int descriptors[4],
    struct process *out_process, struct failure *failure) {
    struct text_list arguments = {0};
    struct process_request request;
    worker_start_request(settings, local_rank, environment, descriptors, &arguments, &request);
    enum failure_code code = process_spawn(&request, out_process, failure);
    text_list_clear(&arguments);
    return code;
}

enum failure_code worker_start_foresee(const struct agent_workers_settings *settings,
    int worker_count, int local_rank, const char *timer_file, struct text_list *out_environment,
    struct failure *failure) {
    const struct node_placement placement = {
        .run_id = settings->preparation->run_id,
        .master_address = "",
        .local_world_size = worker_count,
    };
    return worker_start_environment(
        settings, &placement, local_rank, NULL, timer_file, out_environment, failure);
}

enum failure_code worker_start_probe(const struct agent_workers_settings *settings,
    const struct text_list *environment, const int descriptors[4], struct process *out_process,
    struct failure *failure) {
    struct agent_workers_settings probing = *settings;
    struct launch_config config = *settings->config;
    char nothing[] = "/dev/null";
    config.entry = LAUNCH_ENTRY_SCRIPT;
    config.script = nothing;
    config.script_arguments = (struct text_list){0};
    probing.config = &config;
    return worker_start_process(&probing, 0, environment, descriptors, out_process, failure);
}
