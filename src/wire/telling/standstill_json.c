/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/standstill_json.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "wire/json/json_document.h"
#include "wire/telling/stacks_json.h"

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
static bool read_rank(struct json_document *document, const char *name, int *out_rank) {
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
    bool is_whose = read_rank(document, "node", &read.node_rank);
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
    bool is_rank = read_rank(document, "rank", &read.rank);
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
