/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/failure/agent_node_check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/telling/chronicle.h"
#include "host/process/process_spawn.h"

/* What is kept of the end of its output. */
#define OUTPUT_CEILING ((size_t)4096)
/* What one turn of the loop reads at most. */
#define READS_MAXIMUM 16

/* The outer shell tells the status of the inner one, and ends what that has left behind, which is
 * in its process group. So nobody has to signal a number that may be another process' by then. What
 * it says itself of a command that was killed is not the command's last line. */
static char shell_script[] = "{ /bin/sh -c \"$1\" 2>&4 3>&- 4>&- & wait $!; } 4>&2 2>/dev/null; "
                             "echo $? >&3; kill -KILL 0";

struct pipe_end {
    int fd; /* -1: none */
    struct event_descriptor *watch;
};

struct agent_node_check {
    struct event_loop *loop;
    struct agent_node_check_settings settings;
    struct event_timer *timer;
    struct process process; /* pid 0: none runs */
    struct pipe_end output;
    struct pipe_end status;
    struct text written;    /* the end of it */
    struct text told;       /* the status */
    struct failure failure; /* with which it could not be started */
};

static void close_end(struct pipe_end *end) {
    event_descriptor_free(end->watch);
    end->watch = NULL;
    if (end->fd >= 0) {
        close(end->fd);
    }
    end->fd = -1;
}

static void forget(struct agent_node_check *check) {
    event_timer_stop(check->timer);
    close_end(&check->output);
    close_end(&check->status);
    if (check->process.pid > 0 && check->process.pidfd >= 0) {
        close(check->process.pidfd);
    }
    check->process = (struct process){0, -1};
}

/* A NUL would hide what follows it. */
static void add(struct text *text, char *piece, size_t length) {
    for (size_t i = 0; i < length; i++) {
        piece[i] = piece[i] == '\0' ? '?' : piece[i];
    }
    text_append_bytes(text, piece, length);
    text_keep_end(text, OUTPUT_CEILING);
}

/* False: it has ended. */
static bool read_some(struct pipe_end *end, struct text *out) {
    char piece[OUTPUT_CEILING];
    for (int i = 0; i < READS_MAXIMUM; i++) {
        ssize_t length = read(end->fd, piece, sizeof piece);
        if (length > 0) {
            add(out, piece, (size_t)length);
        } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
            return false;
        } else if (errno == EAGAIN) {
            return true;
        }
    }
    return true;
}

/* The last line that is not empty; the caller frees it. */
static char *last_line(const struct text *text) {
    char *copy = memory_duplicate_string(text_string(text));
    size_t length = strlen(copy);
    while (length > 0 && strchr(" \t\r\n", copy[length - 1]) != NULL) {
        copy[--length] = '\0';
    }
    char *start = strrchr(copy, '\n');
    char *line = memory_duplicate_string(start != NULL ? start + 1 : copy);
    free(copy);
    char *shown = chronicle_clean_text(line, CHRONICLE_TEXT_MAXIMUM / 2);
    free(line);
    return shown;
}

static void answer(struct agent_node_check *check, const char *how_or_null) {
    char *line = last_line(&check->written);
    char *reason = how_or_null == NULL ? NULL
                   : *line != '\0'     ? text_format("%s (%s)", line, how_or_null)
                                       : memory_duplicate_string(how_or_null);
    forget(check);
    check->settings.answered(check->settings.context, reason);
    free(line);
    free(reason);
}

/* The status of the command is known, or it never will be. */
static void conclude(struct agent_node_check *check) {
    int64_t status = -1;
    char *told = last_line(&check->told);
    (void)read_some(&check->output, &check->written);
    if (text_parse_integer(told, &status) != FAILURE_NONE) {
        answer(check, "the command was killed");
    } else if (status != 0) {
        char *how = text_format("exit status %lld", (long long)status);
        answer(check, how);
        free(how);
    } else {
        answer(check, NULL);
    }
    free(told);
}

static void status_readable(void *context) {
    struct agent_node_check *check = context;
    if (!read_some(&check->status, &check->told) || strchr(text_string(&check->told), '\n')) {
        conclude(check);
    }
}

static void output_readable(void *context) {
    struct agent_node_check *check = context;
    if (!read_some(&check->output, &check->written)) {
        close_end(&check->output);
    }
}

/* The shell has not told the status, so it has not ended, and its number is its own. */
static void end_command(struct agent_node_check *check) {
    if (check->process.pid > 0 && check->status.fd >= 0) {
        struct pollfd polled = {.fd = check->status.fd, .events = POLLIN};
        if (poll(&polled, 1, 0) == 0) {
            kill(-check->process.pid, SIGKILL);
        }
    }
}

static void time_is_over(void *context) {
    struct agent_node_check *check = context;
    if (check->process.pid == 0) {
        char *how = text_format("it could not be started: %s", check->failure.message);
        answer(check, how);
        free(how);
        return;
    }
    char *how = text_format("it has not ended within %g s (--node-check-timeout)",
        duration_seconds(check->settings.timeout));
    (void)read_some(&check->output, &check->written);
    end_command(check);
    answer(check, how);
    free(how);
}

struct agent_node_check *agent_node_check_new(
    struct event_loop *loop, const struct agent_node_check_settings *settings) {
    if (settings->command == NULL) {
        return NULL;
    }
    struct agent_node_check *check = memory_allocate(sizeof *check);
    *check = (struct agent_node_check){.loop = loop,
        .settings = *settings,
        .process = {0, -1},
        .output = {-1, NULL},
        .status = {-1, NULL}};
    check->timer = event_timer_new(loop, time_is_over, check);
    return check;
}

void agent_node_check_free(struct agent_node_check *check) {
    if (check != NULL) {
        end_command(check);
        forget(check);
        event_timer_free(check->timer);
        text_clear(&check->written);
        text_clear(&check->told);
        free(check);
    }
}

/* `out_end` is read here, `out_child` is the command's. */
static enum failure_code make_pipe(
    struct pipe_end *out_end, int *out_child, struct failure *failure) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return failure_set_system(failure, errno, "cannot make a pipe");
    }
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    out_end->fd = ends[0];
    *out_child = ends[1];
    return FAILURE_NONE;
}

static enum failure_code spawn(
    struct agent_node_check *check, const int child[3], struct failure *failure) {
    const char *const words[] = {
        "/bin/sh", "-c", shell_script, "muster-node-check", check->settings.command};
    struct text_list arguments = {0};
    struct process_request request;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        text_list_add(&arguments, words[i]);
    }
    process_request_init(&request, &arguments, check->settings.environment);
    request.stdin_fd = child[0];
    request.stdout_fd = child[1];
    request.stderr_fd = child[1];
    request.extra_fd = child[2];
    request.descriptor_limit = check->settings.descriptor_limit;
    struct process process;
    enum failure_code code = process_spawn(&request, &process, failure);
    text_list_clear(&arguments);
    if (code == FAILURE_NONE) {
        check->process = process;
        agent_workers_leave_out(check->settings.workers, process.pid);
    }
    return code;
}

static enum failure_code start(struct agent_node_check *check, struct failure *failure) {
    int child[3] = {open("/dev/null", O_RDONLY | O_CLOEXEC), -1, -1};
    enum failure_code code = make_pipe(&check->output, &child[1], failure);
    if (code == FAILURE_NONE) {
        code = make_pipe(&check->status, &child[2], failure);
    }
    if (code == FAILURE_NONE) {
        code = event_descriptor_new(
            check->loop, check->output.fd, output_readable, check, &check->output.watch, failure);
    }
    if (code == FAILURE_NONE) {
        code = event_descriptor_new(
            check->loop, check->status.fd, status_readable, check, &check->status.watch, failure);
    }
    if (code == FAILURE_NONE) {
        code = spawn(check, child, failure);
    }
    for (size_t i = 0; i < sizeof child / sizeof *child; i++) {
        if (child[i] >= 0) {
            close(child[i]);
        }
    }
    return code;
}

void agent_node_check_begin(struct agent_node_check *check) {
    struct instant now = event_loop_now(check->loop);
    text_clear(&check->written);
    text_clear(&check->told);
    if (start(check, &check->failure) != FAILURE_NONE) {
        forget(check);
        event_timer_set(check->timer, now); /* which answers */
        return;
    }
    event_timer_set(check->timer, instant_after(now, check->settings.timeout));
}
