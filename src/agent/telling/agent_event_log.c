/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_event_log.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/workers/worker_group.h"
#include "host/network/network_address.h"
#include "host/telling/event_thread.h"
#include "wire/failure/failure_json.h"
#include "wire/telling/event_json.h"

/* How long a disk that does not answer may hold up the beginning and the end of a job. */
#define DISK_PATIENCE_SECONDS 5

struct agent_event_log {
    struct agent_event_log_settings settings;
    struct event_loop *loop;
    struct event_thread *file; /* NULL: none */
    char *host_name;
    struct instant began;
    struct instant joining_since;
    bool has_group;
    int group_rank; /* of the round whose workers have their ranks */
    int group_world_size;
    int64_t total_run_seconds;
    bool holds_watchdog_stop;
};

/* What an event of torchrun's calls the entry point: the program that is run, not the script. */
static const char *entry_point(const struct agent_event_log *log) {
    const struct launch_config *config = log->settings.config;
    if (config->entry == LAUNCH_ENTRY_RUN_PATH) {
        return worker_command_display_name(config);
    }
    const char *program =
        config->entry == LAUNCH_ENTRY_PROGRAM ? config->script : log->settings.preparation->python;
    const char *slash = strrchr(program, '/');
    return slash == NULL ? program : slash + 1;
}

static struct event_record make_record(const struct agent_event_log *log, enum event_state state) {
    const struct launch_config *config = log->settings.config;
    return (struct event_record){
        .time = event_loop_wall_time(log->loop),
        .state = state,
        .agent =
            {
                .run_id = log->settings.preparation->run_id,
                .role = config->role,
                .host_name = log->host_name,
                .rdzv_backend = config->rdzv_backend,
                .entry_point = entry_point(log),
                .has_group = log->has_group,
                .group_rank = log->group_rank,
                .group_world_size = log->group_world_size,
                .total_run_seconds = log->total_run_seconds,
                .restarts = agent_machine_attempt(log->settings.machine),
            },
    };
}

static void write_line(struct agent_event_log *log, const char *line) {
    if (log->file != NULL) {
        event_thread_append(log->file, line);
    }
    agent_audience_event(log->settings.audience, line);
}

static void write_record(struct agent_event_log *log, const struct event_record *record) {
    struct text line = {0};
    event_json_write(record, &line);
    write_line(log, text_string(&line));
    if (log->settings.config->event_handler == LAUNCH_EVENTS_CONSOLE) {
        log_sink_write_text(log->settings.sink, text_string(&line));
    }
    text_clear(&line);
}

static struct event_worker make_worker(
    const struct agent_event_log *log, const struct agent_workers *workers, int local_rank) {
    const struct rank_assignment *ranks = &log->settings.placement->ranks;
    return (struct event_worker){
        .global_rank = ranks->base_rank + local_rank,
        .local_rank = local_rank,
        .role_rank = ranks->role_base_rank + local_rank,
        .role_world_size = ranks->role_world_size,
        .pid = agent_workers_pid(workers, local_rank),
    };
}

/* The watchdog. */

static void record_watchdog(
    struct agent_event_log *log, enum event_watchdog what, const struct event_timer_record *timer) {
    struct event_record record = make_record(log, EVENT_STATE_RUNNING);
    record.watchdog = what;
    record.timer = timer;
    write_record(log, &record);
}

void agent_event_log_watchdog(
    struct agent_event_log *log, enum event_watchdog what, const struct event_timer_record *timer) {
    if (log == NULL) {
        return;
    }
    if (what == EVENT_WATCHDOG_STOPPED && event_plan_holds_watchdog_stop(log->settings.machine)) {
        log->holds_watchdog_stop = true;
    } else {
        record_watchdog(log, what, timer);
    }
}

static void release_watchdog_stop(struct agent_event_log *log) {
    if (log->holds_watchdog_stop) {
        log->holds_watchdog_stop = false;
        record_watchdog(log, EVENT_WATCHDOG_STOPPED, NULL);
    }
}

void agent_event_log_standby(
    struct agent_event_log *log, const struct event_standby_record *standby) {
    if (log != NULL) {
        struct event_record record = make_record(log, EVENT_STATE_RUNNING);
        record.standby = standby;
        write_record(log, &record);
    }
}

/* The steps. */

static void record_duration(
    struct agent_event_log *log, enum event_state state, struct duration duration) {
    struct event_record record = make_record(log, state);
    record.has_duration = true;
    record.duration = duration;
    write_record(log, &record);
}

/* Both records still name the place in the round before. Ranks come with the place, so assigning
 * them takes no time of its own. */
static void record_rendezvous(struct agent_event_log *log, bool has_joined, struct instant now) {
    record_duration(log, EVENT_STATE_RENDEZVOUS, instant_until(log->joining_since, now));
    if (has_joined) {
        record_duration(log, EVENT_STATE_ASSIGN_WORKER_RANKS, (struct duration){0});
        log->has_group = true;
        log->group_rank = log->settings.placement->group_rank;
        log->group_world_size = log->settings.placement->group_world_size;
    }
}

static void record_start(struct agent_event_log *log, const struct agent_workers *workers) {
    for (size_t rank = 0; rank < log->settings.machine->workers.count; rank++) {
        struct event_worker worker = make_worker(log, workers, (int)rank);
        struct event_record record = make_record(log, EVENT_STATE_START);
        record.worker = &worker;
        write_record(log, &record);
    }
}

void agent_event_log_step(struct agent_event_log *log, const struct agent_workers *workers,
    enum agent_phase before, struct instant now) {
    if (log == NULL) {
        return;
    }
    const struct agent_machine *machine = log->settings.machine;
    struct event_plan plan = event_plan_step(before, machine);
    if (plan.has_left_rendezvous) {
        record_rendezvous(log, plan.has_joined, now);
    }
    if (plan.has_started) {
        record_start(log, workers);
    }
    if (plan.has_begun_rendezvous) {
        release_watchdog_stop(log);
        log->joining_since = now;
    }
}

/* The end. */

static void describe_error(
    const struct worker_error *read, const struct worker_failure *failure, struct text *out) {
    struct slice content = {0};
    if (read != NULL && read->code == FAILURE_NONE) {
        content = bytes_slice(&read->content);
    }
    event_json_write_error(content, failure->exit, out);
}

static void record_worker_end(
    struct agent_event_log *log, const struct agent_workers *workers, int local_rank) {
    const struct worker_group *group = &log->settings.machine->workers;
    const struct worker_failure *failure = event_plan_failure(group, local_rank);
    struct event_worker worker = make_worker(log, workers, local_rank);
    struct text error = {0};
    if (failure != NULL) {
        describe_error(agent_workers_error(workers, local_rank), failure, &error);
        worker.is_failed = true;
        worker.has_exit_code = failure->start_message == NULL && failure->stuck.nanoseconds == 0;
        worker.exit_code = process_exit_python_code(failure->exit);
    }
    struct event_record record = make_record(log, event_plan_worker_end(group, local_rank));
    record.worker = &worker;
    record.raw_error = failure != NULL ? text_string(&error) : NULL;
    write_record(log, &record);
    text_clear(&error);
}

void agent_event_log_end(struct agent_event_log *log, const struct agent_workers *workers,
    const struct agent_outcome *outcome, const char *trouble) {
    if (log == NULL) {
        return;
    }
    const struct worker_group *group = &log->settings.machine->workers;
    struct duration ran = instant_until(log->began, event_loop_now(log->loop));
    log->total_run_seconds = (int64_t)duration_seconds(ran);
    if (event_plan_has_worker_ends(outcome, group)) {
        for (size_t rank = 0; rank < group->count; rank++) {
            record_worker_end(log, workers, (int)rank);
        }
    }
    release_watchdog_stop(log);
    struct event_record record = make_record(log, event_plan_agent_end(outcome, group));
    record.raw_error = record.state == EVENT_STATE_FAILED ? trouble : NULL;
    write_record(log, &record);
}

bool agent_event_log_wants_rendezvous(const struct agent_event_log *log) {
    return log != NULL && (log->file != NULL || log->settings.audience != NULL);
}

void agent_event_log_rendezvous(
    struct agent_event_log *log, const struct event_rendezvous *record) {
    struct text line = {0};
    event_json_write_rendezvous(record, &line);
    write_line(log, text_string(&line));
    text_clear(&line);
}

static enum failure_code open_file(struct agent_event_log *log, struct failure *failure) {
    bool is_program = log->settings.config->event_handler == LAUNCH_EVENTS_PROGRAM;
    struct event_thread_settings settings = {
        .loop = log->loop,
        .log = log_sink_log(log->settings.sink),
        .path = log->settings.config->event_file,
        .environment = is_program ? log->settings.environment : NULL,
        .patience = duration_from_seconds(DISK_PATIENCE_SECONDS),
    };
    enum failure_code code = event_thread_new(&settings, &log->file, failure);
    if (code != FAILURE_NONE) {
        failure_wrap(failure,
            is_program ? "--event-log-handler (exec:PROGRAM names a program without arguments that "
                         "this user may execute; without the option nothing is written)"
                       : "--event-log-handler (file:PATH names a file that this user may write; "
                         "without the option nothing is written)");
    }
    return code;
}

/* torchrun asks for the machine's name even where the node was given another one. */
static enum failure_code find_host_name(struct agent_event_log *log, struct failure *failure) {
    const struct launch_config *config = log->settings.config;
    if (config->local_address != NULL || config->rendezvous == LAUNCH_RENDEZVOUS_DYNAMIC) {
        log->host_name = memory_duplicate_string(log->settings.preparation->node_name);
        return FAILURE_NONE;
    }
    return local_address_qualified_name(&log->host_name, failure);
}

enum failure_code agent_event_log_new(struct event_loop *loop,
    const struct agent_event_log_settings *settings, struct agent_event_log **out_log,
    struct failure *failure) {
    enum launch_event_handler handler = settings->config->event_handler;
    if (handler == LAUNCH_EVENTS_NULL && settings->audience == NULL) {
        *out_log = NULL;
        return FAILURE_NONE;
    }
    struct agent_event_log *log = memory_allocate(sizeof *log);
    *log = (struct agent_event_log){
        .settings = *settings, .loop = loop, .began = event_loop_now(loop)};
    enum failure_code code = find_host_name(log, failure);
    if (code == FAILURE_NONE &&
        (handler == LAUNCH_EVENTS_FILE || handler == LAUNCH_EVENTS_PROGRAM)) {
        code = open_file(log, failure);
    }
    if (code != FAILURE_NONE) {
        agent_event_log_free(log);
        return code;
    }
    *out_log = log;
    return FAILURE_NONE;
}

void agent_event_log_free(struct agent_event_log *log) {
    if (log != NULL) {
        event_thread_free(log->file);
        free(log->host_name);
        free(log);
    }
}
