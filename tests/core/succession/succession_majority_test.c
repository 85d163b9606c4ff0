/* SPDX-License-Identifier: BSD-3-Clause */
#include "succession_scene.h"

#include "core/succession/succession_machine.h"

/* Whether most of the committed world are missing, for node a, when these are silent, and then the
 * store has these. */
static bool is_missing(const char *committed, const char *silent, const char *left) {
    struct succession_majority majority = {0};
    struct rendezvous_state before = world(3, committed);
    struct rendezvous_state after = world(4, left);
    struct node_identity self = node("a");
    for (const char *letter = silent; *letter != '\0'; letter++) {
        struct node_identity identity = node((char[]){*letter, '\0'});
        succession_majority_miss(&majority, &identity, scene_at(1));
        succession_majority_miss(&majority, &identity, scene_at(1));
    }
    succession_majority_see(&majority, &after);
    bool is = succession_majority_is_missing(&majority, &before, &self);
    succession_majority_clear(&majority);
    rendezvous_state_clear(&before);
    rendezvous_state_clear(&after);
    return is;
}

static void more_than_half_of_the_committed_world_is_the_majority(void **state) {
    (void)state;
    assert_true(is_missing("abc", "bc", "a"));
    assert_false(is_missing("abc", "b", "a"));
    assert_false(is_missing("abcd", "bc", "ad"));
    assert_true(is_missing("abcd", "bcd", "a"));
    assert_false(is_missing("ab", "b", "a"));
    assert_false(is_missing("abc", "", "a"));
}

static void only_nodes_of_the_committed_world_count(void **state) {
    (void)state;
    assert_false(is_missing("abc", "xyz", "abc"));
}

static void a_node_that_is_seen_again_is_not_missing(void **state) {
    (void)state;
    assert_false(is_missing("abc", "bc", "ab"));
}

static void a_host_that_was_not_in_the_world_waits_for_none_of_it(void **state) {
    (void)state;
    assert_false(is_missing("xyz", "xyz", "a"));
}

static void miss(struct succession_majority *majority, const char *name, double seconds) {
    struct node_identity identity = node(name);
    succession_majority_miss(majority, &identity, scene_at(seconds));
}

static bool is_missing_of(struct succession_majority *majority, const char *committed) {
    struct rendezvous_state record = world(4, committed);
    struct node_identity self = node("a");
    bool is = succession_majority_is_missing(majority, &record, &self);
    rendezvous_state_clear(&record);
    return is;
}

static void nodes_that_a_smaller_world_has_lost_to_silence_count_too(void **state) {
    (void)state;
    struct succession_majority majority = {0};
    miss(&majority, "e", 1);
    assert_false(is_missing_of(&majority, "abcde"));
    miss(&majority, "d", 2);
    assert_false(is_missing_of(&majority, "abcd"));
    miss(&majority, "c", 3);
    assert_true(is_missing_of(&majority, "abc"));
    succession_majority_clear(&majority);
}

static void nodes_that_were_lost_long_ago_count_only_while_the_world_has_them(void **state) {
    (void)state;
    struct succession_majority majority = {0};
    struct rendezvous_state record = world(4, "abc");
    miss(&majority, "e", 1);
    miss(&majority, "c", 1);
    assert_false(is_missing_of(&majority, "abcde"));
    miss(&majority, "d", 2);
    assert_true(is_missing_of(&majority, "abcde"));
    succession_majority_forget(&majority, &record, scene_at(1));
    assert_int_equal(majority.count, 2);
    assert_false(is_missing_of(&majority, "abc"));
    miss(&majority, "b", 3);
    assert_true(is_missing_of(&majority, "abc"));
    rendezvous_state_clear(&record);
    succession_majority_clear(&majority);
}

/* Else the end of the job would wait for fence_timeout before it is an entry, and never be one. */
static void nodes_that_are_done_are_missed_by_nobody(void **state) {
    (void)state;
    struct succession_majority majority = {0};
    struct rendezvous_state record = world(4, "abcde");
    struct node_identity self = node("a");
    miss(&majority, "b", 1);
    miss(&majority, "c", 1);
    miss(&majority, "d", 1);
    assert_true(succession_majority_is_missing(&majority, &record, &self));
    for (size_t i = 0; i < record.count; i++) {
        record.nodes[i].is_done = record.nodes[i].identity.address[0] == 'b' ||
                                  record.nodes[i].identity.address[0] == 'c';
    }
    assert_false(succession_majority_is_missing(&majority, &record, &self)); /* one of three */
    miss(&majority, "e", 2);
    assert_true(succession_majority_is_missing(&majority, &record, &self));
    rendezvous_state_clear(&record);
    succession_majority_clear(&majority);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(more_than_half_of_the_committed_world_is_the_majority),
    cmocka_unit_test(only_nodes_of_the_committed_world_count),
    cmocka_unit_test(a_node_that_is_seen_again_is_not_missing),
    cmocka_unit_test(a_host_that_was_not_in_the_world_waits_for_none_of_it),
    cmocka_unit_test(nodes_that_a_smaller_world_has_lost_to_silence_count_too),
    cmocka_unit_test(nodes_that_were_lost_long_ago_count_only_while_the_world_has_them),
    cmocka_unit_test(nodes_that_are_done_are_missed_by_nobody),
};

UNIT_TESTS(tests)
