/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/watchdog/watchdog.h"

#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/table.h"

struct timer {
    struct heap_item deadline; /* nanoseconds of wall-clock time; in the heap of its holder */
    const char *scope;         /* owned by the table */
    int signal;
};

/* The timers of one process, which has at least one. */
struct holder {
    struct heap_item deadline; /* of its first timer; in the heap of all holders */
    int64_t pid;
    uint64_t start_time;
    struct table *timers; /* by scope with its NUL */
    struct heap deadlines;
    size_t scope_bytes;
};

struct watchdog {
    struct watchdog_limits limits;
    struct table *holders; /* by pid */
    struct heap deadlines;
    size_t timer_count;
    size_t scope_bytes;
};

void watchdog_request_clear(struct watchdog_request *request) {
    free(request->scope);
    *request = (struct watchdog_request){0};
}

static void free_holder(void *value) {
    struct holder *holder = value;
    table_free(holder->timers);
    heap_clear(&holder->deadlines);
    free(holder);
}

struct watchdog *watchdog_new(const struct watchdog_limits *limits) {
    struct watchdog *watchdog = memory_allocate(sizeof *watchdog);
    watchdog->limits = *limits;
    watchdog->holders = table_new(free_holder);
    return watchdog;
}

void watchdog_free(struct watchdog *watchdog) {
    if (watchdog != NULL) {
        table_free(watchdog->holders);
        heap_clear(&watchdog->deadlines);
        free(watchdog);
    }
}

static struct slice pid_key(const int64_t *pid) {
    return (struct slice){(const uint8_t *)pid, sizeof *pid};
}

static struct slice scope_key(const char *scope) {
    return (struct slice){(const uint8_t *)scope, strlen(scope) + 1};
}

static struct holder *find_holder(const struct watchdog *watchdog, int64_t pid) {
    return table_get(watchdog->holders, pid_key(&pid));
}

void watchdog_forget(struct watchdog *watchdog, int64_t pid) {
    struct holder *holder = find_holder(watchdog, pid);
    if (holder != NULL) {
        watchdog->timer_count -= holder->deadlines.count;
        watchdog->scope_bytes -= holder->scope_bytes;
        heap_remove(&watchdog->deadlines, &holder->deadline);
        table_remove(watchdog->holders, pid_key(&pid));
    }
}

static void watchdog_forget_all(struct watchdog *watchdog) {
    table_free(watchdog->holders);
    watchdog->holders = table_new(free_holder);
    heap_clear(&watchdog->deadlines);
    watchdog->timer_count = 0;
    watchdog->scope_bytes = 0;
}

size_t watchdog_timer_count(const struct watchdog *watchdog) {
    return watchdog->timer_count;
}

/* The start time of the process that holds timers under this pid. False when there is none. */
static bool watchdog_find(const struct watchdog *watchdog, int64_t pid, uint64_t *out_start_time) {
    const struct holder *holder = find_holder(watchdog, pid);
    if (holder == NULL) {
        return false;
    }
    *out_start_time = holder->start_time;
    return true;
}

/* Changes of one holder's timers. */

static struct timer *first_timer(const struct holder *holder) {
    return (struct timer *)heap_first(&holder->deadlines);
}

/* Updates the registry after the timers of a holder have changed. */
static void settle(struct watchdog *watchdog, struct holder *holder) {
    const struct heap_item *first = heap_first(&holder->deadlines);
    if (first == NULL) {
        watchdog_forget(watchdog, holder->pid);
    } else if (first->key != holder->deadline.key) {
        heap_move(&watchdog->deadlines, &holder->deadline, first->key);
    }
}

/* The caller settles the holder afterwards. */
static void drop_timer(struct watchdog *watchdog, struct holder *holder, struct timer *timer) {
    struct slice key = scope_key(timer->scope);
    watchdog->timer_count--;
    watchdog->scope_bytes -= key.length;
    holder->scope_bytes -= key.length;
    heap_remove(&holder->deadlines, &timer->deadline);
    table_remove(holder->timers, key);
}

static void insert_timer(
    struct watchdog *watchdog, struct holder *holder, const struct watchdog_request *request) {
    struct timer *timer = memory_allocate(sizeof *timer);
    struct slice key = table_put(holder->timers, scope_key(request->scope), timer);
    timer->scope = (const char *)key.data;
    timer->signal = request->signal;
    heap_insert(&holder->deadlines, &timer->deadline, request->expiration.nanoseconds);
    watchdog->timer_count++;
    watchdog->scope_bytes += key.length;
    holder->scope_bytes += key.length;
}

static struct holder *add_holder(struct watchdog *watchdog, int64_t pid, uint64_t start_time) {
    struct holder *holder = memory_allocate(sizeof *holder);
    holder->pid = pid;
    holder->start_time = start_time;
    holder->timers = table_new(free);
    heap_insert(&watchdog->deadlines, &holder->deadline, INT64_MAX);
    table_put(watchdog->holders, pid_key(&pid), holder);
    return holder;
}

static bool has_room(const struct watchdog *watchdog, const struct holder *holder,
    const struct watchdog_request *request) {
    const struct watchdog_limits *limits = &watchdog->limits;
    size_t count = holder == NULL ? 0 : holder->deadlines.count;
    size_t length = strlen(request->scope) + 1;
    return count < limits->timers_per_process && watchdog->timer_count < limits->timers &&
           length <= limits->scope_bytes - watchdog->scope_bytes && spare_memory_keep_reserve() &&
           (holder == NULL || heap_has_room(&holder->deadlines));
}

static enum failure_code acquire(struct watchdog *watchdog, const struct watchdog_request *request,
    const struct watchdog_process *process) {
    struct holder *holder = find_holder(watchdog, request->pid);
    if (holder != NULL && holder->start_time != process->start_time) {
        watchdog_forget(watchdog, request->pid);
        holder = NULL;
    }
    struct timer *timer =
        holder == NULL ? NULL : table_get(holder->timers, scope_key(request->scope));
    if (timer == NULL && !has_room(watchdog, holder, request)) {
        return FAILURE_LIMIT;
    }
    if (timer != NULL) {
        timer->signal = request->signal;
        heap_move(&holder->deadlines, &timer->deadline, request->expiration.nanoseconds);
    } else {
        holder = holder == NULL ? add_holder(watchdog, request->pid, process->start_time) : holder;
        insert_timer(watchdog, holder, request);
    }
    settle(watchdog, holder);
    return FAILURE_NONE;
}

static void release(struct watchdog *watchdog, const struct watchdog_request *request) {
    struct holder *holder = find_holder(watchdog, request->pid);
    struct timer *timer =
        holder == NULL ? NULL : table_get(holder->timers, scope_key(request->scope));
    if (timer != NULL) {
        drop_timer(watchdog, holder, timer);
        settle(watchdog, holder);
    }
}

enum failure_code watchdog_take(struct watchdog *watchdog, const struct watchdog_request *request,
    const struct watchdog_process *process) {
    switch (request->kind) {
    case WATCHDOG_RELEASE:
        release(watchdog, request);
        return FAILURE_NONE;
    case WATCHDOG_ACQUIRE:
        return process->is_ours ? acquire(watchdog, request, process) : FAILURE_INVALID;
    }
    return FAILURE_INVALID;
}

struct visit {
    void (*visit)(void *context, const struct watchdog_request *timer);
    void *context;
};

static bool visit_holder(void *context, struct slice key, void *value) {
    const struct visit *visit = context;
    const struct holder *holder = value;
    (void)key;
    for (size_t i = 0; i < holder->deadlines.count; i++) {
        const struct timer *timer = (const struct timer *)holder->deadlines.items[i];
        struct text scope = {0};
        text_append(&scope, timer->scope);
        const struct watchdog_request request = {.kind = WATCHDOG_ACQUIRE,
            .pid = holder->pid,
            .scope = scope.data,
            .expiration = {timer->deadline.key},
            .signal = timer->signal};
        visit->visit(visit->context, &request);
        text_clear(&scope);
    }
    return true;
}

void watchdog_each(const struct watchdog *watchdog,
    void (*visit)(void *context, const struct watchdog_request *timer), void *context) {
    struct visit visiting = {visit, context};
    table_each(watchdog->holders, visit_holder, &visiting);
}

/* Expiry. */

bool watchdog_next_deadline(const struct watchdog *watchdog, struct wall_time *out_deadline) {
    const struct heap_item *first = heap_first(&watchdog->deadlines);
    if (first == NULL) {
        return false;
    }
    out_deadline->nanoseconds = first->key;
    return true;
}

void watchdog_expiry_clear(struct watchdog_expiry *expiry) {
    text_list_clear(&expiry->scopes);
    free(expiry->expirations);
    *expiry = (struct watchdog_expiry){0};
}

bool watchdog_take_expired(
    struct watchdog *watchdog, struct wall_time now, struct watchdog_expiry *out_expiry) {
    struct holder *holder = (struct holder *)heap_first(&watchdog->deadlines);
    if (holder == NULL || holder->deadline.key > now.nanoseconds) {
        return false;
    }
    struct watchdog_expiry expiry = {.pid = holder->pid, .start_time = holder->start_time};
    struct timer *first;
    while (expiry.signal == 0 && (first = first_timer(holder)) != NULL &&
           first->deadline.key <= now.nanoseconds) {
        expiry.expirations = memory_reserve(expiry.expirations, &expiry.expiration_capacity,
            expiry.scopes.count + 1, sizeof *expiry.expirations);
        expiry.expirations[expiry.scopes.count].nanoseconds = first->deadline.key;
        text_list_add(&expiry.scopes, first->scope);
        expiry.signal = first->signal > 0 ? first->signal : 0;
        drop_timer(watchdog, holder, first);
    }
    if (expiry.signal != 0) {
        watchdog_forget(watchdog, expiry.pid);
    } else {
        settle(watchdog, holder);
    }
    *out_expiry = expiry;
    return true;
}

void watchdog_retry(
    struct watchdog *watchdog, const struct watchdog_expiry *expiry, struct wall_time when) {
    struct watchdog_request request = {
        .kind = WATCHDOG_ACQUIRE,
        .pid = expiry->pid,
        .scope = expiry->scopes.items[expiry->scopes.count - 1],
        .expiration = when,
        .signal = expiry->signal,
    };
    if (find_holder(watchdog, expiry->pid) == NULL) {
        struct holder *holder = add_holder(watchdog, expiry->pid, expiry->start_time);
        insert_timer(watchdog, holder, &request);
        settle(watchdog, holder);
    }
}

/* Machine. */

/* When processes are ended whose timers have expired. Workers usually hang together, in one
 * collective operation. When one of them is ended, the whole worker group is stopped, and evidence
 * of the others is lost. So every such worker is looked at first, and they are all ended together
 * after the last look. This includes workers whose timers expire a moment later. This module does
 * not know the processes, and does not end them. */

/* A zeroed struct is valid: there is no process to end. */
struct joint_ending {
    bool is_begun;
    struct instant window_end; /* timers that expire before it belong to this ending */
    struct instant end;        /* the end of all looks */
    size_t look_count;         /* looks under way */
};

/* Remembers processes that were found to be admitted a moment ago. So a process that asks for many
 * timers in a burst is not looked up for each of them. A pid is not reused by another process
 * within so short a time; besides, no process is ended only because it is in this table. */

struct known_process {
    int64_t pid; /* 0: the place is empty */
    uint64_t start_time;
    struct instant trusted_until;
};

/* A zeroed struct is valid: it knows no process. */
struct known_processes {
    struct known_process places[KNOWN_PROCESSES_PLACES]; /* by pid */
};

/* A process with an expired timer, which is to be ended. */
struct watchdog_ending {
    struct watchdog_ending *next;
    struct watchdog_expiry expiry;
    struct wall_time since;  /* when it should have been ended */
    struct instant retry_at; /* set when it could not be signalled */
    bool is_tried;
    bool is_due;     /* it is ended in the pass that is under way */
    bool is_dropped; /* the agent stops the worker group, and so ends this process */
};

/* The task to which an answer belongs. */
enum watchdog_task {
    WATCHDOG_TASK_NONE,
    WATCHDOG_TASK_ADMIT,  /* looks up the process of a request */
    WATCHDOG_TASK_EXPIRE, /* handles processes with expired timers, one after the other */
    /* Ends processes that were looked at, or are tried again, one after the other. */
    WATCHDOG_TASK_END,
};

/* The search for the owner of a process among its ancestors. */
struct watchdog_search {
    int64_t pid;
    bool is_asking;
    bool is_there;
    uint64_t start_time;
    int ancestors;
    int owner;
};

/* A process that must not be signalled, and whose timer expires once more. Of several such
 * processes only one is remembered, since one is enough to say that something is overdue. */
struct watchdog_refusal {
    int64_t pid; /* 0: none */
    struct wall_time since;
};

/* All processes with expired timers. */
struct watchdog_endings {
    struct wall_time expiring;       /* WATCHDOG_TASK_EXPIRE: handles timers that expire by then */
    struct watchdog_ending *list;    /* processes that are looked at, or are tried again */
    struct watchdog_ending *current; /* of the tasks EXPIRE and END */
    struct watchdog_ending *told;    /* the effects of the last step point into it */
    struct watchdog_refusal refusal;
    struct joint_ending joint;
    struct instant joint_due;
    bool is_joint; /* WATCHDOG_TASK_END ends all processes that were looked at */
    bool is_agent_to_end;
};

struct watchdog_machine {
    struct watchdog_settings settings;
    struct watchdog *timers;
    bool is_serving;
    uint64_t request_count;
    struct log_throttle throttle;
    struct known_processes known;
    const struct watchdog_request *request; /* of WATCHDOG_TASK_ADMIT; borrowed */
    enum watchdog_task task;
    struct watchdog_search search;
    bool is_armed;
    struct wall_time deadline; /* the armed deadline */
    struct watchdog_endings endings;
};

/* How long until a process that could not be signalled is signalled again. */
#define WATCHDOG_RETRY_MILLISECONDS 1000

/* A timer that expires within this time after the first one belongs to the same ending. Workers
 * enter a collective operation at slightly different times. */
#define JOINT_ENDING_WINDOW_MILLISECONDS 250

/* Begins a look at a process. Returns how long it may take: `bound` is the time for all looks
 * together, and begins with the first one. */
static struct duration joint_ending_begin_look(
    struct joint_ending *ending, struct instant now, struct duration bound) {
    if (!ending->is_begun) {
        struct duration window = duration_from_milliseconds(JOINT_ENDING_WINDOW_MILLISECONDS);
        ending->is_begun = true;
        ending->end = instant_after(now, bound);
        ending->window_end = instant_earlier(instant_after(now, window), ending->end);
    }
    ending->look_count++;
    return instant_until(now, ending->end);
}

/* A look is over. */
static void joint_ending_end_look(struct joint_ending *ending) {
    ending->look_count--;
}

/* When all these processes are to be ended, if no event comes before. The time may have passed
 * already. It is never while a look is under way. `next` is when the next timer expires, or NULL
 * when there is no timer. */
static struct instant joint_ending_due(
    const struct joint_ending *ending, const struct instant *next) {
    if (!ending->is_begun || ending->look_count > 0) {
        return (struct instant){INT64_MAX};
    }
    bool is_next_in_window = next != NULL && instant_is_before(*next, ending->window_end);
    return is_next_in_window ? ending->window_end : (struct instant){0};
}

/* Known processes. */

static size_t place_of(int64_t pid) {
    return (size_t)((uint64_t)pid % KNOWN_PROCESSES_PLACES);
}

/* Returns false when the process was not added, or was added too long ago. Pids are positive. */
static bool known_processes_find(const struct known_processes *known, int64_t pid,
    struct instant now, uint64_t *out_start_time) {
    const struct known_process *process = &known->places[place_of(pid)];
    if (process->pid != pid || !instant_is_before(now, process->trusted_until)) {
        return false;
    }
    *out_start_time = process->start_time;
    return true;
}

static void known_processes_add(
    struct known_processes *known, int64_t pid, uint64_t start_time, struct instant now) {
    struct duration trust = duration_from_milliseconds(KNOWN_PROCESSES_TRUST_MILLISECONDS);
    known->places[place_of(pid)] =
        (struct known_process){pid, start_time, instant_after(now, trust)};
}

/* Returns false when the process was not added, or was added too long ago. Pids are positive. */
static void known_processes_forget(struct known_processes *known, int64_t pid) {
    struct known_process *process = &known->places[place_of(pid)];
    if (process->pid == pid) {
        process->pid = 0;
    }
}

/* Step. */

/* Appends an effect, which the caller fills in. */
static struct watchdog_effect *watchdog_step_add(
    struct watchdog_effects *effects, enum watchdog_effect_kind kind) {
    struct watchdog_effect *effect = &effects->items[effects->count++];
    *effect = (struct watchdog_effect){.kind = kind};
    return effect;
}

static struct watchdog_notice *watchdog_step_notify(
    struct watchdog_effects *effects, enum watchdog_notice_kind kind) {
    struct watchdog_notice *notice = &watchdog_step_add(effects, WATCHDOG_EFFECT_NOTIFY)->notice;
    notice->kind = kind;
    return notice;
}

static void watchdog_step_arm_deadline(
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

/* Begins the search for the owner of a process. `is_asking`: the process asks for a timer. */
static void watchdog_step_find_owner(struct watchdog_machine *machine, int64_t pid, bool is_asking,
    struct watchdog_effects *effects) {
    machine->search = (struct watchdog_search){.pid = pid, .is_asking = is_asking, .owner = -1};
    look_up(&machine->search, pid, effects);
}

/* Takes an answer. Returns false when it has asked for the parent next, because a process without
 * an owner may be the child of one with an owner. Otherwise machine->search has the result. */
static bool watchdog_step_take_sight(struct watchdog_machine *machine,
    const struct watchdog_sight *sight, struct watchdog_effects *effects) {
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

/* The part of a watchdog machine that ends the processes whose timers have expired. If the settings
 * ask for it, each process is looked at first. Then it is signalled, alone or together with the
 * other processes that were looked at. A process that must not be signalled is tried again later.
 */

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

/* A process that could not be signalled is no longer overdue. */
static void watchdog_endings_settle_refusal(struct watchdog_machine *machine, int64_t pid) {
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
static void machine_settle(struct watchdog_machine *machine, struct watchdog_effects *out) {
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

/* Workers usually hang together. */
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

/* The search for the owner of the current process is over: decides what happens to the process. */
static void watchdog_endings_judge(struct watchdog_machine *machine,
    const struct watchdog_event *event, struct watchdog_effects *out) {
    const struct watchdog_search *search = &machine->search;
    const struct watchdog_expiry *expiry = &machine->endings.current->expiry;
    bool is_there =
        search->is_there && search->owner >= 0 && search->start_time == expiry->start_time;
    if (machine->endings.current->is_dropped) {
        machine_settle(machine, out);
    } else if (!is_there) {
        watchdog_step_add(out, WATCHDOG_EFFECT_TELL_GONE)->expiry = expiry;
        machine_settle(machine, out);
    } else if (expiry->signal == 0) {
        watchdog_step_add(out, WATCHDOG_EFFECT_TELL_LIVES_ON)->expiry = expiry;
        watchdog_step_notify(out, WATCHDOG_NOTICE_EXPIRED)->expiry = expiry;
        machine_settle(machine, out);
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

static void watchdog_endings_take_signalled(struct watchdog_machine *machine,
    const struct watchdog_event *event, struct watchdog_effects *out) {
    if (machine->endings.current == NULL) {
        return;
    }
    switch (event->result) {
    case WATCHDOG_SIGNAL_SENT:
        tell_of_signal(machine, out);
        machine_settle(machine, out);
        break;
    case WATCHDOG_SIGNAL_REFUSED:
        try_again_later(machine, event->now, out);
        break;
    case WATCHDOG_SIGNAL_NOBODY:
        machine_settle(machine, out);
        break;
    }
}

/* These take the events of the same names. */
static void watchdog_endings_take_deadline(struct watchdog_machine *machine,
    const struct watchdog_event *event, struct watchdog_effects *out) {
    machine->task = WATCHDOG_TASK_EXPIRE;
    machine->endings.expiring = event->wall_now;
    expire_next(machine, out);
}

static void watchdog_endings_take_timer(struct watchdog_machine *machine,
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

static void watchdog_endings_take_looked_at(struct watchdog_machine *machine,
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

/* No process is to be ended any more, because the worker group is being stopped. */
static void watchdog_endings_drop(struct watchdog_machine *machine) {
    struct watchdog_endings *endings = &machine->endings;
    for (struct watchdog_ending *each = endings->list; each != NULL; each = each->next) {
        each->is_dropped = true;
    }
    drop_current(endings);
    endings->refusal.pid = 0;
}

/* Forgets all processes that were to be ended. */
static void watchdog_endings_forget(struct watchdog_machine *machine) {
    struct watchdog_endings *endings = &machine->endings;
    free_list(endings);
    drop_current(endings);
    endings->joint = (struct joint_ending){0};
    endings->joint_due = never;
    endings->is_joint = false;
    endings->is_agent_to_end = false;
}

/* The performer has carried out the last effects. */
static void watchdog_endings_forget_told(struct watchdog_machine *machine) {
    free_ending(machine->endings.told);
    machine->endings.told = NULL;
}

/* Frees everything that the machine holds of the endings. */
static void watchdog_endings_clear(struct watchdog_machine *machine) {
    free_list(&machine->endings);
    free_ending(machine->endings.current);
    free_ending(machine->endings.told);
}

/* See watchdog_machine_last_progress. */
static struct wall_time watchdog_endings_last_progress(
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

/* Machine. */

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
