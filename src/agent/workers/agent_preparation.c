/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/agent_preparation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/workers/log_plan.h"
#include "host/machine/gpu_inventory.h"
#include "host/network/local_address.h"
#include "host/machine/machine_topology.h"
#include "host/loop/random_seed.h"

/* How long the disk of the script, of PATH or of the log directory may take. */
#define DISK_PATIENCE_SECONDS 30

static enum failure_code count_cpus(int *out_count, struct failure *failure) {
    struct cpu_set_bits allowed;
    enum failure_code code = machine_topology_allowed_cpus(&allowed, failure);
    if (code == FAILURE_NONE) {
        *out_count = (int)cpu_set_count(&allowed);
    }
    return code;
}

static enum failure_code read_gpus(
    const struct launch_config *config, struct gpu_inventory *out_gpus, struct failure *failure) {
    struct gpu_inventory_source source;
    gpu_inventory_source_init(&source);
    if (config->worker_count_kind == LAUNCH_COUNT_XPU) {
        return gpu_inventory_read_xpu(&source, out_gpus, failure);
    }
    return gpu_inventory_read(&source, out_gpus, failure);
}

static enum failure_code count_workers(const struct launch_config *config,
    const struct gpu_inventory *gpus, int *out_count, struct failure *failure) {
    size_t gpu_count = gpus->pci_addresses.count;
    switch (config->worker_count_kind) {
    case LAUNCH_COUNT_NUMBER:
        *out_count = config->worker_count;
        return FAILURE_NONE;
    case LAUNCH_COUNT_CPU:
        return count_cpus(out_count, failure);
    case LAUNCH_COUNT_GPU:
    case LAUNCH_COUNT_XPU:
        if (gpu_count == 0) {
            return failure_set(failure, FAILURE_INVALID,
                "--nproc-per-node %s: no such device is visible on this machine; give a number, "
                "'cpu' or 'auto'",
                config->worker_count_kind == LAUNCH_COUNT_XPU ? "xpu" : "gpu");
        }
        *out_count = (int)gpu_count;
        return FAILURE_NONE;
    case LAUNCH_COUNT_AUTO:
        if (gpu_count > 0) {
            *out_count = (int)gpu_count;
            return FAILURE_NONE;
        }
        return count_cpus(out_count, failure);
    }
    return failure_set(failure, FAILURE_INVALID, "unknown kind of worker count");
}

static enum failure_code plan_cpus(const struct launch_config *config,
    const struct gpu_inventory *gpus, struct agent_preparation *preparation,
    struct failure *failure) {
    struct cpu_set_bits allowed;
    struct machine_description machine;
    enum failure_code code = machine_topology_allowed_cpus(&allowed, failure);
    if (code == FAILURE_NONE) {
        code = machine_topology_read(
            MACHINE_TOPOLOGY_SYS_ROOT, &allowed, &gpus->pci_addresses, &machine, failure);
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    struct cpu_plan_problem problem;
    code = cpu_plan_make(&machine, config->numa_binding, (size_t)preparation->worker_count,
        &preparation->cpus, &problem);
    machine_description_clear(&machine);
    if (code != FAILURE_NONE) {
        struct text reason = {0};
        cpu_plan_explain(&problem, &reason);
        failure_set(failure, code, "--numa-binding: %s", text_string(&reason));
        text_clear(&reason);
    }
    return code;
}

/* Devices are looked for only where they matter: NVML takes its time. */
static enum failure_code prepare_devices(const struct launch_config *config,
    struct agent_preparation *preparation, struct failure *failure) {
    struct gpu_inventory gpus = {0};
    bool needs_gpus = config->numa_binding != LAUNCH_NUMA_NONE ||
                      config->worker_count_kind == LAUNCH_COUNT_GPU ||
                      config->worker_count_kind == LAUNCH_COUNT_XPU ||
                      config->worker_count_kind == LAUNCH_COUNT_AUTO;
    enum failure_code code = needs_gpus ? read_gpus(config, &gpus, failure) : FAILURE_NONE;
    if (code == FAILURE_NONE) {
        code = count_workers(config, &gpus, &preparation->worker_count, failure);
    }
    if (code == FAILURE_NONE && config->numa_binding != LAUNCH_NUMA_NONE) {
        code = plan_cpus(config, &gpus, preparation, failure);
    }
    gpu_inventory_clear(&gpus);
    return code;
}

static bool is_executable_file(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

/* The first executable `name` on `path`, as an absolute or PATH-relative path the caller frees;
 * NULL when there is none. */
static char *find_on_path(const char *path, const char *name) {
    while (path != NULL) {
        size_t length = strcspn(path, ":");
        char *candidate = length == 0 ? text_format("./%s", name)
                                      : text_format("%.*s/%s", (int)length, path, name);
        if (is_executable_file(candidate)) {
            return candidate;
        }
        free(candidate);
        path = path[length] == '\0' ? NULL : path + length + 1;
    }
    return NULL;
}

/* What is looked for on the disks of the script and of PATH: by another thread, for they may be
 * dead. */
struct look {
    char *path;       /* NULL: no interpreter is looked for, or there is no PATH */
    char *script;     /* NULL: none is looked for */
    char *python;     /* the interpreter, or NULL */
    int script_error; /* an errno, or 0 */
};

static void free_look(void *subject) {
    struct look *look = subject;
    free(look->path);
    free(look->script);
    free(look->python);
    free(look);
}

static void run_look(void *subject) {
    struct look *look = subject;
    look->python = find_on_path(look->path, "python3");
    if (look->python == NULL) {
        look->python = find_on_path(look->path, "python");
    }
    if (look->script != NULL && access(look->script, R_OK) != 0) {
        look->script_error = errno;
    }
}

/* Waits for a disk of which `what` tells. */
struct disk_wait {
    const struct agent_preparation_watch *watch;
    const char *what;
};

static void disk_is_silent(void *context) {
    const struct disk_wait *wait = context;
    wait->watch->is_silent(wait->watch->context, wait->what);
}

static struct errand_watch watch_of(struct disk_wait *wait) {
    return (struct errand_watch){wait->watch->loop, wait->watch->silence, disk_is_silent, wait};
}

static bool needs_python(const struct launch_config *config) {
    return config->entry != LAUNCH_ENTRY_PROGRAM && config->python == NULL;
}

static enum failure_code judge_look(const struct launch_config *config, struct look *look,
    struct agent_preparation *preparation, struct failure *failure) {
    if (look->python == NULL) {
        return failure_set(failure, FAILURE_INVALID,
            "no python3 or python on PATH; set PYTHON_EXEC, or give --no-python for a program of "
            "another kind");
    }
    if (look->script_error != 0) {
        return failure_set_system(failure, look->script_error,
            "cannot read the training script '%s' (-m runs a module, --no-python a program)",
            config->script);
    }
    preparation->python = look->python;
    look->python = NULL;
    return FAILURE_NONE;
}

/* Only where the interpreter is the one found here: $PYTHON_EXEC may run in a container with other
 * files. */
static enum failure_code look_for_program(const struct launch_config *config,
    const struct text_list *environment, const struct agent_preparation_watch *watch,
    struct agent_preparation *preparation, struct failure *failure) {
    bool is_script = config->entry == LAUNCH_ENTRY_SCRIPT || config->entry == LAUNCH_ENTRY_RUN_PATH;
    struct look *look = memory_allocate(sizeof *look);
    look->path = memory_duplicate_string(text_list_variable(environment, "PATH"));
    look->script = is_script ? memory_duplicate_string(config->script) : NULL;
    struct disk_wait wait = {watch,
        is_script ? "the training script and the interpreter on PATH" : "the interpreter on PATH"};
    const struct errand_watch errand_watch =
        watch != NULL ? watch_of(&wait) : (struct errand_watch){0};
    const struct errand_task task = {run_look, free_look, look};
    enum failure_code code = errand_run_within(&task, duration_from_seconds(DISK_PATIENCE_SECONDS),
        watch != NULL ? &errand_watch : NULL, failure);
    if (code != FAILURE_NONE) {
        return failure_wrap(failure, "cannot look for %s", wait.what);
    }
    code = judge_look(config, look, preparation, failure);
    free_look(look);
    return code;
}

static enum failure_code prepare_python(const struct launch_config *config,
    const struct text_list *environment, const struct agent_preparation_watch *watch,
    struct agent_preparation *preparation, struct failure *failure) {
    if (needs_python(config)) {
        return look_for_program(config, environment, watch, preparation, failure);
    }
    if (config->entry != LAUNCH_ENTRY_PROGRAM) {
        preparation->python = memory_duplicate_string(config->python);
    }
    return FAILURE_NONE;
}

/* Who has not asked for files does without; who has is told where else they can be. */
static enum failure_code judge_logs(const struct launch_config *config,
    const struct failure *reason, struct agent_preparation *preparation, struct failure *failure) {
    char *sentence = text_format("%s (--log-dir names another directory, TMPDIR one for all "
                                 "temporary files; --log-dir /dev/null needs none)",
        reason->message);
    if (reason->code == FAILURE_CANCELLED) {
        free(sentence);
        return failure_set(failure, reason->code, "%s", reason->message);
    }
    if (!log_plan_asks_for_files(config, preparation->worker_count)) {
        preparation->without_logs = sentence;
        return FAILURE_NONE;
    }
    (void)failure_set(failure, reason->code, "%s", sentence);
    if (failure != NULL) {
        failure->system_error = reason->system_error;
    }
    free(sentence);
    return reason->code;
}

static enum failure_code open_logs(const struct launch_config *config,
    const struct agent_preparation_watch *watch, struct agent_preparation *preparation,
    struct failure *failure) {
    struct failure reason = {0};
    char *name = log_plan_run_name(config, preparation->run_id, preparation->host_name);
    char *directory = log_plan_directory(config, preparation->host_name);
    char *what = text_format("the log directory %s",
        directory != NULL ? directory : "in the directory for temporary files");
    struct disk_wait wait = {watch, what};
    const struct errand_watch errand_watch =
        watch != NULL ? watch_of(&wait) : (struct errand_watch){0};
    enum failure_code code = log_directory_open_within(duration_from_seconds(DISK_PATIENCE_SECONDS),
        watch != NULL ? &errand_watch : NULL, directory, name, &preparation->logs, &reason);
    free(name);
    free(directory);
    free(what);
    return code == FAILURE_NONE ? code : judge_logs(config, &reason, preparation, failure);
}

static enum failure_code prepare_names(const struct launch_config *config,
    struct agent_preparation *preparation, struct failure *failure) {
    preparation->run_id =
        config->run_id == NULL ? random_seed_uuid() : memory_duplicate_string(config->run_id);
    enum failure_code code = local_address_host_name(&preparation->host_name, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (config->rendezvous == LAUNCH_RENDEZVOUS_STATIC) {
        preparation->master_address = memory_duplicate_string(config->master_host);
    } else if (config->local_address != NULL) {
        preparation->master_address = memory_duplicate_string(config->local_address);
    } else {
        code = local_address_for_one_node(&preparation->master_address, failure);
    }
    return code;
}

enum failure_code agent_prepare(const struct launch_config *config,
    const struct text_list *environment, const struct agent_preparation_watch *watch,
    struct agent_preparation *out_preparation, struct failure *failure) {
    struct agent_preparation preparation = {0};
    enum failure_code code = prepare_devices(config, &preparation, failure);
    if (code == FAILURE_NONE) {
        code = prepare_python(config, environment, watch, &preparation, failure);
    }
    if (code == FAILURE_NONE) {
        code = prepare_names(config, &preparation, failure);
    }
    if (code == FAILURE_NONE) {
        code = open_logs(config, watch, &preparation, failure);
    }
    if (code != FAILURE_NONE) {
        agent_preparation_clear(&preparation);
        return code;
    }
    *out_preparation = preparation;
    return FAILURE_NONE;
}

void agent_preparation_clear(struct agent_preparation *preparation) {
    free(preparation->python);
    free(preparation->run_id);
    free(preparation->host_name);
    free(preparation->master_address);
    cpu_plan_clear(&preparation->cpus);
    log_directory_clear(&preparation->logs);
    free(preparation->without_logs);
    *preparation = (struct agent_preparation){0};
}
