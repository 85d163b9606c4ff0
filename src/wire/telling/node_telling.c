/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/telling/node_telling.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* No question begins so. */
#define MARK 0x01
#define NODE_NAME_BYTES_MAXIMUM 512
#define LARGEST_NUMBER (INT64_C(1) << 53)

/* Codes never change, and are never used again. */
static const unsigned char kind_codes[CHRONICLE_KIND_COUNT] = {
    [CHRONICLE_JOINED] = 1,
    [CHRONICLE_NODE_LEFT] = 2,
    [CHRONICLE_NODE_LOST] = 3,
    [CHRONICLE_WORLD] = 4,
    [CHRONICLE_STARTED] = 5,
    [CHRONICLE_WORKER_FAILED] = 6,
    [CHRONICLE_STOPPING] = 7,
    [CHRONICLE_STOPPED] = 8,
    [CHRONICLE_WAITING] = 9,
    [CHRONICLE_RESTART] = 10,
    [CHRONICLE_PROGRESS] = 11,
    [CHRONICLE_TRAINING] = 12,
    [CHRONICLE_CHECKPOINT] = 13,
    [CHRONICLE_HANG] = 14,
    [CHRONICLE_SLOW] = 15,
    [CHRONICLE_SPARES] = 16,
    [CHRONICLE_HOST] = 17,
    [CHRONICLE_EXCLUDED] = 18,
    [CHRONICLE_ENDED] = 19,
};

static const unsigned char field_codes[CHRONICLE_FIELD_COUNT] = {
    [CHRONICLE_RANK] = 1,
    [CHRONICLE_FIRST_RANK] = 2,
    [CHRONICLE_LOCAL_RANK] = 3,
    [CHRONICLE_PID] = 4,
    [CHRONICLE_EXIT] = 5,
    [CHRONICLE_SIGNAL] = 6,
    [CHRONICLE_WORKERS] = 7,
    [CHRONICLE_NODES] = 8,
    [CHRONICLE_ATTEMPT] = 9,
    [CHRONICLE_FROM_STANDBY] = 10,
    [CHRONICLE_USED] = 11,
    [CHRONICLE_MAX] = 12,
    [CHRONICLE_HERE] = 13,
    [CHRONICLE_MIN] = 14,
    [CHRONICLE_MISSING] = 15,
    [CHRONICLE_READY] = 16,
    [CHRONICLE_OF] = 17,
    [CHRONICLE_STEP] = 18,
    [CHRONICLE_TERM] = 19,
    [CHRONICLE_LAST] = 20,
    [CHRONICLE_CHARGED] = 21,
    [CHRONICLE_FIRST] = 22,
    [CHRONICLE_SILENCE] = 23,
    [CHRONICLE_LAST_HEARD] = 24,
    [CHRONICLE_TOOK] = 25,
    [CHRONICLE_RATE] = 26,
    [CHRONICLE_RATIO] = 27,
    [CHRONICLE_VERSION] = 28,
    [CHRONICLE_REASON] = 29,
    [CHRONICLE_TEXT] = 30,
    [CHRONICLE_CAUSE] = 31,
    [CHRONICLE_WHAT] = 32,
    [CHRONICLE_WHERE] = 33,
    [CHRONICLE_RESULT] = 34,
    [CHRONICLE_SOURCE] = 35,
    [CHRONICLE_FROM] = 36,
};

/* How a value is spelled, so that who does not know the field can pass over it. */
enum shape { SHAPE_NUMBER, SHAPE_RATE, SHAPE_TEXT, SHAPE_COUNT };

static enum shape shape_of(enum chronicle_field field) {
    switch (chronicle_field_type(field)) {
    case CHRONICLE_RATE_TYPE:
        return SHAPE_RATE;
    case CHRONICLE_TEXT_TYPE:
        return SHAPE_TEXT;
    case CHRONICLE_INTEGER:
    case CHRONICLE_FLAG:
    case CHRONICLE_SECONDS:
        break;
    }
    return SHAPE_NUMBER;
}

void node_telling_clear(struct node_telling *telling) {
    free(telling->node);
    *telling = (struct node_telling){0};
}

/* Writing: the room is checked by who appends. */

static void put(struct bytes *out, const void *data, size_t length) {
    if (bytes_append(out, data, length) != FAILURE_NONE) {
        return; /* no buffer here has a ceiling */
    }
}

static void put_byte(struct bytes *out, int byte) {
    uint8_t one = (uint8_t)byte;
    put(out, &one, 1);
}

/* Seven bits a byte, the lowest first. */
static void put_size(struct bytes *out, uint64_t size) {
    while (size >= 0x80) {
        put_byte(out, (int)(size & 0x7f) | 0x80);
        size >>= 7;
    }
    put_byte(out, (int)size);
}

static void put_number(struct bytes *out, int64_t number) {
    put_size(out, number < 0 ? ((uint64_t) - (number + 1)) * 2 + 1 : (uint64_t)number * 2);
}

static void put_text(struct bytes *out, const char *text, size_t most) {
    size_t length = strlen(text) < most ? strlen(text) : most;
    while (length > 0 && ((uint8_t)text[length] & 0xc0) == 0x80) {
        length--; /* no character is cut */
    }
    put_size(out, length);
    put(out, text, length);
}

static void put_value(struct bytes *out, const struct chronicle_value *value) {
    enum shape shape = shape_of(value->field);
    put_size(out, (uint64_t)field_codes[value->field] * SHAPE_COUNT + shape);
    switch (shape) {
    case SHAPE_NUMBER:
        put_number(out, value->number);
        break;
    case SHAPE_RATE:
        put(out, &value->rate, sizeof value->rate);
        break;
    case SHAPE_TEXT:
        put_text(out, value->text, NODE_TELLING_TEXT_MAXIMUM);
        break;
    case SHAPE_COUNT:
        break;
    }
}

static uint64_t microseconds(struct wall_time time) {
    return time.nanoseconds > 0 ? (uint64_t)(time.nanoseconds / CHRONICLE_GRAIN_NANOSECONDS) : 0;
}

void node_telling_begin(const struct node_telling *telling, struct bytes *out) {
    put_byte(out, MARK);
    put_size(out, microseconds(telling->life));
    put_size(out, microseconds(telling->said));
    put_text(out, telling->node, NODE_NAME_BYTES_MAXIMUM);
}

bool node_telling_add(
    const struct node_telling *telling, const struct chronicle_entry *entry, struct bytes *out) {
    struct bytes body = {0};
    int64_t age = telling->said.nanoseconds - entry->time.nanoseconds;
    put_byte(&body, kind_codes[entry->kind]);
    put_byte(&body, (int)entry->severity);
    put_size(&body, (uint64_t)entry->seq);
    put_size(&body, age > 0 ? (uint64_t)(age / CHRONICLE_GRAIN_NANOSECONDS) : 0);
    put_size(&body, entry->has_round ? (uint64_t)entry->round + 1 : 0);
    put_text(
        &body, text_equals(entry->node, telling->node) ? "" : entry->node, NODE_NAME_BYTES_MAXIMUM);
    for (int i = 0; i < entry->value_count; i++) {
        put_value(&body, &entry->values[i]);
    }
    bool has_room = out->length + body.length + 3 <= NODE_TELLING_MAXIMUM;
    if (has_room) {
        put_size(out, body.length);
        put(out, body.data, body.length);
    }
    bytes_clear(&body);
    return has_room;
}

/* Reading. */

static bool take_bytes(struct slice *rest, size_t length, struct slice *out) {
    if (rest->length < length) {
        return false;
    }
    *out = (struct slice){rest->data, length};
    *rest = slice_from(*rest, length);
    return true;
}

static bool take_size(struct slice *rest, uint64_t *out_size) {
    uint64_t size = 0;
    struct slice byte;
    for (int shift = 0; shift < 63; shift += 7) {
        if (!take_bytes(rest, 1, &byte)) {
            return false;
        }
        size |= (uint64_t)(*byte.data & 0x7f) << shift;
        if ((*byte.data & 0x80) == 0) {
            *out_size = size;
            return true;
        }
    }
    return false;
}

static bool take_number(struct slice *rest, int64_t *out_number) {
    uint64_t size;
    if (!take_size(rest, &size)) {
        return false;
    }
    *out_number = size % 2 == 1 ? -(int64_t)(size / 2) - 1 : (int64_t)(size / 2);
    return true;
}

/* The caller frees it. */
static bool take_text(struct slice *rest, char **out_text) {
    uint64_t length;
    struct slice bytes;
    if (!take_size(rest, &length) || length > rest->length ||
        !take_bytes(rest, (size_t)length, &bytes)) {
        return false;
    }
    *out_text = text_format("%.*s", (int)bytes.length, (const char *)bytes.data);
    return true;
}

static int find_code(const unsigned char *codes, int count, uint64_t code) {
    int index = 0;
    while (index < count && codes[index] != code) {
        index++;
    }
    return index;
}

static bool is_in_range(enum chronicle_field field, int64_t number) {
    bool is_long = field == CHRONICLE_PID || field == CHRONICLE_STEP || field == CHRONICLE_TERM;
    switch (chronicle_field_type(field)) {
    case CHRONICLE_INTEGER:
        return is_long ? number <= LARGEST_NUMBER && number >= -LARGEST_NUMBER
                       : number <= INT_MAX && number >= -INT_MAX;
    case CHRONICLE_SECONDS:
        return number >= 0 && number <= NODE_TELLING_OLDEST_SECONDS * NANOSECONDS_PER_SECOND;
    case CHRONICLE_FLAG:
    case CHRONICLE_RATE_TYPE:
    case CHRONICLE_TEXT_TYPE:
        break;
    }
    return true;
}

/* `field` is the COUNT for one that is passed over. */
static bool take_value(struct slice *rest, enum shape shape, enum chronicle_field field,
    struct chronicle_entry *entry) {
    bool is_known = field != CHRONICLE_FIELD_COUNT;
    struct slice bytes;
    int64_t number;
    double rate;
    char *text;
    switch (shape) {
    case SHAPE_NUMBER:
        if (!take_number(rest, &number)) {
            return false;
        }
        if (is_known && is_in_range(field, number)) {
            bool is_flag = chronicle_field_type(field) == CHRONICLE_FLAG;
            chronicle_entry_add(entry, field, is_flag ? number != 0 : number);
        }
        return true;
    case SHAPE_RATE:
        if (!take_bytes(rest, sizeof rate, &bytes)) {
            return false;
        }
        memcpy(&rate, bytes.data, sizeof rate);
        if (is_known && isfinite(rate)) {
            chronicle_entry_add_rate(entry, field, rate);
        }
        return true;
    case SHAPE_TEXT:
        if (!take_text(rest, &text)) {
            return false;
        }
        if (is_known) {
            chronicle_entry_add_text(entry, field, text);
        }
        free(text);
        return true;
    case SHAPE_COUNT:
        break;
    }
    return false;
}

static bool take_values(struct slice *rest, struct chronicle_entry *entry) {
    uint64_t seen = 0;
    uint64_t tag;
    while (rest->length > 0) {
        if (!take_size(rest, &tag)) {
            return false;
        }
        enum shape shape = (enum shape)(tag % SHAPE_COUNT);
        int field = find_code(field_codes, CHRONICLE_FIELD_COUNT, tag / SHAPE_COUNT);
        bool is_wanted = field < CHRONICLE_FIELD_COUNT &&
                         chronicle_kind_has(entry->kind, (enum chronicle_field)field) &&
                         shape_of((enum chronicle_field)field) == shape &&
                         (seen >> field & 1) == 0 && entry->value_count < CHRONICLE_VALUES_MAXIMUM;
        seen |= is_wanted ? UINT64_C(1) << field : 0;
        if (!take_value(rest, shape,
                is_wanted ? (enum chronicle_field)field : CHRONICLE_FIELD_COUNT, entry)) {
            return false;
        }
    }
    return true;
}

static struct wall_time time_of_age(struct wall_time now, uint64_t micros) {
    uint64_t most = (uint64_t)NODE_TELLING_OLDEST_SECONDS * 1000000;
    int64_t age = (int64_t)(micros < most ? micros : most) * CHRONICLE_GRAIN_NANOSECONDS;
    return (struct wall_time){now.nanoseconds > age ? now.nanoseconds - age : 0};
}

/* FAILURE_MISSING: its kind is not known. */
static enum failure_code read_entry(struct slice body, struct wall_time now,
    const struct node_telling *telling, struct chronicle_entry *entry) {
    struct slice head;
    uint64_t seq;
    uint64_t age;
    uint64_t round;
    char *node;
    if (!take_bytes(&body, 2, &head) || !take_size(&body, &seq) || !take_size(&body, &age) ||
        !take_size(&body, &round) || seq < 1 || seq > LARGEST_NUMBER || round > LARGEST_NUMBER ||
        !take_text(&body, &node)) {
        return FAILURE_MALFORMED;
    }
    chronicle_entry_set_node(entry, *node != '\0' ? node : telling->node);
    free(node);
    entry->kind = (enum chronicle_kind)find_code(kind_codes, CHRONICLE_KIND_COUNT, head.data[0]);
    if (entry->kind == CHRONICLE_KIND_COUNT) {
        return FAILURE_MISSING;
    }
    entry->severity = head.data[1] < CHRONICLE_SEVERITY_COUNT
                          ? (enum chronicle_severity)head.data[1]
                          : CHRONICLE_ERROR;
    entry->seq = (int64_t)seq;
    entry->time = time_of_age(now, age);
    entry->has_round = round > 0;
    entry->round = round > 0 ? (int64_t)round - 1 : 0;
    return take_values(&body, entry) ? FAILURE_NONE : FAILURE_MALFORMED;
}

static bool read_head(struct slice *rest, struct node_telling *telling) {
    struct slice mark;
    uint64_t life;
    uint64_t said;
    if (!take_bytes(rest, 1, &mark) || *mark.data != MARK || !take_size(rest, &life) ||
        !take_size(rest, &said) || life > LARGEST_NUMBER || said > LARGEST_NUMBER ||
        !take_text(rest, &telling->node)) {
        return false;
    }
    telling->life.nanoseconds = (int64_t)life * CHRONICLE_GRAIN_NANOSECONDS;
    telling->said.nanoseconds = (int64_t)said * CHRONICLE_GRAIN_NANOSECONDS;
    return *telling->node != '\0';
}

enum failure_code node_telling_read(struct slice bytes, struct wall_time now,
    struct node_telling *out_telling,
    void (*take)(
        void *context, const struct node_telling *telling, const struct chronicle_entry *entry),
    void *context) {
    enum failure_code code = FAILURE_NONE;
    struct slice body;
    uint64_t length;
    *out_telling = (struct node_telling){0};
    if (bytes.length > NODE_TELLING_MAXIMUM || !read_head(&bytes, out_telling)) {
        return FAILURE_MALFORMED;
    }
    while (bytes.length > 0 && code != FAILURE_MALFORMED) {
        struct chronicle_entry entry = {0};
        code = take_size(&bytes, &length) && length <= bytes.length &&
                       take_bytes(&bytes, (size_t)length, &body)
                   ? read_entry(body, now, out_telling, &entry)
                   : FAILURE_MALFORMED;
        if (code == FAILURE_NONE) {
            take(context, out_telling, &entry);
        }
        chronicle_entry_clear(&entry);
    }
    return code == FAILURE_MALFORMED ? code : FAILURE_NONE;
}

/* Questions. */

static const char *const question_names[] = {"status", "nodes", "events", "clock"};

void job_question_write(const struct job_question *question, struct text *out) {
    text_append_format(out, "ask/1 %s %s %" PRId64, question->name, question_names[question->kind],
        question->kind == JOB_QUESTION_EVENTS ? question->after : 0);
}

#define QUESTION_MAXIMUM 128

enum failure_code job_question_read(struct slice text, struct job_question *out_question) {
    static const char start[] = "ask/1 ";
    char line[QUESTION_MAXIMUM + 1];
    struct job_question question = {0};
    if (text.length > QUESTION_MAXIMUM || memchr(text.data, '\0', text.length) != NULL) {
        return FAILURE_MALFORMED;
    }
    memcpy(line, text.data, text.length);
    line[text.length] = '\0';
    const char *name = line + sizeof start - 1;
    if (!text_starts_with(line, start) ||
        strspn(name, "0123456789abcdef") != JOB_QUESTION_NAME_SIZE - 1 ||
        name[JOB_QUESTION_NAME_SIZE - 1] != ' ') {
        return FAILURE_MALFORMED;
    }
    memcpy(question.name, name, JOB_QUESTION_NAME_SIZE - 1);
    char *kind = line + sizeof start - 1 + JOB_QUESTION_NAME_SIZE;
    char *number = strchr(kind, ' ');
    if (number == NULL || text_parse_integer(number + 1, &question.after) != FAILURE_NONE ||
        question.after < 0) {
        return FAILURE_MALFORMED;
    }
    *number = '\0';
    while (question.kind < JOB_QUESTION_KIND_COUNT &&
           !text_equals(question_names[question.kind], kind)) {
        question.kind++;
    }
    if (question.kind == JOB_QUESTION_KIND_COUNT) {
        return FAILURE_MALFORMED;
    }
    *out_question = question;
    return FAILURE_NONE;
}
