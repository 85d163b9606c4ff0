/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary command lines and environments. Arguments are separated by NUL bytes; an argument
 * that starts with byte 1 is a NAME=VALUE. The result must be a configuration within its documented
 * limits, or a text to print. */
#include <stdlib.h>
#include <string.h>

#include "options/launch/launch_options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds) {
        abort();
    }
}

static void check_size(const struct launch_config *config) {
    require(config->minimum_nodes >= 1 && config->minimum_nodes <= config->maximum_nodes);
    require(config->maximum_nodes <= LAUNCH_MAXIMUM_NODES);
    bool is_number = config->worker_count_kind == LAUNCH_COUNT_NUMBER;
    require(is_number == (config->worker_count > 0));
    require(config->worker_count <= LAUNCH_MAXIMUM_WORKERS_PER_NODE);
    require(config->max_restarts >= 0);
}

static void check_rendezvous(const struct launch_config *config) {
    bool is_static = config->rendezvous == LAUNCH_RENDEZVOUS_STATIC;
    require(is_static == (config->master_host != NULL));
    require(is_static || config->maximum_nodes == 1);
    require(config->master_port >= 0 && config->master_port <= 65535);
    require(!is_static || config->run_id != NULL);
    require(config->node_rank >= 0 && config->node_rank < config->maximum_nodes);
    require(config->store_timeout.nanoseconds > 0);
}

static void check_rest(const struct launch_config *config) {
    require(config->script[0] != '\0');
    require(config->role != NULL && config->signals_to_handle != NULL);
    for (size_t i = 0; i < config->signal_count; i++) {
        require(config->signals[i] >= 1 && config->signals[i] <= 64);
    }
    for (size_t i = 1; i < config->local_ranks_filter_count; i++) {
        require(config->local_ranks_filter[i - 1] < config->local_ranks_filter[i]);
    }
    require(config->shutdown_timeout.nanoseconds >= 0);
    for (int rank = 0; rank < LAUNCH_MAXIMUM_WORKERS_PER_NODE; rank += 7) {
        require((launch_streams_for(&config->redirects, rank) & ~3) == 0);
        require((launch_streams_for(&config->tee, rank) & ~3) == 0);
    }
}

static void check_text(const struct launch_options *options) {
    size_t length = strlen(options->text);
    require(length > 0 && options->text[length - 1] == '\n');
    bool is_mistake = options->outcome == OPTION_OUTCOME_MISTAKE;
    require(is_mistake == (strstr(options->text, "\ntorchrun: error: ") != NULL));
}

static void read_pieces(const uint8_t *data, size_t size, struct text_list *out_arguments,
    struct text_list *out_environment) {
    while (size > 0) {
        const uint8_t *end = memchr(data, 0, size);
        size_t length = end == NULL ? size : (size_t)(end - data);
        bool is_variable = length > 0 && data[0] == 1;
        struct text piece = {0};
        text_append_bytes(&piece, (const char *)data + is_variable, length - is_variable);
        text_list_add_taken(is_variable ? out_environment : out_arguments, text_take(&piece));
        size_t used = end == NULL ? size : length + 1;
        data += used;
        size -= used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text_list arguments = {0};
    struct text_list environment = {0};
    read_pieces(data, size, &arguments, &environment);
    struct launch_options options;
    launch_options_parse("torchrun", &arguments, &environment, &options);
    if (options.outcome == OPTION_OUTCOME_VALUES) {
        check_size(&options.config);
        check_rendezvous(&options.config);
        check_rest(&options.config);
    } else {
        check_text(&options);
    }
    launch_options_clear(&options);
    text_list_clear(&arguments);
    text_list_clear(&environment);
    return 0;
}
