/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/job_story.h"

#include <inttypes.h>

#include "core/launch/launch_config.h"

#define LABEL "  %-24s : "

/* What was asked for. */

static void append_text(struct text *out, const char *label, const char *value) {
    text_append_format(out, "\n" LABEL "%s", label, value);
}

static void append_number(struct text *out, const char *label, int value) {
    text_append_format(out, "\n" LABEL "%d", label, value);
}

static void append_endpoint(struct text *out, const struct launch_config *config) {
    const struct launch_dynamic *dynamic = &config->dynamic;
    text_append_format(out, "\n" LABEL, "rdzv_endpoint");
    if (dynamic->register_engine != NULL) {
        text_append(out, dynamic->register_endpoint == NULL ? "" : dynamic->register_endpoint);
    } else if (dynamic->file != NULL) {
        text_append(out, dynamic->file);
    } else if (dynamic->host != NULL) {
        text_append_format(out, "%s:%d", dynamic->host, dynamic->port);
    } else if (config->master_host != NULL) {
        text_append_format(out, "%s:%d", config->master_host, config->master_port);
    }
}

static void append_settings(struct text *out, const char *label, const struct text_list *list) {
    text_append_format(out, "\n" LABEL, label);
    for (size_t i = 0; i < list->count; i++) {
        text_append(out, i == 0 ? "" : ",");
        secret_setting_write_shown(list->items[i], out);
    }
}

void job_story_describe_launch(const struct job_story_launch *launch, struct text *out) {
    const struct launch_config *config = launch->config;
    text_append(out, "Starting elastic_operator with launch configs:");
    append_text(out, "entrypoint", launch->entry_point);
    append_number(out, "min_nodes", config->minimum_nodes);
    append_number(out, "max_nodes", config->maximum_nodes);
    append_number(out, "nproc_per_node", launch->worker_count);
    append_text(out, "run_id", launch->run_id);
    append_text(out, "rdzv_backend", config->rdzv_backend);
    append_endpoint(out, config);
    append_settings(out, "rdzv_configs", &config->rdzv_conf);
    append_number(out, "max_restarts", config->max_restarts);
    append_text(out, "log_dir", launch->log_directory == NULL ? "None" : launch->log_directory);
    append_text(out, "signals_to_handle",
        config->signals_to_handle == NULL ? "" : config->signals_to_handle);
}

/* The place in a world. */

static void append_ranks(struct text *out, const char *label, int first, int count) {
    text_append_format(out, "\n  %s=[", label);
    for (int i = 0; i < count; i++) {
        text_append_format(out, "%s%d", i == 0 ? "" : ", ", first + i);
    }
    text_append(out, "]");
}

/* One size for each worker of this node, as torchrun writes it. */
static void append_sizes(struct text *out, const char *label, int size, int count) {
    text_append_format(out, "\n  %s=[", label);
    for (int i = 0; i < count; i++) {
        text_append_format(out, "%s%d", i == 0 ? "" : ", ", size);
    }
    text_append(out, "]");
}

void job_story_describe_placement(
    const char *role, const struct node_placement *placement, struct text *out) {
    const struct rank_assignment *ranks = &placement->ranks;
    int count = placement->local_world_size;
    text_append_format(out,
        "[%s] Rendezvous complete for workers. Result:"
        "\n  restart_count=%d"
        "\n  round=%" PRId64 "\n  master_addr=%s"
        "\n  master_port=%d"
        "\n  group_rank=%d"
        "\n  group_world_size=%d",
        role, placement->attempt, placement->round, placement->master_address,
        placement->master_port, placement->group_rank, placement->group_world_size);
    append_ranks(out, "local_ranks", 0, count);
    append_ranks(out, "role_ranks", ranks->role_base_rank, count);
    append_ranks(out, "global_ranks", ranks->base_rank, count);
    append_sizes(out, "role_world_sizes", ranks->role_world_size, count);
    append_sizes(out, "global_world_sizes", ranks->world_size, count);
}

/* Steps. */

/* The record counts for the whole job; this node does not always know what it says. */
static void append_world_end(
    const struct agent_machine *machine, const struct agent_event *event, struct text *out) {
    text_append(out, "the world changes, since ");
    text_append(out, event->reason != NULL ? event->reason : "a node came, left or restarts");
    if (event->is_counted && event->restarts > machine->restarts.used) {
        text_append_format(out,
            machine->restarts.window.nanoseconds > 0
                ? "; this is restart %d, and %d may be within --restart-window (--max-restarts)"
                : "; this is restart %d of %d (--max-restarts)",
            event->restarts, machine->restarts.maximum);
    } else if (event->is_counted) {
        text_append(out, "; this uses no restart");
    }
}

static const char *why_stopping(const struct agent_machine *machine, enum agent_event_kind kind) {
    switch (machine->stop_reason) {
    case AGENT_STOP_CLEAN_UP:
        return "all workers have succeeded";
    case AGENT_STOP_RESTART:
        return kind == AGENT_EVENT_PEER_RESTART ? "a worker of another node has failed"
                                                : "a worker of this node has failed";
    case AGENT_STOP_DOUBTED_FAILURE:
        return "a worker of this node has failed, perhaps because another node is lost";
    case AGENT_STOP_FAILURE:
        return "a worker of this node has failed";
    case AGENT_STOP_PEER_FAILURE:
        return "another node has failed";
    case AGENT_STOP_SIGNAL:
        return "a signal has come";
    case AGENT_STOP_EXCLUDED:
        return "the others go on without this node";
    case AGENT_STOP_UNFIT:
        return "the check of this node has failed";
    case AGENT_STOP_NONE:
        break;
    }
    return "the job is over";
}

static bool is_of_node(const struct agent_machine *machine, const struct agent_event *event) {
    bool is_of_world = machine->stop_reason == AGENT_STOP_CLEAN_UP ||
                       machine->stop_reason == AGENT_STOP_PEER_FAILURE ||
                       event->kind == AGENT_EVENT_ROUND_OVER ||
                       event->kind == AGENT_EVENT_PEER_RESTART;
    return machine->phase == AGENT_LEAVING || (machine->phase == AGENT_STOPPING && !is_of_world);
}

bool job_story_describe_step(const struct launch_config *config,
    const struct agent_machine *machine, const struct agent_event *event, enum agent_phase before,
    bool is_followers, struct text *out) {
    if (machine->phase == before || (is_followers && !is_of_node(machine, event))) {
        return false;
    }
    switch (machine->phase) {
    case AGENT_JOINING:
        text_append_format(out, "[%s] Rendezvous'ing worker group", config->role);
        return true;
    case AGENT_STARTING:
        text_append_format(out, "[%s] Starting worker group", config->role);
        return true;
    case AGENT_STOPPING:
        text_append_format(out, "[%s] Stopping worker group: ", config->role);
        if (machine->stop_reason == AGENT_STOP_RESTART && event->kind == AGENT_EVENT_ROUND_OVER) {
            append_world_end(machine, event, out);
        } else {
            text_append(out, why_stopping(machine, event->kind));
        }
        return true;
    case AGENT_LEAVING:
        text_append_format(out,
            "[%s] worker group successfully finished. Waiting %g seconds for other agents to "
            "finish.",
            config->role, duration_seconds(config->exit_barrier_timeout));
        return true;
    case AGENT_DONE:
        text_append_format(out, "[%s] Done waiting for other agents", config->role);
        return before == AGENT_LEAVING;
    case AGENT_IDLE:
    case AGENT_HELD:
    case AGENT_RUNNING:
    case AGENT_DOUBTING:
    case AGENT_PHASE_COUNT:
        break;
    }
    return false;
}
