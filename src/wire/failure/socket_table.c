/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/failure/socket_table.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

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
