/* SPDX-License-Identifier: BSD-3-Clause */
/* Lets a test in another language play nodes of a rendezvous: it reads a history line by line and
 * prints, after each turn, the action a node has chosen and the record as that node then sees it.
 *
 *   settings JOIN LAST_CALL INTERVAL ATTEMPTS                   a new history begins
 *   node ADDRESS PID LOCAL_ID SKEW MINIMUM MAXIMUM              the next node, counted from 0
 *   begin NODE OPERATION DEADLINE                               exit, join, close or keep_alive
 *   turn NODE TICK                                              one pass of the operation's loop
 *
 * Time is in ticks of an eighth of a second; SKEW is how far the node's wall clock is ahead, and
 * each node has its own idea of how many they may be. Around the decisions under test stands what
 * _BackendRendezvousStateHolder of PyTorch's dynamic_rendezvous.py does: reads are cached for a
 * second, a write is conditional on what was read, and nodes with an old heartbeat are taken out of
 * what this node sees. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rendezvous/rendezvous_decision.h"
#include "../record_tools.h"

#define NODES_MAXIMUM 8
#define LINE_SIZE 512
#define TICK INT64_C(125000000)
#define TICKS_PER_SECOND 8

enum operation { OPERATION_EXIT, OPERATION_JOIN, OPERATION_CLOSE, OPERATION_KEEP_ALIVE };

static const char *const operation_names[] = {"exit", "join", "close", "keep_alive"};

static enum rendezvous_action (*const deciders[])(const struct rendezvous_context *context) = {
    rendezvous_decide_exit,
    rendezvous_decide_join,
    torchrun_decides_close,
    torchrun_decides_keep_alive,
};

struct player {
    struct node_identity identity;
    struct rendezvous_settings settings;
    int64_t skew;
    enum operation operation;
    int64_t deadline;
    struct rendezvous_state seen;
    int64_t version; /* of the shared record, when it was read */
    int64_t last_sync;
    bool has_synced;
    bool is_dirty;
};

struct world {
    struct rendezvous_settings settings;
    struct rendezvous_state shared;
    int64_t version;
    struct player players[NODES_MAXIMUM];
    size_t count;
};

static void fail(const char *problem, const char *line) {
    fprintf(stderr, "rendezvous_probe: %s: %s\n", problem, line);
    exit(1);
}

static void clear_world(struct world *world) {
    rendezvous_state_clear(&world->shared);
    for (size_t i = 0; i < world->count; i++) {
        rendezvous_state_clear(&world->players[i].seen);
    }
    *world = (struct world){0};
}

static struct player *player_at(struct world *world, size_t index, const char *line) {
    if (index >= world->count) {
        fail("no such node", line);
    }
    return &world->players[index];
}

/* Reading and writing. */

static const char *sync_with_shared(struct world *world, struct player *player, int64_t now) {
    const char *outcome = "read";
    if (player->is_dirty) {
        bool has_won = player->version == world->version;
        if (has_won) {
            rendezvous_state_copy(&player->seen, &world->shared);
            world->version++;
        }
        outcome = has_won ? "won" : "lost";
    } else if (player->has_synced && player->last_sync >= now - TICKS_PER_SECOND) {
        return "cached";
    }
    rendezvous_state_copy(&world->shared, &player->seen);
    player->version = world->version;
    player->last_sync = now;
    player->has_synced = true;
    player->is_dirty = false;
    return outcome;
}

static size_t expel_the_dead(struct player *player, int64_t wall_now) {
    const struct rendezvous_settings *settings = &player->settings;
    int64_t patience = settings->keep_alive_interval.nanoseconds * settings->keep_alive_max_attempt;
    size_t expelled = 0;
    for (size_t i = player->seen.count; i-- > 0;) {
        const struct rendezvous_node *node = &player->seen.nodes[i];
        if (node->has_heartbeat && node->heartbeat.nanoseconds < wall_now - patience) {
            torchrun_expels(&player->seen, settings, &node->identity);
            expelled++;
        }
    }
    return expelled;
}

/* One pass of the loop of _DistributedRendezvousOpExecutor. */

static enum rendezvous_action decide(const struct player *player, int64_t now, int64_t wall_now) {
    const struct rendezvous_node *entry = rendezvous_state_find(&player->seen, &player->identity);
    int64_t due = wall_now - player->settings.keep_alive_interval.nanoseconds;
    struct rendezvous_context context = {
        .node = &player->identity,
        .state = &player->seen,
        .settings = &player->settings,
        .is_late = now > player->deadline,
        .is_too_late = now > player->deadline + 5 * TICKS_PER_SECOND,
        .is_last_call_over =
            !player->seen.has_deadline || player->seen.deadline.nanoseconds < wall_now,
        .is_keep_alive_due =
            entry != NULL && entry->has_heartbeat && entry->heartbeat.nanoseconds <= due,
    };
    return deciders[player->operation](&context);
}

static void carry_out(
    struct player *player, enum rendezvous_action action, int64_t now, int64_t wall_now) {
    rendezvous_apply(
        &player->seen, &player->settings, &player->identity, action, (struct wall_time){wall_now});
    player->is_dirty = action <= RENDEZVOUS_MARK_CLOSED;
    if (action == RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST) {
        player->deadline = now + player->settings.join_timeout.nanoseconds / TICK;
    }
}

/* Every map and list of the record in torchrun's order, whatever order they came in. */

static int compare_nodes(const void *left, const void *right) {
    const struct rendezvous_node *left_node = left;
    const struct rendezvous_node *right_node = right;
    return node_identity_compare(&left_node->identity, &right_node->identity);
}

static void print_node(const struct rendezvous_node *node) {
    struct text text = {0};
    node_identity_describe(&node->identity, &text);
    printf(" %s", text_string(&text));
    text_clear(&text);
}

static void print_nodes(const struct rendezvous_state *record) {
    for (size_t i = 0; i < record->count; i++) {
        const struct rendezvous_node *node = &record->nodes[i];
        print_node(node);
        if (node->is_participant) {
            printf(" rank=%" PRId64, node->rank);
        }
        printf("%s%s", node->is_waiting ? " waits" : "", node->is_redundant ? " spare" : "");
        if (node->has_heartbeat) {
            printf(" beat=%" PRId64, node->heartbeat.nanoseconds / TICK);
        }
    }
}

static void print_record(const struct rendezvous_state *record) {
    printf("round=%" PRId64 " complete=%d closed=%d", record->round, record->is_complete,
        record->is_closed);
    if (record->has_deadline) {
        printf(" deadline=%" PRId64, record->deadline.nanoseconds / TICK);
    }
    struct rendezvous_state sorted = {0};
    rendezvous_state_copy(record, &sorted);
    if (sorted.count > 0) {
        qsort(sorted.nodes, sorted.count, sizeof *sorted.nodes, compare_nodes);
    }
    print_nodes(&sorted);
    rendezvous_state_clear(&sorted);
    putchar('\n');
}

/* Lines. */

static void read_settings(struct world *world, const char *line) {
    int64_t join, last_call, interval;
    clear_world(world);
    rendezvous_settings_init(&world->settings);
    struct rendezvous_settings *settings = &world->settings;
    if (sscanf(line, "settings %" SCNd64 " %" SCNd64 " %" SCNd64 " %d", &join, &last_call,
            &interval, &settings->keep_alive_max_attempt) != 4) {
        fail("not settings", line);
    }
    settings->join_timeout.nanoseconds = join * TICK;
    settings->last_call_timeout.nanoseconds = last_call * TICK;
    settings->keep_alive_interval.nanoseconds = interval * TICK;
}

static void read_node(struct world *world, const char *line) {
    struct player player = {.settings = world->settings};
    struct node_identity *identity = &player.identity;
    if (world->count == NODES_MAXIMUM ||
        sscanf(line, "node %255s %" SCNd64 " %" SCNd64 " %" SCNd64 " %d %d", identity->address,
            &identity->pid, &identity->local_id, &player.skew, &player.settings.minimum_nodes,
            &player.settings.maximum_nodes) != 6) {
        fail("not a node", line);
    }
    world->players[world->count++] = player;
}

static void read_begin(struct world *world, const char *line) {
    size_t index, operation = 0;
    char name[16];
    int64_t deadline;
    if (sscanf(line, "begin %zu %15s %" SCNd64, &index, name, &deadline) != 3) {
        fail("not a beginning", line);
    }
    while (strcmp(operation_names[operation], name) != 0) {
        if (++operation == sizeof operation_names / sizeof *operation_names) {
            fail("no such operation", line);
        }
    }
    struct player *player = player_at(world, index, line);
    player->operation = (enum operation)operation;
    player->deadline = deadline;
}

static void read_turn(struct world *world, const char *line) {
    size_t index;
    int64_t now;
    if (sscanf(line, "turn %zu %" SCNd64, &index, &now) != 2) {
        fail("not a turn", line);
    }
    struct player *player = player_at(world, index, line);
    int64_t wall_now = (now + player->skew) * TICK;
    const char *outcome = sync_with_shared(world, player, now);
    size_t expelled = strcmp(outcome, "cached") == 0 ? 0 : expel_the_dead(player, wall_now);
    enum rendezvous_action action = decide(player, now, wall_now);
    carry_out(player, action, now, wall_now);
    printf("%s expelled=%zu %s ", outcome, expelled, torchrun_action_name(action));
    print_record(&player->seen);
}

int main(void) {
    static struct world world;
    char line[LINE_SIZE];
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (strncmp(line, "settings ", 9) == 0) {
            read_settings(&world, line);
        } else if (strncmp(line, "node ", 5) == 0) {
            read_node(&world, line);
        } else if (strncmp(line, "begin ", 6) == 0) {
            read_begin(&world, line);
        } else {
            read_turn(&world, line);
        }
    }
    clear_world(&world);
    return 0;
}
