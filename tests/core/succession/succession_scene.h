/* SPDX-License-Identifier: BSD-3-Clause */
/* One succession machine, and records and entries for it. Nodes are a, b and c; the machine is b's
 * unless a test says otherwise. */
#ifndef MUSTER_TESTS_SUCCESSION_SCENE_H
#define MUSTER_TESTS_SUCCESSION_SCENE_H

#include "unit.h"

#include <stdio.h>

#include "core/succession/succession_machine.h"
#include "core/succession/succession_transcript.h"

#define RENEWAL (SUCCESSION_RENEWAL_MILLISECONDS / 1000.0)

struct scene {
    struct succession_machine *machine;
    double seconds;
    struct moment timer; /* as the last step has armed it */
};

static inline struct instant scene_at(double seconds) {
    return (struct instant){(int64_t)(seconds * 1e9 + 0.5)};
}

static inline struct node_identity node(const char *address) {
    struct node_identity identity;
    node_identity_init(&identity, address, 1, node_identity_muster_local_id(0));
    return identity;
}

#define SILENCE 3 /* seconds */

static inline struct scene scene_with(const char *address, double silence_timeout) {
    struct succession_settings settings = {
        .identity = node(address),
        .silence_timeout = {scene_at(silence_timeout).nanoseconds},
        .fence_timeout = duration_from_seconds(5),
    };
    return (struct scene){.machine = succession_machine_new(&settings)};
}

static inline struct scene scene_of(const char *address) {
    return scene_with(address, SILENCE);
}

static inline void scene_clear(struct scene *scene) {
    succession_machine_free(scene->machine);
}

/* A whole round of the nodes whose names are the letters. The caller clears it. */
static inline struct rendezvous_state world(int64_t round, const char *letters) {
    struct rendezvous_state record = {.round = round, .is_complete = true};
    for (const char *letter = letters; *letter != '\0'; letter++) {
        struct node_identity identity = node((char[]){*letter, '\0'});
        rendezvous_state_obtain(&record, &identity)->is_participant = true;
    }
    rendezvous_state_complete(&record);
    return record;
}

/* Takes the event, and compares the effects with `expected`, without the timer, which is in each.
 */
static inline void step(struct scene *scene, struct succession_event event, const char *expected) {
    struct succession_effects effects;
    CLEARED_BY(text_clear) struct text told = {0};
    event.now = scene_at(scene->seconds);
    succession_machine_step(scene->machine, &event, &effects);
    scene->timer = (struct moment){0};
    for (size_t i = 0; i < effects.count; i++) {
        if (effects.items[i].kind != SUCCESSION_EFFECT_ARM_TIMER) {
            text_append(&told, told.length > 0 ? "; " : "");
            succession_effect_describe(&effects.items[i], &told);
        } else {
            moment_set(&scene->timer, effects.items[i].deadline);
        }
    }
    assert_string_equal(text_string(&told), expected);
}

static inline void plain(
    struct scene *scene, enum succession_event_kind kind, const char *expected) {
    step(scene, (struct succession_event){.kind = kind}, expected);
}

static inline void seek(struct scene *scene, double deadline, const char *expected) {
    step(scene,
        (struct succession_event){.kind = SUCCESSION_EVENT_SEEK, .deadline = scene_at(deadline)},
        expected);
}

static inline void entry_of(struct scene *scene, enum succession_event_kind kind, int64_t number,
    int64_t term, const char *host, const struct rendezvous_state *record, const char *expected) {
    step(scene,
        (struct succession_event){
            .kind = kind, .is_there = true, .entry = {number, term, node(host)}, .record = record},
        expected);
}

static inline void seen(
    struct scene *scene, const struct rendezvous_state *record, const char *expected) {
    step(scene, (struct succession_event){.kind = SUCCESSION_EVENT_SEEN, .record = record},
        expected);
}

static inline void lose(struct scene *scene, enum succession_loss loss, const char *expected) {
    step(scene, (struct succession_event){.kind = SUCCESSION_EVENT_CONNECTION_LOST, .loss = loss},
        expected);
}

#endif
