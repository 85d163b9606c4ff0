/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/node/node_event.h"
#include "node_fixture.h"

static void check_event(struct membership_event event, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    node_event_describe(&(struct node_event){.part = NODE_MEMBERSHIP, .membership = event}, &text);
    assert_string_equal(text_string(&text), expected);
}

static void check_effect(struct membership_effect effect, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    membership_effect_describe(&effect, &text);
    assert_string_equal(text_string(&text), expected);
}

TEST(events_read_as_one_line) {
    struct failure_account account = account_of(OTHER);
    check_event((struct membership_event){.kind = MEMBERSHIP_EVENT_LEFT}, "left");
    check_event((struct membership_event){.kind = MEMBERSHIP_EVENT_JOIN_ASKED, .join = {3, 2}},
        "join_asked");
    check_event(
        (struct membership_event){.kind = MEMBERSHIP_EVENT_DOUBT_ASKED, .account = &account},
        "doubt_asked " FAILED_WORKER);
    check_event((struct membership_event){.kind = MEMBERSHIP_EVENT_DOUBT_ASKED}, "doubt_asked");
}

TEST(words_to_other_machines_read_as_theirs) {
    check_effect((struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_AGENT,
                     .agent = {.kind = AGENT_EVENT_PEER_RESTART, .attempt = 2}},
        "agent: peer_restart attempt=2");
    check_effect((struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_RENDEZVOUS,
                     .rendezvous = {.kind = RENDEZVOUS_EVENT_CLOSE_ASKED, .reason = "over"}},
        "rendezvous: close_asked over");
    check_effect((struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_ROUND,
                     .round = {.kind = ROUND_EVENT_ABANDON}},
        "round: abandon");
}

TEST(effects_read_as_one_line) {
    struct failure_account account = account_of(OTHER);
    check_effect((struct membership_effect){.kind = MEMBERSHIP_EFFECT_NOTE,
                     .note = {LOG_LEVEL_INFO, "a word"}},
        "note a word");
    check_effect((struct membership_effect){.kind = MEMBERSHIP_EFFECT_PUBLISH_ROOT_CAUSE,
                     .root_cause = {3, &account}},
        "publish_root_cause round=3 " FAILED_WORKER);
    check_effect((struct membership_effect){.kind = MEMBERSHIP_EFFECT_LOOK_FOR_ROOT_CAUSE,
                     .root_cause = {.round = 3}},
        "look_for_root_cause round=3");
    check_effect((struct membership_effect){.kind = MEMBERSHIP_EFFECT_ARM_TIMER,
                     .deadline = {.nanoseconds = INT64_C(30500000000)}},
        "arm_timer at=30.500");
    check_effect((struct membership_effect){.kind = MEMBERSHIP_EFFECT_LINGER,
                     .patience = duration_from_seconds(30)},
        "linger seconds=30");
    check_effect((struct membership_effect){.kind = MEMBERSHIP_EFFECT_FLUSH,
                     .patience = duration_from_milliseconds(1500)},
        "flush seconds=1.5");
}

/* A kind that was forgotten has an empty line, or another's. */
static void add_line(struct text_list *lines, struct text *line) {
    assert_string_not_equal(text_string(line), "");
    for (size_t i = 0; i < lines->count; i++) {
        assert_string_not_equal(lines->items[i], text_string(line));
    }
    text_list_add(lines, text_string(line));
    text_clear(line);
}

TEST(every_event_has_a_line_of_its_own) {
    CLEARED_BY(text_list_clear) struct text_list lines = {0};
    for (int kind = 0; kind < MEMBERSHIP_EVENT_KIND_COUNT; kind++) {
        struct text line = {0};
        struct node_event event = {
            .part = NODE_MEMBERSHIP, .membership.kind = (enum membership_event_kind)kind};
        node_event_describe(&event, &line);
        add_line(&lines, &line);
    }
}

TEST(every_effect_has_a_line_of_its_own) {
    struct failure_account account = account_of(OTHER);
    CLEARED_BY(text_list_clear) struct text_list lines = {0};
    for (int kind = 0; kind < MEMBERSHIP_EFFECT_KIND_COUNT; kind++) {
        struct text line = {0};
        struct membership_effect effect = {.kind = (enum membership_effect_kind)kind};
        if (kind == MEMBERSHIP_EFFECT_NOTE) {
            effect.note.text = "";
        } else if (kind == MEMBERSHIP_EFFECT_PUBLISH_ROOT_CAUSE) {
            effect.root_cause.account = &account;
        }
        membership_effect_describe(&effect, &line);
        add_line(&lines, &line);
    }
}
