/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/telling/status_text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/workers/signal_name.h"
#include "wire/telling/chronicle_json.h"

static const char *shown(const char *text) {
    return text != NULL ? text : "-";
}

/* In words. */

static void append_time(struct duration time, struct text *out) {
    double seconds = duration_seconds(time);
    int64_t whole = time.nanoseconds / NANOSECONDS_PER_SECOND;
    if (seconds < 1) {
        text_append_format(out, "%.*f ms", seconds < 0.01 ? 1 : 0, seconds * 1000);
    } else if (seconds < 60) {
        text_append_format(out, "%.*f s", seconds < 10 ? 2 : 0, seconds);
    } else if (whole < 3600) {
        text_append_format(out, "%" PRId64 " min %" PRId64 " s", whole / 60, whole % 60);
    } else {
        text_append_format(out, "%" PRId64 " h %" PRId64 " min", whole / 3600, whole % 3600 / 60);
    }
}

static void append_names(const struct inquiry *inquiry, struct text *out) {
    bool is_first = true;
    for (size_t i = 0; i < inquiry->agents.count; i++) {
        if (inquiry->answers[i]) {
            text_append_format(out, "%s%s", is_first ? "" : ", ",
                shown(inquiry->agents.items[i].facts[JOB_FACT_NODE]));
            is_first = false;
        }
    }
}

static size_t count_answers(const struct inquiry *inquiry) {
    size_t count = 0;
    for (size_t i = 0; i < inquiry->agents.count; i++) {
        count += inquiry->answers[i] ? 1 : 0;
    }
    return count;
}

static void append_head(
    const struct inquiry *inquiry, const struct chronicle_status *status, struct text *out) {
    text_append_format(out, "%s  %s", inquiry->agents.items[0].run_id,
        status->result != JOB_UNDECIDED && status->state == JOB_ENDED
            ? job_result_name(status->result)
            : job_state_name(status->state));
    if (status->node_count > 0) {
        text_append_format(out, "  round %" PRId64 ", %d of %d nodes (%d:%d), %d workers",
            status->round, status->node_count, status->maximum_nodes, status->minimum_nodes,
            status->maximum_nodes, status->worker_count);
    } else {
        text_append(out, "  ");
        if (status->here >= 0) {
            text_append_format(out, "%d of ", status->here);
        }
        text_append_format(out, "%d:%d nodes", status->minimum_nodes, status->maximum_nodes);
    }
    text_append(out, ", for ");
    append_time((struct duration){status->now.nanoseconds - status->since.nanoseconds}, out);
    if (count_answers(inquiry) < (size_t)status->node_count || status->node_count == 0) {
        text_append(out, "; seen from ");
        append_names(inquiry, out);
        text_append(out, " only");
    }
    text_append(out, "\n");
}

/* Without steps it is not known whether the workers train, so this is no goodput. */
static void append_account(const struct chronicle_status *status, struct text *out) {
    double wall = duration_seconds(chronicle_status_wall(status));
    double running = duration_seconds(status->account.states[JOB_RUNNING]);
    bool is_first = true;
    text_append_format(out, "  running %.1f %% of the time:", wall > 0 ? 100 * running / wall : 0);
    static const enum job_state states[] = {
        JOB_RUNNING, JOB_RECOVERING, JOB_STARTING, JOB_WAITING, JOB_ENDING};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct duration time = status->account.states[states[i]];
        if (time.nanoseconds > 0) {
            text_append(out, is_first ? " " : ", ");
            append_time(time, out);
            text_append_format(out, " %s", job_state_name(states[i]));
            is_first = false;
        }
    }
    text_append(out, "\n");
}

static void append_culprit(const struct chronicle_recovery *recovery, struct text *out) {
    if (recovery->rank >= 0) {
        text_append_format(out, "rank %d on %s: ", recovery->rank, shown(recovery->node));
    }
    if (recovery->exit != INT_MIN && recovery->exit >= 0) {
        text_append_format(
            out, "exit code %d%s", recovery->exit, recovery->what != NULL ? ": " : "");
    } else if (recovery->exit != INT_MIN) {
        text_append_format(out, "signal %d (%s)%s", -recovery->exit,
            shown(signal_name_from_number(-recovery->exit)), recovery->what != NULL ? ": " : "");
    }
    text_append(out, recovery->what != NULL ? recovery->what : "");
}

static void append_recovery(const struct chronicle_status *status, struct text *out) {
    if (status->recovery_count == 0) {
        return;
    }
    const struct chronicle_recovery *last = &status->recoveries[status->recovery_count - 1];
    struct duration sum = {0};
    text_append_format(out, "  last recovery, from %s, ", shown(chronicle_cause_name(last->cause)));
    append_time(
        (struct duration){status->now.nanoseconds - last->moments[RECOVERY_FAILED].nanoseconds},
        out);
    text_append(out, " ago: ");
    append_culprit(last, out);
    text_append(out, "\n   ");
    for (int i = RECOVERY_NOTICED; i < RECOVERY_MOMENT_COUNT; i++) {
        enum recovery_moment moment = (enum recovery_moment)i;
        struct duration phase = chronicle_recovery_phase(last, moment);
        if (last->moments[moment].nanoseconds == 0) {
            continue;
        }
        sum.nanoseconds += phase.nanoseconds;
        text_append_format(
            out, "%s %s ", i > RECOVERY_NOTICED ? "," : "", recovery_moment_name(moment));
        append_time(phase, out);
        if (last->last[moment] >= 0 && i > RECOVERY_NOTICED) {
            text_append_format(out, " (last %s)", status->nodes[last->last[moment]].name);
        }
    }
    text_append(out, last->is_over ? ": " : last->is_given_up ? "; given up after " : "; so far ");
    append_time(sum, out);
    text_append(out, last->is_charged ? ", and one restart\n" : "\n");
}

static int compare_nodes(const void *left, const void *right) {
    const struct chronicle_node *one = left;
    const struct chronicle_node *other = right;
    return one->rank != other->rank ? (one->rank > other->rank) - (one->rank < other->rank)
                                    : strcmp(one->name, other->name);
}

static void append_node(
    const struct chronicle_status *status, const struct chronicle_node *node, struct text *out) {
    char ranks[32] = "-";
    char failed[32] = "-";
    char spares[16] = "-";
    if (node->first_rank >= 0 && node->workers > 0) {
        snprintf(
            ranks, sizeof ranks, "%d-%d", node->first_rank, node->first_rank + node->workers - 1);
    }
    if (node->failed_first > 0) {
        snprintf(failed, sizeof failed, node->failed_first == 1 ? "once" : "%d times",
            node->failed_first);
    }
    if (node->spares_ready >= 0) {
        snprintf(spares, sizeof spares, "%d", node->spares_ready);
    }
    text_append_format(out, "%-20s %-11s %-9s %-13s %-7s ", node->name, ranks,
        chronicle_node_state_name(node->state), failed, spares);
    if (node->said.nanoseconds > 0) {
        append_time((struct duration){status->now.nanoseconds - node->said.nanoseconds}, out);
        text_append(out, " ago");
    } else {
        text_append(out, "-");
    }
    text_append(out, "\n");
}

void status_text_append(
    const struct inquiry *inquiry, struct chronicle_status *status, struct text *out) {
    append_head(inquiry, status, out);
    if (status->max_restarts >= 0) {
        text_append_format(out, "  restarts %d of %d\n", status->restarts, status->max_restarts);
    }
    append_account(status, out);
    append_recovery(status, out);
    if (status->known_nodes > 1) {
        qsort(status->nodes, status->known_nodes, sizeof *status->nodes, compare_nodes);
    }
    text_append_format(out, "%-20s %-11s %-9s %-13s %-7s %s\n", "NODE", "RANKS", "STATE",
        "FAILED FIRST", "SPARES", "LAST NEWS");
    for (size_t i = 0; i < status->known_nodes; i++) {
        append_node(status, &status->nodes[i], out);
    }
    const char *log_dir = inquiry->agents.items[0].facts[JOB_FACT_LOG_DIR];
    if (log_dir != NULL) {
        text_append_format(out, "logs: %s\n", log_dir);
    }
}

void status_text_append_json(const struct inquiry *inquiry, const struct chronicle_status *status,
    bool has_nodes, struct text *out) {
    const struct job_announcement *job = &inquiry->agents.items[0];
    struct text_list seen_from = {0};
    for (size_t i = 0; i < inquiry->agents.count; i++) {
        if (inquiry->answers[i]) {
            text_list_add(&seen_from, shown(inquiry->agents.items[i].facts[JOB_FACT_NODE]));
        }
    }
    const struct chronicle_view view = {.run_id = job->run_id,
        .log_dir = job->facts[JOB_FACT_LOG_DIR],
        .slurm_job = job->facts[JOB_FACT_SLURM_JOB],
        .seen_from = &seen_from,
        .has_nodes = has_nodes};
    chronicle_json_write_status(status, &view, out);
    text_list_clear(&seen_from);
}

/* Entries. */

static void append_value(const struct chronicle_value *value, struct text *out) {
    const char *name = chronicle_field_name(value->field);
    switch (chronicle_field_type(value->field)) {
    case CHRONICLE_INTEGER:
        text_append_format(out, " %s=%" PRId64, name, value->number);
        break;
    case CHRONICLE_FLAG:
        text_append_format(
            out, "%s%s", value->number != 0 ? " " : "", value->number != 0 ? name : "");
        break;
    case CHRONICLE_SECONDS:
        text_append_format(out, " %s=", name);
        append_time((struct duration){value->number}, out);
        break;
    case CHRONICLE_RATE_TYPE:
        text_append_format(out, " %s=%g", name, value->rate);
        break;
    case CHRONICLE_TEXT_TYPE:
        text_append_format(out, " %s=\"%s\"", name, value->text);
        break;
    }
}

void status_text_append_entry(const struct chronicle_entry *entry, struct text *out) {
    char date[32] = "";
    time_t seconds = (time_t)(entry->time.nanoseconds / NANOSECONDS_PER_SECOND);
    struct tm parts;
    if (localtime_r(&seconds, &parts) != NULL) {
        strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &parts);
    }
    text_append_format(out, "%s.%03d %s %s", date,
        (int)(entry->time.nanoseconds % NANOSECONDS_PER_SECOND / NANOSECONDS_PER_MILLISECOND),
        entry->node, chronicle_kind_name(entry->kind));
    for (int i = 0; i < entry->value_count; i++) {
        append_value(&entry->values[i], out);
    }
    text_append(out, "\n");
}
