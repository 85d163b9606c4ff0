/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/failure/hang_evidence_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/process/pidfd.h"
#include "host/process/process_spawn.h"
#include "wire/failure/py_spy_dump.h"

#define OUTPUT_CEILING (1024 * 1024)
#define PIECE_SIZE 4096

extern char **environ;

static char *find_program(const char *name) {
    const char *path = getenv("PATH");
    const char *rest = path == NULL ? "/usr/bin:/bin" : path;
    while (*rest != '\0') {
        size_t length = strcspn(rest, ":");
        char *program = text_format("%.*s/%s", (int)length, rest, name);
        if (length > 0 && access(program, X_OK) == 0) {
            return program;
        }
        free(program);
        rest += length + (rest[length] == ':' ? 1 : 0);
    }
    return NULL;
}

static void build_arguments(
    struct text_list *arguments, char *program, const char *const words[], pid_t pid) {
    text_list_add_taken(arguments, program);
    for (size_t i = 0; words[i] != NULL; i++) {
        text_list_add(arguments, words[i]);
    }
    text_list_add_taken(arguments, text_format("%d", (int)pid));
}

/* Reads once from the tool's output. Returns true when there may be more. */
static bool take_output(struct hang_report *report, int fd, struct text *output) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int64_t left = duration_milliseconds_ceiling(hang_report_time_left(report));
    char piece[PIECE_SIZE];
    if (left == 0 || output->length >= OUTPUT_CEILING) {
        return false;
    }
    int ready = poll(&wait, 1, left > 50 ? 50 : (int)left);
    if (ready <= 0) {
        return ready == 0 || errno == EINTR;
    }
    ssize_t length = read(fd, piece, sizeof piece);
    if (length > 0) {
        hang_report_append_safely(output, piece, (size_t)length);
        hang_report_append_safely(&report->text, piece, (size_t)length);
        hang_report_flush(report);
    }
    return length > 0 || (length < 0 && errno == EINTR);
}

static void run(
    struct hang_report *report, const struct text_list *arguments, struct text *output) {
    int fds[2];
    struct text_list environment = {0};
    struct process_request request;
    struct process process;
    struct failure failure;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        hang_report_append_error(report, "its output", errno);
        return;
    }
    for (char **variable = environ; *variable != NULL; variable++) {
        text_list_add(&environment, *variable);
    }
    process_request_init(&request, arguments, &environment);
    request.stdout_fd = fds[1];
    request.stderr_fd = fds[1];
    enum failure_code code = process_spawn(&request, &process, &failure);
    close(fds[1]);
    text_list_clear(&environment);
    if (code == FAILURE_NONE) {
        while (take_output(report, fds[0], output)) {
        }
        if (process.pidfd >= 0) {
            pidfd_signal(process.pidfd, SIGKILL);
            close(process.pidfd);
        }
    } else {
        text_append_format(&report->text, "  %s\n", failure.message);
    }
    close(fds[0]);
}

static void ask(struct hang_report *report, const char *name, const char *const words[], pid_t pid,
    struct text *output) {
    struct text_list arguments = {0};
    char *program = find_program(name);
    if (program == NULL) {
        text_append_format(
            &report->text, "%s of process %d: it is not installed\n", name, (int)pid);
        return;
    }
    text_append_format(&report->text, "%s of process %d:\n", name, (int)pid);
    hang_report_flush(report);
    build_arguments(&arguments, program, words, pid);
    run(report, &arguments, output);
    text_list_clear(&arguments);
    if (hang_report_is_over(report)) {
        text_append(&report->text, "\n  no time was left for the rest\n");
    }
    hang_report_flush(report);
}

void hang_evidence_write_py_spy(struct hang_report *report, pid_t pid, char **out_place) {
    static const char *const words[] = {"dump", "--pid", NULL};
    struct text dump = {0};
    ask(report, "py-spy", words, pid, &dump);
    if (*out_place == NULL) {
        *out_place =
            py_spy_dump_place((struct slice){(const uint8_t *)dump.data, dump.length}, pid);
    }
    text_clear(&dump);
}

void hang_evidence_write_gdb(struct hang_report *report, pid_t pid) {
    static const char *const words[] = {"-batch", "-nx", "-iex", "set debuginfod enabled off",
        "-iex", "set pagination off", "-ex", "thread apply all backtrace 64", "-p", NULL};
    struct text output = {0};
    ask(report, "gdb", words, pid, &output);
    text_clear(&output);
}
