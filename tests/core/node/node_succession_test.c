/* SPDX-License-Identifier: BSD-3-Clause */
/* What the search for a host of the job's store means for the node's part in the rendezvous: what
 * is the performer's is in the story, what the machines of the node tell each other is in `taken`.
 */
#include "unit.h"

#include "node_play.h"

static void tell(struct play *play, struct succession_event event) {
    text_clear(&play->taken);
    play_post(play, (struct node_event){.part = NODE_SUCCESSION, .succession = event});
}

static void tell_kind(struct play *play, enum succession_event_kind kind) {
    tell(play, (struct succession_event){.kind = kind});
}

static void expect_taken(const struct play *play, const char *part) {
    if (strstr(text_string(&play->taken), part) == NULL) {
        fail_msg("not \"%s\" in \"%s\"", part, text_string(&play->taken));
    }
}

/* This node seeks the host of a job that it is the first to come to. */
static void open_seeking(struct play *play) {
    play_open(play, MEMBERSHIP_CHANGING, 0);
    play->settings.rendezvous.has_succession = true;
    play->settings.membership.has_succession = true;
    play->settings.succession =
        (struct succession_settings){.identity = play->settings.rendezvous.identity,
            .silence_timeout = duration_from_seconds(3),
            .fence_timeout = duration_from_seconds(5)};
    node_machine_free(play->node);
    play->node = node_machine_new(&play->settings);
    play->wants_taken = true;
    play_agent_kind(play, AGENT_EVENT_START);
    play_expect(play, "read_register");
}

static void open_hosting(struct play *play) {
    open_seeking(play);
    tell_kind(play, SUCCESSION_EVENT_READ);
    play_expect(play, "append claim 1 term 1: round 0 open [] wait [] spare []");
    tell_kind(play, SUCCESSION_EVENT_WON);
    play_expect(play, "host term 1; dial self at=3.000");
    tell_kind(play, SUCCESSION_EVENT_CONNECTED);
    play_forget(play);
}

#define PLAY_TEST(name) TEST_OF(play, name, open_hosting(&fixture), play_close)

PLAY_TEST(a_node_that_hosts_is_connected_to_itself_and_shows_what_is_in_its_store) {
    expect_taken(fixture, "host_connected; connected presence host; record round 0 ");
    expect_taken(fixture, "; written won; seen round 0 open [" ME "]");
}

PLAY_TEST(a_host_that_is_away_is_sought_again_and_one_that_cannot_be_is_given_up) {
    tell(fixture, (struct succession_event){
                      .kind = SUCCESSION_EVENT_CONNECTION_LOST, .loss = SUCCESSION_LOSS_SILENT});
    expect_taken(fixture, "connection_lost host_sought still_host ");
    expect_taken(fixture, "; seek at=");
    play_expect(fixture, "dial self at=3.000");
    play_close(fixture);
    open_seeking(fixture);
    tell(fixture, (struct succession_event){
                      .kind = SUCCESSION_EVENT_FAILED, .failed = {"permission denied", true}});
    expect_taken(fixture, "; connection_lost permission denied; join_failed ");
    play_expect(fixture, "finish join_failed; disconnect; settled");
}

PLAY_TEST(a_register_that_takes_nothing_is_told) {
    tell(fixture, (struct succession_event){.kind = SUCCESSION_EVENT_RENEWED, .is_refused = true});
    expect_taken(fixture, "renewed not; register stuck");
}

/* The record that is known says who stays. */
PLAY_TEST(a_host_that_leaves_shows_its_record) {
    tell_kind(fixture, SUCCESSION_EVENT_LEAVE);
    play_expect(fixture, "dismiss"); /* nobody stays */
}

/* This node is one of three that a has hosted; node b hosts the next term without it. */
TEST_OF(
    play, a_node_that_the_others_have_left_behind_is_fenced, open_seeking(&fixture), play_close) {
    play_write_round(fixture, 4, "mab");
    tell(fixture, (struct succession_event){.kind = SUCCESSION_EVENT_READ,
                      .is_there = true,
                      .entry = {7, 1, identity_of("a")},
                      .record = &fixture->record});
    tell(fixture,
        (struct succession_event){.kind = SUCCESSION_EVENT_CONNECTED, .offers_delegation = true});
    expect_taken(fixture, "host_connected; connected presence offer; record round 4 complete ");
    tell(fixture, (struct succession_event){
                      .kind = SUCCESSION_EVENT_CONNECTION_LOST, .loss = SUCCESSION_LOSS_SILENT});
    expect_taken(fixture, "host_lost silent; connection_lost host_sought the host ");
    play_write_round(fixture, 5, "ab");
    tell(fixture, (struct succession_event){.kind = SUCCESSION_EVENT_READ,
                      .is_there = true,
                      .entry = {8, 2, identity_of("b")},
                      .record = &fixture->record});
    expect_taken(fixture, "; fenced the others have gone on without this node");
}
