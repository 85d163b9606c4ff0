/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/workers/attempt_files.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

static const struct {
    enum log_tree_file file;
    enum log_tree_file filtered_file;
} names[ATTEMPT_STREAM_COUNT] = {
    [ATTEMPT_STDOUT] = {LOG_TREE_STDOUT, LOG_TREE_FILTERED_STDOUT},
    [ATTEMPT_STDERR] = {LOG_TREE_STDERR, LOG_TREE_FILTERED_STDERR},
};

struct attempt_files *attempt_files_new(int worker_count) {
    struct attempt_files *files = memory_allocate(sizeof *files);
    files->worker_count = worker_count;
    files->files = memory_allocate((size_t)worker_count * sizeof *files->files);
    return files;
}

static enum failure_code open_filter(struct attempt_files *files, int stream) {
    if (files->needles[stream].count == 0) {
        return FAILURE_NONE;
    }
    char *path = log_tree_file_path(files->directory, 0, names[stream].filtered_file);
    enum failure_code code =
        log_filter_open(path, &files->needles[stream], &files->filters[stream], &files->failure);
    free(path);
    return code;
}

static enum failure_code open_file(struct attempt_files *files, int local_rank, int stream) {
    struct attempt_file *file = &files->files[local_rank][stream];
    if (file->header == NULL) {
        return FAILURE_NONE;
    }
    char *path = log_tree_file_path(files->directory, local_rank, names[stream].file);
    enum failure_code code =
        log_stream_open(path, file->header, &file->stream, &file->fd, &files->failure);
    free(path);
    return code;
}

void attempt_files_make(void *subject) {
    struct attempt_files *files = subject;
    struct stat status;
    files->is_timer_file_gone =
        files->timer_file != NULL &&
        (lstat(files->timer_file, &status) != 0 || !S_ISFIFO(status.st_mode));
    files->code = log_directory_renew(&files->logs, &files->is_renewed, &files->failure);
    if (files->code == FAILURE_NONE) {
        files->code = log_directory_begin_attempt(
            &files->logs, &files->attempt, files->worker_count, &files->directory, &files->failure);
    }
    if (files->directory == NULL) {
        return;
    }
    for (int i = 0; i < ATTEMPT_STREAM_COUNT && files->code == FAILURE_NONE; i++) {
        files->code = open_filter(files, i);
    }
    for (int rank = 0; rank < files->worker_count && files->code == FAILURE_NONE; rank++) {
        files->failed_local_rank = rank;
        for (int i = 0; i < ATTEMPT_STREAM_COUNT && files->code == FAILURE_NONE; i++) {
            files->code = open_file(files, rank, i);
        }
    }
}

static void clear_file(struct attempt_file *file) {
    if (file->stream != NULL) {
        log_stream_free(file->stream);
        close(file->fd);
    }
    free(file->header);
}

void attempt_files_free(void *subject) {
    struct attempt_files *files = subject;
    for (int rank = 0; rank < files->worker_count; rank++) {
        for (int i = 0; i < ATTEMPT_STREAM_COUNT; i++) {
            clear_file(&files->files[rank][i]);
        }
    }
    for (int i = 0; i < ATTEMPT_STREAM_COUNT; i++) {
        log_filter_free(files->filters[i]);
        text_list_clear(&files->needles[i]);
    }
    free(files->files);
    free(files->directory);
    free(files->timer_file);
    log_directory_clear(&files->logs);
    free(files);
}
