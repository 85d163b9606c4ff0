/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/failure/hang_evidence.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/failure/last_lines.h"
#include "host/failure/hang_evidence_files.h"
#include "host/failure/hang_evidence_python.h"
#include "host/failure/hang_evidence_threads.h"
#include "host/failure/hang_evidence_tool.h"
#include "host/failure/hang_report.h"
#include "host/loop/clock.h"
#include "host/loop/file_end.h"
#include "host/process/process_table.h"

#define COMMAND_CEILING 4096
#define PATH_SIZE 64

struct look {
    const struct hang_evidence_request *request;
    struct hang_report report;
    struct hang_summary summary;
};

static void publish_summary(const struct look *look) {
    if (look->request->learnt != NULL) {
        look->request->learnt(look->request->context, &look->summary);
    }
}

/* The heading has microseconds, because benchmarks compare it with the deadline. */
static void write_heading(struct hang_report *report, const struct hang_evidence_request *request) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm local = clock_local_time((int64_t)now.tv_sec);
    long east = labs(local.tm_gmtoff) / 60;
    text_append_format(&report->text,
        "=== process %d before it is ended, %d-%02d-%02d %02d:%02d:%02d.%06ld %c%02ld%02ld: %s\n",
        (int)request->pid, local.tm_year + 1900, local.tm_mon + 1, local.tm_mday, local.tm_hour,
        local.tm_min, local.tm_sec, now.tv_nsec / 1000, local.tm_gmtoff < 0 ? '-' : '+', east / 60,
        east % 60, request->reason);
}

/* The last lines of its output files. */

static void write_tail(struct hang_report *report, const char *path) {
    struct bytes end = {0};
    bool is_cut = false;
    if (file_end_read(path, LAST_LINES_WINDOW, &end, &is_cut, NULL) == FAILURE_NONE &&
        end.length > 0) {
        text_append_format(&report->text, "end of %s:\n", path);
        last_lines_append(bytes_slice(&end), is_cut, &report->text);
    }
    bytes_clear(&end);
    hang_report_flush(report);
}

/* Processes. */

static void write_command(struct hang_report *report, pid_t pid) {
    char path[PATH_SIZE];
    struct bytes command = {0};
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    text_append_format(&report->text, "command of process %d: ", (int)pid);
    if (hang_report_read(path, COMMAND_CEILING, &command)) {
        for (size_t i = 0; i + 1 < command.length; i++) {
            if (command.data[i] == '\0' || command.data[i] == '\n') {
                command.data[i] = ' ';
            }
        }
        command.length -= command.data[command.length - 1] == '\0' ? 1 : 0;
        hang_report_append_safely(&report->text, (const char *)command.data, command.length);
    }
    text_append(&report->text, "\n");
    bytes_clear(&command);
}

/* What is in memory is read first: that neither disturbs the process nor needs its help. */
static bool write_python(struct look *look, pid_t pid, char **out_place) {
    static const struct hang_evidence_dump none = {0};
    const struct hang_evidence_dump *dump =
        pid == look->request->pid ? &look->request->dump : &none;
    const char *otherwise = dump->signal != 0        ? "it is asked itself"
                            : look->request->is_full ? "py-spy is asked below"
                                                     : "--evidence full asks py-spy";
    return hang_evidence_write_python(&look->report, pid, otherwise, out_place) ||
           hang_evidence_write_dump(&look->report, pid, dump, out_place);
}

/* Reports what the kernel and the process' memory show. The kernel's facts come first: they are the
 * quickest, they say most about any program, and the process cannot delay them. */
static bool write_activity(struct look *look, pid_t pid, struct hang_summary *summary) {
    text_append_format(&look->report.text, "process %d:\n", (int)pid);
    hang_evidence_write_threads(&look->report, pid, summary);
    publish_summary(look);
    write_command(&look->report, pid);
    bool is_told = write_python(look, pid, &summary->place);
    publish_summary(look);
    return is_told;
}

/* `has_stacks`: the Python stacks have already been reported. */
static void write_surroundings(
    struct look *look, pid_t pid, bool has_stacks, struct hang_summary *summary) {
    text_append_format(&look->report.text, "open files of process %d:\n", (int)pid);
    hang_evidence_write_files(&look->report, pid);
    if (!has_stacks && look->request->is_full && !hang_report_is_over(&look->report)) {
        hang_evidence_write_py_spy(&look->report, pid, &summary->place);
        publish_summary(look);
    }
}

static void add_descendants(struct process_ids *processes) {
    for (size_t next = 0;
         next < processes->count && processes->count <= HANG_EVIDENCE_MAXIMUM_PROCESSES; next++) {
        process_table_children(processes->items[next], processes);
    }
    if (processes->count > HANG_EVIDENCE_MAXIMUM_PROCESSES) {
        processes->count = HANG_EVIDENCE_MAXIMUM_PROCESSES;
    }
}

/* A worker may be a shell that waits for a Python it has started. Then the summary gets the place
 * of that Python. */
static void write_descendant(struct look *look, pid_t pid) {
    struct hang_summary own = {0};
    text_append(&look->report.text, "child, or child's child: ");
    bool has_stacks = write_activity(look, pid, &own);
    write_surroundings(look, pid, has_stacks, &own);
    if (look->summary.place == NULL) {
        look->summary.place = own.place;
        own.place = NULL;
        publish_summary(look);
    }
    hang_summary_clear(&own);
}

static void write_native_stacks(struct hang_report *report, const struct process_ids *processes) {
    for (size_t i = 0; i < processes->count && !hang_report_is_over(report); i++) {
        hang_evidence_write_gdb(report, processes->items[i]);
    }
}

static bool write_rest(struct look *look, const struct process_ids *processes) {
    struct hang_report *report = &look->report;
    for (size_t i = 0; i < HANG_EVIDENCE_OUTPUT_COUNT; i++) {
        if (look->request->outputs[i] != NULL && !hang_report_is_over(report)) {
            write_tail(report, look->request->outputs[i]);
        }
    }
    for (size_t i = 1; i < processes->count && !hang_report_is_over(report); i++) {
        write_descendant(look, processes->items[i]);
    }
    if (look->request->is_full) {
        write_native_stacks(report, processes);
    }
    bool is_over = hang_report_is_over(report);
    if (is_over) {
        text_append(&report->text, "the time was up before everything could be read\n");
    }
    text_append(&report->text, "\n");
    return !is_over;
}

bool hang_evidence_collect(const struct hang_evidence_request *request) {
    struct look look = {
        .request = request,
        .report = {.fd = -1,
            .is_held = true,
            .is_abandoned = request->is_abandoned,
            .end = request->end},
    };
    struct process_ids processes = {0};
    write_heading(&look.report, request);
    process_ids_add(&processes, request->pid);
    add_descendants(&processes);
    bool has_stacks = write_activity(&look, request->pid, &look.summary);
    hang_report_open(&look.report, request->path);
    hang_report_flush(&look.report);
    write_surroundings(&look, request->pid, has_stacks, &look.summary);
    bool is_complete = write_rest(&look, &processes);
    hang_report_close(&look.report);
    look.summary.file_error = look.report.error;
    publish_summary(&look);
    process_ids_clear(&processes);
    hang_summary_clear(&look.summary);
    return is_complete;
}
