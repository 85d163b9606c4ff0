/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous_doubt.h"

#include <stdio.h>

#include "core/rendezvous_regroup.h"

/* For the news to be written and to arrive, on a busy machine. */
#define SLACK_SECONDS 2

/* How long after a node was lost this is known everywhere, unless its agent alone has stalled: then
 * its workers have not, and break no connection. */
static struct duration patience(const struct rendezvous_machine *machine) {
    const struct rendezvous_settings *settings = &machine->settings;
    int64_t silence = machine->has_presence ? settings->silence_timeout.nanoseconds
                                            : settings->keep_alive_interval.nanoseconds *
                                                  (settings->keep_alive_max_attempt + 1);
    return (struct duration){silence + duration_from_seconds(SLACK_SECONDS).nanoseconds};
}

/* Without others there is nobody to lose. A round that is over, though the agent is not told yet,
 * answers for itself. */
static bool is_doubtful(const struct rendezvous_machine *machine) {
    return machine->seen.round != machine->world_round ||
           (machine->world_size > 1 && rendezvous_regroup_is_possible(&machine->seen) &&
               rendezvous_settings_heed_losses(&machine->settings));
}

void rendezvous_doubt_begin(struct rendezvous_step *step, const char *reason) {
    struct rendezvous_machine *machine = step->machine;
    bool takes_part = machine->goal == RENDEZVOUS_GOAL_TAKE_PART;
    if (takes_part && machine->world_round == RENDEZVOUS_NO_ROUND) {
        return;
    }
    snprintf(machine->restart_reason, sizeof machine->restart_reason, "%s", reason);
    if (!takes_part || !rendezvous_is_connected(machine) || !is_doubtful(machine)) {
        rendezvous_doubt_overcome(step);
        return;
    }
    machine->is_doubting = true;
    machine->is_roll_called = false;
    machine->is_roll_answered = false;
    moment_set_after(&machine->doubt_deadline, step, patience(machine));
}

void rendezvous_doubt_overcome(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    snprintf(machine->message, sizeof machine->message, "%s", machine->restart_reason);
    rendezvous_step_push_kind(step, RENDEZVOUS_EFFECT_FAILURE_STANDS);
    rendezvous_end_part(step, RENDEZVOUS_GOAL_CLOSE);
}

bool rendezvous_doubt_pursue(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!machine->is_doubting) {
        return false;
    }
    if (machine->is_roll_answered || moment_has_come(&machine->doubt_deadline, step->event->now)) {
        rendezvous_doubt_overcome(step);
        return true;
    }
    if (!machine->seen.is_doubted) {
        rendezvous_draft_begin(machine)->is_doubted = true;
        return rendezvous_draft_write(step, false);
    }
    if (!machine->is_roll_called) {
        machine->is_roll_called = true;
        rendezvous_step_push(step,
            (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CALL_ROLL,
                .roll = {machine->seen.round, (int)rendezvous_state_participants(&machine->seen)}});
    }
    return false;
}

void rendezvous_doubt_answer(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->seen;
    if (!seen->is_doubted || machine->goal == RENDEZVOUS_GOAL_LEAVE ||
        !rendezvous_is_participant(machine) || seen->round == machine->answered_round) {
        return;
    }
    machine->answered_round = seen->round;
    rendezvous_step_push(step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_ANSWER_ROLL,
                                   .roll = {seen->round, (int)rendezvous_self(machine)->rank}});
}

void rendezvous_doubt_look(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->knows_restarts && machine->seen.restarts > machine->restarts_seen) {
        moment_set(&machine->charged_at, step->event->now);
    }
    machine->knows_restarts = true;
    machine->restarts_seen = machine->seen.restarts;
}

bool rendezvous_doubt_may_be_consequence(const struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    return machine->seen.is_charged && machine->charged_at.is_set &&
           instant_until(machine->charged_at.at, step->event->now).nanoseconds <=
               patience(machine).nanoseconds;
}
