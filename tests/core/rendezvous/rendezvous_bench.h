/* SPDX-License-Identifier: BSD-3-Clause */
/* A rendezvous machine on a bench: the test is the backend, the clock and the agent. The bench
 * answers requests at once from its own record, unless the test holds them. It keeps all other
 * effects as text, one after the other, which the test compares. */
#ifndef MUSTER_TESTS_CORE_RENDEZVOUS_BENCH_H
#define MUSTER_TESTS_CORE_RENDEZVOUS_BENCH_H

#include "rendezvous_fixture.h"

#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_step.h"
#include "core/rendezvous/rendezvous_transcript.h"
#include "record_tools.h"

struct bench {
    struct rendezvous_machine *machine;
    struct rendezvous_machine_settings settings;
    struct rendezvous_state record; /* the record in the backend */
    struct rendezvous_state seen;   /* the record as the machine has seen it */
    struct rendezvous_state draft;  /* the draft of a write that is held */
    struct text log;                /* the effects since the last bench_expect */
    struct instant now;
    struct instant timer;
    bool is_armed;
    int64_t wall_offset;              /* of the wall clock, in nanoseconds */
    enum rendezvous_effect_kind held; /* a FETCH or WRITE that is not answered, or …_KIND_COUNT */
    struct {
        struct rendezvous_telling items[64];
        size_t count;
    } told; /* the last TELL_STANDINGS */
    bool holds_requests;
    int fetches;
    int writes;
};

static inline void bench_tell(struct bench *bench, struct rendezvous_event event);

static inline void bench_log(struct bench *bench, const struct rendezvous_effect *effect) {
    if (effect->kind == RENDEZVOUS_EFFECT_ARM_TIMER) {
        assert_true(instant_is_before(bench->now, effect->deadline));
        bench->timer = effect->deadline;
        bench->is_armed = true;
        return;
    }
    if (effect->kind == RENDEZVOUS_EFFECT_FETCH || effect->kind == RENDEZVOUS_EFFECT_WRITE) {
        assert_int_equal(bench->held, RENDEZVOUS_EFFECT_KIND_COUNT); /* one request at a time */
        bench->held = effect->kind;
    }
    if (effect->kind == RENDEZVOUS_EFFECT_FETCH) {
        bench->fetches++;
        return;
    }
    if (effect->kind == RENDEZVOUS_EFFECT_WRITE) {
        rendezvous_state_copy(effect->write.state, &bench->draft);
        bench->writes++;
    }
    if (effect->kind == RENDEZVOUS_EFFECT_TELL_STANDINGS) {
        bench->told.count = effect->standings.count;
        for (size_t i = 0; i < effect->standings.count; i++) {
            assert_true(i < sizeof bench->told.items / sizeof *bench->told.items);
            bench->told.items[i] = effect->standings.items[i];
        }
    }
    text_append(&bench->log, bench->log.length == 0 ? "" : "; ");
    rendezvous_effect_describe(effect, &bench->log);
}

static inline void bench_step(struct bench *bench, struct rendezvous_event event) {
    struct rendezvous_effects effects;
    event.now = bench->now;
    event.wall_now = (struct wall_time){bench->now.nanoseconds + bench->wall_offset};
    rendezvous_machine_step(bench->machine, &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        bench_log(bench, &effects.items[i]);
    }
}

/* Another node has written first. */
static inline void bench_lose_write(struct bench *bench) {
    assert_int_equal(bench->held, RENDEZVOUS_EFFECT_WRITE);
    bench->held = RENDEZVOUS_EFFECT_KIND_COUNT;
    rendezvous_state_copy(&bench->record, &bench->seen);
    bench_step(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN,
                          .written = {.has_won = false, .state = &bench->record}});
}

/* Answers the held request. A write wins unless the test has changed the record. */
static inline void bench_answer(struct bench *bench) {
    enum rendezvous_effect_kind held = bench->held;
    if (held == RENDEZVOUS_EFFECT_WRITE && !record_equals(&bench->record, &bench->seen)) {
        bench_lose_write(bench);
        return;
    }
    bench->held = RENDEZVOUS_EFFECT_KIND_COUNT;
    if (held == RENDEZVOUS_EFFECT_WRITE) {
        rendezvous_state_copy(&bench->draft, &bench->record);
    }
    rendezvous_state_copy(&bench->record, &bench->seen);
    if (held == RENDEZVOUS_EFFECT_FETCH) {
        bench_step(bench,
            (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RECORD, .state = &bench->record});
    } else if (held == RENDEZVOUS_EFFECT_WRITE) {
        bench_step(bench,
            (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN, .written.has_won = true});
    }
}

static inline void bench_tell(struct bench *bench, struct rendezvous_event event) {
    bench_step(bench, event);
    for (int count = 0; bench->held != RENDEZVOUS_EFFECT_KIND_COUNT && !bench->holds_requests;
         count++) {
        assert_true(count < 100);
        bench_answer(bench);
    }
}

static inline void bench_tell_kind(struct bench *bench, enum rendezvous_event_kind kind) {
    bench_tell(bench, (struct rendezvous_event){.kind = kind});
}

static inline void bench_tell_reason(
    struct bench *bench, enum rendezvous_event_kind kind, const char *reason) {
    bench_tell(bench, (struct rendezvous_event){.kind = kind, .reason = reason});
}

static inline void bench_lose_connection(struct bench *bench, bool is_silent) {
    bench->held = RENDEZVOUS_EFFECT_KIND_COUNT;
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                          .lost = {.reason = "connection lost", .is_silent = is_silent}});
}

/* Lets time pass. The timer fires whenever it is due. */
static inline void bench_wait(struct bench *bench, double seconds) {
    struct instant end = instant_after(bench->now, duration_from_seconds(seconds));
    for (int count = 0; bench->is_armed && !instant_is_before(end, bench->timer); count++) {
        assert_true(count < 300000);
        bench->is_armed = false;
        if (instant_is_before(bench->now, bench->timer)) {
            bench->now = bench->timer;
        }
        bench_tell_kind(bench, RENDEZVOUS_EVENT_TIMER_FIRED);
    }
    bench->now = end;
}

/* Compares the effects since the last bench_expect. */
static inline void bench_expect(struct bench *bench, const char *log) {
    assert_string_equal(text_string(&bench->log), log);
    text_clear(&bench->log);
}

static inline void bench_forget(struct bench *bench) {
    text_clear(&bench->log);
}

static inline void bench_expect_record(struct bench *bench, const char *line) {
    check_record(&bench->record, line);
}

/* Another node has changed the record and has told the watchers. */
static inline void bench_change(struct bench *bench) {
    bench_tell_kind(bench, RENDEZVOUS_EVENT_CHANGED);
}

/* The node has come to the store that this one hosts. */
static inline void bench_show(struct bench *bench, const char *name) {
    bench_tell(bench, (struct rendezvous_event){
                          .kind = RENDEZVOUS_EVENT_WISHED, .wished.identity = muster_node(name)});
}

static inline int bench_set_up(void **state) {
    struct bench *bench = calloc(1, sizeof *bench);
    if (bench == NULL) {
        return -1;
    }
    *state = bench;
    bench->held = RENDEZVOUS_EFFECT_KIND_COUNT;
    bench->settings = (struct rendezvous_machine_settings){
        .rendezvous = sized(2, 4), .identity = muster_node("me"), .seed = 1};
    bench->settings.rendezvous.last_call_timeout = duration_from_seconds(2);
    bench->settings.rendezvous.join_timeout = duration_from_seconds(60);
    return 0;
}

static inline int bench_tear_down(void **state) {
    struct bench *bench = *state;
    rendezvous_machine_free(bench->machine);
    rendezvous_state_clear(&bench->record);
    rendezvous_state_clear(&bench->seen);
    rendezvous_state_clear(&bench->draft);
    text_clear(&bench->log);
    free(bench);
    return 0;
}

static inline void bench_connect(struct bench *bench, bool has_presence, bool is_host) {
    bench_tell(bench, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED,
                          .connected = {.has_presence = has_presence, .is_host = is_host}});
}

/* Makes the machine with the bench's settings, and lets it join. */
static inline void bench_join(struct bench *bench, bool has_presence, bool is_host) {
    bench->machine = rendezvous_machine_new(&bench->settings);
    bench_tell_kind(bench, RENDEZVOUS_EVENT_JOIN_ASKED);
    bench_connect(bench, has_presence, is_host);
}

/* Sets the record to a complete round of Muster's nodes. Each has one letter as its name; their
 * ranks have this order. */
static inline void bench_place_round(struct bench *bench, int64_t round, const char *names) {
    rendezvous_state_clear(&bench->record);
    bench->record.round = round;
    bench->record.is_complete = true;
    for (int64_t rank = 0; names[rank] != '\0'; rank++) {
        char name[] = {names[rank], '\0'};
        bool is_me = names[rank] == 'm';
        struct rendezvous_node *node =
            place(&bench->record, is_me ? bench->settings.identity : muster_node(name));
        node->is_participant = true;
        node->rank = rank;
    }
}

/* The machine runs in a complete round of these nodes. Its own node is "m". */
static inline void bench_run(
    struct bench *bench, const char *names, bool has_presence, bool is_host) {
    bench_place_round(bench, 1, names);
    bench_join(bench, has_presence, is_host);
    assert_non_null(strstr(text_string(&bench->log), "world round 1"));
    bench_forget(bench);
}

/* Adds "t", a node of torchrun, as the last participant of the round. */
static inline void bench_place_torch(struct bench *bench) {
    int64_t rank = (int64_t)rendezvous_state_participants(&bench->record);
    struct rendezvous_node *node = place(&bench->record, torch_node("t"));
    node->is_participant = true;
    node->rank = rank;
}

/* The machine hosts the store, and runs in a complete round of these nodes and "t". */
static inline void bench_run_beside_torch(struct bench *bench, const char *names) {
    bench_place_round(bench, 1, names);
    bench_place_torch(bench);
    bench_join(bench, true, true);
    assert_non_null(strstr(text_string(&bench->log), "world round 1"));
    bench_forget(bench);
}

#define ON_BENCH(test) TEST_WITH(test, bench_set_up, bench_tear_down)

#endif
