/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that has no memory left, by the kernel's limit, and again has some; and a store's
 * server with two clients in such a process's own loop. */
#ifndef MUSTER_TESTS_LIBRARY_MEMORY_FIXTURE_H
#define MUSTER_TESTS_LIBRARY_MEMORY_FIXTURE_H

#include "unit.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <muster/store.h>
#include <muster/store_server.h>

#include "library/process_look.h"

#define STACK_BYTES (1 << 20)

/* What is left, in KiB: from nothing to more than any of the tests needs. */
static const size_t steps[] = {
    0, 16, 64, 128, 256, 512, 1024, 1100, 1200, 1536, 2048, 3072, 4096, 8192, 16384, 32768, 65536};
#define STEPS (sizeof steps / sizeof *steps)

/* Taking all memory, and giving it back. */

struct filler {
    struct filler *next;
};

static struct filler *fillers;

static inline void limit_memory(rlim_t bytes) {
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

static inline size_t mapped_bytes(void) {
    char text[64] = {0};
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    return strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* The stack must not have to grow meanwhile. */
__attribute__((noinline, unused)) static void touch_stack(void) {
    volatile char stack[STACK_BYTES];
    for (size_t i = 0; i < sizeof stack; i += 1024) {
        stack[i] = 1;
    }
}

static inline void exhaust(size_t left) {
    touch_stack();
    limit_memory(mapped_bytes());
    for (size_t size = 1 << 20; size >= sizeof(struct filler); size /= 2) {
        struct filler *filler;
        while ((filler = malloc(size)) != NULL) {
            filler->next = fillers;
            fillers = filler;
        }
    }
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    limit_memory(limit.rlim_cur + left);
}

static inline void relieve(void) {
    limit_memory(RLIM_INFINITY);
    while (fillers != NULL) {
        struct filler *next = fillers->next;
        free(fillers);
        fillers = next;
    }
}

/* Meson has all memory written to, also what is only asked for. */
static inline void leave_memory_alone(void) {
#ifdef M_PERTURB
    (void)mallopt(M_PERTURB, 0);
#endif
}

/* In this process's own loop: a thread has an arena of its own, which the limit does not reach. */
struct loop {
    struct muster_store_server *server;
    struct muster_store *stores[2];
    enum muster_error error; /* of the last answer */
    int answers;
};

static inline void take_result(void *context, const struct muster_store_result *result) {
    struct loop *loop = context;
    loop->error = result->error;
    loop->answers++;
}

static inline void ask_and_wait(
    struct loop *loop, int number, const struct muster_store_request *request) {
    int expected = loop->answers + 1;
    if (muster_store_submit(loop->stores[number], request, take_result, loop, NULL) != MUSTER_OK) {
        loop->error = MUSTER_ERROR_MEMORY;
        return;
    }
    for (int turns = 0; turns < 10000 && loop->answers < expected; turns++) {
        (void)muster_store_server_process(loop->server, NULL);
        (void)muster_store_process(loop->stores[number], NULL);
    }
}

static inline void open_loop(struct loop *loop) {
    struct muster_store_server_settings settings = MUSTER_STORE_SERVER_SETTINGS;
    struct muster_tcp_store_settings client = MUSTER_TCP_STORE_SETTINGS;
    const struct muster_store_request ping = MUSTER_STORE_REQUEST;
    *loop = (struct loop){0};
    settings.host = "127.0.0.1";
    settings.is_polled = 1;
    assert_int_equal(muster_store_server_new(&settings, &loop->server, NULL), MUSTER_OK);
    client.host = "127.0.0.1";
    client.port = muster_store_server_port(loop->server);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(muster_store_new_tcp(&client, &loop->stores[i], NULL), MUSTER_OK);
        ask_and_wait(loop, i, &ping);
        assert_int_equal(loop->error, MUSTER_OK);
    }
}

static inline void close_loop(struct loop *loop) {
    muster_store_free(loop->stores[0]);
    muster_store_free(loop->stores[1]);
    muster_store_server_free(loop->server);
}

#define FILL_MAXIMUM 110000

/* Sets keys of numbers with one request, for which it takes no memory itself. */
static inline void fill(struct loop *loop, int first, int count) {
    static const char *keys[FILL_MAXIMUM];
    static struct muster_slice values[FILL_MAXIMUM];
    static char names[FILL_MAXIMUM][12];
    struct muster_store_request set = MUSTER_STORE_REQUEST;
    const struct muster_store_request ping = MUSTER_STORE_REQUEST;
    assert_true(count <= FILL_MAXIMUM);
    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%d", first + i);
        keys[i] = names[i];
    }
    set.operation = MUSTER_STORE_MULTI_SET;
    set.keys = keys;
    set.values = values;
    set.count = (size_t)count;
    ask_and_wait(loop, 0, &set);
    ask_and_wait(loop, 0, &ping); /* which is answered when all of them are there */
    assert_int_equal(loop->error, MUSTER_OK);
}

#endif
