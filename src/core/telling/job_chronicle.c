/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/job_chronicle.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/table.h"
#include "base/text.h"

/* What has come longer ago than this is told by all nodes that tell it. */
#define SETTLED_AFTER_SECONDS 5
/* Of entries that are not settled; then the oldest are, whatever comes: anybody may tell that can
 * write to the store. Ten thousand nodes tell less in a recovery. */
#define UNSETTLED_MAXIMUM ((size_t)64 * 1024)
#define UNSETTLED_BYTES_MAXIMUM ((size_t)16 * 1024 * 1024)
/* … so much of it at once. */
#define UNSETTLED_SLACK 16
/* Agents whose numbers are known; each node may have had several. */
#define TELLERS_MAXIMUM (2 * CHRONICLE_NODES_MAXIMUM)

struct unsettled {
    struct chronicle_entry entry; /* its number is the job's */
    struct wall_time came;
};

/* An agent that tells. */
struct teller {
    int64_t last_seq;
    struct duration clock_offset; /* INT64_MIN: not known */
};

struct job_chronicle {
    struct chronicle_entry *ring; /* by their numbers */
    size_t first;
    size_t count;
    int64_t next_seq;
    struct unsettled *unsettled; /* in the order of their times, where … */
    bool is_sorted;
    size_t unsettled_count;
    size_t unsettled_capacity;
    size_t unsettled_bytes;
    struct chronicle_status settled;
    struct wall_time settled_at;
    struct table *tellers; /* by their life and name */
    bool has_clocks;       /* one of them has told by a clock that differs */
};

static struct chronicle_entry copy_of(const struct chronicle_entry *entry) {
    struct chronicle_entry copy = *entry;
    copy.node = memory_duplicate_string(entry->node);
    for (int i = 0; i < copy.value_count; i++) {
        if (chronicle_field_type(copy.values[i].field) == CHRONICLE_TEXT_TYPE) {
            copy.values[i].text = memory_duplicate_string(entry->values[i].text);
        }
    }
    return copy;
}

static size_t size_of(const struct chronicle_entry *entry) {
    size_t size = sizeof(struct unsettled) + strlen(entry->node);
    for (int i = 0; i < entry->value_count; i++) {
        if (chronicle_field_type(entry->values[i].field) == CHRONICLE_TEXT_TYPE) {
            size += strlen(entry->values[i].text);
        }
    }
    return size;
}

struct job_chronicle *job_chronicle_new(void) {
    struct job_chronicle *job = memory_allocate(sizeof *job);
    job->tellers = table_new(free);
    return job;
}

void job_chronicle_free(struct job_chronicle *job) {
    if (job == NULL) {
        return;
    }
    for (size_t i = 0; i < job->count; i++) {
        chronicle_entry_clear(&job->ring[(job->first + i) % JOB_CHRONICLE_ENTRIES_MAXIMUM]);
    }
    for (size_t i = 0; i < job->unsettled_count; i++) {
        chronicle_entry_clear(&job->unsettled[i].entry);
    }
    chronicle_status_clear(&job->settled);
    table_free(job->tellers);
    free(job->unsettled);
    free(job->ring);
    free(job);
}

/* NULL: there are too many. */
static struct teller *teller_of(
    struct job_chronicle *job, const char *node, struct wall_time life) {
    char *name = text_format("%lld %s", (long long)life.nanoseconds, node);
    struct slice key = slice_from_string(name);
    struct teller *teller = table_get(job->tellers, key);
    if (teller == NULL && table_count(job->tellers) < TELLERS_MAXIMUM) {
        teller = memory_allocate(sizeof *teller);
        teller->clock_offset = (struct duration){INT64_MIN};
        (void)table_put(job->tellers, key, teller);
    }
    free(name);
    return teller;
}

/* Whether the agent has not told this number yet. */
static bool is_new(
    struct job_chronicle *job, const char *node, struct wall_time life, int64_t seq) {
    struct teller *teller = teller_of(job, node, life);
    bool is_new = teller != NULL && seq > teller->last_seq;
    if (is_new) {
        teller->last_seq = seq;
    }
    return is_new;
}

static bool differs(struct duration offset) {
    return offset.nanoseconds > NANOSECONDS_PER_SECOND ||
           offset.nanoseconds < -NANOSECONDS_PER_SECOND;
}

void job_chronicle_note_clock(
    struct job_chronicle *job, const char *node, struct wall_time life, struct duration offset) {
    struct teller *teller = teller_of(job, node, life);
    if (teller != NULL && offset.nanoseconds > teller->clock_offset.nanoseconds) {
        teller->clock_offset = offset; /* that of the telling that took the least time */
        job->has_clocks = job->has_clocks || differs(offset);
    }
}

/* Of several agents of one node the last one counts. */
static bool show_clock(void *context, struct slice key, void *value) {
    struct chronicle_status *status = context;
    const struct teller *teller = value;
    const char *name = memchr(key.data, ' ', key.length);
    char *node = text_format(
        "%.*s", (int)(key.length - (size_t)(name + 1 - (const char *)key.data)), name + 1);
    int place = chronicle_status_find(status, node);
    int64_t offset = teller->clock_offset.nanoseconds;
    free(node);
    if (place >= 0 && offset != INT64_MIN) {
        status->nodes[place].clock_offset.nanoseconds = differs(teller->clock_offset) ? offset : 0;
    }
    return true;
}

static void keep(struct job_chronicle *job, const struct chronicle_entry *entry) {
    if (job->ring == NULL) {
        job->ring = memory_allocate(JOB_CHRONICLE_ENTRIES_MAXIMUM * sizeof *job->ring);
    }
    if (job->count == JOB_CHRONICLE_ENTRIES_MAXIMUM) {
        chronicle_entry_clear(&job->ring[job->first]);
        job->first = (job->first + 1) % JOB_CHRONICLE_ENTRIES_MAXIMUM;
        job->count--;
    }
    job->ring[(job->first + job->count++) % JOB_CHRONICLE_ENTRIES_MAXIMUM] = copy_of(entry);
}

static void await(
    struct job_chronicle *job, const struct chronicle_entry *entry, struct wall_time now) {
    job->unsettled = memory_reserve(
        job->unsettled, &job->unsettled_capacity, job->unsettled_count + 1, sizeof *job->unsettled);
    job->unsettled[job->unsettled_count++] = (struct unsettled){copy_of(entry), now};
    job->unsettled_bytes += size_of(entry);
    job->is_sorted = false;
}

static bool is_above(const struct job_chronicle *job, size_t count, size_t bytes) {
    return job->unsettled_count > count || job->unsettled_bytes > bytes;
}

static bool is_full(const struct job_chronicle *job) {
    return is_above(job, UNSETTLED_MAXIMUM, UNSETTLED_BYTES_MAXIMUM);
}

static int compare(const void *left, const void *right) {
    const struct chronicle_entry *one = &((const struct unsettled *)left)->entry;
    const struct chronicle_entry *other = &((const struct unsettled *)right)->entry;
    int64_t difference = one->time.nanoseconds - other->time.nanoseconds;
    difference = difference != 0 ? difference : one->seq - other->seq;
    return (difference > 0) - (difference < 0);
}

static void sort(struct job_chronicle *job) {
    if (!job->is_sorted && job->unsettled_count > 1) {
        qsort(job->unsettled, job->unsettled_count, sizeof *job->unsettled, compare);
    }
    job->is_sorted = true;
}

/* Nothing is settled that is later than what has just come. */
static int64_t settled_until(const struct job_chronicle *job, struct wall_time now) {
    int64_t recently = now.nanoseconds - SETTLED_AFTER_SECONDS * (int64_t)NANOSECONDS_PER_SECOND;
    int64_t until = recently;
    for (size_t i = 0; i < job->unsettled_count; i++) {
        const struct unsettled *unsettled = &job->unsettled[i];
        if (unsettled->came.nanoseconds > recently && unsettled->entry.time.nanoseconds <= until) {
            until = unsettled->entry.time.nanoseconds - 1;
        }
    }
    return until;
}

static void settle(struct job_chronicle *job, struct wall_time now) {
    int64_t until = settled_until(job, now);
    sort(job);
    job->settled_at = now;
    size_t done = 0;
    bool was_full = is_full(job);
    while (job->unsettled_count > 0 &&
           (job->unsettled[done].entry.time.nanoseconds <= until ||
               (was_full &&
                   is_above(job, UNSETTLED_MAXIMUM - UNSETTLED_MAXIMUM / UNSETTLED_SLACK,
                       UNSETTLED_BYTES_MAXIMUM - UNSETTLED_BYTES_MAXIMUM / UNSETTLED_SLACK)))) {
        struct chronicle_entry *entry = &job->unsettled[done++].entry;
        chronicle_status_take(&job->settled, entry);
        job->unsettled_bytes -= size_of(entry);
        chronicle_entry_clear(entry);
        job->unsettled_count--;
    }
    if (job->unsettled_count == 0) {
        free(job->unsettled);
        job->unsettled = NULL;
        job->unsettled_capacity = 0;
    } else if (done > 0) {
        memmove(
            job->unsettled, job->unsettled + done, job->unsettled_count * sizeof *job->unsettled);
    }
}

bool job_chronicle_take(struct job_chronicle *job, const char *node, struct wall_time life,
    const struct chronicle_entry *entry, struct wall_time now) {
    if (entry->node == NULL || !is_new(job, node, life, entry->seq)) {
        return false;
    }
    struct chronicle_entry numbered = *entry; /* borrows its texts */
    numbered.seq = ++job->next_seq;
    keep(job, &numbered);
    await(job, &numbered, now);
    if (now.nanoseconds - job->settled_at.nanoseconds >= NANOSECONDS_PER_SECOND || is_full(job)) {
        settle(job, now);
    }
    return true;
}

void job_chronicle_inherit(struct job_chronicle *job, const struct chronicle_past *past) {
    if (!job->settled.has_begun && past->until.nanoseconds > 0) {
        chronicle_past_join(&job->settled.past, past);
    }
}

void job_chronicle_write_past(
    struct job_chronicle *job, struct wall_time now, struct chronicle_past *out_past) {
    settle(job, now);
    chronicle_status_write_past(&job->settled, out_past);
}

void job_chronicle_note_change(struct job_chronicle *job, struct wall_time now) {
    job->settled.host_changed = now;
}

void job_chronicle_each_after(const struct job_chronicle *job, int64_t after,
    void (*take)(void *context, const struct chronicle_entry *entry), void *context) {
    int64_t oldest = job->next_seq - (int64_t)job->count; /* the number before it */
    for (int64_t seq = after > oldest ? after : oldest; seq < job->next_seq; seq++) {
        size_t index = (job->first + (size_t)(seq - oldest)) % JOB_CHRONICLE_ENTRIES_MAXIMUM;
        take(context, &job->ring[index]);
    }
}

void job_chronicle_write_status(
    struct job_chronicle *job, struct wall_time now, struct chronicle_status *out_status) {
    settle(job, now);
    chronicle_status_copy(&job->settled, out_status);
    for (size_t i = 0; i < job->unsettled_count; i++) {
        chronicle_status_take(out_status, &job->unsettled[i].entry);
    }
    chronicle_status_advance(out_status, now);
    if (job->has_clocks) {
        table_each(job->tellers, show_clock, out_status);
    }
}

void job_chronicle_see_settled(struct job_chronicle *job, struct wall_time now,
    void (*take)(void *context, const struct chronicle_status *status), void *context) {
    settle(job, now);
    struct wall_time until = {settled_until(job, now)};
    const struct wall_time past = job->settled.past.until;
    bool reaches_past = past.nanoseconds != 0 && until.nanoseconds >= past.nanoseconds;
    struct chronicle_status status = job->settled; /* borrows, unless the past is taken over */
    if (reaches_past) {
        chronicle_status_copy(&job->settled, &status);
    }
    if (status.has_begun || reaches_past) {
        chronicle_status_advance(&status, until);
    }
    take(context, &status);
    if (reaches_past) {
        chronicle_status_clear(&status);
    }
}
