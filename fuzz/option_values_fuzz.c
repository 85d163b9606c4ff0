/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary texts with each grammar of a single option value; the first byte chooses the
 * grammar. A refused text must have a reason; an accepted value must be within its bounds. */
#include <stdlib.h>

#include "options/argparse/option_result.h"
#include "options/launch/launch_options.h"
#include "options/launch/option_values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds) {
        abort();
    }
}

static enum failure_code try_node_range(const char *text, struct text *reason) {
    int minimum = 1;
    int maximum = 1;
    enum failure_code code = option_parse_node_range(text, &minimum, &maximum, reason);
    require(minimum >= 1 && minimum <= maximum && maximum <= LAUNCH_MAXIMUM_NODES);
    return code;
}

static enum failure_code try_worker_count(const char *text, struct text *reason) {
    enum launch_worker_count kind = LAUNCH_COUNT_NUMBER;
    int count = 1;
    enum failure_code code = option_parse_worker_count(text, &kind, &count, reason);
    require((kind == LAUNCH_COUNT_NUMBER) == (count > 0));
    require(count <= LAUNCH_MAXIMUM_WORKERS_PER_NODE);
    return code;
}

static enum failure_code try_streams(const char *text, struct text *reason) {
    struct launch_streams streams = {0};
    enum failure_code code = option_parse_streams(text, &streams, reason);
    require(streams.rank_count <= LAUNCH_MAXIMUM_WORKERS_PER_NODE);
    for (size_t i = 0; i < streams.rank_count; i++) {
        require(streams.by_rank[i] >= -1 && streams.by_rank[i] <= 3);
    }
    free(streams.by_rank);
    return code;
}

static enum failure_code try_rank_list(const char *text, struct text *reason) {
    int *ranks = NULL;
    size_t count = 0;
    enum failure_code code = option_parse_rank_list(text, &ranks, &count, reason);
    for (size_t i = 1; i < count; i++) {
        require(ranks[i - 1] < ranks[i]);
    }
    free(ranks);
    return code;
}

static enum failure_code try_signals(const char *text, struct text *reason) {
    int signals[LAUNCH_MAXIMUM_SIGNALS] = {0};
    size_t count = 0;
    enum failure_code code = option_parse_signals(text, signals, &count, reason);
    require(count <= LAUNCH_MAXIMUM_SIGNALS);
    for (size_t i = 0; i < count; i++) {
        require(signals[i] >= 1 && signals[i] <= 64 && signals[i] != 9 && signals[i] != 19);
    }
    return code;
}

static enum failure_code try_endpoint(const char *text, struct text *reason) {
    struct endpoint endpoint = {0};
    enum failure_code code = endpoint_parse(text, &endpoint, reason);
    require(endpoint.port >= ENDPOINT_NO_PORT && endpoint.port <= 65535);
    require((code == FAILURE_NONE) == (endpoint.host != NULL));
    endpoint_clear(&endpoint);
    return code;
}

/* --rdzv-conf is no room of its own: it is read with the command line. */
static enum failure_code try_conf(const char *text, struct text *reason) {
    static const char *const given[] = {"--nnodes=2", "--rdzv-endpoint=h", "--rdzv-id=j", "t.py"};
    struct text_list arguments = {0};
    struct text_list environment = {0};
    struct launch_options options;
    text_list_add_taken(&arguments, text_format("--rdzv-conf=%s", text));
    text_list_add(&arguments, "--rdzv-backend=c10d");
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        text_list_add(&arguments, given[i]);
    }
    launch_options_parse("torchrun", &arguments, &environment, &options);
    require(options.config.dynamic.settings.keep_alive_max_attempt >= 0);
    bool is_read = options.outcome == OPTION_OUTCOME_VALUES;
    text_append(reason, is_read ? "" : options.text);
    launch_options_clear(&options);
    text_list_clear(&arguments);
    return is_read ? FAILURE_NONE : FAILURE_INVALID;
}

static enum failure_code try_scale_up(const char *text, struct text *reason) {
    enum rendezvous_scale_up scale_up = RENDEZVOUS_SCALE_UP_ALLOWED;
    struct duration interval = {0};
    enum failure_code code = option_parse_scale_up(text, &scale_up, &interval, reason);
    require(interval.nanoseconds >= 0);
    return code;
}

static enum failure_code try_memory(const char *text, struct text *reason) {
    uint64_t bytes = 0;
    int percent = 0;
    enum failure_code code = option_parse_memory(text, &bytes, &percent, reason);
    require((code == FAILURE_NONE) == ((bytes > 0) != (percent > 0)));
    require(percent >= 0 && percent <= 100 && bytes <= UINT64_C(1) << 62);
    return code;
}

static enum failure_code try_scratch(const char *text, struct text *reason) {
    uint64_t bytes = 0;
    enum failure_code code = option_parse_scratch(text, &bytes, reason);
    require(bytes == 0 || (bytes >= OPTION_SCRATCH_LEAST && bytes <= UINT64_C(1) << 62));
    return code;
}

static enum failure_code try_commas(const char *text, struct text *reason) {
    static const struct option_definition list = {.destination = "l", .kind = OPTION_COMMA_LIST};
    struct option_value value = {0};
    enum failure_code code = option_convert(&list, text, &value, reason);
    require(code == FAILURE_NONE && value.list.count >= 1);
    text_list_clear(&value.list);
    free(value.text);
    return code;
}

static enum failure_code try_exit_on(const char *text, struct text *reason) {
    struct launch_exit_on exit_on = {0};
    enum failure_code code = option_parse_exit_on(text, &exit_on, reason);
    require(!exit_on.codes[0] && !exit_on.signals[0]);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static enum failure_code (*const grammars[])(const char *, struct text *) = {try_node_range,
        try_worker_count, try_streams, try_rank_list, try_signals, try_endpoint, try_conf,
        try_commas, try_scale_up, try_memory, try_scratch, try_exit_on};
    if (size == 0) {
        return 0;
    }
    struct text value = {0};
    struct text reason = {0};
    text_append_bytes(&value, (const char *)data + 1, size - 1);
    size_t grammar = data[0] % (sizeof grammars / sizeof *grammars);
    enum failure_code code = grammars[grammar](text_string(&value), &reason);
    require((code == FAILURE_NONE) == (reason.length == 0));
    text_clear(&value);
    text_clear(&reason);
    return 0;
}
