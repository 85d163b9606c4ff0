/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_transcript.h"

#include <inttypes.h>

static const char *const event_names[RENDEZVOUS_EVENT_KIND_COUNT] = {
    [RENDEZVOUS_EVENT_JOIN_ASKED] = "join_asked",
    [RENDEZVOUS_EVENT_RESTART_ASKED] = "restart_asked",
    [RENDEZVOUS_EVENT_FAILURE_ASKED] = "failure_asked",
    [RENDEZVOUS_EVENT_WARMED] = "warmed",
    [RENDEZVOUS_EVENT_OPENED] = "opened",
    [RENDEZVOUS_EVENT_PLACED] = "placed",
    [RENDEZVOUS_EVENT_DONE_ASKED] = "done_asked",
    [RENDEZVOUS_EVENT_CLOSE_ASKED] = "close_asked",
    [RENDEZVOUS_EVENT_LEAVE_ASKED] = "leave_asked",
    [RENDEZVOUS_EVENT_CONNECTED] = "connected",
    [RENDEZVOUS_EVENT_CONNECTION_LOST] = "connection_lost",
    [RENDEZVOUS_EVENT_RECORD] = "record",
    [RENDEZVOUS_EVENT_WRITTEN] = "written",
    [RENDEZVOUS_EVENT_CHANGED] = "changed",
    [RENDEZVOUS_EVENT_STRANGER_WROTE] = "stranger_wrote",
    [RENDEZVOUS_EVENT_NODE_GONE] = "node_gone",
    [RENDEZVOUS_EVENT_WISHED] = "wished",
    [RENDEZVOUS_EVENT_STANDING] = "standing",
    [RENDEZVOUS_EVENT_HOST_LEAVES] = "host_leaves",
    [RENDEZVOUS_EVENT_FINISHED_COUNT] = "finished_count",
    [RENDEZVOUS_EVENT_ROLL_ANSWERED] = "roll_answered",
    [RENDEZVOUS_EVENT_BROKEN] = "broken",
    [RENDEZVOUS_EVENT_FENCED] = "fenced",
    [RENDEZVOUS_EVENT_REGISTER] = "register",
    [RENDEZVOUS_EVENT_TIMER_FIRED] = "timer_fired",
};

static const char *const effect_names[RENDEZVOUS_EFFECT_KIND_COUNT] = {
    [RENDEZVOUS_EFFECT_CONNECT] = "connect",
    [RENDEZVOUS_EFFECT_PRESENT] = "present",
    [RENDEZVOUS_EFFECT_BEAT] = "beat",
    [RENDEZVOUS_EFFECT_FETCH] = "fetch",
    [RENDEZVOUS_EFFECT_WRITE] = "write",
    [RENDEZVOUS_EFFECT_TELL_WATCHERS] = "tell_watchers",
    [RENDEZVOUS_EFFECT_COUNT_FINISHED] = "count_finished",
    [RENDEZVOUS_EFFECT_CALL_ROLL] = "call_roll",
    [RENDEZVOUS_EFFECT_ANSWER_ROLL] = "answer_roll",
    [RENDEZVOUS_EFFECT_WARM] = "warm",
    [RENDEZVOUS_EFFECT_TELL_STANDINGS] = "tell_standings",
    [RENDEZVOUS_EFFECT_CUT_OFF] = "cut_off",
    [RENDEZVOUS_EFFECT_ARM_TIMER] = "arm_timer",
    [RENDEZVOUS_EFFECT_WORLD] = "world",
    [RENDEZVOUS_EFFECT_RELEASED] = "released",
    [RENDEZVOUS_EFFECT_ROUND_OVER] = "round_over",
    [RENDEZVOUS_EFFECT_STORE_AWAITED] = "store_awaited",
    [RENDEZVOUS_EFFECT_CLOSED] = "closed",
    [RENDEZVOUS_EFFECT_FAILED] = "failed",
    [RENDEZVOUS_EFFECT_FAILURE_STANDS] = "failure_stands",
    [RENDEZVOUS_EFFECT_SETTLED] = "settled",
};

static void describe_record(const struct rendezvous_state *state, struct text *out) {
    text_append(out, " ");
    if (state == NULL) {
        text_append(out, "absent");
    } else {
        rendezvous_state_describe(state, out);
    }
}

static void describe_reason(const char *reason, struct text *out) {
    if (reason[0] != '\0') {
        text_append_format(out, " %s", reason);
    }
}

static void describe_signal(int signal_or_none, struct text *out) {
    if (signal_or_none != 0) {
        text_append_format(out, " signal=%d", signal_or_none);
    }
}

static void describe_node(
    const struct node_identity *identity, bool has_finished, struct text *out) {
    text_append(out, " ");
    node_identity_describe(identity, out);
    text_append(out, has_finished ? " finished" : "");
}

static void describe_round(const char *name, int64_t round, struct text *out) {
    if (round != RENDEZVOUS_WISH_NO_ROUND) {
        text_append_format(out, " %s %" PRId64, name, round);
    }
}

static void describe_meeting(const struct rendezvous_meeting *meeting, struct text *out) {
    if (meeting->port != 0) {
        text_append_format(out, " meets at %s port %d", meeting->address, meeting->port);
    }
}

static void describe_wish(const struct rendezvous_wish *wish, struct text *out) {
    static const char *const names[RENDEZVOUS_WISH_KIND_COUNT] = {
        "nothing", "own", "look", "join", "leave", "close"};
    text_append_format(out, " wish %" PRId64 " %s", wish->sequence, names[wish->kind]);
    if (wish->kind != RENDEZVOUS_WISH_NONE) {
        describe_round("finished", wish->finished_round, out);
        describe_round(wish->is_charged ? "failed" : "ended", wish->ended_round, out);
        describe_round("doubted", wish->doubted_round, out);
    }
    if (wish->local_world_size > 0) {
        text_append_format(out, " as %s with %d", wish->role, wish->local_world_size);
        text_append(out, wish->meeting.round == RENDEZVOUS_WISH_ANY_ROUND ? " new" : "");
    }
    if (wish->meeting.round >= 0) {
        describe_round("ready", wish->meeting.round, out);
    }
    describe_meeting(&wish->meeting, out);
    describe_signal(wish->signal, out);
    describe_reason(wish->reason, out);
}

static void describe_present(const struct rendezvous_effect *effect, struct text *out) {
    describe_node(&effect->present.identity, effect->present.has_finished, out);
    if (effect->present.wish != NULL) {
        describe_wish(effect->present.wish, out);
    }
}

static void describe_standing(const struct rendezvous_event *event, struct text *out) {
    if (event->standing.is_withdrawn) {
        text_append(out, " withdrawn");
    } else {
        text_append_format(out, " to wish %" PRId64, event->standing.answers);
        describe_record(event->standing.state, out);
        text_append(out, event->standing.is_held ? " held" : "");
        describe_meeting(&event->standing.meeting, out);
    }
}

static void describe_deadline(struct instant deadline, struct text *out) {
    text_append_format(
        out, " %.3f", duration_seconds((struct duration){.nanoseconds = deadline.nanoseconds}));
}

static void describe_world(const struct rendezvous_effect *effect, struct text *out) {
    text_append_format(out, " round %" PRId64 " rank %d of %d%s%s", effect->world.round,
        effect->world.group_rank, effect->world.node_count,
        effect->world.ranks.world_size > 0 ? " ranked" : "", effect->world.is_held ? " held" : "");
    describe_meeting(&effect->world.meeting, out);
}

static void describe_opened(const struct rendezvous_event *event, struct text *out) {
    text_append_format(out, " round %" PRId64 " at %s port %d", event->opened.round,
        event->opened.address, event->opened.port);
}

static void describe_connected(const struct rendezvous_event *event, struct text *out) {
    text_append(out, event->connected.has_presence ? " presence" : "");
    text_append(out, event->connected.is_host ? " host" : "");
    text_append(out, event->connected.is_same_store ? " again" : "");
    text_append(out, event->connected.offers_delegation ? " offer" : "");
}

void rendezvous_event_describe(const struct rendezvous_event *event, struct text *out) {
    text_append(out, event_names[event->kind]);
    describe_signal(event->signal, out);
    switch (event->kind) {
    case RENDEZVOUS_EVENT_RESTART_ASKED:
    case RENDEZVOUS_EVENT_FAILURE_ASKED:
    case RENDEZVOUS_EVENT_CLOSE_ASKED:
    case RENDEZVOUS_EVENT_BROKEN:
    case RENDEZVOUS_EVENT_FENCED:
        describe_reason(event->reason, out);
        break;
    case RENDEZVOUS_EVENT_REGISTER:
        text_append(out, event->is_register_stuck ? " stuck" : " well");
        break;
    case RENDEZVOUS_EVENT_CONNECTED:
        describe_connected(event, out);
        break;
    case RENDEZVOUS_EVENT_CONNECTION_LOST:
        text_append(out, event->lost.is_silent ? " silent" : "");
        text_append(out, event->lost.was_heard ? " heard" : "");
        text_append(out, event->lost.is_host_sought ? " host_sought" : "");
        text_append(out, event->lost.keeps_hosting ? " still_host" : "");
        describe_reason(event->lost.reason, out);
        break;
    case RENDEZVOUS_EVENT_RECORD:
        describe_record(event->state, out);
        break;
    case RENDEZVOUS_EVENT_WRITTEN:
        text_append(out, event->written.has_won ? " won" : " lost");
        if (!event->written.has_won) {
            describe_record(event->written.state, out);
        }
        break;
    case RENDEZVOUS_EVENT_NODE_GONE:
        describe_node(&event->gone.identity, event->gone.has_finished, out);
        break;
    case RENDEZVOUS_EVENT_WISHED:
        describe_node(&event->wished.identity, false, out);
        describe_wish(&event->wished.wish, out);
        break;
    case RENDEZVOUS_EVENT_STANDING:
        describe_standing(event, out);
        break;
    case RENDEZVOUS_EVENT_FINISHED_COUNT:
        text_append_format(out, " %" PRId64, event->finished_count);
        break;
    case RENDEZVOUS_EVENT_OPENED:
        describe_opened(event, out);
        break;
    case RENDEZVOUS_EVENT_JOIN_ASKED:
    case RENDEZVOUS_EVENT_WARMED:
    case RENDEZVOUS_EVENT_PLACED:
    case RENDEZVOUS_EVENT_DONE_ASKED:
    case RENDEZVOUS_EVENT_LEAVE_ASKED:
    case RENDEZVOUS_EVENT_CHANGED:
    case RENDEZVOUS_EVENT_STRANGER_WROTE:
    case RENDEZVOUS_EVENT_HOST_LEAVES:
    case RENDEZVOUS_EVENT_ROLL_ANSWERED:
    case RENDEZVOUS_EVENT_TIMER_FIRED:
    case RENDEZVOUS_EVENT_KIND_COUNT:
        break;
    }
}

static void describe_end(const struct rendezvous_effect *effect, struct text *out) {
    text_append(out, effect->told.is_next_whole ? " next_whole" : "");
    describe_signal(effect->told.signal, out);
    describe_reason(effect->told.reason, out);
}

static void describe_release(const struct rendezvous_effect *effect, struct text *out) {
    text_append_format(out, " round %" PRId64, effect->released.round);
    describe_meeting(&effect->released.meeting, out);
}

static void describe_connect(const struct rendezvous_effect *effect, struct text *out) {
    describe_deadline(effect->deadline, out);
    if (effect->refusal_patience.nanoseconds > 0) {
        text_append_format(out, " or refused for %.3f", duration_seconds(effect->refusal_patience));
    }
}

void rendezvous_effect_describe(const struct rendezvous_effect *effect, struct text *out) {
    text_append(out, effect_names[effect->kind]);
    switch (effect->kind) {
    case RENDEZVOUS_EFFECT_PRESENT:
        describe_present(effect, out);
        break;
    case RENDEZVOUS_EFFECT_TELL_STANDINGS:
        text_append_format(out, " %zu%s", effect->standings.count,
            effect->standings.is_withdrawn ? " withdrawn" : "");
        break;
    case RENDEZVOUS_EFFECT_CUT_OFF:
        describe_node(&effect->cut_off, false, out);
        break;
    case RENDEZVOUS_EFFECT_WRITE:
        text_append(out, effect->write.is_quiet ? " quietly" : "");
        describe_record(effect->write.state, out);
        break;
    case RENDEZVOUS_EFFECT_COUNT_FINISHED:
        text_append_format(out, " %" PRId64, effect->round);
        break;
    case RENDEZVOUS_EFFECT_CALL_ROLL:
    case RENDEZVOUS_EFFECT_ANSWER_ROLL:
        text_append_format(out, " round %" PRId64 "%s%d", effect->roll.round,
            effect->kind == RENDEZVOUS_EFFECT_CALL_ROLL ? " of " : " rank ", effect->roll.number);
        break;
    case RENDEZVOUS_EFFECT_CONNECT:
        describe_connect(effect, out);
        break;
    case RENDEZVOUS_EFFECT_WARM:
    case RENDEZVOUS_EFFECT_ARM_TIMER:
        describe_deadline(effect->deadline, out);
        break;
    case RENDEZVOUS_EFFECT_STORE_AWAITED:
        text_append_format(out, " for %.3f left %.3f", duration_seconds(effect->awaited.waited),
            duration_seconds(effect->awaited.left));
        break;
    case RENDEZVOUS_EFFECT_WORLD:
        describe_world(effect, out);
        break;
    case RENDEZVOUS_EFFECT_RELEASED:
        describe_release(effect, out);
        break;
    case RENDEZVOUS_EFFECT_CLOSED:
        text_append(out, effect->told.is_spare ? " spare" : "");
        describe_end(effect, out);
        break;
    case RENDEZVOUS_EFFECT_ROUND_OVER:
    case RENDEZVOUS_EFFECT_FAILED:
        describe_end(effect, out);
        break;
    case RENDEZVOUS_EFFECT_BEAT:
    case RENDEZVOUS_EFFECT_FETCH:
    case RENDEZVOUS_EFFECT_TELL_WATCHERS:
    case RENDEZVOUS_EFFECT_FAILURE_STANDS:
    case RENDEZVOUS_EFFECT_SETTLED:
    case RENDEZVOUS_EFFECT_KIND_COUNT:
        break;
    }
}
