/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of a watchdog machine that ends the processes whose timers have expired. If the settings
 * ask for it, each process is looked at first. Then it is signalled, alone or together with the
 * other processes that were looked at. A process that must not be signalled is tried again later.
 */
#ifndef MUSTER_CORE_WATCHDOG_WATCHDOG_ENDINGS_H
#define MUSTER_CORE_WATCHDOG_WATCHDOG_ENDINGS_H

#include "core/watchdog/watchdog_machine_state.h"

/* These take the events of the same names. */
void watchdog_endings_take_deadline(struct watchdog_machine *machine,
    const struct watchdog_event *event, struct watchdog_effects *effects);
void watchdog_endings_take_timer(struct watchdog_machine *machine,
    const struct watchdog_event *event, struct watchdog_effects *effects);
void watchdog_endings_take_signalled(struct watchdog_machine *machine,
    const struct watchdog_event *event, struct watchdog_effects *effects);
void watchdog_endings_take_looked_at(struct watchdog_machine *machine,
    const struct watchdog_event *event, struct watchdog_effects *effects);

/* The search for the owner of the current process is over: decides what happens to the process. */
void watchdog_endings_judge(struct watchdog_machine *machine, const struct watchdog_event *event,
    struct watchdog_effects *effects);

/* A process that could not be signalled is no longer overdue. */
void watchdog_endings_settle_refusal(struct watchdog_machine *machine, int64_t pid);

/* No process is to be ended any more, because the worker group is being stopped. */
void watchdog_endings_drop(struct watchdog_machine *machine);
/* Forgets all processes that were to be ended. */
void watchdog_endings_forget(struct watchdog_machine *machine);
/* The performer has carried out the last effects. */
void watchdog_endings_forget_told(struct watchdog_machine *machine);
/* Frees everything that the machine holds of the endings. */
void watchdog_endings_clear(struct watchdog_machine *machine);

/* See watchdog_machine_last_progress. */
struct wall_time watchdog_endings_last_progress(
    const struct watchdog_machine *machine, struct wall_time now);

#endif
