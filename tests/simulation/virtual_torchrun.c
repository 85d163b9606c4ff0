/* SPDX-License-Identifier: BSD-3-Clause */
#include "virtual_round.h"

#include <stdio.h>

#include "wire/round/round_exchange_store.h"

/* A line that has to wait is tried again. */

static void ask(struct job *job, enum round_effect_kind kind, struct round_key key,
    struct round_answer *out_answer) {
    key.round = job->round;
    struct round_effect effect = {.kind = kind, .key = key};
    if (kind == ROUND_EFFECT_ADD) {
        effect.amount = 1;
    }
    struct round_question question = round_question_of(&effect);
    struct owned_request request;
    round_request_build(&effect, RUN_ID, &request);
    store_effects_reset(&job->effects);
    store_table_apply(job->table, &job->torchrun, &request.request, &job->effects);
    assert_int_equal(job->effects.count, 1);
    assert_int_equal(
        round_answer_read(&question, &job->effects.items[0].reply, out_answer), FAILURE_NONE);
    owned_request_clear(&request);
}

static bool is_there(struct job *job, struct round_key key) {
    struct round_answer answered;
    ask(job, ROUND_EFFECT_CHECK, key, &answered);
    bool is_present = answered.event.is_present;
    round_answer_clear(&answered);
    return is_present;
}

/* torchrun's own requests are not answered, but their waiters are. */
static void put(struct job *job, struct round_effect effect) {
    struct owned_request request;
    effect.key.round = job->round;
    round_request_build(&effect, RUN_ID, &request);
    virtual_round_apply(job, &job->torchrun, &request.request);
    owned_request_clear(&request);
}

static void put_text(struct job *job, enum round_key_kind kind, const char *text) {
    put(job, (struct round_effect){.kind = ROUND_EFFECT_SET, .key = {.kind = kind}, .text = text});
}

static void serve(struct job *job, struct node *node) {
    char port[16];
    snprintf(port, sizeof port, "%d", job->next_port++);
    put_text(job, ROUND_KEY_MASTER_ADDR, node->identity.address);
    put_text(job, ROUND_KEY_MASTER_PORT, port);
    node->has_server = true;
}

static bool read_master(struct job *job, struct node *node) {
    struct round_answer found;
    if (!is_there(job, (struct round_key){.kind = ROUND_KEY_ADDRESS})) {
        return false;
    }
    ask(job, ROUND_EFFECT_GET, (struct round_key){.kind = ROUND_KEY_ADDRESS}, &found);
    virtual_place_set(&node->cache, found.event.values.address, found.event.values.port);
    node->has_cache = true;
    round_answer_clear(&found);
    return true;
}

/* next_rendezvous after its round is complete, and the exchange of the address. */
static bool bootstrap(struct job *job, struct node *node, bool is_first_try) {
    bool wants_server = node->rank == 0 && (!node->has_server || !job->is_sharing);
    if (job->is_sharing && node->has_cache && !(wants_server && is_first_try)) {
        return true;
    }
    if (is_first_try) {
        node->has_cache = false;
        if (wants_server) {
            serve(job, node);
        }
    }
    return read_master(job, node);
}

static bool assign(struct job *job) {
    struct round_key all = {.kind = ROUND_KEY_ALL_ROLE_INFOS, .node = job->count};
    struct round_answer found;
    struct node_role roles[NODES_MAXIMUM];
    struct rank_assignment ranks[NODES_MAXIMUM];
    if (!is_there(job, all)) {
        return false;
    }
    ask(job, ROUND_EFFECT_GET, all, &found);
    for (int i = 0; i < job->count; i++) {
        roles[i] =
            (struct node_role){found.role_infos[i].role, found.role_infos[i].local_world_size};
    }
    assert_int_equal(rank_assignment_compute(roles, (size_t)job->count, ranks), FAILURE_NONE);
    round_answer_clear(&found);
    put(job, (struct round_effect){.kind = ROUND_EFFECT_SET_ASSIGNMENTS,
                 .key = {.kind = ROUND_KEY_ASSIGNED_RANKS},
                 .assignments = {.items = ranks, .count = (size_t)job->count}});
    return true;
}

static bool learn_ranks(struct job *job, struct node *node) {
    struct round_effect effect = {.kind = ROUND_EFFECT_GET,
        .key = {.kind = ROUND_KEY_ASSIGNED_RANKS, .round = job->round, .node = node->rank}};
    struct owned_request request;
    if (!is_there(job, effect.key)) {
        return false;
    }
    struct round_question question = round_question_of(&effect);
    struct round_answer answer;
    round_request_build(&effect, RUN_ID, &request);
    store_effects_reset(&job->effects);
    store_table_apply(job->table, &job->torchrun, &request.request, &job->effects);
    assert_int_equal(
        round_answer_read(&question, &job->effects.items[0].reply, &answer), FAILURE_NONE);
    assert_true(answer.event.values.has_ranks);
    node->ranks = answer.event.values.ranks;
    round_answer_clear(&answer);
    owned_request_clear(&request);
    node->master = node->cache;
    node->stage = STAGE_JOINED;
    return true;
}

static bool finish_uniform(struct job *job, struct node *node) {
    int before = node->rank * node->workers;
    int all = job->count * node->workers;
    node->ranks = (struct rank_assignment){before, all, before, all};
    node->master = node->cache;
    node->stage = STAGE_JOINED;
    return true;
}

bool virtual_torchrun_move(struct job *job, struct node *node) {
    struct node_role role = {"default", node->workers};
    if (node->stage == STAGE_LEAVING) {
        bool may_go = is_there(job, (struct round_key){.kind = ROUND_KEY_LAST_MEMBER});
        node->stage = may_go ? STAGE_LEFT : STAGE_LEAVING;
        return may_go;
    }
    if (node->stage != STAGE_JOINING) {
        return false;
    }
    if (node->line <= 1) {
        bool is_first_try = node->line == 0;
        node->line = 1;
        if (!bootstrap(job, node, is_first_try)) {
            return is_first_try;
        }
        node->line = 2;
        return job->is_uniform ? finish_uniform(job, node) : true;
    }
    if (node->line == 2) {
        put(job, (struct round_effect){.kind = ROUND_EFFECT_SET_ROLE_INFO,
                     .key = {.kind = ROUND_KEY_ROLE_INFO, .node = node->rank},
                     .node = role});
        node->line = node->rank == 0 ? 3 : 4;
        return true;
    }
    if (node->line == 3) {
        node->line = assign(job) ? 4 : 3;
        return node->line == 4;
    }
    return learn_ranks(job, node);
}

void virtual_torchrun_enter_barrier(struct job *job) {
    struct round_key members = {.kind = ROUND_KEY_NUM_MEMBERS};
    struct round_answer counted;
    ask(job, ROUND_EFFECT_ADD, members, &counted);
    if (counted.event.count == job->count) {
        put_text(job, ROUND_KEY_LAST_MEMBER, "<val_ignored>");
    }
    round_answer_clear(&counted);
}
