/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of a watchdog machine share: appending effects, and the search for the owner of a
 * process. */
#ifndef MUSTER_CORE_WATCHDOG_WATCHDOG_STEP_H
#define MUSTER_CORE_WATCHDOG_WATCHDOG_STEP_H

#include "core/watchdog/watchdog_machine_state.h"

/* Appends an effect, which the caller fills in. */
struct watchdog_effect *watchdog_step_add(
    struct watchdog_effects *effects, enum watchdog_effect_kind kind);
struct watchdog_notice *watchdog_step_notify(
    struct watchdog_effects *effects, enum watchdog_notice_kind kind);

void watchdog_step_arm_deadline(
    struct watchdog_machine *machine, struct wall_time deadline, struct watchdog_effects *effects);

/* Begins the search for the owner of a process. `is_asking`: the process asks for a timer. */
void watchdog_step_find_owner(struct watchdog_machine *machine, int64_t pid, bool is_asking,
    struct watchdog_effects *effects);

/* Takes an answer. Returns false when it has asked for the parent next, because a process without
 * an owner may be the child of one with an owner. Otherwise machine->search has the result. */
bool watchdog_step_take_sight(struct watchdog_machine *machine, const struct watchdog_sight *sight,
    struct watchdog_effects *effects);

#endif
