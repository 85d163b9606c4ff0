/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_neighbours.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/rendezvous/rendezvous_waiting.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"
#include "wire/rendezvous/waiting_list.h"

/* A GET of what is not there would wait. A COMPARE_SET of what no key has reads as well: a store
 * answers with the value that is there, or with this one. */
#define NO_VALUE "?"

struct agent_neighbours {
    struct rendezvous_backend *backend;
    struct agent_neighbours_settings settings;
    struct text key;          /* of the list */
    struct text_list run_ids; /* the other jobs that are looked at, … */
    size_t asked;             /* … so many of them so far */
    bool is_looking;
};

struct agent_neighbours *agent_neighbours_new(
    struct rendezvous_backend *backend, const struct agent_neighbours_settings *settings) {
    struct agent_neighbours initial = {.backend = backend, .settings = *settings};
    rendezvous_key_write_waiting(&initial.key);
    return memory_duplicate(&initial, sizeof initial);
}

void agent_neighbours_free(struct agent_neighbours *neighbours) {
    if (neighbours != NULL) {
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

/* The records of the others, one after the other. */

static void record_read(void *context, const struct store_client_result *result);

static void read_next(struct agent_neighbours *neighbours) {
    struct text key = {0};
    neighbours->is_looking = neighbours->asked < neighbours->run_ids.count;
    if (neighbours->is_looking) {
        rendezvous_key_write_record(neighbours->run_ids.items[neighbours->asked++], &key);
        neighbours->is_looking = read_key(neighbours, &key, record_read);
    }
    text_clear(&key);
}

/* A record that makes no sense is its own job's business. */
static void tell(struct agent_neighbours *neighbours, struct slice text) {
    const char *theirs = neighbours->run_ids.items[neighbours->asked - 1];
    struct rendezvous_state state = {0};
    struct text why = {0};
    struct text line = {0};
    bool is_absent = true;
    if (rendezvous_state_read_text(text, &is_absent, &state, &why) == FAILURE_NONE && !is_absent &&
        rendezvous_waiting_describe_neighbour(&state, theirs, neighbours->settings.run_id, &line)) {
        log_warning(neighbours->settings.log, "%s", text_string(&line));
    }
    text_clear(&line);
    text_clear(&why);
    rendezvous_state_clear(&state);
}

static void record_read(void *context, const struct store_client_result *result) {
    struct agent_neighbours *neighbours = context;
    if (result->code != FAILURE_NONE) {
        neighbours->is_looking = false;
        return;
    }
    tell(neighbours, value_of(result));
    read_next(neighbours);
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
    waiting_list_read(value_of(result), neighbours->settings.run_id, AGENT_NEIGHBOURS_MAXIMUM,
        &neighbours->run_ids);
    add_own(neighbours, value_of(result));
    read_next(neighbours);
}

void agent_neighbours_look(struct agent_neighbours *neighbours) {
    if (neighbours != NULL && !neighbours->is_looking) {
        neighbours->is_looking = read_key(neighbours, &neighbours->key, list_read);
    }
}
