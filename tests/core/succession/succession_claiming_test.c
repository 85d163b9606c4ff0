/* SPDX-License-Identifier: BSD-3-Clause */
/* Which node claims the place of a host that is lost, and when. */
#include "succession_hosts.h"

TEST(the_next_rank_claims_a_host_that_is_refused_at_once) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000; read_register");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record,
        "append claim 8 term 2: round 4 complete " B " wait [] spare []");
    assert_int_equal(succession_machine_state(scene.machine), SUCCESSION_CLAIM);
    plain(&scene, SUCCESSION_EVENT_WON, "host term 2; dial self at=3.000");
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected; tell_committed 4");
}

/* Whether another node hosts by now, it asks when that can be, and claims itself where none does.
 */
TEST(a_later_rank_waits_for_its_turn) {
    CLEARED_BY(scene_clear) struct scene scene = following("c");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000");
    scene.seconds = 0.005;
    lose(&scene, SUCCESSION_LOSS_REFUSED, "watch_register after 7");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "");
    scene.seconds = 0.025;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 8, 2, "b", &record, "dial at=3.025");
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected");
}

/* It has not read since the host has committed a world. */
TEST(a_node_claims_in_the_order_of_the_world_that_it_has_seen) {
    CLEARED_BY(scene_clear) struct scene scene = scene_of("c");
    struct rendezvous_state none = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(0, "abc");
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 1, 1, "a", &none, "dial at=3.000");
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected");
    seen(&scene, &record, "");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "watch_register after 1");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
}

TEST(a_host_that_neither_answers_nor_refuses_soon_is_asked_for_in_the_register) {
    CLEARED_BY(scene_clear) struct scene scene = following("c");
    lose(&scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(&scene, 60, "dial at=3.000");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
}

TEST(a_silent_host_is_claimed_when_its_renewal_stands_still) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
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
}

static void doubt(struct scene *scene, bool is_doubted, const char *expected) {
    step(scene,
        (struct succession_event){.kind = SUCCESSION_EVENT_DOUBTED, .is_doubted = is_doubted},
        expected);
}

TEST(a_host_does_not_doubt_itself) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    doubt(&scene, true, "");
}

TEST(a_silent_host_that_commits_is_there) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
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
}

TEST(a_node_that_hears_of_nobody_ends_its_workers) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=3.000; read_register");
    find_nothing_new(&scene);
    scene.seconds = 5;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED,
        "fenced neither the host of the job's store nor its "
        "register was heard of for fence_timeout");
    scene.seconds = 60;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "gave_up no node hosts the job's store");
}

TEST(a_silent_node_that_was_left_behind_ends_its_workers) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state others = world(5, "ac");
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=3.000; read_register");
    find_nothing_new(&scene);
    lose(&scene, SUCCESSION_LOSS_REFUSED, "read_register");
    lose(&scene, SUCCESSION_LOSS_SILENT, "look_at_renewal term 1; dial at=3.000");
    entry_of(&scene, SUCCESSION_EVENT_READ, 8, 1, "a", &others, LEFT);
}

/* How many nodes claim before this one, of a world whose host is refused. */
static int turn_of(const char *me, const char *host) {
    CLEARED_BY(scene_clear) struct scene scene = scene_of(me);
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abcd");
    struct succession_event read = {.kind = SUCCESSION_EVENT_READ,
        .is_there = true,
        .entry = {7, 1, node(host)},
        .record = &record};
    struct succession_event refused = {
        .kind = SUCCESSION_EVENT_CONNECTION_LOST, .loss = SUCCESSION_LOSS_REFUSED};
    struct succession_effects effects;
    int turn = 0;
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, host, &record, "dial at=3.000");
    succession_machine_step(scene.machine, &refused, &effects);
    for (; succession_machine_state(scene.machine) != SUCCESSION_CLAIM; turn++) {
        scene.seconds += 0.02;
        plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
        read.now = scene_at(scene.seconds);
        succession_machine_step(scene.machine, &read, &effects);
    }
    return turn;
}

TEST(nodes_claim_in_the_order_of_their_ranks_without_the_host) {
    assert_int_equal(turn_of("b", "a"), 0);
    assert_int_equal(turn_of("c", "a"), 1);
    assert_int_equal(turn_of("a", "c"), 0);
    assert_int_equal(turn_of("d", "c"), 2);
}

TEST(a_node_outside_the_world_claims_after_all_of_it) {
    assert_int_equal(turn_of("x", "a"), 3);
    assert_int_equal(turn_of("x", "y"), SUCCESSION_TURNS_MAXIMUM);
}

/* What stands still while the node looks is known when the connection is taken for lost. */

struct look {
    double at;
    const char *renewal; /* NULL: the register is away */
    double answered_at;  /* 0: a hundredth of a second later */
};

#define LOOKS 5

TEST(what_was_seen_of_the_renewal_decides_whether_a_silent_host_is_claimed) {
    static const struct {
        double silence_timeout;
        struct look looks[LOOKS];
        double next; /* when the next look is due; 0: not asked */
        bool is_silent;
    } cases[] = {
        {3, {{1, "7", 0}, {1.5, "7", 0}, {2.6, "7", 0}}, 3.51, false},
        {3, {{1, "7", 0}, {1.5, "7", 0}, {2.6, "7", 0}, {3.51, "7", 0}}, 4.01, true},
        {3, {{1, "7", 0}, {1.5, "7", 0}}, 2, false},
        /* a renewal begins the silence anew */
        {3, {{1, "7", 0}, {3.4, "8", 0}, {4, "8", 0}}, 0, false},
        {3, {{1, "7", 0}, {3.4, "8", 0}, {6, "8", 0}}, 0, true},
        /* a register that is away shows nothing */
        {3, {{1, "7", 0}, {2, NULL, 0}, {4, "7", 0}}, 0, false},
        {3, {{1, "7", 0}, {2, NULL, 0}, {4, "7", 0}, {7, "7", 0}}, 0, true},
        /* what stood still until a late answer may have been this node */
        {3, {{1, "7", 0}, {1.5, "7", 30}}, 0, false},
        /* two renewals at least */
        {0.1, {{1, "7", 1.001}, {3.2, "7", 3.201}}, 0, false},
        {0.1, {{1, "7", 1.001}, {3.31, "7", 3.311}}, 0, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene scene = following_patiently("b", cases[i].silence_timeout);
        const struct look *looks = cases[i].looks;
        scene.seconds = looks[0].at;
        doubt(&scene, true, "look_at_renewal term 1; read_register");
        find_nothing_new(&scene);
        for (size_t l = 0; l < LOOKS && looks[l].at > 0; l++) {
            scene.seconds = looks[l].at;
            if (l > 0) {
                plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "look_at_renewal term 1");
            }
            plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, ""); /* the one before is not answered */
            assert_false(scene.timer.is_set);
            scene.seconds = looks[l].answered_at > 0 ? looks[l].answered_at : looks[l].at + 0.01;
            step(&scene, renewal(looks[l].renewal), "");
        }
        if (cases[i].next > 0) {
            assert_int_equal(scene.timer.at.nanoseconds, scene_at(cases[i].next).nanoseconds);
        }
        struct succession_effects effects;
        struct succession_event lost = {.kind = SUCCESSION_EVENT_CONNECTION_LOST,
            .now = scene_at(scene.seconds),
            .loss = SUCCESSION_LOSS_SILENT};
        succession_machine_step(scene.machine, &lost, &effects);
        bool has_read = false;
        for (size_t e = 0; e < effects.count; e++) {
            has_read = has_read || effects.items[e].kind == SUCCESSION_EFFECT_READ;
        }
        assert_int_equal(has_read, cases[i].is_silent);
        scene_clear(&scene);
    }
}

TEST(an_answer_of_an_earlier_doubt_is_nothing) {
    CLEARED_BY(scene_clear) struct scene scene = following("b");
    doubt(&scene, true, "look_at_renewal term 1; read_register");
    find_nothing_new(&scene);
    doubt(&scene, false, "");
    step(&scene, renewal("7"), "");
    assert_false(scene.timer.is_set);
    scene.seconds = 9;
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
}

/* The fence. */

#define FENCED                                                                                     \
    "fenced neither the host of the job's store nor its register was heard of for fence_timeout"

/* What takes long to find out is not given as much time again. */
TEST(the_fence_counts_from_the_last_sign_of_a_host_that_is_silent) {
    CLEARED_BY(scene_clear) struct scene scene = scene_of("b");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 2, 1, "a", &record, "dial at=3.000");
    scene.seconds = 1;
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected");
    scene.seconds = 24.5;
    lose(&scene, SUCCESSION_LOSS_SILENT, "tell_lost; look_at_renewal term 1");
    seek(&scene, 60, "dial at=27.500; read_register");
    scene.seconds = 25.9;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "");
    scene.seconds = 26;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, FENCED);
}

/* Of succession_machine: what a node does that waits for its turn and watches the register. */

#define NODES 32

static void refuse(struct scene *scene, const char *expected) {
    lose(scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(scene, 60, "dial at=3.000");
    lose(scene, SUCCESSION_LOSS_REFUSED, expected);
}

/* It has not read since the host has committed, of which the watch tells it at once. */
TEST(a_commit_of_the_host_that_died_is_not_the_news_that_is_waited_for) {
    CLEARED_BY(scene_clear) struct scene scene = following("c");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(5, "abc");
    refuse(&scene, "watch_register after 7");
    entry_of(&scene, SUCCESSION_EVENT_NEWS, 8, 1, "a", &record, "watch_register after 8");
    entry_of(&scene, SUCCESSION_EVENT_NEWS, 9, 2, "b", &record, "dial at=3.000");
}

TEST(a_node_that_has_asked_meanwhile_watches_on) {
    CLEARED_BY(scene_clear) struct scene scene = scene_of("d");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abcd");
    seek(&scene, 60, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record, "dial at=3.000");
    lose(&scene, SUCCESSION_LOSS_REFUSED, "watch_register after 7");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record, "");
}

TEST(what_is_known_is_no_news) {
    CLEARED_BY(scene_clear) struct scene scene = following("c");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
    refuse(&scene, "watch_register after 7");
    entry_of(&scene, SUCCESSION_EVENT_NEWS, 7, 1, "a", &record, "");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
}

/* The answer tells it as well, and what became of the append. */
TEST(news_beside_a_question_is_left_to_the_answer) {
    CLEARED_BY(scene_clear) struct scene scene = following("c");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
    refuse(&scene, "watch_register after 7");
    scene.seconds = 0.02;
    plain(&scene, SUCCESSION_EVENT_TIMER_FIRED, "read_register");
    entry_of(&scene, SUCCESSION_EVENT_NEWS, 8, 2, "b", &record, "");
    entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "a", &record,
        "append claim 8 term 2: round 4 complete " B " wait [] spare []");
    entry_of(&scene, SUCCESSION_EVENT_NEWS, 8, 2, "b", &record, "");
    entry_of(&scene, SUCCESSION_EVENT_LOST, 8, 2, "b", &record, "dial at=3.020");
}

TEST(a_host_hears_no_news) {
    CLEARED_BY(scene_clear) struct scene scene = hosting();
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(5, "b");
    entry_of(&scene, SUCCESSION_EVENT_NEWS, 9, 2, "b", &record, "");
}

/* More watches would delay the node that claims. */
TEST(of_many_nodes_only_the_next_ones_watch) {
    static const struct {
        int index;
        bool watches;
    } nodes[] = {{2, true}, {4, true}, {5, false}, {NODES, false}};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        struct rendezvous_state record = {.round = 4, .is_complete = true};
        char name[8];
        for (int n = 0; n <= NODES; n++) {
            snprintf(name, sizeof name, "n%02d", n);
            struct node_identity identity = node(name);
            rendezvous_state_obtain(&record, &identity)->is_participant = true;
        }
        rendezvous_state_complete(&record);
        snprintf(name, sizeof name, "n%02d", nodes[i].index);
        CLEARED_BY(scene_clear) struct scene scene = scene_of(name);
        seek(&scene, 60, "read_register");
        entry_of(&scene, SUCCESSION_EVENT_READ, 7, 1, "n00", &record, "dial at=3.000");
        lose(&scene, SUCCESSION_LOSS_REFUSED, nodes[i].watches ? "watch_register after 7" : "");
        rendezvous_state_clear(&record);
    }
}
