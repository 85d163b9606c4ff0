/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/failure/kernel_text.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* Positions in /proc/<pid>/stat, counted from 1 as proc(5) does. */
#define SESSION_FIELD 6
#define FLAGS_FIELD 9
#define START_TIME_FIELD 22
#define PENDING_FIELD 31
#define IGNORED_FIELD 33
#define CAUGHT_FIELD 34
#define ARGUMENTS_START_FIELD 48
#define EXIT_CODE_FIELD 52

/* A wait status: the exit status above, the signal and the mark of a core dump below. */
#define WAIT_STATUS_HIGHEST 0xffff

/* Takes a number off the front; false when there are no digits or the number does not fit. */
static bool take_number(struct slice *text, uint64_t *out_value) {
    uint64_t value = 0;
    size_t length = 0;
    for (; length < text->length && text_is_digit(text->data[length]); length++) {
        uint64_t digit = (uint64_t)(text->data[length] - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    if (length == 0) {
        return false;
    }
    *text = slice_from(*text, length);
    *out_value = value;
    return true;
}

/* Takes a number of at most 32 bits, which may be negative: the kernel's pids have that size. */
static bool take_process_id(struct slice *text, int64_t *out_value) {
    bool is_negative = text->length > 0 && text->data[0] == '-';
    if (is_negative) {
        *text = slice_from(*text, 1);
    }
    uint64_t value;
    if (!take_number(text, &value) || value > INT32_MAX) {
        return false;
    }
    *out_value = is_negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool take_byte(struct slice *text, char byte) {
    if (text->length == 0 || text->data[0] != (uint8_t)byte) {
        return false;
    }
    *text = slice_from(*text, 1);
    return true;
}

/* Takes `count` fields, each with the blank behind it. */
static bool take_fields(struct slice *text, int count) {
    for (; count > 0; count--) {
        const uint8_t *blank = text->length == 0 ? NULL : memchr(text->data, ' ', text->length);
        if (blank == NULL) {
            return false;
        }
        *text = slice_from(*text, (size_t)(blank - text->data) + 1);
    }
    return true;
}

/* Takes everything up to and including the last closing parenthesis. A command name may contain
 * parentheses; the fields behind it do not. */
static bool take_command(struct slice *text) {
    for (size_t end = text->length; end > 0; end--) {
        if (text->data[end - 1] == ')') {
            *text = slice_from(*text, end);
            return true;
        }
    }
    return false;
}

/* What the kernel may not show; begins behind the start time. */
static void take_late_fields(struct slice text, struct kernel_process_stat *stat) {
    uint64_t wait_status = 0;
    if (!take_byte(&text, ' ') || !take_fields(&text, PENDING_FIELD - START_TIME_FIELD - 1) ||
        !take_number(&text, &stat->pending) || !take_byte(&text, ' ')) {
        stat->pending = 0;
        return;
    }
    if (!take_fields(&text, IGNORED_FIELD - PENDING_FIELD - 1) ||
        !take_number(&text, &stat->ignored) || !take_byte(&text, ' ') ||
        !take_number(&text, &stat->caught) || !take_byte(&text, ' ')) {
        stat->ignored = 0;
        stat->caught = 0;
        return;
    }
    if (!take_fields(&text, ARGUMENTS_START_FIELD - CAUGHT_FIELD - 1) ||
        !take_number(&text, &stat->arguments_start) || !take_byte(&text, ' ') ||
        !take_number(&text, &stat->arguments_end)) {
        stat->arguments_start = 0;
        stat->arguments_end = 0;
        return;
    }
    if (take_byte(&text, ' ') && take_fields(&text, EXIT_CODE_FIELD - ARGUMENTS_START_FIELD - 2) &&
        take_number(&text, &wait_status) && wait_status <= WAIT_STATUS_HIGHEST) {
        stat->wait_status = (int)wait_status;
    }
}

enum failure_code kernel_text_read_stat(struct slice text, struct kernel_process_stat *out_stat) {
    struct kernel_process_stat stat = {0};
    if (!take_process_id(&text, &stat.pid) || !take_byte(&text, ' ') || !take_command(&text) ||
        !take_byte(&text, ' ') || text.length == 0) {
        return FAILURE_MALFORMED;
    }
    stat.state = (char)text.data[0];
    text = slice_from(text, 1);
    if (!take_byte(&text, ' ') || !take_process_id(&text, &stat.parent) || !take_byte(&text, ' ') ||
        !take_process_id(&text, &stat.group) || !take_byte(&text, ' ') ||
        !take_process_id(&text, &stat.session) || !take_byte(&text, ' ')) {
        return FAILURE_MALFORMED;
    }
    if (!take_fields(&text, FLAGS_FIELD - SESSION_FIELD - 1) || !take_number(&text, &stat.flags) ||
        !take_byte(&text, ' ') || !take_fields(&text, START_TIME_FIELD - FLAGS_FIELD - 1) ||
        !take_number(&text, &stat.start_time)) {
        return FAILURE_MALFORMED;
    }
    take_late_fields(text, &stat);
    *out_stat = stat;
    return FAILURE_NONE;
}

/* Where `needle` begins, or NULL. */
static const uint8_t *find(struct slice text, const char *needle) {
    size_t length = strlen(needle);
    for (size_t start = 0; start + length <= text.length; start++) {
        if (memcmp(text.data + start, needle, length) == 0) {
            return text.data + start;
        }
    }
    return NULL;
}

/* Moves the text behind the first `needle`; false when the needle does not occur. */
static bool skip_past(struct slice *text, const char *needle) {
    const uint8_t *found = find(*text, needle);
    if (found == NULL) {
        return false;
    }
    *text = slice_from(*text, (size_t)(found - text->data) + strlen(needle));
    return true;
}

static struct slice first_line(struct slice text) {
    const uint8_t *end = text.length == 0 ? NULL : memchr(text.data, '\n', text.length);
    return end == NULL ? text : (struct slice){text.data, (size_t)(end - text.data)};
}

enum failure_code kernel_text_read_oom_kill(struct slice record, struct kernel_oom_kill *out_kill) {
    static const char announcement[] = "Killed process ";
    struct slice line = first_line(record);
    struct kernel_oom_kill kill = {0};
    if (!skip_past(&line, ";")) {
        return FAILURE_MISSING;
    }
    const uint8_t *announced = find(line, announcement);
    if (announced == NULL) {
        return FAILURE_MISSING;
    }
    /* The kernel writes "Out of memory: Killed process 1 (…)" or "Memory cgroup out of memory:
     * Killed process 1 (…)". Any other introduction means that another program logged a similar
     * line. */
    struct slice introduction = {line.data, (size_t)(announced - line.data)};
    kill.is_memory_cgroup = find(introduction, "Memory cgroup out of memory") != NULL;
    if (!kill.is_memory_cgroup && find(introduction, "Out of memory") == NULL) {
        return FAILURE_MISSING;
    }
    line = slice_from(line, introduction.length + strlen(announcement));
    if (!take_process_id(&line, &kill.pid) || kill.pid <= 0) {
        return FAILURE_MISSING;
    }
    if (!take_command(&line) || !skip_past(&line, "anon-rss:") ||
        !take_number(&line, &kill.resident_kib)) {
        kill.resident_kib = 0;
    }
    *out_kill = kill;
    return FAILURE_NONE;
}

/* Takes the first line off the front, with its newline. */
static struct slice take_line(struct slice *text) {
    struct slice line = first_line(*text);
    size_t taken = line.length < text->length ? line.length + 1 : line.length;
    *text = slice_from(*text, taken);
    return line;
}

enum failure_code kernel_text_read_counter(
    struct slice text, const char *name, uint64_t *out_value) {
    while (text.length > 0) {
        struct slice line = take_line(&text);
        if (!slice_starts_with(line, slice_from_string(name))) {
            continue;
        }
        line = slice_from(line, strlen(name));
        if (!take_byte(&line, ' ')) {
            continue; /* `name` is only the beginning of this line's name */
        }
        uint64_t value;
        if (!take_number(&line, &value) || line.length != 0) {
            return FAILURE_MALFORMED;
        }
        *out_value = value;
        return FAILURE_NONE;
    }
    return FAILURE_MISSING;
}

static int hexadecimal_digit(uint8_t byte) {
    static const char digits[] = "0123456789abcdef";
    const char *found = byte == '\0' ? NULL : strchr(digits, byte);
    return found == NULL ? -1 : (int)(found - digits);
}

enum failure_code kernel_text_read_signals(
    struct slice text, const char *name, uint64_t *out_signals) {
    while (text.length > 0) {
        struct slice line = take_line(&text);
        uint64_t signals = 0;
        if (!slice_starts_with(line, slice_from_string(name))) {
            continue;
        }
        line = slice_from(line, strlen(name));
        if (!take_byte(&line, ':')) {
            continue; /* `name` is only the beginning of this line's name */
        }
        if (!take_byte(&line, '\t') || line.length != 2 * sizeof signals) {
            return FAILURE_MALFORMED;
        }
        for (size_t i = 0; i < line.length; i++) {
            int digit = hexadecimal_digit(line.data[i]);
            if (digit < 0) {
                return FAILURE_MALFORMED;
            }
            signals = signals << 4 | (uint64_t)digit;
        }
        *out_signals = signals;
        return FAILURE_NONE;
    }
    return FAILURE_MISSING;
}

/* Whether the comma-separated list contains the item. An empty item stands for the empty list. */
static bool list_has(struct slice list, const char *item) {
    struct slice wanted = slice_from_string(item);
    if (list.length == 0 || wanted.length == 0) {
        return list.length == wanted.length;
    }
    while (list.length > 0) {
        const uint8_t *comma = memchr(list.data, ',', list.length);
        size_t length = comma == NULL ? list.length : (size_t)(comma - list.data);
        if (slice_equals((struct slice){list.data, length}, wanted)) {
            return true;
        }
        list = slice_from(list, comma == NULL ? length : length + 1);
    }
    return false;
}

enum failure_code kernel_text_find_cgroup(
    struct slice text, const char *controller, struct slice *out_path) {
    while (text.length > 0) {
        /* The lines look like "4:memory:/path", "4:cpu,cpuacct:/path" and "0::/path". */
        struct slice path = take_line(&text);
        if (!skip_past(&path, ":")) {
            continue;
        }
        struct slice controllers = path;
        if (!skip_past(&path, ":")) {
            continue;
        }
        controllers.length = (size_t)(path.data - controllers.data) - 1;
        if (list_has(controllers, controller)) {
            *out_path = path;
            return FAILURE_NONE;
        }
    }
    return FAILURE_MISSING;
}

/* Socket table. */

#define MAXIMUM_FIELDS 20
#define ADDRESS_WORDS 4
/* Hexadecimal digits of one 32-bit word of an address. */
#define WORD_DIGITS 8
#define TCP_LISTEN 10

/* Numbers and fields. */

static bool is_blank(uint8_t byte) {
    return byte == ' ' || byte == '\t';
}

/* Splits a line at blanks into at most MAXIMUM_FIELDS parts. The rest is ignored. */
static size_t split(struct slice line, struct slice fields[MAXIMUM_FIELDS]) {
    size_t count = 0;
    size_t at = 0;
    while (count < MAXIMUM_FIELDS) {
        while (at < line.length && is_blank(line.data[at])) {
            at++;
        }
        size_t start = at;
        while (at < line.length && !is_blank(line.data[at])) {
            at++;
        }
        if (at == start) {
            break;
        }
        fields[count++] = (struct slice){line.data + start, at - start};
    }
    return count;
}

static int digit_value(uint8_t byte) {
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'A' && byte <= 'F') {
        return byte - 'A' + 10;
    }
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static bool parse_number(struct slice digits, unsigned base, uint64_t *out_value) {
    uint64_t value = 0;
    if (digits.length == 0) {
        return false;
    }
    for (size_t i = 0; i < digits.length; i++) {
        int digit = digit_value(digits.data[i]);
        if (digit < 0 || (unsigned)digit >= base || value > (UINT64_MAX - (uint64_t)digit) / base) {
            return false;
        }
        value = value * base + (uint64_t)digit;
    }
    *out_value = value;
    return true;
}

/* Splits the field at its first colon. */
static bool split_at_colon(struct slice field, struct slice *out_before, struct slice *out_after) {
    for (size_t i = 0; i < field.length; i++) {
        if (field.data[i] == ':') {
            *out_before = (struct slice){field.data, i};
            *out_after = (struct slice){field.data + i + 1, field.length - i - 1};
            return true;
        }
    }
    return false;
}

/* Addresses. */

struct socket_address {
    uint8_t bytes[ADDRESS_WORDS * 4]; /* in network byte order */
    size_t length;                    /* 4 or 16 */
    uint64_t port;
};

/* The kernel prints an address as 32-bit words in the machine's byte order. */
static bool parse_address(struct slice field, struct socket_address *out) {
    struct slice host;
    struct slice port;
    if (!split_at_colon(field, &host, &port) || !parse_number(port, 16, &out->port) ||
        (host.length != WORD_DIGITS && host.length != ADDRESS_WORDS * WORD_DIGITS)) {
        return false;
    }
    out->length = host.length / 2;
    for (size_t i = 0; i < out->length / 4; i++) {
        uint64_t wide;
        if (!parse_number((struct slice){host.data + i * WORD_DIGITS, WORD_DIGITS}, 16, &wide)) {
            return false;
        }
        uint32_t word = (uint32_t)wide;
        memcpy(out->bytes + i * sizeof word, &word, sizeof word);
    }
    return true;
}

static void append_address(struct text *out, const struct socket_address *address) {
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    const uint8_t *bytes = address->bytes;
    bool is_mapped =
        address->length == sizeof address->bytes && memcmp(bytes, mapped, sizeof mapped) == 0;
    if (address->length == 4 || is_mapped) {
        bytes += is_mapped ? sizeof mapped : 0;
        text_append_format(out, "%u.%u.%u.%u", bytes[0], bytes[1], bytes[2], bytes[3]);
    } else {
        text_append(out, "[");
        for (size_t i = 0; i < address->length; i += 2) {
            text_append_format(
                out, "%s%x", i == 0 ? "" : ":", (unsigned)bytes[i] << 8 | bytes[i + 1]);
        }
        text_append(out, "]");
    }
    text_append_format(out, ":%" PRIu64, address->port);
}

/* Lines. */

static const char *tcp_state_name(uint64_t state) {
    static const char *const names[] = {"state 0", "ESTABLISHED", "SYN_SENT", "SYN_RECV",
        "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT", "LAST_ACK", "LISTEN",
        "CLOSING", "NEW_SYN_RECV"};
    return state < sizeof names / sizeof *names ? names[state] : "unknown state";
}

/* For a listening socket the kernel's receive queue counts connections that are not accepted
 * yet. */
static void append_queues(struct text *out, bool is_listening, uint64_t to_send, uint64_t to_read) {
    if (is_listening) {
        text_append_format(out, ", %" PRIu64 " waiting to be accepted", to_read);
        return;
    }
    if (to_send > 0) {
        text_append_format(out, ", %" PRIu64 " bytes to send", to_send);
    }
    if (to_read > 0) {
        text_append_format(out, ", %" PRIu64 " bytes to read", to_read);
    }
}

/* The columns: sl local_address rem_address st tx_queue:rx_queue tr:when retransmits uid timeout
 * inode … */
enum failure_code socket_table_read_address(
    struct slice line, bool is_tcp, uint64_t *out_inode, struct text *out_words) {
    struct slice fields[MAXIMUM_FIELDS];
    struct socket_address local;
    struct socket_address remote;
    struct slice send_field;
    struct slice read_field;
    uint64_t state;
    uint64_t to_send;
    uint64_t to_read;
    if (split(line, fields) < 10 || !parse_address(fields[1], &local) ||
        !parse_address(fields[2], &remote) || !parse_number(fields[3], 16, &state) ||
        !split_at_colon(fields[4], &send_field, &read_field) ||
        !parse_number(send_field, 16, &to_send) || !parse_number(read_field, 16, &to_read) ||
        !parse_number(fields[9], 10, out_inode)) {
        return FAILURE_MALFORMED;
    }
    append_address(out_words, &local);
    if (remote.port != 0) {
        text_append(out_words, " -> ");
        append_address(out_words, &remote);
    }
    if (is_tcp) {
        text_append_format(out_words, " %s", tcp_state_name(state));
    }
    append_queues(out_words, is_tcp && state == TCP_LISTEN, to_send, to_read);
    return FAILURE_NONE;
}

static const char *unix_state_name(uint64_t flags, uint64_t state) {
    static const char *const names[] = {
        "FREE", "UNCONNECTED", "CONNECTING", "CONNECTED", "DISCONNECTING"};
    bool is_listening = (flags & 0x10000) != 0;
    if (is_listening) {
        return "LISTENING";
    }
    return state < sizeof names / sizeof *names ? names[state] : "unknown state";
}

/* The columns: Num: RefCount Protocol Flags Type St Inode Path */
enum failure_code socket_table_read_unix(
    struct slice line, uint64_t *out_inode, struct text *out_words) {
    struct slice fields[MAXIMUM_FIELDS];
    uint64_t flags;
    uint64_t state;
    size_t count = split(line, fields);
    if (count < 7 || !parse_number(fields[3], 16, &flags) || !parse_number(fields[5], 16, &state) ||
        !parse_number(fields[6], 10, out_inode)) {
        return FAILURE_MALFORMED;
    }
    if (count > 7) {
        size_t start = (size_t)(fields[7].data - line.data);
        text_append_bytes(out_words, (const char *)fields[7].data, line.length - start);
    } else {
        text_append(out_words, "unnamed");
    }
    text_append_format(out_words, " %s", unix_state_name(flags, state));
    return FAILURE_NONE;
}

enum failure_code socket_table_read_link(const char *link, uint64_t *out_inode) {
    static const char start[] = "socket:[";
    size_t length = strlen(link);
    if (!text_starts_with(link, start) || link[length - 1] != ']') {
        return FAILURE_MISSING;
    }
    const uint8_t *digits = (const uint8_t *)link + sizeof start - 1;
    return parse_number((struct slice){digits, length - sizeof start}, 10, out_inode)
               ? FAILURE_NONE
               : FAILURE_MISSING;
}

bool socket_table_next_line(struct slice *text, struct slice *out_line) {
    if (text->length == 0) {
        return false;
    }
    const uint8_t *end = memchr(text->data, '\n', text->length);
    size_t length = end == NULL ? text->length : (size_t)(end - text->data);
    size_t taken = length + (end == NULL ? 0 : 1);
    *out_line = (struct slice){text->data, length};
    *text = (struct slice){text->data + taken, text->length - taken};
    return true;
}
