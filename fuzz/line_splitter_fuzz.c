/* SPDX-License-Identifier: BSD-3-Clause */
/* Splits arbitrary bytes that come in chunks; the first byte chooses the chunk sizes. The lines
 * must be the same as for one piece; they must be whole and valid, and contain every byte. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/workers/log_plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int is_true) {
    if (!is_true) {
        abort();
    }
}

struct collected {
    struct text lines;
    uint64_t raw_length;
};

static void collect(void *context, const struct line *line) {
    struct collected *collected = context;
    require(line->text.length > 0 && line->text.length <= LINE_SPLITTER_CEILING + 1);
    require(memchr(line->text.data, '\r', line->text.length) == NULL);
    require(memchr(line->text.data, '\n', line->text.length) ==
            line->text.data + line->text.length - 1);
    text_append_bytes(&collected->lines, (const char *)line->text.data, line->text.length);
    collected->raw_length += line->raw_length;
}

static struct collected split(struct slice input, size_t chunk) {
    struct line_splitter splitter = {0};
    struct collected collected = {0};
    for (size_t at = 0; at < input.length; at += chunk) {
        size_t length = input.length - at < chunk ? input.length - at : chunk;
        line_splitter_feed(&splitter, (struct slice){input.data + at, length}, collect, &collected);
        require(collected.raw_length <= at + length);
    }
    line_splitter_finish(&splitter, collect, &collected);
    require(collected.raw_length == input.length);
    return collected;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    struct slice input = {data + 1, size - 1};
    struct collected whole = split(input, input.length);
    struct collected pieces = split(input, (size_t)data[0] + 1);
    require(whole.lines.length == pieces.lines.length);
    require(memcmp(text_string(&whole.lines), text_string(&pieces.lines), whole.lines.length) == 0);
    struct text_list needles = {0};
    text_list_add(&needles, "a\n");
    (void)line_matches(input, &needles);
    text_list_clear(&needles);
    text_clear(&whole.lines);
    text_clear(&pieces.lines);
    return 0;
}
