/* SPDX-License-Identifier: BSD-3-Clause */
/* A scene is an agent with three workers, a shutdown timeout of 30 s and a clock in seconds. Each
 * step is compared with the transcript of its effects. */
#ifndef MUSTER_TESTS_CORE_AGENT_MACHINE_SCENE_H
#define MUSTER_TESTS_CORE_AGENT_MACHINE_SCENE_H

#include "core/agent/agent_machine.h"

/* Whether the job may have other nodes. */
enum company {
    ALONE,
    AMONG_PEERS,
    AMONG_CHANGING_PEERS,
};

struct scene {
    struct agent_machine machine;
    int64_t seconds;
};

static inline struct scene scene_new(int max_restarts, enum company company) {
    struct scene scene = {0};
    struct agent_settings settings = {
        .worker_count = 3,
        .max_restarts = max_restarts,
        .shutdown_timeout = duration_from_seconds(30),
        .has_peers = company != ALONE,
        .may_lose_peers = company == AMONG_CHANGING_PEERS,
    };
    agent_machine_init(&scene.machine, &settings);
    return scene;
}

static inline void step(struct scene *scene, struct agent_event event, const char *expected) {
    event.now = (struct instant){.nanoseconds = scene->seconds * 1000000000};
    struct agent_effects effects;
    agent_machine_step(&scene->machine, &event, &effects);
    CLEARED_BY(text_clear) struct text transcript = {0};
    for (size_t i = 0; i < effects.count; i++) {
        text_append(&transcript, i == 0 ? "" : "; ");
        agent_effect_describe(&effects.items[i], &transcript);
    }
    assert_string_equal(text_string(&transcript), expected);
}

static inline struct agent_event plain(enum agent_event_kind kind) {
    return (struct agent_event){.kind = kind};
}

static inline struct agent_event joined(int64_t ticket, int restarts) {
    return (struct agent_event){
        .kind = AGENT_EVENT_JOINED, .joined = {.ticket = ticket, .restarts = restarts}};
}

static inline struct agent_event exited(int local_rank, int code) {
    return (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
        .worker_exited = {.local_rank = local_rank, .exit = {.value = code}}};
}

static inline struct agent_event killed(int local_rank, int signal) {
    return (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
        .worker_exited = {.local_rank = local_rank, .exit = {.is_signal = true, .value = signal}}};
}

/* It has not ended yet. */
static inline struct agent_event ending(int local_rank, int code) {
    return (struct agent_event){.kind = AGENT_EVENT_WORKER_ENDING,
        .worker_exited = {.local_rank = local_rank, .exit = {.value = code}}};
}

static inline struct agent_event stuck(int local_rank) {
    return (struct agent_event){.kind = AGENT_EVENT_WORKER_STUCK,
        .worker_stuck = {.local_rank = local_rank, .stuck = duration_from_seconds(5)}};
}

static inline struct agent_event signalled(int signal) {
    return (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = signal};
}

static inline struct agent_event join_failed(int64_t ticket) {
    return (struct agent_event){.kind = AGENT_EVENT_JOIN_FAILED, .ticket = ticket};
}

static inline struct agent_event peer_restart(int attempt) {
    return (struct agent_event){.kind = AGENT_EVENT_PEER_RESTART, .attempt = attempt};
}

static inline struct scene running_scene(int max_restarts, enum company company) {
    struct scene scene = scene_new(max_restarts, company);
    step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
    step(&scene, joined(1, 0), "start_workers attempt=0");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    return scene;
}

/* A node among peers whose workers have all succeeded. */
static inline struct scene finished_scene(void) {
    struct scene scene = running_scene(0, AMONG_PEERS);
    step(&scene, exited(0, 0), "");
    step(&scene, exited(1, 0), "");
    step(&scene, exited(2, 0), "signal_workers 15; arm_timer at=30.000");
    return scene;
}

static inline void scene_end(struct scene *scene) {
    assert_int_equal(scene->machine.phase, AGENT_DONE);
    step(scene, signalled(15), "");
    step(scene, exited(0, 1), "");
    agent_machine_clear(&scene->machine);
}

#endif
