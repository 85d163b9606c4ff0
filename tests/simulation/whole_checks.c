/* SPDX-License-Identifier: BSD-3-Clause */
/* What must hold whatever befalls the nodes. */
#include "whole_parts.h"
#include "record_tools.h"

/* A node that can hear may run in a world that is over no longer than it takes to find out: as
 * long as silence is borne, and some more. */
#define BEHIND_SECONDS 30
#define MENDING_SECONDS 5
#define DOUBT_SECONDS 60
#define FORGETFUL_SECONDS 30
/* From a node's end until its process goes: for its last words, and for the others' where it hosts
 * the store. */
#define SETTLING_SECONDS 70

static double seconds_since(const struct whole_cluster *cluster, int64_t time) {
    return duration_seconds((struct duration){cluster->now - time});
}

static void keep_longest(double *longest, double seconds) {
    *longest = seconds > *longest ? seconds : *longest;
}

/* The record. */

static void check_members(struct whole_cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    bool is_same_round = before->is_complete && after->is_complete && before->round == after->round;
    for (size_t i = 0; i < after->count; i++) {
        const struct rendezvous_node *node = &after->nodes[i];
        if (node->is_participant && (node->is_waiting || node->is_redundant)) {
            whole_complain(cluster, "%s takes part and waits", node->identity.address);
        }
        if (!is_same_round || !node->is_participant) {
            continue;
        }
        const struct rendezvous_node *old = rendezvous_state_find(before, &node->identity);
        if (old == NULL || !old->is_participant || old->rank != node->rank) {
            whole_complain(cluster, "%s came into a complete round", node->identity.address);
        }
    }
}

static void check_new_round(struct whole_cluster *cluster, const struct rendezvous_state *after) {
    size_t count = rendezvous_state_participants(after);
    const struct rendezvous_settings *settings = &cluster->settings.rendezvous;
    if (count < (size_t)settings->minimum_nodes || count > (size_t)settings->maximum_nodes) {
        whole_complain(
            cluster, "round %d is complete with %d nodes", (int)after->round, (int)count);
    }
    if (!rendezvous_state_is_whole(after)) {
        whole_complain(cluster, "ranks of round %d have gaps", (int)after->round);
    }
    if (cluster->outcome.first_world == 0) {
        cluster->outcome.first_world = seconds_since(cluster, 0);
    }
}

/* Who must now be told that its round is over, who wanted just that, and who is out that had gone.
 */
static void watch_promptness(struct whole_cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    if (after->round == before->round && after->count == before->count) {
        return;
    }
    for (int i = 0; i < cluster->node_count; i++) {
        struct whole_node *node = cluster->nodes[i];
        bool is_inside = whole_is_live(node) && !node->is_torch && node->world >= 0 &&
                         node->world != node->told_over &&
                         (whole_phase(node) == AGENT_RUNNING || node->is_in_barrier);
        if (is_inside && node->over_since < 0 && whole_is_over(after, node->world)) {
            node->over_since = cluster->now;
        }
        if (node->asked_at >= 0 && whole_is_over(after, node->world)) {
            keep_longest(&cluster->outcome.longest_restart, seconds_since(cluster, node->asked_at));
            node->asked_at = -1;
        }
        if (node->gone_at >= 0 && !record_has_participant(after, &node->identity)) {
            if (record_has_participant(before, &node->identity)) {
                keep_longest(&cluster->outcome.longest_loss, seconds_since(cluster, node->gone_at));
            }
            node->gone_at = -1;
        }
    }
}

/* Done is done: whoever comes now, and however silent a node of torchrun's is in the exit barrier.
 */
static void check_finishing(struct whole_cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    const struct whole_settings *settings = &cluster->settings;
    bool is_torchrun_calm = settings->torch_nodes == 0 || settings->fault_count == 0;
    bool is_in_peace = cluster->finishing_at >= 0 && !settings->finishes_in_storm &&
                       is_torchrun_calm &&
                       settings->rendezvous.on_node_loss != RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    if (is_in_peace && before->is_draining && after->round != before->round) {
        whole_complain(cluster, "a round begins though the workers are done");
    }
}

static void check_closing(struct whole_cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    if (!before->is_closed && after->is_closed) {
        if (!cluster->is_job_over) {
            cluster->is_job_over = true;
            cluster->job_over_at = cluster->now;
        }
        if (cluster->closes_asked == 0) {
            whole_complain(cluster, "somebody closed the record unasked");
        }
    }
}

static void check_restarts(struct whole_cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    int least =
        before->is_charged && !after->is_charged && after->round == before->round + 1 ? -1 : 0;
    bool is_mixed = rendezvous_state_has_foreign_participant(before) ||
                    rendezvous_state_has_foreign_participant(after);
    if (after->restarts < before->restarts + least || after->restarts > before->restarts + 1) {
        whole_complain(
            cluster, "restarts go from %d to %d", (int)before->restarts, (int)after->restarts);
    }
    if (after->restarts != before->restarts && after->round == before->round && !is_mixed) {
        whole_complain(cluster, "a restart is charged without a new round");
    }
}

static void check_order(struct whole_cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    if (after->round < before->round) {
        whole_complain(cluster, "the round goes back");
    }
    if (before->is_closed && (!after->is_closed || after->round != before->round)) {
        whole_complain(cluster, "a closed record goes on");
    }
}

/* A record that was lost may be begun anew by a node that knows of none, or be written again by one
 * that knows of an old one, until the others are heard. */
static bool is_forgetful(const struct whole_cluster *cluster) {
    int64_t forgotten_at = cluster->store.forgotten_at;
    return forgotten_at >= 0 && seconds_since(cluster, forgotten_at) < FORGETFUL_SECONDS;
}

void whole_check_write(struct whole_cluster *cluster, const struct rendezvous_state *before,
    const struct rendezvous_state *after) {
    if (whole_notes(cluster, NULL)) {
        struct text line = {0};
        rendezvous_state_describe(after, &line);
        whole_note(cluster, NULL, "record: %s", text_string(&line));
        text_clear(&line);
    }
    watch_promptness(cluster, before, after);
    check_closing(cluster, before, after);
    if (!is_forgetful(cluster)) {
        check_finishing(cluster, before, after);
        check_restarts(cluster, before, after);
        check_members(cluster, before, after);
        check_order(cluster, before, after);
    }
    if (after->is_complete && (!before->is_complete || after->round != before->round)) {
        check_new_round(cluster, after);
    }
}

/* What machines want, and what they are told. */

/* Only a storm makes nodes give up; what it left behind may need a moment to be mended. A node of
 * torchrun's that went into its exit barrier when the others left the round is lost to them. Where
 * losses are not heeded, no round follows once some workers are done, so those who wait give up. */
static void check_failure(struct whole_cluster *cluster, const struct whole_node *node) {
    bool is_heeded = rendezvous_settings_heed_losses(&cluster->settings.rendezvous);
    bool is_excused = cluster->is_finishing && (cluster->settings.torch_nodes > 0 || !is_heeded);
    cluster->may_give_up = cluster->may_give_up || (cluster->is_finishing && !is_heeded);
    if (cluster->settings.is_storm && !is_excused && !cluster->is_storm && !cluster->is_job_over &&
        seconds_since(cluster, cluster->storm_over_at) > MENDING_SECONDS) {
        whole_complain(cluster, "%s has failed in peace", node->name);
    }
}

static void check_doubt(struct whole_cluster *cluster, struct whole_node *node) {
    if (node->doubts_since < 0) {
        whole_complain(cluster, "%s is told that no failure stands", node->name);
    }
    keep_longest(&cluster->outcome.longest_doubt, seconds_since(cluster, node->doubts_since));
    node->doubts_since = -1;
}

static void check_rendezvous(struct whole_cluster *cluster, struct whole_node *node,
    const struct rendezvous_effect *effect) {
    bool is_end = effect->kind == RENDEZVOUS_EFFECT_CLOSED ||
                  effect->kind == RENDEZVOUS_EFFECT_FAILED ||
                  effect->kind == RENDEZVOUS_EFFECT_SETTLED;
    bool is_deed = effect->kind == RENDEZVOUS_EFFECT_WRITE ||
                   effect->kind == RENDEZVOUS_EFFECT_WORLD ||
                   effect->kind == RENDEZVOUS_EFFECT_ROUND_OVER;
    if (is_deed && node->is_part_over) {
        whole_complain(cluster, "%s goes on after its part was over", node->name);
    }
    if (effect->kind == RENDEZVOUS_EFFECT_ROUND_OVER) {
        if (node->over_since >= 0) {
            keep_longest(&cluster->outcome.longest_news, seconds_since(cluster, node->over_since));
        }
        node->over_since = node->doubts_since = -1;
        node->told_over = node->world;
    } else if (effect->kind == RENDEZVOUS_EFFECT_FAILURE_STANDS) {
        check_doubt(cluster, node);
        cluster->closes_asked++;
    } else if (effect->kind == RENDEZVOUS_EFFECT_FAILED) {
        check_failure(cluster, node);
    } else if (effect->kind == RENDEZVOUS_EFFECT_CLOSED && !cluster->is_job_over) {
        whole_complain(cluster, "%s is told that the record is closed", node->name);
    }
    node->is_part_over = node->is_part_over || is_end;
}

/* Where losses are not heeded, a node that is lost before it has told the others what they need is
 * waited for, and they give up, as among torchrun's. Somebody starts others in their place. */
static void check_round(struct whole_cluster *cluster, const struct whole_node *node,
    const struct round_effect *effect) {
    bool is_heeded = cluster->settings.rendezvous.on_node_loss != RENDEZVOUS_ON_NODE_LOSS_TORCHRUN;
    if (effect->kind != ROUND_EFFECT_JOIN_FAILED || cluster->settings.kind != MEMBERSHIP_CHANGING) {
        return;
    }
    if (is_heeded && cluster->settings.torch_nodes == 0) {
        whole_complain(cluster, "%s: %s", node->name, effect->reason);
    } else if (cluster->is_finishing) {
        cluster->may_give_up = true;
    } else if (!node->is_host && !cluster->is_job_over) {
        whole_add_node(cluster, cluster->now + WHOLE_SECOND, false);
    }
}

static void check_agent(
    struct whole_cluster *cluster, struct whole_node *node, const struct agent_effect *effect) {
    if (node->is_finished) {
        whole_complain(cluster, "the agent of %s wants more after its end", node->name);
    }
    switch ((int)effect->kind) {
    case AGENT_EFFECT_JOIN:
        node->is_in_barrier = false;
        if (whole_has_processes(node)) {
            whole_complain(cluster, "%s joins while its workers run", node->name);
        }
        break;
    case AGENT_EFFECT_ENTER_BARRIER:
        node->is_in_barrier = true;
        break;
    case AGENT_EFFECT_ANNOUNCE_RESTART:
        node->asked_at = cluster->store.record.round == node->world ? cluster->now : -1;
        node->over_since = -1;
        node->told_over = node->world;
        break;
    case AGENT_EFFECT_DOUBT_FAILURE:
        node->doubts_since = cluster->now;
        break;
    case AGENT_EFFECT_ANNOUNCE_FAILURE:
    case AGENT_EFFECT_ANNOUNCE_LEAVE:
        node->asked_at = node->over_since = node->doubts_since = -1;
        if (cluster->failure_announced_at < 0 && node->world >= 0) {
            cluster->failure_announced_at = cluster->now;
        }
        break;
    default:
        break;
    }
}

static void check_membership(struct whole_cluster *cluster, struct whole_node *node,
    const struct membership_effect *effect) {
    if (effect->kind == MEMBERSHIP_EFFECT_TELL_RENDEZVOUS &&
        effect->rendezvous.kind == RENDEZVOUS_EVENT_CLOSE_ASKED) {
        cluster->closes_asked++;
    }
    if (effect->kind == MEMBERSHIP_EFFECT_TELL_AGENT &&
        effect->agent.kind == AGENT_EVENT_JOB_OVER) {
        node->is_unneeded = true;
    }
}

void whole_check_effect(
    struct whole_cluster *cluster, struct whole_node *node, const struct node_effect *effect) {
    if (effect->part == NODE_AGENT) {
        check_agent(cluster, node, &effect->agent);
    } else if (effect->part == NODE_RENDEZVOUS) {
        check_rendezvous(cluster, node, &effect->rendezvous);
    } else if (effect->part == NODE_ROUND) {
        check_round(cluster, node, &effect->round);
    } else if (effect->part == NODE_MEMBERSHIP) {
        check_membership(cluster, node, &effect->membership);
    }
}

/* SIGKILL comes the shutdown timeout after the first stop signal, unless a user cannot wait; looks
 * and stops of the agent make it later. */
void whole_check_kill(struct whole_cluster *cluster, const struct whole_node *node) {
    int64_t timeout = duration_from_seconds(cluster->settings.shutdown_timeout).nanoseconds;
    int64_t passed = cluster->now - node->stop_asked_at;
    bool is_free = node->was_stopped || (cluster->settings.seed % 3 == 0);
    if (node->stop_asked_at < 0) {
        whole_complain(cluster, "%s kills workers that it has not asked to end", node->name);
    } else if (passed < timeout && node->ending.user_signals < 2) {
        whole_complain(cluster, "%s kills its workers too early", node->name);
    } else if (passed > timeout + WHOLE_MILLISECOND && !is_free) {
        whole_complain(cluster, "%s kills its workers too late", node->name);
    }
}

/* Once a second. */

/* A host of the store stays for those who still work. */
static bool is_kept_by_others(const struct whole_cluster *cluster, const struct whole_node *node) {
    bool is_kept = false;
    for (int i = 0; i < cluster->node_count && node->is_host; i++) {
        const struct whole_node *other = cluster->nodes[i];
        is_kept = is_kept || (other != node && other->is_alive && !other->is_finished);
    }
    return is_kept;
}

static void check_patience(struct whole_cluster *cluster, const struct whole_node *node) {
    bool is_free =
        node->is_alive && !node->is_stopped && !node->is_cut_to_node && !node->is_cut_to_store;
    if (is_free && node->doubts_since >= 0 && !node->is_finished &&
        seconds_since(cluster, node->doubts_since) > DOUBT_SECONDS) {
        whole_complain(cluster, "%s doubts for ever", node->name);
    }
    if (is_free && node->is_finished && !is_kept_by_others(cluster, node) &&
        seconds_since(cluster, node->finished_at) > SETTLING_SECONDS) {
        whole_complain(cluster, "%s has finished, and does not end", node->name);
    }
}

static void check_behind(struct whole_cluster *cluster, struct whole_node *node) {
    bool is_behind = whole_is_live(node) && !node->is_torch && !node->is_stopped &&
                     whole_phase(node) == AGENT_RUNNING && !cluster->is_job_over &&
                     node->world != cluster->store.record.round;
    if (!is_behind) {
        node->behind_since = -1;
    } else if (node->behind_since < 0) {
        node->behind_since = cluster->now;
    } else if (seconds_since(cluster, node->behind_since) > BEHIND_SECONDS) {
        whole_complain(cluster, "%s still runs in round %d, and the record has round %d",
            node->name, (int)node->world, (int)cluster->store.record.round);
    }
}

/* While its host is stopped the store tells nobody anything. */
void whole_check_progress(struct whole_cluster *cluster) {
    for (int i = 0; !whole_store_is_stopped(cluster) && i < cluster->node_count; i++) {
        check_patience(cluster, cluster->nodes[i]);
        whole_check_standby(cluster, cluster->nodes[i]);
        if (cluster->settings.kind == MEMBERSHIP_CHANGING) {
            check_behind(cluster, cluster->nodes[i]);
        }
    }
}

/* How nodes end, see docs/several-nodes.md. */

static bool are_workers_done(const struct whole_node *node) {
    for (int rank = 0; rank < node->worker_count; rank++) {
        if (!node->workers[rank].is_done) {
            return false;
        }
    }
    return node->ending.starts > 0;
}

void whole_check_node_end(struct whole_cluster *cluster, struct whole_node *node) {
    enum agent_outcome_kind kind = node->outcome.kind;
    const struct worker_group *group = &node_machine_agent(node->machine)->workers;
    bool has_failure = worker_group_has_failure(group);
    node->ending.has_failure = has_failure;
    if (!node->is_finished) {
        whole_complain(cluster, "%s ends before its agent", node->name);
        return;
    }
    if (has_failure) {
        node->ending.is_stuck =
            group->failures[worker_group_root_cause(group)].stuck.nanoseconds > 0;
    }
    if (kind == AGENT_OUTCOME_SUCCEEDED && !are_workers_done(node) && !node->is_unneeded) {
        whole_complain(cluster, "%s succeeds without having done its work", node->name);
    }
    if (kind != AGENT_OUTCOME_SUCCEEDED && node->is_in_barrier && node->ending.user_signals == 0) {
        whole_complain(cluster, "%s has done its work, and fails", node->name);
    }
    if (kind == AGENT_OUTCOME_FAILED && !has_failure && !node->outcome.has_abandoned_processes) {
        whole_complain(cluster, "%s fails without a failure", node->name);
    }
    if (kind == AGENT_OUTCOME_SIGNALLED && node->ending.user_signals == 0) {
        whole_complain(cluster, "%s obeys a signal that nobody sent", node->name);
    }
}

void whole_check_end(struct whole_cluster *cluster) {
    const struct whole_demands *demands = &cluster->settings.demands;
    double last_work = 0;
    for (int i = 0; i < cluster->node_count; i++) {
        keep_longest(&last_work, cluster->nodes[i]->ending.work_done_at);
    }
    for (int i = 0; i < cluster->node_count; i++) {
        const struct whole_ending *ending = &cluster->nodes[i]->ending;
        if (demands->success_everywhere && ending->status != 0) {
            whole_complain(cluster, "%s ends with %d", cluster->nodes[i]->name, ending->status);
        }
        if (demands->soon_after_work > 0 &&
            ending->ended_at > last_work + demands->soon_after_work) {
            whole_complain(cluster, "%s ends %.3f s after the last worker", cluster->nodes[i]->name,
                ending->ended_at - last_work);
        }
    }
}
