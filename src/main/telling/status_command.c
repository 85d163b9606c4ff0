/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/telling/status_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "host/loop/clock.h"
#include "main/command_family.h"
#include "main/exit_status.h"
#include "main/telling/job_inquiry.h"
#include "main/telling/status_text.h"
#include "options/argparse/option_parser.h"
#include "wire/telling/chronicle_json.h"

#define EXIT_NOT_RUNNING 3
#define EXIT_ENDED_BADLY 4
#define FOLLOW_MILLISECONDS 500

static int status_of(const struct chronicle_status *status) {
    if (status->state == JOB_ENDED) {
        return status->result == JOB_SUCCEEDED ? EXIT_SUCCESS : EXIT_ENDED_BADLY;
    }
    return status->state == JOB_RUNNING ? EXIT_SUCCESS : EXIT_NOT_RUNNING;
}

/* The commands. */

static const struct option_definition status_definitions[] = {
    OPTION_DEFINITION_HELP,
    {.destination = "json",
        .names = {"--json"},
        .kind = OPTION_FLAG,
        .help = "Print one JSON object (muster.status/1)."},
    {.destination = "nodes",
        .names = {"--nodes"},
        .kind = OPTION_FLAG,
        .help = "With --json: the nodes one by one, too."},
    {.destination = "job",
        .arity = OPTION_ARITY_OPTIONAL,
        .help = "The job's --rdzv-id, where several jobs run here."},
};

static const struct option_table status_table = {
    .description =
        "Show how a job stands that has an agent on this machine: its state, its nodes, its last "
        "recovery, and where the time went, as the agents here know it. Exit status: 0 it runs, or "
        "has succeeded; 3 it does not run now; 4 it has ended badly; 1 nobody could be asked; 2 "
        "several jobs run here.",
    .definitions = status_definitions,
    .definition_count = sizeof status_definitions / sizeof *status_definitions,
};

static bool begin(struct inquiry *inquiry, const struct option_table *table,
    const struct text_list *arguments, const struct text_list *environment,
    struct option_result *result, int *out_status) {
    struct failure failure = {0};
    option_parse(table, inquiry->program, arguments, environment, result);
    if (result->outcome != OPTION_OUTCOME_VALUES) {
        *out_status = command_print(result);
        return false;
    }
    *out_status = job_inquiry_find(inquiry, option_result_value(result, "job")->text, environment);
    if (*out_status == EXIT_SUCCESS && !job_inquiry_ask(inquiry, &failure)) {
        fprintf(stderr, "%s: error: no agent of the job answers: %s\n", inquiry->program,
            failure.message);
        *out_status = EXIT_FAILURE;
    }
    return *out_status == EXIT_SUCCESS;
}

static int show_status(const struct inquiry *inquiry, const struct option_result *result) {
    struct chronicle_status status = {0};
    struct text out = {0};
    for (size_t i = 0; i < inquiry->count; i++) {
        chronicle_status_take(&status, &inquiry->entries[i].entry);
    }
    chronicle_status_advance(&status, clock_wall_time());
    if (option_result_value(result, "json")->flag) {
        status_text_append_json(inquiry, &status, option_result_value(result, "nodes")->flag, &out);
    } else {
        status_text_append(inquiry, &status, &out);
    }
    fputs(text_string(&out), stdout);
    int code = fflush(stdout) == 0 ? status_of(&status) : EXIT_FAILURE;
    text_clear(&out);
    chronicle_status_clear(&status);
    return code;
}

int status_command(const struct text_list *arguments, const struct text_list *environment) {
    struct inquiry inquiry = {.program = "muster status", .patience = duration_from_seconds(10)};
    struct option_result result;
    int code;
    if (begin(&inquiry, &status_table, arguments, environment, &result, &code)) {
        code = show_status(&inquiry, &result);
    }
    option_result_clear(&result);
    job_inquiry_clear(&inquiry);
    return code;
}

/* Events. */

static const struct option_definition events_definitions[] = {
    OPTION_DEFINITION_HELP,
    {.destination = "follow",
        .names = {"--follow"},
        .kind = OPTION_FLAG,
        .help = "Go on with what happens from now on, until the job has no agent here any more."},
    {.destination = "json",
        .names = {"--json"},
        .kind = OPTION_FLAG,
        .help = "Print each as one JSON object (muster.event/1)."},
    {.destination = "kind",
        .names = {"--kind"},
        .kind = OPTION_COMMA_LIST,
        .help = "Only these kinds, between commas, as worker_failed,node_lost."},
    {.destination = "node", .names = {"--node"}, .help = "Only those of this node."},
    {.destination = "job",
        .arity = OPTION_ARITY_OPTIONAL,
        .help = "The job's --rdzv-id, where several jobs run here."},
};

static const struct option_table events_table = {
    .description =
        "Show what has happened to a job that has an agent on this machine, as the agents here "
        "know it: of each the last 1,024 entries. The files events.jsonl beside the logs have "
        "all.",
    .definitions = events_definitions,
    .definition_count = sizeof events_definitions / sizeof *events_definitions,
};

static bool is_wanted(const struct chronicle_entry *entry, const struct option_result *result) {
    const char *node = option_result_value(result, "node")->text;
    const struct option_value *kinds = option_result_value(result, "kind");
    bool is_kind = !kinds->is_set || kinds->list.count == 0;
    for (size_t i = 0; i < kinds->list.count && !is_kind; i++) {
        is_kind = text_equals(kinds->list.items[i], chronicle_kind_name(entry->kind));
    }
    return is_kind && (node == NULL || text_equals(node, entry->node));
}

static bool show_entries(struct inquiry *inquiry, const struct option_result *result) {
    struct text out = {0};
    for (size_t i = 0; i < inquiry->count; i++) {
        const struct chronicle_entry *entry = &inquiry->entries[i].entry;
        if (is_wanted(entry, result) && option_result_value(result, "json")->flag) {
            chronicle_json_write_entry(entry, &out);
        } else if (is_wanted(entry, result)) {
            status_text_append_entry(entry, &out);
        }
    }
    job_inquiry_drop_entries(inquiry);
    fputs(text_string(&out), stdout);
    text_clear(&out);
    return fflush(stdout) == 0;
}

static bool check_kinds(struct option_result *result) {
    const struct option_value *kinds = option_result_value(result, "kind");
    for (size_t i = 0; i < kinds->list.count; i++) {
        if (chronicle_kind_from_name(kinds->list.items[i]) == CHRONICLE_KIND_COUNT) {
            option_result_reject(result, "kind", "unknown kind: '%s' (as worker_failed, node_lost)",
                kinds->list.items[i]);
            return false;
        }
    }
    return true;
}

int events_command(const struct text_list *arguments, const struct text_list *environment) {
    const struct timespec pause = {.tv_nsec = FOLLOW_MILLISECONDS * NANOSECONDS_PER_MILLISECOND};
    struct inquiry inquiry = {.program = "muster events", .patience = duration_from_seconds(10)};
    struct option_result result;
    int code;
    if (begin(&inquiry, &events_table, arguments, environment, &result, &code) &&
        !check_kinds(&result)) {
        code = command_print(&result);
    } else if (code == EXIT_SUCCESS && result.outcome == OPTION_OUTCOME_VALUES) {
        bool is_written = show_entries(&inquiry, &result);
        while (is_written && option_result_value(&result, "follow")->flag &&
               nanosleep(&pause, NULL) == 0 && job_inquiry_ask(&inquiry, NULL)) {
            is_written = show_entries(&inquiry, &result);
        }
        if (is_written && option_result_value(&result, "follow")->flag) {
            job_inquiry_read_rest(&inquiry);
            is_written = show_entries(&inquiry, &result);
        }
        code = is_written ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    option_result_clear(&result);
    job_inquiry_clear(&inquiry);
    return code;
}
