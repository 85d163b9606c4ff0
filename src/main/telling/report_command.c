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
#include "main/command.h"
#include "main/telling/job_report.h"
#include "main/telling/status_command.h"
#include "main/telling/status_text.h"
#include "options/argparse/option_parser.h"
#include "wire/telling/chronicle_json.h"

/* Reads the files events.jsonl of a job's nodes. */

/* Of all files. */
#define REPORT_FILES_ENTRIES_MAXIMUM ((size_t)1 << 20)

/* A file that begins with so many lines without an entry has none. */
#define STRANGE_LINES_MAXIMUM 1000

struct event_file {
    const char *path;
    size_t index;
    FILE *stream;
    size_t entries;
    size_t strange;
    size_t unknown;        /* entries of kinds that a later version has */
    struct wall_time last; /* entry */
    struct wall_time first;
    int64_t seq;
    bool is_cut; /* its last line has no end */
};

static enum failure_code open_file(struct event_file *file, struct failure *failure) {
    struct stat about;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &about) != 0) {
        int error = errno;
        if (fd >= 0) {
            close(fd);
        }
        return failure_set(
            failure, FAILURE_INVALID, "cannot read '%s': %s", file->path, strerror(error));
    }
    if (!S_ISREG(about.st_mode)) {
        close(fd);
        return failure_set(failure, FAILURE_INVALID,
            "'%s' is no regular file (expected a file events.jsonl, as agents write it beside "
            "their logs)",
            file->path);
    }
    file->stream = fdopen(fd, "r");
    return file->stream != NULL ? FAILURE_NONE
                                : failure_set(failure, FAILURE_INVALID, "cannot read '%s': %s",
                                      file->path, strerror(errno));
}

/* An agent begins to count at 1: what is before is of another job, or of an agent before. */
static void begin_anew(struct inquiry *inquiry, struct event_file *file) {
    fprintf(stderr,
        "%s: '%s' goes on from an agent that had ended before; %zu entries of it are left out\n",
        inquiry->program, file->path, file->entries);
    for (; file->entries > 0; file->entries--) {
        chronicle_entry_clear(&inquiry->entries[--inquiry->count].entry);
    }
}

static enum failure_code take_line(struct inquiry *inquiry, struct event_file *file,
    const char *line, size_t length, struct failure *failure) {
    struct chronicle_entry entry;
    enum failure_code code =
        chronicle_json_read_entry((struct slice){(const uint8_t *)line, length}, &entry);
    if (code == FAILURE_MISSING) {
        file->unknown++;
        return FAILURE_NONE;
    }
    if (code != FAILURE_NONE) {
        file->strange++;
        return file->entries > 0 || file->strange < STRANGE_LINES_MAXIMUM
                   ? FAILURE_NONE
                   : failure_set(failure, FAILURE_INVALID,
                         "'%s' is no file of events: its first %d lines have no entry of the "
                         "schema " CHRONICLE_EVENT_SCHEMA,
                         file->path, STRANGE_LINES_MAXIMUM);
    }
    if (entry.seq == 1 && file->seq > 1) {
        begin_anew(inquiry, file);
    }
    if (inquiry->count >= REPORT_FILES_ENTRIES_MAXIMUM) {
        chronicle_entry_clear(&entry);
        return failure_set(failure, FAILURE_LIMIT,
            "these files have more than %zu entries; name fewer of them", inquiry->count);
    }
    file->seq = entry.seq;
    file->first = file->entries == 0 ? entry.time : file->first;
    file->last = entry.time;
    file->entries++;
    inquiry->entries = memory_reserve(
        inquiry->entries, &inquiry->capacity, inquiry->count + 1, sizeof *inquiry->entries);
    inquiry->entries[inquiry->count++] = (struct told_entry){entry, file->index};
    return FAILURE_NONE;
}

/* Lines are taken by their length, so that a NUL ends none. */
static enum failure_code read_lines(
    struct inquiry *inquiry, struct event_file *file, struct failure *failure) {
    char line[CHRONICLE_LINE_READ_MAXIMUM];
    size_t length = 0;
    bool is_long = false;
    enum failure_code code = FAILURE_NONE;
    int byte;
    while (code == FAILURE_NONE && (byte = getc_unlocked(file->stream)) != EOF) {
        if (byte != '\n') {
            is_long = is_long || length == sizeof line;
            line[is_long ? 0 : length++] = (char)byte;
            continue;
        }
        code = take_line(inquiry, file, line, is_long ? 0 : length, failure);
        length = 0;
        is_long = false;
    }
    if (code == FAILURE_NONE && ferror(file->stream) != 0) {
        return failure_set(
            failure, FAILURE_INVALID, "cannot read '%s': %s", file->path, strerror(errno));
    }
    file->is_cut = length > 0;
    return code;
}

static enum failure_code read_file(
    struct inquiry *inquiry, struct event_file *file, struct failure *failure) {
    enum failure_code code = open_file(file, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = read_lines(inquiry, file, failure);
    fclose(file->stream);
    if (code == FAILURE_NONE && file->entries == 0) {
        return failure_set(failure, FAILURE_INVALID,
            "'%s' has no entry of the schema " CHRONICLE_EVENT_SCHEMA
            " (expected a file events.jsonl, as agents write it beside their logs)",
            file->path);
    }
    if (code == FAILURE_NONE && (file->strange > 0 || file->unknown > 0 || file->is_cut)) {
        fprintf(stderr,
            "%s: '%s': left out are %zu lines that are no entries, %zu of kinds that "
            "this version does not know%s\n",
            inquiry->program, file->path, file->strange, file->unknown,
            file->is_cut ? ", and the last line, which is cut" : "");
    }
    return code;
}

static void drop_doubles(struct inquiry *inquiry) {
    size_t kept = 0;
    for (size_t i = 0; i < inquiry->count; i++) {
        struct chronicle_entry *entry = &inquiry->entries[i].entry;
        bool is_double = false;
        for (size_t at = kept; at > 0 && !is_double; at--) {
            const struct chronicle_entry *other = &inquiry->entries[at - 1].entry;
            if (other->time.nanoseconds != entry->time.nanoseconds) {
                break;
            }
            is_double = other->seq == entry->seq && text_equals(other->node, entry->node);
        }
        if (is_double) {
            chronicle_entry_clear(entry);
        } else {
            inquiry->entries[kept++] = inquiry->entries[i];
        }
    }
    inquiry->count = kept;
}

static int compare_files(const void *left, const void *right) {
    const struct event_file *one = left;
    const struct event_file *other = right;
    return one->first.nanoseconds < other->first.nanoseconds   ? -1
           : one->first.nanoseconds > other->first.nanoseconds ? 1
                                                               : 0;
}

/* Entries do not name their job. Nodes of one job were there at the same time. */
static void warn_of_several_jobs(
    const struct inquiry *inquiry, struct event_file *files, size_t count) {
    qsort(files, count, sizeof *files, compare_files);
    struct wall_time last = files[0].last;
    for (size_t i = 1; i < count; i++) {
        if (files[i].first.nanoseconds > last.nanoseconds) {
            fprintf(stderr,
                "%s: '%s' begins after all others have ended: it may be of another job\n",
                inquiry->program, files[i].path);
        }
        last = files[i].last.nanoseconds > last.nanoseconds ? files[i].last : last;
    }
}

/* The entries, each once, in the order of their times, and the names of the nodes that have written
 * them. What is no entry is skipped and counted on stderr. FAILURE_INVALID: a file cannot be read
 * or is none of events; FAILURE_LIMIT: there are too many. */
static enum failure_code report_files_read(struct inquiry *inquiry, const struct text_list *paths,
    struct text_list *nodes, struct failure *failure) {
    struct event_file *files = memory_allocate((paths->count + 1) * sizeof *files);
    enum failure_code code = FAILURE_NONE;
    for (size_t i = 0; i < paths->count && code == FAILURE_NONE; i++) {
        files[i] = (struct event_file){.path = paths->items[i], .index = i};
        code = read_file(inquiry, &files[i], failure);
        if (code == FAILURE_NONE) {
            const char *name = inquiry->entries[inquiry->count - 1].entry.node;
            bool is_known = false;
            for (size_t at = 0; at < nodes->count && !is_known; at++) {
                is_known = text_equals(nodes->items[at], name);
            }
            if (!is_known) {
                text_list_add(nodes, name);
            }
        }
    }
    if (code == FAILURE_NONE) {
        job_inquiry_sort(inquiry);
        drop_doubles(inquiry);
        warn_of_several_jobs(inquiry, files, paths->count);
    }
    free(files);
    return code;
}

/* Report command. */

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
