/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous_losses.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous_doubt.h"

/* Told by the backend. */

static const struct gone_node *find_gone(
    const struct rendezvous_machine *machine, const struct node_identity *identity) {
    for (size_t i = 0; i < machine->gone_count; i++) {
        if (node_identity_equals(&machine->gone[i].identity, identity)) {
            return &machine->gone[i];
        }
    }
    return NULL;
}

bool rendezvous_losses_include(
    const struct rendezvous_machine *machine, const struct node_identity *identity) {
    return find_gone(machine, identity) != NULL;
}

void rendezvous_losses_note(
    struct rendezvous_machine *machine, const struct node_identity *identity, bool has_finished) {
    machine->gone = memory_reserve(
        machine->gone, &machine->gone_capacity, machine->gone_count + 1, sizeof *machine->gone);
    machine->gone[machine->gone_count++] = (struct gone_node){*identity, has_finished};
}

static void forget_gone(struct rendezvous_machine *machine) {
    size_t kept = 0;
    for (size_t i = 0; i < machine->gone_count; i++) {
        if (rendezvous_state_find(&machine->seen, &machine->gone[i].identity) != NULL) {
            machine->gone[kept++] = machine->gone[i];
        }
    }
    machine->gone_count = kept;
}

/* A node whose workers were done may go, but not in the next round, for which they must run again:
 * a round in which somebody is done is draining, and the next one is not. */
static bool has_finished(const struct rendezvous_machine *machine,
    const struct rendezvous_node *node, const struct gone_node *gone) {
    return gone != NULL && gone->had_finished && node->is_participant &&
           machine->seen.is_complete && machine->seen.is_draining;
}

/* Judged by heartbeats. */

/* torchrun's nodes send no heartbeats from their exit barrier: then silence says nothing. */
static bool may_be_in_barrier(struct rendezvous_step *step, const struct rendezvous_node *node) {
    return !node_identity_is_muster(&node->identity) && node->is_participant &&
           step->machine->seen.is_complete && rendezvous_is_somebody_done(step);
}

static bool is_silent(struct rendezvous_step *step, const struct rendezvous_node *node) {
    const struct rendezvous_machine *machine = step->machine;
    bool is_covered = machine->has_presence && node_identity_is_muster(&node->identity);
    if (is_covered || node_identity_equals(&node->identity, &machine->me)) {
        return false;
    }
    int64_t patience = machine->settings.keep_alive_interval.nanoseconds *
                       machine->settings.keep_alive_max_attempt;
    struct duration silence = heartbeat_watch_silence(&machine->heartbeats, &node->identity);
    return silence.nanoseconds > patience && !may_be_in_barrier(step, node);
}

/* Both. */

struct losses {
    struct node_identity *identities;
    size_t count;
    size_t capacity;
    const struct node_identity *first_participant; /* in the record; or NULL */
};

static void find_losses(struct rendezvous_step *step, bool with_finished, struct losses *losses) {
    const struct rendezvous_machine *machine = step->machine;
    for (size_t i = 0; i < machine->seen.count; i++) {
        const struct rendezvous_node *node = &machine->seen.nodes[i];
        const struct gone_node *gone = find_gone(machine, &node->identity);
        if ((gone == NULL && !is_silent(step, node)) ||
            (!with_finished && has_finished(machine, node, gone))) {
            continue;
        }
        losses->identities = memory_reserve(
            losses->identities, &losses->capacity, losses->count + 1, sizeof *losses->identities);
        losses->identities[losses->count++] = node->identity;
        if (node->is_participant && losses->first_participant == NULL) {
            losses->first_participant = &node->identity;
        }
    }
}

void rendezvous_losses_name(
    char *out, size_t size, const struct node_identity *identity, const char *what) {
    snprintf(out, size, "node %s (pid %lld) %s", identity->address, (long long)identity->pid, what);
}

bool rendezvous_losses_regroup(struct rendezvous_step *step, struct rendezvous_regroup how) {
    struct rendezvous_machine *machine = step->machine;
    struct losses losses = {0};
    if (how.gone == NULL) {
        find_losses(step, true, &losses);
        how.gone = losses.identities;
        how.gone_count = losses.count;
    }
    rendezvous_regroup_apply(rendezvous_draft_begin(machine), &machine->settings, &how);
    free(losses.identities);
    return rendezvous_draft_write(step, false);
}

static bool expel(struct rendezvous_step *step, const struct losses *losses) {
    struct rendezvous_machine *machine = step->machine;
    struct rendezvous_state *draft = rendezvous_draft_begin(machine);
    for (size_t i = 0; i < losses->count; i++) {
        rendezvous_state_expel(draft, &machine->settings, &losses->identities[i]);
    }
    return rendezvous_draft_write(step, false);
}

static bool remove_losses(struct rendezvous_step *step, const struct losses *losses) {
    const struct rendezvous_machine *machine = step->machine;
    if (losses->count == 0) {
        return false;
    }
    if (losses->first_participant == NULL || !rendezvous_settings_heed_losses(&machine->settings) ||
        !rendezvous_regroup_is_possible(&machine->seen)) {
        return expel(step, losses);
    }
    char reason[RENDEZVOUS_MESSAGE_SIZE];
    rendezvous_losses_name(reason, sizeof reason, losses->first_participant, "is gone");
    return rendezvous_losses_regroup(
        step, (struct rendezvous_regroup){.is_loss = true,
                  .is_refunded = rendezvous_doubt_may_be_consequence(step),
                  .reason = reason});
}

bool rendezvous_losses_take_out(struct rendezvous_step *step) {
    struct losses losses = {0};
    forget_gone(step->machine);
    find_losses(step, false, &losses);
    bool has_written = remove_losses(step, &losses);
    free(losses.identities);
    return has_written;
}
