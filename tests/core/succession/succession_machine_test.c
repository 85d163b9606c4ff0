/* SPDX-License-Identifier: BSD-3-Clause */
#include "succession_scene.h"

#define LEFT "fenced the others have gone on without this node, which cannot reach them"
#define B "[a_1_1073741824:0 b_1_1073741824:1 c_1_1073741824:2]"

/* Node `me` follows a, in a committed world of a, b and c. */
static struct scene following(const char *me) {
    struct scene scene = scene_of(me);
    struct rendezvous_state record = world(4, "abc");
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record, "dial at=3.000");
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected");
    rendezvous_state_clear(&record);
    return scene;
}

static void find_nothing_new(struct scene *scene) {
    struct rendezvous_state record = world(4, "abc");
    entry_of(scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record, "");
    rendezvous_state_clear(&record);
}

/* Node a hosts term 1. */
static struct scene hosting(void) {
    struct scene scene = scene_of("a");
    seek(&scene, 60, "read_register");
    plain(&scene, SUCCESSION_EVENT_READ, "append claim 1 term 1: round 0 open [] wait [] spare []");
    plain(&scene, SUCCESSION_EVENT_WON, "host term 1; dial self at=3.000");
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected");
    return scene;
}

static char *commit_of(int64_t number, int64_t term, const struct rendezvous_state *record) {
    struct text text = {0};
    text_append_format(&text, "append commit %lld term %lld: ", (long long)number, (long long)term);
    rendezvous_state_describe(record, &text);
    return text_take(&text);
}

static void the_first_node_claims_the_first_term(void **state) {
    (void)state;
    struct scene scene = hosting();
    assert_int_equal(succession_machine_state(scene.machine), SUCCESSION_HOST);
    scene_clear(&scene);
}

static void a_node_that_comes_second_follows_who_was_first(void **state) {
    (void)state;
    struct scene scene = scene_of("b");
    struct rendezvous_state none = {0};
    seek(&scene, 60, "read_register");
    plain(&scene, SUCCESSION_EVENT_READ, "append claim 1 term 1: round 0 open [] wait [] spare []");
    entry_of(&scene, SUCCESSION_EVENT_LOST, 1, 1, "a", &none, "dial at=3.000");
    assert_int_equal(succession_machine_state(scene.machine), SUCCESSION_FOLLOW);
    scene_clear(&scene);
}

static void a_round_is_told_after_it_is_an_entry(void **state) {
    (void)state;
    struct scene scene = hosting();
    struct rendezvous_state open = {0};
    struct rendezvous_state whole = world(0, "abc");
    char *expected = commit_of(2, 1, &whole);
    seen(&scene, &open, "");
    seen(&scene, &whole, expected);
    seen(&scene, &whole, "");
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 0");
    seen(&scene, &whole, "");
    free(expected);
    rendezvous_state_clear(&whole);
    scene_clear(&scene);
}

static void a_closed_record_is_an_entry_too(void **state) {
    (void)state;
    struct scene scene = hosting();
    struct rendezvous_state closed = {.is_closed = true};
    char *expected = commit_of(2, 1, &closed);
    seen(&scene, &closed, expected);
    plain(&scene, SUCCESSION_EVENT_WON, "");
    free(expected);
    scene_clear(&scene);
}

static void a_round_that_comes_while_another_is_appended_is_appended_next(void **state) {
    (void)state;
    struct scene scene = hosting();
    struct rendezvous_state first = world(0, "abc");
    struct rendezvous_state second = world(1, "ab");
    char *appended = commit_of(2, 1, &first);
    char *then = commit_of(3, 1, &second);
    char *told = text_format("tell_committed 0; %s", then);
    seen(&scene, &first, appended);
    seen(&scene, &second, "");
    plain(&scene, SUCCESSION_EVENT_WON, told);
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 1");
    free(appended);
    free(then);
    free(told);
    rendezvous_state_clear(&first);
    rendezvous_state_clear(&second);
    scene_clear(&scene);
}

static void an_append_that_loses_deposes_the_host(void **state) {
    (void)state;
    struct scene scene = hosting();
    struct rendezvous_state alone = world(1, "a");
    struct rendezvous_state others = world(1, "bc");
    char *expected = commit_of(2, 1, &alone);
    seen(&scene, &alone, expected);
    entry_of(&scene, SUCCESSION_EVENT_LOST, 2, 2, "b", &others, "end_hosting; tell_lost; " LEFT);
    assert_int_equal(succession_machine_state(scene.machine), SUCCESSION_FOLLOW);
    seek(&scene, 60, "dial at=3.000");
    free(expected);
    rendezvous_state_clear(&alone);
    rendezvous_state_clear(&others);
    scene_clear(&scene);
}

static void an_append_whose_reply_was_lost_is_found_to_be_won(void **state) {
    (void)state;
    struct scene scene = hosting();
    struct rendezvous_state whole = world(0, "abc");
    char *expected = commit_of(2, 1, &whole);
    seen(&scene, &whole, expected);
    plain(&scene, SUCCESSION_EVENT_UNKNOWN, "");
    scene.seconds = 0.25;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 2, 1, "a", &whole, "tell_committed 0");
    free(expected);
    rendezvous_state_clear(&whole);
    scene_clear(&scene);
}

static void an_append_that_may_still_happen_is_made_again(void **state) {
    (void)state;
    struct scene scene = hosting();
    struct rendezvous_state none = {0};
    struct rendezvous_state whole = world(0, "abc");
    char *expected = commit_of(2, 1, &whole);
    seen(&scene, &whole, expected);
    plain(&scene, SUCCESSION_EVENT_UNKNOWN, "");
    scene.seconds = 0.25;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 1, 1, "a", &none, expected);
    free(expected);
    rendezvous_state_clear(&whole);
    scene_clear(&scene);
}

static void the_next_rank_claims_a_host_that_is_refused_when_it_has_read(void **state) {
    (void)state;
    struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000; read_register");
    find_nothing_new(&scene);
    lose(&scene, SUCCESSION_LOSS_REFUSED,
        "append claim 8 term 2: round 4 complete " B " wait [] spare []");
    scene_clear(&scene);
}

static void the_next_rank_claims_a_host_that_is_refused_at_once(void **state) {
    (void)state;
    struct scene scene = following("b");
    struct rendezvous_state record = world(4, "abc");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000; read_register");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record,
        "append claim 8 term 2: round 4 complete " B " wait [] spare []");
    assert_int_equal(succession_machine_state(scene.machine), SUCCESSION_CLAIM);
    plain(&scene, SUCCESSION_EVENT_WON, "host term 2; dial self at=3.000");
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected; tell_committed 4");
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

/* Whether another node hosts by now, it asks when that can be, and claims itself where none does.
 */
static void a_later_rank_waits_for_its_turn(void **state) {
    (void)state;
    struct scene scene = following("c");
    struct rendezvous_state record = world(4, "abc");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000");
    scene.seconds = 0.005;
    lose(&scene, SUCCESSION_LOSS_REFUSED, "");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "");
    scene.seconds = 0.025;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 8, 2, "b", &record, "dial at=3.025");
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected");
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

static void a_node_that_waits_looks_after_each_turn(void **state) {
    (void)state;
    struct scene scene = scene_of("d");
    struct rendezvous_state record = world(4, "abcd");
    char *commit = commit_of(8, 2, &record);
    char *claim = text_format("append claim%s", commit + strlen("append commit"));
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record, "dial at=3.000");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "");
    for (int turn = 1; turn <= 2; turn++) {
        scene.seconds = 0.02 * turn;
        plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
        entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record, turn < 2 ? "" : claim);
    }
    free(commit);
    free(claim);
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

/* It has not read since the host has committed a world. */
static void a_node_claims_in_the_order_of_the_world_that_it_has_seen(void **state) {
    (void)state;
    struct scene scene = scene_of("c");
    struct rendezvous_state none = {0};
    struct rendezvous_state record = world(0, "abc");
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 1, 1, "a", &none, "dial at=3.000");
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected");
    seen(&scene, &record, "");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

static void a_host_that_neither_answers_nor_refuses_soon_is_asked_for_in_the_register(
    void **state) {
    (void)state;
    struct scene scene = following("c");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    scene_clear(&scene);
}

static void a_successor_that_dies_is_succeeded(void **state) {
    (void)state;
    struct scene scene = following("c");
    struct rendezvous_state record = world(4, "abc");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 8, 2, "b", &record, "dial at=3.020");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "");
    scene.seconds = 0.04;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 8, 2, "b", &record,
        "append claim 9 term 3: round 4 complete " B " wait [] spare []");
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

static struct succession_event renewal(const char *text) {
    return (struct succession_event){.kind = SUCCESSION_EVENT_RENEWAL, .renewal = text};
}

static void a_silent_host_is_claimed_when_its_renewal_stands_still(void **state) {
    (void)state;
    struct scene scene = following("b");
    struct rendezvous_state record = world(4, "abc");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=3.000; read_register");
    find_nothing_new(&scene);
    step(&scene, renewal("1"), "");
    scene.seconds = 1;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "look_at_renewal term 1; read_register");
    find_nothing_new(&scene);
    step(&scene, renewal("2"), "");
    scene.seconds = 3;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "look_at_renewal term 1; read_register");
    find_nothing_new(&scene);
    step(&scene, renewal("2"), "");
    lose(&scene, SUCCESSION_LOSS_SILENT, "dial at=6.000");
    scene.seconds = 3.5;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "look_at_renewal term 1; read_register");
    find_nothing_new(&scene);
    step(&scene, renewal("2"), "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record,
        "append claim 8 term 2: round 4 complete " B " wait [] spare []");
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

static void doubt(struct scene *scene, bool is_doubted, const char *expected) {
    step(scene,
        (struct succession_event){.kind = SUCCESSION_EVENT_DOUBTED, .is_doubted = is_doubted},
        expected);
}

/* By the time the connection is taken for lost, the renewal has stood still. */
static void a_silent_host_is_looked_at_before_its_connection_is_lost(void **state) {
    (void)state;
    struct scene scene = following("b");
    struct rendezvous_state record = world(4, "abc");
    doubt(&scene, true, "look_at_renewal term 1; read_register");
    step(&scene, renewal("1"), "");
    find_nothing_new(&scene);
    scene.seconds = 2.5;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "look_at_renewal term 1");
    step(&scene, renewal("1"), "");
    scene.seconds = 2.6;
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record,
        "append claim 8 term 2: round 4 complete " B " wait [] spare []");
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

static void a_host_that_is_heard_again_is_looked_at_no_more(void **state) {
    (void)state;
    struct scene scene = following("b");
    doubt(&scene, true, "look_at_renewal term 1; read_register");
    step(&scene, renewal("1"), "");
    find_nothing_new(&scene);
    doubt(&scene, false, "");
    scene.seconds = 5;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "");
    doubt(&scene, true, "look_at_renewal term 1; read_register");
    step(&scene, renewal("1"), "");
    find_nothing_new(&scene);
    scene.seconds = 5.1;
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost");
    scene_clear(&scene);
}

static void a_host_does_not_doubt_itself(void **state) {
    (void)state;
    struct scene scene = hosting();
    doubt(&scene, true, "");
    scene_clear(&scene);
}

static void a_silent_host_that_commits_is_there(void **state) {
    (void)state;
    struct scene scene = following("b");
    struct rendezvous_state record = world(4, "abc");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=3.000; read_register");
    find_nothing_new(&scene);
    step(&scene, renewal("1"), "");
    scene.seconds = 3;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "look_at_renewal term 1; read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 8, 1, "a", &record, "");
    step(&scene, renewal("1"), "");
    scene.seconds = 5;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "look_at_renewal term 1; read_register");
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

static void a_refused_host_that_has_committed_is_claimed_all_the_same(void **state) {
    (void)state;
    struct scene scene = following("b");
    struct rendezvous_state record = world(4, "abc");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000; read_register");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "");
    entry_of(&scene, SUCCESSION_EVENT_READ, 9, 1, "a", &record,
        "append claim 10 term 2: round 4 complete " B " wait [] spare []");
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

static void a_node_that_alone_has_lost_the_host_does_not_depose_it(void **state) {
    (void)state;
    struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=3.000; read_register");
    find_nothing_new(&scene);
    for (int second = 0; second < 50; second++) {
        char text[16];
        scene.seconds = second;
        snprintf(text, sizeof text, "%d", second);
        step(&scene, renewal(text), "");
        scene.seconds = second + 1;
        plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "look_at_renewal term 1; read_register");
        find_nothing_new(&scene);
    }
    assert_int_equal(succession_machine_state(scene.machine), SUCCESSION_SUSPECT);
    scene_clear(&scene);
}

static void nobody_claims_while_the_register_is_away(void **state) {
    (void)state;
    struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=3.000; read_register");
    find_nothing_new(&scene);
    step(&scene, renewal("1"), "");
    scene.seconds = 2.9;
    step(&scene, renewal(NULL), "");
    scene.seconds = 3.5;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "look_at_renewal term 1; read_register");
    scene_clear(&scene);
}

static void a_node_that_hears_of_nobody_ends_its_workers(void **state) {
    (void)state;
    struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=3.000; read_register");
    find_nothing_new(&scene);
    scene.seconds = 10;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED,
        "fenced neither the host of the job's store nor its "
        "register was heard of for fence_timeout");
    scene.seconds = 60;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "gave_up no node hosts the job's store");
    scene_clear(&scene);
}

static void a_silent_node_that_was_left_behind_ends_its_workers(void **state) {
    (void)state;
    struct scene scene = following("b");
    struct rendezvous_state others = world(5, "ac");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=3.000; read_register");
    find_nothing_new(&scene);
    lose(&scene, SUCCESSION_LOSS_REFUSED, "read_register");
    lose(&scene, SUCCESSION_LOSS_SILENT, "look_at_renewal term 1; dial at=3.000");
    entry_of(&scene, SUCCESSION_EVENT_READ, 8, 1, "a", &others, LEFT);
    rendezvous_state_clear(&others);
    scene_clear(&scene);
}

static void a_host_renews_its_term_and_reads_when_it_has_stood_still(void **state) {
    (void)state;
    struct scene scene = hosting();
    struct rendezvous_state others = world(1, "bc");
    struct rendezvous_state whole = world(0, "abc");
    char *expected = commit_of(2, 1, &whole);
    seen(&scene, &whole, expected);
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 0");
    free(expected);
    scene.seconds = RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "renew term 1");
    plain(&scene, SUCCESSION_EVENT_RENEWED, "");
    scene.seconds = 8;
    seen(&scene, &whole, "");
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register; renew term 1");
    entry_of(&scene, SUCCESSION_EVENT_READ, 3, 2, "b", &others, "end_hosting; tell_lost; " LEFT);
    rendezvous_state_clear(&others);
    rendezvous_state_clear(&whole);
    scene_clear(&scene);
}

static void a_host_whose_round_stays_open_looks_whether_it_is_deposed(void **state) {
    (void)state;
    struct scene scene = hosting();
    struct rendezvous_state open = {.round = 1};
    seen(&scene, &open, "");
    scene.seconds = RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register; renew term 1");
    scene_clear(&scene);
}

/* A dial that has no time left ends at once: another one after it would have none either. */
static void a_dial_that_ends_at_the_deadline_is_the_last_one(void **state) {
    (void)state;
    struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 2, "dial at=2.000; read_register");
    find_nothing_new(&scene);
    scene.seconds = 2;
    lose(&scene, SUCCESSION_LOSS_SILENT, "gave_up no node hosts the job's store");
    scene_clear(&scene);
}

/* Any event may come just before the timer, which is armed anew after each of them. */
static void an_event_at_the_moment_of_the_timer_does_not_lose_it(void **state) {
    (void)state;
    struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=3.000; read_register");
    find_nothing_new(&scene);
    scene.seconds = 1;
    step(&scene, renewal("1"), "");
    assert_true(scene.timer.is_set);
    assert_true(scene.timer.at.nanoseconds <= INT64_C(1000000000));
    scene_clear(&scene);
}

/* The host has ended, and another process was started at its address. */
static void an_address_at_which_somebody_else_listens_is_suspicious(void **state) {
    (void)state;
    struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000; read_register");
    lose(&scene, SUCCESSION_LOSS_OTHER, "look_at_renewal term 1");
    assert_int_equal(succession_machine_state(scene.machine), SUCCESSION_SUSPECT);
    scene_clear(&scene);
}

static void a_host_looks_now_and_then_whether_its_term_is_over(void **state) {
    (void)state;
    struct scene scene = hosting();
    struct rendezvous_state whole = world(0, "abc");
    char *expected = commit_of(2, 1, &whole);
    seen(&scene, &whole, expected);
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 0");
    free(expected);
    for (int i = 1; i < 8; i++) {
        scene.seconds = i * RENEWAL;
        plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "renew term 1");
        plain(&scene, SUCCESSION_EVENT_RENEWED, "");
    }
    scene.seconds = 8 * RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register; renew term 1");
    rendezvous_state_clear(&whole);
    scene_clear(&scene);
}

static void a_host_whose_renewal_is_not_answered_looks_whether_it_is_deposed(void **state) {
    (void)state;
    struct scene scene = hosting();
    struct rendezvous_state whole = world(0, "abc");
    char *expected = commit_of(2, 1, &whole);
    seen(&scene, &whole, expected);
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 0");
    free(expected);
    scene.seconds = RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "renew term 1");
    scene.seconds = 2 * RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register; renew term 1");
    rendezvous_state_clear(&whole);
    scene_clear(&scene);
}

static void a_node_named_by_an_entry_hosts(void **state) {
    (void)state;
    struct scene scene = following("b");
    struct rendezvous_state record = world(5, "bc");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000; read_register");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "");
    entry_of(&scene, SUCCESSION_EVENT_READ, 8, 2, "b", &record, "host term 2; dial self at=3.000");
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

static void all_nodes_started_again_go_on_from_the_last_entry(void **state) {
    (void)state;
    struct scene scene = scene_of("d");
    struct rendezvous_state record = world(4, "abc");
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 3, "a", &record, "dial at=3.000");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 3, "a", &record, "");
    scene.seconds = 0.04;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 3, "a", &record,
        "append claim 8 term 4: round 4 complete " B " wait [] spare []");
    rendezvous_state_clear(&record);
    scene_clear(&scene);
}

static void a_register_that_cannot_be_used_is_given_up(void **state) {
    (void)state;
    struct scene scene = scene_of("b");
    seek(&scene, 60, "read_register");
    step(&scene,
        (struct succession_event){
            .kind = SUCCESSION_EVENT_FAILED, .failed = {"permission denied", true}},
        "gave_up permission denied");
    scene_clear(&scene);
}

static void a_register_that_is_away_is_asked_again(void **state) {
    (void)state;
    struct scene scene = scene_of("b");
    seek(&scene, 60, "read_register");
    step(&scene,
        (struct succession_event){.kind = SUCCESSION_EVENT_FAILED, .failed = {"no quorum", false}},
        "");
    scene.seconds = 0.25;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    scene_clear(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_node_claims_the_first_term),
    cmocka_unit_test(a_node_that_comes_second_follows_who_was_first),
    cmocka_unit_test(a_round_is_told_after_it_is_an_entry),
    cmocka_unit_test(a_closed_record_is_an_entry_too),
    cmocka_unit_test(a_round_that_comes_while_another_is_appended_is_appended_next),
    cmocka_unit_test(an_append_that_loses_deposes_the_host),
    cmocka_unit_test(an_append_whose_reply_was_lost_is_found_to_be_won),
    cmocka_unit_test(an_append_that_may_still_happen_is_made_again),
    cmocka_unit_test(the_next_rank_claims_a_host_that_is_refused_at_once),
    cmocka_unit_test(the_next_rank_claims_a_host_that_is_refused_when_it_has_read),
    cmocka_unit_test(a_later_rank_waits_for_its_turn),
    cmocka_unit_test(a_node_that_waits_looks_after_each_turn),
    cmocka_unit_test(a_node_claims_in_the_order_of_the_world_that_it_has_seen),
    cmocka_unit_test(a_host_that_neither_answers_nor_refuses_soon_is_asked_for_in_the_register),
    cmocka_unit_test(a_successor_that_dies_is_succeeded),
    cmocka_unit_test(a_silent_host_is_claimed_when_its_renewal_stands_still),
    cmocka_unit_test(a_silent_host_is_looked_at_before_its_connection_is_lost),
    cmocka_unit_test(a_host_that_is_heard_again_is_looked_at_no_more),
    cmocka_unit_test(a_host_does_not_doubt_itself),
    cmocka_unit_test(a_silent_host_that_commits_is_there),
    cmocka_unit_test(a_refused_host_that_has_committed_is_claimed_all_the_same),
    cmocka_unit_test(a_node_that_alone_has_lost_the_host_does_not_depose_it),
    cmocka_unit_test(nobody_claims_while_the_register_is_away),
    cmocka_unit_test(a_node_that_hears_of_nobody_ends_its_workers),
    cmocka_unit_test(a_silent_node_that_was_left_behind_ends_its_workers),
    cmocka_unit_test(a_host_renews_its_term_and_reads_when_it_has_stood_still),
    cmocka_unit_test(a_host_whose_round_stays_open_looks_whether_it_is_deposed),
    cmocka_unit_test(a_dial_that_ends_at_the_deadline_is_the_last_one),
    cmocka_unit_test(an_event_at_the_moment_of_the_timer_does_not_lose_it),
    cmocka_unit_test(an_address_at_which_somebody_else_listens_is_suspicious),
    cmocka_unit_test(a_host_looks_now_and_then_whether_its_term_is_over),
    cmocka_unit_test(a_host_whose_renewal_is_not_answered_looks_whether_it_is_deposed),
    cmocka_unit_test(a_node_named_by_an_entry_hosts),
    cmocka_unit_test(all_nodes_started_again_go_on_from_the_last_entry),
    cmocka_unit_test(a_register_that_cannot_be_used_is_given_up),
    cmocka_unit_test(a_register_that_is_away_is_asked_again),
};

TEST_MAIN(tests)
