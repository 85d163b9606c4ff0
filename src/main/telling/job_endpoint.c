/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/telling/job_endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/utf8.h"
#include "host/loop/clock.h"
#include "main/command.h"
#include "options/slurm/slurm_step.h"

#define ANSWER_MAXIMUM ((size_t)4 << 20)
#define PIECE 4096

/* Slurm. */

/* What squeue prints on both outputs, within the patience; FAILURE_TIMEOUT after it. */
static enum failure_code hear(int fd, struct duration patience, struct text *out) {
    struct instant end = instant_after(clock_now(), patience);
    char piece[PIECE];
    for (;;) {
        int64_t left = instant_until(clock_now(), end).nanoseconds / NANOSECONDS_PER_MILLISECOND;
        struct pollfd watched = {.fd = fd, .events = POLLIN};
        if (left <= 0 || out->length > ANSWER_MAXIMUM || poll(&watched, 1, (int)left) == 0) {
            return FAILURE_TIMEOUT;
        }
        ssize_t length = read(fd, piece, sizeof piece);
        if (length > 0) {
            text_append_bytes(out, piece, (size_t)length);
        } else if (length == 0 || errno != EINTR) {
            return FAILURE_NONE;
        }
    }
}

/* Its exit status; -1: it does not answer in time, or is not there. */
static int ask_slurm(char *job, struct duration patience, struct text *out) {
    char program[] = "squeue";
    char no_header[] = "--noheader";
    char steps[] = "--steps";
    char format[] = "--format=%i %N";
    char *const words[] = {program, no_header, steps, job, format, NULL};
    extern char **environ;
    posix_spawn_file_actions_t actions;
    int ends[2];
    int status = -1;
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    bool is_there = posix_spawnp(&pid, words[0], &actions, NULL, words, environ) == 0;
    close(ends[1]);
    posix_spawn_file_actions_destroy(&actions);
    if (is_there) {
        bool has_answered = hear(ends[0], patience, out) == FAILURE_NONE;
        if (!has_answered) {
            (void)kill(pid, SIGKILL);
        }
        (void)waitpid(pid, &status, 0);
        status = has_answered && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    } else {
        text_append(out, "squeue is not there, or cannot be run");
    }
    close(ends[0]);
    return status;
}

bool job_endpoint_is_step(const char *word) {
    size_t job = strspn(word, "0123456789");
    const char *step = word + job;
    return job > 0 && job < 20 &&
           (*step == '\0' || (*step == '.' && strlen(step) > 1 && strlen(step) < 20 &&
                                strspn(step + 1, "0123456789") == strlen(step + 1)));
}

/* Of the lines that squeue prints that of the step that is asked for; steps without a number are
 * Slurm's own. Returns how many there are. */
static size_t find_step(char *lines, const char *wanted, char **out_step, char **out_nodes) {
    size_t count = 0;
    char *rest = NULL;
    size_t length = strlen(wanted);
    for (char *line = strtok_r(lines, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *nodes = strchr(line, ' ');
        if (nodes == NULL) {
            continue;
        }
        *nodes++ = '\0';
        bool is_wanted = strncmp(line, wanted, length) == 0 &&
                         (line[length] == '\0' || line[length] == '.') &&
                         job_endpoint_is_step(line) &&
                         strchr(line, '.') != NULL;
        if (is_wanted) {
            *out_step = line;
            *out_nodes = nodes;
            count++;
        }
    }
    return count;
}

/* As the variables of a task of the step have it. */
static bool describe_step(
    const char *step, const char *nodes, struct text_list *environment, size_t *out_count) {
    struct text_list hosts = {0};
    bool is_well = hostlist_expand(nodes, &hosts) == FAILURE_NONE;
    char *job = text_format("%.*s", (int)strcspn(step, "."), step);
    char *count = text_format("%zu", hosts.count);
    char *tasks = text_format("1(x%zu)", hosts.count);
    text_list_set_variable(environment, "SLURM_JOB_ID", job);
    text_list_set_variable(environment, "SLURM_STEP_ID", strchr(step, '.') + 1);
    text_list_set_variable(environment, "SLURM_STEP_NODELIST", nodes);
    text_list_set_variable(environment, "SLURM_STEP_NUM_NODES", count);
    text_list_set_variable(environment, "SLURM_STEP_TASKS_PER_NODE", tasks);
    *out_count = hosts.count;
    free(job);
    free(count);
    free(tasks);
    text_list_clear(&hosts);
    return is_well;
}

static int say(const char *program, int status, char *words_taken) {
    utf8_make_line_printable(words_taken);
    fprintf(stderr, "%s: error: %s\n", program, words_taken);
    free(words_taken);
    return status;
}

/* EXIT_SUCCESS: the environment is that of a task of the step. */
static int take_step(const char *program, const char *wanted, struct duration patience,
    struct text_list *environment) {
    struct text answer = {0};
    char *step = NULL;
    char *nodes = NULL;
    size_t count = 0;
    char *job = text_format("--jobs=%.*s", (int)strcspn(wanted, "."), wanted);
    int status = ask_slurm(job, patience, &answer);
    size_t steps = status == 0 ? find_step(answer.data != NULL ? answer.data : (char[]){""}, wanted,
                                     &step, &nodes)
                               : 0;
    int code = EXIT_SUCCESS;
    if (status != 0) {
        code = say(program, EXIT_FAILURE,
            text_format("Slurm does not say where job %s runs: %s", wanted,
                answer.length > 0 ? text_string(&answer) : "squeue has not answered in time"));
    } else if (steps == 0) {
        code = say(program, EXIT_FAILURE,
            text_format("job %s has no step that runs (squeue --steps --jobs=%s)", wanted, wanted));
    } else if (steps > 1) {
        code = say(program, EXIT_STATUS_USAGE,
            text_format("job %s has %zu steps; write which one is meant, as --slurm-job %s", wanted,
                steps, step));
    } else if (!describe_step(step, nodes, environment, &count) || count < 2) {
        code = say(program, EXIT_FAILURE,
            text_format("step %s runs on %s alone; ask there: srun --overlap --jobid %.*s %s", step,
                nodes, (int)strcspn(step, "."), step, program));
    }
    free(job);
    text_clear(&answer);
    return code;
}

/* The endpoint. */

static void add(struct text_list *arguments, const char *name, const struct option_result *options,
    const char *destination) {
    const char *text = option_result_text(options, destination);
    if (*text != '\0') {
        text_list_add(arguments, name);
        text_list_add(arguments, text);
    }
}

/* Without an endpoint the environment is that of a step of Slurm's, which says where it is. */
static bool read_options(const char *program, const struct option_result *options,
    bool has_endpoint, const struct text_list *environment, struct launch_options *out_options) {
    struct text_list arguments = {0};
    if (has_endpoint) {
        add(&arguments, "--rdzv-endpoint", options, "rdzv_endpoint");
        add(&arguments, "--rdzv-backend", options, "rdzv_backend");
        add(&arguments, "--rdzv-id", options, "rdzv_id");
    }
    add(&arguments, "--rdzv-conf", options, "rdzv_conf");
    add(&arguments, "--token-file", options, "token_file");
    add(&arguments, "--auth", options, "auth");
    if (has_endpoint) {
        text_list_add(&arguments, "--nnodes=2");
    }
    text_list_add(&arguments, "script.py");
    launch_options_parse(program, &arguments, environment, out_options);
    text_list_clear(&arguments);
    if (out_options->outcome != OPTION_OUTCOME_VALUES) {
        const char *error = strstr(out_options->text, "error: ");
        char *line = text_format("%s", error != NULL ? error : out_options->text);
        utf8_make_string_printable(line);
        fprintf(stderr, "%s: %s", program, line);
        free(line);
        return false;
    }
    return true;
}

int job_endpoint_open(const char *program, const struct option_result *options,
    const struct text_list *environment, struct job_endpoint *out_endpoint) {
    struct failure failure = {0};
    struct duration timeout =
        duration_from_seconds(option_result_value(options, "timeout")->number);
    const char *slurm_job = option_result_value(options, "slurm_job")->text;
    bool has_endpoint = *option_result_text(options, "rdzv_endpoint") != '\0';
    struct text_list of_step = {0};
    if (!has_endpoint && slurm_job == NULL) {
        return EXIT_SUCCESS;
    }
    text_list_add_all(&of_step, environment);
    int code = has_endpoint ? EXIT_SUCCESS : take_step(program, slurm_job, timeout, &of_step);
    if (code == EXIT_SUCCESS &&
        !read_options(program, options, has_endpoint, &of_step, &out_endpoint->options)) {
        code = EXIT_STATUS_USAGE;
    }
    text_list_clear(&of_step);
    if (code != EXIT_SUCCESS) {
        return code;
    }
    if (job_host_open(&out_endpoint->options.config, timeout, &out_endpoint->host, &failure) !=
        FAILURE_NONE) {
        fprintf(stderr, "%s: error: %s\n", program, failure.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

void job_endpoint_clear(struct job_endpoint *endpoint) {
    job_host_free(endpoint->host);
    launch_options_clear(&endpoint->options);
    *endpoint = (struct job_endpoint){0};
}
