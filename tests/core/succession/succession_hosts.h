/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that follow a host or host, with what they are expected to say. */
#ifndef MUSTER_TESTS_CORE_SUCCESSION_HOSTS_H
#define MUSTER_TESTS_CORE_SUCCESSION_HOSTS_H

#include "succession_scene.h"

#define LEFT "fenced the others have gone on without this node, which cannot reach them"
#define B "[a_1_1073741824:0 b_1_1073741824:1 c_1_1073741824:2]"

/* Node `me` follows a, in a committed world of a, b and c. */
static inline struct scene following_patiently(const char *me, double silence_timeout) {
    struct scene scene = scene_with(me, silence_timeout);
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
    FREED char *dial = text_format("dial at=%.3f", silence_timeout);
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record, dial);
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected");
    return scene;
}

static inline struct scene following(const char *me) {
    return following_patiently(me, SILENCE);
}

static inline void find_nothing_new(struct scene *scene) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
    entry_of(scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record, "");
}

/* Node a hosts term 1. */
static inline struct scene hosting(void) {
    struct scene scene = scene_of("a");
    seek(&scene, 60, "read_register");
    plain(&scene, SUCCESSION_EVENT_READ, "append claim 1 term 1: round 0 open [] wait [] spare []");
    plain(&scene, SUCCESSION_EVENT_WON, "host term 1; dial self at=3.000");
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected");
    return scene;
}

static inline char *commit_of(int64_t number, int64_t term, const struct rendezvous_state *record) {
    struct text text = {0};
    text_append_format(&text, "append commit %lld term %lld: ", (long long)number, (long long)term);
    rendezvous_state_describe(record, &text);
    return text_take(&text);
}

static inline struct succession_event renewal(const char *text) {
    return (struct succession_event){.kind = SUCCESSION_EVENT_RENEWAL, .renewal = text};
}

#endif
