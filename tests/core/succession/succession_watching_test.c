/* SPDX-License-Identifier: BSD-3-Clause */
/* Of succession_machine: what a node does that waits for its turn and watches the register. */
#include "succession_hosts.h"

#define NODES 32

static void refuse(struct scene *scene, const char *expected) {
    lose(scene, SUCCESSION_LOSS_ENDED, "tell_lost");
    seek(scene, 60, "dial at=3.000");
    lose(scene, SUCCESSION_LOSS_REFUSED, expected);
}

TEST(whoever_has_claimed_is_followed_at_once) {
    CLEARED_BY(scene_clear) struct scene scene = following("c");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(4, "abc");
    refuse(&scene, "watch_register after 7");
    scene.seconds = 0.003;
    entry_of(&scene, SUCCESSION_EVENT_NEWS, 8, 2, "b", &record, "dial at=3.003");
    plain(&scene, SUCCESSION_EVENT_CONNECTED, "tell_connected");
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

TEST(a_world_that_has_gone_on_without_a_node_is_news_to_it) {
    CLEARED_BY(scene_clear) struct scene scene = following("c");
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = world(5, "b");
    refuse(&scene, "watch_register after 7");
    entry_of(&scene, SUCCESSION_EVENT_NEWS, 9, 2, "b", &record, LEFT "; dial at=3.000");
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
