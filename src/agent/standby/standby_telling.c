/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/standby/standby_telling.h"

#include "base/text.h"

#define BYTES_PER_MIB (1024.0 * 1024.0)
#define BYTES_PER_GIB (1024.0 * BYTES_PER_MIB)

static void add_part(struct text *line, int count, const char *one, const char *several) {
    if (count > 0) {
        text_append_format(line, ", %d %s", count, count == 1 ? one : several);
    }
}

static void tell_ready(const struct log *log, const struct standby_effect *effect) {
    double bytes = (double)effect->told.bytes;
    bool is_large = bytes >= BYTES_PER_GIB;
    struct text line = {0};
    add_part(
        &line, effect->told.at_line, "at the line of its program", "at the line of their program");
    log_info(log, "standby workers ready: %d of %d, %.1f %s%s", effect->told.count,
        effect->told.total, bytes / (is_large ? BYTES_PER_GIB : BYTES_PER_MIB),
        is_large ? "GiB" : "MiB", text_string(&line));
    text_clear(&line);
}

static void tell_awaited(const struct log *log, const struct launch_config *config,
    const struct standby_awaited *awaited) {
    struct text line = {0};
    add_part(&line, awaited->importing, "is importing", "are importing");
    if (awaited->importing > 0 && config->standby_rest > 0) {
        text_append(&line, " (they rest while workers want the CPU: --standby-rest)");
    }
    if (awaited->unbegun > 0) {
        text_append_format(&line,
            ", %d %s until no worker has imported anything for %g s (--standby-after)",
            awaited->unbegun, awaited->unbegun == 1 ? "waits" : "wait",
            duration_seconds(config->standby_after));
    }
    add_part(&line, awaited->ended, "has ended and is made anew later",
        "have ended and are made anew later");
    log_info(log, "standby workers: %d of %d ready%s", awaited->ready, awaited->total,
        text_string(&line));
    text_clear(&line);
}

static const char *const cold_words[STANDBY_COLD_COUNT] = {
    [STANDBY_COLD_NONE] = "none yet: workers were not quiet",
    [STANDBY_COLD_SILENT] = "none: no worker has reached the hook",
    [STANDBY_COLD_SCARCE] = "none: memory or processes are short",
    [STANDBY_COLD_DUE] = "none yet: they import one at a time",
    [STANDBY_COLD_IMPORTING] = "importing",
    [STANDBY_COLD_LEARNING] = "learning",
    [STANDBY_COLD_ENDED] = "ended",
    [STANDBY_COLD_REFUSED] = "refused",
    [STANDBY_COLD_OFF] = "none any more",
};

/* Ranks that are beside each other and cold for the same reason are one part of the line. Returns
 * the rank after them. */
static int add_cold(struct text *line, const struct standby_effect *effect, int first) {
    const enum standby_cold *cold = effect->told.cold;
    int end = first + 1;
    while (end < effect->told.total && cold[end] == cold[first]) {
        end++;
    }
    if (cold[first] != STANDBY_COLD_NOT) {
        text_append_format(line, "%s%d", line->length == 0 ? "; cold: local rank " : ", ", first);
        if (end - first > 1) {
            text_append_format(line, "-%d", end - 1);
        }
        text_append_format(line, " (%s)", cold_words[cold[first]]);
    }
    return end;
}

static void tell_used(const struct log *log, const struct standby_effect *effect) {
    struct text line = {0};
    for (int rank = 0; effect->told.cold != NULL && rank < effect->told.total;) {
        rank = add_cold(&line, effect, rank);
    }
    log_info(log, "started from standby: %d of %d workers%s", effect->told.count,
        effect->told.total, text_string(&line));
    text_clear(&line);
}

enum log_level standby_level_of_none(const struct launch_config *config) {
    return config->standby == LAUNCH_STANDBY_AUTO ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING;
}

static void tell_off(const struct log *log, const struct launch_config *config,
    const struct standby_effect *effect) {
    enum log_level level = standby_level_of_none(config);
    static const char consequence[] = "there are no standby workers in this job from now on";
    struct process_exit how = effect->off.exit;
    int rank = effect->off.local_rank;
    switch (effect->off.why) {
    case STANDBY_OFF_UNSUITED:
        log_record(log, level, LOG_ORIGIN,
            "what nobody may import before the program runs cannot be left out of what standby "
            "workers import; %s",
            consequence);
        break;
    case STANDBY_OFF_LATE:
        log_record(log, level, LOG_ORIGIN,
            "the standby worker of local rank %d did not reach its hook within %d s; %s", rank,
            STANDBY_WARMING_SECONDS, consequence);
        break;
    case STANDBY_OFF_ENDED:
        log_record(log, level, LOG_ORIGIN,
            "the standby worker of local rank %d ended with status %d before it was ready; %s",
            rank, how.value, consequence);
        break;
    case STANDBY_OFF_DEATHS:
        log_record(log, level, LOG_ORIGIN, "%d standby workers have ended, the last by %s %d; %s",
            STANDBY_DEATHS_MAXIMUM, how.is_signal ? "signal" : "exit status", how.value,
            consequence);
        break;
    case STANDBY_OFF_DIRTY: /* it has said so itself */
    case STANDBY_OFF_NONE:
    case STANDBY_OFF_COUNT:
        break;
    }
}

void standby_tell(const struct log *log, const struct launch_config *config,
    const struct standby_effect *effect) {
    switch (effect->kind) {
    case STANDBY_EFFECT_TELL_READY:
        tell_ready(log, effect);
        break;
    case STANDBY_EFFECT_TELL_TAUGHT:
        log_info(log, "standby workers have imported what workers did since: %d of %d",
            effect->told.count, effect->told.total);
        break;
    case STANDBY_EFFECT_TELL_USED:
        tell_used(log, effect);
        break;
    case STANDBY_EFFECT_TELL_AWAITED:
        tell_awaited(log, config, &effect->awaited);
        break;
    case STANDBY_EFFECT_TELL_OFF:
        tell_off(log, config, effect);
        break;
    case STANDBY_EFFECT_TELL_SCARCE:
        log_info(log,
            "--standby auto: there are no standby workers while they would take more "
            "than 1/%d of the memory that is available, or less than half of the processes of a "
            "cgroup are left (pids.max)",
            STANDBY_MEMORY_PART);
        break;
    case STANDBY_EFFECT_TELL_SILENT:
        log_record(log, standby_level_of_none(config), LOG_ORIGIN,
            "there are no standby workers: no worker has reached their hook. It is "
            "not reached where Python is started with -I, -E or -S, or by a program "
            "that clears the environment or runs it in another container");
        break;
    case STANDBY_EFFECT_WARM:
    case STANDBY_EFFECT_TEACH:
    case STANDBY_EFFECT_END_SPARE:
    case STANDBY_EFFECT_END_ALL:
    case STANDBY_EFFECT_LOOK:
    case STANDBY_EFFECT_ARM_TIMER:
    case STANDBY_EFFECT_PUBLISH:
    case STANDBY_EFFECT_WARMED:
    case STANDBY_EFFECT_DISARM_TIMER:
    case STANDBY_EFFECT_COUNT:
        break;
    }
}

void standby_tell_choice(
    const struct log *log, enum standby_choice choice, int worker_count, int cpu_count) {
    switch (choice) {
    case STANDBY_CHOICE_NO_RESTART:
        log_info(log, "there are no standby workers: with --max-restarts 0 and a fixed number of "
                      "nodes the workers are never started again");
        break;
    case STANDBY_CHOICE_NO_PYTHON:
        log_info(log, "--standby auto: there are no standby workers, since the program is not "
                      "Python; --standby on makes them if it calls muster_standby_wait()");
        break;
    case STANDBY_CHOICE_FEW_CPUS:
        log_info(log,
            "--standby auto: there are no standby workers, since %d worker(s) on %d CPU(s) leave "
            "less than two CPUs for each; --standby on makes them all the same",
            worker_count, cpu_count);
        break;
    case STANDBY_CHOICE_WANTED:
    case STANDBY_CHOICE_OFF:
        break;
    }
}

void standby_tell_dirty(
    const struct log *log, const struct launch_config *config, int local_rank, const char *reason) {
    log_record(log, standby_level_of_none(config), LOG_ORIGIN,
        "the standby worker of local rank %d would not be what a worker is: %s; there are no "
        "standby workers in this job from now on",
        local_rank, reason);
}

void standby_tell_separate(const struct log *log, const char *reason) {
    log_info(log,
        "each standby worker imports by itself, since one parent cannot fork them: %s "
        "(--standby-parent)",
        reason);
}

void standby_tell_outdated(const struct log *log, int local_rank, const char *reason) {
    log_info(log,
        "the standby worker of local rank %d is out of date: %s; the worker is started anew",
        local_rank, reason);
}

void standby_tell_unsuited(
    const struct log *log, int local_rank, const char *reason, size_t count) {
    log_info(log,
        "the standby worker of local rank %d would not be what a worker is: %s; %zu module(s) wait "
        "for the program from now on: that one, and what imports it",
        local_rank, reason, count);
}
