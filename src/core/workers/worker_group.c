/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/workers/worker_group.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/table.h"
#include "core/workers/signal_name.h"

static void set_integer(struct text_list *environment, const char *name, int value) {
    char *text = text_format("%d", value);
    text_list_set_variable(environment, name, text);
    free(text);
}

static void set_if_absent(struct text_list *environment, const char *name, const char *value) {
    if (text_list_variable(environment, name) == NULL) {
        text_list_set_variable(environment, name, value);
    }
}

/* An item of a comma-separated list, without the blanks around it. NULL when the list is shorter.
 * The caller frees it. */
static char *comma_list_item(const char *list, int index) {
    for (; index > 0; index--) {
        list = strchr(list, ',');
        if (list == NULL) {
            return NULL;
        }
        list++;
    }
    size_t length = strcspn(list, ",");
    while (length > 0 && strchr(" \t\n\r\f\v", list[0]) != NULL) {
        list++;
        length--;
    }
    while (length > 0 && strchr(" \t\n\r\f\v", list[length - 1]) != NULL) {
        length--;
    }
    return text_format("%.*s", (int)length, list);
}

/* Each worker sees only its own device, and has the local rank 0. */
static enum failure_code set_virtual_local_rank(struct text_list *environment, int local_rank) {
    const char *visible = text_list_variable(environment, "CUDA_VISIBLE_DEVICES");
    char *device =
        visible != NULL ? comma_list_item(visible, local_rank) : text_format("%d", local_rank);
    if (device == NULL) {
        return FAILURE_INVALID;
    }
    text_list_set_variable(environment, "CUDA_VISIBLE_DEVICES", device);
    text_list_set_variable(environment, "LOCAL_RANK", "0");
    free(device);
    return FAILURE_NONE;
}

static void set_signals(struct text_list *environment, const struct launch_config *config) {
    struct text names = {0};
    for (size_t i = 0; i < config->signal_count; i++) {
        const char *name = signal_name_from_number(config->signals[i]);
        if (name != NULL) {
            text_append(&names, names.length > 0 ? "," : "");
            text_append(&names, name);
        }
    }
    text_list_set_variable(environment, "TORCHELASTIC_SIGNALS_TO_HANDLE", text_string(&names));
    text_clear(&names);
}

static void set_place(
    struct text_list *environment, const struct node_placement *placement, int local_rank) {
    const struct rank_assignment *ranks = &placement->ranks;
    set_integer(environment, "RANK", ranks->base_rank + local_rank);
    set_integer(environment, "WORLD_SIZE", ranks->world_size);
    set_integer(environment, "GROUP_RANK", placement->group_rank);
    set_integer(environment, "GROUP_WORLD_SIZE", placement->group_world_size);
    set_integer(environment, "ROLE_RANK", ranks->role_base_rank + local_rank);
    set_integer(environment, "ROLE_WORLD_SIZE", ranks->role_world_size);
    set_integer(environment, "LOCAL_WORLD_SIZE", placement->local_world_size);
    text_list_set_variable(environment, "MASTER_ADDR", placement->master_address);
    set_integer(environment, "MASTER_PORT", placement->master_port);
}

/* What a program that has an agent tells this worker: its variables take the place of others. */
static void set_told(
    struct text_list *environment, const struct launch_config *config, int local_rank) {
    if (config->told_master_host != NULL) {
        text_list_set_variable(environment, "MASTER_ADDR", config->told_master_host);
    }
    if (config->told_master_port > 0) {
        set_integer(environment, "MASTER_PORT", config->told_master_port);
    }
    for (size_t i = 0;
         config->rank_variables != NULL && i < config->rank_variables[local_rank].count; i++) {
        char *variable = memory_duplicate_string(config->rank_variables[local_rank].items[i]);
        char *value = strchr(variable, '=');
        *value = '\0';
        text_list_set_variable(environment, variable, value + 1);
        free(variable);
    }
}

static void set_job(struct text_list *environment, const struct launch_config *config,
    const struct node_placement *placement) {
    text_list_set_variable(environment, "ROLE_NAME", config->role);
    set_integer(environment, "TORCHELASTIC_RESTART_COUNT", placement->attempt);
    set_integer(environment, "TORCHELASTIC_MAX_RESTARTS", config->max_restarts);
    text_list_set_variable(environment, "TORCHELASTIC_RUN_ID", placement->run_id);
    text_list_set_variable(environment, "TORCHELASTIC_USE_AGENT_STORE", "True");
    set_signals(environment, config);
    set_if_absent(environment, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
    if (config->sets_omp_num_threads && placement->local_world_size > 1) {
        set_if_absent(environment, "OMP_NUM_THREADS", "1");
    }
}

enum failure_code worker_environment_build(const struct launch_config *config,
    const struct node_placement *placement, int local_rank, const char *error_file,
    const struct text_list *inherited, struct text_list *out_environment) {
    struct text_list environment = {0};
    text_list_add_all(&environment, inherited);
    set_place(&environment, placement, local_rank);
    set_job(&environment, config, placement);
    text_list_set_variable(
        &environment, "TORCHELASTIC_ERROR_FILE", error_file != NULL ? error_file : "");
    set_told(&environment, config, local_rank);
    if (config->is_virtual_local_rank) {
        enum failure_code code = set_virtual_local_rank(&environment, local_rank);
        if (code != FAILURE_NONE) {
            text_list_clear(&environment);
            return code;
        }
    } else {
        set_integer(&environment, "LOCAL_RANK", local_rank);
    }
    *out_environment = environment;
    return FAILURE_NONE;
}

/* Worker command. */

/* A new interpreter runs this program. The script and its arguments follow as the arguments. */
static const char run_path_bootstrap[] =
    "import runpy, sys\n"
    "sys.argv = sys.argv[1:]\n"
    "try:\n"
    "    from torch.distributed.elastic.multiprocessing.errors import record\n"
    "except Exception:\n"
    "    def record(function):\n"
    "        return function\n"
    "@record\n"
    "def run_script_path():\n"
    "    runpy.run_path(sys.argv[0], run_name='__main__')\n"
    "run_script_path()\n";

static void add_substituted(
    struct text_list *arguments, const char *argument, const struct template_value *local_rank) {
    text_list_add_taken(arguments, template_substitute(argument, local_rank, 1));
}

static void add_interpreter(const struct launch_config *config, const char *python,
    const struct template_value *local_rank, struct text_list *arguments) {
    text_list_add(arguments, python);
    text_list_add(arguments, "-u");
    if (config->entry == LAUNCH_ENTRY_MODULE) {
        text_list_add(arguments, "-m");
    }
    if (config->entry == LAUNCH_ENTRY_RUN_PATH) {
        text_list_add(arguments, "-c");
        text_list_add(arguments, run_path_bootstrap);
    }
    add_substituted(arguments, config->script, local_rank);
}

void worker_command_build(const struct launch_config *config, const char *python, int local_rank,
    struct text_list *out_arguments) {
    char *number = text_format("%d", local_rank);
    struct template_value value = {.name = "local_rank", .value = number};
    if (config->entry == LAUNCH_ENTRY_PROGRAM) {
        text_list_add(out_arguments, config->script);
    } else {
        add_interpreter(config, python, &value, out_arguments);
    }
    const struct text_list *arguments = config->rank_arguments != NULL
                                            ? &config->rank_arguments[local_rank]
                                            : &config->script_arguments;
    for (size_t i = 0; i < arguments->count; i++) {
        add_substituted(out_arguments, arguments->items[i], &value);
    }
    free(number);
}

const char *worker_command_display_name(const struct launch_config *config) {
    return config->entry == LAUNCH_ENTRY_RUN_PATH ? "run_script_path" : config->script;
}

bool worker_command_is_python(const struct launch_config *config) {
    if (config->entry != LAUNCH_ENTRY_PROGRAM) {
        return true;
    }
    const char *slash = strrchr(config->script, '/');
    return text_starts_with(slash != NULL ? slash + 1 : config->script, "python");
}

/* Worker group. */

/* The worker counts of one role. */
struct role_total {
    int size;     /* workers on all nodes */
    int assigned; /* workers on the nodes so far */
};

void role_info_clear(struct role_info *info) {
    free(info->addresses);
    free(info->role);
    *info = (struct role_info){0};
}

static enum failure_code measure_world(
    const struct node_role *nodes, size_t count, int *out_world_size) {
    int64_t world_size = 0;
    for (size_t i = 0; i < count; i++) {
        if (nodes[i].local_world_size < 1) {
            return FAILURE_INVALID;
        }
        world_size += nodes[i].local_world_size;
        if (world_size > INT_MAX) {
            return FAILURE_LIMIT;
        }
    }
    *out_world_size = (int)world_size;
    return FAILURE_NONE;
}

static struct table *total_roles(const struct node_role *nodes, size_t count) {
    struct table *roles = table_new(free);
    for (size_t i = 0; i < count; i++) {
        struct slice key = slice_from_string(nodes[i].role);
        struct role_total *total = table_get(roles, key);
        if (total == NULL) {
            total = memory_allocate(sizeof *total);
            table_put(roles, key, total);
        }
        total->size += nodes[i].local_world_size;
    }
    return roles;
}

enum failure_code rank_assignment_compute(
    const struct node_role *nodes, size_t count, struct rank_assignment *out_assignments) {
    int world_size;
    enum failure_code code = measure_world(nodes, count, &world_size);
    if (code != FAILURE_NONE) {
        return code;
    }
    struct table *roles = total_roles(nodes, count);
    int base_rank = 0;
    for (size_t i = 0; i < count; i++) {
        struct role_total *total = table_get(roles, slice_from_string(nodes[i].role));
        out_assignments[i] = (struct rank_assignment){
            .base_rank = base_rank,
            .world_size = world_size,
            .role_base_rank = total->assigned,
            .role_world_size = total->size,
        };
        base_rank += nodes[i].local_world_size;
        total->assigned += nodes[i].local_world_size;
    }
    table_free(roles);
    return FAILURE_NONE;
}

/* Worker group. */

void worker_group_init(struct worker_group *group, size_t count) {
    *group = (struct worker_group){
        .count = count,
        .states = memory_allocate(count * sizeof *group->states),
        .failures = memory_allocate(count * sizeof *group->failures),
    };
    worker_group_reset(group);
}

static void forget_failures(struct worker_group *group) {
    for (size_t i = 0; i < group->failure_count; i++) {
        free(group->failures[i].start_message);
    }
    group->failure_count = 0;
}

void worker_group_clear(struct worker_group *group) {
    forget_failures(group);
    free(group->failures);
    free(group->states);
    *group = (struct worker_group){0};
}

void worker_group_reset(struct worker_group *group) {
    forget_failures(group);
    for (size_t i = 0; i < group->count; i++) {
        group->states[i] = WORKER_RUNNING;
    }
    group->running_count = group->count;
}

static bool is_running(const struct worker_group *group, int local_rank) {
    return local_rank >= 0 && (size_t)local_rank < group->count &&
           group->states[local_rank] == WORKER_RUNNING;
}

static void leave(struct worker_group *group, int local_rank, enum worker_state state) {
    group->states[local_rank] = state;
    group->running_count--;
}

/* Records the failure, and owns it afterwards. Returns false when the worker was not running. */
static bool record_failure(struct worker_group *group, struct worker_failure failure) {
    if (!is_running(group, failure.local_rank)) {
        free(failure.start_message);
        return false;
    }
    leave(group, failure.local_rank, WORKER_FAILED);
    group->failures[group->failure_count++] = failure;
    return true;
}

static bool is_success(struct process_exit exit) {
    return !exit.is_signal && exit.value == 0;
}

/* The end of a worker that is known to be ending. A success is not believed: the others have been
 * told to end because of its failure. */
static void complete_failure(struct worker_group *group, int local_rank, struct process_exit exit) {
    for (size_t i = 0; i < group->failure_count; i++) {
        struct worker_failure *failure = &group->failures[i];
        if (failure->local_rank == local_rank && failure->is_ending) {
            failure->is_ending = false;
            failure->exit = is_success(exit) ? failure->exit : exit;
        }
    }
}

bool worker_group_record_exit(struct worker_group *group, int local_rank, struct process_exit exit,
    struct wall_time observed, bool is_from_our_signal) {
    complete_failure(group, local_rank, exit);
    if (is_running(group, local_rank) && is_success(exit)) {
        leave(group, local_rank, WORKER_SUCCEEDED);
        return true;
    }
    return record_failure(group, (struct worker_failure){
                                     .local_rank = local_rank,
                                     .observed = observed,
                                     .exit = exit,
                                     .is_from_our_signal = is_from_our_signal,
                                 });
}

bool worker_group_record_ending(struct worker_group *group, int local_rank,
    struct process_exit exit, struct wall_time observed) {
    return !is_success(exit) && record_failure(group, (struct worker_failure){
                                                          .local_rank = local_rank,
                                                          .observed = observed,
                                                          .exit = exit,
                                                          .is_ending = true,
                                                      });
}

bool worker_group_record_start_failure(
    struct worker_group *group, int local_rank, const char *message, struct wall_time observed) {
    return record_failure(group, (struct worker_failure){
                                     .local_rank = local_rank,
                                     .observed = observed,
                                     .start_message = memory_duplicate_string(message),
                                 });
}

bool worker_group_record_stuck(
    struct worker_group *group, int local_rank, struct duration stuck, struct wall_time observed) {
    return record_failure(group, (struct worker_failure){
                                     .local_rank = local_rank,
                                     .observed = observed,
                                     .stuck = stuck,
                                 });
}

bool worker_group_has_failure(const struct worker_group *group) {
    return group->failure_count > 0;
}

bool worker_group_has_succeeded(const struct worker_group *group) {
    return group->running_count == 0 && group->failure_count == 0;
}

void worker_group_set_error_time(struct worker_group *group, int local_rank, int64_t seconds) {
    for (size_t i = 0; i < group->failure_count; i++) {
        struct worker_failure *failure = &group->failures[i];
        if (failure->local_rank == local_rank) {
            failure->has_error_time = true;
            failure->error_seconds = seconds;
        }
    }
}

static int64_t failure_seconds(const struct worker_failure *failure) {
    return failure->has_error_time ? failure->error_seconds
                                   : failure->observed.nanoseconds / NANOSECONDS_PER_SECOND;
}

/* A failure with a smaller class comes first as the root cause. */
static int root_cause_class(const struct worker_failure *failure) {
    if (failure->start_message != NULL) {
        return 0;
    }
    return failure->is_from_our_signal ? 2 : 1;
}

static bool comes_first_as_root_cause(
    const struct worker_failure *left, const struct worker_failure *right) {
    if (root_cause_class(left) != root_cause_class(right)) {
        return root_cause_class(left) < root_cause_class(right);
    }
    return failure_seconds(left) < failure_seconds(right);
}

size_t worker_group_root_cause(const struct worker_group *group) {
    size_t root = SIZE_MAX;
    for (size_t i = 0; i < group->failure_count; i++) {
        if (root == SIZE_MAX ||
            comes_first_as_root_cause(&group->failures[i], &group->failures[root])) {
            root = i;
        }
    }
    return root;
}

/* Stuck watch. */

enum stuck_verdict stuck_watch_see(
    struct stuck_watch *watch, char state, struct instant now, struct duration timeout) {
    if (state != 'D') {
        *watch = (struct stuck_watch){0};
        return STUCK_NOTHING_NEW;
    }
    if (!watch->is_stuck) {
        *watch = (struct stuck_watch){.is_stuck = true, .since = now};
        return STUCK_BEGINS;
    }
    if (watch->has_timed_out || instant_is_before(now, instant_after(watch->since, timeout))) {
        return STUCK_NOTHING_NEW;
    }
    watch->has_timed_out = true;
    return STUCK_TIMED_OUT;
}
