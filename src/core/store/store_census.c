/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_census.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* The keys whose names are compared: about as many, taken evenly from all. */
#define SAMPLE_SIZE ((size_t)4096)

struct sampled {
    struct slice key;
    size_t bytes;
};

struct sampling {
    struct sampled *sample;
    size_t count;
    size_t stride;
    size_t seen;
    size_t bytes;           /* of the sample */
    struct sampled largest; /* of all keys */
};

static size_t entry_bytes(const struct store_entry *entry) {
    return store_entries_add_size(entry->key) + entry->value_capacity + entry->queue_bytes;
}

static bool look_at(void *context, struct slice key, void *value) {
    struct sampling *sampling = context;
    struct sampled found = {key, entry_bytes(value)};
    if (found.bytes > sampling->largest.bytes) {
        sampling->largest = found;
    }
    if (sampling->seen++ % sampling->stride == 0) {
        sampling->sample[sampling->count++] = found;
        sampling->bytes += found.bytes;
    }
    return true;
}

static void name_keys(struct store_census *census, struct slice name) {
    size_t length = 0;
    if (name.length > 0 && name.data[0] == '/') {
        name = slice_from(name, 1);
    }
    for (; length < name.length && length + 1 < sizeof census->name; length++) {
        uint8_t byte = name.data[length];
        bool is_plain = byte >= ' ' && byte <= '~' && byte != '\'';
        census->name[length] = is_plain ? (char)byte : '?';
    }
    census->name[length] = '\0';
}

/* Keeps the keys of the sample that go on with the byte that most of them (by memory) have at
 * `position`. False, and nothing changes, when these take less than half of the sample's memory. */
static bool narrow(struct sampling *sampling, size_t position, size_t *out_bytes) {
    size_t bytes_by_next[256] = {0};
    size_t best = 0;
    for (size_t i = 0; i < sampling->count; i++) {
        const struct sampled *each = &sampling->sample[i];
        if (each->key.length > position) {
            bytes_by_next[each->key.data[position]] += each->bytes;
        }
    }
    for (size_t next = 1; next < 256; next++) {
        best = bytes_by_next[next] > bytes_by_next[best] ? next : best;
    }
    if (bytes_by_next[best] == 0 || bytes_by_next[best] < sampling->bytes / 2) {
        return false;
    }
    size_t kept = 0;
    for (size_t i = 0; i < sampling->count; i++) {
        struct sampled each = sampling->sample[i];
        if (each.key.length > position && each.key.data[position] == best) {
            sampling->sample[kept++] = each;
        }
    }
    sampling->count = kept;
    *out_bytes = bytes_by_next[best];
    return true;
}

static bool is_digit(uint8_t byte) {
    return byte >= '0' && byte <= '9';
}

static void find_beginning(struct sampling *sampling, struct store_census *census) {
    size_t bytes[STORE_CENSUS_NAME_SIZE + 1]; /* with a beginning of that length */
    size_t length = 0;
    while (length < STORE_CENSUS_NAME_SIZE && narrow(sampling, length, &bytes[length + 1])) {
        length++;
    }
    while (length > 0 && is_digit(sampling->sample[0].key.data[length - 1])) {
        length--; /* the beginning of a number says nothing */
    }
    if (length > 1) {
        name_keys(census, (struct slice){sampling->sample[0].key.data, length});
        census->percent = (int)(bytes[length] * 100 / sampling->bytes);
    }
}

static struct store_census take(const struct store_entries *entries) {
    struct store_census census = {.memory = entries->memory};
    size_t count = table_count(entries->table);
    struct sampling sampling = {.stride = count / SAMPLE_SIZE + 1};
    if (count == 0) {
        return census;
    }
    sampling.sample = memory_allocate((count / sampling.stride + 1) * sizeof *sampling.sample);
    table_each(entries->table, look_at, &sampling);
    if (sampling.largest.bytes >= entries->memory / 2) {
        name_keys(&census, sampling.largest.key);
        census.is_whole_key = true;
        census.percent = (int)(sampling.largest.bytes * 100 / entries->memory);
    } else {
        find_beginning(&sampling, &census);
    }
    free(sampling.sample);
    return census;
}

const struct store_census *store_census_of(struct store_entries *entries) {
    size_t tolerance = entries->memory_limit / 8;
    struct store_census *census = entries->census;
    if (census == NULL || entries->memory > census->memory + tolerance ||
        entries->memory + tolerance < census->memory) {
        struct store_census taken = take(entries);
        free(census);
        entries->census = memory_duplicate(&taken, sizeof taken);
    }
    return entries->census;
}
