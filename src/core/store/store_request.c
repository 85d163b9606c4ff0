/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_request.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"

/* Without a wish a store takes this part of the memory, but not more than the limit of
 * STORE_LIMITS_DEFAULT. Workers need most of the memory for themselves. */
#define STORE_MEMORY_DEFAULT_PERCENT 25

#define LEAST_REQUEST_BYTES ((size_t)16 << 20) /* a value of the default limit fits, twice */
#define RESERVE_PART 16
#define LARGEST_RESERVE ((size_t)64 << 20)

static uint64_t part_of(uint64_t bytes, int percent) {
    return bytes / 100 * (uint64_t)percent + bytes % 100 * (uint64_t)percent / 100;
}

static size_t at_most(size_t value, size_t ceiling) {
    return value < ceiling ? value : ceiling;
}

struct store_limits store_memory_limits(
    const struct store_memory *asked, uint64_t available_bytes) {
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    uint64_t bytes = asked->bytes;
    if (bytes == 0 && asked->percent > 0) {
        bytes = part_of(available_bytes, asked->percent);
    } else if (bytes == 0) {
        bytes = part_of(available_bytes, STORE_MEMORY_DEFAULT_PERCENT);
        bytes = bytes < limits.memory_bytes ? bytes : limits.memory_bytes;
    }
    bytes = bytes < STORE_MEMORY_LEAST ? STORE_MEMORY_LEAST : bytes;
    limits.memory_bytes = bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
    size_t quarter = limits.memory_bytes / 4;
    size_t request = quarter > LEAST_REQUEST_BYTES ? quarter : LEAST_REQUEST_BYTES;
    limits.request_bytes = at_most(limits.request_bytes, request);
    limits.queued_reply_bytes = at_most(limits.queued_reply_bytes, request);
    return limits;
}

size_t store_memory_reserve(size_t memory_bytes) {
    return at_most(memory_bytes / RESERVE_PART, LARGEST_RESERVE);
}

/* Descriptors. */

/* Two log files, two pipes, a pidfd and the socket of a worker; as much again of one that stands
 * by; and what starting takes for a moment. */
#define OF_WORKER UINT64_C(16)
#define FOR_ITSELF UINT64_C(32)
/* With fewer descriptors than this most are the agent's own already. */
#define ROOMY_LIMIT UINT64_C(256)

uint64_t store_descriptors_for_workers(uint64_t workers) {
    return workers * OF_WORKER + FOR_ITSELF;
}

uint64_t store_descriptors_kept(uint64_t wanted, uint64_t limit) {
    uint64_t most = limit < ROOMY_LIMIT ? limit / 4 : limit / 2;
    return wanted < most ? wanted : most;
}

/* Twice what the nodes need, because half of it is all that one address gets. */
uint64_t store_descriptors_unproven(uint64_t nodes, uint64_t limit) {
    uint64_t wanted = 2 * (nodes * STORE_DESCRIPTORS_OF_NODE + FOR_ITSELF);
    uint64_t most = limit / 4;
    return wanted < most ? wanted : most;
}

uint64_t store_descriptors_needed(uint64_t nodes, uint64_t connections_of_node, uint64_t kept) {
    return STORE_DESCRIPTORS_OWN + kept + nodes * connections_of_node;
}

uint64_t store_descriptors_nodes(uint64_t limit, uint64_t connections_of_node, uint64_t kept) {
    uint64_t own = STORE_DESCRIPTORS_OWN + store_descriptors_kept(kept, limit);
    return limit > own ? (limit - own) / connections_of_node : 0;
}

/* Connection silence. */

/* With a sign of life in each second, a longer silence is not usual. */
#define USUAL_MILLISECONDS 1500
/* Looks at the end of the limit come a little later, because the silence is measured roughly. */
#define ROUGHLY_MILLISECONDS 10

bool connection_silence_is_unusual(struct duration silent_for) {
    return silent_for.nanoseconds > duration_from_milliseconds(USUAL_MILLISECONDS).nanoseconds;
}

bool connection_silence_rests(const struct connection_silence *silence, struct instant now) {
    struct instant next_look =
        instant_after(now, duration_from_milliseconds(CONNECTION_SILENCE_LOOK_MILLISECONDS));
    return instant_is_before(next_look, silence->heard_until);
}

bool connection_silence_look(struct connection_silence *silence, struct duration silent_for,
    struct duration limit, struct instant now) {
    if (silent_for.nanoseconds <= limit.nanoseconds) {
        silence->is_doubted = false;
        silence->heard_until =
            instant_after(now, (struct duration){limit.nanoseconds - silent_for.nanoseconds});
        return false;
    }
    if (!silence->is_doubted) {
        silence->is_doubted = true;
        silence->doubted_at = now;
        return false;
    }
    return instant_until(silence->doubted_at, now).nanoseconds >=
           duration_from_milliseconds(CONNECTION_SILENCE_DOUBT_MILLISECONDS).nanoseconds;
}

struct duration connection_silence_pause(const struct connection_silence *silence,
    struct duration silent_for, struct duration limit, struct instant now) {
    int64_t longest = duration_from_milliseconds(CONNECTION_SILENCE_LOOK_MILLISECONDS).nanoseconds;
    if (silence->is_doubted) {
        struct instant end = instant_after(
            silence->doubted_at, duration_from_milliseconds(CONNECTION_SILENCE_DOUBT_MILLISECONDS));
        int64_t left = instant_until(now, end).nanoseconds;
        return (struct duration){left > 0 ? left : longest};
    }
    int64_t left = limit.nanoseconds - silent_for.nanoseconds +
                   duration_from_milliseconds(ROUGHLY_MILLISECONDS).nanoseconds;
    int64_t shortest = connection_silence_is_unusual(silent_for) ? 0 : longest / 2;
    left = left < shortest ? shortest : left;
    return (struct duration){left < longest ? left : longest};
}

struct duration connection_silence_earliest(struct duration pause) {
    int64_t longest = duration_from_milliseconds(CONNECTION_SILENCE_LOOK_MILLISECONDS).nanoseconds;
    return (struct duration){pause.nanoseconds < longest ? pause.nanoseconds : longest / 2};
}

/* Connection calm. */

bool connection_calm_look(struct connection_calm *calm, struct connection_hearing hearing,
    struct duration after, struct instant now) {
    bool is_lossy =
        hearing.resent != calm->resent || connection_silence_is_unusual(hearing.silent_for);
    if (is_lossy || !calm->has_begun) {
        *calm = (struct connection_calm){now, hearing.resent, true};
    }
    return instant_until(calm->since, now).nanoseconds >= after.nanoseconds;
}

/* Request. */

static bool is_blank(uint8_t byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

enum failure_code store_counter_parse(struct slice text, int64_t *out_value) {
    const uint8_t *position = text.data;
    const uint8_t *end = text.length == 0 ? position : position + text.length;
    while (position < end && is_blank(*position)) {
        position++;
    }
    bool is_negative = position < end && *position == '-';
    if (position < end && (*position == '-' || *position == '+')) {
        position++;
    }
    if (position == end || !text_is_digit(*position)) {
        return FAILURE_MALFORMED;
    }
    /* The value is built as a negative number, because the negative range is larger. */
    int64_t value = 0;
    for (; position < end && text_is_digit(*position); position++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, *position - '0', &value)) {
            return FAILURE_LIMIT;
        }
    }
    if (!is_negative && value == INT64_MIN) {
        return FAILURE_LIMIT;
    }
    *out_value = is_negative ? value : -value;
    return FAILURE_NONE;
}

struct slice store_counter_format(int64_t value, uint8_t buffer[STORE_COUNTER_SIZE]) {
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint8_t *end = buffer + STORE_COUNTER_SIZE;
    uint8_t *start = end;
    do {
        *--start = (uint8_t)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude > 0);
    if (value < 0) {
        *--start = '-';
    }
    return (struct slice){start, (size_t)(end - start)};
}

/* Request. */

static const struct {
    const char *name;
    enum store_reply_kind reply;
} operations[STORE_OPERATION_COUNT] = {
    [STORE_VALIDATE] = {"VALIDATE", STORE_REPLY_NONE},
    [STORE_SET] = {"SET", STORE_REPLY_NONE},
    [STORE_COMPARE_SET] = {"COMPARE_SET", STORE_REPLY_BLOB},
    [STORE_GET] = {"GET", STORE_REPLY_BLOB},
    [STORE_ADD] = {"ADD", STORE_REPLY_INTEGER},
    [STORE_CHECK] = {"CHECK", STORE_REPLY_BYTE},
    [STORE_WAIT] = {"WAIT", STORE_REPLY_BYTE},
    [STORE_COUNT_KEYS] = {"GETNUMKEYS", STORE_REPLY_INTEGER},
    [STORE_DELETE] = {"DELETE_KEY", STORE_REPLY_INTEGER},
    [STORE_APPEND] = {"APPEND", STORE_REPLY_NONE},
    [STORE_MULTI_GET] = {"MULTI_GET", STORE_REPLY_BLOBS},
    [STORE_MULTI_SET] = {"MULTI_SET", STORE_REPLY_NONE},
    [STORE_CANCEL_WAIT] = {"CANCEL_WAIT", STORE_REPLY_BYTE},
    [STORE_PING] = {"PING", STORE_REPLY_NONCE},
    [STORE_QUEUE_PUSH] = {"QUEUE_PUSH", STORE_REPLY_NONE},
    [STORE_QUEUE_POP] = {"QUEUE_POP", STORE_REPLY_POP},
    [STORE_QUEUE_LENGTH] = {"QUEUE_LEN", STORE_REPLY_INTEGER},
    [STORE_LIST_KEYS] = {"LIST_KEYS", STORE_REPLY_KEYS},
    [STORE_BARRIER] = {"BARRIER", STORE_REPLY_BYTE},
};

bool store_request_touches(const struct store_request *request, struct slice prefix) {
    bool touches = slice_starts_with(request->key, prefix);
    for (size_t i = 0; i < request->count; i++) {
        touches |= slice_starts_with(request->keys[i], prefix);
    }
    return touches;
}

const char *store_operation_name(enum store_operation operation) {
    return (unsigned)operation < STORE_OPERATION_COUNT ? operations[operation].name : "unknown";
}

enum store_reply_kind store_operation_reply_kind(enum store_operation operation) {
    return (unsigned)operation < STORE_OPERATION_COUNT ? operations[operation].reply
                                                       : STORE_REPLY_NONE;
}

/* Effects. */

/* An array that is larger than this is freed at the reset. */
#define KEPT_EFFECTS 1024
#define KEPT_BLOBS 4096

void store_effects_reset(struct store_effects *effects) {
    effects->count = 0;
    effects->is_full = false;
    if (effects->capacity > KEPT_EFFECTS) {
        free(effects->items);
        effects->items = NULL;
        effects->capacity = 0;
    }
    if (effects->blob_capacity > KEPT_BLOBS) {
        free(effects->blobs);
        effects->blobs = NULL;
        effects->blob_capacity = 0;
    }
}

void store_effects_clear(struct store_effects *effects) {
    free(effects->items);
    free(effects->blobs);
    *effects = (struct store_effects){0};
}

bool store_effects_have_room(struct store_effects *effects, size_t count) {
    size_t needed = effects->count + count;
    if (needed <= effects->capacity || needed <= KEPT_EFFECTS) {
        return true;
    }
    if (!spare_memory_is_there(needed * sizeof *effects->items)) {
        return false;
    }
    effects->items =
        memory_reserve(effects->items, &effects->capacity, needed, sizeof *effects->items);
    return true;
}

static struct store_effect *append(struct store_effects *effects) {
    effects->items = memory_reserve(
        effects->items, &effects->capacity, effects->count + 1, sizeof *effects->items);
    return &effects->items[effects->count++];
}

void store_effects_reply(struct store_effects *effects, struct store_connection *connection,
    const struct store_reply *reply) {
    struct store_effect *effect = append(effects);
    effect->kind = STORE_EFFECT_REPLY;
    effect->may_wait = false;
    effect->connection = connection;
    effect->reply = *reply;
}

void store_effects_give_way(struct store_effects *effects, struct store_connection *connection) {
    const struct store_reply none = {.kind = STORE_REPLY_POP};
    store_effects_reply(effects, connection, &none);
    effects->items[effects->count - 1].may_wait = true;
}

void store_effects_close(
    struct store_effects *effects, struct store_connection *connection, const char *reason) {
    struct store_effect *effect = append(effects);
    effect->kind = STORE_EFFECT_CLOSE;
    effect->may_wait = false;
    effect->connection = connection;
    effect->reason = reason;
}

bool store_effects_have_written(
    const struct store_effects *effects, const struct store_request *request) {
    if (request->operation != STORE_COMPARE_SET) {
        return request->operation == STORE_SET && !effects->is_full;
    }
    size_t own = 0;
    while (own < effects->count && effects->items[own].may_wait) {
        own++; /* a QUEUE_POP has given way */
    }
    return own < effects->count && effects->items[own].kind == STORE_EFFECT_REPLY &&
           slice_equals(effects->items[own].reply.blob, request->value);
}

struct slice *store_effects_blobs(struct store_effects *effects, size_t count) {
    effects->blobs =
        memory_reserve(effects->blobs, &effects->blob_capacity, count, sizeof *effects->blobs);
    return effects->blobs;
}
