/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_regroup.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "core/telling/round_reason.h"

bool rendezvous_regroup_is_possible(const struct rendezvous_state *state) {
    return !state->is_closed && state->is_complete && rendezvous_state_participants(state) > 0 &&
           !rendezvous_state_has_foreign_participant(state);
}

/* The largest number of nodes with which a round may begin. With scale-up `never` it is the size of
 * the largest world so far. */
static size_t largest_size(
    const struct rendezvous_state *state, const struct rendezvous_settings *settings) {
    size_t maximum = (size_t)settings->maximum_nodes;
    size_t before = rendezvous_state_participants(state);
    before = (size_t)state->size > before ? (size_t)state->size : before;
    bool is_growing = settings->scale_up != RENDEZVOUS_SCALE_UP_NEVER;
    return is_growing || before > maximum ? maximum : before;
}

static bool may_be_let_in(const struct rendezvous_node *node) {
    return (node->is_waiting || node->is_redundant) && !node->is_awaited;
}

/* Moves up to `places` nodes from one list into the round, in the order in which they came. */
static size_t move_in(struct rendezvous_state *state, bool from_spares, size_t places) {
    size_t moved = 0;
    for (size_t i = 0; i < state->count && moved < places; i++) {
        struct rendezvous_node *node = &state->nodes[i];
        if (!node->is_participant && may_be_let_in(node) && node->is_redundant == from_spares) {
            node->is_participant = true;
            node->is_waiting = false;
            node->is_redundant = false;
            moved++;
        }
    }
    return moved;
}

bool rendezvous_regroup_would_park(
    const struct rendezvous_state *state, const struct rendezvous_settings *settings) {
    return state->is_complete && rendezvous_state_waiting(state) > 0 &&
           rendezvous_state_participants(state) >= (size_t)settings->maximum_nodes;
}

void rendezvous_regroup_park(
    struct rendezvous_state *state, const struct rendezvous_settings *settings) {
    if (!rendezvous_regroup_would_park(state, settings)) {
        return;
    }
    for (size_t i = 0; i < state->count; i++) {
        if (state->nodes[i].is_waiting) {
            state->nodes[i].is_waiting = false;
            state->nodes[i].is_redundant = true;
        }
    }
}

static void open_round(struct rendezvous_state *state, size_t wanted) {
    for (size_t i = 0; i < state->count; i++) {
        state->nodes[i].rank = 0;
    }
    state->is_complete = false;
    state->wanted = (int64_t)wanted;
}

void rendezvous_regroup_explain(struct rendezvous_state *state, const char *reason) {
    snprintf(state->reason, sizeof state->reason, "%s", reason);
    for (char *character = state->reason; *character != '\0'; character++) {
        if (*character < ' ' || *character > '~') {
            *character = '?';
        }
    }
}

bool rendezvous_regroup_is_because(const struct rendezvous_state *state, const char *reason) {
    struct rendezvous_state other = {0};
    rendezvous_regroup_explain(&other, reason);
    return other.reason[0] != '\0' && text_equals(other.reason, state->reason);
}

void rendezvous_regroup_name_cause(
    const struct node_identity *identity, const char *what, char *out, size_t size) {
    snprintf(out, size, ROUND_REASON_NODE "%s" ROUND_REASON_PID "%lld) %s", identity->address,
        (long long)identity->pid, what);
    utf8_make_line_printable(out);
}

/* A restart can be given back once, and only until the next restart. Rounds that began for other
 * reasons may lie in between. */
static void charge(struct rendezvous_state *state, const struct rendezvous_regroup *regroup) {
    if (regroup->is_refunded && state->is_charged) {
        state->restarts -= state->restarts > 0 ? 1 : 0;
        rendezvous_state_take_blame_back(state);
        state->is_charged = false;
    }
    if (regroup->is_charged) {
        state->restarts++;
        state->is_charged = true;
    }
}

/* Why the node stays; NULL: it may leave. */
static const char *why_needed(const struct rendezvous_state *state,
    const struct rendezvous_settings *settings, const struct rendezvous_regroup *regroup,
    size_t world) {
    size_t others = rendezvous_state_participants(state) - 1;
    size_t spares = rendezvous_state_waiting(state) + rendezvous_state_redundant(state);
    bool is_waiting = settings->on_node_loss == RENDEZVOUS_ON_NODE_LOSS_WAIT;
    if (regroup->is_culprit_needed) {
        return "it hosts the job's store";
    }
    return others + spares < (is_waiting ? world : (size_t)settings->minimum_nodes)
               ? "there is no spare, and the others are too few"
               : NULL;
}

/* A node whose workers have failed first too often leaves, where the others can do without it. */
static void judge_culprit(struct rendezvous_state *state,
    const struct rendezvous_settings *settings, const struct rendezvous_regroup *regroup,
    size_t world) {
    const struct node_identity *culprit = regroup->culprit;
    const struct rendezvous_node *node =
        culprit != NULL ? rendezvous_state_find(state, culprit) : NULL;
    if (settings->exclude_after == 0 || !regroup->is_charged || node == NULL) {
        return;
    }
    int64_t count = rendezvous_state_blame(state, culprit->address);
    const char *needed = why_needed(state, settings, regroup, world);
    if (count < settings->exclude_after) {
        return;
    }
    if (needed == NULL) {
        struct node_identity gone = *culprit;
        rendezvous_state_forgive(state, gone.address);
        (void)rendezvous_state_take_out(state, &gone, 1);
        return;
    }
    char *reason = text_format(ROUND_REASON_NODE
        "%s" ROUND_REASON_STAYS ", though its workers failed first %lld time%s: %s",
        culprit->address, (long long)count, count == 1 ? "" : "s", needed);
    rendezvous_regroup_explain(state, reason);
    free(reason);
}

void rendezvous_regroup_apply(struct rendezvous_state *state,
    const struct rendezvous_settings *settings, const struct rendezvous_regroup *regroup) {
    size_t world = rendezvous_state_participants(state);
    size_t limit = largest_size(state, settings);
    (void)rendezvous_state_take_out(state, regroup->gone, regroup->gone_count);
    rendezvous_regroup_explain(state, regroup->reason);
    judge_culprit(state, settings, regroup, world);
    size_t count = rendezvous_state_participants(state);
    bool is_waiting_for_all =
        count < world && settings->on_node_loss == RENDEZVOUS_ON_NODE_LOSS_WAIT;
    size_t wanted = is_waiting_for_all ? world : (size_t)settings->minimum_nodes;
    count += move_in(state, false, limit > count ? limit - count : 0);
    count += move_in(state, true, limit > count ? limit - count : 0);
    rendezvous_state_count_round(state);
    state->has_deadline = false;
    rendezvous_state_forget_round(state);
    charge(state, regroup);
    state->signal = regroup->signal;
    if (count >= wanted) {
        rendezvous_state_complete(state);
    } else {
        open_round(state, wanted);
    }
    rendezvous_regroup_park(state, settings);
}

bool rendezvous_regroup_settle(
    struct rendezvous_state *state, const struct rendezvous_settings *settings, bool is_late) {
    size_t count = rendezvous_state_participants(state);
    bool is_enough = count >= (size_t)state->wanted || (is_late && count > 0);
    if (state->is_complete || state->wanted == 0 || !is_enough ||
        count < (size_t)settings->minimum_nodes) {
        return false;
    }
    rendezvous_state_complete(state);
    return true;
}

static bool has_candidate(const struct rendezvous_state *state) {
    size_t i = 0;
    while (i < state->count && !may_be_let_in(&state->nodes[i])) {
        i++;
    }
    return i < state->count;
}

bool rendezvous_regroup_would_admit(
    const struct rendezvous_state *state, const struct rendezvous_settings *settings) {
    return rendezvous_regroup_is_possible(state) && !state->is_draining && !state->is_frozen &&
           !state->is_doubted && has_candidate(state) &&
           rendezvous_state_participants(state) < largest_size(state, settings);
}

/* Growth. */

#define NO_ROUND (-1)
/* Nodes that come within this time are admitted together. */
#define GATHER_MILLISECONDS 10
/* When the round loses nodes within this time after an admission, the next admission waits, longer
 * each time. */
#define SHORT_STAY_SECONDS 10
#define LONG_STAY_SECONDS 60
#define PENALTY_MAXIMUM_SECONDS 60

void rendezvous_growth_init(struct rendezvous_growth *growth) {
    *growth = (struct rendezvous_growth){.round = NO_ROUND};
}

/* A larger world is usual when it has stayed for a short time, a smaller one after a long time. */
static void look_at_usual_size(struct rendezvous_growth *growth, size_t size, double lived) {
    bool is_larger = growth->size > growth->usual_size;
    if (growth->round == NO_ROUND) {
        growth->usual_size = size;
    } else if (lived >= (is_larger ? SHORT_STAY_SECONDS : LONG_STAY_SECONDS)) {
        growth->usual_size = growth->size;
    }
}

void rendezvous_growth_look(
    struct rendezvous_growth *growth, const struct rendezvous_state *seen, struct instant now) {
    if (!seen->is_complete || seen->round == growth->round) {
        return;
    }
    size_t size = rendezvous_state_participants(seen);
    double lived = duration_seconds(instant_until(growth->began, now));
    double penalty = duration_seconds(growth->penalty);
    look_at_usual_size(growth, size, lived);
    bool was_larger = growth->size > growth->usual_size;
    if (growth->has_grown && was_larger && size < growth->size && lived < SHORT_STAY_SECONDS) {
        penalty = penalty < 1 ? 1 : penalty * 2;
        penalty = penalty > PENALTY_MAXIMUM_SECONDS ? PENALTY_MAXIMUM_SECONDS : penalty;
    } else if (lived >= LONG_STAY_SECONDS) {
        penalty = 0;
    }
    growth->penalty = duration_from_seconds(penalty);
    growth->has_grown = growth->round != NO_ROUND && size > growth->size;
    growth->began = now;
    growth->round = seen->round;
    growth->size = size;
}

void rendezvous_growth_note_gathered(struct rendezvous_growth *growth) {
    growth->are_gathered = true;
}

/* Who replaces a lost node makes the world what it was. */
static struct duration penalty_due(const struct rendezvous_growth *growth) {
    return growth->size < growth->usual_size ? (struct duration){0} : growth->penalty;
}

static struct instant admission_time(
    const struct rendezvous_growth *growth, struct instant now, struct duration scale_up_interval) {
    struct duration patience = duration_from_milliseconds(GATHER_MILLISECONDS);
    struct instant gathered = growth->are_gathered ? now : instant_after(now, patience);
    struct instant allowed =
        instant_after(instant_after(growth->began, scale_up_interval), penalty_due(growth));
    return instant_is_before(allowed, gathered) ? gathered : allowed;
}

bool rendezvous_growth_is_due(struct rendezvous_growth *growth, bool is_wanted, struct instant now,
    struct duration scale_up_interval) {
    if (is_wanted && !growth->admission_at.is_set) {
        moment_set(&growth->admission_at, admission_time(growth, now, scale_up_interval));
    }
    bool is_due = is_wanted && moment_has_come(&growth->admission_at, now);
    if (is_due || !is_wanted) {
        moment_clear(&growth->admission_at);
        growth->are_gathered = false;
    }
    return is_due;
}

struct rendezvous_admission rendezvous_growth_admission(
    const struct rendezvous_growth *growth, struct instant now, struct duration scale_up_interval) {
    struct rendezvous_admission admission = {
        .is_awaited = growth->admission_at.is_set, .at = growth->admission_at.at};
    struct instant without_pause = instant_after(growth->began, scale_up_interval);
    admission.is_paused =
        penalty_due(growth).nanoseconds > 0 && !instant_is_before(now, without_pause);
    return admission;
}

void rendezvous_growth_wake(
    const struct rendezvous_growth *growth, struct instant now, struct moment *next) {
    moment_wake(&growth->admission_at, now, next);
}
