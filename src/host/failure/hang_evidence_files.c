/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/failure/hang_evidence_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/number_directory.h"
#include "wire/failure/socket_table.h"

/* A machine with a hundred thousand connections has a table of about this size. */
#define TABLE_CEILING (16 * 1024 * 1024)
#define PATH_SIZE 128

struct open_file {
    int fd;
    char *target;
    bool is_socket;
    uint64_t inode;
    char *words; /* description of a socket */
};

struct open_files {
    pid_t pid;
    struct open_file items[HANG_EVIDENCE_MAXIMUM_FILES];
    size_t count;
    size_t left_out;
    size_t socket_count; /* sockets that have not been found in a table */
};

static bool visit_descriptor(void *context, int fd) {
    struct open_files *files = context;
    char path[PATH_SIZE];
    char target[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)files->pid, fd);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) {
        return true;
    }
    if (files->count == HANG_EVIDENCE_MAXIMUM_FILES) {
        files->left_out++;
        return true;
    }
    target[length] = '\0';
    struct open_file *file = &files->items[files->count++];
    *file = (struct open_file){.fd = fd, .target = memory_duplicate_string(target)};
    file->is_socket = socket_table_read_link(target, &file->inode) == FAILURE_NONE;
    files->socket_count += file->is_socket ? 1 : 0;
    return true;
}

static void note_socket(
    struct open_files *files, uint64_t inode, const char *kind, const struct text *words) {
    for (size_t i = 0; i < files->count; i++) {
        struct open_file *file = &files->items[i];
        if (file->is_socket && file->inode == inode && file->words == NULL) {
            file->words = text_format("%s %s", kind, text_string(words));
            files->socket_count--;
        }
    }
}

/* These tables show the sockets of the process' own network namespace. */
static void look_up(struct open_files *files, const struct hang_report *report, const char *kind) {
    char path[PATH_SIZE];
    struct bytes table = {0};
    struct slice line;
    bool is_unix = text_equals(kind, "unix");
    snprintf(path, sizeof path, "/proc/%d/net/%s", (int)files->pid, kind);
    hang_report_read(path, TABLE_CEILING, &table);
    struct slice rest = bytes_slice(&table);
    while (files->socket_count > 0 && socket_table_next_line(&rest, &line) &&
           !hang_report_is_over(report)) {
        struct text words = {0};
        uint64_t inode;
        enum failure_code code =
            is_unix ? socket_table_read_unix(line, &inode, &words)
                    : socket_table_read_address(line, kind[0] == 't', &inode, &words);
        if (code == FAILURE_NONE) {
            note_socket(files, inode, kind, &words);
        }
        text_clear(&words);
    }
    bytes_clear(&table);
}

static void append_file(struct text *text, const struct open_file *file) {
    struct text line = {0};
    text_append_format(&line, "%d -> %s", file->fd, file->target);
    if (file->words != NULL) {
        text_append_format(&line, " %s", file->words);
    }
    text_append(text, "  ");
    hang_report_append_safely(text, line.data, line.length);
    text_append(text, "\n");
    text_clear(&line);
}

void hang_evidence_write_files(struct hang_report *report, pid_t pid) {
    static const char *const kinds[] = {"tcp", "tcp6", "unix", "udp", "udp6"};
    char path[NUMBER_PATH_SIZE];
    struct open_files *files = memory_allocate(sizeof *files);
    files->pid = pid;
    number_path_format(path, "/proc/", pid, "/fd");
    if (!number_directory_each(path, visit_descriptor, files)) {
        hang_report_append_error(report, "they", errno);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && files->socket_count > 0; i++) {
        look_up(files, report, kinds[i]);
    }
    for (size_t i = 0; i < files->count; i++) {
        append_file(&report->text, &files->items[i]);
        free(files->items[i].target);
        free(files->items[i].words);
    }
    if (files->left_out > 0) {
        text_append_format(&report->text, "  and %zu more\n", files->left_out);
    }
    free(files);
    hang_report_flush(report);
}
