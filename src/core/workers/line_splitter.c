/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/workers/line_splitter.h"

#include <string.h>

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
