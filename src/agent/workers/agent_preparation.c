/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/agent_preparation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/workers/device_question.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "core/workers/log_plan.h"
#include "host/loop/clock.h"
#include "host/machine/machine.h"
#include "host/network/network_address.h"

/* How long the disk of the script, of PATH or of the log directory may take. */
#define DISK_PATIENCE_SECONDS 30
/* How much of a script's first line is looked at. */
#define FIRST_LINE_MAXIMUM 127

/* Of launchers within launchers; longer ones are left out. */
#define OUTER_MARK_MAXIMUM 512

/* Who asks for a number of workers. */
struct counting {
    const struct launch_config *config;
    const struct text_list *environment;
    const struct agent_preparation_watch *watch;
    struct agent_preparation *preparation;
};

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

/* The question may wait for an import, not for a disk alone. */
static void question_is_silent(void *context) {
    (void)context;
}

static enum failure_code ask_for_devices(
    const struct counting *counting, const char *name, int *out_count, struct failure *failure) {
    const struct launch_config *config = counting->config;
    const char *python = counting->preparation->python != NULL ? counting->preparation->python
                         : config->python != NULL              ? config->python
                                                               : "python3";
    const struct agent_preparation_watch *watch = counting->watch;
    const struct blocking_watch blocking_watch =
        watch != NULL
            ? (struct blocking_watch){watch->loop, watch->silence, question_is_silent, NULL}
            : (struct blocking_watch){0};
    return device_question_ask(python, name, counting->environment,
        watch != NULL ? &blocking_watch : NULL, out_count, failure);
}

static enum failure_code count_named(
    const struct counting *counting, int *out_count, struct failure *failure) {
    const char *name = counting->config->device_name;
    enum failure_code code = ask_for_devices(counting, name, out_count, failure);
    if (code == FAILURE_CANCELLED) {
        return code;
    }
    counting->preparation->is_word_unknown = code == FAILURE_MISSING;
    if (code == FAILURE_NONE && *out_count == 0) {
        code = failure_set(failure, FAILURE_INVALID, "no such device is visible on this machine");
    } else if (code == FAILURE_NONE && *out_count > LAUNCH_MAXIMUM_WORKERS_PER_NODE) {
        code =
            failure_set(failure, FAILURE_INVALID, "%d devices, and a node has at most %d workers",
                *out_count, LAUNCH_MAXIMUM_WORKERS_PER_NODE);
    }
    return code == FAILURE_NONE
               ? code
               : failure_wrap(failure,
                     "--nproc-per-node %s (give a number, 'cpu', 'gpu', 'xpu', 'auto', or a device "
                     "that PyTorch knows)",
                     name);
}

/* Where there is no GPU: the devices of a plug-in, else CPUs. */
static enum failure_code count_others(
    const struct counting *counting, int *out_count, struct failure *failure) {
    struct failure reason = {0};
    int devices = 0;
    enum failure_code code = FAILURE_NONE;
    if (counting->config->entry != LAUNCH_ENTRY_PROGRAM) {
        code = ask_for_devices(counting, "auto", &devices, &reason);
    }
    if (code == FAILURE_CANCELLED) {
        return failure_set(failure, code, "%s", reason.message);
    }
    if (code != FAILURE_NONE) {
        text_list_add_taken(&counting->preparation->warnings,
            text_format("--nproc-per-node auto counts CPUs: %s", reason.message));
    }
    if (devices == 0) {
        return count_cpus(out_count, failure);
    }
    counting->preparation->has_other_devices = true;
    *out_count =
        devices < LAUNCH_MAXIMUM_WORKERS_PER_NODE ? devices : LAUNCH_MAXIMUM_WORKERS_PER_NODE;
    return FAILURE_NONE;
}

static enum failure_code count_workers(const struct counting *counting,
    const struct gpu_inventory *gpus, int *out_count, struct failure *failure) {
    const struct launch_config *config = counting->config;
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
        return count_others(counting, out_count, failure);
    case LAUNCH_COUNT_NAMED:
        return count_named(counting, out_count, failure);
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

/* "7", "-1,7": the ranks that no worker of this node has. */
static void list_foreign_ranks(const int *ranks, size_t count, int workers, struct text *out) {
    for (size_t i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= workers) {
            text_append_format(out, "%s%d", out->length > 0 ? "," : "", ranks[i]);
        }
    }
}

static void list_foreign_streams(
    const struct launch_streams *streams, int workers, struct text *out) {
    for (size_t i = (size_t)workers; i < streams->rank_count; i++) {
        if (streams->by_rank[i] >= 0) {
            text_append_format(out, "%s%zu", out->length > 0 ? "," : "", i);
        }
    }
}

/* An option that names local ranks which this node does not have does nothing for them. */
static void doubt_ranks(const struct launch_config *config, struct agent_preparation *preparation) {
    static const char *const options[] = {"--local-ranks-filter", "--redirects", "--tee"};
    struct text found[sizeof options / sizeof *options] = {{0}};
    int workers = preparation->worker_count;
    list_foreign_ranks(
        config->local_ranks_filter, config->local_ranks_filter_count, workers, &found[0]);
    list_foreign_streams(&config->redirects, workers, &found[1]);
    list_foreign_streams(&config->tee, workers, &found[2]);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (found[i].length > 0) {
            text_list_add_taken(&preparation->warnings,
                text_format("%s names local rank %s, and the workers of this node are 0 to %d",
                    options[i], text_string(&found[i]), workers - 1));
        }
        text_clear(&found[i]);
    }
}

/* Under Slurm nobody may have asked for it. */
static void tell_of_cpus(const struct launch_config *config, const struct gpu_inventory *gpus,
    struct agent_preparation *preparation) {
    if (config->worker_count_kind == LAUNCH_COUNT_AUTO && config->is_signalled_by_slurm &&
        gpus->pci_addresses.count == 0 && !preparation->has_other_devices) {
        text_list_add_taken(&preparation->warnings,
            text_format("no GPU is here: %d workers, one for each CPU that this process may use "
                        "(--nproc-per-node says another number)",
                preparation->worker_count));
    }
}

/* Devices are looked for only where they matter: NVML takes its time. */
static enum failure_code prepare_devices(const struct counting *counting, struct failure *failure) {
    const struct launch_config *config = counting->config;
    struct agent_preparation *preparation = counting->preparation;
    struct gpu_inventory gpus = {0};
    bool needs_gpus = config->numa_binding != LAUNCH_NUMA_NONE ||
                      config->worker_count_kind == LAUNCH_COUNT_GPU ||
                      config->worker_count_kind == LAUNCH_COUNT_XPU ||
                      config->worker_count_kind == LAUNCH_COUNT_AUTO;
    enum failure_code code = needs_gpus ? read_gpus(config, &gpus, failure) : FAILURE_NONE;
    if (code == FAILURE_NONE) {
        code = count_workers(counting, &gpus, &preparation->worker_count, failure);
    }
    if (code == FAILURE_NONE && config->numa_binding != LAUNCH_NUMA_NONE) {
        code = plan_cpus(config, &gpus, preparation, failure);
    }
    if (code == FAILURE_NONE) {
        doubt_ranks(config, preparation);
        tell_of_cpus(config, &gpus, preparation);
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
    char beginning[FIRST_LINE_MAXIMUM + 1]; /* of the script */
};

static void free_look(void *subject) {
    struct look *look = subject;
    free(look->path);
    free(look->script);
    free(look->python);
    free(look);
}

/* Only of a file: a pipe is for the interpreter to read. */
static void read_beginning(struct look *look) {
    struct stat status;
    int fd = open(look->script, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        ssize_t length = pread(fd, look->beginning, FIRST_LINE_MAXIMUM, 0);
        look->beginning[length < 0 ? 0 : length] = '\0';
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void run_look(void *subject) {
    struct look *look = subject;
    look->python = find_on_path(look->path, "python3");
    if (look->python == NULL) {
        look->python = find_on_path(look->path, "python");
    }
    if (look->script != NULL && access(look->script, R_OK) != 0) {
        look->script_error = errno;
    } else if (look->script != NULL) {
        read_beginning(look);
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

static struct blocking_watch watch_of(struct disk_wait *wait) {
    return (struct blocking_watch){wait->watch->loop, wait->watch->silence, disk_is_silent, wait};
}

static bool needs_python(const struct launch_config *config) {
    return config->entry != LAUNCH_ENTRY_PROGRAM && config->python == NULL;
}

/* What runs Python scripts, as a first line names it. */
static bool is_for_python(const char *line) {
    static const char *const runners[] = {"python", "pypy", "/uv", " uv", "pixi", "hatch", "pipx"};
    for (size_t i = 0; i < sizeof runners / sizeof *runners; i++) {
        if (strstr(line, runners[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* It is tried all the same: Python runs an archive behind any beginning. */
static void doubt_script(
    const struct launch_config *config, struct look *look, struct agent_preparation *preparation) {
    char *line = look->beginning;
    line[strcspn(line, "\r\n")] = '\0';
    if (text_starts_with(line, "\177ELF")) {
        text_list_add_taken(&preparation->warnings,
            text_format("%s is a compiled program, and Python is to run it as a script; give "
                        "--no-python for a program of another kind",
                config->script));
    } else if (text_starts_with(line, "#!") && !is_for_python(line)) {
        utf8_make_line_printable(line);
        text_list_add_taken(&preparation->warnings,
            text_format("%s begins with %s, and Python is to run it as a script; give --no-python "
                        "for a program of another kind",
                config->script, line));
    }
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
    doubt_script(config, look, preparation);
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
    const struct blocking_watch blocking_watch =
        watch != NULL ? watch_of(&wait) : (struct blocking_watch){0};
    const struct blocking_task task = {run_look, free_look, look};
    enum failure_code code =
        blocking_task_run_within(&task, duration_from_seconds(DISK_PATIENCE_SECONDS),
            watch != NULL ? &blocking_watch : NULL, failure);
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
    const struct blocking_watch blocking_watch =
        watch != NULL ? watch_of(&wait) : (struct blocking_watch){0};
    enum failure_code code = log_directory_open_within(duration_from_seconds(DISK_PATIENCE_SECONDS),
        watch != NULL ? &blocking_watch : NULL, directory, name, &preparation->logs, &reason);
    free(name);
    free(directory);
    free(what);
    return code == FAILURE_NONE ? code : judge_logs(config, &reason, preparation, failure);
}

/* An agent that a worker has started leaves its own workers what marks them as that worker's. */
static char *make_worker_mark(const struct text_list *environment) {
    const char *outer = text_list_variable(environment, WORKER_MARK_VARIABLE);
    bool has_outer = outer != NULL && *outer != '\0' && strlen(outer) <= OUTER_MARK_MAXIMUM;
    return text_format("%s%s%016" PRIx64 "%016" PRIx64 ":", has_outer ? outer : "",
        has_outer ? "/" : "", random_seed(), random_seed());
}

static enum failure_code prepare_names(const struct launch_config *config,
    struct agent_preparation *preparation, struct failure *failure) {
    preparation->run_id =
        config->run_id == NULL ? random_seed_uuid() : memory_duplicate_string(config->run_id);
    enum failure_code code = local_address_host_name(&preparation->host_name, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    preparation->node_name = memory_duplicate_string(
        config->local_address != NULL ? config->local_address : preparation->host_name);
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
    const struct counting counting = {config, environment, watch, &preparation};
    enum failure_code code = prepare_python(config, environment, watch, &preparation, failure);
    if (code == FAILURE_NONE) {
        code = prepare_devices(&counting, failure);
    }
    if (code == FAILURE_NONE) {
        preparation.worker_mark = make_worker_mark(environment);
        code = prepare_names(config, &preparation, failure);
    }
    if (code == FAILURE_NONE) {
        code = open_logs(config, watch, &preparation, failure);
    }
    if (code != FAILURE_NONE) {
        out_preparation->is_word_unknown = preparation.is_word_unknown;
        agent_preparation_clear(&preparation);
        return code;
    }
    *out_preparation = preparation;
    return FAILURE_NONE;
}

void agent_preparation_fingerprint(
    const struct agent_preparation *preparation, struct text_list *out_fingerprint) {
    text_list_add_taken(
        out_fingerprint, text_format("%s=%s", WORKER_MARK_VARIABLE, preparation->worker_mark));
    if (preparation->logs.run_path != NULL) { /* a directory that was just made */
        text_list_add_taken(out_fingerprint,
            text_format("TORCHELASTIC_ERROR_FILE=%s/attempt_", preparation->logs.run_path));
    }
}

void agent_preparation_clear(struct agent_preparation *preparation) {
    free(preparation->python);
    free(preparation->run_id);
    free(preparation->worker_mark);
    free(preparation->host_name);
    free(preparation->node_name);
    free(preparation->master_address);
    cpu_plan_clear(&preparation->cpus);
    log_directory_clear(&preparation->logs);
    text_list_clear(&preparation->warnings);
    free(preparation->without_logs);
    *preparation = (struct agent_preparation){0};
}
