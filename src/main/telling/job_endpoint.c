/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/telling/job_endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "main/command.h"

static void add(struct text_list *arguments, const char *name, const struct option_result *options,
    const char *destination) {
    const char *text = option_result_text(options, destination);
    if (*text != '\0') {
        text_list_add(arguments, name);
        text_list_add(arguments, text);
    }
}

static bool read_options(const char *program, const struct option_result *options,
    const struct text_list *environment, struct launch_options *out_options) {
    struct text_list arguments = {0};
    add(&arguments, "--rdzv-endpoint", options, "rdzv_endpoint");
    add(&arguments, "--rdzv-backend", options, "rdzv_backend");
    add(&arguments, "--rdzv-id", options, "rdzv_id");
    add(&arguments, "--rdzv-conf", options, "rdzv_conf");
    add(&arguments, "--token-file", options, "token_file");
    add(&arguments, "--auth", options, "auth");
    text_list_add(&arguments, "--nnodes=2");
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
    if (*option_result_text(options, "rdzv_endpoint") == '\0') {
        return EXIT_SUCCESS;
    }
    if (!read_options(program, options, environment, &out_endpoint->options)) {
        return EXIT_STATUS_USAGE;
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
