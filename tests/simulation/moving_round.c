/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node asks and says in its round, as agent_round does it. */
#include "moving_job.h"

#include <stdlib.h>

#include "base/memory.h"

/* The round. */

static void free_asked(struct moving_asked *asked) {
    owned_request_clear(&asked->request);
    free(asked);
}

void moving_drop_asked(struct moving_node *node, bool only_waits) {
    struct moving_asked **place = &node->asked;
    while (*place != NULL) {
        struct moving_asked *asked = *place;
        if (only_waits && asked->question.kind != ROUND_EFFECT_WAIT) {
            place = &asked->next;
            continue;
        }
        *place = asked->next;
        asked->is_dropped = true;
        if (!asked->is_under_way) {
            free_asked(asked);
        }
    }
}

/* A GET that waits would hold up what is waited for next. */
static void stop_asking_again(struct moving_job *job, struct moving_node *node) {
    for (const struct moving_asked *asked = node->asked; asked != NULL; asked = asked->next) {
        if (asked->is_under_way && asked->is_asked_again) {
            moving_cancel_waits(job, node);
            return; /* the list may have changed */
        }
    }
}

static void send_asked(struct moving_node *node, struct moving_asked *asked, bool is_again) {
    const struct store_request *request = &asked->request.request;
    bool waits_first = is_again && asked->question.kind == ROUND_EFFECT_GET;
    asked->is_asked_again = waits_first;
    bool is_wait = asked->question.kind == ROUND_EFFECT_WAIT || waits_first;
    int lane = is_wait ? RENDEZVOUS_LANE_WAITER : RENDEZVOUS_LANE_ASKER;
    if (!rendezvous_record_store_is_up(node->record)) {
        return;
    }
    if (waits_first) {
        struct slice one[] = {request->key};
        moving_lane_send(node, lane,
            &(struct store_request){.operation = STORE_WAIT,
                .keys = request->count > 0 ? request->keys : one,
                .count = request->count > 0 ? request->count : 1},
            (struct moving_call){.kind = MOVING_CALL_OTHER});
    }
    asked->is_under_way = true;
    moving_lane_send(
        node, lane, request, (struct moving_call){.kind = MOVING_CALL_ROUND, .asked = asked});
}

void moving_say_again(struct moving_node *node) {
    struct moving_asked *next;
    for (struct moving_asked *asked = node->asked; asked != NULL; asked = next) {
        next = asked->next;
        if (!asked->is_under_way) {
            send_asked(node, asked, true);
        }
    }
}

static void ask_for_round(struct moving_node *node, const struct round_effect *effect) {
    struct moving_asked *asked = memory_allocate(sizeof *asked);
    struct moving_asked **place = &node->asked;
    asked->question = round_question_of(effect);
    round_request_build(effect, MOVING_RUN_ID, &asked->request);
    while (*place != NULL) {
        place = &(*place)->next;
    }
    *place = asked;
    send_asked(node, asked, false);
}

static void take_round_answer(struct moving_job *job, struct moving_node *node,
    struct moving_asked *asked, enum failure_code code, const struct store_reply *reply) {
    struct round_answer answer = {0};
    bool wants_answer = round_effect_wants_answer(asked->question.kind);
    asked->is_under_way = false;
    if (code == FAILURE_NONE && wants_answer && !asked->is_dropped) {
        if (round_answer_read(&asked->question, reply, &answer) != FAILURE_NONE) {
            moving_complain(job, "node %d cannot read an answer to its round", node->index);
        } else {
            moving_tell_round(job, node, answer.event);
        }
        round_answer_clear(&answer);
    }
    if (asked->is_dropped) {
        free_asked(asked);
    } else if (code == FAILURE_NONE && wants_answer) {
        struct moving_asked **place = &node->asked;
        while (*place != asked) {
            place = &(*place)->next;
        }
        *place = asked->next;
        free_asked(asked);
    }
}

void moving_call_done(struct moving_job *job, struct moving_node *node,
    const struct moving_call *call, enum failure_code code, const struct store_reply *reply) {
    struct record_effects effects = {0};
    if (call->kind == MOVING_CALL_ROUND) {
        take_round_answer(job, node, call->asked, code, reply);
    } else if (call->kind == MOVING_CALL_RECORD && code == FAILURE_NONE) {
        rendezvous_record_store_take_reply(node->record, call->tag, reply, &effects);
        moving_perform_record(job, node, &effects);
    }
}

static void store_is_open(struct moving_job *job, struct moving_event *event) {
    struct moving_node *node = &job->nodes[event->node];
    moving_tell_round(job, node,
        (struct round_event){.kind = ROUND_EVENT_STORE_OPENED,
            .round = event->number,
            .opened = {node->name, 1024 + ++job->ports % 60000}});
}

void moving_perform_round(
    struct moving_job *job, struct moving_node *node, const struct round_effect *effect) {
    if (node->begun_round != effect->round) {
        stop_asking_again(job, node);
        moving_drop_asked(node, false);
    }
    node->begun_round = effect->round;
    switch ((int)effect->kind) {
    case ROUND_EFFECT_ARM_TIMER:
        moving_arm_timer(job, node, NODE_ROUND, effect->deadline);
        break;
    case ROUND_EFFECT_DISARM_TIMER:
        node->timer_tickets[NODE_ROUND]++;
        break;
    case ROUND_EFFECT_OPEN_WORKER_STORE:
        moving_add(job, moving_later(job, moving_between(job, 0.0001, 0.002)), node, store_is_open)
            ->number = effect->round;
        break;
    case ROUND_EFFECT_CANCEL_WAIT:
        moving_drop_asked(node, true);
        moving_cancel_waits(job, node);
        break;
    case ROUND_EFFECT_FORGET:
        stop_asking_again(job, node);
        moving_drop_asked(node, false);
        break;
    case ROUND_EFFECT_CLEAR:
        break;
    default:
        ask_for_round(node, effect);
        break;
    }
}
