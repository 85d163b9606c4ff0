/* SPDX-License-Identifier: BSD-3-Clause */
/* The scene that the tests of decisions and of actions share: a record, and the node that looks at
 * it. */
#ifndef MUSTER_TESTS_CORE_RENDEZVOUS_SCENE_H
#define MUSTER_TESTS_CORE_RENDEZVOUS_SCENE_H

#include "core/rendezvous/rendezvous_decision.h"
#include "rendezvous_fixture.h"
#include "record_tools.h"

/* One record of two to three nodes, seen by the node "me". */
struct scene {
    struct rendezvous_settings settings;
    struct rendezvous_state record;
    struct node_identity me;
    struct rendezvous_context context;
};

static inline struct scene *set_scene(void **state, int minimum_nodes, int maximum_nodes) {
    struct scene *scene = *state;
    rendezvous_state_clear(&scene->record);
    scene->settings = sized(minimum_nodes, maximum_nodes);
    scene->me = torch_node("me");
    scene->context = (struct rendezvous_context){
        .node = &scene->me, .state = &scene->record, .settings = &scene->settings};
    return scene;
}

static inline int make_scene(void **state) {
    *state = calloc(1, sizeof(struct scene));
    return *state == NULL ? -1 : 0;
}

static inline int drop_scene(void **state) {
    struct scene *scene = *state;
    rendezvous_state_clear(&scene->record);
    free(scene);
    return 0;
}

static inline void apply(struct scene *scene, enum rendezvous_action action) {
    rendezvous_apply(&scene->record, &scene->settings, &scene->me, action, wall_seconds(1000));
}

/* Applies the action for another node than "me". */
static inline void apply_as(
    struct scene *scene, const char *address, enum rendezvous_action action) {
    struct node_identity other = torch_node(address);
    rendezvous_apply(&scene->record, &scene->settings, &other, action, wall_seconds(1000));
}

#define SCENE_TEST(name) TEST_WITH(name, make_scene, drop_scene)

#endif
