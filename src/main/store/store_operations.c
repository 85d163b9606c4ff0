/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"
#include "main/exit_status.h"
#include "main/store/store_print.h"
#include "main/store/store_session.h"

/* The maximum size of a value read from stdin. By default servers accept much smaller values
 * only. */
#define STDIN_CEILING ((size_t)1 << 30)

static const char *text_option(const struct option_result *options, const char *name) {
    return option_result_value(options, name)->text;
}

static bool is_raw(const struct option_result *options) {
    return option_result_value(options, "raw")->flag;
}

static struct muster_slice slice_of_text(const char *text) {
    return (struct muster_slice){text, strlen(text)};
}

/* A question about one key, which the option "key" names. */
static struct store_session_question about_key(
    const struct option_result *options, enum muster_store_operation operation) {
    return (struct store_session_question){
        .request = {
            .operation = operation, .key = text_option(options, "key"), .is_raw = is_raw(options)}};
}

static int status_of(bool is_done) {
    return is_done ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Reads all of stdin into `out_bytes`. Prints the reason on failure. */
static bool read_stdin(struct bytes *out_bytes) {
    uint8_t chunk[16384];
    size_t length;
    bytes_init(out_bytes, STDIN_CEILING);
    while ((length = fread(chunk, 1, sizeof chunk, stdin)) > 0) {
        if (bytes_append(out_bytes, chunk, length) != FAILURE_NONE) {
            fputs("muster store: error: stdin is longer than 1 GiB\n", stderr);
            return false;
        }
    }
    if (ferror(stdin)) {
        fputs("muster store: error: cannot read stdin\n", stderr);
        return false;
    }
    return true;
}

/* Sends a value that was given as an argument, or on stdin when the argument is "-". */
static int send_value(struct store_session *session, enum muster_store_operation operation,
    const char *key, const char *value, bool key_is_raw) {
    struct store_session_question question = {
        .request = {.operation = operation, .key = key, .is_raw = key_is_raw}};
    struct bytes input = {0};
    bool is_ready = true;
    if (text_equals(value, "-")) {
        is_ready = read_stdin(&input);
        question.request.value = (struct muster_slice){input.data, input.length};
    } else {
        question.request.value = slice_of_text(value);
    }
    bool is_done = is_ready && store_session_ask(session, &question);
    bytes_clear(&input);
    return status_of(is_done);
}

/* Sends several pairs in one request; all of them are set, or none. */
static bool set_several(
    struct store_session *session, const struct text_list *pairs, bool keys_are_raw) {
    size_t count = pairs->count / 2;
    const char **keys = memory_allocate(count * sizeof *keys);
    struct muster_slice *values = memory_allocate(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        keys[i] = pairs->items[2 * i];
        values[i] = slice_of_text(pairs->items[2 * i + 1]);
    }
    bool is_done = store_session_ask(
        session, &(struct store_session_question){.request = {.operation = MUSTER_STORE_MULTI_SET,
                                                      .keys = keys,
                                                      .values = values,
                                                      .count = count,
                                                      .is_raw = keys_are_raw}});
    free(values);
    free(keys);
    return is_done;
}

int store_run_set(struct store_session *session, const struct option_result *options) {
    const struct text_list *pairs = &option_result_value(options, "pairs")->list;
    if (pairs->count % 2 != 0) {
        fputs("muster store set: error: the last key has no value\n", stderr);
        return EXIT_STATUS_USAGE;
    }
    if (pairs->count == 2) {
        return send_value(
            session, MUSTER_STORE_SET, pairs->items[0], pairs->items[1], is_raw(options));
    }
    return status_of(set_several(session, pairs, is_raw(options)));
}

int store_run_append(struct store_session *session, const struct option_result *options) {
    return send_value(session, MUSTER_STORE_APPEND, text_option(options, "key"),
        text_option(options, "value"), is_raw(options));
}

int store_run_push(struct store_session *session, const struct option_result *options) {
    return send_value(session, MUSTER_STORE_QUEUE_PUSH, text_option(options, "key"),
        text_option(options, "value"), is_raw(options));
}

static void print_integer(void *context, const struct muster_store_result *result) {
    (void)context;
    printf("%lld\n", (long long)result->number);
}

static void keep_integer(void *context, const struct muster_store_result *result) {
    *(int64_t *)context = result->number;
}

int store_run_add(struct store_session *session, const struct option_result *options) {
    struct store_session_question question = about_key(options, MUSTER_STORE_ADD);
    question.request.number = option_result_value(options, "number")->integer;
    question.take = print_integer;
    return status_of(store_session_ask(session, &question));
}

int store_run_count(struct store_session *session, const struct option_result *options) {
    (void)options;
    return status_of(store_session_ask(
        session, &(struct store_session_question){
                     .request = {.operation = MUSTER_STORE_NUM_KEYS}, .take = print_integer}));
}

int store_run_len(struct store_session *session, const struct option_result *options) {
    struct store_session_question question = about_key(options, MUSTER_STORE_QUEUE_LEN);
    question.take = print_integer;
    return status_of(store_session_ask(session, &question));
}

int store_run_delete(struct store_session *session, const struct option_result *options) {
    int64_t deleted = 0;
    struct store_session_question question = about_key(options, MUSTER_STORE_DELETE_KEY);
    question.take = keep_integer;
    question.context = &deleted;
    if (!store_session_ask(session, &question)) {
        return EXIT_FAILURE;
    }
    return status_of(deleted > 0);
}

static void print_pop(void *context, const struct muster_store_result *result) {
    *(int64_t *)context = result->number;
    store_print_exact(result->value);
}

int store_run_pop(struct store_session *session, const struct option_result *options) {
    int64_t length = 0;
    struct store_session_question question = about_key(options, MUSTER_STORE_QUEUE_POP);
    question.request.number = option_result_value(options, "wait")->flag;
    question.take = print_pop;
    question.context = &length;
    if (!store_session_ask(session, &question)) {
        return EXIT_FAILURE;
    }
    if (length <= 0) {
        fputs("muster store pop: error: the queue is empty\n", stderr);
    }
    return status_of(length > 0);
}

int store_run_barrier(struct store_session *session, const struct option_result *options) {
    struct store_session_question question = about_key(options, MUSTER_STORE_BARRIER);
    question.request.number = option_result_value(options, "number")->integer;
    return status_of(store_session_ask(session, &question));
}

int store_run_ping(struct store_session *session, const struct option_result *options) {
    (void)options;
    return status_of(store_session_ask(
        session, &(struct store_session_question){.request = {.operation = MUSTER_STORE_PING}}));
}

/* A question about the keys of the option "keys", which are borrowed. */
static struct store_session_question about_keys(
    const struct option_result *options, enum muster_store_operation operation) {
    const struct text_list *names = &option_result_value(options, "keys")->list;
    return (struct store_session_question){.request = {.operation = operation,
                                               .keys = (const char *const *)names->items,
                                               .count = names->count,
                                               .is_raw = is_raw(options)}};
}

int store_run_wait(struct store_session *session, const struct option_result *options) {
    const struct store_session_question question = about_keys(options, MUSTER_STORE_WAIT);
    return status_of(store_session_ask(session, &question));
}

int store_run_check(struct store_session *session, const struct option_result *options) {
    const struct store_session_question question = about_keys(options, MUSTER_STORE_CHECK);
    return status_of(store_session_ask_whether(session, &question) == 1);
}

static void print_values(void *context, const struct muster_store_result *result) {
    const struct muster_store_request *request = context;
    if (request->operation == MUSTER_STORE_GET) {
        store_print_exact(result->value);
        return;
    }
    for (size_t i = 0; i < result->count; i++) {
        store_print_line(result->values[i]);
    }
}

/* First asks whether the keys exist, because a GET waits until they do. */
int store_run_get(struct store_session *session, const struct option_result *options) {
    const struct store_session_question check = about_keys(options, MUSTER_STORE_CHECK);
    int presence = store_session_ask_whether(session, &check);
    if (presence != 1) {
        if (presence == 0) {
            fputs("muster store get: error: no such key\n", stderr);
        }
        return EXIT_FAILURE;
    }
    struct store_session_question question = about_keys(options, MUSTER_STORE_MULTI_GET);
    question.take = print_values;
    question.context = &question.request;
    if (question.request.count == 1) {
        question.request.operation = MUSTER_STORE_GET;
        question.request.key = question.request.keys[0];
    }
    return status_of(store_session_ask(session, &question));
}

/* The value that a compare-and-set left in the store, and the value that it should set. */
struct comparison {
    struct slice desired;
    bool is_desired;
};

static void print_comparison(void *context, const struct muster_store_result *result) {
    struct comparison *comparison = context;
    struct slice value = {result->value.data, result->value.length};
    comparison->is_desired = slice_equals(value, comparison->desired);
    store_print_exact(result->value);
}

int store_run_compare_set(struct store_session *session, const struct option_result *options) {
    struct store_session_question question = about_key(options, MUSTER_STORE_COMPARE_SET);
    struct comparison comparison = {.desired = slice_from_string(text_option(options, "desired"))};
    question.request.expected = slice_of_text(text_option(options, "expected"));
    question.request.value = slice_of_text(text_option(options, "desired"));
    question.take = print_comparison;
    question.context = &comparison;
    return status_of(store_session_ask(session, &question) && comparison.is_desired);
}

/* Selects the keys to show, and how to show them. */
struct key_filter {
    struct slice prefix;
    bool shows_raw;
};

static void print_keys(void *context, const struct muster_store_result *result) {
    const struct key_filter *filter = context;
    for (size_t i = 0; i < result->count; i++) {
        struct slice key = {result->values[i].data, result->values[i].length};
        if (!filter->shows_raw) {
            if (key.length == 0 || key.data[0] != '/') {
                continue; /* skip the store's own keys, such as "init/", as upstream's list_keys()
                             does */
            }
            key = (struct slice){key.data + 1, key.length - 1};
        }
        if (slice_starts_with(key, filter->prefix)) {
            store_print_line((struct muster_slice){key.data, key.length});
        }
    }
}

int store_run_keys(struct store_session *session, const struct option_result *options) {
    struct key_filter filter = {.shows_raw = is_raw(options)};
    const struct option_value *prefix = option_result_value(options, "prefix");
    if (prefix->is_set) {
        filter.prefix = slice_from_string(prefix->text);
    }
    return status_of(store_session_ask(
        session, &(struct store_session_question){.request = {.operation = MUSTER_STORE_LIST_KEYS},
                     .take = print_keys,
                     .context = &filter}));
}
