/* SPDX-License-Identifier: BSD-3-Clause */
#include "succession_hosts.h"

#define NOBODY_SINCE RENEWAL

static void see_and_win(struct scene *scene, int64_t round, const char *names, const char *done) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(round, names);
    struct succession_event event = {.kind = SUCCESSION_EVENT_SEEN, .record = &record};
    struct succession_effects effects;
    for (size_t i = 0; i < record.count; i++) {
        record.nodes[i].is_done = strchr(done, record.nodes[i].identity.address[0]) != NULL;
    }
    event.now = scene_at(scene->seconds);
    succession_machine_step(scene->machine, &event, &effects);
    assert_int_equal(effects.items[0].kind, SUCCESSION_EFFECT_APPEND);
    event.kind = SUCCESSION_EVENT_WON;
    succession_machine_step(scene->machine, &event, &effects);
    assert_int_equal(effects.items[0].kind, SUCCESSION_EFFECT_TELL_COMMITTED);
}

/* Node a hosts term 1, and has committed a world of these. */
static struct scene hosting_world(const char *names) {
    struct scene scene = hosting();
    see_and_win(&scene, 0, names, "");
    return scene;
}

static void miss(struct scene *scene, const char *name) {
    step(scene,
        (struct succession_event){.kind = SUCCESSION_EVENT_NODE_SILENT, .silent = node(name)}, "");
}

static void see_world(struct scene *scene, const char *names, const char *expected) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(1, names);
    seen(scene, &record, expected);
}

/* Of four nodes two were lost, and went on being missed; and now node a is done, so that of those
 * who could claim, most are missing. */
static struct scene outnumbered_at_the_end(void) {
    struct scene scene = hosting_world("abc");
    see_and_win(&scene, 1, "abcd", "");
    miss(&scene, "b");
    miss(&scene, "c");
    see_and_win(&scene, 2, "ad", "");
    see_and_win(&scene, 2, "ad", "a");
    return scene;
}

static void end_round(struct scene *scene, int64_t round, bool has_failed, const char *expected) {
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(round, "ad");
    record.nodes[0].is_done = true;
    record.is_closed = true;
    record.has_failed = has_failed;
    seen(scene, &record, expected);
}

/* Nobody of the committed world can be in a later one. So nothing is taken from who is missing. */
TEST(an_outnumbered_host_appends_the_good_end_of_the_committed_world) {
    CLEARED_BY(scene_clear) struct scene scene = outnumbered_at_the_end();
    end_round(&scene, 2, false,
        "append commit 6 term 1: round 2 complete [a_1_1073741824:0:done d_1_1073741824:1] wait [] "
        "spare [] closed");
}

TEST(an_outnumbered_host_appends_no_other_end) {
    CLEARED_BY(scene_clear) struct scene scene = outnumbered_at_the_end();
    end_round(&scene, 2, true, "");
    end_round(&scene, 3, false, "");
}

/* Whoever could be let in would end a world for one that cannot be committed. */
TEST(a_host_tells_when_its_register_takes_nothing) {
    CLEARED_BY(scene_clear) struct scene scene = hosting_world("abc");
    struct succession_event refused = {.kind = SUCCESSION_EVENT_RENEWED, .is_refused = true};
    scene.seconds = RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "renew term 1");
    step(&scene, refused, "tell_register stuck");
    scene.seconds = 2 * RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register; renew term 1");
    step(&scene, refused, "");
    plain(&scene, SUCCESSION_EVENT_RENEWED, "tell_register well");
    plain(&scene, SUCCESSION_EVENT_RENEWED, "");
}

/* They cannot be together and the host alone. */
TEST(nodes_of_the_hosts_own_machine_that_are_missing_are_dead) {
    CLEARED_BY(scene_clear) struct scene scene = hosting_world("abc");
    struct node_identity here = node("a");
    struct rendezvous_state record = {.round = 1, .is_complete = true};
    for (int rank = 0; rank < 3; rank++) {
        here.process.low = (uint64_t)rank;
        here.local_id += rank > 0 ? 1 : 0;
        struct rendezvous_node *added = rendezvous_state_obtain(&record, &here);
        added->is_participant = true;
        added->rank = rank;
    }
    seen(&scene, &record,
        "append commit 3 term 1: round 1 complete [a_1_1073741824:0 a_1_1073741825:1 "
        "a_1_1073741826:2] wait [] spare []");
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 1");
    for (int rank = 1; rank < 3; rank++) {
        step(&scene,
            (struct succession_event){
                .kind = SUCCESSION_EVENT_NODE_SILENT, .silent = record.nodes[rank].identity},
            "");
    }
    scene.seconds = RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "renew term 1");
    rendezvous_state_clear(&record);
}

TEST(a_world_without_most_of_the_former_one_waits_for_their_claim) {
    CLEARED_BY(scene_clear) struct scene scene = hosting_world("abc");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(0, "abc");
    scene.seconds = NOBODY_SINCE;
    miss(&scene, "b");
    miss(&scene, "c");
    see_world(&scene, "a", "");
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 2, 1, "a", &record, "");
    scene.seconds = NOBODY_SINCE + 9.9;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 2, 1, "a", &record, "");
    assert_true(scene.timer.at.nanoseconds == scene_at(NOBODY_SINCE + 10).nanoseconds);
    scene.seconds = NOBODY_SINCE + 10;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED,
        "append commit 3 term 1: round 1 complete [a_1_1073741824:0] wait [] spare []");
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 1");
    scene.seconds = NOBODY_SINCE + 9.9 + RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "renew term 1");
}

/* The store's next host waits for neither. */
TEST(hosts_that_have_committed_nothing_are_known_to_be_gone) {
    CLEARED_BY(scene_clear) struct scene scene = scene_of("c");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(0, "abc");
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 2, 1, "a", &record, "dial at=3.000");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "watch_register after 2");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 3, 2, "b", &record, "dial at=3.020");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "watch_register after 3");
    scene.seconds = 0.04;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 3, 2, "b", &record,
        "append claim 4 term 3: round 0 complete [a_1_1073741824:0 b_1_1073741824:1 "
        "c_1_1073741824:2] wait [] spare []");
    plain(&scene, SUCCESSION_EVENT_WON, "host term 3 after a; dial self at=3.040");
}

/* An append of which nothing is known may take effect after it was tried again in vain. What this
 * node would append by then is another round. */
TEST(an_entry_of_this_node_commits_what_it_says) {
    CLEARED_BY(scene_clear) struct scene scene = hosting_world("abc");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state first = world(0, "abc");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state second = world(1, "abc");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state third = world(2, "abc");
    const char *append_second = "append commit 3 term 1: round 1 complete [a_1_1073741824:0 "
                                "b_1_1073741824:1 c_1_1073741824:2] wait [] spare []";
    seen(&scene, &second, append_second);
    plain(&scene, SUCCESSION_EVENT_UNKNOWN, "");
    scene.seconds = 0.25;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 2, 1, "a", &first, append_second);
    step(&scene,
        (struct succession_event){
            .kind = SUCCESSION_EVENT_FAILED, .failed = {.reason = "no answer"}},
        "");
    seen(&scene, &third,
        "append commit 3 term 1: round 2 complete [a_1_1073741824:0 b_1_1073741824:1 "
        "c_1_1073741824:2] wait [] spare []");
    plain(&scene, SUCCESSION_EVENT_UNKNOWN, "");
    scene.seconds = 0.75;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 3, 1, "a", &second,
        "tell_committed 1; append commit 4 term 1: round 2 complete [a_1_1073741824:0 "
        "b_1_1073741824:1 c_1_1073741824:2] wait [] spare []");
    plain(&scene, SUCCESSION_EVENT_WON, "tell_committed 2");
}

static void miss_all(struct scene *scene, const char *names) {
    for (; *names != '\0'; names++) {
        miss(scene, (char[]){*names, '\0'});
        miss(scene, (char[]){*names, '\0'}); /* which is one node */
    }
}

TEST(more_than_half_of_the_committed_world_is_the_majority) {
    static const struct {
        const char *committed;
        const char *silent;
        const char *left; /* in the store */
        bool is_missing;
    } cases[] = {{"abc", "bc", "a", true}, {"abc", "b", "a", false}, {"abcd", "bc", "ad", false},
        {"abcd", "bcd", "a", true}, {"ab", "b", "a", false}, {"abc", "", "a", false},
        {"abcde", "bcd", "ae", true},
        {"abc", "xyz", "abc", false}, /* only nodes of the committed world count */
        {"abc", "bc", "ab", false},   /* one that is seen again is not missing */
        {"xyz", "xyz", "a", false}};  /* the host was not in it, and waits for none of it */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEARED_BY(scene_clear) struct scene scene = hosting_world(cases[i].committed);
        CLEARED_BY(rendezvous_state_clear) struct rendezvous_state left = world(4, cases[i].left);
        left.is_complete = false;
        miss_all(&scene, cases[i].silent);
        seen(&scene, &left, "");
        scene.seconds = RENEWAL;
        plain(&scene, SUCCESSION_EVENT_TIMER_FIRED,
            cases[i].is_missing ? "read_register" : "read_register; renew term 1");
    }
}

/* Nodes a to e, of which e is lost, then d and c `seconds` later: each loss is followed by a world
 * without the lost, but for the last one's. */
static struct scene losing_one_by_one(double seconds) {
    struct scene scene = hosting_world("abcde");
    miss(&scene, "e");
    see_and_win(&scene, 1, "abcd", "");
    scene.seconds = seconds;
    miss(&scene, "d");
    see_and_win(&scene, 2, "abc", "");
    miss(&scene, "c");
    return scene;
}

TEST(nodes_that_a_smaller_world_has_lost_to_silence_count_for_a_while) {
    CLEARED_BY(scene_clear) struct scene scene = losing_one_by_one(1);
    scene.seconds = RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    scene_clear(&scene);
    scene = losing_one_by_one(12);
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register; renew term 1");
}

TEST(nodes_that_were_lost_long_ago_count_while_the_world_has_them) {
    CLEARED_BY(scene_clear) struct scene scene = hosting_world("abcde");
    miss_all(&scene, "de");
    scene.seconds = 12;
    miss(&scene, "c");
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
}

/* Else the end of the job would wait for fence_timeout before it is an entry, and never be one. */
TEST(nodes_that_are_done_are_missed_by_nobody) {
    CLEARED_BY(scene_clear) struct scene scene = hosting_world("abcde");
    see_and_win(&scene, 0, "abcde", "bc");
    miss_all(&scene, "bcd"); /* one of three */
    scene.seconds = RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "renew term 1");
    plain(&scene, SUCCESSION_EVENT_RENEWED, "");
    miss(&scene, "e");
    scene.seconds = 2 * RENEWAL;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
}
