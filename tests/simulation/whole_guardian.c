/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node's guardian does while its agent stands still, as host/process/guardian and
 * agent/workers/agent_guardian do, and the rule that it is there for: no worker of an agent that
 * stands still runs beside a new world. */
#include "whole_parts.h"
#include "record_tools.h"

/* How often the agent gives its sign of life, and the guardian looks for it, in the patience. */
#define SIGNS_OF_LIFE 8
#define LONGEST_SIGN_PAUSE WHOLE_SECOND
#define LOOKS 16
#define LONGEST_LOOK_PAUSE (500 * WHOLE_MILLISECOND)

static int64_t shorter(int64_t left, int64_t right) {
    return left < right ? left : right;
}

/* Zero: there is no fence. */
static int64_t patience_of(const struct whole_cluster *cluster, const struct whole_node *node) {
    bool is_guarded = cluster->settings.kind == MEMBERSHIP_CHANGING && node->machine != NULL;
    return is_guarded && rendezvous_machine_may_be_missed(node_machine_rendezvous(node->machine))
               ? rendezvous_settings_standstill(&cluster->settings.rendezvous).nanoseconds
               : 0;
}

static void fence_closes(struct whole_cluster *cluster, struct whole_happening *happening) {
    struct whole_node *node = happening->subject;
    bool is_late = !node->is_alive || !node->is_stopped || node->stops != happening->life;
    if (is_late || !whole_has_processes(node)) {
        return;
    }
    whole_note(cluster, node, "its guardian ends its workers");
    node->is_fenced = true;
    cluster->outcome.fences++;
    whole_kill_sessions(cluster, node);
}

void whole_guardian_misses(struct whole_cluster *cluster, struct whole_node *node) {
    int64_t patience = patience_of(cluster, node);
    int64_t sign = shorter(patience / SIGNS_OF_LIFE, LONGEST_SIGN_PAUSE);
    int64_t look = shorter(patience / LOOKS, LONGEST_LOOK_PAUSE);
    const struct rendezvous_state *record = &cluster->store.record;
    node->stopped_at = cluster->now;
    node->is_stopped_in_world =
        patience > 0 && cluster->store.has_record && whole_phase(node) == AGENT_RUNNING &&
        record->round == node->world && record_has_participant(record, &node->identity);
    if (patience > 0) {
        int64_t since = cluster->now - whole_between(cluster, 0, sign);
        struct whole_happening *close = whole_schedule(
            cluster, since + patience + whole_between(cluster, 0, look), NULL, fence_closes);
        close->subject = node;
        close->life = node->stops;
    }
}

/* The workers are to run, or have run, in a world that is over for this node. */
static bool has_world(const struct whole_node *node) {
    const struct agent_machine *agent = node_machine_agent(node->machine);
    return agent->phase == AGENT_STARTING || agent->phase == AGENT_RUNNING ||
           (agent->phase == AGENT_STOPPING && agent->stop_reason == AGENT_STOP_CLEAN_UP);
}

void whole_hear_guardian(struct whole_cluster *cluster, struct whole_node *node) {
    if (!node->is_fenced) {
        return;
    }
    node->is_fenced = false;
    whole_note(cluster, node, "hears that it stood still");
    if (has_world(node)) {
        whole_give_up_connection(cluster, node);
    }
}

static void word_is_heard(struct whole_cluster *cluster, struct whole_happening *happening) {
    whole_hear_guardian(cluster, happening->node);
}

void whole_guardian_speaks(struct whole_cluster *cluster, struct whole_node *node) {
    if (node->is_fenced) {
        whole_schedule(cluster, cluster->now + whole_between(cluster, 0, WHOLE_MILLISECOND), node,
            word_is_heard);
    }
}

/* The rule. */

static bool has_killable_worker(const struct whole_node *node) {
    for (int rank = 0; rank < node->worker_count; rank++) {
        if (node->workers[rank].is_alive && !node->workers[rank].is_stuck) {
            return true;
        }
    }
    return false;
}

/* A node that stood still in its world, and lost nothing but time, is taken for lost only when its
 * workers are gone. One that others have taken out for another reason meanwhile runs on as long as
 * its guardian waits. */
void whole_check_beside(struct whole_cluster *cluster, const struct whole_node *started) {
    const struct whole_faults *faults = &cluster->settings.weather.faults;
    bool is_undisturbed = faults->link_breaks + faults->link_loses + faults->connection_resets +
                              faults->record_is_lost + faults->store_begins_anew ==
                          0;
    if (started->world != cluster->store.record.round) {
        return; /* it stood still itself, and does not know yet that its world is over */
    }
    for (int i = 0; i < cluster->node_count; i++) {
        const struct whole_node *node = cluster->nodes[i];
        if (!node->is_alive || !node->is_stopped || !node->is_stopped_in_world ||
            node->world == started->world || !has_killable_worker(node)) {
            continue;
        }
        int64_t longest =
            rendezvous_settings_standstill(&cluster->settings.rendezvous).nanoseconds +
            LONGEST_LOOK_PAUSE + WHOLE_KILL_LONGEST;
        if (is_undisturbed || cluster->now - node->stopped_at > longest) {
            whole_complain(cluster, "%s starts workers beside those of %s, which stands still",
                started->name, node->name);
        }
    }
}
