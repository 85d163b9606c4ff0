/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/agent_calls.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "library/library_settings.h"
#include "options/launch/rendezvous_options.h"

#define TEXT_MAXIMUM 65536
/* The store of a job of one node, where nothing is said of it. */
#define OWN_STORE "localhost:0"
/* The agent itself makes such a job's record nowhere else. */
#define STORE_BACKEND "c10d"
#define FILE_STORE "store_type=file"

_Static_assert((int)MUSTER_WORKER_STATE_HEALTHY == (int)RUN_GROUP_STATE_HEALTHY &&
                   (int)MUSTER_WORKER_STATE_INIT == (int)RUN_GROUP_STATE_INIT &&
                   (int)MUSTER_WORKER_STATE_FAILED == (int)RUN_GROUP_STATE_FAILED,
    "one list of states");

/* Reading. */

static enum muster_error take_rendezvous(struct muster_agent_settings *settings,
    struct agent_calls *calls, struct muster_failure *failure) {
    enum muster_error error =
        rendezvous_lend(settings->rendezvous, &calls->lent, &calls->backend, failure);
    if (error == MUSTER_OK && (settings->rdzv_backend != NULL || settings->run_id != NULL ||
                                  settings->min_nodes != 1 || settings->max_nodes != 1)) {
        error = library_fail(failure, MUSTER_ERROR_INVALID,
            "there is a rendezvous, which has a run id and numbers of nodes; leave rdzv_backend, "
            "run_id, min_nodes and max_nodes out");
    }
    if (error == MUSTER_OK) {
        settings->run_id = calls->lent->run_id;
        settings->min_nodes = calls->lent->minimum_nodes;
        settings->max_nodes = calls->lent->maximum_nodes;
    }
    return error;
}

/* Of what the settings say, what is for the store and for rounds: the rest is for whom the program
 * has registered. What makes no sense is refused later. */
static char *choose_configs(const struct muster_agent_settings *settings, bool is_registered) {
    struct text_list given = {0};
    struct text_list unknown = {0};
    struct text chosen = {0};
    struct text reason = {0};
    if (settings->rdzv_configs != NULL &&
        rendezvous_conf_parse(settings->rdzv_configs, &given, &reason) != FAILURE_NONE) {
        text_append(&chosen, settings->rdzv_configs);
    }
    for (size_t i = 0; i < given.count; i++) {
        const struct text_list one = {.items = &given.items[i], .count = 1};
        text_list_clear(&unknown);
        rendezvous_conf_warn_of_unknown(&one, STORE_BACKEND, &unknown);
        if (!is_registered || unknown.count == 0) {
            text_append_format(&chosen, "%s%s", chosen.length > 0 ? "," : "", given.items[i]);
        }
    }
    if (*settings->rdzv_endpoint == '/') {
        text_append_format(&chosen, "%s" FILE_STORE, chosen.length > 0 ? "," : "");
    }
    text_list_clear(&given);
    text_list_clear(&unknown);
    text_clear(&reason);
    char *text = chosen.length > 0 ? memory_duplicate_string(text_string(&chosen)) : NULL;
    text_clear(&chosen);
    return text;
}

/* The nodes meet at a store as with c10d, but for the record. */
static enum muster_error place_store(struct muster_agent_settings *settings,
    struct agent_calls *calls, struct muster_failure *failure) {
    const char *place =
        settings->rdzv_store != NULL ? settings->rdzv_store : settings->rdzv_endpoint;
    if (place == NULL && settings->max_nodes > 1) {
        return library_fail(failure, MUSTER_ERROR_INVALID,
            "rdzv_store is missing: HOST:PORT, or the path of a file that every node sees, where "
            "the nodes keep what they tell each other besides the record");
    }
    settings->rdzv_backend = STORE_BACKEND;
    settings->rdzv_endpoint = place != NULL ? place : OWN_STORE;
    calls->configs = choose_configs(settings, calls->registered != NULL);
    settings->rdzv_configs = calls->configs;
    return MUSTER_OK;
}

enum muster_error agent_calls_read(struct muster_agent_settings *settings,
    struct agent_calls *out_calls, struct muster_failure *failure) {
    struct agent_calls calls = {.settings = settings,
        .registered = rendezvous_registered_find(settings->rdzv_backend),
        .parameters = {settings->rdzv_backend, settings->rdzv_endpoint, settings->run_id,
            settings->min_nodes, settings->max_nodes, NULL, settings->rdzv_configs}};
    enum muster_error error = MUSTER_OK;
    calls.has_record = settings->rendezvous != NULL || calls.registered != NULL;
    if (settings->rdzv_store != NULL) {
        error = library_utf8_check("rdzv_store", settings->rdzv_store, TEXT_MAXIMUM, failure);
    }
    if (error == MUSTER_OK && settings->rdzv_store != NULL && !calls.has_record) {
        error = library_fail(failure, MUSTER_ERROR_INVALID,
            "rdzv_store is for a rendezvous of the program's own; give rdzv_endpoint");
    }
    if (error == MUSTER_OK && settings->rendezvous != NULL) {
        error = take_rendezvous(settings, &calls, failure);
    }
    if (error == MUSTER_OK && calls.has_record) {
        error = place_store(settings, &calls, failure);
    }
    if (error == MUSTER_OK) {
        *out_calls = calls;
    }
    return error;
}

void agent_calls_clear(struct agent_calls *calls) {
    free(calls->configs);
    *calls = (struct agent_calls){0};
}

static void take_times(
    const struct rendezvous_settings *lent, struct rendezvous_settings *out_settings) {
    out_settings->join_timeout = lent->join_timeout;
    out_settings->last_call_timeout = lent->last_call_timeout;
    out_settings->close_timeout = lent->close_timeout;
    out_settings->keep_alive_interval = lent->keep_alive_interval;
    out_settings->keep_alive_max_attempt = lent->keep_alive_max_attempt;
}

/* What is kept elsewhere is written by each node for itself. */
void agent_calls_apply(const struct agent_calls *calls, struct launch_config *config) {
    if (!calls->has_record) {
        return;
    }
    const char *name = calls->registered != NULL ? calls->registered->name : calls->backend->name;
    free(config->rdzv_backend);
    config->rdzv_backend = memory_duplicate_string(name != NULL ? name : "the program's");
    config->dynamic.settings.delegates = false;
    if (calls->lent != NULL) {
        take_times(&calls->lent->dynamic.settings, &config->dynamic.settings);
        if (calls->lent->local_address != NULL) {
            free(config->local_address);
            config->local_address = memory_duplicate_string(calls->lent->local_address);
        }
    }
}

int agent_calls_descriptor(const struct agent_calls *calls) {
    return calls->backend != NULL && calls->backend->has_watch ? calls->backend->watch_fd : -1;
}

/* The record, in the agent's process. */

static enum failure_code create(const struct agent_calls *calls,
    struct muster_rendezvous_backend *out_backend, struct failure *failure) {
    struct muster_rendezvous_backend given = MUSTER_RENDEZVOUS_BACKEND;
    struct muster_failure told = {0};
    const struct rendezvous_registered *registered = calls->registered;
    enum muster_error error =
        registered->create(registered->context, &calls->parameters, &given, &told);
    if (error == MUSTER_OK) {
        error = rendezvous_backend_read(&given, out_backend, &told);
    }
    told.message[sizeof told.message - 1] = '\0';
    return error == MUSTER_OK
               ? FAILURE_NONE
               : failure_set(failure, FAILURE_INVALID, "the rendezvous backend '%s': %s",
                     registered->name,
                     told.message[0] != '\0' ? told.message : muster_error_text(error));
}

static enum failure_code open_record(void *context, struct event_loop *loop, const struct log *log,
    void (*told)(void *context, const struct rendezvous_event *event), void *told_context,
    void **out_kept, struct failure *failure) {
    const struct agent_calls *calls = context;
    const struct rendezvous_own_audience audience = {told, told_context};
    struct muster_rendezvous_backend backend;
    struct rendezvous_own_backend *own = NULL;
    enum failure_code code = FAILURE_NONE;
    if (calls->registered != NULL) {
        code = create(calls, &backend, failure);
    } else {
        backend = *calls->backend;
    }
    if (code == FAILURE_NONE) {
        code = rendezvous_own_backend_new(loop, &backend, &audience, log, &own, failure);
    }
    *out_kept = own;
    return code;
}

static void perform(void *kept, const struct rendezvous_effect *effect) {
    rendezvous_own_backend_perform(kept, effect);
}

static void close_record(void *kept) {
    rendezvous_own_backend_silence(kept);
    rendezvous_own_backend_free(kept);
}

/* Hooks. */

struct muster_worker *agent_calls_word_group(
    const struct run_group *group, struct muster_worker_group *out_group) {
    struct muster_worker *workers = memory_allocate(group->worker_count * sizeof *workers);
    for (size_t i = 0; i < group->worker_count; i++) {
        workers[i] = (struct muster_worker){(int)i, group->base_rank + (int)i,
            group->role_base_rank + (int)i, group->world_size, group->role_world_size,
            (long)group->pids[i]};
    }
    *out_group = (struct muster_worker_group){
        .state = (enum muster_worker_state)group->state,
        .group_rank = group->group_rank,
        .group_world_size = group->group_world_size,
        .restarts = group->restarts,
        .run_id = group->run_id,
        .role = group->role,
        .master_addr = group->master_host,
        .master_port = group->master_port,
        .workers = workers,
        .worker_count = group->worker_count,
    };
    return workers;
}

static void take_reason(struct muster_failure *told, enum muster_error error, struct text *out) {
    told->message[sizeof told->message - 1] = '\0';
    text_append(out, told->message[0] != '\0' ? told->message : muster_error_text(error));
}

static bool ask(const struct agent_calls *calls,
    enum muster_error (*hook)(
        void *context, const struct muster_worker_group *group, struct muster_failure *failure),
    const struct run_group *run, struct text *out_reason) {
    struct muster_worker_group group;
    struct muster_failure told = {0};
    struct muster_worker *workers = agent_calls_word_group(run, &group);
    enum muster_error error = hook(calls->settings->context, &group, &told);
    free(workers);
    if (error != MUSTER_OK) {
        take_reason(&told, error, out_reason);
    }
    return error == MUSTER_OK;
}

static bool start_workers(void *context, const struct run_group *group, struct text *out_reason) {
    const struct agent_calls *calls = context;
    return ask(calls, calls->settings->start_workers, group, out_reason);
}

static bool restart_workers(void *context, const struct run_group *group, struct text *out_reason) {
    const struct agent_calls *calls = context;
    return ask(calls, calls->settings->restart_workers, group, out_reason);
}

static int monitor_workers(void *context, const struct run_group *run, struct text *out_reason) {
    const struct agent_calls *calls = context;
    struct muster_worker_group group;
    struct muster_failure told = {0};
    struct muster_worker *workers = agent_calls_word_group(run, &group);
    int rank = calls->settings->monitor_workers(calls->settings->context, &group, &told);
    free(workers);
    take_reason(&told, MUSTER_ERROR_CANCELLED, out_reason);
    return rank;
}

static void tell(const struct agent_calls *calls,
    void (*hook)(void *context, const struct muster_worker_group *group, int signal),
    const struct run_group *run, int signal) {
    struct muster_worker_group group;
    struct muster_worker *workers = agent_calls_word_group(run, &group);
    hook(calls->settings->context, &group, signal);
    free(workers);
}

static void stop_workers(void *context, const struct run_group *group, int signal) {
    const struct agent_calls *calls = context;
    tell(calls, calls->settings->stop_workers, group, signal);
}

static void shut_down(void *context, const struct run_group *group, int signal) {
    const struct agent_calls *calls = context;
    tell(calls, calls->settings->shutdown, group, signal);
}

#define SECONDS_MAXIMUM (INT64_MAX / NANOSECONDS_PER_SECOND)

/* What is no time is the beginning or the end of time. */
static struct wall_time last_progress(void *context) {
    const struct agent_calls *calls = context;
    int64_t seconds = calls->settings->alive_callback(calls->settings->context);
    seconds = seconds < 0 ? 0 : seconds > SECONDS_MAXIMUM ? SECONDS_MAXIMUM : seconds;
    return (struct wall_time){seconds * NANOSECONDS_PER_SECOND};
}

void agent_calls_give(struct agent_calls *calls, struct agent_program *program) {
    const struct muster_agent_settings *settings = calls->settings;
    program->hooks = (struct agent_hooks){
        .start_workers = settings->start_workers != NULL ? start_workers : NULL,
        .restart_workers = settings->restart_workers != NULL ? restart_workers : NULL,
        .stop_workers = settings->stop_workers != NULL ? stop_workers : NULL,
        .monitor_workers = settings->monitor_workers != NULL ? monitor_workers : NULL,
        .shutdown = settings->shutdown != NULL ? shut_down : NULL,
        .last_progress = settings->alive_callback != NULL ? last_progress : NULL,
        .context = calls,
    };
    calls->record = (struct agent_kept_record){open_record, perform, close_record, calls};
    program->kept_record = calls->has_record ? &calls->record : NULL;
}
