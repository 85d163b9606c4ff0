/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_limits.h"

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
