/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/workers/log_plan.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* An empty line buffer that is larger than this is freed: most lines are short, and there are many
 * streams. */
#define KEPT_CAPACITY 4096

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* The receiver of the lines during one call. */
struct outlet {
    line_visit *visit;
    void *context;
};

void line_splitter_clear(struct line_splitter *splitter) {
    text_clear(&splitter->line);
    *splitter = (struct line_splitter){0};
}

/* `newline_length`: how many bytes of input became the newline. */
static void end_line(
    struct line_splitter *splitter, size_t newline_length, const struct outlet *outlet) {
    text_append(&splitter->line, "\n");
    struct line line = {
        .text = {(const uint8_t *)splitter->line.data, splitter->line.length},
        .raw_length = splitter->raw_length + newline_length,
    };
    splitter->raw_length = 0;
    outlet->visit(outlet->context, &line);
    splitter->line.length = 0;
    if (splitter->line.capacity > KEPT_CAPACITY) {
        text_clear(&splitter->line);
    }
}

/* Adds one decoded character, which was `raw_length` bytes of input. */
static void add_character(struct line_splitter *splitter, const void *data, size_t length,
    size_t raw_length, const struct outlet *outlet) {
    if (splitter->line.length + length > LINE_SPLITTER_CEILING) {
        end_line(splitter, 0, outlet);
    }
    text_append_bytes(&splitter->line, data, length);
    splitter->raw_length += raw_length;
}

static void add_replacement(
    struct line_splitter *splitter, size_t raw_length, const struct outlet *outlet) {
    add_character(splitter, replacement, strlen(replacement), raw_length, outlet);
}

/* The length of a character that starts with this byte; 0 when no character does. */
static size_t sequence_length_of(uint8_t lead) {
    if (lead >= 0xC2 && lead <= 0xDF) {
        return 2;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        return 3;
    }
    return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

/* Whether the sequence may continue with this byte. The limits for the second byte exclude overlong
 * forms, surrogates and code points beyond U+10FFFF. */
static bool continues_sequence(const struct line_splitter *splitter, uint8_t byte) {
    uint8_t lowest = 0x80;
    uint8_t highest = 0xBF;
    if (splitter->sequence_length == 1) {
        switch (splitter->sequence[0]) {
        case 0xE0:
            lowest = 0xA0;
            break;
        case 0xED:
            highest = 0x9F;
            break;
        case 0xF0:
            lowest = 0x90;
            break;
        case 0xF4:
            highest = 0x8F;
            break;
        default:
            break;
        }
    }
    return byte >= lowest && byte <= highest;
}

/* Takes the byte as part of the incomplete character. Returns false when the byte is not part of
 * it: the incomplete character then becomes one U+FFFD, as in Python's decoder. */
static bool continue_sequence(
    struct line_splitter *splitter, uint8_t byte, const struct outlet *outlet) {
    size_t length = splitter->sequence_length;
    if (!continues_sequence(splitter, byte)) {
        splitter->sequence_length = 0;
        add_replacement(splitter, length, outlet);
        return false;
    }
    splitter->sequence[length++] = byte;
    splitter->sequence_length = (uint8_t)length;
    if (length == sequence_length_of(splitter->sequence[0])) {
        splitter->sequence_length = 0;
        add_character(splitter, splitter->sequence, length, length, outlet);
    }
    return true;
}

static void take_byte(struct line_splitter *splitter, uint8_t byte, const struct outlet *outlet) {
    if (splitter->has_return) {
        splitter->has_return = false;
        end_line(splitter, byte == '\n' ? 2 : 1, outlet);
        if (byte == '\n') {
            return;
        }
    }
    if (splitter->sequence_length > 0 && continue_sequence(splitter, byte, outlet)) {
        return;
    }
    if (byte == '\n') {
        end_line(splitter, 1, outlet);
    } else if (byte == '\r') {
        splitter->has_return = true;
    } else if (byte < 0x80) {
        add_character(splitter, &byte, 1, 1, outlet);
    } else if (sequence_length_of(byte) > 0) {
        splitter->sequence[0] = byte;
        splitter->sequence_length = 1;
    } else {
        add_replacement(splitter, 1, outlet);
    }
}

/* How many bytes at the start are ASCII characters of one line. */
static size_t length_of_plain_run(struct slice input) {
    size_t length = 0;
    while (length < input.length && input.data[length] < 0x80 && input.data[length] != '\n' &&
           input.data[length] != '\r') {
        length++;
    }
    return length;
}

/* Does the same as take_byte for each byte, but at the speed of memcpy. */
static void take_plain_run(
    struct line_splitter *splitter, struct slice run, const struct outlet *outlet) {
    while (run.length > 0) {
        if (splitter->line.length == LINE_SPLITTER_CEILING) {
            end_line(splitter, 0, outlet);
        }
        size_t room = LINE_SPLITTER_CEILING - splitter->line.length;
        size_t length = run.length < room ? run.length : room;
        text_append_bytes(&splitter->line, (const char *)run.data, length);
        splitter->raw_length += length;
        run.data += length;
        run.length -= length;
    }
}

void line_splitter_feed(
    struct line_splitter *splitter, struct slice input, line_visit *visit, void *context) {
    const struct outlet outlet = {visit, context};
    while (input.length > 0) {
        size_t taken = 0;
        if (splitter->sequence_length == 0 && !splitter->has_return) {
            taken = length_of_plain_run(input);
            take_plain_run(splitter, (struct slice){input.data, taken}, &outlet);
        }
        if (taken < input.length) {
            take_byte(splitter, input.data[taken], &outlet);
            taken++;
        }
        input.data += taken;
        input.length -= taken;
    }
}

void line_splitter_finish(struct line_splitter *splitter, line_visit *visit, void *context) {
    const struct outlet outlet = {visit, context};
    if (splitter->sequence_length > 0) {
        size_t length = splitter->sequence_length;
        splitter->sequence_length = 0;
        add_replacement(splitter, length, &outlet);
    }
    if (splitter->has_return || splitter->line.length > 0) {
        size_t newline_length = splitter->has_return ? 1 : 0;
        splitter->has_return = false;
        end_line(splitter, newline_length, &outlet);
    }
    line_splitter_clear(splitter);
}

static bool contains(struct slice line, const char *needle) {
    size_t length = strlen(needle);
    if (length == 0) {
        return true;
    }
    const uint8_t *from = line.data;
    size_t left = line.length;
    while (left >= length) {
        const uint8_t *found = memchr(from, needle[0], left - length + 1);
        if (found == NULL) {
            return false;
        }
        if (memcmp(found, needle, length) == 0) {
            return true;
        }
        left -= (size_t)(found - from) + 1;
        from = found + 1;
    }
    return false;
}

bool line_matches(struct slice line, const struct text_list *needles) {
    for (size_t i = 0; i < needles->count; i++) {
        if (contains(line, needles->items[i])) {
            return true;
        }
    }
    return false;
}

/* Log plan. */

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
