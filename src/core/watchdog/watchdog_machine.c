/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/watchdog/watchdog_machine.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/watchdog/watchdog_endings.h"
#include "core/watchdog/watchdog_step.h"

static void tell_of_process(
    struct watchdog_effects *effects, enum watchdog_effect_kind kind, int64_t pid) {
    watchdog_step_add(effects, kind)->pid = pid;
}

/* Requests. A client may repeat its mistake in a loop, so the complaints are throttled. */

static void take_bad_line(struct watchdog_machine *machine, const struct watchdog_event *event,
    struct watchdog_effects *out) {
    uint64_t held_back;
    if (machine->is_serving && log_throttle_admits(&machine->throttle, event->now, &held_back)) {
        struct watchdog_effect *effect = watchdog_step_add(out, WATCHDOG_EFFECT_TELL_BAD_LINE);
        effect->complaint.reason = event->reason;
        effect->complaint.held_back = held_back;
    }
}

static void refuse(struct watchdog_machine *machine, enum failure_code code, struct instant now,
    struct watchdog_effects *out) {
    uint64_t held_back;
    if (log_throttle_admits(&machine->throttle, now, &held_back)) {
        struct watchdog_effect *effect = watchdog_step_add(out, WATCHDOG_EFFECT_TELL_REFUSED);
        effect->complaint.request = machine->request;
        effect->complaint.is_limit = code == FAILURE_LIMIT;
        effect->complaint.held_back = held_back;
    }
}

/* Carries out the current request. A release is never refused. */
static void carry_out(struct watchdog_machine *machine, const struct watchdog_process *process,
    struct instant now, struct watchdog_effects *out) {
    const struct watchdog_request *request = machine->request;
    enum failure_code code = watchdog_take(machine->timers, request, process);
    if (code != FAILURE_NONE) {
        refuse(machine, code, now, out);
        return;
    }
    if (request->kind == WATCHDOG_RELEASE) {
        return;
    }
    /* The process is alive and goes on, so its earlier, expired timer no longer counts as overdue.
     */
    watchdog_endings_settle_refusal(machine, request->pid);
    if (!machine->is_armed || request->expiration.nanoseconds < machine->deadline.nanoseconds) {
        watchdog_step_arm_deadline(machine, request->expiration, out);
    }
}

static void take_request(struct watchdog_machine *machine, const struct watchdog_event *event,
    struct watchdog_effects *out) {
    const struct watchdog_request *request = event->request;
    struct watchdog_process process = {.is_ours = true};
    if (!machine->is_serving) {
        return;
    }
    machine->request_count++;
    machine->request = request;
    if (request->kind == WATCHDOG_RELEASE ||
        known_processes_find(&machine->known, request->pid, event->now, &process.start_time)) {
        carry_out(machine, &process, event->now, out);
    } else {
        machine->task = WATCHDOG_TASK_ADMIT;
        watchdog_step_find_owner(machine, request->pid, true, out);
    }
}

/* The search for the owner of the process is over. */
static void admit(
    struct watchdog_machine *machine, struct instant now, struct watchdog_effects *out) {
    const struct watchdog_search *search = &machine->search;
    const struct watchdog_process stranger = {.start_time = search->start_time};
    if (search->is_there && search->owner >= 0) {
        watchdog_step_add(out, WATCHDOG_EFFECT_WATCH)->pid = search->pid;
        return;
    }
    machine->task = WATCHDOG_TASK_NONE;
    if (search->is_there) {
        carry_out(machine, &stranger, now, out);
    } else {
        tell_of_process(out, WATCHDOG_EFFECT_TELL_TOO_LATE, search->pid);
    }
}

static void take_watched(struct watchdog_machine *machine, const struct watchdog_event *event,
    struct watchdog_effects *out) {
    const struct watchdog_search *search = &machine->search;
    const struct watchdog_process process = {true, search->start_time};
    if (machine->task != WATCHDOG_TASK_ADMIT) {
        return;
    }
    machine->task = WATCHDOG_TASK_NONE;
    if (!event->is_there) {
        tell_of_process(out, WATCHDOG_EFFECT_TELL_TOO_LATE, search->pid);
    } else if (machine->is_serving) {
        known_processes_add(&machine->known, search->pid, search->start_time, event->now);
        carry_out(machine, &process, event->now, out);
    }
}

static void take_sight(struct watchdog_machine *machine, const struct watchdog_event *event,
    struct watchdog_effects *out) {
    if (machine->task == WATCHDOG_TASK_NONE ||
        !watchdog_step_take_sight(machine, &event->seen, out)) {
        return;
    }
    if (machine->task == WATCHDOG_TASK_ADMIT) {
        admit(machine, event->now, out);
    } else {
        watchdog_endings_judge(machine, event, out);
    }
}

/* Beginning and end. */

static void begin(struct watchdog_machine *machine, struct watchdog_effects *out) {
    watchdog_endings_forget(machine);
    machine->is_serving = true;
    watchdog_step_add(out, WATCHDOG_EFFECT_DISARM_TIMER);
    watchdog_step_add(out, WATCHDOG_EFFECT_DROP_INPUT);
    watchdog_step_notify(out, WATCHDOG_NOTICE_STARTED);
}

static void end(struct watchdog_machine *machine, struct watchdog_effects *out) {
    if (!machine->is_serving) {
        return;
    }
    machine->is_serving = false;
    machine->is_armed = false;
    machine->known = (struct known_processes){0}; /* no process is watched any more */
    watchdog_forget_all(machine->timers);
    watchdog_endings_drop(machine);
    watchdog_step_notify(out, WATCHDOG_NOTICE_STOPPED);
    watchdog_step_add(out, WATCHDOG_EFFECT_DISARM_DEADLINE);
    watchdog_step_add(out, WATCHDOG_EFFECT_UNWATCH_ALL);
}

static void forget(struct watchdog_machine *machine, int64_t pid, struct watchdog_effects *out) {
    known_processes_forget(&machine->known, pid);
    watchdog_endings_settle_refusal(machine, pid);
    watchdog_forget(machine->timers, pid);
    tell_of_process(out, WATCHDOG_EFFECT_UNWATCH, pid);
}

static void take_end_of_process(
    struct watchdog_machine *machine, int64_t pid, struct watchdog_effects *out) {
    uint64_t start_time;
    if (watchdog_find(machine->timers, pid, &start_time)) {
        tell_of_process(out, WATCHDOG_EFFECT_TELL_ENDED, pid);
    }
    forget(machine, pid, out);
}

void watchdog_machine_step(struct watchdog_machine *machine, const struct watchdog_event *event,
    struct watchdog_effects *effects) {
    effects->count = 0;
    watchdog_endings_forget_told(machine);
    switch (event->kind) {
    case WATCHDOG_EVENT_BEGIN:
        begin(machine, effects);
        break;
    case WATCHDOG_EVENT_END:
        end(machine, effects);
        break;
    case WATCHDOG_EVENT_FORGET:
        forget(machine, event->pid, effects);
        break;
    case WATCHDOG_EVENT_REQUEST:
        take_request(machine, event, effects);
        break;
    case WATCHDOG_EVENT_BAD_LINE:
        take_bad_line(machine, event, effects);
        break;
    case WATCHDOG_EVENT_SEEN:
        take_sight(machine, event, effects);
        break;
    case WATCHDOG_EVENT_WATCHED:
        take_watched(machine, event, effects);
        break;
    case WATCHDOG_EVENT_SIGNALLED:
        watchdog_endings_take_signalled(machine, event, effects);
        break;
    case WATCHDOG_EVENT_LOOKED_AT:
        watchdog_endings_take_looked_at(machine, event, effects);
        break;
    case WATCHDOG_EVENT_PROCESS_ENDED:
        take_end_of_process(machine, event->pid, effects);
        break;
    case WATCHDOG_EVENT_DEADLINE_PASSED:
        watchdog_endings_take_deadline(machine, event, effects);
        break;
    case WATCHDOG_EVENT_TIMER_FIRED:
        watchdog_endings_take_timer(machine, event, effects);
        break;
    }
}

struct watchdog_machine *watchdog_machine_new(const struct watchdog_settings *settings) {
    struct watchdog_machine *machine = memory_allocate(sizeof *machine);
    machine->settings = *settings;
    machine->timers = watchdog_new(&WATCHDOG_LIMITS_DEFAULT);
    watchdog_endings_forget(machine);
    return machine;
}

void watchdog_machine_free(struct watchdog_machine *machine) {
    if (machine != NULL) {
        watchdog_endings_clear(machine);
        watchdog_free(machine->timers);
        free(machine);
    }
}

struct wall_time watchdog_machine_last_progress(
    const struct watchdog_machine *machine, struct wall_time now) {
    return watchdog_endings_last_progress(machine, now);
}

const struct watchdog *watchdog_machine_timers(const struct watchdog_machine *machine) {
    return machine->timers;
}

uint64_t watchdog_machine_request_count(const struct watchdog_machine *machine) {
    return machine->request_count;
}
