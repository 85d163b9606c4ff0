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
#define PAST_MARK 0x02
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

/* The past. */

static void put_age(struct bytes *out, const struct past_anchor *anchor, struct wall_time time) {
    put_number(out, (anchor->at.nanoseconds - time.nanoseconds) / CHRONICLE_GRAIN_NANOSECONDS);
}

static void put_duration(struct bytes *out, struct duration duration) {
    int64_t micros = duration.nanoseconds / CHRONICLE_GRAIN_NANOSECONDS;
    put_size(out, micros > 0 ? (uint64_t)micros : 0);
}

static void put_account(struct bytes *out, const struct chronicle_account *account) {
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        if (state != JOB_RECOVERING) {
            put_duration(out, account->states[state]);
        }
    }
    for (int cause = 0; cause < CHRONICLE_CAUSE_COUNT; cause++) {
        put_duration(out, account->recovering[cause]);
    }
    put_duration(out, account->redone);
    put_byte(out, account->knows_redone ? 1 : 0);
    put_size(out, (uint64_t)account->worker_seconds);
    put_size(out, (uint64_t)account->missing_worker_seconds);
}

enum recovery_flag { RECOVERY_IS_CHARGED = 1, RECOVERY_IS_OVER = 2, RECOVERY_HAS_EXIT = 4 };

static void put_optional_text(struct bytes *out, const char *text, size_t most) {
    put_text(out, text != NULL ? text : "", most);
}

static void put_recovery(struct bytes *out, const struct past_anchor *anchor,
    const struct chronicle_recovery *recovery) {
    unsigned known = 0;
    bool has_exit = recovery->exit != INT_MIN;
    for (int moment = 0; moment < RECOVERY_MOMENT_COUNT; moment++) {
        known |= recovery->moments[moment].nanoseconds != 0 ? 1U << moment : 0;
    }
    put_byte(out, (int)recovery->cause);
    put_byte(out, (recovery->is_charged ? RECOVERY_IS_CHARGED : 0) |
                      (recovery->is_over ? RECOVERY_IS_OVER : 0) |
                      (has_exit ? RECOVERY_HAS_EXIT : 0));
    put_size(out, (uint64_t)recovery->round);
    put_number(out, recovery->rank);
    put_number(out, has_exit ? recovery->exit : 0);
    put_number(out, recovery->redone_steps);
    put_optional_text(out, recovery->node, NODE_NAME_BYTES_MAXIMUM);
    put_optional_text(out, recovery->what, NODE_TELLING_TEXT_MAXIMUM);
    put_byte(out, (int)known);
    for (int moment = 0; moment < RECOVERY_MOMENT_COUNT; moment++) {
        if (recovery->moments[moment].nanoseconds != 0) {
            put_age(out, anchor, recovery->moments[moment]);
            put_optional_text(out, recovery->last[moment], NODE_NAME_BYTES_MAXIMUM);
        }
    }
}

/* So many of the last ones as there is room for. */
static void put_recoveries(
    struct bytes *out, const struct past_anchor *anchor, const struct chronicle_past *past) {
    struct bytes bodies = {0};
    size_t first = past->recovery_count;
    while (first > 0 && past->recovery_count - first < CHRONICLE_PAST_RECOVERIES_MAXIMUM) {
        struct bytes body = {0};
        put_recovery(&body, anchor, &past->recoveries[first - 1]);
        bool has_room = out->length + bodies.length + body.length + 16 <= NODE_TELLING_PAST_MAXIMUM;
        if (has_room) {
            first--;
            put_size(&bodies, body.length);
            put(&bodies, body.data, body.length);
        }
        bytes_clear(&body);
        if (!has_room) {
            break;
        }
    }
    put_size(out, past->recovery_count - first);
    put(out, bodies.data, bodies.length);
    bytes_clear(&bodies);
}

void node_telling_write_past(const struct chronicle_past *past, const struct past_anchor *anchor,
    bool has_recoveries, struct bytes *out) {
    put_byte(out, PAST_MARK);
    put_size(out, (uint64_t)(anchor->round + 1));
    put_size(out, microseconds(anchor->at));
    if (past->until.nanoseconds == 0) {
        return;
    }
    put_age(out, anchor, past->until);
    put_age(out, anchor, past->began);
    put_byte(out, (int)past->state);
    put_size(out, (uint64_t)past->largest_worker_count);
    put_account(out, &past->account);
    put_size(out, past->recovery_number);
    put_number(out, past->last_round);
    if (has_recoveries) {
        put_recoveries(out, anchor, past);
    } else {
        put_size(out, 0);
    }
}

static bool take_age(
    struct slice *rest, const struct past_anchor *anchor, struct wall_time *out_time) {
    int64_t micros;
    int64_t most = NODE_TELLING_OLDEST_SECONDS * 1000000;
    if (!take_number(rest, &micros) || micros > most || micros < -most) {
        return false;
    }
    out_time->nanoseconds = anchor->at.nanoseconds - micros * CHRONICLE_GRAIN_NANOSECONDS;
    return out_time->nanoseconds > 0;
}

static bool take_count(struct slice *rest, uint64_t most, uint64_t *out_count) {
    return take_size(rest, out_count) && *out_count <= most;
}

static bool take_duration(struct slice *rest, struct duration *out_duration) {
    uint64_t micros;
    if (!take_count(rest, (uint64_t)NODE_TELLING_OLDEST_SECONDS * 1000000, &micros)) {
        return false;
    }
    out_duration->nanoseconds = (int64_t)micros * CHRONICLE_GRAIN_NANOSECONDS;
    return true;
}

static bool take_byte(struct slice *rest, int most, int *out_byte) {
    struct slice byte;
    if (!take_bytes(rest, 1, &byte) || *byte.data > most) {
        return false;
    }
    *out_byte = *byte.data;
    return true;
}

static bool take_account(struct slice *rest, struct chronicle_account *account) {
    int flag;
    uint64_t seconds[2];
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        if (state != JOB_RECOVERING && !take_duration(rest, &account->states[state])) {
            return false;
        }
    }
    for (int cause = 0; cause < CHRONICLE_CAUSE_COUNT; cause++) {
        if (!take_duration(rest, &account->recovering[cause])) {
            return false;
        }
        account->states[JOB_RECOVERING].nanoseconds += account->recovering[cause].nanoseconds;
    }
    if (!take_duration(rest, &account->redone) || !take_byte(rest, 1, &flag) ||
        !take_count(rest, LARGEST_NUMBER, &seconds[0]) ||
        !take_count(rest, LARGEST_NUMBER, &seconds[1])) {
        return false;
    }
    account->knows_redone = flag != 0;
    account->worker_seconds = (double)seconds[0];
    account->missing_worker_seconds = (double)seconds[1];
    return account->redone.nanoseconds <= account->states[JOB_TRAINING].nanoseconds;
}

/* NULL where it is empty; it may be shown. */
static bool take_optional_text(struct slice *rest, char **out_text) {
    char *text;
    if (!take_text(rest, &text)) {
        return false;
    }
    *out_text = *text != '\0' ? chronicle_clean_text(text, CHRONICLE_TEXT_MAXIMUM) : NULL;
    free(text);
    return true;
}

static bool take_moments(
    struct slice *rest, const struct past_anchor *anchor, struct chronicle_recovery *recovery) {
    int known;
    if (!take_byte(rest, (1 << RECOVERY_MOMENT_COUNT) - 1, &known)) {
        return false;
    }
    for (int moment = 0; moment < RECOVERY_MOMENT_COUNT; moment++) {
        if ((known >> moment & 1) != 0 && (!take_age(rest, anchor, &recovery->moments[moment]) ||
                                              !take_optional_text(rest, &recovery->last[moment]))) {
            return false;
        }
    }
    return true;
}

static bool take_recovery(
    struct slice rest, const struct past_anchor *anchor, struct chronicle_recovery *recovery) {
    int cause;
    int flags;
    uint64_t round;
    int64_t rank;
    int64_t exit;
    if (!take_byte(&rest, CHRONICLE_CAUSE_COUNT - 1, &cause) || !take_byte(&rest, 7, &flags) ||
        !take_count(&rest, LARGEST_NUMBER, &round) || !take_number(&rest, &rank) || rank < -1 ||
        rank > INT_MAX || !take_number(&rest, &exit) || exit <= INT_MIN || exit > INT_MAX ||
        !take_number(&rest, &recovery->redone_steps) || recovery->redone_steps < -1 ||
        recovery->redone_steps > LARGEST_NUMBER || !take_optional_text(&rest, &recovery->node) ||
        !take_optional_text(&rest, &recovery->what)) {
        return false;
    }
    recovery->cause = (enum chronicle_cause)cause;
    recovery->round = (int64_t)round;
    recovery->rank = (int)rank;
    recovery->exit = (flags & RECOVERY_HAS_EXIT) != 0 ? (int)exit : INT_MIN;
    recovery->is_charged = (flags & RECOVERY_IS_CHARGED) != 0;
    recovery->is_over = (flags & RECOVERY_IS_OVER) != 0;
    recovery->is_given_up = !recovery->is_over;
    return take_moments(&rest, anchor, recovery) && rest.length == 0 &&
           recovery->moments[RECOVERY_FAILED].nanoseconds != 0;
}

/* The last one comes first. */
static bool take_recoveries(
    struct slice *rest, const struct past_anchor *anchor, struct chronicle_past *past) {
    uint64_t count;
    uint64_t length;
    struct slice body;
    if (!take_count(rest, CHRONICLE_PAST_RECOVERIES_MAXIMUM, &count) ||
        count > past->recovery_number) {
        return false;
    }
    past->recoveries = count > 0 ? memory_allocate(count * sizeof *past->recoveries) : NULL;
    past->recovery_count = (size_t)count;
    for (size_t i = past->recovery_count; i-- > 0;) {
        if (!take_count(rest, NODE_TELLING_PAST_MAXIMUM, &length) ||
            !take_bytes(rest, (size_t)length, &body) ||
            !take_recovery(body, anchor, &past->recoveries[i])) {
            return false;
        }
    }
    return true;
}

static bool adds_up(const struct chronicle_past *past) {
    int64_t sum = 0;
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        sum += past->account.states[state].nanoseconds;
    }
    return sum == past->until.nanoseconds - past->began.nanoseconds;
}

static bool take_past(
    struct slice *rest, const struct past_anchor *anchor, struct chronicle_past *past) {
    int state;
    uint64_t workers;
    uint64_t number;
    if (!take_age(rest, anchor, &past->until) || !take_age(rest, anchor, &past->began) ||
        !take_byte(rest, JOB_STATE_COUNT - 1, &state) || !take_count(rest, INT_MAX, &workers) ||
        !take_account(rest, &past->account) || !take_count(rest, LARGEST_NUMBER, &number) ||
        !take_number(rest, &past->last_round)) {
        return false;
    }
    past->state = (enum job_state)state;
    past->largest_worker_count = (int)workers;
    past->recovery_number = (size_t)number;
    return adds_up(past) && take_recoveries(rest, anchor, past) && rest->length == 0;
}

enum failure_code node_telling_read_past(struct slice bytes, const struct past_anchor *anchor,
    struct chronicle_past *out_past, struct wall_time *out_theirs) {
    struct chronicle_past past = {0};
    struct slice mark;
    uint64_t round;
    uint64_t theirs;
    if (bytes.length > NODE_TELLING_PAST_MAXIMUM || !take_bytes(&bytes, 1, &mark) ||
        *mark.data != PAST_MARK || !take_count(&bytes, LARGEST_NUMBER, &round) ||
        !take_count(&bytes, LARGEST_NUMBER, &theirs)) {
        return FAILURE_MALFORMED;
    }
    if ((int64_t)round != anchor->round + 1) {
        return FAILURE_MISSING;
    }
    if (bytes.length > 0 && !take_past(&bytes, anchor, &past)) {
        chronicle_past_clear(&past);
        return FAILURE_MALFORMED;
    }
    *out_past = past;
    out_theirs->nanoseconds = (int64_t)theirs * CHRONICLE_GRAIN_NANOSECONDS;
    return FAILURE_NONE;
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
