/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/workers/log_plan.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* The longest name of a directory entry, in bytes (NAME_MAX of every Linux file system). */
#define LOG_TREE_NAME_MAXIMUM 255

bool log_tree_is_discarded(const char *log_dir) {
    return log_dir != NULL && text_equals(log_dir, "/dev/null");
}

static void append_parts(struct text *text, const char *path) {
    while (*path != '\0') {
        size_t length = strcspn(path, "/");
        bool is_redundant = length == 0 || (length == 1 && path[0] == '.');
        if (!is_redundant) {
            text_append(text, "/");
            text_append_bytes(text, path, length);
        }
        path += length + (path[length] == '/' ? 1 : 0);
    }
}

void log_tree_append_absolute(struct text *text, const char *working_directory, const char *path) {
    size_t start = text->length;
    if (path[0] != '/') {
        append_parts(text, working_directory);
    }
    append_parts(text, path);
    if (text->length == start) {
        text_append(text, "/");
    }
}

/* How many bytes of a name of `length` bytes fit into `room` without splitting a character. */
static size_t cut_at_character(const char *name, size_t length, size_t room) {
    if (length <= room) {
        return length;
    }
    size_t end = room;
    while (end > 0 && ((unsigned char)name[end] & 0xc0) == 0x80) {
        end--;
    }
    return end > 0 ? end : room; /* not UTF-8: the name is cut at any byte */
}

void log_tree_append_run_name(struct text *text, const char *run_id, const char *random) {
    size_t taken = strlen(random) + 1;
    size_t room = taken < LOG_TREE_NAME_MAXIMUM ? LOG_TREE_NAME_MAXIMUM - taken : 0;
    size_t length = cut_at_character(run_id, strlen(run_id), room);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)run_id[i];
        bool is_usable = byte != '/' && byte >= ' ' && byte != 0x7f;
        text_append_bytes(text, is_usable ? &run_id[i] : "_", 1);
    }
    text_append_format(text, "_%s", random);
}

void log_tree_append_attempt_name(
    struct text *text, const struct log_tree_attempt *attempt, int incarnation) {
    text_append_format(text, "attempt_%d", attempt->restart_count);
    if (incarnation > 0) {
        text_append_format(text, "_round_%" PRId64, attempt->round);
    }
    if (incarnation > 1) {
        text_append_format(text, ".%d", incarnation);
    }
}

char *log_tree_file_path(const char *attempt_path, int local_rank, enum log_tree_file file) {
    switch (file) {
    case LOG_TREE_STDOUT:
        return text_format("%s/%d/stdout.log", attempt_path, local_rank);
    case LOG_TREE_STDERR:
        return text_format("%s/%d/stderr.log", attempt_path, local_rank);
    case LOG_TREE_FILTERED_STDOUT:
        return text_format("%s/filtered_stdout.log", attempt_path);
    case LOG_TREE_FILTERED_STDERR:
        return text_format("%s/filtered_stderr.log", attempt_path);
    case LOG_TREE_HANG_EVIDENCE:
        return text_format("%s/%d/hang_evidence.txt", attempt_path, local_rank);
    case LOG_TREE_ERROR:
        break;
    }
    return text_format("%s/%d/error.json", attempt_path, local_rank);
}

/* Log plan. */

/* The names that a prefix template may use, in the order of set_values. */
static const char *const value_names[] = {"role_name", "local_rank", "rank", "hostname", "host"};
#define VALUE_COUNT (sizeof value_names / sizeof *value_names)

static void set_values(struct template_value *out_values, const char *const *values) {
    for (size_t i = 0; i < VALUE_COUNT; i++) {
        out_values[i] = (struct template_value){value_names[i], values[i]};
    }
}

bool log_plan_has_directory(const struct launch_config *config) {
    return config->log_dir == NULL || !log_tree_is_discarded(config->log_dir);
}

static bool has_template(const struct launch_config *config) {
    return config->log_line_prefix_template != NULL && *config->log_line_prefix_template != '\0';
}

static bool passes_filter(const struct launch_config *config, int local_rank) {
    if (!config->has_local_ranks_filter || config->local_ranks_filter_count == 0) {
        return true;
    }
    for (size_t i = 0; i < config->local_ranks_filter_count; i++) {
        if (config->local_ranks_filter[i] == local_rank) {
            return true;
        }
    }
    return false;
}

struct log_stream_plan log_plan_stream(
    const struct launch_config *config, int local_rank, int stream) {
    if (!log_plan_has_directory(config)) {
        return (struct log_stream_plan){LOG_DESTINATION_INHERIT, false};
    }
    bool is_shown = passes_filter(config, local_rank);
    if ((launch_streams_for(&config->tee, local_rank) & stream) != 0 && is_shown) {
        const struct text_list *needles = stream == LAUNCH_STREAM_STDOUT
                                              ? &config->duplicate_stdout_filters
                                              : &config->duplicate_stderr_filters;
        return (struct log_stream_plan){LOG_DESTINATION_FILE_AND_CONSOLE, needles->count > 0};
    }
    int to_file = launch_streams_for(&config->redirects, local_rank) |
                  launch_streams_for(&config->tee, local_rank);
    if ((to_file & stream) != 0) {
        return (struct log_stream_plan){LOG_DESTINATION_FILE, false};
    }
    return (struct log_stream_plan){
        is_shown ? LOG_DESTINATION_INHERIT : LOG_DESTINATION_DISCARD, false};
}

bool log_destination_is_file(enum log_destination destination) {
    return destination == LOG_DESTINATION_FILE || destination == LOG_DESTINATION_FILE_AND_CONSOLE;
}

bool log_plan_redirects(const struct launch_config *config, int worker_count) {
    static const int streams[] = {LAUNCH_STREAM_STDOUT, LAUNCH_STREAM_STDERR};
    for (int rank = 0; rank < worker_count; rank++) {
        for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
            if (log_destination_is_file(log_plan_stream(config, rank, streams[i]).destination)) {
                return true;
            }
        }
    }
    return false;
}

bool log_plan_asks_for_files(const struct launch_config *config, int worker_count) {
    return config->log_dir != NULL || log_plan_redirects(config, worker_count);
}

char *log_plan_header(const struct launch_config *config, const struct log_worker *worker) {
    if (!has_template(config) && worker->node != NULL) {
        return text_format("[%s.%s%d]:", worker->node, worker->role_name, worker->local_rank);
    }
    if (!has_template(config)) {
        return text_format("[%s%d]:", worker->role_name, worker->local_rank);
    }
    char *local_rank = text_format("%d", worker->local_rank);
    char *rank = text_format("%d", worker->rank);
    struct template_value values[VALUE_COUNT];
    set_values(values,
        (const char *[]){worker->role_name, local_rank, rank, worker->hostname, worker->hostname});
    char *header = template_substitute(config->log_line_prefix_template, values, VALUE_COUNT);
    free(local_rank);
    free(rank);
    return header;
}

void log_plan_unknown_names(const struct launch_config *config, struct text_list *out_names) {
    if (has_template(config)) {
        struct template_value values[VALUE_COUNT];
        set_values(values, (const char *[]){"", "", "", "", ""});
        template_unknown_names(config->log_line_prefix_template, values, VALUE_COUNT, out_names);
    }
}

static bool names_host(const char *path) {
    return strstr(path, "${host}") != NULL || strstr(path, "${hostname}") != NULL;
}

char *log_plan_run_name(
    const struct launch_config *config, const char *run_id, const char *hostname) {
    if (config->maximum_nodes == 1 || config->log_dir == NULL || names_host(config->log_dir)) {
        return memory_duplicate_string(run_id);
    }
    return text_format("%s_%s", run_id, config->shown_node != NULL ? config->shown_node : hostname);
}

char *log_plan_directory(const struct launch_config *config, const char *hostname) {
    const char *given = config->log_dir;
    if (given == NULL || !names_host(given)) {
        return memory_duplicate_string(given);
    }
    const struct template_value values[] = {{"host", hostname}, {"hostname", hostname}};
    return template_substitute(given, values, sizeof values / sizeof *values);
}
