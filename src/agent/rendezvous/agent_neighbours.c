/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_neighbours.h"

#include <stdlib.h>

#include "base/keyed_hash.h"
#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/rendezvous/rendezvous_waiting.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"
#include "wire/rendezvous/waiting_list.h"

/* A GET of what is not there would wait. A COMPARE_SET of what no key has reads as well: a store
 * answers with the value that is there, or with this one. */
#define NO_VALUE "?"

struct agent_neighbours {
    struct event_loop *loop;
    struct event_timer *timer; /* ends the rest between the two readings */
    struct rendezvous_backend *backend;
    struct agent_neighbours_settings settings;
    struct text key;          /* of the list */
    struct text_list run_ids; /* the other jobs that are looked at, … */
    size_t asked;             /* … so many of them so far */
    /* Of the first reading: the record of each in short, or 0 where it does not wait. */
    uint64_t prints[AGENT_NEIGHBOURS_MAXIMUM];
    bool is_looking;
    bool is_resting; /* between the two readings of a look */
    bool is_second;
    bool is_over; /* the look goes on to no end */
};

static void read_again(void *context);

struct agent_neighbours *agent_neighbours_new(struct event_loop *loop,
    struct rendezvous_backend *backend, const struct agent_neighbours_settings *settings) {
    struct agent_neighbours *neighbours = memory_allocate(sizeof *neighbours);
    *neighbours =
        (struct agent_neighbours){.loop = loop, .backend = backend, .settings = *settings};
    neighbours->timer = event_timer_new(loop, read_again, neighbours);
    rendezvous_key_write_waiting(&neighbours->key);
    return neighbours;
}

void agent_neighbours_free(struct agent_neighbours *neighbours) {
    if (neighbours != NULL) {
        event_timer_free(neighbours->timer);
        text_list_clear(&neighbours->run_ids);
        text_clear(&neighbours->key);
        free(neighbours);
    }
}

static bool ask(struct agent_neighbours *neighbours, const struct text *key, struct slice expected,
    struct slice value, void (*answered)(void *context, const struct store_client_result *result)) {
    struct store_client_call call = {
        .request = {.operation = STORE_COMPARE_SET,
            .key = slice_from_string(text_string(key)),
            .expected = expected,
            .value = value},
        .is_raw = true,
        .timeout = neighbours->settings.answer_timeout,
        .done = answered,
        .context = neighbours,
    };
    return rendezvous_backend_ask(neighbours->backend, &call);
}

static bool read_key(struct agent_neighbours *neighbours, const struct text *key,
    void (*answered)(void *context, const struct store_client_result *result)) {
    return ask(neighbours, key, slice_from_string(NO_VALUE), slice_from_string(NO_VALUE), answered);
}

static struct slice value_of(const struct store_client_result *result) {
    bool is_there = !slice_equals(result->reply->blob, slice_from_string(NO_VALUE));
    return is_there ? result->reply->blob : (struct slice){0};
}

/* The records of the others, one after the other, and twice. */

static void record_read(void *context, const struct store_client_result *result);

/* Returns false when none is left, or the connection is lost. */
static bool read_next(struct agent_neighbours *neighbours) {
    bool is_asked = false;
    while (neighbours->is_second && neighbours->asked < neighbours->run_ids.count &&
           neighbours->prints[neighbours->asked] == 0) {
        neighbours->asked++;
    }
    if (neighbours->asked < neighbours->run_ids.count) {
        struct text key = {0};
        rendezvous_key_write_record(neighbours->run_ids.items[neighbours->asked++], &key);
        is_asked = read_key(neighbours, &key, record_read);
        text_clear(&key);
    }
    return is_asked;
}

static bool has_found_any(const struct agent_neighbours *neighbours) {
    for (size_t i = 0; i < neighbours->asked; i++) {
        if (neighbours->prints[i] != 0) {
            return true;
        }
    }
    return false;
}

static void go_on(struct agent_neighbours *neighbours) {
    if (neighbours->is_over) {
        neighbours->is_looking = false;
        return;
    }
    if (read_next(neighbours)) {
        return;
    }
    neighbours->is_resting = !neighbours->is_second && has_found_any(neighbours);
    neighbours->is_looking = neighbours->is_resting;
    if (neighbours->is_resting) {
        event_timer_set(neighbours->timer,
            instant_after(event_loop_now(neighbours->loop), neighbours->settings.rest));
    }
}

static void read_again(void *context) {
    struct agent_neighbours *neighbours = context;
    neighbours->is_resting = false;
    neighbours->is_second = true;
    neighbours->asked = 0;
    go_on(neighbours);
}

/* Appends what there is to say of a job that waits. A record that makes no sense is its own job's
 * business. */
static bool describe(const struct agent_neighbours *neighbours, const char *theirs,
    struct slice record, struct text *out_line) {
    struct rendezvous_state state = {0};
    struct text why = {0};
    bool is_absent = true;
    bool waits = rendezvous_state_read_text(record, &is_absent, &state, &why) == FAILURE_NONE &&
                 !is_absent &&
                 rendezvous_waiting_describe_neighbour(
                     &state, theirs, neighbours->settings.run_id, out_line);
    text_clear(&why);
    rendezvous_state_clear(&state);
    return waits;
}

/* Never 0. */
static uint64_t print_of(struct slice record) {
    static const uint64_t key[2];
    return keyed_hash(key, record) | 1;
}

/* Each job that lives writes the times of its nodes' last signs of life, so its record changes. */
static void judge(struct agent_neighbours *neighbours, struct slice record) {
    size_t place = neighbours->asked - 1;
    struct text line = {0};
    uint64_t print = describe(neighbours, neighbours->run_ids.items[place], record, &line)
                         ? print_of(record)
                         : 0;
    if (!neighbours->is_second) {
        neighbours->prints[place] = print;
    } else if (print != 0 && print != neighbours->prints[place] && !neighbours->is_over) {
        log_warning(neighbours->settings.log, "%s", text_string(&line));
    }
    text_clear(&line);
}

static void record_read(void *context, const struct store_client_result *result) {
    struct agent_neighbours *neighbours = context;
    if (result->code != FAILURE_NONE) {
        neighbours->is_looking = false;
        return;
    }
    judge(neighbours, value_of(result));
    go_on(neighbours);
}

/* The list. Where another agent writes at the same time, the next look makes up for it. */

static void add_own(struct agent_neighbours *neighbours, struct slice list) {
    struct text longer = {0};
    if (waiting_list_add(list, neighbours->settings.run_id, &longer)) {
        struct slice value = {(const uint8_t *)longer.data, longer.length};
        (void)ask(neighbours, &neighbours->key, list, value, NULL);
    }
    text_clear(&longer);
}

static void list_read(void *context, const struct store_client_result *result) {
    struct agent_neighbours *neighbours = context;
    if (result->code != FAILURE_NONE) {
        neighbours->is_looking = false;
        return;
    }
    text_list_clear(&neighbours->run_ids);
    neighbours->asked = 0;
    neighbours->is_second = false;
    waiting_list_read(value_of(result), neighbours->settings.run_id, AGENT_NEIGHBOURS_MAXIMUM,
        &neighbours->run_ids);
    add_own(neighbours, value_of(result));
    go_on(neighbours);
}

void agent_neighbours_look(struct agent_neighbours *neighbours) {
    if (neighbours != NULL && !neighbours->is_looking) {
        neighbours->is_over = false;
        neighbours->is_looking = read_key(neighbours, &neighbours->key, list_read);
    }
}

void agent_neighbours_stop(struct agent_neighbours *neighbours) {
    if (neighbours == NULL) {
        return;
    }
    neighbours->is_over = true;
    if (neighbours->is_resting) {
        event_timer_stop(neighbours->timer);
        neighbours->is_resting = false;
        neighbours->is_looking = false;
    }
}

bool agent_neighbours_is_looking(const struct agent_neighbours *neighbours) {
    return neighbours->is_looking;
}
