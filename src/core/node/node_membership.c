/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/node/node_membership.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/workers/signal_name.h"

/* One step: the membership, the event and the effects. */
struct membership_step {
    struct node_membership *membership;
    const struct membership_event *event;
    struct membership_effects *effects;
};

typedef void membership_handler(struct membership_step *step);

/* What the three kinds of membership share: the effects of the current step, what the node knows,
 * and what the agent machine is told. */

static void membership_push(struct membership_step *step, struct membership_effect effect) {
    assert(step->effects->count < MEMBERSHIP_EFFECTS_MAXIMUM);
    step->effects->items[step->effects->count++] = effect;
}

/* Effects. */
static void membership_push_kind(struct membership_step *step, enum membership_effect_kind kind) {
    membership_push(step, (struct membership_effect){.kind = kind});
}

static void membership_tell_agent(struct membership_step *step, struct agent_event event) {
    membership_push(
        step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_AGENT, .agent = event});
}

static void membership_tell_agent_kind(struct membership_step *step, enum agent_event_kind kind) {
    membership_tell_agent(step, (struct agent_event){.kind = kind});
}

static void membership_tell_rendezvous(
    struct membership_step *step, enum rendezvous_event_kind kind, const char *reason_or_null) {
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_RENDEZVOUS,
                              .rendezvous = {.kind = kind, .reason = reason_or_null}});
}

static void membership_tell_round(struct membership_step *step, enum round_event_kind kind) {
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_ROUND,
                              .round = {.kind = kind, .round = step->membership->round}});
}

/* The text is in membership->note. */
static void membership_note(struct membership_step *step, enum log_level level) {
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_NOTE,
                              .note = {level, text_string(&step->membership->note)}});
}

static void know_trouble(struct membership_step *step, const char *reason) {
    struct membership_knowledge *knowledge = &step->membership->knowledge;
    char *trouble = memory_duplicate_string(reason);
    free(knowledge->trouble);
    knowledge->trouble = trouble;
}

/* The two answers to a join. The membership adds names and addresses to `placement` itself. */
static void membership_know_placement(
    struct membership_step *step, struct node_placement placement, const char *master_address) {
    const struct membership_settings *settings = &step->membership->settings;
    struct membership_knowledge *knowledge = &step->membership->knowledge;
    free(knowledge->master_address);
    knowledge->master_address = memory_duplicate_string(master_address);
    placement.run_id = settings->run_id;
    placement.node = knowledge->node;
    placement.master_address = knowledge->master_address;
    placement.local_world_size = settings->local_world_size;
    knowledge->placement = placement;
    failure_account_clear(&knowledge->root_cause);
    knowledge->has_root_cause = false;
    membership_tell_agent(step, (struct agent_event){.kind = AGENT_EVENT_JOINED,
                                    .joined = {.ticket = step->membership->ticket,
                                        .restarts = placement.attempt,
                                        .node_count = placement.group_world_size,
                                        .ages = step->membership->ages}});
}

static void membership_fail_join(struct membership_step *step, const char *reason) {
    step->membership->stage = MEMBERSHIP_GIVEN_UP;
    step->membership->end.is_leaving = true;
    know_trouble(step, reason);
    membership_tell_agent(step,
        (struct agent_event){.kind = AGENT_EVENT_JOIN_FAILED, .ticket = step->membership->ticket});
}

/* Both answers, as the round exchange tells them. */
static void membership_place(struct membership_step *step) {
    const struct round_effect *told = step->event->round;
    step->membership->stage = MEMBERSHIP_JOINED;
    membership_know_placement(step,
        (struct node_placement){
            .master_port = told->joined.master_port,
            .group_rank = told->joined.group_rank,
            .group_world_size = told->joined.node_count,
            .ranks = told->joined.ranks,
            .attempt = (int)told->joined.restarts,
            .round = told->round == ROUND_OF_FIXED_NODES ? 0 : told->round,
        },
        told->joined.master_address);
}

static void membership_fail_round(struct membership_step *step) {
    membership_fail_join(step, step->event->round->reason);
}

/* Tells the agent that another node has failed for good, or that the store of the job is gone.
 * `signal`: the signal that told that node to end, or 0. */
static void membership_fail_peer(struct membership_step *step, const char *reason, int signal) {
    step->membership->stage = MEMBERSHIP_IDLE;
    know_trouble(step, reason);
    membership_tell_agent(
        step, (struct agent_event){.kind = AGENT_EVENT_PEER_FAILED, .signal = signal});
}

/* The agent asks to join: keeps the ticket and the attempt. */
static void membership_keep_join(struct membership_step *step) {
    step->membership->ticket = step->event->join.ticket;
    step->membership->attempt = step->event->join.attempt;
    step->membership->stage = MEMBERSHIP_JOINING;
}

/* Handlers of all kinds of membership. */

/* Notes that this node hosts the store; or that it does no more, where another node follows it. */
static void membership_know_hosting(struct membership_step *step) {
    step->membership->is_host = true;
    step->membership->settings.master_port = step->event->port;
}

static void membership_know_end_of_hosting(struct membership_step *step) {
    step->membership->is_host = false;
}

/* Wants SETTLED: the agent may end. */
static void membership_settle(struct membership_step *step) {
    membership_push_kind(step, MEMBERSHIP_EFFECT_SETTLED);
}

/* Tells the round exchange that the workers of this node are done. */
static void membership_enter_barrier(struct membership_step *step) {
    step->membership->stage = MEMBERSHIP_BARRIER;
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_ROUND,
                              .round = {.kind = ROUND_EVENT_BARRIER_ASKED,
                                  .round = step->membership->round,
                                  .is_host = step->membership->is_host}});
}

/* Says that this node waits on, because the job would end with its store. */
static void membership_stay_in_barrier(struct membership_step *step) {
    text_append_format(&step->membership->note,
        "%s; this node hosts the job's store, and keeps it until they are done",
        step->event->round->reason);
    membership_note(step, LOG_LEVEL_WARNING);
}

/* Writes into the note what it means for everybody that this node, which hosts the store, leaves
 * because of this signal, or 0. Says it here, too, where there are other nodes. */
static void membership_explain_leaving(struct membership_step *step, int signal) {
    struct node_membership *membership = step->membership;
    struct text *note = &membership->note;
    text_append_format(
        note, "node %s, which hosts the job's store, ", membership->settings.address);
    if (signal != 0) {
        text_append_format(note, "was told to end by %s", signal_name_from_number(signal));
    } else {
        text_append(note, "has left");
    }
    text_append(note, "; no other node can take its place (with --rdzv-backend dir one does)");
    if (membership->knowledge.placement.group_world_size > 1) {
        membership_note(step, LOG_LEVEL_WARNING);
    }
}

/* Tells the agent that the exit barrier has ended. */
static void membership_end_barrier(struct membership_step *step, bool has_passed) {
    step->membership->end.has_passed = has_passed;
    step->membership->stage = MEMBERSHIP_IDLE;
    membership_tell_agent_kind(
        step, has_passed ? AGENT_EVENT_BARRIER_PASSED : AGENT_EVENT_BARRIER_FAILED);
}

static void membership_pass_barrier(struct membership_step *step) {
    membership_end_barrier(step, true);
}

/* Membership alone. */

static membership_handler join_alone, place_alone;

/* A node that is alone has nothing to agree on. Events without a handler are ignored. */
static membership_handler *const membership_alone_handlers[MEMBERSHIP_EVENT_KIND_COUNT] = {
    [MEMBERSHIP_EVENT_HOSTING] = membership_know_hosting,
    [MEMBERSHIP_EVENT_JOIN_ASKED] = join_alone,
    [MEMBERSHIP_EVENT_STORE_RENEWED] = place_alone,
    [MEMBERSHIP_EVENT_BARRIER_ASKED] = membership_pass_barrier,
    [MEMBERSHIP_EVENT_END_ASKED] = membership_settle,
};

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

/* Membership alone, placed by the program that has started the agent. It agrees with other nodes by
 * itself, so what this node would tell them is nothing to it. */

static membership_handler ask_for_round, place_as_told, refuse_round, end_round_as_told, be_idle,
    ask_for_barrier, pass_barrier_as_told;

/* Events without a handler are ignored. */
static membership_handler *const membership_placed_handlers[MEMBERSHIP_EVENT_KIND_COUNT] = {
    [MEMBERSHIP_EVENT_JOIN_ASKED] = ask_for_round,
    [MEMBERSHIP_EVENT_ROUND_TOLD] = place_as_told,
    [MEMBERSHIP_EVENT_ROUND_REFUSED] = refuse_round,
    [MEMBERSHIP_EVENT_ROUND_ENDED] = end_round_as_told,
    [MEMBERSHIP_EVENT_RESTART_ASKED] = be_idle,
    [MEMBERSHIP_EVENT_FAILURE_ASKED] = be_idle,
    [MEMBERSHIP_EVENT_BARRIER_ASKED] = ask_for_barrier,
    [MEMBERSHIP_EVENT_BARRIER_TOLD] = pass_barrier_as_told,
    [MEMBERSHIP_EVENT_END_ASKED] = membership_settle,
};

static void ask_program(struct membership_step *step, enum membership_ask what) {
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_ASK_PROGRAM,
                              .ask = {what, step->membership->attempt}});
}

static void ask_for_round(struct membership_step *step) {
    membership_keep_join(step);
    ask_program(step, MEMBERSHIP_ASK_ROUND);
}

static void place_as_told(struct membership_step *step) {
    const struct membership_told *told = step->event->told;
    if (step->membership->stage != MEMBERSHIP_JOINING) {
        return;
    }
    step->membership->stage = MEMBERSHIP_JOINED;
    membership_know_placement(step,
        (struct node_placement){
            .master_port = told->master_port,
            .group_rank = told->group_rank,
            .group_world_size = told->group_world_size,
            .ranks = told->ranks,
            .attempt = step->membership->attempt,
            .round = step->membership->round++,
        },
        told->text);
}

static void refuse_round(struct membership_step *step) {
    if (step->membership->stage == MEMBERSHIP_JOINING) {
        membership_fail_join(step, step->event->told->text);
    }
}

/* The program may say so when the workers have just failed. Then another round is joined anyhow. */
static void end_round_as_told(struct membership_step *step) {
    struct node_membership *membership = step->membership;
    if (membership->stage != MEMBERSHIP_JOINED) {
        return;
    }
    membership->stage = MEMBERSHIP_IDLE;
    text_append_format(
        &membership->note, "joining the job's next round: %s", step->event->told->text);
    membership_note(step, LOG_LEVEL_WARNING);
    membership_tell_agent(step,
        (struct agent_event){.kind = AGENT_EVENT_ROUND_OVER, .reason = step->event->told->text});
}

static void be_idle(struct membership_step *step) {
    step->membership->stage = MEMBERSHIP_IDLE;
}

static void ask_for_barrier(struct membership_step *step) {
    step->membership->stage = MEMBERSHIP_BARRIER;
    ask_program(step, MEMBERSHIP_ASK_BARRIER);
}

static void pass_barrier_as_told(struct membership_step *step) {
    if (step->membership->stage == MEMBERSHIP_BARRIER) {
        membership_pass_barrier(step);
    }
}

/* Membership fixed. */

/* How long the store may take for the last requests of a fixed node. */
#define FLUSHING_MILLISECONDS 1000
/* How long workers may run on when the store is gone. They fail, as a rule, since those of node 0
 * are gone, too; a signal in the midst of that would hide what they have to say. */
#define GRACE_MILLISECONDS 1000
/* How long the host stays for nodes that have still to read how the job has ended. */
#define PARTING_MILLISECONDS 500

static membership_handler join_fixed, restart_fixed, fail_fixed, leave_fixed, flush,
    membership_fixed_fail_barrier, membership_fixed_stay_in_barrier, go_when_alone, stop_waiting,
    warn_of_dispute, follow_peer_restart, follow_peer_failure;

/* Fixed nodes: core/round/round_exchange decides together with the other nodes. The nodes tell
 * each other that they failed, but not why. Events without a handler are ignored. */
static membership_handler *const membership_fixed_handlers[MEMBERSHIP_EVENT_KIND_COUNT] = {
    [MEMBERSHIP_EVENT_HOSTING] = membership_know_hosting,
    [MEMBERSHIP_EVENT_JOIN_ASKED] = join_fixed,
    [MEMBERSHIP_EVENT_BARRIER_ASKED] = membership_enter_barrier,
    [MEMBERSHIP_EVENT_RESTART_ASKED] = restart_fixed,
    [MEMBERSHIP_EVENT_FAILURE_ASKED] = fail_fixed,
    [MEMBERSHIP_EVENT_LEAVE_ASKED] = leave_fixed, /* the job cannot go on without this node */
    [MEMBERSHIP_EVENT_END_ASKED] = flush,
    [MEMBERSHIP_EVENT_LEFT] = go_when_alone,
    [MEMBERSHIP_EVENT_TIMER_FIRED] = stop_waiting,
    [MEMBERSHIP_EVENT_PLACED] = membership_place,
    [MEMBERSHIP_EVENT_NOT_PLACED] = membership_fail_round,
    [MEMBERSHIP_EVENT_BARRIER_PASSED] = membership_pass_barrier,
    [MEMBERSHIP_EVENT_BARRIER_FAILED] = membership_fixed_fail_barrier,
    [MEMBERSHIP_EVENT_BARRIER_LATE] = membership_fixed_stay_in_barrier,
    [MEMBERSHIP_EVENT_RANK_DISPUTED] = warn_of_dispute,
    [MEMBERSHIP_EVENT_PEER_RESTART] = follow_peer_restart,
    [MEMBERSHIP_EVENT_PEER_FAILED] = follow_peer_failure,
};

static void join_fixed(struct membership_step *step) {
    const struct membership_settings *settings = &step->membership->settings;
    membership_keep_join(step);
    if (step->membership->end.is_grace) {
        membership_fail_join(step, step->membership->knowledge.trouble);
        return;
    }
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_ROUND,
                              .round = {.kind = ROUND_EVENT_BEGIN,
                                  .round = ROUND_OF_FIXED_NODES,
                                  .begin = {.group_rank = settings->node_rank,
                                      .node_count = settings->node_count,
                                      .attempt = step->event->join.attempt,
                                      .master_address = settings->master_address,
                                      .master_port = settings->master_port}}});
}

static void restart_fixed(struct membership_step *step) {
    membership_tell_round(step, ROUND_EVENT_RESTART_ASKED);
}

static void fail_fixed(struct membership_step *step) {
    step->membership->end.has_failed = true;
    membership_tell_round(step, ROUND_EVENT_FAILURE_ASKED);
}

static void leave_fixed(struct membership_step *step) {
    membership_push(
        step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_TELL_ROUND,
                  .round = {.kind = ROUND_EVENT_FAILURE_ASKED, .signal = step->event->signal}});
}

static void flush(struct membership_step *step) {
    step->membership->end.is_asked = true;
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_FLUSH,
                              .patience = duration_from_milliseconds(FLUSHING_MILLISECONDS)});
}

static void begin_grace(struct membership_step *step) {
    struct duration time = duration_from_milliseconds(GRACE_MILLISECONDS);
    know_trouble(step, step->event->round->reason);
    step->membership->end.is_grace = true;
    text_append_format(&step->membership->note,
        "%s: the job has failed; the workers here have %g s to fail by themselves, and say why",
        step->event->round->reason, duration_seconds(time));
    membership_note(step, LOG_LEVEL_WARNING);
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_ARM_TIMER,
                              .deadline = instant_after(step->event->now, time)});
}

static void follow_peer_failure(struct membership_step *step) {
    const struct round_effect *told = step->event->round;
    step->membership->end.has_failed = true;
    step->membership->knowledge.is_cut_off = told->is_cut_off;
    if (told->is_cut_off && step->membership->stage == MEMBERSHIP_JOINED) {
        begin_grace(step);
        return;
    }
    membership_fail_peer(step, told->reason, told->signal);
}

static void warn_of_dispute(struct membership_step *step) {
    text_append(&step->membership->note, step->event->round->reason);
    membership_note(step, LOG_LEVEL_WARNING);
}

static void follow_peer_restart(struct membership_step *step) {
    int attempt = (int)step->event->round->attempt;
    text_append_format(
        &step->membership->note, "another node restarts its workers: joining attempt %d", attempt);
    membership_note(step, LOG_LEVEL_WARNING);
    membership_tell_agent(
        step, (struct agent_event){.kind = AGENT_EVENT_PEER_RESTART, .attempt = attempt});
}

static void membership_fixed_fail_barrier(struct membership_step *step) {
    membership_end_barrier(step, false);
}

/* LINGER ends when no other node is connected: a node of torchrun that dies is noticed only by its
 * connections. */
static void membership_fixed_stay_in_barrier(struct membership_step *step) {
    membership_stay_in_barrier(step);
    membership_push(step,
        (struct membership_effect){.kind = MEMBERSHIP_EFFECT_LINGER, .patience = DURATION_FOREVER});
}

/* The end of the job is in the store, which ends with this node. The others end their connections
 * as soon as they have read it; without this moment some would find the store gone. */
static void part(struct membership_step *step) {
    step->membership->end.is_parting = true;
    membership_push(step,
        (struct membership_effect){.kind = MEMBERSHIP_EFFECT_LINGER, .patience = DURATION_FOREVER});
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_ARM_TIMER,
                              .deadline = instant_after(step->event->now,
                                  duration_from_milliseconds(PARTING_MILLISECONDS))});
}

static void settle_fixed(struct membership_step *step) {
    step->membership->end.is_asked = false;
    membership_settle(step);
}

static void stop_waiting(struct membership_step *step) {
    struct membership_end *ending = &step->membership->end;
    if (ending->is_asked && ending->is_parting) {
        settle_fixed(step);
    } else if (ending->is_grace) {
        ending->is_grace = false;
        membership_fail_peer(step, step->membership->knowledge.trouble, 0);
    }
}

/* No other node is connected any more, or the last requests are answered. A node that has left the
 * barrier for a restart ignores both. */
static void go_when_alone(struct membership_step *step) {
    struct membership_end *ending = &step->membership->end;
    bool have_others_to_read = ending->has_passed || ending->has_failed;
    if (ending->is_asked && have_others_to_read && step->membership->is_host &&
        !ending->is_parting) {
        part(step);
    } else if (ending->is_asked) {
        settle_fixed(step);
    } else if (step->membership->stage == MEMBERSHIP_BARRIER) {
        membership_end_barrier(step, false);
    }
}

/* Of membership_changing: how a world ends for this node, whose workers are to be in the next one.
 * When a signal told another node to end, this node settles first: a signal to the whole job does
 * not reach all nodes at once. Matches nothing in PyTorch, where the agents of a job do not tell
 * each other of signals. */

/* How long a node that is in haste starts no workers. Signals to all nodes at once come within it,
 * and the store's next host is found meanwhile. */
#define HASTE_MILLISECONDS 25

/* The signal that another node told, or 0. */
/* Any program can write the record. So the signal in it counts only if an agent can handle it. */
static int membership_signal_told(const struct rendezvous_effect *effect) {
    return signal_may_be_handled(effect->told.signal) ? effect->told.signal : 0;
}

/* Handlers. */
static void membership_leave_round(struct membership_step *step) {
    membership_tell_round(step, ROUND_EVENT_ABANDON);
    membership_push_kind(step, MEMBERSHIP_EFFECT_CANCEL_ROLL);
}

static void tell_round_over(
    struct membership_step *step, struct agent_event over, bool is_harmless) {
    struct node_membership *membership = step->membership;
    membership->stage = MEMBERSHIP_IDLE;
    if (!is_harmless) {
        membership_push(
            step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_LOOK_FOR_ROOT_CAUSE,
                      .root_cause = {.round = membership->round}});
    }
    text_append_format(&membership->note, "joining the job's next round: %s", over.reason);
    membership_note(step, LOG_LEVEL_WARNING);
    membership_tell_agent(step, over);
}

static struct agent_event round_over(const struct membership_step *step, int signal) {
    const struct rendezvous_effect *effect = step->event->rendezvous.effect;
    return (struct agent_event){.kind = AGENT_EVENT_ROUND_OVER,
        .signal = signal,
        .is_counted = effect->told.is_counted,
        .restarts = effect->told.restarts,
        .reason = effect->told.reason};
}

/* What ends a world that settles. */
static struct agent_event settled_round_over(const struct membership_step *step, int signal) {
    const struct membership_settling *settling = &step->membership->settling;
    return (struct agent_event){.kind = AGENT_EVENT_ROUND_OVER,
        .signal = signal,
        .is_counted = settling->is_counted,
        .restarts = settling->restarts,
        .reason = settling->reason};
}

static void membership_end_world(struct membership_step *step) {
    membership_leave_round(step);
    tell_round_over(step, round_over(step, 0), step->event->rendezvous.effect->told.is_harmless);
}

/* Settling: a signal to the whole job does not reach all nodes at once. A node that the signal has
 * not reached yet should not restart its workers, since the job is being stopped. */

static void begin_settling(struct membership_step *step, int signal, struct duration time) {
    struct node_membership *membership = step->membership;
    const struct rendezvous_effect *effect = step->event->rendezvous.effect;
    membership->stage = MEMBERSHIP_SETTLING;
    free(membership->settling.reason);
    membership->settling = (struct membership_settling){.signal = signal,
        .reason = memory_duplicate_string(effect->told.reason),
        .is_counted = effect->told.is_counted,
        .restarts = effect->told.restarts};
    membership_push(step, (struct membership_effect){.kind = MEMBERSHIP_EFFECT_ARM_TIMER,
                              .deadline = instant_after(step->event->now, time)});
}

/* Enough nodes are left, and know of each other. The workers here get the signal that the other
 * node got. If it comes to this node as well, they do not get it again. */
static void end_world_in_haste(struct membership_step *step, int signal) {
    membership_leave_round(step);
    tell_round_over(step, round_over(step, signal), false);
    begin_settling(step, signal, duration_from_milliseconds(HASTE_MILLISECONDS));
    step->membership->settling.is_agent_told = true;
}

static void membership_end_world_or_settle(struct membership_step *step) {
    struct node_membership *membership = step->membership;
    const struct rendezvous_effect *told = step->event->rendezvous.effect;
    struct duration time = membership->settings.settling_time;
    int signal = membership_signal_told(told);
    if (signal == 0 || time.nanoseconds == 0) {
        membership_end_world(step);
        return;
    }
    if (membership->settings.is_hasty && told->told.is_next_whole) {
        end_world_in_haste(step, signal);
        return;
    }
    membership_leave_round(step);
    text_append_format(&membership->note,
        "another node was told to end by %s, which may be on its way to this node, too: the "
        "workers "
        "here run on for %g s (--settling-time)",
        signal_name_from_number(signal), duration_seconds(time));
    membership_note(step, LOG_LEVEL_WARNING);
    begin_settling(step, signal, time);
}

static void membership_join_when_settled(struct membership_step *step) {
    membership_keep_join(step);
    step->membership->stage = MEMBERSHIP_SETTLING;
    step->membership->settling.is_join_asked = true;
}

/* Workers fail here because the workers of the other node are gone. Their world is over already, so
 * the failure needs no announcement. */
static void membership_wait_for_join(struct membership_step *step) {
    step->membership->settling.is_agent_told = true;
}

static void membership_blame_world(struct membership_step *step) {
    step->membership->settling.is_agent_told = true;
    membership_tell_agent(step, settled_round_over(step, 0));
}

static void membership_end_settling(struct membership_step *step) {
    struct membership_settling *settling = &step->membership->settling;
    if (step->membership->end.last_word != MEMBERSHIP_NOTHING_TO_SAY) {
        return; /* this node leaves: the signal has reached it too */
    }
    if (settling->is_join_asked) {
        step->membership->stage = MEMBERSHIP_JOINING;
        membership_tell_rendezvous(step, RENDEZVOUS_EVENT_JOIN_ASKED, NULL);
    } else if (settling->is_agent_told) {
        step->membership->stage = MEMBERSHIP_IDLE;
    } else {
        tell_round_over(step, settled_round_over(step, settling->signal), false);
    }
}

/* Membership changing. */

/* How long the host of the store waits for the other nodes when it could end itself. */
#define LINGERING_SECONDS 30
#define LINGERING_AFTER_FAILURE_SECONDS 5
#define LINGERING_AFTER_LEAVING_SECONDS 1

static membership_handler join, enter_barrier, announce_restart, doubt_failure, announce_failure,
    leave, announce_success, end, learn_root_cause, tell_why_job_failed, enter_world, release_world,
    tell_where_workers_meet, place, say_store_awaited, note_closing, look_why_job_failed,
    lose_rendezvous, believe_failure, end_last_word, seek_another_world, find_job_over,
    end_world_in_barrier, membership_changing_fail_barrier, ignore, pass_closed_barrier,
    leave_in_silence, membership_changing_stay_in_barrier, leave_last, note_misplaced,
    tell_excluded;

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
    [MEMBERSHIP_EVENT_EXCLUDED] = tell_excluded,
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
                [MEMBERSHIP_EVENT_BARRIER_FAILED] = membership_changing_fail_barrier,
                [MEMBERSHIP_EVENT_BARRIER_LATE] = membership_changing_stay_in_barrier,
            },
        [MEMBERSHIP_GIVEN_UP] =
            {
                [MEMBERSHIP_EVENT_FAILURE_ASKED] = leave_in_silence,
                [MEMBERSHIP_EVENT_STORE_AWAITED] = ignore,
            },
};

static membership_handler *membership_changing_handler(
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
 * they would wait in the barrier for a node that never comes. Of a closed record nobody is waited
 * for, as in the barrier itself; but nodes of torchrun's count those who come. */
static void enter_barrier(struct membership_step *step) {
    membership_enter_barrier(step);
    membership_tell_rendezvous(step, RENDEZVOUS_EVENT_DONE_ASKED, NULL);
    if (step->membership->is_closed && !step->membership->has_foreign_node) {
        pass_closed_barrier(step);
    }
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
    membership->ages = told->world.ages;
    membership->has_foreign_node = rendezvous_state_has_foreign_participant(told->world.state);
    membership->is_closed = false;
    text_append_format(&membership->note,
        "round %lld of job '%s': this node is rank %d of %d nodes%s%s",
        (long long)told->world.round, membership->settings.run_id, told->world.group_rank,
        told->world.node_count, *reason != '\0' ? "; " : "", reason);
    /* The first node says it for all. */
    membership_note(step, told->world.group_rank == 0 ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG);
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
    step->membership->knowledge.is_cut_off = true;
    learn_of_failure(step, step->event->rendezvous.effect->told.reason, 0);
}

static void believe_failure(struct membership_step *step) {
    step->membership->end.has_failed = true;
    step->membership->end.last_word = MEMBERSHIP_SAYING_IT;
    membership_tell_agent_kind(step, AGENT_EVENT_FAILURE_STANDS);
}

/* It is out of the record, and the agent says that it leaves. */
static void tell_excluded(struct membership_step *step) {
    membership_tell_agent_kind(step, AGENT_EVENT_EXCLUDED);
}

/* When the record is closed without a failure, the workers may finish, as among torchrun's nodes.
 */
static void note_closing(struct membership_step *step) {
    step->membership->is_closed = true;
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
static void membership_changing_fail_barrier(struct membership_step *step) {
    text_append(&step->membership->note, step->event->round->reason);
    membership_note(step, LOG_LEVEL_WARNING);
    membership_end_barrier(step, false);
}

/* Where no new round follows a loss, the barrier may wait for a node that is gone: then only its
 * connections tell the host that it is alone. */
static void membership_changing_stay_in_barrier(struct membership_step *step) {
    const struct node_membership *membership = step->membership;
    membership_stay_in_barrier(step);
    if (membership->settings.ignores_losses || membership->has_foreign_node ||
        membership->is_closed) {
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

/* Membership. */

void node_membership_init(
    struct node_membership *membership, const struct membership_settings *settings) {
    *membership = (struct node_membership){.settings = *settings};
}

void node_membership_clear(struct node_membership *membership) {
    struct membership_knowledge *knowledge = &membership->knowledge;
    free(knowledge->node);
    free(knowledge->master_address);
    free(knowledge->trouble);
    failure_account_clear(&knowledge->root_cause);
    free(membership->misplaced);
    free(membership->settling.reason);
    free(membership->end.reason);
    text_clear(&membership->note);
}

/* NULL: the node ignores the event. */
static membership_handler *handler_of(
    const struct node_membership *membership, enum membership_event_kind kind) {
    switch (membership->settings.kind) {
    case MEMBERSHIP_ALONE:
        return membership->settings.is_placed ? membership_placed_handlers[kind]
                                              : membership_alone_handlers[kind];
    case MEMBERSHIP_FIXED:
        return membership_fixed_handlers[kind];
    case MEMBERSHIP_CHANGING:
        return membership_changing_handler(membership->stage, kind);
    case MEMBERSHIP_KIND_COUNT:
        break;
    }
    return NULL;
}

void node_membership_step(struct node_membership *membership, const struct membership_event *event,
    struct membership_effects *effects) {
    effects->count = 0;
    text_clear(&membership->note);
    membership_handler *handle = handler_of(membership, event->kind);
    if (handle != NULL) {
        handle(&(struct membership_step){membership, event, effects});
    }
}

/* Effects of the machines as events of the membership. */

enum membership_event_kind membership_event_of_agent(enum agent_effect_kind kind) {
    static const enum membership_event_kind kinds[AGENT_EFFECT_COUNT] = {
        [AGENT_EFFECT_JOIN] = MEMBERSHIP_EVENT_JOIN_ASKED,
        [AGENT_EFFECT_ENTER_BARRIER] = MEMBERSHIP_EVENT_BARRIER_ASKED,
        [AGENT_EFFECT_ANNOUNCE_LEAVE] = MEMBERSHIP_EVENT_LEAVE_ASKED,
        [AGENT_EFFECT_ANNOUNCE_SUCCESS] = MEMBERSHIP_EVENT_SUCCESS_ASKED,
    };
    return kinds[kind];
}

enum membership_event_kind membership_event_of_rendezvous(const struct rendezvous_effect *effect) {
    static const enum membership_event_kind kinds[RENDEZVOUS_EFFECT_KIND_COUNT] = {
        [RENDEZVOUS_EFFECT_WORLD] = MEMBERSHIP_EVENT_WORLD,
        [RENDEZVOUS_EFFECT_RELEASED] = MEMBERSHIP_EVENT_WORLD_RELEASED,
        [RENDEZVOUS_EFFECT_ROUND_OVER] = MEMBERSHIP_EVENT_WORLD_OVER,
        [RENDEZVOUS_EFFECT_STORE_AWAITED] = MEMBERSHIP_EVENT_STORE_AWAITED,
        [RENDEZVOUS_EFFECT_CLOSED] = MEMBERSHIP_EVENT_CLOSED,
        [RENDEZVOUS_EFFECT_FAILED] = MEMBERSHIP_EVENT_FAILED,
        [RENDEZVOUS_EFFECT_EXCLUDED] = MEMBERSHIP_EVENT_EXCLUDED,
        [RENDEZVOUS_EFFECT_FAILURE_STANDS] = MEMBERSHIP_EVENT_FAILURE_STANDS,
        [RENDEZVOUS_EFFECT_SETTLED] = MEMBERSHIP_EVENT_SETTLED,
    };
    bool is_failure = effect->kind == RENDEZVOUS_EFFECT_CLOSED && *effect->told.reason != '\0';
    return is_failure ? MEMBERSHIP_EVENT_JOB_FAILED : kinds[effect->kind];
}

enum membership_event_kind membership_event_of_round(enum round_effect_kind kind) {
    static const enum membership_event_kind kinds[ROUND_EFFECT_KIND_COUNT] = {
        [ROUND_EFFECT_OPENED] = MEMBERSHIP_EVENT_STORE_OPENED,
        [ROUND_EFFECT_JOINED] = MEMBERSHIP_EVENT_PLACED,
        [ROUND_EFFECT_JOIN_FAILED] = MEMBERSHIP_EVENT_NOT_PLACED,
        [ROUND_EFFECT_BARRIER_PASSED] = MEMBERSHIP_EVENT_BARRIER_PASSED,
        [ROUND_EFFECT_BARRIER_FAILED] = MEMBERSHIP_EVENT_BARRIER_FAILED,
        [ROUND_EFFECT_BARRIER_LATE] = MEMBERSHIP_EVENT_BARRIER_LATE,
        [ROUND_EFFECT_RANK_DISPUTED] = MEMBERSHIP_EVENT_RANK_DISPUTED,
        [ROUND_EFFECT_PEER_RESTART] = MEMBERSHIP_EVENT_PEER_RESTART,
        [ROUND_EFFECT_PEER_FAILED] = MEMBERSHIP_EVENT_PEER_FAILED,
    };
    return kinds[kind];
}

bool membership_event_has_account(enum membership_event_kind kind) {
    return kind == MEMBERSHIP_EVENT_RESTART_ASKED || kind == MEMBERSHIP_EVENT_DOUBT_ASKED ||
           kind == MEMBERSHIP_EVENT_FAILURE_ASKED || kind == MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT;
}
