/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/failure/last_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/failure/last_lines.h"
#include "host/loop/errands.h"
#include "host/loop/whole_file.h"

/* How long a disk that does not answer may hold up the report: until what the workers wrote is in
 * their files, and until the end of one is read. */
#define DISK_PATIENCE_SECONDS 5
/* The most bytes of a line that are told at a restart. */
#define LONGEST_TOLD 400

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

/* At a restart. */

struct last_words {
    struct event_loop *loop;
    struct agent_workers *workers;
    const struct log *log;
    struct errands *errands; /* NULL until there is something to read */
    char *path;              /* of the worker that has failed; NULL: nothing is expected */
    int local_rank;
};

/* Of UTF-8, no half of a character. */
static int told_length(const char *line) {
    size_t length = strlen(line);
    if (length > LONGEST_TOLD) {
        length = LONGEST_TOLD;
        while (length > 0 && ((unsigned char)line[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    return (int)length;
}

static void tell_line(const struct last_words *words, const struct reading *reading) {
    struct text lines = {0};
    last_lines_append(bytes_slice(&reading->end), reading->is_cut, &lines);
    while (lines.length > 0 && lines.data[lines.length - 1] == '\n') {
        lines.data[--lines.length] = '\0';
    }
    const char *break_before = strrchr(text_string(&lines), '\n');
    const char *line = break_before == NULL ? text_string(&lines) : break_before + 1;
    if (*line == '\0') {
        log_warning(words->log,
            "local_rank %d, which failed, wrote nothing on stderr; its log is %s",
            words->local_rank, reading->path);
    } else {
        log_warning(words->log, "local_rank %d, which failed, wrote last: %.*s; its log is %s",
            words->local_rank, told_length(line), line, reading->path);
    }
    text_clear(&lines);
}

static void was_read(void *context, void *subject) {
    struct last_words *words = context;
    const struct reading *reading = subject;
    if (reading->code == FAILURE_NONE) {
        tell_line(words, reading);
    } else if (reading->code != FAILURE_MISSING) { /* somebody has removed it, which is told */
        log_warning(words->log, "what local_rank %d, which failed, wrote last is not known: %s",
            words->local_rank, reading->failure.message);
    }
}

static void logs_are_complete(void *context) {
    struct last_words *words = context;
    struct failure failure = {0};
    struct errand *errand;
    if (words->errands == NULL &&
        errands_new(words->loop, &words->errands, &failure) != FAILURE_NONE) {
        log_warning(words->log, "the log of local_rank %d, which failed, is %s", words->local_rank,
            words->path);
        return;
    }
    struct reading *reading = memory_allocate(sizeof *reading);
    reading->path = words->path;
    words->path = NULL;
    const struct errand_task task = {run_reading, free_reading, reading};
    const struct errand_answer answer = {was_read, words};
    if (errands_send(words->errands, &task, &answer, &errand, &failure) != FAILURE_NONE) {
        log_warning(words->log, "what local_rank %d, which failed, wrote last is not known: %s",
            words->local_rank, failure.message);
    }
}

struct last_words *last_words_new(
    struct event_loop *loop, struct agent_workers *workers, const struct log *log) {
    const struct last_words initial = {.loop = loop, .workers = workers, .log = log};
    return memory_duplicate(&initial, sizeof initial);
}

void last_words_free(struct last_words *words) {
    if (words != NULL) {
        agent_workers_notify_of_logs(words->workers, NULL, NULL);
        errands_free(words->errands);
        free(words->path);
        free(words);
    }
}

void last_words_expect(struct last_words *words, int local_rank) {
    char *path = agent_workers_stderr_file(words->workers, local_rank);
    if (path != NULL) {
        free(words->path);
        words->path = path;
        words->local_rank = local_rank;
        agent_workers_notify_of_logs(words->workers, logs_are_complete, words);
    }
}
