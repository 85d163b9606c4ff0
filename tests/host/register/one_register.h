/* SPDX-License-Identifier: BSD-3-Clause */
/* A job's register that is asked one thing after the other, and what it told last. */
#ifndef MUSTER_TESTS_HOST_REGISTER_ONE_REGISTER_H
#define MUSTER_TESTS_HOST_REGISTER_ONE_REGISTER_H

#include <fcntl.h>
#include <stdio.h>

#include "base/memory.h"
#include "host/register/http_client.h"
#include "host/register/register.h"
#include "temporary_place.h"

#define FAR 30000 /* milliseconds: what takes so long never comes */

struct one_register {
    struct event_loop *loop;
    struct job_register *job_register; /* NULL: it has not been opened */
    struct text_list conf;
    const char *run_id;
    const char *node_name;
    int64_t term;      /* of entries */
    bool frees_itself; /* when it tells */
    /* What it told. */
    uint64_t request;
    enum register_event_kind kind;
    int64_t number; /* of an entry; 0: none */
    bool is_final;
    struct text note;
    struct failure failure;
};

static inline void one_register_told(void *context, const struct register_event *event) {
    struct one_register *one = context;
    one->request = event->request;
    one->kind = event->kind;
    one->number = event->entry == NULL ? 0 : event->entry->number;
    one->is_final = event->is_final;
    text_clear(&one->note);
    text_append(&one->note, event->note == NULL ? "" : event->note);
    one->failure = event->failure == NULL ? (struct failure){0} : *event->failure;
    if (one->frees_itself) {
        register_free(one->job_register);
        one->job_register = NULL;
    }
    event_loop_stop(one->loop);
}

static inline void one_register_set_up(struct one_register *one) {
    *one = (struct one_register){.run_id = "job", .node_name = "node", .term = 1};
    assert_int_equal(event_loop_new(&one->loop, NULL), FAILURE_NONE);
}

static inline enum failure_code one_register_open(
    struct one_register *one, const char *engine, const char *endpoint) {
    const struct register_settings settings = {.endpoint = endpoint,
        .run_id = one->run_id,
        .node_name = one->node_name,
        .conf = &one->conf,
        .observer = {one_register_told, one}};
    register_free(one->job_register);
    one->job_register = NULL;
    one->failure = (struct failure){0};
    return register_open(
        one->loop, register_engine_named(engine), &settings, &one->job_register, &one->failure);
}

static inline void one_register_tear_down(struct one_register *one) {
    register_free(one->job_register);
    assert_true(event_loop_free(one->loop));
    text_list_clear(&one->conf);
    text_clear(&one->note);
}

static inline struct instant one_register_deadline(
    const struct one_register *one, int64_t milliseconds) {
    return instant_after(event_loop_now(one->loop), duration_from_milliseconds(milliseconds));
}

static inline void one_register_await(struct one_register *one, uint64_t request) {
    one->request = 0;
    event_loop_run(one->loop);
    assert_int_equal(one->request, request);
}

static inline void one_register_read(struct one_register *one, int64_t patience) {
    one_register_await(one, register_read(one->job_register, one_register_deadline(one, patience)));
}

/* Each entry has another nonce. */
static inline struct register_entry one_register_entry(
    const struct one_register *one, int64_t number) {
    static int made;
    struct register_entry entry = {.number = number,
        .kind = REGISTER_ENTRY_CLAIM,
        .term = one->term,
        .host = memory_duplicate_string("h"),
        .addresses = memory_duplicate_string(""),
        .settings = memory_duplicate_string("")};
    snprintf(entry.nonce, sizeof entry.nonce, "%032x", ++made);
    return entry;
}

static inline void one_register_append(struct one_register *one, int64_t number, int64_t patience) {
    struct register_entry entry = one_register_entry(one, number);
    one_register_await(
        one, register_append(one->job_register, &entry, one_register_deadline(one, patience)));
    register_entry_clear(&entry);
}

static inline void one_register_expect(
    struct one_register *one, enum register_event_kind kind, bool is_final, const char *words) {
    assert_int_equal(one->kind, kind);
    assert_int_equal(one->is_final, is_final);
    if (strstr(one->failure.message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", one->failure.message, words);
    }
}

/* A setting of --rdzv-endpoint and up to two of --rdzv-conf with which no register opens, and what
 * the user is told. */
struct refused_settings {
    const char *endpoint;
    const char *conf[2];
    const char *words;
};

static inline void one_register_expect_refused(
    struct one_register *one, const char *engine, const struct refused_settings *refused) {
    text_list_clear(&one->conf);
    for (size_t i = 0; i < 2 && refused->conf[i] != NULL; i++) {
        text_list_add(&one->conf, refused->conf[i]);
    }
    assert_int_not_equal(one_register_open(one, engine, refused->endpoint), FAILURE_NONE);
    if (strstr(one->failure.message, refused->words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", one->failure.message, refused->words);
    }
}

static inline void write_whole_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(close(fd), 0);
}

static inline bool has_curl(void) {
    struct curl_library library;
    return curl_library_load(CURL_LIBRARY_NAME, &library, NULL) == FAILURE_NONE;
}

#endif
