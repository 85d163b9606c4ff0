/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/presence_watch.h"

static struct instant second(double seconds) {
    return (struct instant){duration_from_seconds(seconds).nanoseconds};
}

/* One look of a host that looks every second, and allows three seconds of silence. */
static size_t count_stalled(struct presence_watch *watch, double now) {
    struct text_list stalled = {0};
    presence_watch_look(
        watch, second(now), duration_from_seconds(2), duration_from_seconds(3), &stalled);
    size_t count = stalled.count;
    text_list_clear(&stalled);
    return count;
}

static void hear(struct presence_watch *watch, const char *name, double now) {
    presence_watch_hear(watch, name, second(now));
}

TEST(an_agent_that_is_heard_of_has_not_stalled) {
    struct presence_watch watch = {0};
    for (int now = 0; now < 20; now++) {
        hear(&watch, "a", now);
        assert_int_equal(count_stalled(&watch, now), 0);
    }
    presence_watch_clear(&watch);
}

TEST(an_agent_that_is_silent_for_too_long_has_stalled) {
    struct presence_watch watch = {0};
    struct text_list stalled = {0};
    hear(&watch, "a", 0);
    hear(&watch, "b", 0);
    for (int now = 0; now <= 3; now++) {
        hear(&watch, "b", now);
        assert_int_equal(count_stalled(&watch, now), 0);
    }
    presence_watch_look(
        &watch, second(4), duration_from_seconds(2), duration_from_seconds(3), &stalled);
    assert_int_equal(stalled.count, 1);
    assert_string_equal(stalled.items[0], "a");
    text_list_clear(&stalled);
    presence_watch_clear(&watch);
}

/* An agent that has given a sign of life just before a look was not silent since the previous look.
 */
TEST(silence_starts_when_an_agent_was_last_heard_of) {
    struct presence_watch watch = {0};
    for (int now = 0; now < 20; now += 4) {
        assert_int_equal(count_stalled(&watch, now), 0);
        hear(&watch, "a", now + 0.9);
        assert_int_equal(count_stalled(&watch, now + 1), 0);
        assert_int_equal(count_stalled(&watch, now + 2), 0);
        assert_int_equal(count_stalled(&watch, now + 3.8), 0);
        hear(&watch, "a", now + 3.9);
    }
    presence_watch_clear(&watch);
}

TEST(a_host_that_was_stopped_itself_accuses_nobody) {
    struct presence_watch watch = {0};
    hear(&watch, "a", 0);
    assert_int_equal(count_stalled(&watch, 0), 0);
    assert_int_equal(count_stalled(&watch, 60), 0);
    hear(&watch, "a", 60);
    assert_int_equal(count_stalled(&watch, 61), 0);
    presence_watch_clear(&watch);
}

TEST(an_agent_that_has_gone_is_forgotten) {
    struct presence_watch watch = {0};
    hear(&watch, "a", 0);
    hear(&watch, "b", 0);
    presence_watch_forget(&watch, "a");
    presence_watch_forget(&watch, "never heard of");
    for (int now = 0; now < 9; now++) {
        hear(&watch, "b", now);
        assert_int_equal(count_stalled(&watch, now), 0);
    }
    presence_watch_clear(&watch);
}

TEST(those_who_are_known_are_listed) {
    struct presence_watch watch = {0};
    struct text_list names = {0};
    presence_watch_list(&watch, &names);
    assert_int_equal(names.count, 0);
    hear(&watch, "a", 0);
    hear(&watch, "b", 1);
    hear(&watch, "a", 2);
    presence_watch_forget(&watch, "b");
    presence_watch_list(&watch, &names);
    assert_int_equal(names.count, 1);
    assert_string_equal(names.items[0], "a");
    text_list_clear(&names);
    presence_watch_clear(&watch);
}
