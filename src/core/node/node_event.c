/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/node/node_event.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/agent/agent_transcript.h"
#include "core/rendezvous/rendezvous_transcript.h"
#include "core/round/round_transcript.h"
#include "core/standby/standby_transcript.h"
#include "core/succession/succession_transcript.h"

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

static void membership_event_describe(const struct membership_event *event, struct text *out) {
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

/* Event. */

/* Copies of the things to which an event may point. */

static void *own_block(struct node_event_owned *owned, void *block) {
    if (block != NULL) {
        owned->blocks = memory_reserve(
            owned->blocks, &owned->block_capacity, owned->block_count + 1, sizeof *owned->blocks);
        owned->blocks[owned->block_count++] = block;
    }
    return block;
}

static void own_text(struct node_event_owned *owned, const char **text) {
    *text = own_block(owned, memory_duplicate_string(*text));
}

static void own_state(struct node_event_owned *owned, const struct rendezvous_state **state) {
    if (*state != NULL) {
        rendezvous_state_copy(*state, &owned->state);
        *state = &owned->state;
    }
}

static void own_account(struct node_event_owned *owned, const struct failure_account **account) {
    if (*account != NULL) {
        failure_account_copy(*account, &owned->account);
        *account = &owned->account;
    }
}

static void own_identity(struct node_event_owned *owned, const struct node_identity **identity) {
    if (*identity != NULL) {
        *identity = own_block(owned, memory_duplicate(*identity, sizeof **identity));
    }
}

static void own_role_infos(
    struct node_event_owned *owned, const struct role_info **infos, size_t count) {
    struct role_info *copies = own_block(owned, memory_duplicate(*infos, count * sizeof *copies));
    for (size_t i = 0; i < count; i++) {
        copies[i].role = own_block(owned, memory_duplicate_string(copies[i].role));
        copies[i].addresses = own_block(owned, memory_duplicate_string(copies[i].addresses));
    }
    *infos = copies;
}

/* Which of these things each event of each machine has. */

static void own_agent(struct node_event_owned *owned, struct agent_event *event) {
    if (event->kind == AGENT_EVENT_START_FAILED) {
        own_text(owned, &event->start_failed.message);
    } else if (event->kind == AGENT_EVENT_ROUND_OVER) {
        own_text(owned, &event->reason);
    }
}

static void own_membership(struct node_event_owned *owned, struct membership_event *event) {
    if (membership_event_has_account(event->kind)) {
        own_account(owned, &event->account);
    } else if (event->kind == MEMBERSHIP_EVENT_MISPLACED) {
        own_text(owned, &event->reason);
    }
}

static void own_rendezvous(struct node_event_owned *owned, struct rendezvous_event *event) {
    switch (event->kind) {
    case RENDEZVOUS_EVENT_RESTART_ASKED:
    case RENDEZVOUS_EVENT_FAILURE_ASKED:
    case RENDEZVOUS_EVENT_CLOSE_ASKED:
    case RENDEZVOUS_EVENT_BROKEN:
    case RENDEZVOUS_EVENT_FENCED:
        own_text(owned, &event->reason);
        break;
    case RENDEZVOUS_EVENT_CONNECTION_LOST:
        own_text(owned, &event->lost.reason);
        break;
    case RENDEZVOUS_EVENT_RECORD:
        own_state(owned, &event->state);
        break;
    case RENDEZVOUS_EVENT_WRITTEN:
        own_state(owned, &event->written.state);
        break;
    case RENDEZVOUS_EVENT_STANDING:
        own_state(owned, &event->standing.state);
        break;
    case RENDEZVOUS_EVENT_OPENED:
        own_text(owned, &event->opened.address);
        break;
    case RENDEZVOUS_EVENT_PLACED:
    case RENDEZVOUS_EVENT_JOIN_ASKED:
    case RENDEZVOUS_EVENT_WARMED:
    case RENDEZVOUS_EVENT_DONE_ASKED:
    case RENDEZVOUS_EVENT_LEAVE_ASKED:
    case RENDEZVOUS_EVENT_CONNECTED:
    case RENDEZVOUS_EVENT_CHANGED:
    case RENDEZVOUS_EVENT_STRANGER_WROTE:
    case RENDEZVOUS_EVENT_NODE_GONE:
    case RENDEZVOUS_EVENT_WISHED: /* has its texts in itself */
    case RENDEZVOUS_EVENT_HOST_LEAVES:
    case RENDEZVOUS_EVENT_REGISTER:
    case RENDEZVOUS_EVENT_FINISHED_COUNT:
    case RENDEZVOUS_EVENT_ROLL_ANSWERED:
    case RENDEZVOUS_EVENT_TIMER_FIRED:
    case RENDEZVOUS_EVENT_KIND_COUNT:
        break;
    }
}

static void own_round(struct node_event_owned *owned, struct round_event *event) {
    switch (event->kind) {
    case ROUND_EVENT_BEGIN:
        own_state(owned, &event->begin.state);
        own_identity(owned, &event->begin.identity);
        own_text(owned, &event->begin.master_address);
        break;
    case ROUND_EVENT_RELEASED:
        own_text(owned, &event->released.master_address);
        break;
    case ROUND_EVENT_STORE_OPENED:
        own_text(owned, &event->opened.address);
        break;
    case ROUND_EVENT_STORE_FAILED:
        own_text(owned, &event->reason);
        break;
    case ROUND_EVENT_ROLE_INFOS:
        own_role_infos(owned, &event->role_infos.infos, event->role_infos.count);
        break;
    case ROUND_EVENT_VALUES:
        own_text(owned, &event->values.address);
        own_text(owned, &event->values.publisher);
        own_text(owned, &event->values.decision);
        break;
    case ROUND_EVENT_ABANDON:
    case ROUND_EVENT_BARRIER_ASKED:
    case ROUND_EVENT_RESTART_ASKED:
    case ROUND_EVENT_FAILURE_ASKED:
    case ROUND_EVENT_CONNECTED:
    case ROUND_EVENT_CONNECTION_LOST:
    case ROUND_EVENT_WAITED:
    case ROUND_EVENT_CHECKED:
    case ROUND_EVENT_COUNTED:
    case ROUND_EVENT_TIMER_FIRED:
    case ROUND_EVENT_KIND_COUNT:
        break;
    }
}

static void own_succession(struct node_event_owned *owned, struct succession_event *event) {
    switch (event->kind) {
    case SUCCESSION_EVENT_SEEN:
    case SUCCESSION_EVENT_READ:
    case SUCCESSION_EVENT_LOST:
    case SUCCESSION_EVENT_NEWS:
        own_state(owned, &event->record);
        break;
    case SUCCESSION_EVENT_RENEWAL:
        own_text(owned, &event->renewal);
        break;
    case SUCCESSION_EVENT_FAILED:
        own_text(owned, &event->failed.reason);
        break;
    case SUCCESSION_EVENT_SEEK:
    case SUCCESSION_EVENT_WON:
    case SUCCESSION_EVENT_UNKNOWN:
    case SUCCESSION_EVENT_RENEWED:
    case SUCCESSION_EVENT_CONNECTED:
    case SUCCESSION_EVENT_CONNECTION_LOST:
    case SUCCESSION_EVENT_NODE_SILENT:
    case SUCCESSION_EVENT_NODE_GONE:
    case SUCCESSION_EVENT_DOUBTED:
    case SUCCESSION_EVENT_NAMED:
    case SUCCESSION_EVENT_MOVED:
    case SUCCESSION_EVENT_LEAVE: /* the machine gets the record when it takes it */
    case SUCCESSION_EVENT_TIMER_FIRED:
    case SUCCESSION_EVENT_KIND_COUNT:
        break;
    }
}

void node_event_own(const struct node_event *event, struct node_event_owned *out_owned) {
    *out_owned = (struct node_event_owned){.event = *event};
    switch (event->part) {
    case NODE_AGENT:
        own_agent(out_owned, &out_owned->event.agent);
        break;
    case NODE_MEMBERSHIP:
        own_membership(out_owned, &out_owned->event.membership);
        break;
    case NODE_RENDEZVOUS:
        own_rendezvous(out_owned, &out_owned->event.rendezvous);
        break;
    case NODE_ROUND:
        own_round(out_owned, &out_owned->event.round);
        break;
    case NODE_SUCCESSION:
        own_succession(out_owned, &out_owned->event.succession);
        break;
    case NODE_STANDBY: /* points to nothing */
    case NODE_PART_COUNT:
        break;
    }
}

void node_event_owned_clear(struct node_event_owned *owned) {
    for (size_t i = 0; i < owned->block_count; i++) {
        free(owned->blocks[i]);
    }
    free(owned->blocks);
    rendezvous_state_clear(&owned->state);
    failure_account_clear(&owned->account);
    *owned = (struct node_event_owned){0};
}

void node_event_set_now(struct node_event *event, struct instant now, struct wall_time wall_now) {
    switch (event->part) {
    case NODE_AGENT:
        event->agent.now = now;
        break;
    case NODE_MEMBERSHIP:
        event->membership.now = now;
        break;
    case NODE_RENDEZVOUS:
        event->rendezvous.now = now;
        event->rendezvous.wall_now = wall_now;
        break;
    case NODE_ROUND:
        event->round.now = now;
        break;
    case NODE_STANDBY:
        event->standby.now = now;
        break;
    case NODE_SUCCESSION:
        event->succession.now = now;
        break;
    case NODE_PART_COUNT:
        break;
    }
}

void node_event_describe(const struct node_event *event, struct text *out) {
    switch (event->part) {
    case NODE_AGENT:
        agent_event_describe(&event->agent, out);
        break;
    case NODE_MEMBERSHIP:
        membership_event_describe(&event->membership, out);
        break;
    case NODE_RENDEZVOUS:
        rendezvous_event_describe(&event->rendezvous, out);
        break;
    case NODE_ROUND:
        round_event_describe(&event->round, out);
        break;
    case NODE_STANDBY:
        standby_event_describe(&event->standby, out);
        break;
    case NODE_SUCCESSION:
        succession_event_describe(&event->succession, out);
        break;
    case NODE_PART_COUNT:
        break;
    }
}
