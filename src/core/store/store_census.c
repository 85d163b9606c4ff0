/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_census.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

#define NAME_SIZE 65

struct store_census {
    char name[NAME_SIZE]; /* empty: the keys have nothing in common, or there are none */
    bool is_whole_key;    /* else the beginning of keys */
    int percent;          /* of the memory, about */
    size_t memory;        /* of the store when it was taken */
};

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
    size_t bytes[NAME_SIZE + 1]; /* with a beginning of that length */
    size_t length = 0;
    while (length < NAME_SIZE && narrow(sampling, length, &bytes[length + 1])) {
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

static const struct store_census *census_of(struct store_entries *entries) {
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

/* A number of bytes, as people read it. */
static void append_size(struct text *out, size_t bytes) {
    if (bytes < (size_t)1 << 20) {
        text_append_format(out, "%zu bytes", bytes);
    } else {
        text_append_format(out, "%.1f MiB", (double)bytes / 1048576);
    }
}

void store_census_describe(struct store_entries *entries, struct text *out) {
    const struct store_census *census = census_of(entries);
    text_append_format(out, "%zu keys take ", entries->value_count);
    append_size(out, entries->memory);
    text_append(out, " of the store's memory limit of ");
    append_size(out, entries->memory_limit);
    if (entries->owner_reserve > 0) {
        text_append(out, " (");
        append_size(out, entries->owner_reserve);
        text_append(out, " are kept for the agents)");
    }
    if (entries->reserved > entries->memory_limit / 16) {
        text_append(out, ", unfinished requests and unread replies ");
        append_size(out, entries->reserved);
    }
    if (census->name[0] != '\0') {
        text_append_format(out, "; about %d %% of what the keys take is for %s '%s'",
            census->percent, census->is_whole_key ? "the key" : "those that begin with",
            census->name);
    }
}
