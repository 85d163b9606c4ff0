/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/workers/log_tree.h"

#include <inttypes.h>
#include <string.h>

bool log_tree_is_discarded(const char *log_dir) {
    return log_dir != NULL && text_equals(log_dir, "/dev/null");
}

static void append_parts(struct text *text, const char *path) {
    while (*path != '\0') {
        size_t length = strcspn(path, "/");
        bool is_redundant = length == 0 || (length == 1 && path[0] == '.');
        if (!is_redundant) {
            text_append(text, "/");
            text_append_bytes(text, path, length);
        }
        path += length + (path[length] == '/' ? 1 : 0);
    }
}

void log_tree_append_absolute(struct text *text, const char *working_directory, const char *path) {
    size_t start = text->length;
    if (path[0] != '/') {
        append_parts(text, working_directory);
    }
    append_parts(text, path);
    if (text->length == start) {
        text_append(text, "/");
    }
}

/* How many bytes of a name of `length` bytes fit into `room` without splitting a character. */
static size_t cut_at_character(const char *name, size_t length, size_t room) {
    if (length <= room) {
        return length;
    }
    size_t end = room;
    while (end > 0 && ((unsigned char)name[end] & 0xc0) == 0x80) {
        end--;
    }
    return end > 0 ? end : room; /* not UTF-8: the name is cut at any byte */
}

void log_tree_append_run_name(struct text *text, const char *run_id, const char *random) {
    size_t taken = strlen(random) + 1;
    size_t room = taken < LOG_TREE_NAME_MAXIMUM ? LOG_TREE_NAME_MAXIMUM - taken : 0;
    size_t length = cut_at_character(run_id, strlen(run_id), room);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)run_id[i];
        bool is_usable = byte != '/' && byte >= ' ' && byte != 0x7f;
        text_append_bytes(text, is_usable ? &run_id[i] : "_", 1);
    }
    text_append_format(text, "_%s", random);
}

void log_tree_append_attempt_name(
    struct text *text, const struct log_tree_attempt *attempt, int incarnation) {
    text_append_format(text, "attempt_%d", attempt->restart_count);
    if (incarnation > 0) {
        text_append_format(text, "_round_%" PRId64, attempt->round);
    }
    if (incarnation > 1) {
        text_append_format(text, ".%d", incarnation);
    }
}

char *log_tree_file_path(const char *attempt_path, int local_rank, enum log_tree_file file) {
    switch (file) {
    case LOG_TREE_STDOUT:
        return text_format("%s/%d/stdout.log", attempt_path, local_rank);
    case LOG_TREE_STDERR:
        return text_format("%s/%d/stderr.log", attempt_path, local_rank);
    case LOG_TREE_FILTERED_STDOUT:
        return text_format("%s/filtered_stdout.log", attempt_path);
    case LOG_TREE_FILTERED_STDERR:
        return text_format("%s/filtered_stderr.log", attempt_path);
    case LOG_TREE_HANG_EVIDENCE:
        return text_format("%s/%d/hang_evidence.txt", attempt_path, local_rank);
    case LOG_TREE_ERROR:
        break;
    }
    return text_format("%s/%d/error.json", attempt_path, local_rank);
}
