/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/slurm_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "options/launch/option_values.h"
#include "options/slurm/slurm_step.h"

/* Jobs that follow each other, and the steps of one job, get ports apart from each other. */
#define PORTS_OF_A_JOB 97
/* How much of the list of nodes is repeated. */
#define SHOWN_LENGTH 60

static bool is_given(const struct option_result *options, const char *destination) {
    return option_result_value(options, destination)->source != OPTION_SOURCE_DEFAULT &&
           option_result_value(options, destination)->is_set;
}

/* Whether the command line says where nodes meet, or that there are none to meet. */
static bool says_where_to_meet(const struct option_result *options) {
    static const char *const destinations[] = {"rdzv_backend", "rdzv_endpoint", "rdzv_id",
        "rdzv_conf", "node_rank", "master_addr", "master_port"};
    for (size_t i = 0; i < sizeof destinations / sizeof *destinations; i++) {
        if (is_given(options, destinations[i])) {
            return true;
        }
    }
    return option_result_value(options, "standalone")->flag;
}

/* Whether the command line asks for one node, or for what is refused later. */
static bool asks_for_one_node(const struct option_result *options) {
    int minimum = 0;
    int maximum = 0;
    struct text ignored = {0};
    enum failure_code code = option_parse_node_range(
        option_result_text(options, "nnodes"), &minimum, &maximum, &ignored);
    text_clear(&ignored);
    return is_given(options, "nnodes") && (code != FAILURE_NONE || maximum == 1);
}

static int port_of(const struct slurm_step *step) {
    return SLURM_FIRST_PORT + (int)((step->job * PORTS_OF_A_JOB + step->step) % SLURM_PORT_COUNT);
}

/* "2 nodes (node[1-2])", with a long list cut. The caller frees it. */
static char *nodes_of(const struct slurm_step *step) {
    bool is_long = strlen(step->node_list) > SHOWN_LENGTH;
    return text_format(
        "%zu nodes (%.*s%s)", step->hosts.count, SHOWN_LENGTH, step->node_list, is_long ? "…" : "");
}

/* Tells what was taken. One node does, since a job may have thousands. */
static void tell(const struct option_result *options, const struct slurm_step *step, bool is_first,
    struct launch_config *config) {
    char *nodes = nodes_of(step);
    const char *workers = option_result_text(options, "nproc_per_node");
    if (is_first) {
        config->notice = text_format("%s: Slurm's step %lld.%lld has %s; they meet at %s; "
                                     "workers on this one: %s (--slurm off takes nothing "
                                     "from Slurm)",
            options->program, (long long)step->job, (long long)step->step, nodes,
            option_result_text(options, "rdzv_endpoint"),
            text_equals(workers, "auto") ? "one for each GPU, or for each CPU where there is none"
                                         : workers);
    }
    free(nodes);
}

static void supply_taken(struct option_result *options, const char *destination, char *text_taken) {
    option_result_supply(options, destination, text_taken);
    free(text_taken);
}

static void take_from(
    const struct slurm_step *step, struct option_result *options, struct launch_config *config) {
    const char *first = step->hosts.items[0];
    bool is_first = step->node != NULL && text_equals(step->node, first);
    if (!is_given(options, "nnodes")) {
        supply_taken(options, "nnodes", text_format("%zu", step->hosts.count));
    }
    option_result_supply(options, "rdzv_backend", "c10d");
    supply_taken(options, "rdzv_endpoint", text_format("%s:%d", first, port_of(step)));
    supply_taken(
        options, "rdzv_id", text_format("%lld.%lld", (long long)step->job, (long long)step->step));
    if (step->node != NULL) { /* surer than what this machine knows about names */
        option_result_supply(options, "rdzv_conf", is_first ? "is_host=true" : "is_host=false");
    }
    if (!is_given(options, "nproc_per_node")) {
        supply_taken(options, "nproc_per_node",
            step->gpus > 0 ? text_format("%lld", (long long)step->gpus)
                           : memory_duplicate_string("auto"));
    }
    tell(options, step, is_first, config);
}

static enum failure_code refuse_tasks(
    struct option_result *options, const struct slurm_step *step) {
    option_result_reject(options, NULL,
        "Slurm starts %lld tasks on a node (step %lld.%lld), and each of them would be an agent "
        "with workers of its own; write srun --ntasks-per-node=1, and --nproc-per-node %lld for "
        "as many workers, or --slurm off",
        (long long)step->tasks_per_node, (long long)step->job, (long long)step->step,
        (long long)step->tasks_per_node);
    return FAILURE_INVALID;
}

static void warn_torchrun(const struct option_result *options, const struct slurm_step *step,
    struct launch_config *config) {
    char *nodes = nodes_of(step);
    text_list_add_taken(&config->warnings,
        text_format("Slurm's step %lld.%lld has %s, and torchrun takes nothing from Slurm: without "
                    "a place to meet each of them is a job of its own; write muster run in the "
                    "place of torchrun, or %s --nnodes %zu --rdzv-backend c10d --rdzv-endpoint "
                    "%s:%d --rdzv-id %lld.%lld",
            (long long)step->job, (long long)step->step, nodes, options->program, step->hosts.count,
            step->hosts.items[0], port_of(step), (long long)step->job, (long long)step->step));
    free(nodes);
}

/* A step of several nodes, whose variables can be read. */
static enum failure_code apply_step(
    struct option_result *options, const struct slurm_step *step, struct launch_config *config) {
    if (text_equals(options->program, "torchrun")) {
        warn_torchrun(options, step, config);
        return FAILURE_NONE;
    }
    if (step->tasks_per_node > 1) {
        return refuse_tasks(options, step);
    }
    take_from(step, options, config);
    return FAILURE_NONE;
}

static void warn_of_tasks(const struct slurm_step *step, struct launch_config *config) {
    text_list_add_taken(&config->warnings,
        text_format("Slurm starts %lld tasks on a node (step %lld.%lld), and each of them is a job "
                    "of its own, with a world of its own; write srun --ntasks-per-node=1, and "
                    "--nproc-per-node %lld for as many workers",
            (long long)step->tasks_per_node, (long long)step->job, (long long)step->step,
            (long long)step->tasks_per_node));
}

/* Where nothing is taken, several tasks are several jobs all the same. */
static void warn_of_several_jobs(
    const struct text_list *environment, struct launch_config *config) {
    struct slurm_step step;
    struct text ignored = {0};
    (void)!slurm_step_read(environment, &step, &ignored);
    if (step.tasks_per_node > 1) {
        warn_of_tasks(&step, config);
    }
    text_clear(&ignored);
    slurm_step_clear(&step);
}

/* A step of one node meets nobody, so it only has to be one task. What else its variables say
 * wrongly does not matter. */
static enum failure_code apply_one_node(struct option_result *options,
    const struct text_list *environment, struct launch_config *config) {
    struct slurm_step step;
    struct text ignored = {0};
    enum failure_code code = FAILURE_NONE;
    (void)!slurm_step_read(environment, &step, &ignored);
    if (text_equals(options->program, "torchrun")) {
        if (step.tasks_per_node > 1) {
            warn_of_tasks(&step, config);
        }
    } else if (step.tasks_per_node > 1) {
        code = refuse_tasks(options, &step);
    } else if (step.gpus > 0 && !is_given(options, "nproc_per_node")) {
        supply_taken(options, "nproc_per_node", text_format("%lld", (long long)step.gpus));
        config->notice = text_format("%s: Slurm's step %lld.%lld has one node; workers: %lld, one "
                                     "for each GPU (--slurm off takes nothing from Slurm)",
            options->program, (long long)step.job, (long long)step.step, (long long)step.gpus);
    }
    text_clear(&ignored);
    slurm_step_clear(&step);
    return code;
}

/* In a batch script or on a terminal: this process is the only one, however many nodes there are.
 */
static void warn_without_step(const struct option_result *options,
    const struct text_list *environment, struct launch_config *config) {
    long long nodes = slurm_job_node_count(environment);
    if (nodes > 1) {
        text_list_add_taken(&config->warnings,
            text_format("Slurm's job has %lld nodes, and this process runs on one of them alone; "
                        "write srun --ntasks-per-node=1 %s, or --standalone if one is meant",
                nodes, options->program));
    }
}

static enum failure_code apply(struct option_result *options, const struct text_list *environment,
    struct launch_config *config) {
    struct slurm_step step;
    struct text reason = {0};
    if (slurm_job_is_heterogeneous(environment)) {
        text_list_add(&config->warnings,
            "Slurm's job has parts of several kinds, of which --slurm auto takes nothing: give "
            "--nnodes, --rdzv-backend c10d, --rdzv-endpoint and --rdzv-id");
        return FAILURE_NONE;
    }
    enum failure_code code = slurm_step_read(environment, &step, &reason);
    if (code == FAILURE_NONE) {
        code = apply_step(options, &step, config);
    } else if (text_equals(options->program, "torchrun")) {
        code = FAILURE_NONE;
    } else {
        option_result_reject(options, NULL,
            "what Slurm says about this step cannot be used: %s; give --nnodes, --rdzv-backend "
            "c10d, --rdzv-endpoint and --rdzv-id, or --slurm off",
            text_string(&reason));
    }
    text_clear(&reason);
    slurm_step_clear(&step);
    return code;
}

/* srun brings together what all tasks of a step write. The prefix that others parse stays. */
static void name_node(const struct option_result *options, const struct text_list *environment,
    struct launch_config *config) {
    const char *node = text_list_variable(environment, "SLURMD_NODENAME");
    if (node != NULL && *node != '\0' && slurm_step_node_count(environment) > 1 &&
        !text_equals(options->program, "torchrun")) {
        config->shown_node = memory_duplicate_string(node);
    }
}

enum failure_code slurm_options_apply(struct option_result *options,
    const struct text_list *environment, struct launch_config *config) {
    bool is_off = text_equals(option_result_text(options, "slurm"), "off");
    config->is_signalled_by_slurm =
        !is_off && text_list_variable(environment, "SLURM_JOB_ID") != NULL;
    /* a worker inherits Slurm's variables, and may start jobs of its own */
    bool is_worker = text_list_variable(environment, "TORCHELASTIC_RUN_ID") != NULL;
    if (!is_worker) {
        name_node(options, environment, config);
    }
    if (is_off || is_worker || says_where_to_meet(options)) {
        return FAILURE_NONE;
    }
    if (asks_for_one_node(options)) {
        warn_of_several_jobs(environment, config);
        return FAILURE_NONE;
    }
    if (slurm_step_node_count(environment) > 1) {
        return apply(options, environment, config);
    }
    if (slurm_step_node_count(environment) == 1) {
        return apply_one_node(options, environment, config);
    }
    if (slurm_step_node_count(environment) == 0) {
        warn_without_step(options, environment, config);
    }
    return FAILURE_NONE;
}
