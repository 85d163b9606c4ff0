/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "core/node/node_machine.h"
#include "node_fixture.h"

/* The texts of an event live in memory of their own, which is overwritten and freed before the
 * copy is read: a copy that borrowed is found out by what it says, and by the sanitizer. */
struct lender {
    char *texts[4];
    size_t count;
};

static char *lend(struct lender *lender, const char *text) {
    char *lent = memory_duplicate_string(text);
    lender->texts[lender->count++] = lent;
    return lent;
}

static void take_back(struct lender *lender) {
    for (size_t i = 0; i < lender->count; i++) {
        memset(lender->texts[i], '?', strlen(lender->texts[i]));
        free(lender->texts[i]);
    }
    lender->count = 0;
}

static void expect_line(const struct node_event *event, const char *expected) {
    CLEARED_BY(text_clear) struct text line = {0};
    node_event_describe(event, &line);
    assert_string_equal(text_string(&line), expected);
}

/* Owns the event, takes back what it borrows, and reads the copy. */
static void check_text(struct node_event event, struct lender *lender, const char *expected) {
    struct node_event_owned owned;
    node_event_own(&event, &owned);
    take_back(lender);
    expect_line(&owned.event, expected);
    node_event_owned_clear(&owned);
}

TEST(an_account_is_owned_whole) {
    static const enum membership_event_kind kinds[] = {MEMBERSHIP_EVENT_RESTART_ASKED,
        MEMBERSHIP_EVENT_DOUBT_ASKED, MEMBERSHIP_EVENT_FAILURE_ASKED,
        MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct lender lender = {0};
        struct failure_account account = account_of(NULL);
        struct node_event event = {
            .part = NODE_MEMBERSHIP, .membership = {.kind = kinds[i], .account = &account}};
        struct node_event_owned owned;
        account.host = lend(&lender, "host2");
        account.summary = lend(&lender, "ValueError: boom");
        node_event_own(&event, &owned);
        take_back(&lender);
        account = (struct failure_account){0};
        assert_string_equal(owned.event.membership.account->host, "host2");
        assert_string_equal(owned.event.membership.account->summary, "ValueError: boom");
        node_event_owned_clear(&owned);
    }
}

TEST(an_event_without_an_account_stays_without) {
    struct lender lender = {0};
    check_text((struct node_event){.part = NODE_MEMBERSHIP,
                   .membership = {.kind = MEMBERSHIP_EVENT_FAILURE_ASKED}},
        &lender, "failure_asked");
    check_text((struct node_event){.part = NODE_MEMBERSHIP,
                   .membership = {.kind = MEMBERSHIP_EVENT_HOSTING, .port = 40001}},
        &lender, "hosting");
}

TEST(reasons_of_the_rendezvous_are_owned) {
    static const struct {
        enum rendezvous_event_kind kind;
        const char *line;
    } events[] = {
        {RENDEZVOUS_EVENT_RESTART_ASKED, "restart_asked worker 1 failed"},
        {RENDEZVOUS_EVENT_FAILURE_ASKED, "failure_asked worker 1 failed"},
        {RENDEZVOUS_EVENT_CLOSE_ASKED, "close_asked worker 1 failed"},
        {RENDEZVOUS_EVENT_BROKEN, "broken worker 1 failed"},
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        struct lender lender = {0};
        struct node_event event = {.part = NODE_RENDEZVOUS, .rendezvous = {.kind = events[i].kind}};
        event.rendezvous.reason = lend(&lender, "worker 1 failed");
        check_text(event, &lender, events[i].line);
    }
    struct lender lender = {0};
    struct node_event lost = {
        .part = NODE_RENDEZVOUS, .rendezvous = {.kind = RENDEZVOUS_EVENT_CONNECTION_LOST}};
    lost.rendezvous.lost.reason = lend(&lender, "no answer");
    lost.rendezvous.lost.is_silent = true;
    check_text(lost, &lender, "connection_lost silent no answer");
}

/* One participant in round 4. */
static void fill_record(struct rendezvous_state *record) {
    struct node_identity identity = identity_of("me");
    *record = (struct rendezvous_state){.round = 4, .is_complete = true};
    rendezvous_state_obtain(record, &identity)->is_participant = true;
}

static void expect_owned_record(
    struct node_event event, struct rendezvous_state *record, const char *expected) {
    struct node_event_owned owned;
    node_event_own(&event, &owned);
    record->round = 0;
    rendezvous_state_clear(record);
    expect_line(&owned.event, expected);
    node_event_owned_clear(&owned);
}

TEST(a_record_is_owned_with_its_nodes) {
    struct rendezvous_state record;
    fill_record(&record);
    expect_owned_record((struct node_event){.part = NODE_RENDEZVOUS,
                            .rendezvous = {.kind = RENDEZVOUS_EVENT_RECORD, .state = &record}},
        &record, "record round 4 complete [" ME ":0] wait [] spare []");
    fill_record(&record);
    expect_owned_record(
        (struct node_event){.part = NODE_RENDEZVOUS,
            .rendezvous = {.kind = RENDEZVOUS_EVENT_WRITTEN, .written = {false, &record}}},
        &record, "written lost round 4 complete [" ME ":0] wait [] spare []");
}

TEST(the_beginning_of_a_round_owns_its_record_and_this_nodes_name) {
    struct rendezvous_state record;
    struct node_identity identity = identity_of("me");
    struct node_event event = {.part = NODE_ROUND,
        .round = {.kind = ROUND_EVENT_BEGIN,
            .round = 4,
            .begin = {.node_count = 1, .state = &record, .identity = &identity}}};
    struct node_event_owned owned;
    fill_record(&record);
    node_event_own(&event, &owned);
    rendezvous_state_clear(&record);
    memset(&identity, '?', sizeof identity);
    assert_int_equal(rendezvous_state_participants(owned.event.round.begin.state), 1);
    assert_string_equal(owned.event.round.begin.identity->address, "me");
    node_event_owned_clear(&owned);
}

TEST(texts_of_a_round_are_owned) {
    struct lender lender = {0};
    struct node_event event = {.part = NODE_ROUND, .round = {.kind = ROUND_EVENT_STORE_OPENED}};
    event.round.opened.address = lend(&lender, "me");
    event.round.opened.port = 29600;
    check_text(event, &lender, "store_opened me:29600");
    event.round = (struct round_event){.kind = ROUND_EVENT_STORE_FAILED};
    event.round.reason = lend(&lender, "no port is free");
    check_text(event, &lender, "store_failed no port is free");
    event.round = (struct round_event){
        .kind = ROUND_EVENT_VALUES, .key = {.kind = ROUND_KEY_PUBLICATION, .round = 4}};
    event.round.values.address = lend(&lender, "a");
    event.round.values.port = 29600;
    event.round.values.publisher = lend(&lender, OTHER);
    check_text(event, &lender, "values 4/publication a:29600 of " OTHER);
}

static void expect_owned_roles(const struct role_info *infos, size_t count) {
    assert_int_equal(count, 2);
    assert_string_equal(infos[0].role, "trainer");
    assert_null(infos[1].role); /* it made no sense */
    assert_int_equal(infos[1].local_world_size, 8);
}

TEST(roles_of_all_nodes_are_owned) {
    struct lender lender = {0};
    struct role_info infos[2] = {{lend(&lender, "trainer"), 4, 0, 1, NULL}, {NULL, 8, 1, 1, NULL}};
    struct node_event round = {
        .part = NODE_ROUND, .round = {.kind = ROUND_EVENT_ROLE_INFOS, .role_infos = {infos, 2}}};
    struct node_event_owned owned;
    node_event_own(&round, &owned);
    take_back(&lender);
    memset(infos, 0, sizeof infos);
    expect_owned_roles(owned.event.round.role_infos.infos, owned.event.round.role_infos.count);
    node_event_owned_clear(&owned);
}

TEST(a_decision_of_fixed_nodes_is_owned) {
    struct lender lender = {0};
    struct node_event event = {.part = NODE_ROUND,
        .round = {.kind = ROUND_EVENT_VALUES, .key = {.kind = ROUND_KEY_END, .round = 1}}};
    event.round.values.decision = lend(&lender, "restart");
    check_text(event, &lender, "values end/1 restart");
}

TEST(the_master_of_fixed_nodes_is_owned) {
    struct lender lender = {0};
    struct node_event event = {
        .part = NODE_ROUND, .round = {.kind = ROUND_EVENT_BEGIN, .round = ROUND_OF_FIXED_NODES}};
    event.round.begin.master_address = lend(&lender, "host");
    struct node_event_owned owned;
    node_event_own(&event, &owned);
    take_back(&lender);
    assert_string_equal(owned.event.round.begin.master_address, "host");
    node_event_owned_clear(&owned);
}

TEST(every_machine_is_told_when_it_happened) {
    struct instant now = {.nanoseconds = 7};
    struct wall_time wall_now = {.nanoseconds = 8};
    struct node_event event = {.part = NODE_AGENT};
    node_event_set_now(&event, now, wall_now);
    assert_int_equal(event.agent.now.nanoseconds, 7);
    event = (struct node_event){.part = NODE_MEMBERSHIP};
    node_event_set_now(&event, now, wall_now);
    assert_int_equal(event.membership.now.nanoseconds, 7);
    event = (struct node_event){.part = NODE_RENDEZVOUS};
    node_event_set_now(&event, now, wall_now);
    assert_int_equal(event.rendezvous.now.nanoseconds, 7);
    assert_int_equal(event.rendezvous.wall_now.nanoseconds, 8);
    event = (struct node_event){.part = NODE_ROUND};
    node_event_set_now(&event, now, wall_now);
    assert_int_equal(event.round.now.nanoseconds, 7);
}

/* Membership transcript. */

static void check_event(struct membership_event event, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    node_event_describe(&(struct node_event){.part = NODE_MEMBERSHIP, .membership = event}, &text);
    assert_string_equal(text_string(&text), expected);
}

static void check_effect(struct membership_effect effect, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    node_effect_describe(
        &(struct node_effect){.part = NODE_MEMBERSHIP, .membership = effect}, &text);
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
        node_effect_describe(
            &(struct node_effect){.part = NODE_MEMBERSHIP, .membership = effect}, &line);
        add_line(&lines, &line);
    }
}
