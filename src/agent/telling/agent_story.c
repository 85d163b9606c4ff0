/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_story.h"

#include "core/standby/standby_plan.h"
#include "core/telling/job_story.h"
#include "core/workers/worker_group.h"

#define WORTH_TELLING_MILLISECONDS 100

static bool is_told(const struct agent_story *story) {
    return story->log != NULL && story->log->threshold <= LOG_LEVEL_INFO;
}

void agent_story_begin(const struct agent_story *story) {
    if (!is_told(story)) {
        return;
    }
    const struct job_story_launch launch = {
        .config = story->config,
        .entry_point = worker_command_display_name(story->config),
        .run_id = story->preparation->run_id,
        .worker_count = story->preparation->worker_count,
        .log_directory = story->preparation->logs.run_path,
    };
    struct text lines = {0};
    job_story_describe_launch(&launch, &lines);
    agent_voice_launch(story->voice, text_string(&lines));
    text_clear(&lines);
}

/* What workers do before they meet at their store is mostly imports. Zero: nothing worth telling,
 * nobody has asked it, or others than workers do, too. */
static struct duration time_until_store(const struct agent_story *story) {
    struct instant asked = {0};
    if (story->worker_store != NULL && story->started.nanoseconds != 0) {
        asked = tally_first(story->worker_store);
    }
    struct duration least = duration_from_milliseconds(WORTH_TELLING_MILLISECONDS);
    return instant_is_before(instant_after(story->started, least), asked)
               ? instant_until(story->started, asked)
               : (struct duration){0};
}

/* Said once, where it is not known yet. */
static void suggest_standby(const struct agent_story *story) {
    static const char offer[] =
        "with --standby on, processes that have done so would take their places";
    struct duration taken = time_until_store(story);
    if (story->has_standby || !standby_is_for_python(story->config) ||
        agent_machine_attempt(story->machine) != 1) {
        return;
    }
    if (taken.nanoseconds == 0) {
        log_info(story->log, "the new workers import everything anew; %s", offer);
    } else {
        log_info(story->log,
            "the new workers import everything anew; %s, and save most of the %.1f s from the "
            "start of the old ones until one of them came to their store",
            offer, duration_seconds(taken));
    }
}

static void tell_pause(const struct agent_story *story) {
    struct duration pause = fruitless_attempts_pause(&story->machine->fruitless);
    if (pause.nanoseconds > 0) {
        log_warning(story->log,
            "%d attempts in a row have got no further: they start after a pause of %g s "
            "(--restart-backoff)",
            story->machine->fruitless.count, duration_seconds(pause));
    }
}

static void tell_restart(const struct agent_story *story) {
    const struct restart_policy *restarts = &story->machine->restarts;
    if (restarts->window.nanoseconds == 0) {
        log_warning(story->log, "restarting the workers: restart %d of %d (--max-restarts)",
            restarts->used, restarts->maximum);
    } else {
        log_warning(story->log,
            "restarting the workers: restart %d, and %d of %d within %g s (--max-restarts, "
            "--restart-window)",
            restarts->used, restarts->counted, restarts->maximum,
            duration_seconds(restarts->window));
    }
}

/* What a worker's failure costs. */
static void tell_budget(
    const struct agent_story *story, const struct agent_event *event, enum agent_phase before) {
    const struct agent_machine *machine = story->machine;
    int allowed = story->config->max_restarts;
    bool has_window = machine->restarts.window.nanoseconds > 0;
    bool is_end =
        event->kind == AGENT_EVENT_WORKER_ENDING || event->kind == AGENT_EVENT_WORKER_EXITED;
    if (!is_end || before == machine->phase || machine->phase != AGENT_STOPPING ||
        machine->stop_reason == AGENT_STOP_CLEAN_UP) {
        return;
    }
    if (machine->stop_reason == AGENT_STOP_RESTART) {
        tell_restart(story);
        tell_pause(story);
        if (story->last_words != NULL) {
            last_words_expect(story->last_words, event->worker_exited.local_rank);
        }
        suggest_standby(story);
    } else if (allowed > 0 && !fruitless_attempts_are_enough(&machine->fruitless)) {
        log_error(story->log, "no restart is left of %d%s", allowed,
            has_window ? " within the time of --restart-window (--max-restarts)"
                       : " (--max-restarts)");
    }
}

static void tell_placement(const struct agent_story *story) {
    struct text lines = {0};
    job_story_describe_placement(story->config->role, story->placement, &lines);
    log_info(story->log, "%s", text_string(&lines));
    text_clear(&lines);
}

static void tell_workers(const struct agent_story *story) {
    const char *directory = agent_workers_log_directory(story->workers);
    struct text line = {0};
    text_append_format(&line, "[%s] ", story->config->role);
    if (story->voice->is_followers) {
        text_append_format(&line, "node %d of %d in round %lld (node 0, at %s, says the rest); ",
            story->placement->group_rank, story->placement->group_world_size,
            (long long)story->placement->round, story->placement->master_address);
    }
    text_append(&line, "the workers run:");
    for (int rank = 0; rank < story->preparation->worker_count; rank++) {
        text_append_format(&line, " %d (pid %lld)%s", story->placement->ranks.base_rank + rank,
            (long long)agent_workers_pid(story->workers, rank),
            rank + 1 < story->preparation->worker_count ? "," : "");
    }
    text_append_format(&line, "; logs: %s", directory == NULL ? "none" : directory);
    log_info(story->log, "%s", text_string(&line));
    text_clear(&line);
}

void agent_story_step(
    struct agent_story *story, const struct agent_event *event, enum agent_phase before) {
    if (story->log == NULL) {
        return;
    }
    enum agent_phase after = story->machine->phase;
    struct text line = {0};
    if (event->kind == AGENT_EVENT_WORKERS_STARTED && story->started.nanoseconds == 0) {
        story->started = event->now;
    }
    tell_budget(story, event, before);
    if (!is_told(story) || before == after) {
        return;
    }
    bool is_followers = story->voice->is_followers;
    if (before == AGENT_JOINING && after == AGENT_STARTING && !is_followers) {
        tell_placement(story);
    } else if (before == AGENT_STARTING && after == AGENT_RUNNING) {
        tell_workers(story);
    }
    if (job_story_describe_step(
            story->config, story->machine, event, before, is_followers, &line)) {
        log_info(story->log, "%s", text_string(&line));
    }
    text_clear(&line);
}
