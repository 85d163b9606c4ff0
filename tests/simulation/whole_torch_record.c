/* SPDX-License-Identifier: BSD-3-Clause */
/* torchrun's node and the record: a loop of "sync, decide, change, sync" for each operation, with a
 * second's sleep when there is nothing to do. Follows _DistributedRendezvousOpExecutor.run in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py and C10dRendezvousBackend. */
#include "whole_torch.h"

#include "core/rendezvous/rendezvous_decision.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"
#include "record_tools.h"

#define ROLLBACK_SECONDS 5

static void ask_for_record(struct whole_cluster *cluster, struct whole_node *node) {
    torch_send(cluster, node, RENDEZVOUS_LANE_ASKER,
        &(struct store_request){
            .operation = STORE_GET, .key = slice_from_string(cluster->store.record_key)},
        TORCH_ASKS_FOR_RECORD);
}

static void write_record(struct whole_cluster *cluster, struct whole_node *node) {
    struct whole_torch *torch = node->torch;
    struct bytes text = {0};
    if (rendezvous_state_write_text(&torch->state, &text) != FAILURE_NONE) {
        whole_complain(cluster, "%s cannot write the record", node->name);
    }
    torch_send(cluster, node, RENDEZVOUS_LANE_ASKER,
        &(struct store_request){.operation = STORE_COMPARE_SET,
            .key = slice_from_string(cluster->store.record_key),
            .expected = torch->token.length > 0 ? bytes_slice(&torch->token)
                                                : slice_from_string(RENDEZVOUS_STATE_ABSENT),
            .value = bytes_slice(&text)},
        TORCH_WRITES_RECORD);
    bytes_clear(&text);
}

static void sync(struct whole_cluster *cluster, struct whole_node *node) {
    struct whole_torch *torch = node->torch;
    if (torch->is_dirty) {
        write_record(cluster, node);
    } else {
        ask_for_record(cluster, node);
    }
    torch->is_dirty = false;
}

void torch_begin(
    struct whole_cluster *cluster, struct whole_node *node, enum torch_operation operation) {
    node->torch->operation = operation;
    node->torch->is_dirty = false;
    node->torch->life++;
    sync(cluster, node);
}

/* _sanitize. */
static void sanitize(struct whole_cluster *cluster, struct whole_node *node) {
    const struct rendezvous_settings *settings = &cluster->settings.rendezvous;
    struct rendezvous_state *state = &node->torch->state;
    int64_t oldest = whole_wall(cluster, node).nanoseconds -
                     settings->keep_alive_interval.nanoseconds * settings->keep_alive_max_attempt;
    for (size_t i = 0; i < state->count;) {
        struct node_identity identity = state->nodes[i].identity;
        if (state->nodes[i].has_heartbeat && state->nodes[i].heartbeat.nanoseconds < oldest) {
            whole_note(cluster, node, "takes %s for dead", identity.address);
            torchrun_expels(state, settings, &identity);
        } else {
            i++;
        }
    }
}

static enum rendezvous_action decide(struct whole_cluster *cluster, struct whole_node *node) {
    struct whole_torch *torch = node->torch;
    const struct rendezvous_settings *settings = &cluster->settings.rendezvous;
    const struct rendezvous_node *self = rendezvous_state_find(&torch->state, &node->identity);
    int64_t wall = whole_wall(cluster, node).nanoseconds;
    struct rendezvous_context context = {
        .node = &node->identity,
        .state = &torch->state,
        .settings = settings,
        .is_late = cluster->now > torch->deadline,
        .is_too_late = cluster->now > torch->deadline + ROLLBACK_SECONDS * WHOLE_SECOND,
        .is_last_call_over = torch->state.has_deadline && torch->state.deadline.nanoseconds < wall,
        .is_keep_alive_due =
            self != NULL && self->has_heartbeat &&
            self->heartbeat.nanoseconds <= wall - settings->keep_alive_interval.nanoseconds,
    };
    switch (torch->operation) {
    case TORCH_EXIT:
        return rendezvous_decide_exit(&context);
    case TORCH_JOIN:
        return rendezvous_decide_join(&context);
    case TORCH_CLOSE:
        return torchrun_decides_close(&context);
    case TORCH_BEAT:
        return torchrun_decides_keep_alive(&context);
    case TORCH_LOOK:
    case TORCH_NOTHING:
        break;
    }
    return RENDEZVOUS_FINISH;
}

static void wake_up(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_torch *torch = happening->node->torch;
    if (torch->operation != TORCH_NOTHING && torch->life == happening->life) {
        sync(cluster, happening->node);
    }
}

static void sleep_a_second(struct whole_cluster *cluster, struct whole_node *node) {
    whole_schedule(cluster, cluster->now + WHOLE_SECOND, node, wake_up)->life = node->torch->life;
}

static void act(
    struct whole_cluster *cluster, struct whole_node *node, enum rendezvous_action action) {
    struct whole_torch *torch = node->torch;
    rendezvous_apply(&torch->state, &cluster->settings.rendezvous, &node->identity, action,
        whole_wall(cluster, node));
    if (action == RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST) {
        torch->deadline = cluster->now + cluster->settings.rendezvous.join_timeout.nanoseconds;
    }
    if (action == RENDEZVOUS_MARK_CLOSED) {
        cluster->closes_asked++;
    }
    torch->is_dirty = true;
    sync(cluster, node);
}

static void proceed(struct whole_cluster *cluster, struct whole_node *node) {
    enum rendezvous_action action = decide(cluster, node);
    enum torch_operation operation = node->torch->operation;
    whole_note(cluster, node, "%s", torchrun_action_name(action));
    switch (action) {
    case RENDEZVOUS_FINISH:
        node->torch->operation = TORCH_NOTHING;
        torch_finish(cluster, node, operation);
        break;
    case RENDEZVOUS_SYNC:
        sleep_a_second(cluster, node);
        break;
    case RENDEZVOUS_ERROR_CLOSED:
    case RENDEZVOUS_ERROR_TIMEOUT:
    case RENDEZVOUS_GRACEFUL_EXIT:
        torch_give_up(cluster, node);
        break;
    case RENDEZVOUS_KEEP_ALIVE:
    case RENDEZVOUS_ADD_TO_PARTICIPANTS:
    case RENDEZVOUS_ADD_TO_WAIT_LIST:
    case RENDEZVOUS_ADD_TO_REDUNDANCY_LIST:
    case RENDEZVOUS_REMOVE_FROM_PARTICIPANTS:
    case RENDEZVOUS_REMOVE_FROM_WAIT_LIST:
    case RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST:
    case RENDEZVOUS_MARK_COMPLETE:
    case RENDEZVOUS_MARK_CLOSED:
        act(cluster, node, action);
        break;
    }
}

void torch_take_record(
    struct whole_cluster *cluster, struct whole_node *node, const struct store_reply *reply) {
    struct whole_torch *torch = node->torch;
    struct rendezvous_state state = {0};
    struct text why = {0};
    bool is_absent = true;
    if (reply->blob.length > 0 &&
        rendezvous_state_read_text(reply->blob, &is_absent, &state, &why) != FAILURE_NONE) {
        whole_complain(cluster, "%s cannot read the record: %s", node->name, text_string(&why));
    }
    bytes_clear(&torch->token);
    (void)!bytes_append(&torch->token, reply->blob.data, reply->blob.length);
    rendezvous_state_clear(&torch->state);
    torch->state = state;
    text_clear(&why);
    sanitize(cluster, node);
    proceed(cluster, node);
}
