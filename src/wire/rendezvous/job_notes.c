/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/job_notes.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "wire/json/json_document.h"

static bool is_line(struct slice run_id) {
    for (size_t i = 0; i < run_id.length; i++) {
        if (run_id.data[i] < ' ' || run_id.data[i] == 0x7f) {
            return false;
        }
    }
    return run_id.length > 0 && run_id.length <= WAITING_LIST_ID_BYTES &&
           utf8_is_python_text(run_id.data, run_id.length);
}

/* Takes the last line off the list. Returns false when there is none left. */
static bool take_last(struct slice *list, struct slice *out_line) {
    if (list->length == 0) {
        return false;
    }
    size_t end = list->length;
    if (list->data[end - 1] == '\n') {
        end--;
    }
    size_t start = end;
    while (start > 0 && list->data[start - 1] != '\n') {
        start--;
    }
    *out_line = (struct slice){list->data + start, end - start};
    list->length = start;
    return true;
}

/* What is beyond the limit is nothing that an agent has written. */
static struct slice bounded(struct slice list) {
    return list.length <= WAITING_LIST_BYTES ? list : (struct slice){0};
}

static bool has_line(struct slice list, struct slice run_id) {
    struct slice line;
    while (take_last(&list, &line)) {
        if (slice_equals(line, run_id)) {
            return true;
        }
    }
    return false;
}

bool waiting_list_add(struct slice list, const char *run_id, struct text *out_list) {
    struct slice own = slice_from_string(run_id);
    struct slice kept = bounded(list);
    if (!is_line(own) || has_line(kept, own)) {
        return false;
    }
    while (kept.length > 0 && kept.length + own.length + 2 > WAITING_LIST_BYTES) {
        const uint8_t *end = memchr(kept.data, '\n', kept.length);
        kept = slice_from(kept, end == NULL ? kept.length : (size_t)(end - kept.data) + 1);
    }
    text_append_bytes(out_list, (const char *)kept.data, kept.length);
    if (kept.length > 0 && kept.data[kept.length - 1] != '\n') {
        text_append(out_list, "\n");
    }
    text_append_format(out_list, "%s\n", run_id);
    return true;
}

static bool is_listed(const struct text_list *run_ids, struct slice run_id) {
    for (size_t i = 0; i < run_ids->count; i++) {
        if (slice_equals(slice_from_string(run_ids->items[i]), run_id)) {
            return true;
        }
    }
    return false;
}

void waiting_list_read(
    struct slice list, const char *run_id, size_t maximum, struct text_list *out_run_ids) {
    struct slice own = slice_from_string(run_id);
    struct slice rest = bounded(list);
    struct slice line;
    while (out_run_ids->count < maximum && take_last(&rest, &line)) {
        if (is_line(line) && !slice_equals(line, own) && !is_listed(out_run_ids, line)) {
            text_list_add_taken(
                out_run_ids, text_format("%.*s", (int)line.length, (const char *)line.data));
        }
    }
}

/* Protocol version. */

/* A dot would end the name of the module. */
#define SENTENCE                                                                                   \
    "this job's nodes have to be Muster's (muster run): its store moves from node to node, which " \
    "torchrun cannot follow; nodes of torchrun's meet those of Muster's with --rdzv-backend c10d"
/* The opcode GLOBAL of protocol 0, and STOP. */
#define PICKLE "c" SENTENCE "\nmuster\n."
#define TEXT_MAXIMUM ((size_t)1024)

void torchrun_refusal_write_of_succession(struct text *out) {
    struct bytes value;
    bytes_init(&value, TEXT_MAXIMUM);
    (void)!base64_encode(slice_from_string(PICKLE), &value);
    text_append_format(out, "%.*s", (int)value.length, (const char *)value.data);
    bytes_clear(&value);
}

/* Protocol version. */

#define OWN_NUMBER 1

struct protocol_version protocol_version_own(void) {
    return (struct protocol_version){.number = OWN_NUMBER, .program = "muster " MUSTER_VERSION};
}

void protocol_version_write(const struct protocol_version *version, struct text *out) {
    text_append_format(out, "%" PRId64 " %s", version->number, version->program);
}

/* Returns how many digits the text begins with; 0 also where their number is too large. */
static size_t read_number(struct slice text, int64_t *out_number) {
    size_t count = 0;
    while (count < text.length && text_is_digit(text.data[count])) {
        *out_number = *out_number * 10 + (text.data[count++] - '0');
        if (*out_number > PROTOCOL_VERSION_MAXIMUM) {
            return 0;
        }
    }
    return count;
}

static bool is_program(struct slice text) {
    for (size_t i = 0; i < text.length; i++) {
        if (text.data[i] < ' ' || text.data[i] > '~') {
            return false;
        }
    }
    return text.length > 0 && text.length < PROTOCOL_VERSION_PROGRAM_SIZE;
}

enum failure_code protocol_version_read(struct slice text, struct protocol_version *out_version) {
    struct protocol_version version = {0};
    size_t digits = read_number(text, &version.number);
    if (digits == 0 || text.data[0] == '0' || digits == text.length || text.data[digits] != ' ') {
        return FAILURE_MALFORMED;
    }
    struct slice program = slice_from(text, digits + 1);
    if (!is_program(program)) {
        return FAILURE_MALFORMED;
    }
    memcpy(version.program, program.data, program.length);
    *out_version = version;
    return FAILURE_NONE;
}

void protocol_version_describe(const struct protocol_version *version, struct text *out) {
    text_append_format(out, "%s, which speaks version %" PRId64 " of Muster's protocol",
        version->program, version->number);
}

/* Host answer. */

#define VERSION 1

void host_answer_clear(struct host_answer *answer) {
    host_place_clear(&answer->place);
    answer->term = 0;
}

void host_answer_write(const struct host_answer *answer, struct text *out) {
    text_append_format(out, "{\"muster_host\": %d, \"term\": %" PRId64, VERSION, answer->term);
    if (answer->place.names != NULL) {
        struct text place = {0};
        host_place_write(answer->place.port, answer->place.names, &place);
        text_append(out, ", \"place\": ");
        json_text_write(text_string(&place), out);
        text_clear(&place);
    }
    text_append(out, "}");
}

/* Handover word. */

static const char *const texts[HANDOVER_WORD_COUNT] = {
    [HANDOVER_NAMED] = "named",
    [HANDOVER_MOVED] = "moved",
};

const char *handover_word_text(enum handover_word word) {
    return texts[word];
}

bool handover_word_read(struct slice text, enum handover_word *out_word) {
    for (int word = 0; word < HANDOVER_WORD_COUNT; word++) {
        if (slice_equals(text, slice_from_string(texts[word]))) {
            *out_word = (enum handover_word)word;
            return true;
        }
    }
    return false;
}
