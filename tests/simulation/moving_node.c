/* SPDX-License-Identifier: BSD-3-Clause */
/* Performs what the machines of a node want, as agent/rendezvous does. */
#include "moving_job.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/succession/succession_machine.h"

#define WALL_BASE INT64_C(1700000000000000000)

/* Facts. */

static struct wall_time wall(const struct moving_job *job) {
    return (struct wall_time){WALL_BASE + job->now.nanoseconds};
}

void moving_node_post(
    struct moving_job *job, struct moving_node *node, const struct node_event *event) {
    if (node->is_alive) {
        node_machine_post(node->machine, event, job->now, wall(job));
    }
}

void moving_tell_agent(struct moving_job *job, struct moving_node *node, struct agent_event event) {
    moving_node_post(job, node, &(struct node_event){.part = NODE_AGENT, .agent = event});
}

void moving_tell_rendezvous(
    struct moving_job *job, struct moving_node *node, struct rendezvous_event event) {
    moving_node_post(job, node, &(struct node_event){.part = NODE_RENDEZVOUS, .rendezvous = event});
}

void moving_tell_round(struct moving_job *job, struct moving_node *node, struct round_event event) {
    moving_node_post(job, node, &(struct node_event){.part = NODE_ROUND, .round = event});
}

void moving_tell_membership(
    struct moving_job *job, struct moving_node *node, enum membership_event_kind kind) {
    moving_node_post(
        job, node, &(struct node_event){.part = NODE_MEMBERSHIP, .membership = {.kind = kind}});
}

void moving_tell_succession(
    struct moving_job *job, struct moving_node *node, struct succession_event event) {
    moving_node_post(job, node, &(struct node_event){.part = NODE_SUCCESSION, .succession = event});
}

/* Timers: one of each machine's. */

static void timer_fires(struct moving_job *job, struct moving_event *event) {
    struct moving_node *node = &job->nodes[event->node];
    struct node_event told = {.part = (enum node_part)event->number};
    if (event->ticket != node->timer_tickets[event->number]) {
        return;
    }
    switch (told.part) {
    case NODE_AGENT:
        told.agent.kind = AGENT_EVENT_TIMER_FIRED;
        break;
    case NODE_MEMBERSHIP:
        told.membership.kind = MEMBERSHIP_EVENT_TIMER_FIRED;
        break;
    case NODE_RENDEZVOUS:
        told.rendezvous.kind = RENDEZVOUS_EVENT_TIMER_FIRED;
        break;
    case NODE_ROUND:
        told.round.kind = ROUND_EVENT_TIMER_FIRED;
        told.round.round = node->begun_round;
        break;
    case NODE_SUCCESSION:
        told.succession.kind = SUCCESSION_EVENT_TIMER_FIRED;
        break;
    case NODE_STANDBY:
    case NODE_PART_COUNT:
        return;
    }
    moving_node_post(job, node, &told);
}

void moving_arm_timer(struct moving_job *job, struct moving_node *node, enum node_part part,
    struct instant deadline) {
    struct moving_event *event = moving_add(job, deadline, node, timer_fires);
    event->number = part;
    event->ticket = ++node->timer_tickets[part];
}

/* Its worker. */

void moving_worker_ends(
    struct moving_job *job, struct moving_node *node, struct process_exit exit) {
    node->is_running = false;
    node->worker = 0;
    node->worker_gone_at = job->now;
    moving_tell_agent(job, node,
        (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
            .worker_exited = {.exit = exit, .observed = wall(job)}});
    moving_tell_agent(job, node, (struct agent_event){.kind = AGENT_EVENT_ALL_GONE});
}

static void is_done(struct moving_job *job, struct moving_event *event) {
    struct moving_node *node = &job->nodes[event->node];
    if (node->worker == event->number) {
        moving_worker_ends(job, node, (struct process_exit){0});
    }
}

static void is_started(struct moving_job *job, struct moving_event *event) {
    struct moving_node *node = &job->nodes[event->node];
    if (node->worker == event->number && !node->is_running) {
        node->is_running = true;
        moving_tell_agent(job, node, (struct agent_event){.kind = AGENT_EVENT_WORKERS_STARTED});
        if (job->is_finishing) {
            moving_add(job, moving_later(job, moving_between(job, 0.01, 1)), node, is_done)
                ->number = node->worker;
        }
    }
}

static void start_worker(struct moving_job *job, struct moving_node *node) {
    moving_check_start(job, node);
    node->worker = ++job->lives;
    moving_add(job, moving_later(job, moving_between(job, 0.001, 0.03)), node, is_started)->number =
        node->worker;
}

static void is_signalled(struct moving_job *job, struct moving_event *event) {
    struct moving_node *node = &job->nodes[event->node];
    if (node->worker == event->number) {
        moving_worker_ends(
            job, node, (struct process_exit){.is_signal = true, .value = (int)event->ticket});
    }
}

static void signal_worker(struct moving_job *job, struct moving_node *node, int signal) {
    bool is_slow = signal != MOVING_KILL && moving_chance(job, 10) && !job->has_prompt_workers;
    double seconds = is_slow ? moving_between(job, 0.1, 3) : moving_between(job, 0.001, 0.05);
    if (node->worker == 0) {
        moving_tell_agent(job, node, (struct agent_event){.kind = AGENT_EVENT_ALL_GONE});
        return;
    }
    struct moving_event *event = moving_add(job, moving_later(job, seconds), node, is_signalled);
    event->number = node->worker;
    event->ticket = (uint64_t)signal;
}

static void perform_agent(
    struct moving_job *job, struct moving_node *node, const struct agent_effect *effect) {
    switch ((int)effect->kind) {
    case AGENT_EFFECT_START_WORKERS:
        start_worker(job, node);
        break;
    case AGENT_EFFECT_SIGNAL_WORKERS:
        signal_worker(job, node, effect->signal);
        break;
    case AGENT_EFFECT_KILL_WORKERS:
        signal_worker(job, node, MOVING_KILL);
        break;
    case AGENT_EFFECT_ARM_TIMER:
        moving_arm_timer(job, node, NODE_AGENT, effect->deadline);
        break;
    case AGENT_EFFECT_DISARM_TIMER:
        node->timer_tickets[NODE_AGENT]++;
        break;
    case AGENT_EFFECT_ANNOUNCE_RESTART:
        moving_tell_membership(job, node, MEMBERSHIP_EVENT_RESTART_ASKED);
        break;
    case AGENT_EFFECT_DOUBT_FAILURE:
        moving_tell_membership(job, node, MEMBERSHIP_EVENT_DOUBT_ASKED);
        break;
    case AGENT_EFFECT_ANNOUNCE_FAILURE:
        moving_tell_membership(job, node, MEMBERSHIP_EVENT_FAILURE_ASKED);
        break;
    case AGENT_EFFECT_FINISH:
        node->is_finished = true;
        node->outcome = effect->outcome.kind;
        moving_tell_membership(job, node, MEMBERSHIP_EVENT_END_ASKED);
        break;
    default:
        break;
    }
}

/* The record. */

static void lose_connection(
    struct moving_job *job, struct moving_node *node, const struct rendezvous_event *event) {
    enum succession_loss loss =
        node->is_connected ? event->lost.is_silent ? SUCCESSION_LOSS_SILENT : SUCCESSION_LOSS_ENDED
        : instant_is_before(job->now, node->dial_end) ? SUCCESSION_LOSS_REFUSED
                                                      : SUCCESSION_LOSS_SILENT;
    node->heard_at = node->is_connected ? job->now : node->heard_at; /* it had no doubt until now */
    node->is_connected = false;
    moving_tell_succession(job, node,
        (struct succession_event){.kind = SUCCESSION_EVENT_CONNECTION_LOST, .loss = loss});
}

static void take_told(
    struct moving_job *job, struct moving_node *node, const struct rendezvous_event *event) {
    if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        node->is_connected = true;
        node->is_calling_roll = false;
        node->heard_at = job->now;
        moving_tell_succession(job, node,
            (struct succession_event){.kind = SUCCESSION_EVENT_CONNECTED,
                .offers_delegation = event->connected.offers_delegation});
        moving_say_again(node);
    } else if (event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST) {
        node->is_calling_roll = false;
        lose_connection(job, node, event);
    } else {
        if (event->kind == RENDEZVOUS_EVENT_BROKEN) {
            moving_complain(job, "node %d finds the record broken: %s", node->index, event->reason);
        }
        node->is_calling_roll &= event->kind != RENDEZVOUS_EVENT_ROLL_ANSWERED;
        job->records_read += event->kind == RENDEZVOUS_EVENT_RECORD && node->store == NULL ? 1 : 0;
        if (event->kind == RENDEZVOUS_EVENT_RECORD && event->state != NULL && node->store != NULL) {
            moving_look_at_record(job, node, event->state);
        }
        moving_tell_rendezvous(job, node, *event);
    }
}

/* What a host that leaves tells is for the succession. */
static void take_word(
    struct moving_job *job, struct moving_node *node, const struct rendezvous_event *event) {
    moving_tell_succession(job, node,
        (struct succession_event){
            .kind = event->is_successor ? SUCCESSION_EVENT_NAMED : SUCCESSION_EVENT_MOVED});
}

void moving_perform_record(
    struct moving_job *job, struct moving_node *node, struct record_effects *effects) {
    for (size_t i = 0; i < effects->count; i++) {
        const struct record_effect *effect = &effects->items[i];
        switch (effect->kind) {
        case RECORD_EFFECT_OPEN:
            moving_lanes_open(job, node, effect->deadline, effect->refusal_patience, effect->pause);
            break;
        case RECORD_EFFECT_DROP:
            moving_lanes_drop(job, node, false);
            break;
        case RECORD_EFFECT_RENEW_WAITER:
            moving_lane_close(job, node, RENDEZVOUS_LANE_WAITER);
            break;
        case RECORD_EFFECT_SEND:
            moving_lane_send(node, (int)effect->send.lane, &effect->send.own.request,
                (struct moving_call){.kind = MOVING_CALL_RECORD,
                    .rests = effect->send.rests,
                    .tag = effect->send.tag});
            break;
        case RECORD_EFFECT_TELL:
            (effect->told.kind == RENDEZVOUS_EVENT_HOST_LEAVES ? take_word : take_told)(
                job, node, &effect->told);
            break;
        }
    }
    record_effects_clear(effects);
}

void moving_cancel_waits(struct moving_job *job, struct moving_node *node) {
    struct record_effects effects = {0};
    rendezvous_record_store_cancel_waits(node->record, &effects);
    moving_perform_record(job, node, &effects);
}

static void perform_rendezvous(
    struct moving_job *job, struct moving_node *node, const struct rendezvous_effect *effect) {
    struct record_effects effects = {0};
    if (effect->kind == RENDEZVOUS_EFFECT_TELL_STANDINGS) {
        moving_store_tell(job, node, effect);
    } else if (effect->kind == RENDEZVOUS_EFFECT_CUT_OFF) {
        moving_store_cut_off(job, node, &effect->cut_off);
    } else if (effect->kind == RENDEZVOUS_EFFECT_ARM_TIMER) {
        moving_arm_timer(job, node, NODE_RENDEZVOUS, effect->deadline);
    } else {
        node->is_calling_roll |= effect->kind == RENDEZVOUS_EFFECT_CALL_ROLL;
        if (effect->kind == RENDEZVOUS_EFFECT_WRITE && node->store != NULL) {
            moving_look_at_record(job, node, effect->write.state);
        }
        rendezvous_record_store_ask(node->record, effect, &effects);
        moving_perform_record(job, node, &effects);
    }
}

/* The membership. */

static void perform_membership(
    struct moving_job *job, struct moving_node *node, const struct membership_effect *effect) {
    struct record_effects effects = {0};
    switch ((int)effect->kind) {
    case MEMBERSHIP_EFFECT_NOTE:
        moving_note(job, node, "\"%s\"", effect->note.text);
        break;
    case MEMBERSHIP_EFFECT_LOOK_FOR_ROOT_CAUSE:
        moving_tell_membership(job, node, MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED);
        break;
    case MEMBERSHIP_EFFECT_ARM_TIMER:
        moving_arm_timer(job, node, NODE_MEMBERSHIP, effect->deadline);
        break;
    case MEMBERSHIP_EFFECT_CANCEL_ROLL:
        if (node->is_calling_roll) {
            node->is_calling_roll = false;
            moving_cancel_waits(job, node);
        }
        break;
    case MEMBERSHIP_EFFECT_DISCONNECT:
        rendezvous_record_store_disconnect(node->record, &effects);
        moving_perform_record(job, node, &effects);
        break;
    case MEMBERSHIP_EFFECT_LINGER:
        moving_linger(job, node, effect->patience);
        break;
    case MEMBERSHIP_EFFECT_SETTLED:
        moving_exit(job, node);
        break;
    default:
        break;
    }
}

/* Steps. */

static void perform(
    struct moving_job *job, struct moving_node *node, const struct node_effect *effect) {
    switch (effect->part) {
    case NODE_AGENT:
        perform_agent(job, node, &effect->agent);
        break;
    case NODE_MEMBERSHIP:
        perform_membership(job, node, &effect->membership);
        break;
    case NODE_RENDEZVOUS:
        perform_rendezvous(job, node, &effect->rendezvous);
        break;
    case NODE_ROUND:
        moving_perform_round(job, node, &effect->round);
        break;
    case NODE_SUCCESSION:
        moving_perform_succession(job, node, &effect->succession);
        break;
    case NODE_STANDBY:
    case NODE_PART_COUNT:
        break;
    }
}

static void say(const struct moving_job *job, const struct moving_node *node,
    const struct text *event, const struct node_effects *effects) {
    struct text line = {0};
    text_append_format(&line, "%s ->", text_string(event));
    for (size_t i = 0; i < effects->count; i++) {
        text_append(&line, i == 0 ? " " : "; ");
        node_effect_describe(&effects->items[i], &line);
    }
    moving_note(job, node, "%s", text_string(&line));
    text_clear(&line);
}

static void step(struct moving_job *job, struct moving_node *node) {
    struct node_effects effects;
    struct text event = {0};
    if (job->is_told) {
        node_event_describe(node_machine_next(node->machine), &event);
    }
    node_machine_step(node->machine, &effects);
    if (job->is_told) {
        say(job, node, &event, &effects);
    }
    text_clear(&event);
    int64_t life = node->life;
    for (size_t i = 0; i < effects.count && node->is_alive && node->life == life; i++) {
        if (!effects.items[i].is_internal) {
            perform(job, node, &effects.items[i]);
        }
    }
}

void moving_node_run(struct moving_job *job, struct moving_node *node) {
    if (node->is_performing || node->is_stopped) {
        return;
    }
    node->is_performing = true;
    moving_pump(job, node);
    while (node->is_alive && node_machine_next(node->machine) != NULL) {
        step(job, node);
        if (node->is_alive) {
            moving_pump(job, node);
        }
    }
    node->is_performing = false;
}

/* Life. */

static struct node_settings settings_of(struct moving_job *job, const struct moving_node *node) {
    struct node_settings made = {
        .agent = {.worker_count = 1,
            .max_restarts = 1000,
            .shutdown_timeout = duration_from_seconds(5),
            .has_peers = true,
            .may_lose_peers = true},
        .membership = {.kind = MEMBERSHIP_CHANGING,
            .run_id = MOVING_RUN_ID,
            .role = "default",
            .local_world_size = 1,
            .address = node->name,
            .where = "the register",
            .settling_time = duration_from_seconds(2),
            .is_hasty = true,
            .has_succession = true},
        .rendezvous = {.identity = node->identity,
            .has_succession = true,
            .seed = random_next(&job->random)},
        .round = {.role = "default",
            .local_world_size = 1,
            .has_succession = true,
            .timeout = duration_from_seconds(600),
            .where = "the register",
            .exit_barrier_timeout = duration_from_seconds(300)},
        .succession = {.identity = node->identity,
            .silence_timeout = duration_from_seconds(MOVING_SILENCE_SECONDS),
            .fence_timeout = duration_from_seconds(MOVING_FENCE_SECONDS)},
    };
    rendezvous_settings_init(&made.rendezvous.rendezvous);
    made.rendezvous.rendezvous.minimum_nodes = job->minimum;
    made.rendezvous.rendezvous.maximum_nodes = MOVING_NODES_MAXIMUM;
    made.rendezvous.rendezvous.delegates = node->delegates;
    made.rendezvous.rendezvous.last_call_timeout = duration_from_seconds(1);
    made.rendezvous.role = round_settings_role(&made.round);
    return made;
}

void moving_node_begin(struct moving_job *job, struct moving_node *node) {
    struct node_settings made = settings_of(job, node);
    struct rendezvous_record_store_settings record = {
        .run_id = MOVING_RUN_ID,
        .minimum_nodes = job->minimum,
        .maximum_nodes = MOVING_NODES_MAXIMUM,
        .answer_timeout = duration_from_seconds(15),
        .seed = random_next(&job->random),
        .delegates = node->delegates,
        .follows = true,
    };
    node->machine = node_machine_new(&made);
    node->record = rendezvous_record_store_new(&record);
    moving_tell_agent(job, node, (struct agent_event){.kind = AGENT_EVENT_START});
}

void moving_node_forget(struct moving_job *job, struct moving_node *node) {
    (void)job;
    moving_drop_asked(node, false);
    rendezvous_state_clear(&node->gathered);
}
