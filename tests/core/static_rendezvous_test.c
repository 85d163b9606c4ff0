/* SPDX-License-Identifier: BSD-3-Clause */
/* One test per rule, on one node of two; each step is checked against the transcript of its
 * effects. Several nodes together are in tests/simulation. */
#include "unit.h"

#include "core/static_rendezvous.h"
#include "core/static_transcript.h"

struct scene {
    struct static_rendezvous rendezvous;
    int64_t seconds;
};

static struct scene scene_new(int node_rank) {
    struct scene scene = {0};
    struct static_settings settings = {
        .node_rank = node_rank,
        .node_count = 2,
        .role = "default",
        .local_world_size = 1,
        .timeout = duration_from_seconds(900),
    };
    static_rendezvous_init(&scene.rendezvous, &settings);
    return scene;
}

static void step(struct scene *scene, struct static_event event, const char *expected) {
    event.now = (struct instant){.nanoseconds = scene->seconds * 1000000000};
    struct static_effects effects;
    static_rendezvous_step(&scene->rendezvous, &event, &effects);
    struct text transcript = {0};
    for (size_t i = 0; i < effects.count; i++) {
        text_append(&transcript, i == 0 ? "" : "; ");
        static_effect_describe(&effects.items[i], &transcript);
    }
    assert_string_equal(text_string(&transcript), expected);
    text_clear(&transcript);
}

static struct static_event plain(enum static_event_kind kind) {
    return (struct static_event){.kind = kind};
}

static struct static_event join_asked(int attempt) {
    return (struct static_event){.kind = STATIC_EVENT_JOIN_ASKED, .join = {.attempt = attempt}};
}

static struct static_event counted(enum static_key_kind kind, int attempt, int64_t count) {
    return (struct static_event){
        .kind = STATIC_EVENT_COUNTED, .key = {.kind = kind, .attempt = attempt}, .count = count};
}

static struct static_event value(enum static_key_kind kind, int attempt, const char *text) {
    return (struct static_event){
        .kind = STATIC_EVENT_VALUE, .key = {.kind = kind, .attempt = attempt}, .text = text};
}

static struct static_event checked(bool is_present) {
    return (struct static_event){.kind = STATIC_EVENT_CHECKED,
        .key = {.kind = STATIC_KEY_COORDINATED},
        .is_present = is_present};
}

static struct static_event assignment(int base_rank) {
    return (struct static_event){
        .kind = STATIC_EVENT_ASSIGNMENT, .assignment = {base_rank, 2, base_rank, 2}};
}

/* Node 0 after the first join, with a second node of the given kind. */
static struct scene host_scene(int muster_version) {
    struct scene scene = scene_new(0);
    char role[] = "default";
    struct role_info infos[] = {
        {role, 1, 0, STATIC_RENDEZVOUS_MUSTER_VERSION}, {role, 1, 1, muster_version}};
    step(&scene, join_asked(0), "arm_timer at=900.000; connect");
    step(&scene, plain(STATIC_EVENT_CONNECTED), "add init; set_role_info; wait role_infos");
    step(&scene, plain(STATIC_EVENT_WAITED), "get_role_infos");
    step(&scene,
        (struct static_event){
            .kind = STATIC_EVENT_ROLE_INFOS, .role_infos = {.infos = infos, .count = 2}},
        muster_version == 0
            ? "set_assignments 2; disarm_timer; joined attempt=0 [0, 2, 0, 2]"
            : "set_assignments 2 coordinated; disarm_timer; joined attempt=0 [0, 2, 0, 2]; "
              "wait end/0");
    return scene;
}

/* Node 1 after the first join. */
static struct scene guest_scene(bool is_coordinated) {
    struct scene scene = scene_new(1);
    step(&scene, join_asked(0), "arm_timer at=900.000; connect");
    step(&scene, plain(STATIC_EVENT_CONNECTED), "add init; set_role_info; wait assigned_ranks/1");
    step(&scene, plain(STATIC_EVENT_WAITED), "check coordinated; get_assignment");
    step(&scene, checked(is_coordinated), "");
    step(&scene, assignment(1),
        is_coordinated ? "disarm_timer; joined attempt=0 [1, 2, 1, 2]; wait end/0"
                       : "disarm_timer; joined attempt=0 [1, 2, 1, 2]");
    return scene;
}

static void nodes_meet_as_torchruns_agents_do(void **state) {
    (void)state;
    struct scene scene = host_scene(0);
    static_rendezvous_clear(&scene.rendezvous);
    scene = guest_scene(false);
    static_rendezvous_clear(&scene.rendezvous);
}

static void agents_of_one_kind_coordinate(void **state) {
    (void)state;
    struct scene scene = host_scene(1);
    static_rendezvous_clear(&scene.rendezvous);
    scene = guest_scene(true);
    static_rendezvous_clear(&scene.rendezvous);
}

static void a_newer_kind_of_agent_is_not_coordinated_with(void **state) {
    (void)state;
    struct scene scene = scene_new(0);
    char role[] = "default";
    struct role_info infos[] = {{role, 1, 0, 1}, {role, 1, 1, 2}};
    step(&scene, join_asked(0), "arm_timer at=900.000; connect");
    step(&scene, plain(STATIC_EVENT_CONNECTED), "add init; set_role_info; wait role_infos");
    step(&scene, plain(STATIC_EVENT_WAITED), "get_role_infos");
    step(&scene,
        (struct static_event){
            .kind = STATIC_EVENT_ROLE_INFOS, .role_infos = {.infos = infos, .count = 2}},
        "set_assignments 2; disarm_timer; joined attempt=0 [0, 2, 0, 2]");
    static_rendezvous_clear(&scene.rendezvous);
}

static void uniform_nodes_need_no_exchange(void **state) {
    (void)state;
    struct scene scene = scene_new(1);
    scene.rendezvous.settings.is_uniform = true;
    step(&scene, join_asked(0), "arm_timer at=900.000; connect");
    step(&scene, plain(STATIC_EVENT_CONNECTED),
        "add init; disarm_timer; joined attempt=0 [1, 2, 1, 2]");
    static_rendezvous_clear(&scene.rendezvous);
}

static void in_a_mixed_job_restarts_and_failures_stay_local(void **state) {
    (void)state;
    struct scene scene = guest_scene(false);
    step(&scene, plain(STATIC_EVENT_RESTART_ASKED), "");
    step(&scene, join_asked(1), "joined attempt=1 [1, 2, 1, 2]");
    step(&scene, plain(STATIC_EVENT_CONNECTION_LOST), "");
    step(&scene, join_asked(2), "joined attempt=2 [1, 2, 1, 2]");
    step(&scene, plain(STATIC_EVENT_BARRIER_ASKED), "barrier_failed");
    static_rendezvous_clear(&scene.rendezvous);
    scene = guest_scene(false);
    step(&scene, plain(STATIC_EVENT_FAILURE_ASKED), "");
    static_rendezvous_clear(&scene.rendezvous);
}

static void in_a_mixed_job_the_exit_barrier_is_torchruns(void **state) {
    (void)state;
    struct scene scene = guest_scene(false);
    step(&scene, plain(STATIC_EVENT_BARRIER_ASKED),
        "arm_timer at=300.000; add num_members; wait last_member");
    step(&scene, counted(STATIC_KEY_NUM_MEMBERS, 0, 2), "set last_member <val_ignored>");
    step(&scene, plain(STATIC_EVENT_WAITED), "disarm_timer; barrier_passed");
    static_rendezvous_clear(&scene.rendezvous);
}

static void a_restart_waits_for_all_nodes_and_a_renewed_store(void **state) {
    (void)state;
    struct scene scene = host_scene(1);
    step(&scene, plain(STATIC_EVENT_RESTART_ASKED), "compare_set end/0 restart");
    step(&scene, plain(STATIC_EVENT_WAITED), "get end/0");
    step(&scene, value(STATIC_KEY_END, 0, "restart"), "peer_restart attempt=1");
    step(&scene, join_asked(1), "arm_timer at=900.000; add ready/1; wait gathered/1");
    step(&scene, counted(STATIC_KEY_READY, 1, 1), "");
    step(&scene, plain(STATIC_EVENT_WAITED), "get gathered/1");
    step(&scene, value(STATIC_KEY_GATHERED, 1, "all"), "renew_worker_store");
    step(&scene, plain(STATIC_EVENT_RENEWED), "compare_set start/1 go; wait start/1");
    step(&scene, plain(STATIC_EVENT_WAITED), "get start/1");
    step(&scene, value(STATIC_KEY_START, 1, "go"),
        "disarm_timer; joined attempt=1 [0, 2, 0, 2]; wait end/1");
    static_rendezvous_clear(&scene.rendezvous);
}

static void the_last_node_to_be_ready_says_so(void **state) {
    (void)state;
    struct scene scene = guest_scene(true);
    step(&scene, plain(STATIC_EVENT_WAITED), "get end/0");
    step(&scene, value(STATIC_KEY_END, 0, "restart"), "peer_restart attempt=1");
    step(&scene, join_asked(1), "arm_timer at=900.000; add ready/1; wait start/1");
    step(&scene, counted(STATIC_KEY_READY, 1, 2), "compare_set gathered/1 all");
    static_rendezvous_clear(&scene.rendezvous);
}

static void a_late_answer_about_the_last_attempt_is_no_news(void **state) {
    (void)state;
    struct scene scene = guest_scene(true);
    step(&scene, plain(STATIC_EVENT_RESTART_ASKED), "compare_set end/0 restart");
    step(&scene, join_asked(1), "arm_timer at=900.000; add ready/1");
    step(&scene, plain(STATIC_EVENT_WAITED), "wait start/1; get end/0");
    step(&scene, value(STATIC_KEY_END, 0, "restart"), "");
    static_rendezvous_clear(&scene.rendezvous);
}

static void a_failure_is_written_wherever_others_may_look(void **state) {
    (void)state;
    struct scene scene = guest_scene(true);
    step(&scene, plain(STATIC_EVENT_FAILURE_ASKED),
        "compare_set gathered/0 failed 1; compare_set start/0 failed 1; "
        "compare_set end/0 failed 1; compare_set gathered/1 failed 1; "
        "compare_set start/1 failed 1; compare_set end/1 failed 1");
    step(&scene, plain(STATIC_EVENT_FAILURE_ASKED), "");
    step(&scene, join_asked(1), "join_failed the job is over");
    static_rendezvous_clear(&scene.rendezvous);
}

static void a_failure_elsewhere_is_told_in_every_phase(void **state) {
    (void)state;
    struct scene scene = guest_scene(true);
    step(&scene, plain(STATIC_EVENT_WAITED), "get end/0");
    step(&scene, value(STATIC_KEY_END, 0, "failed 0"), "peer_failed a node failed");
    step(&scene, plain(STATIC_EVENT_BARRIER_ASKED), "barrier_failed");
    static_rendezvous_clear(&scene.rendezvous);

    scene = guest_scene(true);
    step(&scene, plain(STATIC_EVENT_BARRIER_ASKED), "arm_timer at=300.000; add finished/0");
    step(&scene, plain(STATIC_EVENT_WAITED), "get end/0");
    step(&scene, value(STATIC_KEY_END, 0, "failed 0"), "disarm_timer; barrier_failed");
    static_rendezvous_clear(&scene.rendezvous);

    scene = host_scene(1);
    step(&scene, plain(STATIC_EVENT_WAITED), "get end/0");
    step(&scene, value(STATIC_KEY_END, 0, "restart"), "peer_restart attempt=1");
    step(&scene, join_asked(1), "arm_timer at=900.000; add ready/1; wait gathered/1");
    step(&scene, plain(STATIC_EVENT_WAITED), "get gathered/1");
    step(&scene, value(STATIC_KEY_GATHERED, 1, "failed 1"),
        "disarm_timer; peer_failed a node failed");
    static_rendezvous_clear(&scene.rendezvous);
}

static void the_exit_barrier_ends_with_the_last_node(void **state) {
    (void)state;
    struct scene scene = guest_scene(true);
    step(&scene, plain(STATIC_EVENT_BARRIER_ASKED), "arm_timer at=300.000; add finished/0");
    step(&scene, counted(STATIC_KEY_FINISHED, 0, 2), "compare_set end/0 done");
    step(&scene, plain(STATIC_EVENT_WAITED), "get end/0");
    step(&scene, value(STATIC_KEY_END, 0, "done"), "disarm_timer; barrier_passed");
    static_rendezvous_clear(&scene.rendezvous);
}

static void a_restart_calls_back_a_node_in_the_exit_barrier(void **state) {
    (void)state;
    struct scene scene = guest_scene(true);
    step(&scene, plain(STATIC_EVENT_BARRIER_ASKED), "arm_timer at=300.000; add finished/0");
    step(&scene, plain(STATIC_EVENT_WAITED), "get end/0");
    step(&scene, value(STATIC_KEY_END, 0, "restart"), "disarm_timer; peer_restart attempt=1");
    step(&scene, join_asked(1), "arm_timer at=900.000; add ready/1; wait start/1");
    static_rendezvous_clear(&scene.rendezvous);
}

static void a_node_that_waits_no_longer_rules_out_a_restart_but_not_a_success(void **state) {
    (void)state;
    struct scene scene = guest_scene(true);
    step(&scene, plain(STATIC_EVENT_BARRIER_ASKED), "arm_timer at=300.000; add finished/0");
    scene.seconds = 299;
    step(&scene, plain(STATIC_EVENT_TIMER_FIRED), "");
    scene.seconds = 300;
    step(&scene, plain(STATIC_EVENT_TIMER_FIRED),
        "compare_set gathered/1 failed 1; compare_set start/1 failed 1; "
        "compare_set end/1 failed 1; barrier_failed");
    static_rendezvous_clear(&scene.rendezvous);
}

static void a_join_has_its_deadline(void **state) {
    (void)state;
    struct scene scene = scene_new(1);
    step(&scene, join_asked(0), "arm_timer at=900.000; connect");
    step(&scene, plain(STATIC_EVENT_CONNECTED), "add init; set_role_info; wait assigned_ranks/1");
    scene.seconds = 900;
    step(&scene, plain(STATIC_EVENT_TIMER_FIRED), "join_failed not all nodes joined in time");
    step(&scene, plain(STATIC_EVENT_WAITED), "");
    static_rendezvous_clear(&scene.rendezvous);
}

static void a_lost_store_ends_what_needs_it(void **state) {
    (void)state;
    struct scene scene = scene_new(1);
    step(&scene, join_asked(0), "arm_timer at=900.000; connect");
    step(&scene, plain(STATIC_EVENT_CONNECTION_LOST),
        "disarm_timer; join_failed the store cannot be reached");
    static_rendezvous_clear(&scene.rendezvous);

    scene = guest_scene(true);
    step(&scene, plain(STATIC_EVENT_CONNECTION_LOST), "peer_failed the store is gone");
    static_rendezvous_clear(&scene.rendezvous);

    scene = guest_scene(true);
    step(&scene, plain(STATIC_EVENT_BARRIER_ASKED), "arm_timer at=300.000; add finished/0");
    step(&scene, plain(STATIC_EVENT_CONNECTION_LOST), "disarm_timer; barrier_failed");
    static_rendezvous_clear(&scene.rendezvous);
}

static void ranks_that_do_not_fit_this_node_are_refused(void **state) {
    (void)state;
    struct scene scene = scene_new(1);
    scene.rendezvous.settings.local_world_size = 4;
    step(&scene, join_asked(0), "arm_timer at=900.000; connect");
    step(&scene, plain(STATIC_EVENT_CONNECTED), "add init; set_role_info; wait assigned_ranks/1");
    step(&scene, plain(STATIC_EVENT_WAITED), "check coordinated; get_assignment");
    step(&scene, checked(false), "");
    step(
        &scene, assignment(1), "disarm_timer; join_failed the assigned ranks do not fit this node");
    static_rendezvous_clear(&scene.rendezvous);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_meet_as_torchruns_agents_do),
    cmocka_unit_test(agents_of_one_kind_coordinate),
    cmocka_unit_test(a_newer_kind_of_agent_is_not_coordinated_with),
    cmocka_unit_test(uniform_nodes_need_no_exchange),
    cmocka_unit_test(in_a_mixed_job_restarts_and_failures_stay_local),
    cmocka_unit_test(in_a_mixed_job_the_exit_barrier_is_torchruns),
    cmocka_unit_test(a_restart_waits_for_all_nodes_and_a_renewed_store),
    cmocka_unit_test(the_last_node_to_be_ready_says_so),
    cmocka_unit_test(a_late_answer_about_the_last_attempt_is_no_news),
    cmocka_unit_test(a_failure_is_written_wherever_others_may_look),
    cmocka_unit_test(a_failure_elsewhere_is_told_in_every_phase),
    cmocka_unit_test(the_exit_barrier_ends_with_the_last_node),
    cmocka_unit_test(a_restart_calls_back_a_node_in_the_exit_barrier),
    cmocka_unit_test(a_node_that_waits_no_longer_rules_out_a_restart_but_not_a_success),
    cmocka_unit_test(a_join_has_its_deadline),
    cmocka_unit_test(a_lost_store_ends_what_needs_it),
    cmocka_unit_test(ranks_that_do_not_fit_this_node_are_refused),
};

TEST_MAIN(tests)
