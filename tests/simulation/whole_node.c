/* SPDX-License-Identifier: BSD-3-Clause */
/* One node: performs what its machines want. */
#include "whole_parts.h"

#define TIMERS_A_SECOND_MAXIMUM 400

/* Facts. */

void whole_node_post(
    struct whole_cluster *cluster, struct whole_node *node, const struct node_event *event) {
    if (node->is_stopped) {
        whole_complain(
            cluster, "the simulation tells %s something while it is stopped", node->name);
    }
    if (node->machine != NULL && node->is_alive) {
        node_machine_post(
            node->machine, event, (struct instant){cluster->now}, whole_wall(cluster, node));
    }
}

void whole_tell_agent(
    struct whole_cluster *cluster, struct whole_node *node, struct agent_event event) {
    whole_node_post(cluster, node, &(struct node_event){.part = NODE_AGENT, .agent = event});
}

void whole_tell_membership(
    struct whole_cluster *cluster, struct whole_node *node, enum membership_event_kind kind) {
    whole_node_post(
        cluster, node, &(struct node_event){.part = NODE_MEMBERSHIP, .membership = {.kind = kind}});
}

enum agent_phase whole_phase(const struct whole_node *node) {
    return node->machine == NULL ? AGENT_IDLE : node_machine_agent(node->machine)->phase;
}

bool whole_is_live(const struct whole_node *node) {
    return node->is_alive && !node->is_finished;
}

/* Timers: one of each machine's. */

void whole_timer_fires(struct whole_cluster *cluster, struct whole_happening *happening) {
    static const struct node_event events[NODE_PART_COUNT] = {
        [NODE_AGENT] = {.part = NODE_AGENT, .agent = {.kind = AGENT_EVENT_TIMER_FIRED}},
        [NODE_MEMBERSHIP] = {.part = NODE_MEMBERSHIP,
            .membership = {.kind = MEMBERSHIP_EVENT_TIMER_FIRED}},
        [NODE_RENDEZVOUS] = {.part = NODE_RENDEZVOUS,
            .rendezvous = {.kind = RENDEZVOUS_EVENT_TIMER_FIRED}},
        [NODE_STANDBY] = {.part = NODE_STANDBY, .standby = {.kind = STANDBY_EVENT_TIMER_FIRED}},
        [NODE_ROUND] = {.part = NODE_ROUND, .round = {.kind = ROUND_EVENT_TIMER_FIRED}},
    };
    struct whole_node *node = happening->node;
    if (cluster->now / WHOLE_SECOND != node->timer_second) {
        node->timer_second = cluster->now / WHOLE_SECOND;
        node->timers_fired = 0;
    }
    if (++node->timers_fired > TIMERS_A_SECOND_MAXIMUM) {
        whole_complain(cluster, "%s does nothing but wake up", node->name);
    }
    struct node_event event = events[happening->rank];
    if (event.part == NODE_ROUND) {
        event.round.round = node->begun_round;
    }
    whole_node_post(cluster, node, &event);
}

static void arm_timer(struct whole_cluster *cluster, struct whole_node *node, enum node_part part,
    struct instant deadline) {
    int64_t late = cluster->settings.is_calm ? 0 : whole_between(cluster, 0, WHOLE_MILLISECOND / 4);
    if (part == NODE_RENDEZVOUS && deadline.nanoseconds <= cluster->now) {
        whole_complain(cluster, "%s arms a timer in the past", node->name);
    }
    int64_t time =
        deadline.nanoseconds < INT64_MAX - late ? deadline.nanoseconds + late : INT64_MAX;
    whole_plan(cluster, &node->timers[part], time);
}

/* The agent. */

/* The worker to blame, as far as anybody else needs to know. */
static void announce(
    struct whole_cluster *cluster, struct whole_node *node, enum membership_event_kind kind) {
    const struct worker_group *group = &node_machine_agent(node->machine)->workers;
    const struct membership_knowledge *knowledge = node_machine_knowledge(node->machine);
    struct failure_account account = {
        .host = node->name, .node = knowledge->node, .group_rank = knowledge->placement.group_rank};
    struct node_event event = {.part = NODE_MEMBERSHIP, .membership = {.kind = kind}};
    if (worker_group_has_failure(group)) {
        const struct worker_failure *failure = &group->failures[worker_group_root_cause(group)];
        account.local_rank = failure->local_rank;
        account.rank = knowledge->placement.ranks.base_rank + failure->local_rank;
        account.seconds = failure->observed.nanoseconds / WHOLE_SECOND;
        account.exit = failure->exit;
        account.stuck = failure->stuck;
        event.membership.account = &account;
    }
    whole_node_post(cluster, node, &event);
}

static void perform_agent(
    struct whole_cluster *cluster, struct whole_node *node, const struct agent_effect *effect) {
    switch (effect->kind) {
    case AGENT_EFFECT_START_WORKERS:
        whole_start_workers(cluster, node);
        break;
    case AGENT_EFFECT_SIGNAL_WORKERS:
        whole_signal_workers(cluster, node, effect->signal);
        break;
    case AGENT_EFFECT_KILL_WORKERS:
        whole_check_kill(cluster, node);
        whole_signal_workers(cluster, node, WHOLE_KILL);
        break;
    case AGENT_EFFECT_LOOK_AT_WORKERS:
        whole_look_at_workers(cluster, node);
        break;
    case AGENT_EFFECT_ARM_TIMER:
        arm_timer(cluster, node, NODE_AGENT, effect->deadline);
        break;
    case AGENT_EFFECT_DISARM_TIMER:
        whole_call_off(cluster, &node->timers[NODE_AGENT]);
        break;
    case AGENT_EFFECT_ANNOUNCE_RESTART:
        announce(cluster, node, MEMBERSHIP_EVENT_RESTART_ASKED);
        break;
    case AGENT_EFFECT_DOUBT_FAILURE:
        announce(cluster, node, MEMBERSHIP_EVENT_DOUBT_ASKED);
        break;
    case AGENT_EFFECT_ANNOUNCE_FAILURE:
        announce(cluster, node, MEMBERSHIP_EVENT_FAILURE_ASKED);
        break;
    case AGENT_EFFECT_FINISH:
        node->is_finished = true;
        node->finished_at = cluster->now;
        node->outcome = effect->outcome;
        whole_tell_membership(cluster, node, MEMBERSHIP_EVENT_END_ASKED);
        break;
    case AGENT_EFFECT_JOIN:
    case AGENT_EFFECT_CHECK_NODE: /* no node of a simulation has a check */
    case AGENT_EFFECT_ENTER_BARRIER:
    case AGENT_EFFECT_ANNOUNCE_LEAVE:
    case AGENT_EFFECT_ANNOUNCE_SUCCESS:
    case AGENT_EFFECT_COUNT:
        break;
    }
}

/* The membership. */

void whole_patience_ends(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->node;
    if (node->is_lingering || node->is_flushing) {
        node->is_lingering = node->is_flushing = false;
        whole_tell_membership(cluster, node, MEMBERSHIP_EVENT_LEFT);
    }
}

/* Fixed nodes count their own connections, too, and have no end of patience. */
static void linger(
    struct whole_cluster *cluster, struct whole_node *node, struct duration patience) {
    bool is_changing = cluster->settings.kind == MEMBERSHIP_CHANGING;
    node->is_lingering = true;
    if (is_changing && cluster->store.open_count > 0) {
        whole_plan(cluster, &node->patience,
            instant_after((struct instant){cluster->now}, patience).nanoseconds);
    }
    whole_tell_when_alone(cluster, node);
}

static void store_is_renewed(struct whole_cluster *cluster, struct whole_happening *happening) {
    whole_tell_membership(cluster, happening->node, MEMBERSHIP_EVENT_STORE_RENEWED);
}

static void perform_membership(struct whole_cluster *cluster, struct whole_node *node,
    const struct membership_effect *effect) {
    switch ((int)effect->kind) {
    case MEMBERSHIP_EFFECT_NOTE:
        whole_note(cluster, node, "\"%s\"", effect->note.text);
        break;
    case MEMBERSHIP_EFFECT_PUBLISH_ROOT_CAUSE:
        whole_publish_cause(cluster, node, effect);
        break;
    case MEMBERSHIP_EFFECT_LOOK_FOR_ROOT_CAUSE:
        whole_look_for_cause(cluster, node, effect->root_cause.round);
        break;
    case MEMBERSHIP_EFFECT_ARM_TIMER:
        arm_timer(cluster, node, NODE_MEMBERSHIP, effect->deadline);
        break;
    case MEMBERSHIP_EFFECT_CANCEL_ROLL:
        whole_cancel_roll(cluster, node);
        break;
    case MEMBERSHIP_EFFECT_RENEW_WORKER_STORE:
        whole_schedule(cluster, cluster->now + whole_delay(cluster), node, store_is_renewed);
        break;
    case MEMBERSHIP_EFFECT_DISCONNECT:
        whole_disconnect(cluster, node);
        break;
    case MEMBERSHIP_EFFECT_LINGER:
        linger(cluster, node, effect->patience);
        break;
    case MEMBERSHIP_EFFECT_FLUSH:
        whole_flush(cluster, node, effect->patience);
        break;
    case MEMBERSHIP_EFFECT_SETTLED:
        whole_check_node_end(cluster, node);
        whole_check_no_spare(cluster, node);
        whole_end_process(cluster, node, WHOLE_EXITS);
        break;
    default:
        break;
    }
}

static void perform(
    struct whole_cluster *cluster, struct whole_node *node, const struct node_effect *effect) {
    switch (effect->part) {
    case NODE_AGENT:
        perform_agent(cluster, node, &effect->agent);
        break;
    case NODE_MEMBERSHIP:
        perform_membership(cluster, node, &effect->membership);
        break;
    case NODE_RENDEZVOUS:
        if (effect->rendezvous.kind == RENDEZVOUS_EFFECT_ARM_TIMER) {
            arm_timer(cluster, node, NODE_RENDEZVOUS, effect->rendezvous.deadline);
        } else {
            whole_perform_rendezvous(cluster, node, &effect->rendezvous);
        }
        break;
    case NODE_ROUND:
        if (effect->round.kind == ROUND_EFFECT_ARM_TIMER) {
            arm_timer(cluster, node, NODE_ROUND, effect->round.deadline);
        } else {
            whole_perform_round(cluster, node, &effect->round);
        }
        break;
    case NODE_STANDBY:
        if (effect->standby.kind == STANDBY_EFFECT_ARM_TIMER) {
            arm_timer(cluster, node, NODE_STANDBY, effect->standby.deadline);
        } else {
            whole_perform_standby(cluster, node, &effect->standby);
        }
        break;
    case NODE_SUCCESSION: /* no register is played */
    case NODE_PART_COUNT:
        break;
    }
}

/* Steps. */

static void note_step(struct whole_cluster *cluster, const struct whole_node *node,
    const struct text *event, enum node_part part, const struct node_effects *effects) {
    struct text line = {0};
    text_append(&line, text_string(event));
    for (size_t i = 0, told = 0; i < effects->count; i++) {
        if (effects->items[i].part == part) {
            text_append(&line, told++ == 0 ? " -> " : "; ");
            node_effect_describe(&effects->items[i], &line);
        }
    }
    if (cluster->settings.is_printed || part == NODE_AGENT) {
        whole_note(cluster, node, "%s", text_string(&line));
    }
    text_clear(&line);
}

static void step(struct whole_cluster *cluster, struct whole_node *node) {
    struct node_effects effects;
    struct text event = {0};
    const struct node_event *next = node_machine_next(node->machine);
    enum node_part part = next->part;
    bool is_noted = whole_notes(cluster, node);
    if (is_noted) {
        node_event_describe(next, &event);
    }
    enum agent_phase before = node_machine_agent(node->machine)->phase;
    node_machine_step(node->machine, &effects);
    if (part == NODE_AGENT) {
        whole_tell_chronicle(cluster, node, &next->agent, before, &effects);
    }
    if (is_noted) {
        note_step(cluster, node, &event, part, &effects);
        text_clear(&event);
    }
    for (size_t i = 0; i < effects.count && node->is_alive; i++) {
        whole_check_effect(cluster, node, &effects.items[i]);
        if (!effects.items[i].is_internal) {
            perform(cluster, node, &effects.items[i]);
        }
    }
}

void whole_node_run(struct whole_cluster *cluster, struct whole_node *node) {
    if (node->is_performing || node->is_stopped) {
        return;
    }
    node->is_performing = true;
    while (node->is_alive) {
        for (int lane = 0; lane < RENDEZVOUS_LANE_COUNT; lane++) {
            whole_lane_pump(cluster, &node->lanes[lane]);
        }
        if (!node->is_alive || node->machine == NULL || node_machine_next(node->machine) == NULL) {
            break;
        }
        step(cluster, node);
    }
    node->is_performing = false;
}

/* A second signal after the agent's end is impatience with the others. */
void whole_signal_agent(struct whole_cluster *cluster, struct whole_node *node, int signal) {
    node->ending.user_signals++;
    cluster->outcome.has_trouble = true;
    whole_note(cluster, node, "receives signal %d", signal);
    if (node->is_finished) {
        whole_end_process(cluster, node, WHOLE_EXITS);
        return;
    }
    if (cluster->signalled_at < 0) {
        cluster->signalled_at = cluster->now;
    }
    whole_tell_agent(
        cluster, node, (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = signal});
}
