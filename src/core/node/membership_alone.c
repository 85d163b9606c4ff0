/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/node/membership_step.h"

static membership_handler join_alone, place_alone;

/* A node that is alone has nothing to agree on. Events without a handler are ignored. */
static membership_handler *const handlers[MEMBERSHIP_EVENT_KIND_COUNT] = {
    [MEMBERSHIP_EVENT_HOSTING] = membership_know_hosting,
    [MEMBERSHIP_EVENT_JOIN_ASKED] = join_alone,
    [MEMBERSHIP_EVENT_STORE_RENEWED] = place_alone,
    [MEMBERSHIP_EVENT_BARRIER_ASKED] = membership_pass_barrier,
    [MEMBERSHIP_EVENT_END_ASKED] = membership_settle,
};

membership_handler *membership_alone_handler(enum membership_event_kind kind) {
    return handlers[kind];
}

static void join_alone(struct membership_step *step) {
    membership_keep_join(step);
    if (step->membership->is_store_used) {
        membership_push_kind(step, MEMBERSHIP_EFFECT_RENEW_WORKER_STORE);
    } else {
        place_alone(step);
    }
}

static void place_alone(struct membership_step *step) {
    const struct membership_settings *settings = &step->membership->settings;
    struct node_role node = {settings->role, settings->local_world_size};
    struct node_placement placement = {
        .master_port = settings->master_port,
        .group_world_size = 1,
        .attempt = step->membership->attempt,
    };
    if (rank_assignment_compute(&node, 1, &placement.ranks) != FAILURE_NONE) {
        membership_fail_join(step, "the world is too large");
        return;
    }
    step->membership->is_store_used = true;
    step->membership->stage = MEMBERSHIP_JOINED;
    membership_know_placement(step, placement, settings->master_address);
}
