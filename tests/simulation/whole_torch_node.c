/* SPDX-License-Identifier: BSD-3-Clause */
/* A node of torchrun's kind: a heartbeat every interval and a look at the wait list every second
 * while its workers run, silent in its exit barrier. It shares no store with its workers
 * (TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1), so that its rank 0 publishes in every round. Follows
 * DynamicRendezvousHandler in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py, and
 * _assign_worker_ranks, _invoke_run and _exit_barrier in
 * torch/distributed/elastic/agent/server/api.py. */
#include "whole_torch.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* Less than others wait to join, as its read_timeout (60 s) is less than join_timeout (600 s). */
#define EXCHANGE_SECONDS 20
#define ROUND_LANE RENDEZVOUS_LANE_WATCHER
#define TORCH_LANES 2

struct whole_torch *whole_torch_new(void) {
    return memory_allocate(sizeof(struct whole_torch));
}

void whole_torch_free(struct whole_torch *torch) {
    if (torch != NULL) {
        rendezvous_state_clear(&torch->state);
        bytes_clear(&torch->token);
        free(torch);
    }
}

bool whole_torch_is_running(const struct whole_node *node) {
    return node->torch->phase == TORCH_RUNNING && node->is_start_over;
}

void torch_set_phase(struct whole_torch *torch, enum torch_phase phase) {
    torch->phase = phase;
    torch->phase_life++;
}

static void end(struct whole_cluster *cluster, struct whole_node *node, int status) {
    node->ending.status = status;
    whole_end_process(cluster, node, WHOLE_EXITS);
}

void torch_give_up(struct whole_cluster *cluster, struct whole_node *node) {
    end(cluster, node, 1);
}

/* Requests. */

void torch_send(struct whole_cluster *cluster, struct whole_node *node, enum rendezvous_lane lane,
    const struct store_request *request, enum torch_question question) {
    struct whole_torch *torch = node->torch;
    struct whole_call call = {.kind = WHOLE_CALL_TORCH};
    call.torch.question = (int)question;
    call.torch.life = lane == ROUND_LANE ? torch->phase_life : torch->life;
    whole_lane_send(cluster, &node->lanes[lane], request, DURATION_FOREVER, call);
}

static struct round_key key_of(const struct whole_torch *torch, enum round_key_kind kind) {
    bool is_group = kind == ROUND_KEY_ALL_ROLE_INFOS;
    return (struct round_key){kind, torch->round, is_group ? torch->size : torch->rank};
}

static void ask_round(struct whole_cluster *cluster, struct whole_node *node,
    struct round_effect effect, enum torch_question question) {
    struct owned_request request = {0};
    round_request_build(&effect, WHOLE_RUN_ID, &request);
    torch_send(cluster, node, ROUND_LANE, &request.request, question);
    owned_request_clear(&request);
}

static void wait_for(struct whole_cluster *cluster, struct whole_node *node,
    enum round_key_kind kind, enum torch_question question) {
    ask_round(cluster, node,
        (struct round_effect){.kind = ROUND_EFFECT_WAIT, .key = key_of(node->torch, kind)},
        question);
}

static void get(struct whole_cluster *cluster, struct whole_node *node, enum round_key_kind kind,
    enum torch_question question) {
    ask_round(cluster, node,
        (struct round_effect){.kind = ROUND_EFFECT_GET, .key = key_of(node->torch, kind)},
        question);
}

static void put(struct whole_cluster *cluster, struct whole_node *node, enum round_key_kind kind,
    const char *text) {
    ask_round(cluster, node,
        (struct round_effect){
            .kind = ROUND_EFFECT_SET, .key = key_of(node->torch, kind), .text = text},
        TORCH_TELLS);
}

/* The exchange of a round: address, role infos, ranks. */

static void exchange_times_out(struct whole_cluster *cluster, struct whole_happening *happening) {
    const struct whole_torch *torch = happening->node->torch;
    if (torch->phase == TORCH_EXCHANGING && torch->phase_life == happening->life) {
        whole_note(cluster, happening->node, "the exchange takes too long");
        end(cluster, happening->node, 1);
        whole_add_node(cluster, cluster->now + WHOLE_SECOND, false); /* in its place */
    }
}

static void publish(struct whole_cluster *cluster, struct whole_node *node) {
    char port[16];
    int number = whole_open_port(cluster, node, 0, node->torch->round);
    snprintf(port, sizeof port, "%d", number);
    put(cluster, node, ROUND_KEY_MASTER_ADDR, node->name);
    put(cluster, node, ROUND_KEY_MASTER_PORT, port);
}

static void second_passes(struct whole_cluster *cluster, struct whole_happening *happening);

static void watch(struct whole_cluster *cluster, struct whole_node *node, int64_t number) {
    struct whole_happening *next =
        whole_schedule(cluster, cluster->now + WHOLE_SECOND, node, second_passes);
    next->life = node->torch->phase_life;
    next->number = number;
}

static void begin_exchange(struct whole_cluster *cluster, struct whole_node *node) {
    struct whole_torch *torch = node->torch;
    torch->round = torch->state.round;
    torch->rank = (int)rendezvous_state_find(&torch->state, &node->identity)->rank;
    torch->size = (int)rendezvous_state_participants(&torch->state);
    torch_set_phase(torch, TORCH_EXCHANGING);
    whole_note(
        cluster, node, "round %d, rank %d of %d", (int)torch->round, torch->rank, torch->size);
    if (torch->rank == 0) {
        publish(cluster, node);
    }
    wait_for(cluster, node, ROUND_KEY_ADDRESS, TORCH_WAITS_FOR_ADDRESS);
    whole_schedule(
        cluster, cluster->now + EXCHANGE_SECONDS * WHOLE_SECOND, node, exchange_times_out)
        ->life = torch->phase_life;
    watch(cluster, node, 1);
}

static void tell_role(struct whole_cluster *cluster, struct whole_node *node) {
    ask_round(cluster, node,
        (struct round_effect){.kind = ROUND_EFFECT_SET_ROLE_INFO,
            .key = key_of(node->torch, ROUND_KEY_ROLE_INFO),
            .node = {"default", node->worker_count}},
        TORCH_TELLS);
    if (node->torch->rank == 0) {
        wait_for(cluster, node, ROUND_KEY_ALL_ROLE_INFOS, TORCH_WAITS_FOR_ROLES);
    } else {
        wait_for(cluster, node, ROUND_KEY_WORLD, TORCH_WAITS_FOR_WORLD);
    }
}

static bool read_round(struct whole_cluster *cluster, const struct whole_node *node,
    enum round_key_kind kind, const struct store_reply *reply, struct round_answer *out_answer) {
    struct round_question question = {
        ROUND_EFFECT_GET, node->torch->round, key_of(node->torch, kind)};
    if (round_answer_read(&question, reply, out_answer) != FAILURE_NONE) {
        whole_complain(cluster, "%s cannot read an answer to its round", node->name);
        return false;
    }
    return true;
}

static void assign(
    struct whole_cluster *cluster, struct whole_node *node, const struct store_reply *reply) {
    size_t count = (size_t)node->torch->size;
    struct round_answer answer;
    if (!read_round(cluster, node, ROUND_KEY_ALL_ROLE_INFOS, reply, &answer)) {
        return;
    }
    struct node_role *roles = memory_allocate(count * sizeof *roles);
    struct rank_assignment *ranks = memory_allocate(count * sizeof *ranks);
    for (size_t i = 0; i < count; i++) {
        roles[i] =
            (struct node_role){answer.role_infos[i].role, answer.role_infos[i].local_world_size};
    }
    if (rank_assignment_compute(roles, count, ranks) != FAILURE_NONE) {
        whole_complain(cluster, "%s cannot assign ranks", node->name);
    }
    ask_round(cluster, node,
        (struct round_effect){.kind = ROUND_EFFECT_SET_ASSIGNMENTS,
            .key = key_of(node->torch, ROUND_KEY_ASSIGNED_RANKS),
            .assignments = {.items = ranks, .count = count}},
        TORCH_TELLS);
    wait_for(cluster, node, ROUND_KEY_WORLD, TORCH_WAITS_FOR_WORLD);
    round_answer_clear(&answer);
    free(roles);
    free(ranks);
}

static void run(
    struct whole_cluster *cluster, struct whole_node *node, const struct store_reply *reply) {
    struct whole_torch *torch = node->torch;
    struct round_answer answer;
    if (!read_round(cluster, node, ROUND_KEY_WORLD, reply, &answer)) {
        return;
    }
    whole_check_start(cluster, node,
        &(struct node_placement){.master_address = answer.event.values.address,
            .master_port = answer.event.values.port,
            .group_rank = torch->rank,
            .group_world_size = torch->size,
            .ranks = answer.event.values.ranks,
            .round = torch->round});
    round_answer_clear(&answer);
    torch_set_phase(torch, TORCH_RUNNING);
    whole_start_workers(cluster, node);
    watch(cluster, node, 1);
}

/* While its workers run. */

static void second_passes(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->node;
    struct whole_torch *torch = node->torch;
    int64_t interval = cluster->settings.rendezvous.keep_alive_interval.nanoseconds / WHOLE_SECOND;
    if (torch->phase_life != happening->life) {
        return;
    }
    torch->is_beat_due = torch->is_beat_due || happening->number % interval == 0;
    bool has_to_look = torch->phase == TORCH_RUNNING || torch->is_beat_due;
    if (torch->operation == TORCH_NOTHING && has_to_look) {
        torch->deadline = cluster->now + cluster->settings.rendezvous.heartbeat_timeout.nanoseconds;
        torch_begin(cluster, node, torch->is_beat_due ? TORCH_BEAT : TORCH_LOOK);
        torch->is_beat_due = false;
    }
    watch(cluster, node, happening->number + 1);
}

static void join_again(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->node;
    struct whole_torch *torch = node->torch;
    if (torch->phase_life != happening->life) {
        return;
    }
    if (torch->operation != TORCH_NOTHING || whole_has_processes(node) || !node->has_told_gone) {
        whole_schedule(cluster, cluster->now + WHOLE_MILLISECOND, node, join_again)->life =
            happening->life;
        return;
    }
    torch_set_phase(torch, TORCH_JOINING);
    torch->deadline = cluster->now + cluster->settings.rendezvous.join_timeout.nanoseconds;
    torch_begin(cluster, node, TORCH_EXIT);
}

static void restart(struct whole_cluster *cluster, struct whole_node *node) {
    whole_note(cluster, node, "restarts");
    torch_set_phase(node->torch, TORCH_STOPPING);
    whole_signal_workers(cluster, node, WHOLE_TERMINATE);
    whole_schedule(cluster, cluster->now + WHOLE_MILLISECOND, node, join_again)->life =
        node->torch->phase_life;
}

/* The exit barrier, and after it. */

static void close_record(struct whole_cluster *cluster, struct whole_node *node) {
    struct whole_torch *torch = node->torch;
    torch_set_phase(torch, TORCH_CLOSING);
    torch->deadline = cluster->now + cluster->settings.rendezvous.close_timeout.nanoseconds;
    if (torch->operation == TORCH_NOTHING) {
        torch_begin(cluster, node, TORCH_CLOSE);
    }
}

static void barrier_times_out(struct whole_cluster *cluster, struct whole_happening *happening) {
    if (happening->node->torch->phase_life == happening->life) {
        close_record(cluster, happening->node);
    }
}

static void enter_barrier(struct whole_cluster *cluster, struct whole_node *node) {
    torch_set_phase(node->torch, TORCH_IN_BARRIER);
    ask_round(cluster, node,
        (struct round_effect){.kind = ROUND_EFFECT_ADD,
            .key = key_of(node->torch, ROUND_KEY_NUM_MEMBERS),
            .amount = 1},
        TORCH_COUNTS_MEMBERS);
    whole_schedule(cluster,
        cluster->now + cluster->settings.rendezvous.exit_barrier_timeout.nanoseconds, node,
        barrier_times_out)
        ->life = node->torch->phase_life;
}

static void take_members(
    struct whole_cluster *cluster, struct whole_node *node, const struct store_reply *reply) {
    if (reply->integer == node->torch->size) {
        put(cluster, node, ROUND_KEY_LAST_MEMBER, "<val_ignored>");
    }
    wait_for(cluster, node, ROUND_KEY_LAST_MEMBER, TORCH_WAITS_FOR_LAST);
}

void whole_torch_worker_exited(struct whole_cluster *cluster, struct whole_node *node) {
    bool has_failed = false;
    bool is_done = true;
    if (node->torch->phase != TORCH_RUNNING) {
        return;
    }
    for (int rank = 0; rank < node->worker_count; rank++) {
        const struct whole_worker *worker = &node->workers[rank];
        has_failed = has_failed || (!worker->is_alive && !worker->is_done);
        is_done = is_done && worker->is_done;
    }
    if (has_failed) {
        restart(cluster, node);
    } else if (is_done) {
        enter_barrier(cluster, node);
    }
}

/* What is over, and what follows. */

void torch_finish(
    struct whole_cluster *cluster, struct whole_node *node, enum torch_operation operation) {
    struct whole_torch *torch = node->torch;
    if (operation == TORCH_EXIT) {
        torch_begin(cluster, node, TORCH_JOIN);
    } else if (operation == TORCH_JOIN) {
        begin_exchange(cluster, node);
    } else if (operation == TORCH_CLOSE) {
        end(cluster, node, 0);
        return;
    } else if (operation == TORCH_LOOK && torch->phase == TORCH_RUNNING && node->is_start_over &&
               rendezvous_state_waiting(&torch->state) > 0) {
        restart(cluster, node);
    }
    if (torch->phase == TORCH_CLOSING && torch->operation == TORCH_NOTHING) {
        torch_begin(cluster, node, TORCH_CLOSE);
    }
}

static void take_round_reply(struct whole_cluster *cluster, struct whole_node *node,
    enum torch_question question, const struct store_reply *reply) {
    switch ((int)question) {
    case TORCH_WAITS_FOR_ADDRESS:
        tell_role(cluster, node);
        break;
    case TORCH_WAITS_FOR_ROLES:
        get(cluster, node, ROUND_KEY_ALL_ROLE_INFOS, TORCH_ASKS_FOR_ROLES);
        break;
    case TORCH_ASKS_FOR_ROLES:
        assign(cluster, node, reply);
        break;
    case TORCH_WAITS_FOR_WORLD:
        get(cluster, node, ROUND_KEY_WORLD, TORCH_ASKS_FOR_WORLD);
        break;
    case TORCH_ASKS_FOR_WORLD:
        run(cluster, node, reply);
        break;
    case TORCH_COUNTS_MEMBERS:
        take_members(cluster, node, reply);
        break;
    case TORCH_WAITS_FOR_LAST:
        close_record(cluster, node);
        break;
    default:
        break;
    }
}

void whole_torch_answer(struct whole_cluster *cluster, struct whole_node *node,
    const struct whole_call *call, const struct store_reply *reply) {
    enum torch_question question = (enum torch_question)call->torch.question;
    bool is_of_record = question == TORCH_ASKS_FOR_RECORD || question == TORCH_WRITES_RECORD;
    uint64_t life = is_of_record ? node->torch->life : node->torch->phase_life;
    if (call->torch.life != life) {
        return;
    }
    if (is_of_record) {
        torch_take_record(cluster, node, reply);
    } else {
        take_round_reply(cluster, node, question, reply);
    }
}

/* It does not come back. */
void whole_torch_lost(struct whole_cluster *cluster, struct whole_node *node) {
    end(cluster, node, node->torch->phase == TORCH_CLOSING ? 0 : 1);
}

/* The beginning. */

void whole_torch_opened(struct whole_cluster *cluster, struct whole_node *node) {
    struct whole_torch *torch = node->torch;
    if (node->ready_lanes < TORCH_LANES) {
        return;
    }
    torch_send(cluster, node, ROUND_LANE,
        &(struct store_request){.operation = STORE_COMPARE_SET,
            .key = slice_from_string(cluster->store.record_key),
            .value = slice_from_string(RENDEZVOUS_STATE_ABSENT)},
        TORCH_TELLS);
    torch->deadline = cluster->now + cluster->settings.rendezvous.join_timeout.nanoseconds;
    torch_begin(cluster, node, TORCH_EXIT);
}

void whole_torch_start(struct whole_cluster *cluster, struct whole_node *node) {
    int64_t deadline = cluster->now + cluster->settings.rendezvous.join_timeout.nanoseconds;
    for (int lane = 0; lane < TORCH_LANES; lane++) {
        whole_lane_open(cluster, &node->lanes[lane], deadline, (struct duration){0},
            (struct duration){0}, false);
    }
    whole_node_run(cluster, node);
}
