/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/telling/report_command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/clock.h"
#include "main/command.h"
#include "main/telling/job_report.h"
#include "main/telling/report_files.h"
#include "main/telling/status_command.h"
#include "main/telling/status_text.h"
#include "options/argparse/option_parser.h"
#include "wire/telling/chronicle_json.h"

static const struct option_definition definitions[] = {
    OPTION_DEFINITION_HELP,
    {.destination = "html",
        .names = {"--html"},
        .kind = OPTION_FLAG,
        .help = "Print a page with everything inside, which opens from disk. The default."},
    {.destination = "json",
        .names = {"--json"},
        .kind = OPTION_FLAG,
        .help = "Print one JSON object (muster.status/1), with recoveries and nodes."},
    {.destination = "trace",
        .names = {"--trace"},
        .kind = OPTION_FLAG,
        .help = "Print a trace for Perfetto (ui.perfetto.dev) or chrome://tracing."},
    JOB_ENDPOINT_OPTION_DEFINITIONS,
    {.destination = "source",
        .arity = OPTION_ARITY_ANY,
        .help = "Files events.jsonl of the job's nodes, or the --rdzv-id of a job that has an "
                "agent here. Default: the job that there is."},
};

static const struct option_table table = {
    .description = "Report what has become of a job: from the files events.jsonl that its agents "
                   "have written beside their logs, of one node or of many, or from a job that "
                   "runs. Nothing of the job changes by that.",
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof *definitions,
};

static bool is_file(const char *name) {
    struct stat about;
    return strchr(name, '/') != NULL || stat(name, &about) == 0;
}

/* False: the options contradict each other. */
static bool check(struct option_result *result) {
    const struct text_list *sources = &option_result_value(result, "source")->list;
    int forms = (option_result_value(result, "html")->flag ? 1 : 0) +
                (option_result_value(result, "json")->flag ? 1 : 0) +
                (option_result_value(result, "trace")->flag ? 1 : 0);
    if (forms > 1) {
        option_result_reject(result, "html", "only one of --html, --json and --trace can be made");
        return false;
    }
    for (size_t i = 0; i < sources->count && sources->count > 1; i++) {
        if (!is_file(sources->items[i])) {
            option_result_reject(result, "source",
                "there is no file '%s' (expected files, or the name of one job)",
                sources->items[i]);
            return false;
        }
    }
    return true;
}

static void append_form(
    const struct job_report *report, const struct option_result *result, struct text *out) {
    if (option_result_value(result, "json")->flag) {
        text_append(out, report->status_json);
    } else if (option_result_value(result, "trace")->flag) {
        job_report_append_trace(report, out);
    } else {
        job_report_append_page(report, out);
    }
}

static int print(const struct inquiry *inquiry, struct chronicle_status *status,
    const struct text *json, const struct option_result *result) {
    struct text out = {0};
    const struct job_report report = {
        .inquiry = inquiry, .status = status, .status_json = text_string(json)};
    append_form(&report, result, &out);
    bool is_written =
        fwrite(text_string(&out), 1, out.length, stdout) == out.length && fflush(stdout) == 0;
    if (!is_written) {
        fprintf(
            stderr, "%s: error: cannot write the report: %s\n", inquiry->program, strerror(errno));
    }
    text_clear(&out);
    return is_written ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int report_files(struct inquiry *inquiry, const struct option_result *result) {
    struct chronicle_status status = {0};
    struct text_list nodes = {0};
    struct text json = {0};
    struct failure failure = {0};
    int code = EXIT_FAILURE;
    const struct text_list *sources = &option_result_value(result, "source")->list;
    if (report_files_read(inquiry, sources, &nodes, &failure) != FAILURE_NONE) {
        fprintf(stderr, "%s: error: %s\n", inquiry->program, failure.message);
    } else {
        for (size_t i = 0; i < inquiry->count; i++) {
            chronicle_status_take(&status, &inquiry->entries[i].entry);
        }
        const struct chronicle_view view = {.seen_from = &nodes, .has_nodes = true};
        chronicle_json_write_status(&status, &view, &json);
        code = print(inquiry, &status, &json, result);
    }
    text_clear(&json);
    text_list_clear(&nodes);
    chronicle_status_clear(&status);
    return code;
}

bool report_job_ask(struct inquiry *inquiry, struct chronicle_status *out_status, struct text *json,
    struct failure *failure) {
    if (!status_command_find(inquiry, out_status, failure)) {
        return false;
    }
    if (inquiry->is_of_host) {
        job_inquiry_drop_entries(inquiry);
        inquiry->host_seq = 0;
        (void)!job_inquiry_ask_host_for_events(inquiry, failure);
    }
    status_text_append_json(inquiry, out_status, true, json);
    return true;
}

static int report_job(
    struct inquiry *inquiry, struct option_result *result, const struct text_list *environment) {
    const struct text_list *sources = &option_result_value(result, "source")->list;
    struct chronicle_status status = {0};
    struct text json = {0};
    struct failure failure = {0};
    int code;
    if (!status_command_open(
            inquiry, result, sources->count > 0 ? sources->items[0] : NULL, environment, &code)) {
        return code;
    }
    code = EXIT_FAILURE;
    if (report_job_ask(inquiry, &status, &json, &failure)) {
        code = print(inquiry, &status, &json, result);
        chronicle_status_clear(&status);
    } else {
        fprintf(stderr, "%s: error: %s\n", inquiry->program, failure.message);
    }
    text_clear(&json);
    return code;
}

int report_command(const struct text_list *arguments, const struct text_list *environment) {
    struct inquiry inquiry = {.program = "muster report"};
    struct option_result result;
    int code;
    option_parse(&table, inquiry.program, arguments, environment, &result);
    const struct text_list *sources = &option_result_value(&result, "source")->list;
    if (result.outcome != OPTION_OUTCOME_VALUES || !check(&result)) {
        code = command_print(&result);
    } else if (sources->count > 0 && is_file(sources->items[0])) {
        code = report_files(&inquiry, &result);
    } else {
        code = report_job(&inquiry, &result, environment);
    }
    option_result_clear(&result);
    job_inquiry_clear(&inquiry);
    return code;
}
