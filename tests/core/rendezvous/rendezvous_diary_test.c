/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_step.h"
#include "core/rendezvous/rendezvous_transcript.h"
#include "rendezvous_fixture.h"

#define ME "me_1_1073741824"

/* The machine of a node, which takes no step in these tests, and the records of the diary as text:
 * "method: message; …". */
struct scene {
    struct rendezvous_machine *machine;
    struct rendezvous_diary diary;
    struct text story;
    struct event_rendezvous last; /* without its strings */
    struct rendezvous_state after;
};

static void remember(void *context, const struct event_rendezvous *record) {
    struct scene *scene = context;
    assert_string_equal(record->run_id, "job");
    assert_string_equal(record->host_name, "me");
    assert_int_equal(record->pid, 1);
    assert_true((record->state == EVENT_NODE_FAILED) == (*record->trouble != '\0'));
    text_append_format(&scene->story, "%s%s %s: %s", scene->story.length > 0 ? "; " : "",
        event_node_state_name(record->state), strrchr(record->name, '.') + 1, record->message);
    scene->last = *record;
}

static int make_scene(void **state) {
    struct scene *scene = calloc(1, sizeof *scene);
    struct rendezvous_machine_settings settings = {
        .rendezvous = sized(1, 3), .identity = muster_node("me")};
    scene->machine = rendezvous_machine_new(&settings);
    scene->diary = (struct rendezvous_diary){.run_id = "job", .record = remember, .context = scene};
    *state = scene;
    return 0;
}

static int drop_scene(void **state) {
    struct scene *scene = *state;
    rendezvous_machine_free(scene->machine);
    rendezvous_diary_clear(&scene->diary);
    rendezvous_state_clear(&scene->after);
    text_clear(&scene->story);
    free(scene);
    return 0;
}

static void take(struct scene *scene, struct rendezvous_event event) {
    rendezvous_diary_take(&scene->diary, scene->machine, &event);
}

static void follow(struct scene *scene, struct rendezvous_effect effect) {
    rendezvous_diary_follow(&scene->diary, scene->machine, &effect);
}

/* Shows the record to the machine. The effects of the machine are not carried out. */
static void see(struct scene *scene, const struct rendezvous_state *record) {
    struct rendezvous_effects effects;
    const struct rendezvous_event events[] = {
        {.kind = RENDEZVOUS_EVENT_JOIN_ASKED},
        {.kind = RENDEZVOUS_EVENT_CONNECTED},
        {.kind = RENDEZVOUS_EVENT_RECORD, .state = record},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        rendezvous_machine_step(scene->machine, &events[i], &effects);
    }
}

static void write_after(struct scene *scene) {
    follow(scene, (struct rendezvous_effect){
                      .kind = RENDEZVOUS_EFFECT_WRITE, .write = {.state = &scene->after}});
}

static void written(struct scene *scene, bool has_won) {
    take(scene, (struct rendezvous_event){
                    .kind = RENDEZVOUS_EVENT_WRITTEN, .written = {.has_won = has_won}});
}

static void expect(struct scene *scene, const char *story) {
    assert_string_equal(text_string(&scene->story), story);
    text_clear(&scene->story);
}

#define SYNCED                                                                                     \
    "RUNNING run: The node '" ME                                                                   \
    "' has successfully synced its local changes with other nodes in "                             \
    "the rendezvous 'job'."
#define KEEP_ALIVE                                                                                 \
    "RUNNING _keep_alive: The node '" ME "' updated its keep-alive heartbeat time for the "        \
    "rendezvous 'job'. Pending sync."

static void joining_is_told_step_by_step(void **state) {
    struct scene *scene = *state;
    take(scene, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_JOIN_ASKED});
    expect(scene, "RUNNING next_rendezvous: The node '" ME
                  "' attempts to join the next round of the rendezvous 'job'.");
    assert_true(scene->last.has_local_id && scene->last.local_id == 1073741824);
    struct rendezvous_node *mine = place(&scene->after, muster_node("me"));
    mine->is_participant = true;
    mine->heartbeat = wall_seconds(7);
    scene->after.is_complete = true;
    write_after(scene);
    expect(scene,
        "RUNNING _add_to_participants: The node '" ME
        "' added itself to the participants of round 0 of the rendezvous 'job'. Pending sync."
        "; " KEEP_ALIVE "; SUCCEEDED _mark_rendezvous_complete: The node '" ME
        "' marked round 0 of the rendezvous 'job' as complete. Pending sync.");
    written(scene, true);
    expect(scene, SYNCED);
    follow(scene, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WORLD,
                      .world = {.round = 0, .group_rank = 1, .node_count = 2}});
    expect(scene, "RUNNING next_rendezvous: The node '" ME
                  "' has joined round 0 of the rendezvous 'job' as rank 1 in a world of size 2.");
    assert_true(scene->last.has_rank && scene->last.rank == 1);
}

static void each_list_has_its_words(void **state) {
    struct scene *scene = *state;
    struct rendezvous_state before = {.round = 3, .is_complete = true};
    place(&before, muster_node("a"))->is_participant = true;
    see(scene, &before);
    rendezvous_state_copy(&before, &scene->after);
    struct rendezvous_node *mine = place(&scene->after, muster_node("me"));
    mine->is_waiting = true;
    write_after(scene);
    expect(scene, "RUNNING _add_to_wait_list: The node '" ME "' added itself to the wait list of "
                  "round 4 of the rendezvous 'job'. Pending sync.; " KEEP_ALIVE);
    mine->is_waiting = false;
    mine->is_redundant = true;
    write_after(scene);
    expect(scene, "RUNNING _add_to_redundancy_list: The node '" ME "' added itself to the "
                  "redundancy list of round 4 of the rendezvous 'job'. Pending sync.; " KEEP_ALIVE);
    rendezvous_state_clear(&before);
}

static void leaving_a_list_has_its_words(void **state) {
    struct scene *scene = *state;
    struct rendezvous_state before = {.round = 3, .is_complete = true};
    place(&before, muster_node("a"))->is_participant = true;
    rendezvous_state_copy(&before, &scene->after);
    place(&before, muster_node("me"))->is_redundant = true;
    see(scene, &before);
    write_after(scene);
    expect(scene, "RUNNING _remove_from_redundancy_list: The node '" ME "' removed itself from the "
                  "redundant list of round 4 of the rendezvous 'job'. Pending sync.");
    written(scene, false);
    expect(scene, "RUNNING run: The node '" ME "' has a stale state and failed to sync its local "
                  "changes with other nodes in the rendezvous 'job'.");
    rendezvous_state_clear(&before);
}

static void a_lost_node_is_told_once_it_is_out_of_the_record(void **state) {
    struct scene *scene = *state;
    struct rendezvous_state before = {.round = 3, .is_complete = true};
    place(&before, muster_node("a"))->is_participant = true;
    place(&before, muster_node("b"))->is_participant = true;
    place(&before, muster_node("me"))->is_participant = true;
    see(scene, &before);
    place(&scene->after, muster_node("me"))->is_participant = true;
    scene->after.round = 4;
    write_after(scene);
    expect(scene, "RUNNING _add_to_participants: The node '" ME "' added itself to the "
                  "participants of round 4 of the rendezvous 'job'. Pending sync.");
    written(scene, true);
    expect(scene, "RUNNING sync: As part of the sync operation the node(s) 'a_1_1073741824', "
                  "'b_1_1073741824' have been removed from the rendezvous 'job' since they are "
                  "gone.; " SYNCED);
    written(scene, true);
    expect(scene, ""); /* torchrun gives no record of it */
    rendezvous_state_clear(&before);
}

static void beats_are_told_and_a_connection_that_ends(void **state) {
    struct scene *scene = *state;
    const struct rendezvous_event lost = {.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
        .lost = {.reason = "no answer", .is_silent = true}};
    take(scene, lost);
    expect(scene, ""); /* the connection was never open */
    take(scene, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED});
    follow(scene, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_BEAT});
    expect(scene, "RUNNING _keep_alive: The node '" ME
                  "' has sent a keep-alive heartbeat to the rendezvous 'job'.");
    take(scene, lost);
    expect(scene, "FAILED _keep_alive: The node '" ME "' has failed to send a keep-alive heartbeat "
                  "to the rendezvous 'job' due to an error of type RendezvousConnectionError.");
}

static void closing_is_told_when_it_has_come_about_or_failed(void **state) {
    struct scene *scene = *state;
    const struct rendezvous_effect settled = {.kind = RENDEZVOUS_EFFECT_SETTLED};
    struct rendezvous_state closed = {.is_closed = true};
    follow(scene, settled);
    expect(scene, ""); /* the node has left */
    take(scene, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CLOSE_ASKED, .reason = ""});
    scene->after.is_closed = true;
    write_after(scene);
    expect(scene, "SUCCEEDED _mark_rendezvous_closed: The node '" ME
                  "' marked the rendezvous 'job' as closed. Pending sync.");
    follow(scene, settled);
    expect(scene, "FAILED shutdown: The node '" ME "' has failed to shutdown the rendezvous 'job' "
                  "due to an error of type RendezvousConnectionError.");
    see(scene, &closed);
    follow(scene, settled);
    expect(scene, "SUCCEEDED _close: The node '" ME "' has closed the rendezvous 'job'.");
}

static void a_failure_is_told_where_torchruns_node_would_meet_it(void **state) {
    struct scene *scene = *state;
    const struct rendezvous_effect failed = {
        .kind = RENDEZVOUS_EFFECT_FAILED, .told = {.reason = "too late"}};
    rendezvous_diary_attempt(&scene->diary, rendezvous_machine_identity(scene->machine));
    text_clear(&scene->story);
    follow(scene, failed);
    expect(scene, "FAILED next_rendezvous: RendezvousConnectionError: too late");
    take(scene, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED});
    follow(scene, failed);
    expect(scene, "FAILED num_nodes_waiting: RendezvousError: too late");
    follow(scene,
        (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CLOSED, .told = {.reason = "done"}});
    expect(scene, ""); /* the workers may finish */
}

static void a_store_is_told_by_who_hosts_it_or_cannot(void **state) {
    struct scene *scene = *state;
    struct node_identity me = muster_node("me");
    rendezvous_diary_host(&scene->diary, &me);
    expect(scene, "INIT py:_create_tcp_store: Process 1 hosts the TCP store for the C10d "
                  "rendezvous backend.");
    assert_false(scene->last.has_local_id);
    rendezvous_diary_fail_to_host(&scene->diary, &me, "the port is taken");
    expect(scene, "FAILED py:create_backend: RendezvousConnectionError: the port is taken");
}

static void nobody_is_told_where_nobody_listens(void **state) {
    struct scene *scene = *state;
    struct node_identity me = muster_node("me");
    scene->diary.record = NULL;
    take(scene, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_JOIN_ASKED});
    follow(scene, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_BEAT});
    rendezvous_diary_attempt(&scene->diary, &me);
    rendezvous_diary_join(&scene->diary, &me, 0, 0, 1);
    rendezvous_diary_close(&scene->diary, &me, true);
    expect(scene, "");
}

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, make_scene, drop_scene)

static const struct CMUnitTest tests[] = {
    SCENE_TEST(joining_is_told_step_by_step),
    SCENE_TEST(each_list_has_its_words),
    SCENE_TEST(leaving_a_list_has_its_words),
    SCENE_TEST(a_lost_node_is_told_once_it_is_out_of_the_record),
    SCENE_TEST(beats_are_told_and_a_connection_that_ends),
    SCENE_TEST(closing_is_told_when_it_has_come_about_or_failed),
    SCENE_TEST(a_failure_is_told_where_torchruns_node_would_meet_it),
    SCENE_TEST(a_store_is_told_by_who_hosts_it_or_cannot),
    SCENE_TEST(nobody_is_told_where_nobody_listens),
};

UNIT_TESTS(tests)
