/* SPDX-License-Identifier: BSD-3-Clause */
#include "rendezvous_parts.h"

#include <stdlib.h>

#include "base/memory.h"

#define RETRY_LONGEST_MILLISECONDS 300

/* Snapshots. */

static struct cluster_snapshot *snapshot_new(const struct rendezvous_state *state) {
    struct cluster_snapshot *snapshot = memory_allocate(sizeof *snapshot);
    snapshot->references = 1;
    rendezvous_state_copy(state, &snapshot->state);
    return snapshot;
}

static struct cluster_snapshot *snapshot_share(struct cluster_snapshot *snapshot) {
    if (snapshot != NULL) {
        snapshot->references++;
    }
    return snapshot;
}

void cluster_snapshot_drop(struct cluster_snapshot *snapshot) {
    if (snapshot != NULL && --snapshot->references == 0) {
        rendezvous_state_clear(&snapshot->state);
        free(snapshot);
    }
}

/* Messages. */

static int64_t later(int64_t left, int64_t right) {
    return left > right ? left : right;
}

/* Mostly fast, sometimes slow. */
static int64_t delay(struct cluster *cluster) {
    int64_t longest =
        cluster_is_likely(cluster, 5) ? 40 * CLUSTER_MILLISECOND : CLUSTER_MILLISECOND / 2;
    return cluster_between(cluster, CLUSTER_MILLISECOND / 20, longest);
}

struct cluster_happening *cluster_send(struct cluster *cluster,
    struct cluster_connection *connection,
    void (*happen)(struct cluster *, struct cluster_happening *)) {
    connection->to_store = later(connection->to_store, cluster->now) + delay(cluster);
    struct cluster_happening *message =
        cluster_schedule(cluster, connection->to_store, CLUSTER_TO_STORE, connection->node, happen);
    message->connection = connection;
    return message;
}

static struct cluster_happening *send_to_node(struct cluster *cluster,
    struct cluster_connection *connection,
    void (*happen)(struct cluster *, struct cluster_happening *)) {
    connection->to_node = later(connection->to_node, cluster->now) + delay(cluster);
    struct cluster_happening *message =
        cluster_schedule(cluster, connection->to_node, CLUSTER_TO_NODE, connection->node, happen);
    message->connection = connection;
    return message;
}

/* The host is told by the store in its own process. */

static void node_gone_told(struct cluster *cluster, struct cluster_happening *happening) {
    cluster_tell(cluster, happening->node,
        (struct rendezvous_event){
            .kind = RENDEZVOUS_EVENT_NODE_GONE, .gone = {happening->identity, happening->flag}});
}

void cluster_close_there(struct cluster *cluster, struct cluster_connection *connection) {
    if (!connection->is_open_there) {
        return;
    }
    connection->is_open_there = false;
    struct cluster_node *host = cluster->nodes[0];
    if (!connection->is_present || !cluster->settings.has_presence || !cluster_is_live(host)) {
        return;
    }
    struct cluster_happening *told = cluster_schedule(
        cluster, cluster->now + delay(cluster), CLUSTER_AT_NODE, host, node_gone_told);
    told->identity = connection->identity;
    told->flag = connection->has_finished;
}

static void lost_here(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    happening->connection->is_open_here = false;
    if (node->connection == happening->connection) {
        node->connection = NULL;
        node->is_requesting = false;
        if (node->is_torch) {
            cluster_end_node(cluster, node, false); /* torchrun does not come back */
            return;
        }
        cluster_tell(cluster, node,
            (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                .lost = {.reason = "the store is out of reach", .is_silent = happening->flag}});
    }
}

void cluster_lose(struct cluster *cluster, struct cluster_connection *connection, bool is_silent) {
    connection->to_node = later(connection->to_node, cluster->now) + delay(cluster);
    struct cluster_happening *lost = cluster_schedule(cluster, connection->to_node,
        is_silent ? CLUSTER_AT_NODE : CLUSTER_TO_NODE, connection->node, lost_here);
    lost->connection = connection;
    lost->flag = is_silent;
}

/* Presence: who was not heard for so long is stopped, or as good as. */
static void look_at_presence(struct cluster *cluster, struct cluster_happening *happening) {
    int64_t limit = cluster->settings.rendezvous.keep_alive_interval.nanoseconds *
                    cluster->settings.rendezvous.keep_alive_max_attempt;
    struct cluster_connection *connection = cluster->connections;
    for (; connection != NULL && !cluster->nodes[0]->is_stalled; connection = connection->next) {
        if (connection->is_open_there && connection->is_present &&
            cluster->now - connection->last_heard > limit) {
            cluster_close_there(cluster, connection);
            cluster_lose(cluster, connection, false);
        }
    }
    if (cluster->is_store_up) {
        cluster_schedule(
            cluster, cluster->now + CLUSTER_SECOND, CLUSTER_ANYWHERE, NULL, happening->happen);
    }
}

void cluster_watch_presence(struct cluster *cluster) {
    cluster_schedule(
        cluster, cluster->now + CLUSTER_SECOND, CLUSTER_ANYWHERE, NULL, look_at_presence);
}

/* Connecting. */

struct cluster_connection *cluster_open(struct cluster *cluster, struct cluster_node *node) {
    struct cluster_connection *connection = memory_allocate(sizeof *connection);
    connection->next = cluster->connections;
    cluster->connections = connection;
    connection->node = node;
    connection->is_open_here = true;
    connection->is_open_there = true;
    connection->last_heard = cluster->now;
    connection->changes = cluster->changes;
    node->connection = connection;
    return connection;
}

static void connected(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    if (node->connect_life == happening->life) {
        bool has_presence = cluster->settings.has_presence;
        cluster_tell(cluster, node,
            (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED,
                .connected = {has_presence, has_presence && node->index == 0}});
    }
}

static void try_to_connect(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    if (node->connect_life != happening->life) {
        return;
    }
    if (cluster->is_store_up && !node->is_link_down) {
        struct cluster_connection *connection = cluster_open(cluster, node);
        send_to_node(cluster, connection, connected)->life = happening->life;
    } else if (cluster->now >= node->connect_deadline) {
        cluster_tell(cluster, node,
            (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                .lost = {
                    .reason = "the store cannot be reached", .is_silent = node->is_link_down}});
    } else {
        int64_t pause = cluster_between(
            cluster, CLUSTER_MILLISECOND, RETRY_LONGEST_MILLISECONDS * CLUSTER_MILLISECOND);
        int64_t time = cluster->now + pause;
        time = time < node->connect_deadline ? time : node->connect_deadline;
        cluster_schedule(cluster, time, CLUSTER_AT_NODE, node, try_to_connect)->life =
            happening->life;
    }
}

void cluster_connect(struct cluster *cluster, struct cluster_node *node, int64_t deadline) {
    node->connect_deadline = later(deadline, cluster->now);
    node->connect_life++;
    cluster_schedule(cluster, cluster->now + delay(cluster), CLUSTER_AT_NODE, node, try_to_connect)
        ->life = node->connect_life;
}

/* Requests and answers. */

static void hear(struct cluster *cluster, struct cluster_connection *connection) {
    connection->last_heard = cluster->now;
}

static void present_arrives(struct cluster *cluster, struct cluster_happening *message) {
    hear(cluster, message->connection);
    message->connection->is_present = true;
    message->connection->identity = message->identity;
    message->connection->has_finished = message->flag;
}

static void changed_arrives(struct cluster *cluster, struct cluster_happening *message) {
    if ((uint64_t)message->number > message->connection->changes) {
        message->connection->changes = (uint64_t)message->number;
        cluster_tell(
            cluster, message->node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CHANGED});
    }
}

static void beat_arrives(struct cluster *cluster, struct cluster_happening *message) {
    hear(cluster, message->connection);
    send_to_node(cluster, message->connection, changed_arrives)->number = (int64_t)cluster->changes;
}

static void write_is_told(struct cluster *cluster, struct cluster_happening *message) {
    message->node->is_requesting = false;
    cluster_tell(cluster, message->node,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN, .written.has_won = true});
}

static void tell_arrives(struct cluster *cluster, struct cluster_happening *message) {
    if (message->flag) { /* the write is done when others were told of it */
        send_to_node(cluster, message->connection, write_is_told);
    }
    cluster->changes++;
    struct cluster_connection *connection = cluster->connections;
    for (; connection != NULL; connection = connection->next) {
        bool is_lost = cluster_is_likely(cluster, cluster->settings.lost_changes);
        if (connection->is_open_there && !connection->node->is_torch && !is_lost) {
            send_to_node(cluster, connection, changed_arrives)->number = (int64_t)cluster->changes;
        }
    }
}

static void record_returns(struct cluster *cluster, struct cluster_happening *message) {
    const struct rendezvous_state *state =
        message->snapshot == NULL ? NULL : &message->snapshot->state;
    message->connection->version = message->version;
    message->node->is_requesting = false;
    if (message->node->is_torch) {
        cluster_torch_answer(cluster, message->node, state);
        return;
    }
    cluster_tell(cluster, message->node,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RECORD, .state = state});
}

static void written_returns(struct cluster *cluster, struct cluster_happening *message) {
    struct cluster_node *node = message->node;
    const struct rendezvous_state *state =
        message->snapshot == NULL ? NULL : &message->snapshot->state;
    message->connection->version = message->version;
    if (node->is_torch) {
        node->is_requesting = false;
        cluster_torch_answer(cluster, node, state);
        return;
    }
    bool has_won = message->flag;
    bool is_quiet = message->number != 0;
    if (has_won && !is_quiet) {
        cluster_send(cluster, message->connection, tell_arrives)->flag = true;
        return;
    }
    node->is_requesting = false;
    cluster_tell(cluster, node,
        (struct rendezvous_event){
            .kind = RENDEZVOUS_EVENT_WRITTEN, .written = {has_won, has_won ? NULL : state}});
}

static void fetch_arrives(struct cluster *cluster, struct cluster_happening *message) {
    struct cluster_happening *answer = send_to_node(cluster, message->connection, record_returns);
    answer->snapshot = snapshot_share(cluster->record);
    answer->version = cluster->version;
}

static void strangers_write_told(struct cluster *cluster, struct cluster_happening *happening) {
    cluster_tell(cluster, happening->node,
        (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_STRANGER_WROTE});
}

/* torchrun's nodes tell nobody; the store tells its host. */
static void tell_host_of_stranger(struct cluster *cluster, const struct cluster_node *writer) {
    struct cluster_node *host = cluster->nodes[0];
    if (writer->is_torch && cluster->settings.has_presence && cluster_is_live(host)) {
        cluster_schedule(
            cluster, cluster->now + delay(cluster), CLUSTER_AT_NODE, host, strangers_write_told);
    }
}

static void write_arrives(struct cluster *cluster, struct cluster_happening *message) {
    static const struct rendezvous_state none;
    bool has_won = message->version == cluster->version;
    if (has_won) {
        cluster_check_write(cluster, cluster->record == NULL ? &none : &cluster->record->state,
            &message->snapshot->state);
        cluster_snapshot_drop(cluster->record);
        cluster->record = snapshot_share(message->snapshot);
        cluster->version++;
        tell_host_of_stranger(cluster, message->node);
    }
    struct cluster_happening *answer = send_to_node(cluster, message->connection, written_returns);
    answer->snapshot = snapshot_share(cluster->record);
    answer->version = cluster->version;
    answer->flag = has_won;
    answer->number = message->number;
}

void cluster_ask_fetch(struct cluster *cluster, struct cluster_node *node) {
    if (node->is_requesting) {
        cluster_complain(cluster, "%s asks for two things at once", node->name);
    }
    node->is_requesting = true;
    cluster_send(cluster, node->connection, fetch_arrives);
}

void cluster_ask_write(struct cluster *cluster, struct cluster_node *node,
    const struct rendezvous_state *state, bool is_quiet) {
    if (node->is_requesting) {
        cluster_complain(cluster, "%s asks for two things at once", node->name);
    }
    node->is_requesting = true;
    struct cluster_happening *message = cluster_send(cluster, node->connection, write_arrives);
    message->snapshot = snapshot_new(state);
    message->version = node->connection->version;
    message->number = is_quiet ? 1 : 0;
}

/* The exit barrier. */

static void leave_barrier(struct cluster *cluster, struct cluster_node *node) {
    cluster_set_phase(node, CLUSTER_CLOSING);
    cluster->closes_asked++;
    if (node->is_torch) {
        cluster_torch_close(cluster, node);
    } else {
        cluster_tell(cluster, node,
            (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CLOSE_ASKED, .reason = ""});
    }
}

static void barrier_passed(struct cluster *cluster, struct cluster_happening *message) {
    if (message->node->phase == CLUSTER_DONE && message->node->round == message->number) {
        leave_barrier(cluster, message->node);
    }
}

static void barrier_times_out(struct cluster *cluster, struct cluster_happening *happening) {
    if (happening->node->run_life == happening->life) {
        leave_barrier(cluster, happening->node);
    }
}

static void finish_arrives(struct cluster *cluster, struct cluster_happening *message) {
    struct cluster_world *world = cluster_world_of(cluster, message->number);
    if (++world->finished < (int64_t)world->size) {
        return;
    }
    struct cluster_connection *connection = cluster->connections;
    for (; connection != NULL; connection = connection->next) {
        if (connection->is_open_there) {
            send_to_node(cluster, connection, barrier_passed)->number = message->number;
        }
    }
}

void cluster_enter_barrier(struct cluster *cluster, struct cluster_node *node) {
    int64_t timeout = cluster->settings.rendezvous.exit_barrier_timeout.nanoseconds;
    cluster_schedule(cluster, cluster->now + timeout, CLUSTER_AT_NODE, node, barrier_times_out)
        ->life = node->run_life;
    if (node->connection != NULL) {
        cluster_send(cluster, node->connection, finish_arrives)->number = node->round;
    }
}

static void count_returns(struct cluster *cluster, struct cluster_happening *message) {
    cluster_tell(cluster, message->node,
        (struct rendezvous_event){
            .kind = RENDEZVOUS_EVENT_FINISHED_COUNT, .finished_count = message->number});
}

static void count_arrives(struct cluster *cluster, struct cluster_happening *message) {
    send_to_node(cluster, message->connection, count_returns)->number =
        cluster_world_of(cluster, message->number)->finished;
}

/* The roll. */

static void roll_returns(struct cluster *cluster, struct cluster_happening *message) {
    struct cluster_node *node = message->node;
    if (node->phase == CLUSTER_DOUBTING && node->round == message->number) { /* else called off */
        cluster_tell(
            cluster, node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_ROLL_ANSWERED});
    }
}

static bool is_roll_complete(const struct cluster_world *world) {
    int answers = 0;
    while (answers < world->roll && world->has_answered[answers]) {
        answers++;
    }
    return world->roll > 0 && answers == world->roll;
}

static void answer_rolls(struct cluster *cluster, int64_t round) {
    struct cluster_connection *connection = cluster->connections;
    if (!is_roll_complete(cluster_world_of(cluster, round))) {
        return;
    }
    for (; connection != NULL; connection = connection->next) {
        if (connection->is_open_there && connection->awaits_roll &&
            connection->roll_round == round) {
            connection->awaits_roll = false;
            send_to_node(cluster, connection, roll_returns)->number = round;
        }
    }
}

static void call_arrives(struct cluster *cluster, struct cluster_happening *message) {
    message->connection->awaits_roll = true;
    message->connection->roll_round = message->number;
    cluster_world_of(cluster, message->number)->roll = (int)message->version;
    answer_rolls(cluster, message->number);
}

static void answer_arrives(struct cluster *cluster, struct cluster_happening *message) {
    cluster_world_of(cluster, message->number)->has_answered[message->version] = true;
    answer_rolls(cluster, message->number);
}

static void send_roll(struct cluster *cluster, struct cluster_connection *connection,
    const struct rendezvous_effect *effect) {
    bool is_call = effect->kind == RENDEZVOUS_EFFECT_CALL_ROLL;
    struct cluster_happening *message =
        cluster_send(cluster, connection, is_call ? call_arrives : answer_arrives);
    message->number = effect->roll.round;
    message->version = (uint64_t)effect->roll.number;
}

void cluster_perform(
    struct cluster *cluster, struct cluster_node *node, const struct rendezvous_effect *effect) {
    struct cluster_connection *connection = node->connection;
    if (connection == NULL) {
        cluster_complain(cluster, "%s asks the store without a connection", node->name);
        return;
    }
    if (effect->kind == RENDEZVOUS_EFFECT_PRESENT) {
        struct cluster_happening *message = cluster_send(cluster, connection, present_arrives);
        message->identity = node->identity = effect->present.identity;
        message->flag = effect->present.has_finished;
    } else if (effect->kind == RENDEZVOUS_EFFECT_BEAT) {
        cluster_send(cluster, connection, beat_arrives);
    } else if (effect->kind == RENDEZVOUS_EFFECT_FETCH) {
        cluster_ask_fetch(cluster, node);
    } else if (effect->kind == RENDEZVOUS_EFFECT_WRITE) {
        cluster_ask_write(cluster, node, effect->write.state, effect->write.is_quiet);
    } else if (effect->kind == RENDEZVOUS_EFFECT_TELL_WATCHERS) {
        cluster_send(cluster, connection, tell_arrives);
    } else if (effect->kind == RENDEZVOUS_EFFECT_CALL_ROLL ||
               effect->kind == RENDEZVOUS_EFFECT_ANSWER_ROLL) {
        send_roll(cluster, connection, effect);
    } else if (effect->kind == RENDEZVOUS_EFFECT_COUNT_FINISHED) {
        cluster_send(cluster, connection, count_arrives)->number = effect->round;
    }
}
