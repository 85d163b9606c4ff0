/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/telling/report_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "wire/telling/chronicle_json.h"

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

enum failure_code report_files_read(struct inquiry *inquiry, const struct text_list *paths,
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
