/* SPDX-License-Identifier: BSD-3-Clause */
#include "succession_scene.h"

static void expect(struct succession_event event, const char *expected) {
    CLEARED_BY(text_clear) struct text text = {0};
    succession_event_describe(&event, &text);
    assert_string_equal(text_string(&text), expected);
}

TEST(events_are_told_with_what_they_bring) {
    struct rendezvous_state none = {0};
    expect((struct succession_event){.kind = SUCCESSION_EVENT_SEEK, .deadline = scene_at(2)},
        "seek at=2.000");
    expect((struct succession_event){.kind = SUCCESSION_EVENT_READ}, "entry_read nothing");
    expect(
        (struct succession_event){
            .kind = SUCCESSION_EVENT_LOST, .entry = {3, 2, node("a")}, .record = &none},
        "append_lost 3 term 2 of a_1_1073741824: round 0 open [] wait [] spare []");
    expect((struct succession_event){.kind = SUCCESSION_EVENT_CONNECTION_LOST,
               .loss = SUCCESSION_LOSS_REFUSED},
        "host_lost refused");
    expect(
        (struct succession_event){.kind = SUCCESSION_EVENT_FAILED, .failed = {"no quorum", false}},
        "register_failed no quorum");
}

TEST(every_event_has_a_name) {
    struct rendezvous_state none = {0};
    for (int kind = 0; kind < SUCCESSION_EVENT_KIND_COUNT; kind++) {
        CLEARED_BY(text_clear) struct text text = {0};
        struct succession_event event = {.kind = (enum succession_event_kind)kind};
        if (kind == SUCCESSION_EVENT_SEEN || kind == SUCCESSION_EVENT_LOST ||
            kind == SUCCESSION_EVENT_NEWS) {
            event.record = &none;
        } else if (kind == SUCCESSION_EVENT_RENEWAL) {
            event.renewal = "1";
        } else if (kind == SUCCESSION_EVENT_FAILED) {
            event.failed.reason = "no quorum";
        }
        succession_event_describe(&event, &text);
        assert_int_not_equal(text.length, 0);
    }
}
