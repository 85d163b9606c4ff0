/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/telling/status_text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "core/telling/node_groups.h"
#include "core/workers/signal_name.h"
#include "wire/telling/chronicle_json.h"

/* Of nodes; with more, those that stand equally are one line. */
#define FOLDED_ABOVE 24
#define RANGES_MAXIMUM 64
#define CLOCKS_SHOWN 4

#define COLOUR_GOOD "\x1b[32m"
#define COLOUR_BAD "\x1b[1;31m"
#define COLOUR_CHANGING "\x1b[33m"
#define COLOUR_END "\x1b[0m"

static const char *known(const char *text) {
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
                known(inquiry->agents.items[i].facts[JOB_FACT_NODE]));
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

static size_t count_foreign(const struct chronicle_status *status) {
    size_t count = 0;
    for (size_t i = 0; i < status->known_nodes; i++) {
        count += status->nodes[i].state == CHRONICLE_NODE_FOREIGN ? 1 : 0;
    }
    return count;
}

static void append_incompleteness(const struct chronicle_status *status, struct text *out) {
    size_t foreign = count_foreign(status);
    if (foreign == 1) {
        text_append(out, "; a node of torchrun's tells nothing");
    } else if (foreign > 1) {
        text_append_format(out, "; %zu nodes of torchrun's tell nothing", foreign);
    } else {
        text_append(out, "; not all of its nodes have told of themselves");
    }
}

static void append_head(const struct inquiry *inquiry, const struct status_shown *shown,
    const struct chronicle_status *status, struct text *out) {
    const char *colour = !shown->has_colour              ? ""
                         : status->state == JOB_RUNNING  ? COLOUR_GOOD
                         : status->state == JOB_TRAINING ? COLOUR_GOOD
                         : status->state == JOB_RECOVERING || status->state == JOB_HANGING
                             ? COLOUR_BAD
                             : COLOUR_CHANGING;
    text_append_format(out, "%s  %s%s%s",
        inquiry->is_of_host ? known(inquiry->seen.run_id) : inquiry->agents.items[0].run_id, colour,
        status->result != JOB_UNDECIDED && status->state == JOB_ENDED
            ? job_result_name(status->result)
            : job_state_name(status->state),
        shown->has_colour ? COLOUR_END : "");
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
    if (inquiry->is_of_host) {
        if (!inquiry->seen.is_complete && status->node_count > 0) {
            append_incompleteness(status, out);
        }
    } else if (count_answers(inquiry) < (size_t)status->node_count || status->node_count == 0) {
        text_append(out, "; seen from ");
        append_names(inquiry, out);
        text_append(out, " only");
    }
    text_append(out, "\n");
}

static void append_steps(const struct chronicle_status *status, struct text *out) {
    static const char *const units[] = {"", " (optimizer steps)", ""};
    if (status->step < 0) {
        return;
    }
    text_append_format(out, "  step %" PRId64, status->step);
    if (status->rate >= 0) {
        text_append_format(out, ", %.3g a second", status->rate);
    }
    text_append(out, units[status->source]);
    text_append(out, ", ");
    append_time((struct duration){status->now.nanoseconds - status->stepped.nanoseconds}, out);
    text_append(out, " ago\n");
}

/* While it hangs. */
static void append_hang(const struct chronicle_status *status, struct text *out) {
    if (status->state == JOB_HANGING && status->hung != NULL) {
        text_append_format(out, "  hang, on %s: %s\n", known(status->hung_node), status->hung);
    }
}

static void append_slow(const struct chronicle_status *status, struct text *out) {
    if (status->slow_at.nanoseconds > 0) {
        text_append_format(out,
            "  slow: rank %d was busy %.2f times as long a step as the others of its node, told ",
            status->slow_rank, status->slow_ratio);
        append_time((struct duration){status->now.nanoseconds - status->slow_at.nanoseconds}, out);
        text_append(out, " ago\n");
    }
}

/* A job that runs and tells of no steps. */
static void append_hint(const struct chronicle_status *status, struct text *out) {
    if (status->source == PROGRESS_NONE && status->state == JOB_RUNNING) {
        text_append(out,
            "  steps are not told; `muster run --progress auto`, or muster.progress.step in the "
            "program with it, has them told\n");
    }
}

static void append_share(struct duration time, const char *what, bool *is_first, struct text *out) {
    if (time.nanoseconds > 0) {
        text_append(out, *is_first ? " " : ", ");
        append_time(time, out);
        text_append_format(out, " %s", what);
        *is_first = false;
    }
}

/* Without steps it is not known whether the workers train, so that is no goodput. Where their
 * numbers are not known, neither is what was done again. */
static void append_account(const struct chronicle_status *status, struct text *out) {
    const struct chronicle_account *account = &status->account;
    double wall = duration_seconds(chronicle_status_wall(status));
    bool trains = status->source != PROGRESS_NONE;
    struct duration kept = {
        account->states[JOB_TRAINING].nanoseconds - account->redone.nanoseconds};
    double share = duration_seconds(trains ? kept : account->states[JOB_RUNNING]);
    bool is_first = true;
    text_append_format(out, "  %s %.1f %%%s:",
        !trains                 ? "running"
        : account->knows_redone ? "goodput"
                                : "goodput at most",
        wall > 0 ? 100 * share / wall : 0, trains ? "" : " of the time");
    append_share(kept, account->knows_redone ? "kept" : "training", &is_first, out);
    append_share(account->redone, "done again", &is_first, out);
    static const enum job_state states[] = {
        JOB_RUNNING, JOB_HANGING, JOB_RECOVERING, JOB_STARTING, JOB_WAITING, JOB_ENDING};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        append_share(account->states[states[i]], job_state_name(states[i]), &is_first, out);
    }
    text_append(out, "\n");
}

/* Entries of the last moment before it, and all events, went with the host. */
static void append_host_change(const struct chronicle_status *status, struct text *out) {
    if (status->host_changed.nanoseconds > 0) {
        text_append(out, "  before the host changed, ");
        append_time(
            (struct duration){status->now.nanoseconds - status->host_changed.nanoseconds}, out);
        text_append(out, status->has_past
                             ? " ago: the account and the recoveries are kept, events are not\n"
                             : " ago: known as far as the nodes have told it again\n");
    }
}

/* Times of entries are the host's, and right all the same; those of the nodes' files are not. */
static void append_clocks(const struct chronicle_status *status, struct text *out) {
    size_t count = 0;
    for (size_t i = 0; i < status->known_nodes; i++) {
        const struct chronicle_node *node = &status->nodes[i];
        int64_t offset = node->clock_offset.nanoseconds;
        if (offset == 0 || ++count > CLOCKS_SHOWN) {
            continue;
        }
        text_append_format(
            out, "%s%s is ", count == 1 ? "  clocks differ from the host's: " : ", ", node->name);
        append_time((struct duration){offset < 0 ? -offset : offset}, out);
        text_append(out, offset < 0 ? " behind" : " ahead");
    }
    if (count > CLOCKS_SHOWN) {
        text_append_format(out, " and %zu more", count - CLOCKS_SHOWN);
    }
    text_append(out, count > 0 ? "\n" : "");
}

static void append_log_dir(const struct inquiry *inquiry, struct text *out) {
    const char *log_dir = inquiry->is_of_host ? inquiry->seen.log_dir
                                              : inquiry->agents.items[0].facts[JOB_FACT_LOG_DIR];
    if (log_dir != NULL) {
        text_append_format(out, "logs: %s\n", log_dir);
    }
}

static void append_culprit(const struct chronicle_recovery *recovery, struct text *out) {
    if (recovery->rank >= 0) {
        text_append_format(out, "rank %d on %s: ", recovery->rank, known(recovery->node));
    }
    if (recovery->exit != INT_MIN && recovery->exit >= 0) {
        text_append_format(
            out, "exit code %d%s", recovery->exit, recovery->what != NULL ? ": " : "");
    } else if (recovery->exit != INT_MIN) {
        text_append_format(out, "signal %d (%s)%s", -recovery->exit,
            known(signal_name_from_number(-recovery->exit)), recovery->what != NULL ? ": " : "");
    }
    text_append(out, recovery->what != NULL ? recovery->what : "");
}

static void append_recovery(const struct chronicle_status *status,
    const struct chronicle_recovery *last, struct text *out) {
    struct duration sum = {0};
    bool is_last = last == &status->recoveries[status->recovery_count - 1];
    text_append_format(out, "  %s, from %s, ", is_last ? "last recovery" : "recovery",
        known(chronicle_cause_name(last->cause)));
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
        text_append_format(out, "%s %s%s ", i > RECOVERY_NOTICED ? "," : "",
            recovery_moment_name(moment), moment == RECOVERY_TRAINING ? " again" : "");
        append_time(phase, out);
        if (last->last[moment] != NULL && i > RECOVERY_NOTICED) {
            text_append_format(out, " (last %s)", last->last[moment]);
        }
    }
    text_append(out, last->is_over ? ": " : last->is_given_up ? "; given up after " : "; so far ");
    append_time(sum, out);
    if (last->redone_steps >= 0) {
        text_append_format(out, ", %" PRId64 " steps again", last->redone_steps);
    }
    text_append(out, last->is_charged ? ", and one restart\n" : "\n");
}

/* Nodes. */

static int compare_nodes(const void *left, const void *right) {
    const struct chronicle_node *one = *(const struct chronicle_node *const *)left;
    const struct chronicle_node *other = *(const struct chronicle_node *const *)right;
    return one->rank != other->rank ? (one->rank > other->rank) - (one->rank < other->rank)
                                    : strcmp(one->name, other->name);
}

static bool is_shown_node(const struct status_shown *shown, const struct chronicle_node *node) {
    return (shown->node == NULL || text_equals(node->name, shown->node)) &&
           (shown->rank < 0 || (node->first_rank >= 0 && shown->rank >= node->first_rank &&
                                   shown->rank < (int64_t)node->first_rank + node->workers));
}

/* The caller frees them. */
static const struct chronicle_node **sort_nodes(
    const struct chronicle_status *status, const struct status_shown *shown, size_t *out_count) {
    const struct chronicle_node **nodes =
        memory_allocate((status->known_nodes + 1) * sizeof(const struct chronicle_node *));
    size_t count = 0;
    for (size_t i = 0; i < status->known_nodes; i++) {
        if (is_shown_node(shown, &status->nodes[i])) {
            nodes[count++] = &status->nodes[i];
        }
    }
    if (count > 1) {
        qsort(nodes, count, sizeof(const struct chronicle_node *), compare_nodes);
    }
    *out_count = count;
    return nodes;
}

static void append_state(const struct status_shown *shown, enum chronicle_node_state state,
    int width, struct text *out) {
    bool runs = state == CHRONICLE_NODE_RUNNING || state == CHRONICLE_NODE_TRAINING;
    const char *colour = runs                             ? COLOUR_GOOD
                         : state == CHRONICLE_NODE_MISSED ? COLOUR_BAD
                                                          : COLOUR_CHANGING;
    text_append_format(out, "%s%-*s%s", shown->has_colour ? colour : "", width,
        chronicle_node_state_name(state), shown->has_colour ? COLOUR_END : "");
}

static void append_said(const struct chronicle_status *status, struct wall_time said,
    const char *before, struct text *out) {
    if (said.nanoseconds > 0) {
        text_append(out, before);
        append_time((struct duration){status->now.nanoseconds - said.nanoseconds}, out);
        text_append(out, " ago");
    }
}

static void append_node(const struct status_shown *shown, const struct chronicle_status *status,
    const struct chronicle_node *node, struct text *out) {
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
    text_append_format(out, "%-20s %-11s ", node->name, ranks);
    append_state(shown, node->state, 9, out);
    text_append_format(out, " %-13s %-7s ", failed, spares);
    append_said(status, node->said, "", out);
    text_append(out, node->said.nanoseconds > 0 ? "\n" : "-\n");
}

static void append_nodes(const struct status_shown *shown, const struct chronicle_status *status,
    const struct chronicle_node *const *nodes, size_t count, struct text *out) {
    text_append_format(out, "%-20s %-11s %-9s %-13s %-7s %s\n", "NODE", "RANKS", "STATE",
        "FAILED FIRST", "SPARES", "LAST NEWS");
    for (size_t i = 0; i < count; i++) {
        append_node(shown, status, nodes[i], out);
    }
}

static void append_note(
    const struct chronicle_status *status, const struct node_group *group, struct text *out) {
    struct text note = {0};
    if (group->is_mixed) {
        text_append(&note, "and other states");
    } else if (group->failed_first > 0) {
        text_append_format(&note,
            group->failed_first == 1 ? "failed first once" : "failed first %d times",
            group->failed_first);
    }
    if (group->state != CHRONICLE_NODE_RUNNING) {
        append_said(status, group->said, note.length > 0 ? ", last news " : "last news ", &note);
    }
    text_append_format(out, " %-36s ", text_string(&note));
    text_clear(&note);
}

/* Nodes that stand equally are one line. */
static void append_groups(
    const struct status_shown *shown, const struct chronicle_status *status, struct text *out) {
    struct node_groups groups;
    node_groups_make(status, &groups);
    text_append_format(out, "%5s  %-9s %-36s %s\n", "NODES", "STATE", "NOTE", "WHICH");
    for (size_t i = 0; i < groups.count; i++) {
        text_append_format(out, "%5zu  ", groups.groups[i].count);
        append_state(shown, groups.groups[i].state, 9, out);
        append_note(status, &groups.groups[i], out);
        node_groups_append_names(status, &groups.groups[i], RANGES_MAXIMUM, out);
        text_append(out, "\n");
    }
    node_groups_clear(&groups);
}

/* Ranks. */

static const struct chronicle_recovery *last_failure_of(
    const struct chronicle_status *status, int rank) {
    for (size_t i = status->recovery_count; i > 0; i--) {
        if (status->recoveries[i - 1].rank == rank) {
            return &status->recoveries[i - 1];
        }
    }
    return NULL;
}

static void append_ranks(const struct status_shown *shown, const struct chronicle_status *status,
    const struct chronicle_node *const *nodes, size_t count, struct text *out) {
    text_append_format(
        out, "%-6s %-5s %-20s %-9s %s\n", "RANK", "LOCAL", "NODE", "STATE", "FAILED LAST");
    for (size_t i = 0; i < count; i++) {
        for (int local = 0; nodes[i]->first_rank >= 0 && local < nodes[i]->workers; local++) {
            int rank = nodes[i]->first_rank + local;
            const struct chronicle_recovery *failure = last_failure_of(status, rank);
            if (shown->rank >= 0 && shown->rank != rank) {
                continue;
            }
            text_append_format(out, "%-6d %-5d %-20s ", rank, local, nodes[i]->name);
            append_state(shown, nodes[i]->state, 9, out);
            if (failure != NULL) {
                append_said(status, failure->moments[RECOVERY_FAILED], " ", out);
            }
            text_append(out, failure != NULL ? "\n" : " -\n");
        }
    }
}

static bool is_about(const struct chronicle_recovery *recovery, const struct status_shown *shown) {
    return shown->rank >= 0 ? recovery->rank == shown->rank
                            : text_equals(recovery->node, shown->node);
}

static void append_recoveries_of(
    const struct status_shown *shown, const struct chronicle_status *status, struct text *out) {
    for (size_t i = 0; i < status->recovery_count; i++) {
        if (is_about(&status->recoveries[i], shown)) {
            append_recovery(status, &status->recoveries[i], out);
        }
    }
}

static void append_exclusion(const struct chronicle_status *status, struct text *out) {
    const struct chronicle_exclusion *last = &status->excluded;
    if (status->kept.node != NULL) {
        text_append_format(out, "  %s\n", known(status->kept.reason));
    }
    if (status->excluded_count == 0) {
        return;
    }
    if (status->excluded_count > 1) {
        text_append_format(out, "  %d nodes stay out; the last is ", status->excluded_count);
    } else {
        text_append(out, "  a node stays out: ");
    }
    text_append_format(out, "%s, since ", known(last->node));
    append_time((struct duration){status->now.nanoseconds - last->at.nanoseconds}, out);
    text_append_format(out, ": %s\n", known(last->reason));
}

bool status_text_append(const struct inquiry *inquiry, const struct status_shown *shown,
    const struct chronicle_status *status, struct text *out) {
    size_t count;
    const struct chronicle_node **nodes = sort_nodes(status, shown, &count);
    bool is_one = shown->node != NULL || shown->rank >= 0;
    append_head(inquiry, shown, status, out);
    if (status->max_restarts >= 0) {
        text_append_format(out, "  restarts %d of %d\n", status->restarts, status->max_restarts);
    }
    append_exclusion(status, out);
    append_steps(status, out);
    append_hang(status, out);
    append_account(status, out);
    append_hint(status, out);
    append_slow(status, out);
    append_host_change(status, out);
    append_clocks(status, out);
    if (is_one) {
        append_recoveries_of(shown, status, out);
    } else if (status->recovery_count > 0) {
        append_recovery(status, &status->recoveries[status->recovery_count - 1], out);
    }
    if (shown->has_ranks || shown->rank >= 0) {
        append_ranks(shown, status, nodes, count, out);
    } else if (count > FOLDED_ABOVE && !shown->has_nodes) {
        append_groups(shown, status, out);
    } else {
        append_nodes(shown, status, nodes, count, out);
    }
    append_log_dir(inquiry, out);
    free(nodes);
    return count > 0 || !is_one;
}

/* As a terminal shows it. */

/* Those that take two columns have at least three bytes; so what is cut has room in any case. */
static int columns_of(size_t length) {
    return length >= 3 ? 2 : 1;
}

static size_t length_of_escape(const char *text) {
    const char *end = *text == '\x1b' ? strchr(text, 'm') : NULL;
    return end != NULL ? (size_t)(end - text) + 1 : 0;
}

/* Appends one line's part that has room, with its colours; its end is at the result. */
static const char *append_fit(const char *line, int columns, struct text *out) {
    int used = 0;
    while (*line != '\0' && *line != '\n') {
        size_t escape = length_of_escape(line);
        size_t length =
            escape > 0 ? escape : utf8_character_length((const uint8_t *)line, strlen(line));
        length = length > 0 ? length : 1;
        used += escape > 0 ? 0 : columns_of(length);
        if (used <= columns || escape > 0) {
            text_append_bytes(out, line, length);
        }
        line += length;
    }
    return line;
}

void status_text_fit(const char *text, int columns, int rows, struct text *out) {
    for (int row = 0; *text != '\0' && row < rows; row++) {
        text = append_fit(text, columns, out);
        text_append(out, "\n");
        text += *text == '\n' ? 1 : 0;
    }
}

void status_text_append_json(const struct inquiry *inquiry, const struct chronicle_status *status,
    bool has_nodes, struct text *out) {
    if (inquiry->is_of_host) {
        const struct chronicle_view view = {.run_id = inquiry->seen.run_id,
            .log_dir = inquiry->seen.log_dir,
            .host = inquiry->seen.host,
            .has_groups = true,
            .has_nodes = has_nodes};
        chronicle_json_write_status(status, &view, out);
        return;
    }
    const struct job_announcement *job = &inquiry->agents.items[0];
    struct text_list seen_from = {0};
    for (size_t i = 0; i < inquiry->agents.count; i++) {
        if (inquiry->answers[i]) {
            text_list_add(&seen_from, known(inquiry->agents.items[i].facts[JOB_FACT_NODE]));
        }
    }
    const struct chronicle_view view = {.run_id = job->run_id,
        .log_dir = job->facts[JOB_FACT_LOG_DIR],
        .slurm_job = job->facts[JOB_FACT_SLURM_JOB],
        .seen_from = &seen_from,
        .has_groups = true,
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
