/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/static_transcript.h"

#include <inttypes.h>

static const char *const event_names[STATIC_EVENT_KIND_COUNT] = {
    [STATIC_EVENT_JOIN_ASKED] = "join_asked",
    [STATIC_EVENT_BARRIER_ASKED] = "barrier_asked",
    [STATIC_EVENT_RESTART_ASKED] = "restart_asked",
    [STATIC_EVENT_FAILURE_ASKED] = "failure_asked",
    [STATIC_EVENT_CONNECTED] = "connected",
    [STATIC_EVENT_CONNECTION_LOST] = "connection_lost",
    [STATIC_EVENT_COUNTED] = "counted",
    [STATIC_EVENT_WAITED] = "waited",
    [STATIC_EVENT_ROLE_INFOS] = "role_infos",
    [STATIC_EVENT_ASSIGNMENT] = "assignment",
    [STATIC_EVENT_CHECKED] = "checked",
    [STATIC_EVENT_VALUE] = "value",
    [STATIC_EVENT_RENEWED] = "renewed",
    [STATIC_EVENT_TIMER_FIRED] = "timer_fired",
};

static const char *const effect_names[STATIC_EFFECT_KIND_COUNT] = {
    [STATIC_EFFECT_CONNECT] = "connect",
    [STATIC_EFFECT_ADD] = "add",
    [STATIC_EFFECT_SET] = "set",
    [STATIC_EFFECT_COMPARE_SET] = "compare_set",
    [STATIC_EFFECT_GET] = "get",
    [STATIC_EFFECT_CHECK] = "check",
    [STATIC_EFFECT_WAIT] = "wait",
    [STATIC_EFFECT_SET_ROLE_INFO] = "set_role_info",
    [STATIC_EFFECT_GET_ROLE_INFOS] = "get_role_infos",
    [STATIC_EFFECT_SET_ASSIGNMENTS] = "set_assignments",
    [STATIC_EFFECT_GET_ASSIGNMENT] = "get_assignment",
    [STATIC_EFFECT_RENEW_WORKER_STORE] = "renew_worker_store",
    [STATIC_EFFECT_ARM_TIMER] = "arm_timer",
    [STATIC_EFFECT_DISARM_TIMER] = "disarm_timer",
    [STATIC_EFFECT_JOINED] = "joined",
    [STATIC_EFFECT_JOIN_FAILED] = "join_failed",
    [STATIC_EFFECT_BARRIER_PASSED] = "barrier_passed",
    [STATIC_EFFECT_BARRIER_FAILED] = "barrier_failed",
    [STATIC_EFFECT_PEER_RESTART] = "peer_restart",
    [STATIC_EFFECT_PEER_FAILED] = "peer_failed",
};

static void describe_key(const struct static_key *key, struct text *out) {
    text_append(out, " ");
    static_key_describe(key, out);
}

static void describe_ranks(const struct rank_assignment *ranks, struct text *out) {
    text_append_format(out, " [%d, %d, %d, %d]", ranks->base_rank, ranks->world_size,
        ranks->role_base_rank, ranks->role_world_size);
}

void static_event_describe(const struct static_event *event, struct text *out) {
    text_append(out, event_names[event->kind]);
    switch (event->kind) {
    case STATIC_EVENT_JOIN_ASKED:
        text_append_format(out, " attempt=%d", event->join.attempt);
        break;
    case STATIC_EVENT_COUNTED:
        describe_key(&event->key, out);
        text_append_format(out, " %" PRId64, event->count);
        break;
    case STATIC_EVENT_ROLE_INFOS:
        text_append_format(out, " %zu", event->role_infos.count);
        break;
    case STATIC_EVENT_ASSIGNMENT:
        describe_ranks(&event->assignment, out);
        break;
    case STATIC_EVENT_CHECKED:
        describe_key(&event->key, out);
        text_append(out, event->is_present ? " present" : " absent");
        break;
    case STATIC_EVENT_WAITED:
        describe_key(&event->key, out);
        break;
    case STATIC_EVENT_VALUE:
        describe_key(&event->key, out);
        text_append_format(out, " %s", event->text);
        break;
    case STATIC_EVENT_BARRIER_ASKED:
    case STATIC_EVENT_RESTART_ASKED:
    case STATIC_EVENT_FAILURE_ASKED:
    case STATIC_EVENT_CONNECTED:
    case STATIC_EVENT_CONNECTION_LOST:
    case STATIC_EVENT_RENEWED:
    case STATIC_EVENT_TIMER_FIRED:
    case STATIC_EVENT_KIND_COUNT:
        break;
    }
}

static void describe_deadline(struct instant deadline, struct text *out) {
    int64_t milliseconds = deadline.nanoseconds / 1000000;
    text_append_format(out, " at=%" PRId64 ".%03" PRId64, milliseconds / 1000, milliseconds % 1000);
}

void static_effect_describe(const struct static_effect *effect, struct text *out) {
    text_append(out, effect_names[effect->kind]);
    switch (effect->kind) {
    case STATIC_EFFECT_ADD:
    case STATIC_EFFECT_GET:
    case STATIC_EFFECT_CHECK:
    case STATIC_EFFECT_WAIT:
        describe_key(&effect->key, out);
        break;
    case STATIC_EFFECT_SET:
    case STATIC_EFFECT_COMPARE_SET:
        describe_key(&effect->key, out);
        text_append_format(out, " %s", effect->value);
        break;
    case STATIC_EFFECT_SET_ASSIGNMENTS:
        text_append_format(out, " %zu%s", effect->assignments.count,
            effect->assignments.is_coordinated ? " coordinated" : "");
        break;
    case STATIC_EFFECT_ARM_TIMER:
        describe_deadline(effect->deadline, out);
        break;
    case STATIC_EFFECT_JOINED:
        text_append_format(out, " attempt=%d", effect->joined.attempt);
        describe_ranks(&effect->joined.ranks, out);
        break;
    case STATIC_EFFECT_JOIN_FAILED:
    case STATIC_EFFECT_PEER_FAILED:
        text_append_format(out, " %s", effect->failed.reason);
        break;
    case STATIC_EFFECT_PEER_RESTART:
        text_append_format(out, " attempt=%d", effect->attempt);
        break;
    case STATIC_EFFECT_CONNECT:
    case STATIC_EFFECT_SET_ROLE_INFO:
    case STATIC_EFFECT_GET_ROLE_INFOS:
    case STATIC_EFFECT_GET_ASSIGNMENT:
    case STATIC_EFFECT_RENEW_WORKER_STORE:
    case STATIC_EFFECT_DISARM_TIMER:
    case STATIC_EFFECT_BARRIER_PASSED:
    case STATIC_EFFECT_BARRIER_FAILED:
    case STATIC_EFFECT_KIND_COUNT:
        break;
    }
}
