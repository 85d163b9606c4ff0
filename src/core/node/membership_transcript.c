/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/node/membership_transcript.h"

#include <inttypes.h>

#include "core/agent/agent_transcript.h"
#include "core/rendezvous/rendezvous_transcript.h"
#include "core/round/round_transcript.h"

static const char *const event_names[MEMBERSHIP_EVENT_KIND_COUNT] = {
    [MEMBERSHIP_EVENT_NONE] = "none",
    [MEMBERSHIP_EVENT_JOIN_ASKED] = "join_asked",
    [MEMBERSHIP_EVENT_BARRIER_ASKED] = "barrier_asked",
    [MEMBERSHIP_EVENT_LEAVE_ASKED] = "leave_asked",
    [MEMBERSHIP_EVENT_SUCCESS_ASKED] = "success_asked",
    [MEMBERSHIP_EVENT_END_ASKED] = "end_asked",
    [MEMBERSHIP_EVENT_RESTART_ASKED] = "restart_asked",
    [MEMBERSHIP_EVENT_DOUBT_ASKED] = "doubt_asked",
    [MEMBERSHIP_EVENT_FAILURE_ASKED] = "failure_asked",
    [MEMBERSHIP_EVENT_HOSTING] = "hosting",
    [MEMBERSHIP_EVENT_HOSTING_OVER] = "hosting_over",
    [MEMBERSHIP_EVENT_STORE_RENEWED] = "store_renewed",
    [MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT] = "root_cause_learnt",
    [MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED] = "root_cause_looked",
    [MEMBERSHIP_EVENT_MISPLACED] = "misplaced",
    [MEMBERSHIP_EVENT_LEFT] = "left",
    [MEMBERSHIP_EVENT_TIMER_FIRED] = "timer_fired",
    [MEMBERSHIP_EVENT_WORLD] = "world",
    [MEMBERSHIP_EVENT_WORLD_RELEASED] = "world_released",
    [MEMBERSHIP_EVENT_WORLD_OVER] = "world_over",
    [MEMBERSHIP_EVENT_STORE_AWAITED] = "store_awaited",
    [MEMBERSHIP_EVENT_CLOSED] = "closed",
    [MEMBERSHIP_EVENT_JOB_FAILED] = "job_failed",
    [MEMBERSHIP_EVENT_FAILED] = "failed",
    [MEMBERSHIP_EVENT_FAILURE_STANDS] = "failure_stands",
    [MEMBERSHIP_EVENT_SETTLED] = "settled",
    [MEMBERSHIP_EVENT_STORE_OPENED] = "store_opened",
    [MEMBERSHIP_EVENT_PLACED] = "placed",
    [MEMBERSHIP_EVENT_NOT_PLACED] = "not_placed",
    [MEMBERSHIP_EVENT_BARRIER_PASSED] = "barrier_passed",
    [MEMBERSHIP_EVENT_BARRIER_FAILED] = "barrier_failed",
    [MEMBERSHIP_EVENT_BARRIER_LATE] = "barrier_late",
    [MEMBERSHIP_EVENT_RANK_DISPUTED] = "rank_disputed",
    [MEMBERSHIP_EVENT_PEER_RESTART] = "peer_restart",
    [MEMBERSHIP_EVENT_PEER_FAILED] = "peer_failed",
};

void membership_event_describe(const struct membership_event *event, struct text *out) {
    text_append(out, event_names[event->kind]);
    if (membership_event_has_account(event->kind) && event->account != NULL) {
        text_append(out, " ");
        failure_account_describe(event->account, out);
    }
}

void membership_effect_describe(const struct membership_effect *effect, struct text *out) {
    switch (effect->kind) {
    case MEMBERSHIP_EFFECT_TELL_AGENT:
        text_append(out, "agent: ");
        agent_event_describe(&effect->agent, out);
        break;
    case MEMBERSHIP_EFFECT_TELL_RENDEZVOUS:
        text_append(out, "rendezvous: ");
        rendezvous_event_describe(&effect->rendezvous, out);
        break;
    case MEMBERSHIP_EFFECT_TELL_ROUND:
        text_append(out, "round: ");
        round_event_describe(&effect->round, out);
        break;
    case MEMBERSHIP_EFFECT_NOTE:
        text_append_format(out, "note %s", effect->note.text);
        break;
    case MEMBERSHIP_EFFECT_PUBLISH_ROOT_CAUSE:
        text_append_format(out, "publish_root_cause round=%" PRId64 " ", effect->root_cause.round);
        failure_account_describe(effect->root_cause.account, out);
        break;
    case MEMBERSHIP_EFFECT_LOOK_FOR_ROOT_CAUSE:
        text_append_format(out, "look_for_root_cause round=%" PRId64, effect->root_cause.round);
        break;
    case MEMBERSHIP_EFFECT_ARM_TIMER:
        text_append_format(out, "arm_timer at=%.3f", (double)effect->deadline.nanoseconds / 1e9);
        break;
    case MEMBERSHIP_EFFECT_CANCEL_ROLL:
        text_append(out, "cancel_roll");
        break;
    case MEMBERSHIP_EFFECT_RENEW_WORKER_STORE:
        text_append(out, "renew_worker_store");
        break;
    case MEMBERSHIP_EFFECT_DISCONNECT:
        text_append(out, "disconnect");
        break;
    case MEMBERSHIP_EFFECT_LINGER:
        text_append_format(out, "linger seconds=%g", duration_seconds(effect->patience));
        break;
    case MEMBERSHIP_EFFECT_FLUSH:
        text_append_format(out, "flush seconds=%g", duration_seconds(effect->patience));
        break;
    case MEMBERSHIP_EFFECT_SETTLED:
        text_append(out, "settled");
        break;
    case MEMBERSHIP_EFFECT_KIND_COUNT:
        break;
    }
}

const char *membership_stage_name(enum membership_stage stage) {
    static const char *const names[MEMBERSHIP_STAGE_COUNT] = {
        [MEMBERSHIP_IDLE] = "idle",
        [MEMBERSHIP_JOINING] = "joining",
        [MEMBERSHIP_JOINED] = "joined",
        [MEMBERSHIP_SETTLING] = "settling",
        [MEMBERSHIP_BARRIER] = "barrier",
        [MEMBERSHIP_GIVEN_UP] = "given_up",
    };
    return names[stage];
}
