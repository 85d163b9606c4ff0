/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_operations.h"

#include <stdio.h>
#include <stdlib.h>

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

/* A question about one key, which the option "key" names. */
static struct store_session_question about_key(
    const struct option_result *options, enum store_operation operation) {
    return (struct store_session_question){
        .request = {.operation = operation, .key = slice_from_string(text_option(options, "key"))},
        .is_raw = is_raw(options)};
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
static int send_value(struct store_session *session, enum store_operation operation,
    const char *key, const char *value, bool key_is_raw) {
    struct store_session_question question = {
        .request = {.operation = operation, .key = slice_from_string(key)}, .is_raw = key_is_raw};
    struct bytes input = {0};
    bool is_ready = true;
    if (text_equals(value, "-")) {
        is_ready = read_stdin(&input);
        question.request.value = bytes_slice(&input);
    } else {
        question.request.value = slice_from_string(value);
    }
    bool is_done = is_ready && store_session_ask(session, &question);
    bytes_clear(&input);
    return status_of(is_done);
}

/* Sends several pairs in one request; all of them are set, or none. */
static bool set_several(
    struct store_session *session, const struct text_list *pairs, bool keys_are_raw) {
    size_t count = pairs->count / 2;
    struct slice *blobs = memory_allocate(pairs->count * sizeof *blobs);
    for (size_t i = 0; i < count; i++) {
        blobs[i] = slice_from_string(pairs->items[2 * i]);
        blobs[count + i] = slice_from_string(pairs->items[2 * i + 1]);
    }
    bool is_done = store_session_ask(
        session, &(struct store_session_question){.request = {.operation = STORE_MULTI_SET,
                                                      .keys = blobs,
                                                      .values = blobs + count,
                                                      .count = count},
                     .is_raw = keys_are_raw});
    free(blobs);
    return is_done;
}

int store_run_set(struct store_session *session, const struct option_result *options) {
    const struct text_list *pairs = &option_result_value(options, "pairs")->list;
    if (pairs->count % 2 != 0) {
        fputs("muster store set: error: the last key has no value\n", stderr);
        return EXIT_STATUS_USAGE;
    }
    if (pairs->count == 2) {
        return send_value(session, STORE_SET, pairs->items[0], pairs->items[1], is_raw(options));
    }
    return status_of(set_several(session, pairs, is_raw(options)));
}

int store_run_append(struct store_session *session, const struct option_result *options) {
    return send_value(session, STORE_APPEND, text_option(options, "key"),
        text_option(options, "value"), is_raw(options));
}

int store_run_push(struct store_session *session, const struct option_result *options) {
    return send_value(session, STORE_QUEUE_PUSH, text_option(options, "key"),
        text_option(options, "value"), is_raw(options));
}

static void print_integer(void *context, const struct store_reply *reply) {
    (void)context;
    printf("%lld\n", (long long)reply->integer);
}

static void keep_integer(void *context, const struct store_reply *reply) {
    *(int64_t *)context = reply->integer;
}

int store_run_add(struct store_session *session, const struct option_result *options) {
    struct store_session_question question = about_key(options, STORE_ADD);
    question.request.number = option_result_value(options, "number")->integer;
    question.take = print_integer;
    return status_of(store_session_ask(session, &question));
}

int store_run_count(struct store_session *session, const struct option_result *options) {
    (void)options;
    return status_of(store_session_ask(
        session, &(struct store_session_question){
                     .request = {.operation = STORE_COUNT_KEYS}, .take = print_integer}));
}

int store_run_len(struct store_session *session, const struct option_result *options) {
    struct store_session_question question = about_key(options, STORE_QUEUE_LENGTH);
    question.take = print_integer;
    return status_of(store_session_ask(session, &question));
}

int store_run_delete(struct store_session *session, const struct option_result *options) {
    int64_t deleted = 0;
    struct store_session_question question = about_key(options, STORE_DELETE);
    question.take = keep_integer;
    question.context = &deleted;
    if (!store_session_ask(session, &question)) {
        return EXIT_FAILURE;
    }
    return status_of(deleted > 0);
}

static void print_pop(void *context, const struct store_reply *reply) {
    *(int64_t *)context = reply->pop.length;
    store_print_exact(reply->pop.front);
}

int store_run_pop(struct store_session *session, const struct option_result *options) {
    int64_t length = 0;
    struct store_session_question question = about_key(options, STORE_QUEUE_POP);
    question.waits_first = option_result_value(options, "wait")->flag;
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
    struct store_session_question question = about_key(options, STORE_BARRIER);
    question.request.number = option_result_value(options, "number")->integer;
    return status_of(store_session_ask_byte(session, &question) == STORE_STOP_WAITING);
}

int store_run_ping(struct store_session *session, const struct option_result *options) {
    (void)options;
    return status_of(store_session_ask(
        session, &(struct store_session_question){.request = {.operation = STORE_PING}}));
}

/* The keys of the option "keys"; the caller frees the array. */
static struct slice *list_keys(const struct option_result *options, size_t *out_count) {
    const struct text_list *names = &option_result_value(options, "keys")->list;
    struct slice *keys = memory_allocate(names->count * sizeof *keys);
    for (size_t i = 0; i < names->count; i++) {
        keys[i] = slice_from_string(names->items[i]);
    }
    *out_count = names->count;
    return keys;
}

static int ask_about_keys(struct store_session *session, const struct option_result *options,
    enum store_operation operation) {
    size_t count;
    struct slice *keys = list_keys(options, &count);
    int byte = store_session_ask_byte(
        session, &(struct store_session_question){
                     .request = {.operation = operation, .keys = keys, .count = count},
                     .is_raw = is_raw(options)});
    free(keys);
    return byte;
}

int store_run_wait(struct store_session *session, const struct option_result *options) {
    return status_of(ask_about_keys(session, options, STORE_WAIT) == STORE_STOP_WAITING);
}

int store_run_check(struct store_session *session, const struct option_result *options) {
    return status_of(ask_about_keys(session, options, STORE_CHECK) == STORE_READY);
}

static void print_blobs(void *context, const struct store_reply *reply) {
    (void)context;
    if (reply->kind == STORE_REPLY_BLOB) {
        store_print_exact(reply->blob);
        return;
    }
    for (size_t i = 0; i < reply->list.count; i++) {
        store_print_line(reply->list.items[i]);
    }
}

/* First asks whether the keys exist, because servers answer differently when a key is missing. */
int store_run_get(struct store_session *session, const struct option_result *options) {
    int presence = ask_about_keys(session, options, STORE_CHECK);
    if (presence != STORE_READY) {
        if (presence == STORE_NOT_READY) {
            fputs("muster store get: error: no such key\n", stderr);
        }
        return EXIT_FAILURE;
    }
    size_t count;
    struct slice *keys = list_keys(options, &count);
    struct store_session_question question = {.is_raw = is_raw(options), .take = print_blobs};
    if (count == 1) {
        question.request = (struct store_request){.operation = STORE_GET, .key = keys[0]};
    } else {
        question.request =
            (struct store_request){.operation = STORE_MULTI_GET, .keys = keys, .count = count};
    }
    bool is_done = store_session_ask(session, &question);
    free(keys);
    return status_of(is_done);
}

/* The value that a compare-and-set left in the store, and the value that it should set. */
struct comparison {
    struct slice desired;
    bool is_desired;
};

static void print_comparison(void *context, const struct store_reply *reply) {
    struct comparison *comparison = context;
    comparison->is_desired = slice_equals(reply->blob, comparison->desired);
    store_print_exact(reply->blob);
}

int store_run_compare_set(struct store_session *session, const struct option_result *options) {
    struct store_session_question question = about_key(options, STORE_COMPARE_SET);
    struct comparison comparison = {.desired = slice_from_string(text_option(options, "desired"))};
    question.request.expected = slice_from_string(text_option(options, "expected"));
    question.request.value = comparison.desired;
    question.take = print_comparison;
    question.context = &comparison;
    return status_of(store_session_ask(session, &question) && comparison.is_desired);
}

/* Selects the keys to show, and how to show them. */
struct key_filter {
    struct slice prefix;
    bool shows_raw;
};

static void print_keys(void *context, const struct store_reply *reply) {
    const struct key_filter *filter = context;
    for (size_t i = 0; i < reply->list.count; i++) {
        struct slice key = reply->list.items[i];
        if (!filter->shows_raw) {
            if (key.length == 0 || key.data[0] != '/') {
                continue; /* skip the store's own keys, such as "init/", as upstream's list_keys()
                             does */
            }
            key = (struct slice){key.data + 1, key.length - 1};
        }
        if (slice_starts_with(key, filter->prefix)) {
            store_print_line(key);
        }
    }
}

int store_run_keys(struct store_session *session, const struct option_result *options) {
    struct key_filter filter = {.shows_raw = is_raw(options)};
    const struct option_value *prefix = option_result_value(options, "prefix");
    if (prefix->is_set) {
        filter.prefix = slice_from_string(prefix->text);
    }
    return status_of(store_session_ask(session,
        &(struct store_session_question){
            .request = {.operation = STORE_LIST_KEYS}, .take = print_keys, .context = &filter}));
}
