/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/rendezvous_state.h as a program sees it: records of real nodes, and what is no record. */
#include "unit.h"

#include <unistd.h>

#include <muster/rendezvous_state.h>
#include <muster/store.h>

#include "library/process_look.h"
#include "library/rendezvous_fixture.h"

#define CYCLES 10000
#define WARM_CYCLES 1000
/* Less than a byte for each further cycle would be more than this. */
#define GROWTH_BYTES (1 << 20)

static struct muster_rendezvous_state *state_in(struct muster_store *store) {
    struct muster_rendezvous_state *state = NULL;
    struct muster_failure failure = {0};
    if (muster_rendezvous_state_get(store, "job", &state, &failure) != MUSTER_OK) {
        fail_msg("%s", failure.message);
    }
    return state;
}

static void assert_complete_with_two(const struct muster_rendezvous_state *state) {
    assert_true(state->is_complete && !state->is_closed && !state->has_failed);
    assert_int_equal(state->node_count, 2);
    assert_int_equal(state->participant_count, 2);
    assert_int_equal(state->waiting_count + state->redundant_count, 0);
    assert_int_equal(state->nodes[0].rank + state->nodes[1].rank, 1);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(state->nodes[i].addr, "127.0.0.1");
        assert_int_equal(state->nodes[i].pid, getpid());
        assert_true(state->nodes[i].is_muster && state->nodes[i].is_participant);
        assert_true(!state->nodes[i].is_waiting && !state->nodes[i].is_redundant);
    }
}

FIXTURE_TEST(record_of_a_job_is_read_from_its_store) {
    struct muster_store *store = open_store(fixture);
    ask(add(fixture, 2, 2));
    ask(add(fixture, 2, 2));
    await_round(fixture, &fixture->nodes[0], 1);
    await_round(fixture, &fixture->nodes[1], 1);
    struct muster_rendezvous_state *record = state_in(store);
    assert_complete_with_two(record);
    muster_rendezvous_state_free(record);
    assert_int_equal(muster_rendezvous_set_closed(fixture->nodes[0].rendezvous, NULL), MUSTER_OK);
    record = state_in(store);
    assert_true(record->is_closed);
    muster_rendezvous_state_free(record);
    muster_store_free(store);
}

FIXTURE_TEST(record_of_a_backend_is_read_from_its_bytes) {
    struct muster_rendezvous_state *record = NULL;
    ask(add_by_backend(fixture, 2, 2));
    while (fixture->memory.version == 0) {
        turn(fixture);
    }
    assert_int_equal(
        muster_rendezvous_state_read(fixture->memory.state, fixture->memory.length, &record, NULL),
        MUSTER_OK);
    assert_true(!record->is_complete && record->deadline == 0);
    assert_int_equal(record->participant_count, 1);
    assert_int_equal(record->nodes[0].rank, -1);
    muster_rendezvous_state_free(record);
    ask(add_by_backend(fixture, 2, 2));
    await_round(fixture, &fixture->nodes[0], 1);
    await_round(fixture, &fixture->nodes[1], 1);
    assert_int_equal(
        muster_rendezvous_state_read(fixture->memory.state, fixture->memory.length, &record, NULL),
        MUSTER_OK);
    assert_complete_with_two(record);
    muster_rendezvous_state_free(record);
}

FIXTURE_TEST(what_is_no_record_is_an_error) {
    static const struct {
        const char *value;
        enum muster_error error;
    } cases[] = {{"", MUSTER_ERROR_MISSING}, {"Y2FuaW1hZGFt", MUSTER_ERROR_MISSING},
        {"!! no base64", MUSTER_ERROR_PROTOCOL}, {"AAAA", MUSTER_ERROR_PROTOCOL}};
    struct muster_failure failure = {0};
    struct muster_rendezvous_state *record = NULL;
    struct muster_store *store = open_store(fixture);
    assert_int_equal(
        muster_rendezvous_state_get(store, "job", &record, &failure), MUSTER_ERROR_MISSING);
    assert_non_null(strstr(failure.message, "no record of job 'job'"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(muster_store_set(store, MUSTER_RENDEZVOUS_STATE_KEY "job", cases[i].value,
                             strlen(cases[i].value), NULL),
            MUSTER_OK);
        assert_int_equal(
            muster_rendezvous_state_get(store, "job", &record, &failure), cases[i].error);
        assert_int_equal(failure.error, cases[i].error);
        assert_non_null(strstr(failure.message, MUSTER_RENDEZVOUS_STATE_KEY "job"));
        assert_int_equal(muster_rendezvous_state_get(store, "job", &record, NULL), cases[i].error);
    }
    assert_null(record);
    muster_store_free(store);
}

FIXTURE_TEST(ten_thousand_leave_nothing_behind) {
    long warm = 0;
    ask(add_by_backend(fixture, 1, 1));
    await_round(fixture, &fixture->nodes[0], 1);
    for (int i = 0; i < CYCLES; i++) {
        struct muster_rendezvous_state *record = NULL;
        assert_int_equal(muster_rendezvous_state_read(
                             fixture->memory.state, fixture->memory.length, &record, NULL),
            MUSTER_OK);
        muster_rendezvous_state_free(record);
        if (i == WARM_CYCLES) {
            warm = process_resident_bytes();
        }
    }
    if (!PROCESS_IS_SANITIZED) { /* which keep what was freed */
        assert_true(process_resident_bytes() - warm < GROWTH_BYTES);
    }
}
