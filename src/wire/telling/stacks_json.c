/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/stacks_json.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "core/failure/failure_report.h"
#include "wire/json/json_document.h"

/* Writing. */

static void write_stack(const char *stack, struct text *out) {
    text_append(out, "[");
    for (const char *line = stack; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        char *copy = text_format("%.*s", (int)length, line);
        text_append(out, line == stack ? "" : ",");
        json_text_write(copy, out);
        free(copy);
        line += length + (line[length] == '\n' ? 1 : 0);
    }
    text_append(out, "]");
}

static void write_rest(const struct folded_stack *one, struct text *out) {
    text_append(out, ",\"words\":");
    json_text_write(one->words, out);
    text_append(out, ",\"stack\":");
    if (one->stack != NULL) {
        write_stack(one->stack, out);
    } else {
        text_append(out, "null");
    }
    text_append(out, "}");
}

static void write_ranks(const struct folded_stack *one, bool times, struct text *out) {
    for (size_t i = 0; i < one->rank_count; i++) {
        text_append_format(
            out, "%s%d", i > 0 ? "," : "", times ? one->ranks[i].times : one->ranks[i].rank);
    }
}

void stacks_json_write(const struct folded_stack *one, struct text *out) {
    text_append(out, "{\"schema\":\"" STACKS_SCHEMA "\",\"ranks\":[");
    write_ranks(one, false, out);
    text_append(out, "]");
    write_rest(one, out);
    text_append(out, "\n");
}

void stacks_json_write_counted(const struct folded_stack *one, struct text *out) {
    text_append(out, "{\"ranks\":[");
    write_ranks(one, false, out);
    text_append(out, "],\"times\":[");
    write_ranks(one, true, out);
    text_append(out, "]");
    write_rest(one, out);
}

/* Reading. */

static void append_line(const char *line, struct text *out) {
    char *copy = text_format("%s", line);
    utf8_make_line_printable(copy);
    text_append_format(out, "%s\n", copy);
    free(copy);
}

/* False: it is neither null nor a short list of texts. */
static bool read_stack(const struct json_value *stack, struct text *out) {
    size_t count = json_value_item_count(stack);
    if (!json_value_is_array(stack)) {
        return true;
    }
    for (size_t i = 0; i < count && i < HANG_SUMMARY_FRAMES_MAXIMUM; i++) {
        const char *line = json_value_text(json_value_item(stack, i));
        if (line == NULL) {
            return false;
        }
        append_line(line, out);
    }
    return true;
}

/* -1: it is no rank. */
static int read_rank(const struct json_value *value) {
    int64_t rank;
    return json_value_integer(value, &rank) && rank >= 0 && rank <= INT_MAX ? (int)rank : -1;
}

static bool are_ranks(const struct json_value *ranks) {
    size_t count = json_value_item_count(ranks);
    bool are = count > 0 && count <= STACKS_RANKS_MAXIMUM;
    for (size_t i = 0; i < count && are; i++) {
        are = read_rank(json_value_item(ranks, i)) >= 0;
    }
    return are;
}

enum failure_code stacks_json_read(struct slice line, bool by_place, struct folded_stacks *folded) {
    struct json_document *document;
    struct text stack = {0};
    struct text words = {0};
    if (json_document_parse(line, STACKS_LINE_MAXIMUM, &document, NULL) != FAILURE_NONE) {
        return FAILURE_MALFORMED;
    }
    const struct json_value *root = json_document_root(document);
    const char *schema = json_value_text(json_value_member(root, "schema"));
    const char *said = json_value_text(json_value_member(root, "words"));
    const struct json_value *ranks = json_value_member(root, "ranks");
    bool is_read = schema != NULL && text_equals(schema, STACKS_SCHEMA) && said != NULL &&
                   are_ranks(ranks) && read_stack(json_value_member(root, "stack"), &stack);
    if (is_read) {
        append_line(said, &words);
        words.data[--words.length] = '\0';
    }
    for (size_t i = 0; is_read && i < json_value_item_count(ranks); i++) {
        folded_stacks_add(folded, stack.length > 0 ? text_string(&stack) : NULL,
            text_string(&words), by_place, read_rank(json_value_item(ranks, i)), 1);
    }
    json_document_free(document);
    text_clear(&stack);
    text_clear(&words);
    return is_read ? FAILURE_NONE : FAILURE_MALFORMED;
}
