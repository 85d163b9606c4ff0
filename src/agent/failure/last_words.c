/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/failure/last_words.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/failure/last_lines.h"
#include "host/loop/errands.h"
#include "host/loop/file_end.h"

/* How long a disk that does not answer may hold up the report: until what the workers wrote is in
 * their files, and until the end of one is read. */
#define DISK_PATIENCE_SECONDS 5

/* On a thread. */
struct reading {
    char *path;
    struct bytes end;
    bool is_cut;
    enum failure_code code;
    struct failure failure;
};

static void run_reading(void *subject) {
    struct reading *reading = subject;
    reading->code = file_end_read(
        reading->path, LAST_LINES_WINDOW, &reading->end, &reading->is_cut, &reading->failure);
}

static void free_reading(void *subject) {
    struct reading *reading = subject;
    bytes_clear(&reading->end);
    free(reading->path);
    free(reading);
}

static char *take_lines(const struct reading *reading) {
    struct text lines = {0};
    last_lines_append(bytes_slice(&reading->end), reading->is_cut, &lines);
    return text_take(&lines);
}

char *last_words_read(struct agent_workers *workers, const char *path, const struct log *log) {
    struct duration patience = duration_from_seconds(DISK_PATIENCE_SECONDS);
    struct failure failure = {0};
    if (path == NULL) {
        return NULL;
    }
    if (!agent_workers_await_logs(workers, patience)) {
        log_warning(log,
            "the report is without the last lines of %s: the log files do not get "
            "what the workers wrote in time",
            path);
        return NULL;
    }
    struct reading *reading = memory_allocate(sizeof *reading);
    reading->path = memory_duplicate_string(path);
    const struct errand_task task = {run_reading, free_reading, reading};
    enum failure_code code = errand_run_within(&task, patience, NULL, &failure);
    if (code != FAILURE_NONE) {
        log_warning(log, "the report is without the last lines of %s: %s", path, failure.message);
        return NULL;
    }
    char *lines = NULL;
    if (reading->code == FAILURE_NONE) {
        lines = take_lines(reading);
    } else {
        log_warning(log, "the report is without the last lines: %s", reading->failure.message);
    }
    free_reading(reading);
    return lines;
}
