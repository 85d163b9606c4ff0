/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/watchdog/watchdog_endings.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/watchdog/watchdog_step.h"

static const struct instant never = {INT64_MAX};

static void free_ending(struct watchdog_ending *ending) {
    if (ending != NULL) {
        watchdog_expiry_clear(&ending->expiry);
        free(ending);
    }
}

static void free_list(struct watchdog_endings *endings) {
    while (endings->list != NULL) {
        struct watchdog_ending *ending = endings->list;
        endings->list = ending->next;
        free_ending(ending);
    }
}

void watchdog_endings_settle_refusal(struct watchdog_machine *machine, int64_t pid) {
    if (machine->endings.refusal.pid == pid) {
        machine->endings.refusal.pid = 0;
    }
}

static void set_timer(struct watchdog_machine *machine, struct watchdog_effects *out) {
    struct instant when = machine->endings.joint_due;
    for (const struct watchdog_ending *each = machine->endings.list; each != NULL;
         each = each->next) {
        if (each->is_tried && instant_is_before(each->retry_at, when)) {
            when = each->retry_at;
        }
    }
    if (when.nanoseconds == never.nanoseconds) {
        watchdog_step_add(out, WATCHDOG_EFFECT_DISARM_TIMER);
    } else {
        watchdog_step_add(out, WATCHDOG_EFFECT_ARM_TIMER)->when = when;
    }
}

static void expire_next(struct watchdog_machine *machine, struct watchdog_effects *out) {
    struct watchdog_expiry expiry;
    struct wall_time next;
    if (machine->is_serving &&
        watchdog_take_expired(machine->timers, machine->endings.expiring, &expiry)) {
        machine->endings.current = memory_allocate(sizeof *machine->endings.current);
        machine->endings.current->expiry = expiry;
        watchdog_step_find_owner(machine, expiry.pid, false, out);
        return;
    }
    machine->task = WATCHDOG_TASK_NONE;
    machine->is_armed = false;
    if (machine->is_serving && watchdog_next_deadline(machine->timers, &next)) {
        watchdog_step_arm_deadline(machine, next, out);
    }
}

/* Takes an ending that is due out of the list; NULL when there is none. */
static struct watchdog_ending *take_due(struct watchdog_machine *machine) {
    struct watchdog_ending **link = &machine->endings.list;
    while (*link != NULL && !(*link)->is_due) {
        link = &(*link)->next;
    }
    struct watchdog_ending *due = *link;
    if (due != NULL) {
        *link = due->next;
        due->next = NULL;
    }
    return due;
}

static void finish_endings(struct watchdog_machine *machine, struct watchdog_effects *out) {
    machine->task = WATCHDOG_TASK_NONE;
    if (machine->endings.is_joint) {
        machine->endings.is_joint = false;
        machine->endings.joint = (struct joint_ending){0};
        if (machine->endings.is_agent_to_end) {
            watchdog_step_notify(out, WATCHDOG_NOTICE_AGENT_TO_END);
        }
        machine->endings.is_agent_to_end = false;
        watchdog_step_notify(out, WATCHDOG_NOTICE_LOOKS_OVER);
    }
    set_timer(machine, out);
}

static void end_next(struct watchdog_machine *machine, struct watchdog_effects *out) {
    machine->endings.current = take_due(machine);
    while (machine->endings.current != NULL && machine->endings.current->is_dropped) {
        free_ending(machine->endings.current);
        machine->endings.current = take_due(machine);
    }
    if (machine->endings.current != NULL) {
        watchdog_step_find_owner(machine, machine->endings.current->expiry.pid, false, out);
    } else {
        finish_endings(machine, out);
    }
}

static void go_on(struct watchdog_machine *machine, struct watchdog_effects *out) {
    machine->endings.current = NULL;
    if (machine->task == WATCHDOG_TASK_EXPIRE) {
        expire_next(machine, out);
    } else {
        end_next(machine, out);
    }
}

/* The current process needs nothing more. */
static void settle(struct watchdog_machine *machine, struct watchdog_effects *out) {
    if (machine->task == WATCHDOG_TASK_EXPIRE) {
        watchdog_endings_settle_refusal(machine, machine->endings.current->expiry.pid);
    }
    machine->endings.told = machine->endings.current;
    go_on(machine, out);
}

static void try_again_later(
    struct watchdog_machine *machine, struct instant now, struct watchdog_effects *out) {
    struct watchdog_ending *ending = machine->endings.current;
    struct duration wait = duration_from_milliseconds(WATCHDOG_RETRY_MILLISECONDS);
    watchdog_step_add(out, WATCHDOG_EFFECT_TELL_UNTOUCHED)->expiry = &ending->expiry;
    if (machine->task == WATCHDOG_TASK_EXPIRE) {
        struct wall_time later = {machine->endings.expiring.nanoseconds + wait.nanoseconds};
        watchdog_retry(machine->timers, &ending->expiry, later);
        if (machine->endings.refusal.pid == 0) {
            machine->endings.refusal =
                (struct watchdog_refusal){ending->expiry.pid, machine->endings.expiring};
        }
        machine->endings.told = ending;
    } else {
        ending->is_due = false;
        ending->is_tried = true;
        ending->retry_at = instant_after(now, wait);
        ending->next = machine->endings.list;
        machine->endings.list = ending;
    }
    go_on(machine, out);
}

/* Workers usually hang together; see core/joint_ending. */
static void look_first(struct watchdog_machine *machine, const struct watchdog_event *event,
    struct watchdog_effects *out) {
    struct watchdog_ending *ending = machine->endings.current;
    watchdog_endings_settle_refusal(machine, ending->expiry.pid);
    ending->since = event->wall_now;
    ending->next = machine->endings.list;
    machine->endings.list = ending;
    if (!machine->endings.joint.is_begun) {
        watchdog_step_notify(out, WATCHDOG_NOTICE_LOOKS_BEGUN);
    }
    machine->endings.joint_due = never;
    set_timer(machine, out);
    struct watchdog_notice *notice = watchdog_step_notify(out, WATCHDOG_NOTICE_LOOK);
    notice->expiry = &ending->expiry;
    notice->owner = machine->search.owner;
    notice->bound =
        joint_ending_begin_look(&machine->endings.joint, event->now, machine->settings.look_bound);
    go_on(machine, out);
}

void watchdog_endings_judge(struct watchdog_machine *machine, const struct watchdog_event *event,
    struct watchdog_effects *out) {
    const struct watchdog_search *search = &machine->search;
    const struct watchdog_expiry *expiry = &machine->endings.current->expiry;
    bool is_there =
        search->is_there && search->owner >= 0 && search->start_time == expiry->start_time;
    if (machine->endings.current->is_dropped) {
        settle(machine, out);
    } else if (!is_there) {
        watchdog_step_add(out, WATCHDOG_EFFECT_TELL_GONE)->expiry = expiry;
        settle(machine, out);
    } else if (expiry->signal == 0) {
        watchdog_step_add(out, WATCHDOG_EFFECT_TELL_LIVES_ON)->expiry = expiry;
        watchdog_step_notify(out, WATCHDOG_NOTICE_EXPIRED)->expiry = expiry;
        settle(machine, out);
    } else if (machine->task == WATCHDOG_TASK_EXPIRE && machine->settings.looks_first) {
        look_first(machine, event, out); /* only processes that will be ended are looked at */
    } else {
        struct watchdog_effect *effect = watchdog_step_add(out, WATCHDOG_EFFECT_SIGNAL);
        effect->signal.pid = expiry->pid;
        effect->signal.start_time = expiry->start_time;
        effect->signal.signal = expiry->signal;
    }
}

static void tell_of_signal(struct watchdog_machine *machine, struct watchdog_effects *out) {
    struct watchdog_notice *notice = watchdog_step_notify(out, WATCHDOG_NOTICE_SIGNALLED);
    notice->expiry = &machine->endings.current->expiry;
    notice->owner = machine->search.owner;
    if (machine->settings.ends_agent && machine->endings.is_joint) {
        /* Only once: the agent would take a second call for a second signal. */
        machine->endings.is_agent_to_end = true;
    } else if (machine->settings.ends_agent) {
        watchdog_step_notify(out, WATCHDOG_NOTICE_AGENT_TO_END);
    }
}

void watchdog_endings_take_signalled(struct watchdog_machine *machine,
    const struct watchdog_event *event, struct watchdog_effects *out) {
    if (machine->endings.current == NULL) {
        return;
    }
    switch (event->result) {
    case WATCHDOG_SIGNAL_SENT:
        tell_of_signal(machine, out);
        settle(machine, out);
        break;
    case WATCHDOG_SIGNAL_REFUSED:
        try_again_later(machine, event->now, out);
        break;
    case WATCHDOG_SIGNAL_NOBODY:
        settle(machine, out);
        break;
    }
}

void watchdog_endings_take_deadline(struct watchdog_machine *machine,
    const struct watchdog_event *event, struct watchdog_effects *out) {
    machine->task = WATCHDOG_TASK_EXPIRE;
    machine->endings.expiring = event->wall_now;
    expire_next(machine, out);
}

void watchdog_endings_take_timer(struct watchdog_machine *machine,
    const struct watchdog_event *event, struct watchdog_effects *out) {
    machine->endings.is_joint = !instant_is_before(event->now, machine->endings.joint_due);
    if (machine->endings.is_joint) {
        machine->endings.joint_due = never;
    }
    for (struct watchdog_ending *each = machine->endings.list; each != NULL; each = each->next) {
        each->is_due = each->is_tried ? !instant_is_before(event->now, each->retry_at)
                                      : machine->endings.is_joint;
    }
    machine->task = WATCHDOG_TASK_END;
    end_next(machine, out);
}

void watchdog_endings_take_looked_at(struct watchdog_machine *machine,
    const struct watchdog_event *event, struct watchdog_effects *out) {
    struct wall_time due;
    struct instant next;
    bool has_next = watchdog_next_deadline(machine->timers, &due);
    if (machine->endings.joint.look_count == 0) {
        return;
    }
    if (has_next) {
        int64_t left = due.nanoseconds - event->wall_now.nanoseconds;
        next = instant_after(event->now, (struct duration){left > 0 ? left : 0});
    }
    joint_ending_end_look(&machine->endings.joint);
    machine->endings.joint_due = joint_ending_due(&machine->endings.joint, has_next ? &next : NULL);
    set_timer(machine, out);
}

static void drop_current(struct watchdog_endings *endings) {
    if (endings->current != NULL) {
        endings->current->is_dropped = true;
    }
}

void watchdog_endings_drop(struct watchdog_machine *machine) {
    struct watchdog_endings *endings = &machine->endings;
    for (struct watchdog_ending *each = endings->list; each != NULL; each = each->next) {
        each->is_dropped = true;
    }
    drop_current(endings);
    endings->refusal.pid = 0;
}

void watchdog_endings_forget(struct watchdog_machine *machine) {
    struct watchdog_endings *endings = &machine->endings;
    free_list(endings);
    drop_current(endings);
    endings->joint = (struct joint_ending){0};
    endings->joint_due = never;
    endings->is_joint = false;
    endings->is_agent_to_end = false;
}

void watchdog_endings_forget_told(struct watchdog_machine *machine) {
    free_ending(machine->endings.told);
    machine->endings.told = NULL;
}

void watchdog_endings_clear(struct watchdog_machine *machine) {
    free_list(&machine->endings);
    free_ending(machine->endings.current);
    free_ending(machine->endings.told);
}

struct wall_time watchdog_endings_last_progress(
    const struct watchdog_machine *machine, struct wall_time now) {
    const struct watchdog_endings *endings = &machine->endings;
    struct wall_time last = now;
    struct wall_time due;
    if (endings->refusal.pid != 0) {
        last = endings->refusal.since;
    } else if (watchdog_next_deadline(machine->timers, &due) && due.nanoseconds < now.nanoseconds) {
        last = due;
    }
    for (const struct watchdog_ending *each = endings->list; each != NULL; each = each->next) {
        if (!each->is_dropped && each->since.nanoseconds < last.nanoseconds) {
            last = each->since;
        }
    }
    return last;
}
