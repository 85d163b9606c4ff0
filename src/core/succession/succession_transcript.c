/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/succession/succession_transcript.h"

#include <inttypes.h>

static const char *const event_names[SUCCESSION_EVENT_KIND_COUNT] = {
    [SUCCESSION_EVENT_SEEK] = "seek",
    [SUCCESSION_EVENT_SEEN] = "seen",
    [SUCCESSION_EVENT_READ] = "entry_read",
    [SUCCESSION_EVENT_WON] = "append_won",
    [SUCCESSION_EVENT_LOST] = "append_lost",
    [SUCCESSION_EVENT_UNKNOWN] = "append_unknown",
    [SUCCESSION_EVENT_RENEWED] = "renewed",
    [SUCCESSION_EVENT_RENEWAL] = "renewal",
    [SUCCESSION_EVENT_NEWS] = "news",
    [SUCCESSION_EVENT_FAILED] = "register_failed",
    [SUCCESSION_EVENT_CONNECTED] = "host_connected",
    [SUCCESSION_EVENT_CONNECTION_LOST] = "host_lost",
    [SUCCESSION_EVENT_NODE_SILENT] = "node_silent",
    [SUCCESSION_EVENT_NODE_GONE] = "node_left",
    [SUCCESSION_EVENT_DOUBTED] = "host_doubted",
    [SUCCESSION_EVENT_NAMED] = "named",
    [SUCCESSION_EVENT_MOVED] = "store_moved",
    [SUCCESSION_EVENT_LEAVE] = "leave_store",
    [SUCCESSION_EVENT_TIMER_FIRED] = "succession_timer_fired",
};

static const char *const effect_names[SUCCESSION_EFFECT_KIND_COUNT] = {
    [SUCCESSION_EFFECT_READ] = "read_register",
    [SUCCESSION_EFFECT_APPEND] = "append",
    [SUCCESSION_EFFECT_RENEW] = "renew",
    [SUCCESSION_EFFECT_LOOK] = "look_at_renewal",
    [SUCCESSION_EFFECT_WATCH] = "watch_register",
    [SUCCESSION_EFFECT_DIAL] = "dial",
    [SUCCESSION_EFFECT_HOST] = "host",
    [SUCCESSION_EFFECT_END_HOSTING] = "end_hosting",
    [SUCCESSION_EFFECT_TELL_COMMITTED] = "tell_committed",
    [SUCCESSION_EFFECT_NAME] = "name",
    [SUCCESSION_EFFECT_DISMISS] = "dismiss",
    [SUCCESSION_EFFECT_ARM_TIMER] = "arm_succession_timer",
    [SUCCESSION_EFFECT_TELL_CONNECTED] = "tell_connected",
    [SUCCESSION_EFFECT_TELL_LOST] = "tell_lost",
    [SUCCESSION_EFFECT_FENCED] = "fenced",
    [SUCCESSION_EFFECT_TELL_REGISTER] = "tell_register",
    [SUCCESSION_EFFECT_GAVE_UP] = "gave_up",
};

static const char *const loss_names[] = {
    [SUCCESSION_LOSS_ENDED] = "ended",
    [SUCCESSION_LOSS_REFUSED] = "refused",
    [SUCCESSION_LOSS_SILENT] = "silent",
    [SUCCESSION_LOSS_OTHER] = "other",
};

static void describe_entry(const struct succession_event *event, struct text *out) {
    text_append_format(
        out, " %" PRId64 " term %" PRId64 " of ", event->entry.number, event->entry.term);
    node_identity_describe(&event->entry.host, out);
    text_append(out, ": ");
    rendezvous_state_describe(event->record, out);
}

static void append_deadline(struct instant deadline, struct text *out) {
    text_append_format(out, " at=%.3f", duration_seconds((struct duration){deadline.nanoseconds}));
}

void succession_event_describe(const struct succession_event *event, struct text *out) {
    text_append(out, event_names[event->kind]);
    switch (event->kind) {
    case SUCCESSION_EVENT_SEEK:
        append_deadline(event->deadline, out);
        break;
    case SUCCESSION_EVENT_SEEN:
        text_append(out, " ");
        rendezvous_state_describe(event->record, out);
        break;
    case SUCCESSION_EVENT_READ:
        if (!event->is_there) {
            text_append(out, " nothing");
            break;
        }
        describe_entry(event, out);
        break;
    case SUCCESSION_EVENT_LOST:
    case SUCCESSION_EVENT_NEWS:
        describe_entry(event, out);
        break;
    case SUCCESSION_EVENT_RENEWAL:
        text_append_format(out, " %s", event->renewal != NULL ? event->renewal : "unknown");
        break;
    case SUCCESSION_EVENT_FAILED:
        text_append_format(out, " %s", event->failed.reason);
        break;
    case SUCCESSION_EVENT_CONNECTION_LOST:
        text_append_format(out, " %s", loss_names[event->loss]);
        break;
    case SUCCESSION_EVENT_NODE_SILENT:
        text_append(out, " ");
        node_identity_describe(&event->silent, out);
        break;
    case SUCCESSION_EVENT_NODE_GONE:
        text_append(out, " ");
        node_identity_describe(&event->gone, out);
        break;
    case SUCCESSION_EVENT_DOUBTED:
        text_append(out, event->is_doubted ? "" : " no_more");
        break;
    case SUCCESSION_EVENT_RENEWED:
        text_append(out, event->is_refused ? " not" : "");
        break;
    case SUCCESSION_EVENT_WON:
    case SUCCESSION_EVENT_UNKNOWN:
    case SUCCESSION_EVENT_CONNECTED:
    case SUCCESSION_EVENT_NAMED:
    case SUCCESSION_EVENT_MOVED:
    case SUCCESSION_EVENT_LEAVE:
    case SUCCESSION_EVENT_TIMER_FIRED:
    case SUCCESSION_EVENT_KIND_COUNT:
        break;
    }
}

void succession_effect_describe(const struct succession_effect *effect, struct text *out) {
    text_append(out, effect_names[effect->kind]);
    switch (effect->kind) {
    case SUCCESSION_EFFECT_APPEND:
        text_append_format(out, " %s %" PRId64 " term %" PRId64 ": ",
            effect->append.is_named   ? "handover"
            : effect->append.is_claim ? "claim"
                                      : "commit",
            effect->append.number, effect->append.term);
        rendezvous_state_describe(effect->append.record, out);
        break;
    case SUCCESSION_EFFECT_RENEW:
    case SUCCESSION_EFFECT_LOOK:
        text_append_format(out, " term %" PRId64, effect->term);
        break;
    case SUCCESSION_EFFECT_WATCH:
        text_append_format(out, " after %" PRId64, effect->number);
        break;
    case SUCCESSION_EFFECT_DIAL:
        text_append(out, effect->dial.is_self ? " self" : "");
        append_deadline(effect->dial.deadline, out);
        break;
    case SUCCESSION_EFFECT_HOST:
        text_append_format(out, " term %" PRId64, effect->host.term);
        for (size_t i = 1; i < effect->host.former_count; i++) {
            text_append_format(
                out, " %s %s", i == 1 ? "after" : "and", effect->host.formers[i - 1].address);
        }
        break;
    case SUCCESSION_EFFECT_TELL_COMMITTED:
        text_append_format(out, " %" PRId64, effect->round);
        break;
    case SUCCESSION_EFFECT_NAME:
        text_append(out, " ");
        node_identity_describe(&effect->successor, out);
        break;
    case SUCCESSION_EFFECT_DISMISS:
        text_append(out, effect->has_successor ? " to_successor" : "");
        break;
    case SUCCESSION_EFFECT_TELL_REGISTER:
        text_append(out, effect->is_stuck ? " stuck" : " well");
        break;
    case SUCCESSION_EFFECT_ARM_TIMER:
        append_deadline(effect->deadline, out);
        break;
    case SUCCESSION_EFFECT_FENCED:
    case SUCCESSION_EFFECT_GAVE_UP:
        text_append_format(out, " %s", effect->reason);
        break;
    case SUCCESSION_EFFECT_READ:
    case SUCCESSION_EFFECT_END_HOSTING:
    case SUCCESSION_EFFECT_TELL_CONNECTED:
    case SUCCESSION_EFFECT_TELL_LOST:
    case SUCCESSION_EFFECT_KIND_COUNT:
        break;
    }
}
