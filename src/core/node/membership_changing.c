/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/memory.h"
#include "core/node/membership_step.h"
#include "core/node/membership_world_end.h"
#include "core/workers/signal_name.h"

/* How long the host of the store waits for the other nodes when it could end itself. */
#define LINGERING_SECONDS 30
#define LINGERING_AFTER_FAILURE_SECONDS 5
#define LINGERING_AFTER_LEAVING_SECONDS 1

static membership_handler join, enter_barrier, announce_restart, doubt_failure, announce_failure,
    leave, announce_success, end, learn_root_cause, tell_why_job_failed, enter_world, release_world,
    tell_where_workers_meet, place, say_store_awaited, note_closing, look_why_job_failed,
    lose_rendezvous, believe_failure, end_last_word, seek_another_world, find_job_over,
    end_world_in_barrier, fail_barrier, ignore, pass_closed_barrier, leave_in_silence,
    stay_in_barrier, leave_last, note_misplaced;

/* The handlers for every stage. Events that are in neither table are ignored. */
static membership_handler *const common_handlers[MEMBERSHIP_EVENT_KIND_COUNT] = {
    [MEMBERSHIP_EVENT_JOIN_ASKED] = join,
    [MEMBERSHIP_EVENT_BARRIER_ASKED] = enter_barrier,
    [MEMBERSHIP_EVENT_RESTART_ASKED] = announce_restart,
    [MEMBERSHIP_EVENT_DOUBT_ASKED] = doubt_failure,
    [MEMBERSHIP_EVENT_FAILURE_ASKED] = announce_failure,
    [MEMBERSHIP_EVENT_LEAVE_ASKED] = leave,
    [MEMBERSHIP_EVENT_SUCCESS_ASKED] = announce_success,
    [MEMBERSHIP_EVENT_END_ASKED] = end,
    [MEMBERSHIP_EVENT_HOSTING] = membership_know_hosting,
    [MEMBERSHIP_EVENT_HOSTING_OVER] = membership_know_end_of_hosting,
    [MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT] = learn_root_cause,
    [MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED] = tell_why_job_failed,
    [MEMBERSHIP_EVENT_MISPLACED] = note_misplaced,
    [MEMBERSHIP_EVENT_LEFT] = leave_last,
    [MEMBERSHIP_EVENT_WORLD] = enter_world,
    [MEMBERSHIP_EVENT_WORLD_RELEASED] = release_world,
    [MEMBERSHIP_EVENT_WORLD_OVER] = membership_leave_round,
    [MEMBERSHIP_EVENT_STORE_AWAITED] = say_store_awaited,
    [MEMBERSHIP_EVENT_CLOSED] = note_closing,
    [MEMBERSHIP_EVENT_JOB_FAILED] = look_why_job_failed,
    [MEMBERSHIP_EVENT_FAILED] = lose_rendezvous,
    [MEMBERSHIP_EVENT_FAILURE_STANDS] = believe_failure,
    [MEMBERSHIP_EVENT_SETTLED] = end_last_word,
    [MEMBERSHIP_EVENT_STORE_OPENED] = tell_where_workers_meet,
    [MEMBERSHIP_EVENT_PLACED] = place,
    [MEMBERSHIP_EVENT_NOT_PLACED] = membership_fail_round,
};

/* The handlers that replace them in one stage. */
static membership_handler
    *const special_handlers[MEMBERSHIP_STAGE_COUNT][MEMBERSHIP_EVENT_KIND_COUNT] = {
        [MEMBERSHIP_JOINING] =
            {
                [MEMBERSHIP_EVENT_WORLD_OVER] = seek_another_world,
                [MEMBERSHIP_EVENT_CLOSED] = find_job_over,
            },
        [MEMBERSHIP_JOINED] =
            {
                [MEMBERSHIP_EVENT_WORLD_OVER] = membership_end_world_or_settle,
            },
        [MEMBERSHIP_SETTLING] =
            {
                [MEMBERSHIP_EVENT_TIMER_FIRED] = membership_end_settling,
                [MEMBERSHIP_EVENT_JOIN_ASKED] = membership_join_when_settled,
                [MEMBERSHIP_EVENT_BARRIER_ASKED] = ignore,
                [MEMBERSHIP_EVENT_RESTART_ASKED] = membership_wait_for_join,
                [MEMBERSHIP_EVENT_DOUBT_ASKED] = membership_blame_world,
            },
        [MEMBERSHIP_BARRIER] =
            {
                [MEMBERSHIP_EVENT_WORLD_OVER] = end_world_in_barrier,
                [MEMBERSHIP_EVENT_CLOSED] = pass_closed_barrier,
                [MEMBERSHIP_EVENT_BARRIER_PASSED] = membership_pass_barrier,
                [MEMBERSHIP_EVENT_BARRIER_FAILED] = fail_barrier,
                [MEMBERSHIP_EVENT_BARRIER_LATE] = stay_in_barrier,
            },
        [MEMBERSHIP_GIVEN_UP] =
            {
                [MEMBERSHIP_EVENT_FAILURE_ASKED] = leave_in_silence,
                [MEMBERSHIP_EVENT_STORE_AWAITED] = ignore,
            },
};

membership_handler *membership_changing_handler(
    enum membership_stage stage, enum membership_event_kind kind) {
    membership_handler *special = special_handlers[stage][kind];
    return special != NULL ? special : common_handlers[kind];
}

/* Nodes that come and go: what the agent asks. */

static void join(struct membership_step *step) {
    membership_keep_join(step);
    membership_tell_rendezvous(step, RENDEZVOUS_EVENT_JOIN_ASKED, NULL);
}

/* The node is counted in the barrier first, and tells that it is done afterwards. The other nodes
 * do not miss a node that is known to be done. If it were lost between both in the other order,
 * they would wait in the barrier for a node that never comes. */
static void enter_barrier(struct membership_step *step) {
    membership_enter_barrier(step);
    membership_tell_rendezvous(step, RENDEZVOUS_EVENT_DONE_ASKED, NULL);
}

/* Publishes the account of the failed worker before the record tells of the failure. Returns the
 * reason, which is in membership->note. */
static const char *blame(struct membership_step *step) {
    struct node_membership *membership = step->membership;
    const struct failure_account *account = step->event->account;
    if (account == NULL) {
        text_append_format(&membership->note, "node %s cannot go on", membership->settings.address);
    } else {
        membership_push(
            step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_PUBLISH_ROOT_CAUSE,
                      .root_cause = {membership->round, account}});
        failure_account_describe(account, &membership->note);
    }
    return text_string(&membership->note);
}

static void announce_restart(struct membership_step *step) {
    step->membership->stage = MEMBERSHIP_IDLE;
    membership_tell_round(step, ROUND_EVENT_ABANDON);
    membership_tell_rendezvous(step, RENDEZVOUS_EVENT_RESTART_ASKED, blame(step));
}

/* The stage stays as it is until the failure stands, or turns out to be the consequence of a lost
 * node. */
static void doubt_failure(struct membership_step *step) {
    membership_tell_round(step, ROUND_EVENT_ABANDON);
    membership_tell_rendezvous(step, RENDEZVOUS_EVENT_FAILURE_ASKED, blame(step));
}

static void say_last_word(
    struct membership_step *step, enum rendezvous_event_kind kind, const char *reason, int signal) {
    step->membership->end.last_word = MEMBERSHIP_SAYING_IT;
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_RENDEZVOUS,
                              .rendezvous = {.kind = kind, .reason = reason, .signal = signal}});
}

static void announce_failure(struct membership_step *step) {
    step->membership->end.has_failed = true;
    membership_tell_round(step, ROUND_EVENT_ABANDON);
    say_last_word(step, RENDEZVOUS_EVENT_CLOSE_ASKED, blame(step), 0);
}

/* When the host of the store leaves and nobody follows it, the store ends, and the job with it. So
 * the host closes the record: otherwise the other nodes would begin another round and then lose
 * their connection. */
static void leave_because(struct membership_step *step, int signal) {
    struct node_membership *membership = step->membership;
    membership->end.is_leaving = true;
    membership_tell_round(step, ROUND_EVENT_ABANDON);
    if (!membership->is_host || membership->settings.has_succession) {
        say_last_word(step, RENDEZVOUS_EVENT_LEAVE_ASKED, NULL, signal);
        return;
    }
    membership_explain_leaving(step, signal);
    say_last_word(step, RENDEZVOUS_EVENT_CLOSE_ASKED, text_string(&membership->note), signal);
}

static void leave(struct membership_step *step) {
    leave_because(step, step->event->signal);
}

/* A node whose join failed leaves without closing the record: the other nodes may still work. */
static void leave_in_silence(struct membership_step *step) {
    leave_because(step, 0);
}

/* Only a node that has passed the exit barrier closes the record. A node that did not wait for the
 * other nodes leaves this to them. */
static void announce_success(struct membership_step *step) {
    if (step->membership->end.has_passed) {
        say_last_word(step, RENDEZVOUS_EVENT_CLOSE_ASKED, "", 0);
    }
}

/* The end of this node, after its last message. */

/* Such a host commits the round in which the others go on, and writes the record for those that
 * delegate, until it has named its successor: it stays connected. */
static bool hands_over(const struct node_membership *membership) {
    return membership->is_host && membership->end.is_leaving && membership->settings.has_succession;
}

/* The host waits without a limit for nodes that still need its store. The store closes the
 * connections of agents that have stalled, so the wait ends. */
static struct duration lingering_time(const struct node_membership *membership) {
    const struct membership_end *end = &membership->end;
    if (hands_over(membership)) {
        return duration_from_seconds(0);
    }
    if (end->is_leaving) {
        return duration_from_seconds(LINGERING_AFTER_LEAVING_SECONDS);
    }
    if (end->has_failed) {
        return duration_from_seconds(LINGERING_AFTER_FAILURE_SECONDS);
    }
    return end->is_needed ? DURATION_FOREVER : duration_from_seconds(LINGERING_SECONDS);
}

static void end_if_ready(struct membership_step *step) {
    struct node_membership *membership = step->membership;
    struct membership_end *ending = &membership->end;
    if (!ending->is_asked || ending->has_begun || ending->last_word == MEMBERSHIP_SAYING_IT) {
        return;
    }
    ending->has_begun = true;
    if (!hands_over(membership)) {
        membership_push_kind(step, MEMBERSHIP_EFFECT_DISCONNECT);
    }
    if (membership->is_host) {
        membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_LINGER,
                                  .patience = lingering_time(membership)});
    } else {
        membership_push_kind(step, MEMBERSHIP_EFFECT_SETTLED);
    }
}

static void end(struct membership_step *step) {
    step->membership->end.is_asked = true;
    end_if_ready(step);
}

static void end_last_word(struct membership_step *step) {
    step->membership->end.last_word = MEMBERSHIP_SAID_IT;
    end_if_ready(step);
}

/* Worlds. */

static void enter_world(struct membership_step *step) {
    struct node_membership *membership = step->membership;
    const struct rendezvous_effect *told = step->event->rendezvous.effect;
    const struct rendezvous_meeting *meeting = &told->world.meeting;
    const char *reason = told->world.state->reason;
    struct text node = {0};
    node_identity_describe(&told->world.identity, &node);
    free(membership->knowledge.node);
    membership->knowledge.node = text_take(&node);
    membership->knowledge.placement.node = NULL; /* it belongs to the round before */
    membership->round = told->world.round;
    membership->is_last_round = rendezvous_state_has_foreign_participant(told->world.state);
    text_append_format(&membership->note,
        "round %lld of job '%s': this node is rank %d of %d nodes%s%s",
        (long long)told->world.round, membership->settings.run_id, told->world.group_rank,
        told->world.node_count, *reason != '\0' ? "; " : "", reason);
    membership_note(step, LOG_LEVEL_INFO);
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_ROUND,
                              .round = {.kind = ROUND_EVENT_BEGIN,
                                  .round = told->world.round,
                                  .begin = {.group_rank = told->world.group_rank,
                                      .node_count = told->world.node_count,
                                      .state = told->world.state,
                                      .ranks = told->world.ranks,
                                      .master_address = meeting->port > 0 ? meeting->address : NULL,
                                      .master_port = meeting->port,
                                      .is_held = told->world.is_held,
                                      .had_roll = told->world.had_roll,
                                      .identity = &told->world.identity}}});
}

static void release_world(struct membership_step *step) {
    const struct rendezvous_effect *told = step->event->rendezvous.effect;
    const struct rendezvous_meeting *meeting = &told->released.meeting;
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_ROUND,
                              .round = {.kind = ROUND_EVENT_RELEASED,
                                  .round = told->released.round,
                                  .released = {.ranks = told->released.ranks,
                                      .master_address = meeting->port > 0 ? meeting->address : NULL,
                                      .master_port = meeting->port}}});
}

static void tell_where_workers_meet(struct membership_step *step) {
    const struct round_effect *told = step->event->round;
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_RENDEZVOUS,
                              .rendezvous = {.kind = RENDEZVOUS_EVENT_OPENED,
                                  .opened = {.round = told->round,
                                      .address = told->opened.address,
                                      .port = told->opened.port}}});
}

static void place(struct membership_step *step) {
    membership_tell_rendezvous(step, RENDEZVOUS_EVENT_PLACED, NULL);
    membership_place(step);
}

static void seek_another_world(struct membership_step *step) {
    membership_leave_round(step);
    membership_tell_rendezvous(step, RENDEZVOUS_EVENT_JOIN_ASKED, NULL);
}

static void say_store_awaited(struct membership_step *step) {
    const struct rendezvous_effect *told = step->event->rendezvous.effect;
    text_append_format(&step->membership->note,
        "still no connection to the job's store at %s, %.0f s after it was lost; this node gives "
        "up in %.0f s at the latest (--host-timeout)",
        step->membership->settings.where, duration_seconds(told->awaited.waited),
        duration_seconds(told->awaited.left));
    membership_note(step, LOG_LEVEL_WARNING);
}

/* Settling: the workers are done, and the agent waits as in the exit barrier, until settling ends.
 * Given up: the agent knows already that it cannot join. */
static void ignore(struct membership_step *step) {
    (void)step;
}

/* A node in the exit barrier that has lost its connection does not join another round, because its
 * workers are done. */
static void end_world_in_barrier(struct membership_step *step) {
    if (step->event->rendezvous.is_cut_off) {
        membership_leave_round(step);
        membership_end_barrier(step, false);
    } else {
        membership_end_world(step);
    }
}

/* The job's end. */

static void learn_of_failure(struct membership_step *step, const char *reason, int signal) {
    switch (step->membership->stage) {
    case MEMBERSHIP_JOINING:
        membership_fail_join(step, reason);
        break;
    case MEMBERSHIP_SETTLING:
        if (step->membership->settling.is_join_asked) {
            membership_fail_join(step, reason);
        } else {
            membership_fail_peer(step, reason, signal);
        }
        break;
    case MEMBERSHIP_IDLE:
    case MEMBERSHIP_JOINED:
    case MEMBERSHIP_BARRIER:
        membership_fail_peer(step, reason, signal);
        break;
    case MEMBERSHIP_GIVEN_UP:
    case MEMBERSHIP_STAGE_COUNT:
        break;
    }
}

static void look_why_job_failed(struct membership_step *step) {
    struct node_membership *membership = step->membership;
    membership->end.has_failed = true;
    membership->end.signal = membership_signal_told(step->event->rendezvous.effect);
    free(membership->end.reason);
    membership->end.reason = memory_duplicate_string(step->event->rendezvous.effect->told.reason);
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_LOOK_FOR_ROOT_CAUSE,
                              .root_cause = {.round = membership->round}});
}

static void tell_why_job_failed(struct membership_step *step) {
    char *reason = step->membership->end.reason;
    step->membership->end.reason = NULL;
    if (reason != NULL) {
        learn_of_failure(step, reason, step->membership->end.signal);
    }
    free(reason);
}

/* A root cause that this node has published itself is ignored. */
static void learn_root_cause(struct membership_step *step) {
    struct membership_knowledge *knowledge = &step->membership->knowledge;
    const struct failure_account *account = step->event->account;
    if (account->node == NULL || knowledge->node == NULL ||
        !text_equals(account->node, knowledge->node)) {
        failure_account_copy(account, &knowledge->root_cause);
        knowledge->has_root_cause = true;
    }
}

static void lose_rendezvous(struct membership_step *step) {
    step->membership->end.is_leaving = true;
    learn_of_failure(step, step->event->rendezvous.effect->told.reason, 0);
}

static void believe_failure(struct membership_step *step) {
    step->membership->end.has_failed = true;
    step->membership->end.last_word = MEMBERSHIP_SAYING_IT;
    membership_tell_agent_kind(step, AGENT_EVENT_FAILURE_STANDS);
}

/* When the record is closed without a failure, the workers may finish, as among torchrun's nodes.
 */
static void note_closing(struct membership_step *step) {
    step->membership->is_last_round = true;
    text_append(&step->membership->note,
        "the job's record was closed; workers here may finish, but not restart");
    membership_note(step, LOG_LEVEL_INFO);
}

static void note_misplaced(struct membership_step *step) {
    free(step->membership->misplaced);
    step->membership->misplaced = memory_duplicate_string(step->event->reason);
}

/* A spare that the job did not need has done its part. Who waited beside the job of somebody else
 * has not: its own program was to run. */
static void end_unneeded(struct membership_step *step) {
    struct node_membership *membership = step->membership;
    bool has_taken_part = membership->knowledge.node != NULL;
    if (membership->misplaced == NULL || has_taken_part) {
        membership->stage = MEMBERSHIP_GIVEN_UP;
        text_append_format(&membership->note, "the job ended well without this node%s",
            has_taken_part ? "" : ": its program never ran here");
        membership_note(step, LOG_LEVEL_WARNING);
        membership_tell_agent_kind(step, AGENT_EVENT_JOB_OVER);
        return;
    }
    text_append_format(&membership->note,
        "job '%s' at %s is over, and the program of this node never ran: %s",
        membership->settings.run_id, membership->settings.where, membership->misplaced);
    membership_note(step, LOG_LEVEL_WARNING);
    char *reason = text_format(
        "this node waited as a spare of job '%s' until that was over, and its program never ran; "
        "give each job an --rdzv-id of its own",
        membership->settings.run_id);
    membership_fail_join(step, reason);
    free(reason);
}

static void find_job_over(struct membership_step *step) {
    struct node_membership *membership = step->membership;
    const struct membership_settings *settings = &membership->settings;
    if (step->event->rendezvous.effect->told.is_spare) {
        end_unneeded(step);
        return;
    }
    bool has_taken_part = membership->knowledge.node != NULL;
    char *reason = text_format("job '%s' at %s is over: its record is closed; %s", settings->run_id,
        settings->where,
        has_taken_part ? "another node has ended, and workers cannot be started again"
                       : "a new job needs another --rdzv-id");
    membership_fail_join(step, reason);
    free(reason);
}

/* The exit barrier of the round ended before all nodes had come. */
static void fail_barrier(struct membership_step *step) {
    text_append(&step->membership->note, step->event->round->reason);
    membership_note(step, LOG_LEVEL_WARNING);
    membership_end_barrier(step, false);
}

/* Where no new round follows a loss, the barrier may wait for a node that is gone: then only its
 * connections tell the host that it is alone. */
static void stay_in_barrier(struct membership_step *step) {
    const struct node_membership *membership = step->membership;
    membership_stay_in_barrier(step);
    if (membership->settings.ignores_losses || membership->is_last_round) {
        membership_push(step, (struct membership_effect){
                                  .kind = MEMBERSHIP_EFFECT_LINGER, .patience = DURATION_FOREVER});
    }
}

/* No other node is connected any more. A node that has left the barrier for a restart ignores it.
 */
static void leave_last(struct membership_step *step) {
    if (step->membership->end.has_begun) {
        membership_settle(step);
    } else if (step->membership->stage == MEMBERSHIP_BARRIER) {
        membership_end_barrier(step, false);
    }
}

/* A node that has passed the barrier closes the record. But another program may have closed it
 * while the other nodes still work, and then they still need the store of this node. */
static void pass_closed_barrier(struct membership_step *step) {
    step->membership->end.is_needed = step->membership->is_host;
    membership_end_barrier(step, true);
}
