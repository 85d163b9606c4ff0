/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the round exchange and its parts share: the machine of one node on a virtual
 * clock. Each step is compared with the transcript of its effects. A round is written as one letter
 * per rank, which is the address of the node: a small letter is a node of Muster, a capital letter
 * a node of torchrun. */
#ifndef MUSTER_TESTS_CORE_ROUND_FIXTURE_H
#define MUSTER_TESTS_CORE_ROUND_FIXTURE_H

#include "unit.h"

#include "core/round/round_exchange.h"
#include "core/round/round_step.h"

/* The identities of Muster's nodes as text. */
#define A "a_1_1073741824"
#define B "b_1_1073741824"

struct scene {
    struct round_exchange *exchange;
    int64_t round;
    int64_t seconds;
    struct rank_assignment ranks; /* that the host tells; world size 0: none */
    bool had_roll;
    bool is_held;        /* the host tells them when all are ready */
    const char *address; /* told with them, with port 7; NULL: it is not */
    bool delegates;      /* the node knows how many others there are, and no more */
};

static inline struct scene scene_new(bool is_uniform, int local_world_size) {
    struct round_settings settings = {
        .role = "default",
        .local_world_size = local_world_size,
        .is_uniform = is_uniform,
        .timeout = duration_from_seconds(600),
        .exit_barrier_timeout = duration_from_seconds(300),
    };
    return (struct scene){.exchange = round_exchange_new(&settings)};
}

static inline void scene_clear(struct scene *scene) {
    round_exchange_free(scene->exchange);
}

static inline struct node_identity identity_of(char name) {
    bool is_muster = name >= 'a';
    return (struct node_identity){.address = {name, '\0'},
        .pid = 1,
        .local_id = is_muster ? node_identity_muster_local_id(0) : 0};
}

static inline void step(struct scene *scene, struct round_event event, const char *expected) {
    event.now = (struct instant){.nanoseconds = scene->seconds * 1000000000};
    struct round_effects effects;
    round_exchange_step(scene->exchange, &event, &effects);
    CLEARED_BY(text_clear) struct text transcript = {0};
    for (size_t i = 0; i < effects.count; i++) {
        text_append(&transcript, i == 0 ? "" : "; ");
        round_effect_describe(&effects.items[i], &transcript);
    }
    assert_string_equal(text_string(&transcript), expected);
}

static inline void begin(
    struct scene *scene, int64_t round, const char *nodes, char name, const char *expected) {
    struct rendezvous_state state = {.round = round, .is_complete = true, .restarts = 2};
    struct node_identity own = identity_of(name);
    for (size_t rank = 0; nodes[rank] != '\0'; rank++) {
        struct node_identity identity = identity_of(nodes[rank]);
        if (scene->delegates && nodes[rank] != name) {
            state.crowd.participants++;
            continue;
        }
        struct rendezvous_node *node = rendezvous_state_obtain(&state, &identity);
        node->is_participant = true;
        node->rank = (int64_t)rank;
    }
    scene->round = round;
    step(scene,
        (struct round_event){
            .kind = ROUND_EVENT_BEGIN,
            .round = round,
            .begin = {.group_rank = (int)(strchr(nodes, name) - nodes),
                .node_count = (int)strlen(nodes),
                .state = &state,
                .identity = &own,
                .ranks = scene->ranks,
                .is_held = scene->is_held,
                .had_roll = scene->had_roll,
                .master_address = scene->address,
                .master_port = scene->address != NULL ? 7 : 0},
        },
        expected);
    rendezvous_state_clear(&state);
}

static inline struct round_event plain(const struct scene *scene, enum round_event_kind kind) {
    return (struct round_event){.kind = kind, .round = scene->round};
}

static inline struct round_event opened(const struct scene *scene, const char *address, int port) {
    struct round_event event = plain(scene, ROUND_EVENT_STORE_OPENED);
    event.opened.address = address;
    event.opened.port = port;
    return event;
}

/* An answer for a key of the present round, and for a key of an earlier round. */
static inline struct round_event answer_of(
    const struct scene *scene, enum round_event_kind kind, enum round_key_kind key, int64_t round) {
    struct round_event event = plain(scene, kind);
    event.key = (struct round_key){.kind = key, .round = round};
    return event;
}

static inline struct round_event checked(
    const struct scene *scene, enum round_key_kind key, int64_t round, bool is_present) {
    struct round_event event = answer_of(scene, ROUND_EVENT_CHECKED, key, round);
    event.is_present = is_present;
    return event;
}

static inline struct round_event values(
    const struct scene *scene, enum round_key_kind key, int64_t round, struct round_values found) {
    struct round_event event = answer_of(scene, ROUND_EVENT_VALUES, key, round);
    event.values = found;
    return event;
}

static inline struct round_event role_infos(
    const struct scene *scene, const struct role_info *infos, size_t count) {
    struct round_event event =
        answer_of(scene, ROUND_EVENT_ROLE_INFOS, ROUND_KEY_ALL_ROLE_INFOS, scene->round);
    event.role_infos.infos = infos;
    event.role_infos.count = count;
    return event;
}

/* Rank 0 of two nodes of Muster in round 0, after its join. */
static inline struct scene joined_scene(void) {
    struct scene scene = scene_new(false, 1);
    char role[] = "default";
    const struct role_info infos[] = {{role, 1, 0, 1, NULL}, {role, 1, 1, 1, NULL}};
    begin(&scene, 0, "ab", 'a',
        "arm_timer at=600.000; set_role_info 0/role_info/0; open_worker_store fresh; "
        "wait 0/role_infos/2");
    step(&scene, opened(&scene, "a", 29400), "publish 0/publication a:29400 of " A);
    step(&scene, plain(&scene, ROUND_EVENT_WAITED), "get 0/role_infos/2");
    step(&scene, role_infos(&scene, infos, 2),
        "set_assignments 0/assigned_ranks/0 of 2; disarm_timer; "
        "joined 0 rank=0 of 2 [0, 2, 0, 2] a:29400 restarts=2");
    return scene;
}

#endif
