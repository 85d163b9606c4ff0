/* SPDX-License-Identifier: BSD-3-Clause */
/* Life and death of muster/rendezvous.h: made so often that whatever is left behind would be seen,
 * freed in every state, several in one process beside stores, and a fork while one lives. */
#include "unit.h"

#include <sys/wait.h>

#include <muster/store.h>

#include "library/process_look.h"
#include "library/rendezvous_fixture.h"

#define CYCLES 10000
#define WARM_CYCLES 1000
/* Less than a byte for each further cycle would be more than this. */
#define GROWTH_BYTES (1 << 20)

/* Freed in every state. */

static void process(struct seen *seen, int turns) {
    for (int i = 0; i < turns; i++) {
        assert_int_equal(muster_rendezvous_process(seen->rendezvous, NULL), MUSTER_OK);
    }
}

static void leave_new(struct fixture *fixture, struct seen *seen) {
    (void)fixture;
    (void)seen;
}

static void leave_joining(struct fixture *fixture, struct seen *seen) {
    ask(seen);
    process(seen, fixture->memory.gets % 3); /* not always equally far */
}

static void leave_complete(struct fixture *fixture, struct seen *seen) {
    const struct muster_rendezvous_info *info;
    (void)fixture;
    assert_int_equal(muster_rendezvous_next(seen->rendezvous, 0, &info, NULL), MUSTER_OK);
    assert_int_equal(info->world_size, 1);
}

static void leave_closed(struct fixture *fixture, struct seen *seen) {
    int is_closed = 0;
    leave_complete(fixture, seen);
    assert_int_equal(muster_rendezvous_set_closed(seen->rendezvous, NULL), MUSTER_OK);
    assert_int_equal(muster_rendezvous_is_closed(seen->rendezvous, &is_closed, NULL), MUSTER_OK);
    assert_int_equal(is_closed, 1);
}

static void leave_shut_down(struct fixture *fixture, struct seen *seen) {
    leave_complete(fixture, seen);
    assert_int_equal(muster_rendezvous_shutdown(seen->rendezvous, NULL), MUSTER_OK);
}

static void leave_failed(struct fixture *fixture, struct seen *seen) {
    const struct muster_rendezvous_info *info;
    fixture->memory.version = 1;
    fixture->memory.is_damaged = 1;
    assert_int_equal(
        muster_rendezvous_next(seen->rendezvous, 0, &info, NULL), MUSTER_ERROR_PROTOCOL);
    fixture->memory.is_damaged = 0;
}

static void (*const ways[])(struct fixture *fixture, struct seen *seen) = {
    leave_new, leave_joining, leave_complete, leave_closed, leave_shut_down, leave_failed};

#define WAYS (sizeof ways / sizeof *ways)

/* A node that has its record for itself, in one state or another when it is freed. */
static void live_once(struct fixture *fixture, size_t way) {
    free(fixture->memory.state);
    fixture->memory = (struct memory){.gets = fixture->memory.gets};
    struct muster_rendezvous_settings settings = settings_of(fixture, 1, 1);
    settings.endpoint = NULL;
    settings.backend = &fixture->backend;
    struct seen *one = add_node(fixture, &settings);
    ways[way](fixture, one);
    drop(one);
    fixture->count = 0;
    *one = (struct seen){0};
}

FIXTURE_TEST(ten_thousand_leave_nothing_behind) {
    long warm = 0;
    muster_store_server_free(fixture->server);
    fixture->server = NULL;
    size_t before = process_descriptors();
    for (size_t i = 0; i < CYCLES; i++) {
        live_once(fixture, i % WAYS);
        if (i == WARM_CYCLES) {
            warm = process_resident_bytes();
        }
    }
    assert_int_equal(process_descriptors(), before);
    if (!PROCESS_IS_SANITIZED) { /* which keep what was freed */
        assert_true(process_resident_bytes() - warm < GROWTH_BYTES);
    }
}

/* At an endpoint, where nobody listens: connections in every stage are given up. */
TEST(ten_thousand_at_an_endpoint_leave_nothing_behind) {
    struct fixture fixture;
    long warm = 0;
    int cycles = process_cycles(PROCESS_IS_SANITIZED ? WARM_CYCLES : CYCLES);
    set_up(&fixture);
    muster_store_server_free(fixture.server);
    fixture.server = NULL;
    size_t before = process_descriptors();
    for (int i = 0; i < cycles; i++) {
        struct seen *one = add(&fixture, 1, 1);
        if (i % 2 == 0) {
            ask(one);
            process(one, i / 2 % 4);
        }
        drop(one);
        fixture.count = 0;
        *one = (struct seen){0};
        if (i == WARM_CYCLES) {
            warm = process_resident_bytes();
        }
    }
    assert_int_equal(process_descriptors(), before);
    if (!PROCESS_IS_SANITIZED && warm > 0) { /* which keep what was freed */
        assert_true(process_resident_bytes() - warm < GROWTH_BYTES);
    }
    tear_down(&fixture);
}

/* Beside each other. */

static void expect(struct muster_store *store, const char *value) {
    struct muster_bytes got = {0};
    assert_int_equal(muster_store_get(store, "key", &got, NULL), MUSTER_OK);
    assert_int_equal(got.length, strlen(value));
    assert_memory_equal(got.data, value, got.length);
    muster_bytes_clear(&got);
}

/* Each pair of nodes meets in a record of its own, and each has its own round. */
TEST(two_jobs_and_two_stores_live_in_one_process) {
    struct fixture fixtures[2];
    struct muster_store *stores[2];
    for (int i = 0; i < 2; i++) {
        set_up(&fixtures[i]);
        stores[i] = open_store(&fixtures[i]);
        ask(i == 0 ? add(&fixtures[i], 2, 2) : add_by_backend(&fixtures[i], 2, 2));
    }
    assert_int_equal(muster_store_set(stores[0], "key", "first", 5, NULL), MUSTER_OK);
    assert_int_equal(muster_store_set(stores[1], "key", "second", 6, NULL), MUSTER_OK);
    for (int i = 0; i < 2; i++) {
        ask(i == 0 ? add(&fixtures[i], 2, 2) : add_by_backend(&fixtures[i], 2, 2));
    }
    for (int i = 0; i < 2; i++) {
        await_round(&fixtures[i], &fixtures[i].nodes[0], 1);
        await_round(&fixtures[i], &fixtures[i].nodes[1], 1);
        assert_int_equal(fixtures[i].nodes[0].info.rank + fixtures[i].nodes[1].info.rank, 1);
    }
    assert_int_equal(
        fixtures[0].nodes[0].info.store_port, muster_store_server_port(fixtures[0].server));
    assert_int_equal(fixtures[1].nodes[0].info.store_port, 0);
    expect(stores[0], "first");
    expect(stores[1], "second");
    for (int i = 0; i < 2; i++) {
        muster_store_free(stores[i]);
        tear_down(&fixtures[i]);
    }
}

/* A fork. */

static int misuse_in_child(const struct fixture *fixture) {
    const struct muster_rendezvous_info *info;
    struct muster_rendezvous *rendezvous = fixture->nodes[0].rendezvous;
    int is_closed;
    size_t count;
    int wrong = 0;
    wrong += muster_rendezvous_process(rendezvous, NULL) != MUSTER_ERROR_FORKED;
    wrong += muster_rendezvous_next(rendezvous, 1, &info, NULL) != MUSTER_ERROR_FORKED;
    wrong +=
        muster_rendezvous_submit_next(rendezvous, take_round, NULL, NULL) != MUSTER_ERROR_FORKED;
    wrong += muster_rendezvous_is_closed(rendezvous, &is_closed, NULL) != MUSTER_ERROR_FORKED;
    wrong += muster_rendezvous_num_nodes_waiting(rendezvous, &count, NULL) != MUSTER_ERROR_FORKED;
    wrong += muster_rendezvous_set_closed(rendezvous, NULL) != MUSTER_ERROR_FORKED;
    wrong += muster_rendezvous_shutdown(rendezvous, NULL) != MUSTER_ERROR_FORKED;
    wrong += muster_rendezvous_fd(rendezvous) != -1;
    wrong += muster_rendezvous_run_id(rendezvous) != NULL;
    muster_rendezvous_free(rendezvous);
    return wrong;
}

/* What a child does with them changes nothing for the parent, in whatever state they are. */
TEST(fork_while_one_lives_takes_nothing_from_it) {
    for (int by_backend = 0; by_backend < 2; by_backend++) {
        for (int is_complete = 0; is_complete < 2; is_complete++) {
            struct fixture fixture;
            int status;
            set_up(&fixture);
            struct seen *one = by_backend ? add_by_backend(&fixture, 1, 1) : add(&fixture, 1, 1);
            ask(one);
            if (is_complete) {
                await_round(&fixture, one, 1);
            }
            pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                _exit(misuse_in_child(&fixture));
            }
            assert_int_equal(waitpid(child, &status, 0), child);
            assert_int_equal(status, 0);
            await_round(&fixture, one, 1);
            assert_int_equal(one->rounds_over, 0);
            assert_int_equal(muster_rendezvous_shutdown(one->rendezvous, NULL), MUSTER_OK);
            tear_down(&fixture);
        }
    }
}
