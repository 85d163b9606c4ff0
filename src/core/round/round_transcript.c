/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/round/round_transcript.h"

#include <inttypes.h>

static const char *const event_names[ROUND_EVENT_KIND_COUNT] = {
    [ROUND_EVENT_BEGIN] = "begin",
    [ROUND_EVENT_RELEASED] = "released",
    [ROUND_EVENT_ABANDON] = "abandon",
    [ROUND_EVENT_BARRIER_ASKED] = "barrier_asked",
    [ROUND_EVENT_RESTART_ASKED] = "restart_asked",
    [ROUND_EVENT_FAILURE_ASKED] = "failure_asked",
    [ROUND_EVENT_CONNECTED] = "connected",
    [ROUND_EVENT_CONNECTION_LOST] = "connection_lost",
    [ROUND_EVENT_STORE_OPENED] = "store_opened",
    [ROUND_EVENT_STORE_FAILED] = "store_failed",
    [ROUND_EVENT_WAITED] = "waited",
    [ROUND_EVENT_CHECKED] = "checked",
    [ROUND_EVENT_COUNTED] = "counted",
    [ROUND_EVENT_ROLE_INFOS] = "role_infos",
    [ROUND_EVENT_VALUES] = "values",
    [ROUND_EVENT_TIMER_FIRED] = "timer_fired",
};

static const char *const effect_names[ROUND_EFFECT_KIND_COUNT] = {
    [ROUND_EFFECT_CONNECT] = "connect",
    [ROUND_EFFECT_OPEN_WORKER_STORE] = "open_worker_store",
    [ROUND_EFFECT_ADMIT] = "admit",
    [ROUND_EFFECT_SET_ROLE_INFO] = "set_role_info",
    [ROUND_EFFECT_SET_ASSIGNMENTS] = "set_assignments",
    [ROUND_EFFECT_PUBLISH] = "publish",
    [ROUND_EFFECT_SET] = "set",
    [ROUND_EFFECT_DECIDE] = "decide",
    [ROUND_EFFECT_ADD] = "add",
    [ROUND_EFFECT_CHECK] = "check",
    [ROUND_EFFECT_GET] = "get",
    [ROUND_EFFECT_WAIT] = "wait",
    [ROUND_EFFECT_CANCEL_WAIT] = "cancel_wait",
    [ROUND_EFFECT_FORGET] = "forget",
    [ROUND_EFFECT_CLEAR] = "clear",
    [ROUND_EFFECT_ARM_TIMER] = "arm_timer",
    [ROUND_EFFECT_DISARM_TIMER] = "disarm_timer",
    [ROUND_EFFECT_OPENED] = "opened",
    [ROUND_EFFECT_JOINED] = "joined",
    [ROUND_EFFECT_JOIN_FAILED] = "join_failed",
    [ROUND_EFFECT_BARRIER_PASSED] = "barrier_passed",
    [ROUND_EFFECT_BARRIER_FAILED] = "barrier_failed",
    [ROUND_EFFECT_BARRIER_LATE] = "barrier_late",
    [ROUND_EFFECT_RANK_DISPUTED] = "rank_disputed",
    [ROUND_EFFECT_PEER_RESTART] = "peer_restart",
    [ROUND_EFFECT_PEER_FAILED] = "peer_failed",
};

static void describe_key(const struct round_key *key, struct text *out) {
    text_append(out, " ");
    round_key_describe(key, out);
}

static void describe_ranks(const struct rank_assignment *ranks, struct text *out) {
    text_append_format(out, " [%d, %d, %d, %d]", ranks->base_rank, ranks->world_size,
        ranks->role_base_rank, ranks->role_world_size);
}

static void describe_round(int64_t round, struct text *out) {
    if (round != ROUND_OF_FIXED_NODES) {
        text_append_format(out, " %" PRId64, round);
    }
}

static void describe_values(const struct round_values *values, struct text *out) {
    if (values->address != NULL || values->port != 0) {
        text_append_format(
            out, " %s:%d", values->address != NULL ? values->address : "", values->port);
    }
    if (values->publisher != NULL) {
        text_append_format(out, " of %s", values->publisher);
    }
    if (values->has_ranks) {
        describe_ranks(&values->ranks, out);
    }
    if (values->claim != NULL) {
        text_append_format(out, " %s", values->claim);
    }
    if (values->decision != NULL) {
        text_append_format(out, " %s", values->decision);
    }
}

static void describe_answer(const struct round_event *event, struct text *out) {
    describe_key(&event->key, out);
    if (event->kind == ROUND_EVENT_CHECKED) {
        text_append(out, event->is_present ? " present" : " absent");
    } else if (event->kind == ROUND_EVENT_COUNTED) {
        text_append_format(out, " %" PRId64, event->count);
    } else if (event->kind == ROUND_EVENT_VALUES) {
        describe_values(&event->values, out);
    }
}

void round_event_describe(const struct round_event *event, struct text *out) {
    text_append(out, event_names[event->kind]);
    switch (event->kind) {
    case ROUND_EVENT_BEGIN:
        describe_round(event->round, out);
        text_append_format(out, " rank=%d of %d", event->begin.group_rank, event->begin.node_count);
        text_append(out, event->begin.ranks.world_size > 0 ? " ranked" : "");
        text_append(out, event->begin.is_held ? " held" : "");
        if (event->round == ROUND_OF_FIXED_NODES) {
            text_append_format(out, " attempt=%d", event->begin.attempt);
        }
        break;
    case ROUND_EVENT_RELEASED:
        describe_round(event->round, out);
        describe_ranks(&event->released.ranks, out);
        if (event->released.master_address != NULL) {
            text_append_format(
                out, " %s:%d", event->released.master_address, event->released.master_port);
        }
        break;
    case ROUND_EVENT_STORE_OPENED:
        text_append_format(out, " %s:%d", event->opened.address, event->opened.port);
        break;
    case ROUND_EVENT_STORE_FAILED:
        text_append_format(out, " %s", event->reason);
        break;
    case ROUND_EVENT_WAITED:
    case ROUND_EVENT_CHECKED:
    case ROUND_EVENT_COUNTED:
    case ROUND_EVENT_ROLE_INFOS:
    case ROUND_EVENT_VALUES:
        describe_answer(event, out);
        break;
    case ROUND_EVENT_ABANDON:
    case ROUND_EVENT_BARRIER_ASKED:
    case ROUND_EVENT_RESTART_ASKED:
    case ROUND_EVENT_FAILURE_ASKED:
    case ROUND_EVENT_CONNECTED:
    case ROUND_EVENT_CONNECTION_LOST:
    case ROUND_EVENT_TIMER_FIRED:
    case ROUND_EVENT_KIND_COUNT:
        break;
    }
}

static void describe_deadline(struct instant deadline, struct text *out) {
    int64_t milliseconds = deadline.nanoseconds / 1000000;
    text_append_format(out, " at=%" PRId64 ".%03" PRId64, milliseconds / 1000, milliseconds % 1000);
}

static void describe_admitted(const char *addresses, struct text *out) {
    const char *all = addresses != NULL ? addresses : "everybody";
    text_append_format(out, " %s", *all != '\0' ? all : "nobody else");
}

static void describe_joined(const struct round_effect *effect, struct text *out) {
    describe_round(effect->round, out);
    text_append_format(out, " rank=%d of %d", effect->joined.group_rank, effect->joined.node_count);
    describe_ranks(&effect->joined.ranks, out);
    text_append_format(out, " %s:%d restarts=%" PRId64, effect->joined.master_address,
        effect->joined.master_port, effect->joined.restarts);
}

static void describe_request(const struct round_effect *effect, struct text *out) {
    describe_key(&effect->key, out);
    if (effect->kind == ROUND_EFFECT_SET || effect->kind == ROUND_EFFECT_DECIDE) {
        text_append_format(out, " %s", effect->text);
    } else if (effect->kind == ROUND_EFFECT_ADD) {
        text_append_format(out, " %" PRId64, effect->amount);
    } else if (effect->kind == ROUND_EFFECT_SET_ASSIGNMENTS) {
        text_append_format(out, " of %zu%s", effect->assignments.count,
            effect->assignments.is_coordinated ? " coordinated" : "");
    } else if (effect->kind == ROUND_EFFECT_PUBLISH) {
        text_append_format(out, " %s:%s of %s", effect->publication.address,
            effect->publication.port, effect->publication.publisher);
    }
}

void round_effect_describe(const struct round_effect *effect, struct text *out) {
    text_append(out, effect_names[effect->kind]);
    switch (effect->kind) {
    case ROUND_EFFECT_OPEN_WORKER_STORE:
        text_append(out, effect->is_fresh ? " fresh" : " wiped");
        break;
    case ROUND_EFFECT_SET_ROLE_INFO:
    case ROUND_EFFECT_SET_ASSIGNMENTS:
    case ROUND_EFFECT_PUBLISH:
    case ROUND_EFFECT_SET:
    case ROUND_EFFECT_DECIDE:
    case ROUND_EFFECT_ADD:
    case ROUND_EFFECT_CHECK:
    case ROUND_EFFECT_GET:
    case ROUND_EFFECT_WAIT:
        describe_request(effect, out);
        break;
    case ROUND_EFFECT_ADMIT:
        describe_admitted(effect->admitted.addresses, out);
        break;
    case ROUND_EFFECT_ARM_TIMER:
        describe_deadline(effect->deadline, out);
        break;
    case ROUND_EFFECT_OPENED:
        text_append_format(out, " %s:%d", effect->opened.address, effect->opened.port);
        break;
    case ROUND_EFFECT_JOINED:
        describe_joined(effect, out);
        break;
    case ROUND_EFFECT_JOIN_FAILED:
    case ROUND_EFFECT_BARRIER_FAILED:
    case ROUND_EFFECT_BARRIER_LATE:
    case ROUND_EFFECT_RANK_DISPUTED:
    case ROUND_EFFECT_PEER_FAILED:
        text_append_format(out, " %s", effect->reason);
        break;
    case ROUND_EFFECT_PEER_RESTART:
        text_append_format(out, " attempt=%" PRId64, effect->attempt);
        break;
    case ROUND_EFFECT_CLEAR:
        text_append_format(out, " %" PRId64 " to %" PRId64 " of %d", effect->clear.first,
            effect->clear.last, effect->clear.node_count);
        break;
    case ROUND_EFFECT_CONNECT:
    case ROUND_EFFECT_CANCEL_WAIT:
    case ROUND_EFFECT_FORGET:
    case ROUND_EFFECT_DISARM_TIMER:
    case ROUND_EFFECT_BARRIER_PASSED:
    case ROUND_EFFECT_KIND_COUNT:
        break;
    }
}
