/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/watchdog/watchdog_step.h"

struct watchdog_effect *watchdog_step_add(
    struct watchdog_effects *effects, enum watchdog_effect_kind kind) {
    struct watchdog_effect *effect = &effects->items[effects->count++];
    *effect = (struct watchdog_effect){.kind = kind};
    return effect;
}

struct watchdog_notice *watchdog_step_notify(
    struct watchdog_effects *effects, enum watchdog_notice_kind kind) {
    struct watchdog_notice *notice = &watchdog_step_add(effects, WATCHDOG_EFFECT_NOTIFY)->notice;
    notice->kind = kind;
    return notice;
}

void watchdog_step_arm_deadline(
    struct watchdog_machine *machine, struct wall_time deadline, struct watchdog_effects *effects) {
    machine->is_armed = true;
    machine->deadline = deadline;
    watchdog_step_add(effects, WATCHDOG_EFFECT_ARM_DEADLINE)->deadline = deadline;
}

static void look_up(
    const struct watchdog_search *search, int64_t pid, struct watchdog_effects *effects) {
    struct watchdog_effect *effect = watchdog_step_add(effects, WATCHDOG_EFFECT_LOOK_UP);
    effect->look_up.pid = pid;
    effect->look_up.is_asking = search->is_asking;
}

void watchdog_step_find_owner(struct watchdog_machine *machine, int64_t pid, bool is_asking,
    struct watchdog_effects *effects) {
    machine->search = (struct watchdog_search){.pid = pid, .is_asking = is_asking, .owner = -1};
    look_up(&machine->search, pid, effects);
}

bool watchdog_step_take_sight(struct watchdog_machine *machine, const struct watchdog_sight *sight,
    struct watchdog_effects *effects) {
    struct watchdog_search *search = &machine->search;
    if (search->ancestors == 0) {
        search->is_there = sight->is_there;
        search->start_time = sight->start_time;
    }
    if (sight->is_there && sight->owner < 0 && sight->parent > 1 &&
        search->ancestors < machine->settings.maximum_ancestors) {
        search->ancestors++;
        look_up(search, sight->parent, effects);
        return false;
    }
    search->owner = sight->is_there ? sight->owner : -1;
    return true;
}
