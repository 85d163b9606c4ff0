/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/standby/standby_transcript.h"

#include <inttypes.h>

static const char *const event_names[STANDBY_EVENT_COUNT] = {
    [STANDBY_EVENT_ATTEMPT_BEGAN] = "attempt_began",
    [STANDBY_EVENT_WORKERS_STARTED] = "workers_started",
    [STANDBY_EVENT_WORKERS_ENDING] = "workers_ending",
    [STANDBY_EVENT_JOB_ENDING] = "job_ending",
    [STANDBY_EVENT_HELLO] = "hello",
    [STANDBY_EVENT_RECORDS] = "records",
    [STANDBY_EVENT_INVITED] = "invited",
    [STANDBY_EVENT_LINE] = "line",
    [STANDBY_EVENT_SPARE_HELLO] = "spare_hello",
    [STANDBY_EVENT_SPARE_READY] = "spare_ready",
    [STANDBY_EVENT_SPARE_DIRTY] = "spare_dirty",
    [STANDBY_EVENT_SPARE_UNSUITED] = "spare_unsuited",
    [STANDBY_EVENT_SPARE_ENDED] = "spare_ended",
    [STANDBY_EVENT_SPARE_FAILED] = "spare_failed",
    [STANDBY_EVENT_SPARE_GIVEN] = "spare_given",
    [STANDBY_EVENT_SPARE_REFUSED] = "spare_refused",
    [STANDBY_EVENT_PARENT] = "parent",
    [STANDBY_EVENT_TIMER_FIRED] = "timer_fired",
};

static const char *const effect_names[STANDBY_EFFECT_COUNT] = {
    [STANDBY_EFFECT_WARM] = "warm",
    [STANDBY_EFFECT_TEACH] = "teach",
    [STANDBY_EFFECT_END_SPARE] = "end_spare",
    [STANDBY_EFFECT_END_ALL] = "end_all",
    [STANDBY_EFFECT_LOOK] = "look",
    [STANDBY_EFFECT_PUBLISH] = "publish",
    [STANDBY_EFFECT_WARMED] = "warmed",
    [STANDBY_EFFECT_ARM_TIMER] = "arm_timer",
    [STANDBY_EFFECT_DISARM_TIMER] = "disarm_timer",
    [STANDBY_EFFECT_TELL_AWAITED] = "tell_awaited",
    [STANDBY_EFFECT_TELL_READY] = "tell_ready",
    [STANDBY_EFFECT_TELL_TAUGHT] = "tell_taught",
    [STANDBY_EFFECT_TELL_USED] = "tell_used",
    [STANDBY_EFFECT_TELL_OFF] = "tell_off",
    [STANDBY_EFFECT_TELL_SCARCE] = "tell_scarce",
    [STANDBY_EFFECT_TELL_SILENT] = "tell_silent",
};

static const char *const off_names[STANDBY_OFF_COUNT] = {
    [STANDBY_OFF_NONE] = "none",
    [STANDBY_OFF_DIRTY] = "dirty",
    [STANDBY_OFF_UNSUITED] = "unsuited",
    [STANDBY_OFF_LATE] = "late",
    [STANDBY_OFF_ENDED] = "ended",
    [STANDBY_OFF_DEATHS] = "deaths",
};

static const char *const cold_names[STANDBY_COLD_COUNT] = {
    [STANDBY_COLD_NOT] = "not",
    [STANDBY_COLD_NONE] = "none",
    [STANDBY_COLD_SILENT] = "silent",
    [STANDBY_COLD_SCARCE] = "scarce",
    [STANDBY_COLD_DUE] = "due",
    [STANDBY_COLD_IMPORTING] = "importing",
    [STANDBY_COLD_LEARNING] = "learning",
    [STANDBY_COLD_ENDED] = "ended",
    [STANDBY_COLD_REFUSED] = "refused",
    [STANDBY_COLD_OFF] = "off",
};

static void describe_used(const struct standby_effect *effect, struct text *out) {
    const enum standby_cold *cold = effect->told.cold;
    text_append_format(out, " %d/%d", effect->told.count, effect->told.total);
    for (int rank = 0; effect->told.count < effect->told.total && rank < effect->told.total;
         rank++) {
        text_append_format(out, "%s%s", rank == 0 ? " cold=" : ",", cold_names[cold[rank]]);
    }
}

const char *standby_off_name(enum standby_off why) {
    return off_names[why];
}

void standby_event_describe(const struct standby_event *event, struct text *out) {
    text_append(out, event_names[event->kind]);
    switch (event->kind) {
    case STANDBY_EVENT_WORKERS_STARTED:
        text_append(out, event->may_restart ? "" : " last");
        break;
    case STANDBY_EVENT_PARENT:
        text_append(out, event->parent.is_there ? " ready" : " gone");
        text_append(out, event->parent.has_cut ? " unsuited" : "");
        break;
    case STANDBY_EVENT_HELLO:
    case STANDBY_EVENT_SPARE_HELLO:
    case STANDBY_EVENT_LINE:
    case STANDBY_EVENT_SPARE_DIRTY:
    case STANDBY_EVENT_SPARE_FAILED:
    case STANDBY_EVENT_SPARE_GIVEN:
    case STANDBY_EVENT_SPARE_REFUSED:
        text_append_format(out, " rank=%d", event->local_rank);
        break;
    case STANDBY_EVENT_RECORDS:
        text_append_format(out, " quiet=%.3f modules=%zu memory=%" PRIu64,
            duration_seconds(event->records.quiet), event->records.modules, event->records.memory);
        break;
    case STANDBY_EVENT_INVITED:
        text_append_format(out, " modules=%zu", event->records.modules);
        break;
    case STANDBY_EVENT_SPARE_READY:
        text_append_format(out, " rank=%d bytes=%" PRIu64 "%s", event->ready.local_rank,
            event->ready.bytes, event->ready.is_at_line ? " at its line" : "");
        break;
    case STANDBY_EVENT_SPARE_UNSUITED:
        text_append_format(out, " rank=%d%s", event->unsuited.local_rank,
            event->unsuited.is_new ? "" : " nothing new");
        break;
    case STANDBY_EVENT_SPARE_ENDED:
        text_append_format(out, " rank=%d %s=%d", event->ended.local_rank,
            event->ended.exit.is_signal ? "signal" : "status", event->ended.exit.value);
        break;
    case STANDBY_EVENT_ATTEMPT_BEGAN:
    case STANDBY_EVENT_WORKERS_ENDING:
    case STANDBY_EVENT_JOB_ENDING:
    case STANDBY_EVENT_TIMER_FIRED:
    case STANDBY_EVENT_COUNT:
        break;
    }
}

void standby_effect_describe(const struct standby_effect *effect, struct text *out) {
    text_append(out, effect_names[effect->kind]);
    switch (effect->kind) {
    case STANDBY_EFFECT_WARM:
        text_append_format(
            out, " rank=%d%s", effect->local_rank, effect->makes_way ? "" : " alone");
        break;
    case STANDBY_EFFECT_TEACH:
    case STANDBY_EFFECT_END_SPARE:
        text_append_format(out, " rank=%d", effect->local_rank);
        break;
    case STANDBY_EFFECT_ARM_TIMER:
        text_append_format(
            out, " at=%.3f", (double)effect->deadline.nanoseconds / (double)NANOSECONDS_PER_SECOND);
        break;
    case STANDBY_EFFECT_TELL_READY:
        text_append_format(out, " %d/%d bytes=%" PRIu64, effect->told.count, effect->told.total,
            effect->told.bytes);
        break;
    case STANDBY_EFFECT_TELL_USED:
        describe_used(effect, out);
        break;
    case STANDBY_EFFECT_TELL_TAUGHT:
        text_append_format(out, " %d/%d", effect->told.count, effect->told.total);
        break;
    case STANDBY_EFFECT_TELL_AWAITED:
        text_append_format(out, " %d/%d importing=%d unbegun=%d ended=%d", effect->awaited.ready,
            effect->awaited.total, effect->awaited.importing, effect->awaited.unbegun,
            effect->awaited.ended);
        break;
    case STANDBY_EFFECT_TELL_OFF:
        text_append_format(
            out, " %s rank=%d", standby_off_name(effect->off.why), effect->off.local_rank);
        break;
    case STANDBY_EFFECT_END_ALL:
    case STANDBY_EFFECT_LOOK:
    case STANDBY_EFFECT_PUBLISH:
    case STANDBY_EFFECT_WARMED:
    case STANDBY_EFFECT_DISARM_TIMER:
    case STANDBY_EFFECT_TELL_SCARCE:
    case STANDBY_EFFECT_TELL_SILENT:
    case STANDBY_EFFECT_COUNT:
        break;
    }
}
