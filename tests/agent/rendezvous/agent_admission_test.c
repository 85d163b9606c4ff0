/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "agent/rendezvous/agent_node_settings.h"
#include "host/remembered_log.h"
#include "shared_store_fixture.h"

/* The node that admits, and one that waits. */
struct fixture {
    struct shared_store shared;
    struct remembered_log logs[2];
    struct agent_admission *admissions[2];
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    shared_store_open(&fixture->shared, "job", "job");
    for (int i = 0; i < 2; i++) {
        remembered_log_init(&fixture->logs[i]);
        struct agent_admission_settings settings = {
            "job", &fixture->logs[i].log, SHARED_STORE_PATIENCE};
        fixture->admissions[i] =
            agent_admission_new(fixture->shared.loop, fixture->shared.backends[i], &settings);
    }
}

static void tear_down(struct fixture *fixture) {
    shared_store_disconnect(&fixture->shared);
    for (int i = 0; i < 2; i++) {
        agent_admission_free(fixture->admissions[i]);
        text_clear(&fixture->logs[i].text);
    }
    shared_store_close(&fixture->shared);
}

static void answered(void *context, const struct store_client_result *result) {
    assert_int_equal(result->code, FAILURE_NONE);
    event_loop_stop(((struct fixture *)context)->shared.loop);
}

static void write_text(struct fixture *fixture, const char *text) {
    struct store_client_call call = {
        .request = {.operation = STORE_SET,
            .key = slice_from_string("/torch.rendezvous.job/muster/admission"),
            .value = slice_from_string(text)},
        .is_raw = true,
        .timeout = SHARED_STORE_PATIENCE,
    };
    assert_true(rendezvous_backend_ask(fixture->shared.backends[1], &call));
}

/* Requests of a node are answered in order, so everything before this one has been answered. */
static void settle(struct fixture *fixture, int index) {
    struct store_client_call call = {
        .request = {.operation = STORE_ADD, .key = slice_from_string("/a"), .number = 1},
        .is_raw = true,
        .timeout = SHARED_STORE_PATIENCE,
        .done = answered,
        .context = fixture,
    };
    assert_true(rendezvous_backend_ask(fixture->shared.backends[index], &call));
    event_loop_run(fixture->shared.loop);
}

/* Of the node that waits. */
static void look(struct fixture *fixture, struct text *out) {
    assert_true(agent_admission_look(fixture->admissions[1]));
    settle(fixture, 1);
    text_clear(out);
    agent_admission_describe(fixture->admissions[1], out);
}

static void plan(struct fixture *fixture, double seconds, bool is_paused) {
    struct rendezvous_admission planned = {.is_awaited = true,
        .is_paused = is_paused,
        .at = instant_after(event_loop_now(fixture->shared.loop), duration_from_seconds(seconds))};
    agent_admission_note(fixture->admissions[0], &planned);
    agent_admission_note(fixture->admissions[0], &planned); /* it is said once */
    settle(fixture, 0);
}

FIXTURE_TEST(who_waits_is_told_why_and_for_how_long) {
    struct text out = {0};
    look(fixture, &out);
    assert_string_equal(text_string(&out), "");
    plan(fixture, 3600.9, true);
    look(fixture, &out);
    assert_non_null(strstr(text_string(&out), "a pause that doubles"));
    plan(fixture, 7200.9, false);
    look(fixture, &out);
    assert_non_null(strstr(text_string(&out), "as --scale-up says"));
    const char *said = text_string(&fixture->logs[0].text);
    assert_non_null(strstr(said, "a node waits for a place in the world: the next are let in"));
    text_clear(&out);
}

FIXTURE_TEST(a_moment_is_not_worth_a_word) {
    struct rendezvous_admission nothing = {.is_awaited = false};
    struct text out = {0};
    plan(fixture, 0.5, true);
    agent_admission_note(fixture->admissions[0], &nothing);
    look(fixture, &out);
    assert_string_equal(text_string(&out), "");
    assert_string_equal(text_string(&fixture->logs[0].text), "");
}

FIXTURE_TEST(what_a_stranger_has_written_is_not_said) {
    static const char *const texts[] = {"", "x", "12 \x1b[31m", "9223372036854775807",
        "-9223372036854775808", "99999999999999999999999999", "1"};
    struct text out = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_text(fixture, texts[i]);
        look(fixture, &out);
        assert_string_equal(text_string(&out), "");
    }
}
