/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/process/spawn_failure.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most bytes read of a script's first line. Linux itself reads 256. */
#define FIRST_LINE_SIZE 257

static const char *first_existing(const struct text_list *candidates) {
    for (size_t i = 0; i < candidates->count; i++) {
        if (access(candidates->items[i], F_OK) == 0) {
            return candidates->items[i];
        }
    }
    return NULL;
}

/* Copies the interpreter that the script names ("#!/bin/sh -e" -> "/bin/sh"); false when the file
 * is no script. */
static bool read_interpreter(const char *path, char interpreter[FIRST_LINE_SIZE]) {
    char line[FIRST_LINE_SIZE] = {0};
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t length = read(fd, line, sizeof line - 1);
    close(fd);
    if (length < 2 || line[0] != '#' || line[1] != '!') {
        return false;
    }
    char *name = line + 2 + strspn(line + 2, " \t");
    name[strcspn(name, " \t\r\n")] = '\0';
    memcpy(interpreter, name, strlen(name) + 1);
    return true;
}

static void explain_missing(
    const char *program, const struct text_list *candidates, struct text *out) {
    const char *path = first_existing(candidates);
    char interpreter[FIRST_LINE_SIZE];
    if (path == NULL) {
        if (strchr(program, '/') == NULL) {
            text_append(out, " (it is not on the worker's PATH)");
        }
    } else if (read_interpreter(path, interpreter)) {
        text_append_format(
            out, " (the interpreter '%s' named in its first line does not exist)", interpreter);
    } else {
        text_append(out, " (the file exists, but not the dynamic loader it asks for)");
    }
}

static void explain_denied(const struct text_list *candidates, struct text *out) {
    const char *path = first_existing(candidates);
    struct stat file;
    if (path == NULL || stat(path, &file) != 0) {
        return;
    }
    if (S_ISDIR(file.st_mode)) {
        text_append(out, " (it is a directory)");
    } else if ((file.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0) {
        text_append(out, " (the file is not marked executable, see chmod +x)");
    }
}

/* Appends, in parentheses, what the error means for a program that does not start. */
static void explain_execution(
    int system_error, const char *program, const struct text_list *candidates, struct text *out) {
    switch (system_error) {
    case ENOENT:
        explain_missing(program, candidates, out);
        break;
    case EACCES:
        explain_denied(candidates, out);
        break;
    case ENOEXEC:
        text_append(
            out, " (neither a program for this machine nor a script that begins with '#!')");
        break;
    case E2BIG:
        text_append(out, " (arguments and environment together are too large)");
        break;
    case ETXTBSY:
        text_append(out, " (the file is open for writing)");
        break;
    default:
        break;
    }
}

static const char *stage_words(enum spawn_stage stage) {
    switch (stage) {
    case SPAWN_STAGE_SESSION:
        return "cannot give the process a session of its own";
    case SPAWN_STAGE_DEATH_SIGNAL:
        return "cannot tie the process to the agent's life";
    case SPAWN_STAGE_DESCRIPTORS:
        return "cannot redirect the process' output";
    case SPAWN_STAGE_CPUS:
        return "cannot bind the process to its CPUs";
    case SPAWN_STAGE_EXECUTE:
        break;
    }
    return "cannot execute";
}

static enum failure_code set_message(
    struct failure *failure, int system_error, const struct text *message) {
    failure_set(failure, FAILURE_SYSTEM, "%s", text_string(message));
    if (failure != NULL) {
        failure->system_error = system_error;
    }
    return FAILURE_SYSTEM;
}

enum failure_code spawn_failure_set(struct failure *failure, const struct spawn_report *report,
    const char *program, const struct text_list *candidates) {
    struct text message = {0};
    text_append(&message, stage_words(report->stage));
    if (report->stage == SPAWN_STAGE_EXECUTE) {
        text_append_format(&message, " '%s'", program);
    }
    text_append_format(&message, ": %s", failure_system_words(report->system_error));
    if (report->stage == SPAWN_STAGE_EXECUTE) {
        explain_execution(report->system_error, program, candidates, &message);
    }
    set_message(failure, report->system_error, &message);
    text_clear(&message);
    return FAILURE_SYSTEM;
}

enum failure_code spawn_failure_set_early(struct failure *failure, int system_error) {
    struct text message = {0};
    text_append_format(&message, "cannot start a process: %s", failure_system_words(system_error));
    if (system_error == EAGAIN) {
        text_append(
            &message, " (limit on processes, see ulimit -u and the pids.max of the control group)");
    } else if (system_error == EMFILE) {
        text_append(&message, " (limit on open files, see ulimit -n)");
    }
    set_message(failure, system_error, &message);
    text_clear(&message);
    return FAILURE_SYSTEM;
}
