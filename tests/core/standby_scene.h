/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan of standby workers for two local ranks, what happens to it, and what it says. */
#ifndef MUSTER_TESTS_STANDBY_SCENE_H
#define MUSTER_TESTS_STANDBY_SCENE_H

#include <string.h>

#include "core/standby/standby_plan.h"

#define SIGNAL_NUMBER_KILL 9
#define MEMORY 1000000

struct scene {
    struct standby_plan *plan;
    struct instant now;
    struct text said; /* the effects of the last event, "; " between them */
};

static inline void set_up(struct scene *scene, bool is_auto) {
    const struct standby_settings settings = {.is_wanted = true,
        .is_auto = is_auto,
        .worker_count = 2,
        .assumed = 1000,
        .after = duration_from_seconds(2.5)};
    *scene = (struct scene){.plan = standby_plan_new(&settings)};
}

static inline void tear_down(struct scene *scene) {
    standby_plan_free(scene->plan);
    text_clear(&scene->said);
}

static inline void wait_seconds(struct scene *scene, double seconds) {
    scene->now = instant_after(scene->now, duration_from_seconds(seconds));
}

static inline void take(struct scene *scene, struct standby_event event) {
    struct standby_effects effects;
    event.now = scene->now;
    standby_plan_step(scene->plan, &event, &effects);
    text_clear(&scene->said);
    for (size_t i = 0; i < effects.count; i++) {
        text_append(&scene->said, i == 0 ? "" : "; ");
        standby_effect_describe(&effects.items[i], &scene->said);
    }
}

static inline void take_kind(struct scene *scene, enum standby_event_kind kind) {
    take(scene, (struct standby_event){.kind = kind, .may_restart = true});
}

static inline void take_rank(struct scene *scene, enum standby_event_kind kind, int local_rank) {
    take(scene, (struct standby_event){.kind = kind, .local_rank = local_rank});
}

static inline void take_records(struct scene *scene, double quiet, size_t modules) {
    take(scene, (struct standby_event){.kind = STANDBY_EVENT_RECORDS,
                    .records = {duration_from_seconds(quiet), modules, MEMORY}});
}

static inline void take_ready(struct scene *scene, int local_rank) {
    take(scene, (struct standby_event){
                    .kind = STANDBY_EVENT_SPARE_READY, .ready = {local_rank, 1000, false}});
}

static inline void take_end(struct scene *scene, int local_rank, bool is_signal, int value) {
    take(scene, (struct standby_event){.kind = STANDBY_EVENT_SPARE_ENDED,
                    .ended = {local_rank, {.is_signal = is_signal, .value = value}}});
}

static inline void expect(const struct scene *scene, const char *effects) {
    assert_string_equal(text_string(&scene->said), effects);
}

static inline enum standby_state state_of(const struct scene *scene, int local_rank) {
    return standby_plan_state(scene->plan, local_rank);
}

/* The workers run since the time 0, and both have said hello. */
static inline void start(struct scene *scene) {
    take_kind(scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    expect(scene, "");
    take_kind(scene, STANDBY_EVENT_WORKERS_STARTED);
    wait_seconds(scene, 2.5);
    take_kind(scene, STANDBY_EVENT_TIMER_FIRED);
    expect(scene, "look");
    take_rank(scene, STANDBY_EVENT_HELLO, 0);
    take_rank(scene, STANDBY_EVENT_HELLO, 1);
}

static inline void make_ready(struct scene *scene) {
    start(scene);
    take_records(scene, 2.5, 100);
    take_ready(scene, 0);
    take_ready(scene, 1);
}

#endif
