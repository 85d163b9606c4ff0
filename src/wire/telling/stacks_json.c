/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/stacks_json.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "core/failure/failure_report.h"
#include "wire/json/json_document.h"

/* Of one line. */
#define STACKS_LINE_MAXIMUM ((size_t)512 * 1024)

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

/* Standstill json. */

#define STANDSTILL_SCHEMA "muster.standstill/1"
#define HANG_SCHEMA "muster.hang/1"
#define LARGEST_ROUND (INT64_C(1) << 53)
/* A job stands still for days at most. */
#define LONGEST_SECONDS 1e9

/* Members that both have. */

static void write_name(const char *name, const char *value, struct text *out) {
    text_append_format(out, ",\"%s\":", name);
    json_text_write(value, out);
}

static void write_head(
    const char *schema, int64_t round, struct duration silence, struct text *out) {
    text_append_format(out, "{\"schema\":\"%s\",\"round\":%" PRId64 ",\"silence\":%.3f", schema,
        round, duration_seconds(silence));
}

/* NULL: it is no object with this schema, a round and a silence. The caller frees it. */
static struct json_document *read_head(
    struct slice line, const char *schema, int64_t *out_round, struct duration *out_silence) {
    struct json_document *document;
    double seconds = 0;
    if (json_document_parse(line, STANDSTILL_JSON_MAXIMUM, &document, NULL) != FAILURE_NONE) {
        return NULL;
    }
    const struct json_value *root = json_document_root(document);
    const char *name = json_value_text(json_value_member(root, "schema"));
    bool is_read = name != NULL && text_equals(name, schema) &&
                   json_value_integer(json_value_member(root, "round"), out_round) &&
                   *out_round >= 0 && *out_round <= LARGEST_ROUND &&
                   json_value_number(json_value_member(root, "silence"), &seconds) &&
                   seconds >= 0 && seconds <= LONGEST_SECONDS;
    if (!is_read) {
        json_document_free(document);
        return NULL;
    }
    *out_silence = duration_from_seconds(seconds);
    return document;
}

static char *read_text(struct json_document *document, const char *name) {
    const char *text = json_value_text(json_value_member(json_document_root(document), name));
    return text != NULL ? chronicle_clean_text(text, CHRONICLE_TEXT_MAXIMUM) : NULL;
}

/* False: it is none. */
static bool standstill_json_read_rank(
    struct json_document *document, const char *name, int *out_rank) {
    int64_t rank;
    bool is_rank =
        json_value_integer(json_value_member(json_document_root(document), name), &rank) &&
        rank >= 0 && rank <= INT_MAX;
    *out_rank = is_rank ? (int)rank : 0;
    return is_rank;
}

/* Standstill. */

void standstill_json_write(const struct standstill *standstill, struct text *out) {
    size_t start = out->length;
    write_head(STANDSTILL_SCHEMA, standstill->round, standstill->silence, out);
    text_append_format(out, ",\"node\":%d}\n", standstill->node_rank);
    for (size_t i = 0; i < standstill->places.count && i < STANDSTILL_PLACES_MAXIMUM; i++) {
        size_t before = out->length;
        stacks_json_write(&standstill->places.items[i], out);
        if (out->length - start > STANDSTILL_JSON_MAXIMUM) {
            out->length = before;
            out->data[before] = '\0';
        }
    }
}

static bool next_line(struct slice *rest, struct slice *out_line) {
    const uint8_t *end = rest->length > 0 ? memchr(rest->data, '\n', rest->length) : NULL;
    if (end == NULL) {
        return false;
    }
    *out_line = (struct slice){rest->data, (size_t)(end - rest->data)};
    *rest = slice_from(*rest, out_line->length + 1);
    return true;
}

static size_t count_ranks(const struct folded_stacks *places) {
    size_t count = 0;
    for (size_t i = 0; i < places->count; i++) {
        count += places->items[i].rank_count;
    }
    return count;
}

static bool read_places(struct slice rest, struct folded_stacks *places) {
    struct slice line;
    bool is_read = true;
    while (is_read && next_line(&rest, &line)) {
        is_read = places->count < STANDSTILL_PLACES_MAXIMUM &&
                  stacks_json_read(line, true, places) == FAILURE_NONE &&
                  count_ranks(places) <= STANDSTILL_RANKS_MAXIMUM;
    }
    return is_read && rest.length == 0;
}

enum failure_code standstill_json_read(struct slice text, struct standstill *out_standstill) {
    struct standstill read = {0};
    struct slice line;
    struct json_document *document =
        text.length <= STANDSTILL_JSON_MAXIMUM && next_line(&text, &line)
            ? read_head(line, STANDSTILL_SCHEMA, &read.round, &read.silence)
            : NULL;
    if (document == NULL) {
        return FAILURE_MALFORMED;
    }
    bool is_whose = standstill_json_read_rank(document, "node", &read.node_rank);
    json_document_free(document);
    if (!is_whose || !read_places(text, &read.places)) {
        standstill_clear(&read);
        return FAILURE_MALFORMED;
    }
    *out_standstill = read;
    return FAILURE_NONE;
}

/* Hang. */

void job_hang_json_write(const struct job_hang *hang, struct text *out) {
    write_head(HANG_SCHEMA, hang->round, hang->silence, out);
    text_append_format(out, ",\"rank\":%d", hang->rank);
    write_name("what", hang->what, out);
    write_name("where", hang->where, out);
    text_append(out, "}");
}

enum failure_code job_hang_json_read(struct slice text, struct job_hang *out_hang) {
    struct job_hang read = {0};
    struct json_document *document = read_head(text, HANG_SCHEMA, &read.round, &read.silence);
    if (document == NULL) {
        return FAILURE_MALFORMED;
    }
    bool is_rank = standstill_json_read_rank(document, "rank", &read.rank);
    read.what = read_text(document, "what");
    read.where = read_text(document, "where");
    json_document_free(document);
    if (!is_rank || read.what == NULL || read.where == NULL) {
        job_hang_clear(&read);
        return FAILURE_MALFORMED;
    }
    *out_hang = read;
    return FAILURE_NONE;
}
