/* SPDX-License-Identifier: BSD-3-Clause */
#include "options/launch/option_values.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "core/store/store_request.h"
#include "core/workers/signal_name.h"

#define LAST_EXIT_CODE 255
#define REASON_SIZE 512

static const char blanks[] = " \t\n\v\f\r";

enum failure_code option_refuse_value(
    struct text *out_reason, const char *text, const char *format, ...) {
    char rest[REASON_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(rest, sizeof rest, format, arguments);
    va_end(arguments);
    text_append(out_reason, "invalid value ");
    python_repr_append(out_reason, text);
    text_append_format(out_reason, ": %s", rest);
    return FAILURE_INVALID;
}

char *option_trim(const char *text) {
    text += strspn(text, blanks);
    size_t length = strlen(text);
    while (length > 0 && strchr(blanks, text[length - 1]) != NULL) {
        length--;
    }
    struct text trimmed = {0};
    text_append_bytes(&trimmed, text, length);
    return text_take(&trimmed);
}

char *option_copy_unless_empty(const char *text) {
    return text == NULL || *text == '\0' ? NULL : memory_duplicate_string(text);
}

void option_split(const char *text, char separator, struct text_list *out_pieces) {
    const char separators[] = {separator, '\0'};
    for (;;) {
        size_t length = strcspn(text, separators);
        struct text piece = {0};
        text_append_bytes(&piece, text, length);
        text_list_add_taken(out_pieces, text_take(&piece));
        if (text[length] == '\0') {
            return;
        }
        text += length + 1;
    }
}

static enum failure_code parse_range_ends(
    const struct text_list *ends, int64_t *out_minimum, int64_t *out_maximum) {
    enum failure_code code = text_parse_integer(ends->items[0], out_minimum);
    if (code == FAILURE_NONE) {
        code = text_parse_integer(ends->items[ends->count - 1], out_maximum);
    }
    return code;
}

enum failure_code option_parse_node_range(
    const char *text, int *out_minimum, int *out_maximum, struct text *out_reason) {
    struct text_list ends = {0};
    option_split(text, ':', &ends);
    int64_t minimum = 0;
    int64_t maximum = 0;
    enum failure_code code =
        ends.count > 2 ? FAILURE_MALFORMED : parse_range_ends(&ends, &minimum, &maximum);
    text_list_clear(&ends);
    if (code == FAILURE_MALFORMED) {
        return option_refuse_value(
            out_reason, text, "give a number of nodes, or a range MIN:MAX as in 2:4");
    }
    if (code == FAILURE_LIMIT || maximum > LAUNCH_MAXIMUM_NODES) {
        return option_refuse_value(
            out_reason, text, "a job can have at most %d nodes", LAUNCH_MAXIMUM_NODES);
    }
    if (minimum < 1) {
        return option_refuse_value(out_reason, text, "a job needs at least 1 node");
    }
    if (minimum > maximum) {
        return option_refuse_value(
            out_reason, text, "the smaller number of nodes comes first, as in 2:4");
    }
    *out_minimum = (int)minimum;
    *out_maximum = (int)maximum;
    return FAILURE_NONE;
}

static enum failure_code check_worker_number(
    const char *text, int64_t number, int *out_count, struct text *out_reason) {
    if (number < 1) {
        return option_refuse_value(
            out_reason, text, "a node needs at least 1 worker; give 1 or more");
    }
    if (number > LAUNCH_MAXIMUM_WORKERS_PER_NODE) {
        return option_refuse_value(out_reason, text, "a node can have at most %d workers",
            LAUNCH_MAXIMUM_WORKERS_PER_NODE);
    }
    *out_count = (int)number;
    return FAILURE_NONE;
}

#define DEVICE_NAME_MAXIMUM 32

/* As a module of PyTorch is called: "npu", "privateuse1". */
static bool may_name_device(const char *text) {
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return text[length] == '\0' && length > 0 && length <= DEVICE_NAME_MAXIMUM &&
           !text_is_digit(*text);
}

enum failure_code option_parse_worker_count(
    const char *text, enum launch_worker_count *out_kind, int *out_count, struct text *out_reason) {
    static const struct {
        const char *word;
        enum launch_worker_count kind;
    } words[] = {{"cpu", LAUNCH_COUNT_CPU}, {"gpu", LAUNCH_COUNT_GPU}, {"xpu", LAUNCH_COUNT_XPU},
        {"auto", LAUNCH_COUNT_AUTO}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (text_equals(text, words[i].word)) {
            *out_kind = words[i].kind;
            *out_count = 0;
            return FAILURE_NONE;
        }
    }
    int64_t number = 0;
    enum failure_code code = text_parse_integer(text, &number);
    if (code == FAILURE_MALFORMED && may_name_device(text)) {
        *out_kind = LAUNCH_COUNT_NAMED;
        *out_count = 0;
        return FAILURE_NONE;
    }
    if (code == FAILURE_MALFORMED) {
        return option_refuse_value(out_reason, text,
            "give a number of workers, one of cpu, gpu, xpu, auto, or a device of PyTorch's in "
            "small letters, such as npu");
    }
    if (code == FAILURE_LIMIT) {
        number = *text == '-' ? INT64_MIN : INT64_MAX;
    }
    code = check_worker_number(text, number, out_count, out_reason);
    if (code == FAILURE_NONE) {
        *out_kind = LAUNCH_COUNT_NUMBER;
    }
    return code;
}

static bool is_digit(char character) {
    return character >= '0' && character <= '9';
}

static bool is_streams_digit(char character) {
    return character >= '0' && character <= '3';
}

/* Reads "RANK:V" at the start of `text`. Returns the text behind it, or NULL. A rank too large for
 * the array becomes LAUNCH_MAXIMUM_WORKERS_PER_NODE. */
static const char *read_rank_streams(const char *text, int *out_rank, int *out_value) {
    int rank = 0;
    if (!is_digit(*text)) {
        return NULL;
    }
    for (; is_digit(*text); text++) {
        rank = rank * 10 + (*text - '0');
        rank = rank > LAUNCH_MAXIMUM_WORKERS_PER_NODE ? LAUNCH_MAXIMUM_WORKERS_PER_NODE : rank;
    }
    if (*text != ':' || !is_streams_digit(text[1])) {
        return NULL;
    }
    *out_rank = rank;
    *out_value = text[1] - '0';
    return text + 2;
}

static void set_rank_streams(struct launch_streams *streams, int rank, int value) {
    size_t needed = (size_t)rank + 1;
    if (needed > streams->rank_count) {
        streams->by_rank = memory_reallocate(streams->by_rank, needed * sizeof *streams->by_rank);
        while (streams->rank_count < needed) {
            streams->by_rank[streams->rank_count++] = -1;
        }
    }
    streams->by_rank[rank] = value;
}

static enum failure_code parse_streams_by_rank(
    const char *text, struct launch_streams *streams, struct text *out_reason) {
    const char *rest = text;
    for (;;) {
        int rank;
        int value;
        rest = read_rank_streams(rest, &rank, &value);
        if (rest == NULL || (*rest != ',' && *rest != '\0')) {
            return option_refuse_value(out_reason, text,
                "give 0 (nothing), 1 (stdout), 2 (stderr) or 3 (both) for all ranks, or "
                "RANK:VALUE,RANK:VALUE without blanks, as in 0:1,10:3");
        }
        if (rank >= LAUNCH_MAXIMUM_WORKERS_PER_NODE) {
            return option_refuse_value(out_reason, text, "local ranks go from 0 to %d",
                LAUNCH_MAXIMUM_WORKERS_PER_NODE - 1);
        }
        set_rank_streams(streams, rank, value);
        if (*rest == '\0') {
            return FAILURE_NONE;
        }
        rest++;
    }
}

enum failure_code option_parse_scale_up(const char *text, enum rendezvous_scale_up *out_scale_up,
    struct duration *out_interval, struct text *out_reason) {
    double seconds = 0;
    bool is_never = text_equals(text, "never");
    bool is_word = is_never || text_equals(text, "immediate");
    if (!is_word && (text_parse_float(text, &seconds) != FAILURE_NONE || seconds < 0)) {
        return option_refuse_value(out_reason, text,
            "give immediate, never, or the seconds between two admissions of new nodes");
    }
    *out_scale_up = is_never ? RENDEZVOUS_SCALE_UP_NEVER : RENDEZVOUS_SCALE_UP_ALLOWED;
    *out_interval = duration_from_seconds(seconds);
    return FAILURE_NONE;
}

/* The bytes that a letter after a number stands for; 0 for other letters. */
static uint64_t bytes_of_unit(char unit) {
    static const char units[] = "KMGT";
    const char *found = unit != '\0' ? strchr(units, toupper((unsigned char)unit)) : NULL;
    return found != NULL ? UINT64_C(1) << (10 * (found - units + 1)) : 0;
}

/* Whether the text is a number of bytes, perhaps with a letter behind it. */
static bool parse_bytes(const char *text, uint64_t *out_bytes) {
    char *number = option_trim(text);
    size_t length = strlen(number);
    uint64_t unit = length > 0 ? bytes_of_unit(number[length - 1]) : 0;
    int64_t value = 0;
    if (unit != 0) {
        number[length - 1] = '\0';
    }
    unit = unit == 0 ? 1 : unit;
    bool is_number = text_parse_integer(number, &value) == FAILURE_NONE;
    free(number);
    if (!is_number || value < 0 || (uint64_t)value > (UINT64_C(1) << 62) / unit) {
        return false;
    }
    *out_bytes = (uint64_t)value * unit;
    return true;
}

/* Whether the text is a percentage from 1% to 100%. */
static bool parse_percentage(const char *text, int *out_percent) {
    char *number = option_trim(text);
    size_t length = strlen(number);
    bool is_percent = length > 0 && number[length - 1] == '%';
    int64_t value = 0;
    if (is_percent) {
        number[length - 1] = '\0';
        is_percent = text_parse_integer(number, &value) == FAILURE_NONE;
    }
    free(number);
    if (!is_percent || value < 1 || value > 100) {
        return false;
    }
    *out_percent = (int)value;
    return true;
}

enum failure_code option_parse_memory(
    const char *text, uint64_t *out_bytes, int *out_percent, struct text *out_reason) {
    uint64_t bytes = 0;
    int percent = 0;
    bool is_percent = parse_percentage(text, &percent);
    if (!is_percent && (!parse_bytes(text, &bytes) || bytes < STORE_MEMORY_LEAST)) {
        return option_refuse_value(out_reason, text,
            "give bytes, at least 1M (K, M, G and T mean powers of 1024), or a part of the memory, "
            "1%% to 100%%");
    }
    *out_bytes = bytes;
    *out_percent = percent;
    return FAILURE_NONE;
}

enum failure_code option_parse_scratch(
    const char *text, uint64_t *out_bytes, struct text *out_reason) {
    uint64_t bytes = 0;
    if (!parse_bytes(text, &bytes) || (bytes != 0 && bytes < OPTION_SCRATCH_LEAST)) {
        return option_refuse_value(out_reason, text,
            "give bytes, at least 1M (K, M, G and T mean powers of 1024), or 0 for no directory");
    }
    *out_bytes = bytes;
    return FAILURE_NONE;
}

enum failure_code option_parse_event_handler(const char *text,
    enum launch_event_handler *out_handler, char **out_path, struct text *out_reason) {
    static const struct {
        const char *start;
        enum launch_event_handler handler;
    } places[] = {{"file:", LAUNCH_EVENTS_FILE}, {"exec:", LAUNCH_EVENTS_PROGRAM}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *place = text + strlen(places[i].start);
        if (text_starts_with(text, places[i].start) && *place != '\0') {
            *out_handler = places[i].handler;
            *out_path = memory_duplicate_string(place);
            return FAILURE_NONE;
        }
    }
    bool is_console = text_equals(text, "console");
    if (!is_console && !text_equals(text, "null") && !text_equals(text, "dynamic_rendezvous")) {
        return option_refuse_value(
            out_reason, text, "give null, console, file:PATH or exec:PROGRAM");
    }
    *out_handler = is_console ? LAUNCH_EVENTS_CONSOLE : LAUNCH_EVENTS_NULL;
    *out_path = NULL;
    return FAILURE_NONE;
}

enum failure_code option_parse_streams(
    const char *text, struct launch_streams *out_streams, struct text *out_reason) {
    if (is_streams_digit(text[0]) && text[1] == '\0') {
        *out_streams = (struct launch_streams){.for_all = text[0] - '0'};
        return FAILURE_NONE;
    }
    struct launch_streams streams = {0};
    enum failure_code code = parse_streams_by_rank(text, &streams, out_reason);
    if (code != FAILURE_NONE) {
        free(streams.by_rank);
        return code;
    }
    *out_streams = streams;
    return FAILURE_NONE;
}

static int compare_ranks(const void *left, const void *right) {
    int first = *(const int *)left;
    int second = *(const int *)right;
    return (first > second) - (first < second);
}

static size_t drop_repeated(int *ranks, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || ranks[kept - 1] != ranks[i]) {
            ranks[kept++] = ranks[i];
        }
    }
    return kept;
}

enum failure_code option_parse_rank_list(
    const char *text, int **out_ranks, size_t *out_count, struct text *out_reason) {
    struct text_list pieces = {0};
    option_split(text, ',', &pieces);
    size_t count = pieces.count;
    int *ranks = memory_allocate(count * sizeof *ranks);
    bool is_valid = true;
    for (size_t i = 0; i < count && is_valid; i++) {
        int64_t rank = 0;
        is_valid = text_parse_integer(pieces.items[i], &rank) == FAILURE_NONE && rank >= INT_MIN &&
                   rank <= INT_MAX;
        ranks[i] = (int)rank;
    }
    text_list_clear(&pieces);
    if (!is_valid) {
        free(ranks);
        return option_refuse_value(
            out_reason, text, "give local ranks between commas, as in 0,1,2");
    }
    qsort(ranks, count, sizeof *ranks, compare_ranks);
    *out_count = drop_repeated(ranks, count);
    *out_ranks = ranks;
    return FAILURE_NONE;
}

static enum failure_code check_signal(const char *name, int number, struct text *out_reason) {
    if (number == 0) {
        char *longer = text_format("SIG%s", name);
        bool has_lost_prefix = signal_number_from_name(longer) != 0;
        free(longer);
        return option_refuse_value(out_reason, name,
            "no signal has this name; names are written %s",
            has_lost_prefix ? "with SIG in front, as in SIGTERM" : "as in SIGTERM,SIGUSR1");
    }
    if (number == SIGNAL_NUMBER_KILL || number == SIGNAL_NUMBER_STOP) {
        return option_refuse_value(
            out_reason, name, "the kernel lets no process handle this signal; leave it out");
    }
    if (number == SIGNAL_NUMBER_CHILD) {
        return option_refuse_value(
            out_reason, name, "the launcher learns by it that workers ended; leave it out");
    }
    return FAILURE_NONE;
}

static bool contains(const int *numbers, size_t count, int number) {
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] == number) {
            return true;
        }
    }
    return false;
}

enum failure_code option_parse_signals(
    const char *text, int *out_signals, size_t *out_count, struct text *out_reason) {
    int signals[LAUNCH_MAXIMUM_SIGNALS];
    size_t count = 0;
    struct text_list names = {0};
    if (*text != '\0') {
        option_split(text, ',', &names);
    }
    enum failure_code code = FAILURE_NONE;
    for (size_t i = 0; i < names.count && code == FAILURE_NONE; i++) {
        char *name = option_trim(names.items[i]);
        int number = signal_number_from_name(name);
        code = check_signal(name, number, out_reason);
        if (code == FAILURE_NONE && !contains(signals, count, number)) {
            signals[count++] = number; /* the array has room for every signal that exists */
        }
        free(name);
    }
    text_list_clear(&names);
    if (code == FAILURE_NONE) {
        memcpy(out_signals, signals, count * sizeof *signals);
        *out_count = count;
    }
    return code;
}

static enum failure_code add_exit(
    const char *item, struct launch_exit_on *exit_on, struct text *out_reason) {
    int signal = signal_number_from_name(item);
    int64_t code;
    if (signal > 0) {
        exit_on->signals[signal] = true;
        return FAILURE_NONE;
    }
    if (text_parse_integer(item, &code) != FAILURE_NONE || code < 1 || code > LAST_EXIT_CODE) {
        text_append_format(out_reason,
            "'%s' is neither an exit code from 1 to %d nor a signal; write 17,SIGBUS", item,
            LAST_EXIT_CODE);
        return FAILURE_INVALID;
    }
    exit_on->codes[code] = true;
    return FAILURE_NONE;
}

enum failure_code option_parse_exit_on(
    const char *text, struct launch_exit_on *out_exit_on, struct text *out_reason) {
    struct launch_exit_on exit_on = {0};
    struct text_list items = {0};
    if (*text != '\0') {
        option_split(text, ',', &items);
    }
    enum failure_code code = FAILURE_NONE;
    for (size_t i = 0; i < items.count && code == FAILURE_NONE; i++) {
        char *item = option_trim(items.items[i]);
        code = add_exit(item, &exit_on, out_reason);
        free(item);
    }
    text_list_clear(&items);
    if (code == FAILURE_NONE) {
        *out_exit_on = exit_on;
    }
    return code;
}

/* Endpoint. */

#define IPV6_GROUPS 8
#define HIGHEST_PORT 65535

static bool is_ipv4_address(const char *text) {
    for (int part = 0; part < 4; part++) {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 3 || strtol(text, NULL, 10) > 255) {
            return false;
        }
        text += digits;
        if (*text != (part < 3 ? '.' : '\0')) {
            return false;
        }
        text += part < 3;
    }
    return true;
}

/* Whether the text is an IPv6 address as in RFC 4291, without a zone. */
static bool endpoint_is_ipv6_address(const char *text) {
    int groups = 0;
    bool has_gap = false;
    bool is_after_group = false;
    while (*text != '\0') {
        if (text[0] == ':' && text[1] == ':') {
            if (has_gap) {
                return false;
            }
            has_gap = true;
            is_after_group = false;
            text += 2;
            continue;
        }
        text += *text == ':' && is_after_group;
        if (strchr(text, '.') != NULL && strchr(text, ':') == NULL) {
            groups += 2;
            return is_ipv4_address(text) &&
                   (has_gap ? groups < IPV6_GROUPS : groups == IPV6_GROUPS);
        }
        size_t digits = strspn(text, "0123456789abcdefABCDEF");
        if (digits == 0 || digits > 4 || (text[digits] != ':' && text[digits] != '\0')) {
            return false;
        }
        text += digits;
        groups++;
        is_after_group = true;
    }
    return has_gap ? groups < IPV6_GROUPS : groups == IPV6_GROUPS;
}

static bool is_host_character(char character) {
    return is_digit(character) || (character >= 'a' && character <= 'z') ||
           (character >= 'A' && character <= 'Z') || strchr("_.:-", character) != NULL;
}

/* Every character beyond ASCII counts as a letter, because nearly all of them match Python's \w. */
static bool is_host(const char *text) {
    size_t length = strlen(text);
    if (length == 0 || length > ENDPOINT_HOST_MAXIMUM) {
        return false;
    }
    for (size_t i = 0; i < length;) {
        size_t character = utf8_character_length((const uint8_t *)text + i, length - i);
        if (character == 0 || (character == 1 && !is_host_character(text[i]))) {
            return false;
        }
        i += character;
    }
    return strchr(text, ':') == NULL || endpoint_is_ipv6_address(text);
}

bool endpoint_is_loopback(const char *host) {
    static const char *const names[] = {
        "localhost", "localhost.", "localhost.localdomain", "ip6-localhost", "ip6-loopback"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (text_equals(host, names[i])) {
            return true;
        }
    }
    bool is_ipv6_loopback =
        endpoint_is_ipv6_address(host) &&
        (text_equals(host + strspn(host, "0:"), "1") || text_starts_with(host, "::ffff:127."));
    return is_ipv6_loopback || (is_ipv4_address(host) && text_starts_with(host, "127."));
}

static char *without_brackets(const char *text, size_t length) {
    struct text host = {0};
    bool has_brackets = length > 1 && text[0] == '[' && text[length - 1] == ']';
    text_append_bytes(&host, text + has_brackets, length - 2 * (size_t)has_brackets);
    return text_take(&host);
}

enum failure_code endpoint_parse_host(const char *text, char **out_host, struct text *out_reason) {
    char *host = without_brackets(text, strlen(text));
    if (!is_host(host)) {
        free(host);
        return option_refuse_value(out_reason, text,
            "give a host name of at most %d bytes, an IPv4 address or an IPv6 address",
            ENDPOINT_HOST_MAXIMUM);
    }
    *out_host = host;
    return FAILURE_NONE;
}

/* Reads one to five digits; the value must not exceed the highest port. */
static bool parse_port(const char *text, int *out_port) {
    size_t digits = strspn(text, "0123456789");
    if (digits < 1 || digits > 5 || text[digits] != '\0') {
        return false;
    }
    long port = strtol(text, NULL, 10);
    *out_port = (int)port;
    return port <= HIGHEST_PORT;
}

/* Whether an IPv6 address is also valid without its last group, and that group could be a port. */
static bool could_end_in_a_port(const char *address) {
    const char *colon = strrchr(address, ':');
    int port;
    struct text rest = {0};
    text_append_bytes(&rest, address, (size_t)(colon - address));
    bool could = parse_port(colon + 1, &port) && endpoint_is_ipv6_address(text_string(&rest));
    text_clear(&rest);
    return could;
}

static enum failure_code parse_trimmed(
    const char *text, struct endpoint *out_endpoint, struct text *out_reason) {
    size_t length = strlen(text);
    const char *colon = strrchr(text, ':');
    bool is_bare_host = colon == NULL || (text[0] == '[' && text[length - 1] == ']') ||
                        endpoint_is_ipv6_address(text);
    struct endpoint endpoint = {.port = ENDPOINT_NO_PORT};
    if (strchr(text, ',') != NULL) {
        return option_refuse_value(out_reason, text,
            "give one HOST:PORT, that of the node which hosts the store: no second one can take "
            "its place; for a job that survives any node name a directory that all nodes see, "
            "--rdzv-backend dir --rdzv-endpoint /PATH");
    }
    if (endpoint_is_ipv6_address(text) && could_end_in_a_port(text)) {
        return option_refuse_value(out_reason, text,
            "is this an address, or one and a port? write [%s] or [%.*s]%s", text,
            (int)(colon - text), text, colon);
    }
    if (!is_bare_host && !parse_port(colon + 1, &endpoint.port)) {
        return option_refuse_value(
            out_reason, text, "a port from 0 to %d has to follow the last colon", HIGHEST_PORT);
    }
    endpoint.host = without_brackets(text, is_bare_host ? length : (size_t)(colon - text));
    if (!is_host(endpoint.host)) {
        free(endpoint.host);
        return option_refuse_value(out_reason, text,
            "give HOST:PORT, a name of at most %d bytes or an IPv6 address in brackets, as in "
            "node0:29500 or [::1]:29500",
            ENDPOINT_HOST_MAXIMUM);
    }
    *out_endpoint = endpoint;
    return FAILURE_NONE;
}

enum failure_code endpoint_parse(
    const char *text, struct endpoint *out_endpoint, struct text *out_reason) {
    char *trimmed = option_trim(text);
    enum failure_code code = FAILURE_NONE;
    if (*trimmed == '\0') {
        *out_endpoint = (struct endpoint){
            .host = memory_duplicate_string("localhost"), .port = ENDPOINT_NO_PORT};
    } else {
        code = parse_trimmed(trimmed, out_endpoint, out_reason);
    }
    free(trimmed);
    return code;
}

void endpoint_clear(struct endpoint *endpoint) {
    free(endpoint->host);
    *endpoint = (struct endpoint){0};
}

/* Endpoint list. */

#define ENDPOINT_LIST_MAXIMUM 16

#define ENDPOINT_LIST_DEFAULT_PORT 2379

/* Whether the text begins with that scheme; then it is cut off. */
static bool take_scheme(const char **text, const char *scheme) {
    bool has = text_starts_with(*text, scheme);
    *text += has ? strlen(scheme) : 0;
    return has;
}

static enum failure_code parse_place(
    const char *place, struct endpoint *out_endpoint, struct text *reason) {
    struct text trimmed = {0};
    size_t length = strlen(place);
    bool has_slash = length > 0 && place[length - 1] == '/';
    text_append_bytes(&trimmed, place, length - (has_slash ? 1 : 0));
    enum failure_code code = endpoint_parse(text_string(&trimmed), out_endpoint, reason);
    if (code == FAILURE_NONE && out_endpoint->port == 0) {
        code = option_refuse_value(reason, text_string(&trimmed),
            "a member of etcd listens on a port from 1 to 65535, by default on %d",
            ENDPOINT_LIST_DEFAULT_PORT);
        endpoint_clear(out_endpoint);
    }
    text_clear(&trimmed);
    return code;
}

static enum failure_code add_member(
    struct endpoint_list *list, const char *whole, const char *item, struct text *reason) {
    struct endpoint endpoint = {0};
    char *trimmed = option_trim(item);
    const char *place = trimmed;
    bool is_https = take_scheme(&place, "https://");
    if (!is_https) {
        (void)take_scheme(&place, "http://");
    }
    enum failure_code code;
    if (*place == '\0' || text_equals(place, "/")) {
        code = option_refuse_value(reason, whole,
            "one of its members is empty; give HOST:PORT,HOST:PORT,… of etcd's members");
    } else if (list->members.count > 0 && is_https != list->is_https) {
        code = option_refuse_value(
            reason, whole, "some of its members have https:// and others have not");
    } else {
        code = parse_place(place, &endpoint, reason);
    }
    if (code == FAILURE_NONE) {
        bool is_ipv6 = strchr(endpoint.host, ':') != NULL;
        int port = endpoint.port == ENDPOINT_NO_PORT ? ENDPOINT_LIST_DEFAULT_PORT : endpoint.port;
        text_list_add_taken(
            &list->members, text_format(is_ipv6 ? "[%s]:%d" : "%s:%d", endpoint.host, port));
        list->is_https = is_https;
        endpoint_clear(&endpoint);
    }
    free(trimmed);
    return code;
}

static size_t count_items(const char *text) {
    size_t count = 1;
    for (; *text != '\0'; text++) {
        count += *text == ',' ? 1 : 0;
    }
    return count;
}

enum failure_code endpoint_list_parse(
    const char *text, struct endpoint_list *out_list, struct text *out_reason) {
    struct endpoint_list list = {0};
    size_t count = count_items(text);
    if (count > ENDPOINT_LIST_MAXIMUM) {
        return option_refuse_value(out_reason, text,
            "it names %zu members of etcd, more than the %d allowed", count, ENDPOINT_LIST_MAXIMUM);
    }
    enum failure_code code = FAILURE_NONE;
    for (const char *rest = text; rest != NULL && code == FAILURE_NONE;) {
        size_t length = strcspn(rest, ",");
        struct text item = {0};
        text_append_bytes(&item, rest, length);
        code = add_member(&list, text, text_string(&item), out_reason);
        text_clear(&item);
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    if (code != FAILURE_NONE) {
        endpoint_list_clear(&list);
        return code;
    }
    *out_list = list;
    return FAILURE_NONE;
}

void endpoint_list_clear(struct endpoint_list *list) {
    text_list_clear(&list->members);
    *list = (struct endpoint_list){0};
}
