/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/agent.h: the agent of the command, in a process apart or in this one. */
#include <muster/agent.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/rendezvous/agent_joining.h"
#include "agent/workers/agent_workers.h"
#include "base/memory.h"
#include "core/telling/run_result.h"
#include "host/failure/error_file.h"
#include "host/loop/abort_notice.h"
#include "host/loop/clock.h"
#include "host/network/name_lookup.h"
#include "host/process/process_apart.h"
#include "library/agent_reading.h"
#include "library/agent_settings.h"
#include "library/library_failure.h"
#include "library/library_memory.h"
#include "wire/failure/error_file_json.h"
#include "wire/telling/agent_line.h"

#define NO_MEMORY "there is no memory for the agent"
#define CHUNK_SIZE 65536
/* One call of muster_agent_process takes no more, so that a busy agent does not keep the program's
 * own loop waiting. */
#define MOST_CHUNKS 16
#define SIGNAL_MAXIMUM 64
/* A line that is read takes no more than so many times its length. */
#define LINE_FACTOR 8

struct muster_agent {
    struct muster_agent_settings settings; /* callbacks and contexts */
    pid_t owner;
    struct process_apart process;
    struct agent_reading reading;
    struct text line; /* the beginning of one that has not come whole */
    bool is_line_too_long;
    bool has_ended;
    bool is_busy;
    bool is_freed;
};

_Static_assert(MUSTER_RETURN_VALUE_MAXIMUM == RUN_RETURN_VALUE_MAXIMUM, "one limit for both");

/* In a worker. */

static void say_why(const struct failure *failure) {
    const char *path = getenv("TORCHELASTIC_ERROR_FILE");
    struct failure_account account = {
        .message = memory_duplicate_string(failure->message), .seconds = time(NULL)};
    struct text content = {0};
    error_file_json_write(&account, &content);
    (void)fprintf(stderr, "%s\n", failure->message);
    if (path != NULL) {
        (void)!error_file_write(path, slice_from_string(text_string(&content)), NULL);
    }
    text_clear(&content);
    free(account.message);
}

static int run_function(void *context, int fd) {
    const struct muster_agent_settings *settings = context;
    struct muster_return_value value = {NULL, 0};
    struct failure failure = {0};
    agent_job_hide_token();
    int status = settings->function(settings->function_context, &value);
    if (status == 0 && worker_value_write(fd, (struct slice){value.data, value.length}, &failure) !=
                           FAILURE_NONE) {
        say_why(&failure);
        return EXIT_FAILURE;
    }
    return status;
}

/* `descriptors` are not for workers. */
static enum failure_code run_order(struct agent_order *order,
    const struct agent_audience_settings *audience, const int descriptors[2], int *out_status,
    bool *out_has_no_memory, struct failure *failure) {
    struct process_function function = {run_function, &order->settings, {0}};
    struct agent_program program = {.audience = *audience, .out_has_no_memory = out_has_no_memory};
    if (order->settings.function != NULL) {
        enum failure_code code =
            process_function_keep(&function, descriptors[0], descriptors[1], failure);
        if (code != FAILURE_NONE) {
            return code;
        }
        program.function = &function;
    }
    *out_status = agent_job_run(&program, &order->config, &order->environment);
    number_list_clear(&function.kept);
    return FAILURE_NONE;
}

/* In the process apart. */

/* What the program hears where the agent has no memory even to end in order. A line may be under
 * way, which is lost then. */
static void write_last_words(struct text *out) {
    struct run_result result = {.state = RUN_STATE_UNKNOWN,
        .exit_status = EXIT_FAILURE,
        .message = memory_duplicate_string(NO_MEMORY)};
    text_append(out, "\n");
    agent_line_write_result(&result, out);
    run_result_clear(&result);
}

/* What the copy of the program is to do, and what it has to know from before. */
struct errand_apart {
    struct agent_order *order;
    struct clock_zone zone;
};

/* No thread of the program's is here, but what one of them had locked in libc stays locked. So the
 * agent asks libc for no local time, no translation and no name, and changes no variable. */
static int run_apart(void *context, int fd, int program) {
    struct errand_apart *errand = context;
    struct agent_order *order = errand->order;
    const struct agent_audience_settings audience = {.channel = fd, .program = program};
    const int descriptors[] = {fd, program};
    int status = EXIT_FAILURE;
    struct text last_words = {0};
    write_last_words(&last_words);
    abort_notice_install();
    abort_notice_tell(fd, text_string(&last_words));
    agent_job_hide_token();
    clock_zone_keep(&errand->zone);
    name_lookup_use_getent();
    environ = order->environment.items;
    (void)!run_order(order, &audience, descriptors, &status, NULL, NULL);
    return status;
}

/* In the program. */

static enum muster_error check_descriptors(
    const struct muster_agent_settings *settings, struct muster_failure *failure) {
    if (settings->stdout_fd < -1 || settings->stderr_fd < -1) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "%d is no descriptor",
            settings->stdout_fd < -1 ? settings->stdout_fd : settings->stderr_fd);
    }
    return MUSTER_OK;
}

enum muster_error muster_agent_start(const struct muster_agent_settings *settings,
    struct muster_agent **out_agent, struct muster_failure *out_failure) {
    struct agent_order order;
    struct failure failure = {0};
    if (out_agent == NULL) {
        return library_fail(out_failure, MUSTER_ERROR_INVALID, "there is no place for the agent");
    }
    enum muster_error error = library_memory_check(out_failure);
    if (error == MUSTER_OK) {
        error = agent_order_read(settings, &order, out_failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    error = check_descriptors(&order.settings, out_failure);
    struct muster_agent *agent = memory_allocate(sizeof *agent);
    struct errand_apart errand = {.order = &order};
    const struct process_apart_settings apart = {
        order.settings.stdout_fd, order.settings.stderr_fd, run_apart, &errand};
    clock_zone_learn(&errand.zone);
    if (error == MUSTER_OK &&
        process_apart_start(&apart, &agent->process, &failure) != FAILURE_NONE) {
        error = library_pass_on(out_failure, &failure);
    }
    agent->settings = order.settings;
    agent->owner = getpid();
    agent->reading.settings = &agent->settings;
    agent_order_clear(&order);
    if (error != MUSTER_OK) {
        free(agent);
        return error;
    }
    *out_agent = agent;
    return MUSTER_OK;
}

static enum muster_error check_agent(
    const struct muster_agent *agent, struct muster_failure *failure) {
    if (agent == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "the agent is NULL");
    }
    if (agent->owner != getpid()) {
        return library_fail(
            failure, MUSTER_ERROR_FORKED, "the agent belongs to the process that has made it");
    }
    if (agent->is_freed) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the agent is being freed");
    }
    return MUSTER_OK;
}

static enum muster_error check_running(
    const struct muster_agent *agent, struct muster_failure *failure) {
    enum muster_error error = check_agent(agent, failure);
    if (error == MUSTER_OK && agent->has_ended) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the agent has ended");
    }
    return error;
}

/* Another process that was forked from the program may hold the socket, too, so to close it would
 * not be seen by the agent. */
static void destroy(struct muster_agent *agent) {
    (void)shutdown(agent->process.fd, SHUT_RDWR);
    close(agent->process.fd);
    if (agent->process.pidfd >= 0) {
        close(agent->process.pidfd);
    }
    agent_reading_clear(&agent->reading);
    text_clear(&agent->line);
    free(agent);
}

static bool ask_to_end(const struct muster_agent *agent, int signal) {
    const unsigned char request = (unsigned char)signal;
    return send(agent->process.fd, &request, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

void muster_agent_free(struct muster_agent *agent) {
    if (check_agent(agent, NULL) != MUSTER_OK) {
        return;
    }
    if (!agent->has_ended) {
        (void)ask_to_end(agent, SIGTERM);
    }
    agent->is_freed = true;
    if (!agent->is_busy) {
        destroy(agent);
    }
}

int muster_agent_fd(const struct muster_agent *agent) {
    return check_agent(agent, NULL) == MUSTER_OK ? agent->process.fd : -1;
}

enum muster_error muster_agent_pid(
    const struct muster_agent *agent, long *out_pid, struct muster_failure *failure) {
    enum muster_error error = check_running(agent, failure);
    if (error == MUSTER_OK && out_pid == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no place for the pid");
    }
    if (error == MUSTER_OK) {
        *out_pid = (long)agent->process.pid;
    }
    return error;
}

enum muster_error muster_agent_stop(
    struct muster_agent *agent, int signal, struct muster_failure *failure) {
    enum muster_error error = check_running(agent, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (signal < 0 || signal > SIGNAL_MAXIMUM) {
        return library_fail(
            failure, MUSTER_ERROR_INVALID, "%d is no signal; 0 to %d are", signal, SIGNAL_MAXIMUM);
    }
    if (!ask_to_end(agent, signal == 0 ? SIGTERM : signal)) {
        return errno == EAGAIN
                   ? library_fail(failure, MUSTER_ERROR_LIMIT,
                         "the agent has not taken earlier requests yet; ask again later")
                   : library_fail(failure, MUSTER_ERROR_STATE, "the agent has ended");
    }
    return MUSTER_OK;
}

enum muster_error muster_agent_kill(struct muster_agent *agent, struct muster_failure *failure) {
    enum muster_error error = check_running(agent, failure);
    if (error == MUSTER_OK && !process_apart_signal(&agent->process, SIGKILL)) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the agent has ended");
    }
    return error;
}

enum muster_error muster_agent_result(const struct muster_agent *agent,
    const struct muster_run_result **out_result, struct muster_failure *failure) {
    enum muster_error error = check_agent(agent, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (out_result == NULL) {
        return library_fail(failure, MUSTER_ERROR_INVALID, "there is no place for the result");
    }
    if (!agent->has_ended) {
        return library_fail(failure, MUSTER_ERROR_STATE, "the agent has not ended");
    }
    *out_result = &agent->reading.result;
    return MUSTER_OK;
}

/* Taking what the agent says. */

static void take_line(struct muster_agent *agent) {
    if (!agent->is_line_too_long) {
        agent_reading_take(&agent->reading, slice_from_string(text_string(&agent->line)));
    }
    text_clear(&agent->line);
    agent->is_line_too_long = false;
}

static void keep(struct muster_agent *agent, const char *bytes, size_t length) {
    if (agent->line.length + length > AGENT_LINE_MAXIMUM) {
        agent->is_line_too_long = true;
        text_clear(&agent->line);
    }
    if (!agent->is_line_too_long) {
        text_append_bytes(&agent->line, bytes, length);
    }
}

static void take_bytes(struct muster_agent *agent, const char *bytes, size_t length) {
    const char *end;
    while (!agent->is_freed && (end = memchr(bytes, '\n', length)) != NULL) {
        size_t taken = (size_t)(end - bytes);
        keep(agent, bytes, taken);
        take_line(agent);
        bytes += taken + 1;
        length -= taken + 1;
    }
    if (!agent->is_freed) {
        keep(agent, bytes, length);
    }
}

static void take_end(struct muster_agent *agent) {
    agent->has_ended = true;
    agent_reading_end(&agent->reading);
}

/* Whether there is memory to take a chunk, and to read a line that ends with it. Else it waits in
 * the socket. */
static bool has_memory(const struct muster_agent *agent) {
    return spare_memory_is_enough_for(agent->line.length + CHUNK_SIZE, LINE_FACTOR);
}

/* False: there is no more for now. */
static bool take_chunk(struct muster_agent *agent, char chunk[CHUNK_SIZE]) {
    ssize_t length = recv(agent->process.fd, chunk, CHUNK_SIZE, MSG_DONTWAIT);
    if (length > 0) {
        take_bytes(agent, chunk, (size_t)length);
    } else if (length == 0 || (errno != EAGAIN && errno != EINTR)) {
        take_end(agent);
    }
    return length > 0;
}

enum muster_error muster_agent_process(struct muster_agent *agent, struct muster_failure *failure) {
    enum muster_error error = check_agent(agent, failure);
    if (error != MUSTER_OK) {
        return error;
    }
    if (agent->is_busy) {
        return library_fail(failure, MUSTER_ERROR_STATE, "not from inside a callback");
    }
    if (!has_memory(agent)) {
        return library_fail(failure, MUSTER_ERROR_MEMORY, "there is no memory for what it says");
    }
    char *chunk = memory_allocate(CHUNK_SIZE);
    agent->is_busy = true;
    for (int i = 0; i < MOST_CHUNKS && !agent->has_ended && !agent->is_freed; i++) {
        if (!has_memory(agent) || !take_chunk(agent, chunk)) {
            break;
        }
    }
    agent->is_busy = false;
    free(chunk);
    if (agent->is_freed) {
        destroy(agent);
    }
    return MUSTER_OK;
}

/* In this process. */

static void take_own_line(void *context, const char *lines) {
    struct agent_reading *reading = context;
    const char *end;
    for (; (end = strchr(lines, '\n')) != NULL; lines = end + 1) {
        agent_reading_take(
            reading, (struct slice){(const unsigned char *)lines, (size_t)(end - lines)});
    }
}

enum muster_error muster_agent_run(
    const struct muster_agent_settings *settings, int *out_status, struct muster_failure *failure) {
    struct agent_order order;
    enum muster_error error = library_memory_check(failure);
    if (error == MUSTER_OK) {
        error = agent_order_read(settings, &order, failure);
    }
    if (error != MUSTER_OK) {
        return error;
    }
    struct agent_reading reading = {.settings = &order.settings};
    const struct agent_audience_settings audience = {
        .tell = take_own_line, .tell_context = &reading};
    static const int none[] = {-1, -1};
    struct failure reason = {0};
    int status;
    bool has_no_memory = false;
    abort_notice_install();
    enum failure_code code = run_order(&order, &audience, none, &status, &has_no_memory, &reason);
    abort_notice_remove();
    if (code != FAILURE_NONE) {
        agent_order_clear(&order);
        return library_pass_on(failure, &reason);
    }
    agent_reading_end(&reading);
    if (out_status != NULL) {
        *out_status = status;
    }
    agent_reading_clear(&reading);
    agent_order_clear(&order);
    return has_no_memory ? library_fail(failure, MUSTER_ERROR_MEMORY, NO_MEMORY) : MUSTER_OK;
}
