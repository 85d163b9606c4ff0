/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/standby/agent_standby.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/standby/standby_spare.h"
#include "base/memory.h"
#include "core/standby/standby_preparation.h"
#include "host/loop/files.h"
#include "host/machine/machine.h"
#include "host/process/process_table.h"
#include "host/standby/hook_directory.h"

/* Standby. */

/* How long a standby worker may take to go through its gate, and how often that while the kernel
 * says that it runs, or waits for a disk. A healthy one takes milliseconds. On a machine that is so
 * busy that it takes longer, a worker that is started anew would take longer still. */
#define PASSAGE_MILLISECONDS 1000
#define PASSAGE_LOOKS 5
/* How long a dead disk may hold up the beginning and the end of a job. */
#define DISK_PATIENCE_SECONDS 5
/* The same at a start, which does without. */
#define RENEWAL_PATIENCE_SECONDS 1

/* What is known of the worker of a rank. */
struct place {
    struct text_list environment; /* of the worker that was started last, before it was dressed */
    struct worker_record record;
    struct learned_list learned; /* what workers of this rank have imported, and other nodes' */
    struct standby_spare *spare; /* NULL: none */
    bool is_awaited;             /* the spare has been told to go through its gate … */
    int late_looks;              /* … and was looked at so often since, because it had not */
    bool is_owed;                /* a warm parent is to fork another one */
    bool is_alone;               /* and there is no worker yet */
    size_t lines;                /* of programs up to which workers have come, as the plan knows */
    int spare_of;  /* the state of the parent that has forked the spare; 0: none has … */
    int worker_of; /* … or the worker */
};

/* How often a warm parent looks at the pages that a worker has needed: a slow one has not come to
 * its first steps at the first look. */
#define PAGE_LOOKS_MAXIMUM 3

/* How often a warm parent may end, or not fit any more, until there is none. */
#define PARENT_ENDS_MAXIMUM 8

/* A process that has imported what all workers have, and forks standby workers. */
struct warm_parent {
    struct standby_spare *process; /* NULL: it does not run */
    struct learned_list learned;   /* what all workers import */
    bool is_off;                   /* there is none: each standby worker is a process of its own */
    bool is_told;                  /* to the plan: it forks */
    int state; /* from 1 on; another one when it is another process, or has imported more */
    int looks; /* at the pages that its children need */
    int ends;
    int lost; /* children in a row that did not come here */
};

struct agent_standby {
    struct agent_standby_settings settings;
    struct agent_standby_starter starter;
    struct event_loop *loop;
    struct event_timer *timer;   /* of the plan */
    struct event_timer *passage; /* of those who are awaited */
    struct hook_directory hook;
    struct learned_list learned; /* by any of them */
    struct place *places;        /* by local rank */
    struct standby_probe probe;
    struct warm_parent parent;
    char *told_failure; /* of a program above its line, the last that was told; NULL: none */
};

static enum log_level level_of_none(const struct agent_standby *standby) {
    return standby_level_of_none(standby->settings.config);
}

static void post(struct agent_standby *standby, struct standby_event event) {
    standby->settings.post(
        standby->settings.context, &(struct node_event){.part = NODE_STANDBY, .standby = event});
}

static void post_rank(struct agent_standby *standby, enum standby_event_kind kind, int local_rank) {
    post(standby, (struct standby_event){.kind = kind, .local_rank = local_rank});
}

/* Life. */

static void timer_fired(void *context) {
    post(context, (struct standby_event){.kind = STANDBY_EVENT_TIMER_FIRED});
}

static void passage_is_late(void *context);

static enum failure_code open_hook(struct agent_standby *standby, struct failure *failure) {
    if (!standby_is_for_python(standby->settings.config)) {
        return FAILURE_NONE;
    }
    enum failure_code code =
        hook_directory_open_within(duration_from_seconds(DISK_PATIENCE_SECONDS), "/proc/self/exe",
            temporary_directory_candidate(NULL, 0), &standby->hook, failure);
    if (code == FAILURE_NONE && standby->hook.is_private) {
        guardian_remove_at_end(
            standby->settings.guardian, GUARDIAN_REMAINS_TREE, standby->hook.path);
    }
    return code;
}

enum failure_code agent_standby_new(struct event_loop *loop,
    const struct agent_standby_settings *settings, struct agent_standby **out_standby,
    struct failure *failure) {
    struct agent_standby *standby = memory_allocate(sizeof *standby);
    standby->settings = *settings;
    standby->loop = loop;
    standby->places = memory_allocate((size_t)settings->worker_count * sizeof *standby->places);
    for (int rank = 0; rank < settings->worker_count; rank++) {
        worker_record_init(&standby->places[rank].record);
        learned_list_init(&standby->places[rank].learned);
    }
    learned_list_init(&standby->learned);
    learned_list_init(&standby->parent.learned);
    standby->parent.is_off =
        !settings->config->has_standby_parent || !standby_is_for_python(settings->config);
    standby->timer = event_timer_new(loop, timer_fired, standby);
    standby->passage = event_timer_new(loop, passage_is_late, standby);
    enum failure_code code = open_hook(standby, failure);
    if (code != FAILURE_NONE) {
        agent_standby_free(standby);
        return code;
    }
    *out_standby = standby;
    return FAILURE_NONE;
}

static void forget_spare(struct place *place) {
    standby_spare_free(place->spare);
    place->spare = NULL;
    place->is_awaited = false;
}

void agent_standby_free(struct agent_standby *standby) {
    if (standby == NULL) {
        return;
    }
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        forget_spare(&standby->places[rank]);
        worker_record_clear(&standby->places[rank].record);
        learned_list_clear(&standby->places[rank].learned);
        text_list_clear(&standby->places[rank].environment);
    }
    (void)standby_probe_end(&standby->probe);
    standby_spare_free(standby->parent.process);
    learned_list_clear(&standby->parent.learned);
    hook_directory_close_within(duration_from_seconds(DISK_PATIENCE_SECONDS), &standby->hook);
    learned_list_clear(&standby->learned);
    free(standby->told_failure);
    event_timer_free(standby->timer);
    event_timer_free(standby->passage);
    free(standby->places);
    free(standby);
}

void agent_standby_attach(
    struct agent_standby *standby, const struct agent_standby_starter *starter) {
    if (standby != NULL) {
        standby->starter = *starter;
    }
}

/* Workers that record. */

static bool renew_record(struct agent_standby *standby, struct place *place) {
    const struct death_notice_events events = {standby->starter.ending, standby->starter.context};
    return worker_record_renew(&place->record, standby->loop, &events);
}

static void remember(struct place *place, const struct text_list *environment) {
    text_list_clear(&place->environment);
    text_list_add_all(&place->environment, environment);
}

int agent_standby_dress(
    struct agent_standby *standby, int local_rank, struct text_list *environment) {
    if (standby == NULL) {
        return -1;
    }
    struct place *place = &standby->places[local_rank];
    remember(place, environment);
    if (renew_record(standby, place)) {
        const struct standby_dress dress = {.role = STANDBY_RECORD,
            .hook_directory = standby->hook.path,
            .evidence_signal = standby->settings.config->evidence_signal};
        standby_environment_dress(environment, &dress);
    }
    return place->record.fd;
}

int agent_standby_record(const struct agent_standby *standby, int local_rank) {
    return standby != NULL ? standby->places[local_rank].record.fd : -1;
}

void agent_standby_note_worker(struct agent_standby *standby, int local_rank, pid_t pid) {
    if (standby != NULL) {
        standby->places[local_rank].record.worker = pid;
        standby->places[local_rank].worker_of = 0;
    }
}

void agent_standby_expect_end(struct agent_standby *standby, int local_rank) {
    if (standby != NULL) {
        worker_record_expect_end(&standby->places[local_rank].record);
    }
}

static void end_parent(struct agent_standby *standby);

static bool has_line(const struct place *place) {
    return learned_list_lines(&place->learned) > 0;
}

/* Of what is to be forked. */
static bool is_parent_needed(const struct agent_standby *standby) {
    bool is_needed = false;
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        is_needed = is_needed || !has_line(&standby->places[rank]);
    }
    return is_needed;
}

/* A worker may have come to a line of its program that nobody has come to before. */
static void note_line(struct agent_standby *standby, int local_rank) {
    struct place *place = &standby->places[local_rank];
    size_t lines = learned_list_lines(&place->learned);
    if (lines > place->lines) {
        if (!is_parent_needed(standby)) {
            end_parent(standby);
        }
        post_rank(standby, STANDBY_EVENT_LINE, local_rank);
    }
    place->lines = lines;
}

/* Returns for how long it has not grown. */
static int64_t read_record(struct agent_standby *standby, int local_rank, struct instant now) {
    struct place *place = &standby->places[local_rank];
    if (worker_record_look(&place->record, &place->learned, now)) {
        (void)learned_list_add_text(&standby->learned, learned_list_text(&place->learned));
        post_rank(standby, STANDBY_EVENT_HELLO, local_rank);
        note_line(standby, local_rank);
    }
    return now.nanoseconds - place->record.grown.nanoseconds;
}

/* Those that wait make the pages their own that they will need: at a look, when the workers have
 * had the CPUs for their start. */
static void make_pages_own(struct agent_standby *standby) {
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        const struct place *place = &standby->places[rank];
        if (place->spare != NULL && !place->is_awaited && standby_spare_is_forked(place->spare)) {
            standby_spare_make_own(place->spare);
        }
    }
}

/* Workers of the parent's present state tell which these are: it has changed none of their pages
 * since. */
static void look_at_pages(struct agent_standby *standby) {
    struct warm_parent *parent = &standby->parent;
    int count = standby->settings.worker_count;
    if (parent->process == NULL || !standby_spare_words(parent->process)->is_ready) {
        return;
    }
    for (int i = 0; i < count && parent->looks < PAGE_LOOKS_MAXIMUM; i++) {
        const struct place *place = &standby->places[(parent->looks + i) % count];
        if (place->worker_of == parent->state) {
            parent->looks++;
            standby_spare_look_at(parent->process, place->record.worker);
            return; /* its answer comes first */
        }
    }
    make_pages_own(standby);
}

/* Bytes of memory; none where there are hardly processes. */
static uint64_t room(void) {
    return task_limit_is_near("") ? 0 : memory_limit_room("");
}

static void look(struct agent_standby *standby) {
    struct instant now = event_loop_now(standby->loop);
    struct standby_event event = {
        .kind = STANDBY_EVENT_RECORDS, .records = {.quiet = DURATION_FOREVER}};
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        if (standby->places[rank].record.fd != -1) {
            int64_t quiet = read_record(standby, rank, now);
            int64_t least = event.records.quiet.nanoseconds;
            event.records.quiet.nanoseconds = quiet < least ? quiet : least;
        }
    }
    event.records.modules = learned_list_count(&standby->learned);
    event.records.memory = room();
    post(standby, event);
    look_at_pages(standby);
}

/* Spares. */

static void give_away(struct agent_standby *standby, int local_rank) {
    struct place *place = &standby->places[local_rank];
    place->record.worker = standby_spare_pid(place->spare);
    place->worker_of = place->spare_of;
    place->is_owed = false;
    death_notice_look(place->record.notice, place->record.worker);
    forget_spare(place);
    post_rank(standby, STANDBY_EVENT_SPARE_GIVEN, local_rank);
}

/* Its last words may be that it cannot be used, or that it is out of date: another one could be. */
static void take_back(struct agent_standby *standby, int local_rank) {
    struct place *place = &standby->places[local_rank];
    const struct standby_spare_words *words = standby_spare_words(place->spare);
    bool is_dirty = words->reason != NULL && !words->is_unsuited;
    if (is_dirty) {
        standby_tell_dirty(
            standby->settings.log, standby->settings.config, local_rank, words->reason);
    } else if (words->reason != NULL) {
        standby_tell_outdated(standby->settings.log, local_rank, words->reason);
    }
    place->is_owed = false;
    process_family_take_back(standby->starter.family, standby_spare_pid(place->spare));
    worker_record_clear(&place->record);
    forget_spare(place);
    post_rank(
        standby, is_dirty ? STANDBY_EVENT_SPARE_DIRTY : STANDBY_EVENT_SPARE_REFUSED, local_rank);
}

static void settle(struct agent_standby *standby, int local_rank, bool has_gone_through) {
    (has_gone_through ? give_away : take_back)(standby, local_rank);
}

static void settle_and_tell(struct agent_standby *standby, int local_rank, bool has_gone_through) {
    settle(standby, local_rank, has_gone_through);
    standby->starter.settled(standby->starter.context, local_rank, has_gone_through);
}

/* Nothing more is told of it. */
static void end_spare(struct agent_standby *standby, int local_rank) {
    struct place *place = &standby->places[local_rank];
    place->is_owed = false;
    if (place->spare != NULL && !place->is_awaited) {
        if (standby_spare_pid(place->spare) != 0) { /* else it ends at its gate */
            process_family_end_spare(standby->starter.family, standby_spare_pid(place->spare));
        }
        forget_spare(place);
    }
}

/* The program has failed in it. What has been told is not told again. */
static void take_failed(struct agent_standby *standby, int local_rank) {
    const char *reason = standby_spare_words(standby->places[local_rank].spare)->reason;
    if (standby->told_failure == NULL || strcmp(reason, standby->told_failure) != 0) {
        log_record(standby->settings.log, level_of_none(standby), LOG_ORIGIN,
            "the standby worker of local rank %d has failed above the line of its program: %s; "
            "workers are started cold until another one comes there",
            local_rank, reason);
        free(standby->told_failure);
        standby->told_failure = memory_duplicate_string(reason);
    }
    end_spare(standby, local_rank);
    post_rank(standby, STANDBY_EVENT_SPARE_FAILED, local_rank);
}

static void tell_unsuited(const struct agent_standby *standby, int local_rank, size_t count) {
    const struct standby_spare_words *words =
        standby_spare_words(standby->places[local_rank].spare);
    const char *name = words->left_out.count > 0 ? words->left_out.items[0] : "";
    if (strncmp(name, LEARNED_LIST_LINE, strlen(LEARNED_LIST_LINE)) != 0) {
        standby_tell_unsuited(standby->settings.log, local_rank, words->reason, count);
        return;
    }
    log_record(standby->settings.log, level_of_none(standby), LOG_ORIGIN,
        "the standby worker of local rank %d cannot come to the line of its program: %s; standby "
        "workers only import what workers do from now on",
        local_rank, words->reason);
}

/* The next spares leave out what it has named. */
static void take_unsuited(struct agent_standby *standby, int local_rank) {
    const struct standby_spare *spare = standby->places[local_rank].spare;
    size_t count = standby_spare_cut(spare, &standby->learned);
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        (void)standby_spare_cut(spare, &standby->places[rank].learned);
    }
    tell_unsuited(standby, local_rank, count);
    end_spare(standby, local_rank);
    post(standby, (struct standby_event){
                      .kind = STANDBY_EVENT_SPARE_UNSUITED, .unsuited = {local_rank, count > 0}});
}

static void spare_spoke(void *context, int local_rank);

/* Those that a warm parent has forked have its memory in common. */
static uint64_t memory_of(const struct agent_standby *standby, const struct standby_spare *spare) {
    uint64_t kib = standby_spare_words(spare)->memory_kib;
    if (standby_spare_is_forked(spare) && standby->parent.process != NULL) {
        kib += standby_spare_words(standby->parent.process)->memory_kib /
               (unsigned)standby->settings.worker_count;
    }
    return kib * 1024;
}

static struct standby_spare_order order_of(struct agent_standby *standby, int local_rank) {
    struct place *place = &standby->places[local_rank];
    return (struct standby_spare_order){
        .local_rank = local_rank,
        .environment = &place->environment,
        .hook_directory = standby->hook.path,
        .evidence_signal = standby->settings.config->evidence_signal,
        .rest = standby->settings.config->standby_rest,
        .is_alone = place->is_alone,
        .list = learned_list_text(&place->learned),
        .starter = &standby->starter,
        .spoke = spare_spoke,
        .context = standby,
    };
}

/* Somebody may have tidied up the directory for temporary files. A standby worker without the hook
 * would run the program. */
static enum failure_code renew_hook(struct agent_standby *standby, struct failure *failure) {
    bool is_renewed;
    enum failure_code code = hook_directory_renew_within(
        duration_from_seconds(RENEWAL_PATIENCE_SECONDS), &standby->hook, &is_renewed, failure);
    if (code == FAILURE_NONE && is_renewed) {
        guardian_remove_at_end(
            standby->settings.guardian, GUARDIAN_REMAINS_TREE, standby->hook.path);
        log_record(standby->settings.log, level_of_none(standby), LOG_ORIGIN,
            "the hook of standby workers, %s, was removed while the job ran; it is made anew",
            standby->hook.path);
    }
    return code;
}

static void start_spare(struct agent_standby *standby, int local_rank) {
    struct failure failure = {0};
    standby->places[local_rank].spare_of = 0;
    struct standby_spare_order order = order_of(standby, local_rank);
    if (renew_hook(standby, &failure) != FAILURE_NONE ||
        standby_spare_start(standby->loop, &order, &standby->places[local_rank].spare, &failure) !=
            FAILURE_NONE) {
        log_record(standby->settings.log, level_of_none(standby), LOG_ORIGIN,
            "the standby worker of local rank %d could not be started: %s", local_rank,
            failure.message);
        post(standby, (struct standby_event){.kind = STANDBY_EVENT_SPARE_ENDED,
                          .ended = {local_rank, {.is_signal = true}}});
    }
}

/* The warm parent. */

static void parent_spoke(void *context, int local_rank);

static void tell_parent(struct agent_standby *standby, bool is_ready) {
    if (standby->parent.is_told != is_ready) {
        standby->parent.is_told = is_ready;
        post(standby,
            (struct standby_event){.kind = STANDBY_EVENT_PARENT, .parent = {.is_there = is_ready}});
    }
}

/* Those that it has forked live on. */
static void end_parent(struct agent_standby *standby) {
    struct warm_parent *parent = &standby->parent;
    if (parent->process != NULL) {
        process_family_end_spare(standby->starter.family, standby_spare_pid(parent->process));
        standby_spare_free(parent->process);
        parent->process = NULL;
    }
    tell_parent(standby, false);
}

static void give_up_parent(struct agent_standby *standby, const char *reason) {
    standby_tell_separate(standby->settings.log, reason);
    standby->parent.is_off = true;
    end_parent(standby);
}

/* What all ranks have. Environments of workers without their rank. */
static char *difference_of_ranks(
    const struct agent_standby *standby, const struct text_list *before) {
    char *difference = NULL;
    for (int rank = 0; rank < standby->settings.worker_count && difference == NULL; rank++) {
        struct text_list common = {0};
        text_list_add_all(&common, &standby->places[rank].environment);
        standby_environment_drop_rank(&common);
        const char *entry = common.count == 0 || before->count == 0
                                ? NULL
                                : standby_environment_difference(before, &common);
        difference = entry == NULL ? NULL : text_format("%.*s", (int)strcspn(entry, "="), entry);
        text_list_clear(&common);
    }
    return difference;
}

/* Why there can be no parent at all; the caller frees it. NULL: there can. */
static char *why_no_parent(const struct agent_standby *standby) {
    static const char *const bindings[] = {
        "GOMP_CPU_AFFINITY", "OMP_PLACES", "OMP_PROC_BIND", "KMP_AFFINITY"};
    const struct text_list *environment = &standby->places[0].environment;
    struct text_list common = {0};
    if (standby->settings.config->numa_binding != LAUNCH_NUMA_NONE) {
        return text_format("each worker has CPUs of its own (--numa-binding)");
    }
    for (size_t i = 0; i < sizeof bindings / sizeof *bindings; i++) {
        if (text_list_variable(environment, bindings[i]) != NULL) {
            return text_format("%s binds threads to CPUs", bindings[i]);
        }
    }
    text_list_add_all(&common, environment);
    standby_environment_drop_rank(&common);
    char *name = difference_of_ranks(standby, &common);
    text_list_clear(&common);
    char *reason =
        name == NULL ? NULL : text_format("%s is not the same for all local ranks", name);
    free(name);
    return reason;
}

/* Adds what workers of all ranks have imported. */
static void add_common(struct agent_standby *standby, struct learned_list *list) {
    size_t count = (size_t)standby->settings.worker_count;
    const struct learned_list **lists = memory_allocate(count * sizeof *lists);
    for (size_t rank = 0; rank < count; rank++) {
        lists[rank] = &standby->places[rank].learned;
    }
    learned_list_add_common(list, lists, count);
    free((void *)lists);
}

static void start_parent(struct agent_standby *standby, bool is_alone) {
    struct failure failure = {0};
    struct standby_spare_order order = order_of(standby, 0);
    char *reason = why_no_parent(standby);
    if (reason != NULL) {
        give_up_parent(standby, reason);
        free(reason);
        return;
    }
    add_common(standby, &standby->parent.learned);
    order.is_parent = true;
    order.is_alone = is_alone;
    order.list = learned_list_text(&standby->parent.learned);
    order.spoke = parent_spoke;
    if (renew_hook(standby, &failure) != FAILURE_NONE ||
        standby_spare_start(standby->loop, &order, &standby->parent.process, &failure) !=
            FAILURE_NONE) {
        give_up_parent(standby, failure.message);
        return;
    }
    standby_spare_drop_rank(standby->parent.process);
    standby->parent.state++;
    standby->parent.looks = 0;
}

static void fork_spare(struct agent_standby *standby, int local_rank) {
    struct place *place = &standby->places[local_rank];
    struct standby_spare_order order = order_of(standby, local_rank);
    end_spare(standby, local_rank); /* it knows less */
    place->spare_of = standby->parent.state;
    if (standby_spare_fork(standby->loop, standby->parent.process, &order, &place->spare, NULL) !=
        FAILURE_NONE) {
        place->is_owed = true; /* until its end is heard of */
    }
}

/* Whether there is one that was forked, or is being forked and not here yet. */
static bool is_any_forked(const struct agent_standby *standby, bool is_on_its_way) {
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        const struct standby_spare *spare = standby->places[rank].spare;
        if (spare != NULL && standby_spare_is_forked(spare) &&
            (!is_on_its_way || standby_spare_pid(spare) == 0)) {
            return true;
        }
    }
    return false;
}

/* Makes those that are owed, or what is missing for that. */
static void pay(struct agent_standby *standby) {
    struct warm_parent *parent = &standby->parent;
    bool is_any_owed = false; /* that is to be forked */
    bool is_alone = false;
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        const struct place *place = &standby->places[rank];
        bool is_owed = place->is_owed && !has_line(place);
        is_any_owed = is_any_owed || is_owed;
        is_alone = is_alone || (is_owed && place->is_alone);
    }
    if (is_any_owed && !parent->is_off && parent->process != NULL) {
        char *name = difference_of_ranks(standby, standby_spare_environment(parent->process));
        if (name != NULL) {
            free(name);
            end_parent(standby);
        }
    }
    if (is_any_owed && !parent->is_off && parent->process == NULL) {
        start_parent(standby, is_alone);
    }
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        struct place *place = &standby->places[rank];
        if (!place->is_owed || place->is_awaited) {
            continue;
        }
        if (parent->is_off || has_line(place)) {
            end_spare(standby, rank);
            start_spare(standby, rank);
        } else if (standby_spare_words(parent->process)->is_ready &&
                   !is_any_forked(standby, true)) {
            fork_spare(standby, rank);
        }
    }
}

/* It is of no use. Another one may be, as long as that does not happen again and again. */
static void replace_parent(struct agent_standby *standby, const char *reason) {
    end_parent(standby);
    if (++standby->parent.ends >= PARENT_ENDS_MAXIMUM) {
        give_up_parent(standby, reason);
    }
    pay(standby);
    if (!standby->parent.is_off && standby->parent.process == NULL &&
        is_any_forked(standby, false)) {
        start_parent(standby, false); /* for the next ones */
    }
}

/* It leaves out what it has named, as all do from now on. */
static void take_unsuited_parent(struct agent_standby *standby) {
    struct warm_parent *parent = &standby->parent;
    const struct standby_spare *process = parent->process;
    char *reason = memory_duplicate_string(standby_spare_words(process)->reason);
    size_t count = standby_spare_cut(process, &standby->learned);
    (void)standby_spare_cut(process, &parent->learned);
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        (void)standby_spare_cut(process, &standby->places[rank].learned);
    }
    if (count == 0) {
        log_info(standby->settings.log, "the parent of standby workers is made anew: %s", reason);
    } else {
        log_info(standby->settings.log,
            "the parent of standby workers would not be what a worker is: %s; %zu module(s) wait "
            "for the program from now on: that one, and what imports it",
            reason, count);
        standby->parent.is_told = false;
        post(standby,
            (struct standby_event){.kind = STANDBY_EVENT_PARENT, .parent = {.has_cut = true}});
    }
    replace_parent(standby, reason);
    free(reason);
}

static void parent_spoke(void *context, int local_rank) {
    struct agent_standby *standby = context;
    const struct standby_spare_words *words = standby_spare_words(standby->parent.process);
    (void)local_rank;
    if (words->is_unsuited) {
        take_unsuited_parent(standby);
    } else if (words->reason != NULL) {
        char *reason = memory_duplicate_string(words->reason);
        give_up_parent(standby, reason);
        free(reason);
        pay(standby);
    } else if (words->is_ready) {
        tell_parent(standby, true);
        pay(standby);
        make_pages_own(standby);
    } else if (words->has_reached_hook) {
        for (int rank = 0; rank < standby->settings.worker_count; rank++) {
            if (standby->places[rank].is_owed) {
                post_rank(standby, STANDBY_EVENT_SPARE_HELLO, rank);
            }
        }
    }
}

/* What was to be forked has ended with the parent, for the plan. */
static void end_owed(struct agent_standby *standby, const struct process_exit *how) {
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        if (standby->places[rank].is_owed) {
            standby->places[rank].is_owed = false;
            post(standby,
                (struct standby_event){.kind = STANDBY_EVENT_SPARE_ENDED, .ended = {rank, *how}});
        }
    }
}

static void parent_exited(struct agent_standby *standby, const struct process_exit *how) {
    struct warm_parent *parent = &standby->parent;
    standby_spare_drain(parent->process); /* what it said at last */
    if (parent->process == NULL) {
        return;
    }
    bool was_ready = standby_spare_words(parent->process)->is_ready;
    char *reason =
        text_format("it has ended by %s %d", how->is_signal ? "signal" : "exit status", how->value);
    standby_spare_free(parent->process);
    parent->process = NULL;
    tell_parent(standby, false);
    if (!how->is_signal && !was_ready) { /* it may have run the program */
        end_owed(standby, how);
        give_up_parent(standby, reason);
    } else {
        log_info(standby->settings.log, "the parent of standby workers is made anew: %s", reason);
        replace_parent(standby, reason);
    }
    free(reason);
}

/* One that was forked has said something, but is not known yet. */
static void take_child(struct agent_standby *standby, int local_rank) {
    struct place *place = &standby->places[local_rank];
    add_common(standby, &standby->parent.learned);
    bool has_all =
        learned_list_count(&place->learned) <= learned_list_count(&standby->parent.learned);
    struct slice list = has_all ? slice_from_string("") : learned_list_text(&place->learned);
    if (standby_spare_adopt(place->spare, standby->starter.family, list)) {
        standby->parent.lost = 0;
        post_rank(standby, STANDBY_EVENT_SPARE_HELLO, local_rank);
        pay(standby);
        return;
    }
    end_spare(standby, local_rank);
    place->is_owed = true;
    if (++standby->parent.lost >= PARENT_ENDS_MAXIMUM && !standby->parent.is_off) {
        give_up_parent(standby, "what it forks does not come here");
    }
    pay(standby);
}

/* A spare has said something. What it says when it is awaited ends the wait. */
static void spare_spoke(void *context, int local_rank) {
    struct agent_standby *standby = context;
    struct place *place = &standby->places[local_rank];
    const struct standby_spare_words *words = standby_spare_words(place->spare);
    if (standby_spare_pid(place->spare) == 0) {
        take_child(standby, local_rank);
    } else if (place->is_awaited) {
        if (words->has_gone_through || words->reason != NULL) {
            settle_and_tell(standby, local_rank, words->has_gone_through);
        }
    } else if (words->is_unsuited) {
        take_unsuited(standby, local_rank);
    } else if (words->has_failed) {
        take_failed(standby, local_rank);
    } else if (words->reason != NULL) {
        standby_tell_dirty(
            standby->settings.log, standby->settings.config, local_rank, words->reason);
        post_rank(standby, STANDBY_EVENT_SPARE_DIRTY, local_rank);
    } else if (words->is_ready) {
        post(standby,
            (struct standby_event){.kind = STANDBY_EVENT_SPARE_READY,
                .ready = {local_rank, memory_of(standby, place->spare), words->is_at_line}});
    } else if (words->has_reached_hook) {
        post_rank(standby, STANDBY_EVENT_SPARE_HELLO, local_rank);
    }
}

static void warm(struct agent_standby *standby, const struct standby_effect *effect) {
    struct place *place = &standby->places[effect->local_rank];
    place->is_alone = !effect->makes_way;
    place->is_owed = true;
    pay(standby);
    const struct standby_spare *parent = standby->parent.process;
    if (parent != NULL && standby_spare_words(parent)->has_reached_hook) {
        post_rank(standby, STANDBY_EVENT_SPARE_HELLO, effect->local_rank);
    }
}

static bool teach_parent(struct agent_standby *standby) {
    struct warm_parent *parent = &standby->parent;
    add_common(standby, &standby->parent.learned);
    struct slice list = learned_list_text(&parent->learned);
    if (standby_spare_is_told(parent->process, list)) {
        return true;
    }
    parent->state++;
    parent->looks = 0;
    return standby_spare_teach(parent->process, list);
}

static void teach(struct agent_standby *standby, int local_rank) {
    struct place *place = &standby->places[local_rank];
    if (place->spare == NULL || place->is_awaited) {
        return;
    }
    if (standby_spare_is_forked(place->spare)) { /* it waits until another one is there */
        place->is_owed = true;
        if (standby->parent.process != NULL && !teach_parent(standby)) {
            end_parent(standby);
        }
        pay(standby);
        return;
    }
    if (!standby_spare_teach(place->spare, learned_list_text(&place->learned))) {
        end_spare(standby, local_rank);
        post(standby, (struct standby_event){.kind = STANDBY_EVENT_SPARE_ENDED,
                          .ended = {local_rank, {.is_signal = true}}});
    }
}

/* Before this node joins. */

static void join_cold(struct agent_standby *standby) {
    standby->settings.post(
        standby->settings.context, &(struct node_event){.part = NODE_RENDEZVOUS,
                                       .rendezvous = {.kind = RENDEZVOUS_EVENT_WARMED}});
}

/* The interpreter has run the empty program. */
static void take_probe(struct agent_standby *standby) {
    if (standby_probe_end(&standby->probe)) {
        size_t modules = learned_list_count(&standby->learned);
        post(standby, (struct standby_event){.kind = STANDBY_EVENT_INVITED,
                          .records = {.modules = modules, .memory = room()}});
    } else {
        log_record(standby->settings.log, level_of_none(standby), LOG_ORIGIN,
            "this node has no standby workers before it joins: its Python does not run their hook");
        join_cold(standby);
    }
}

static enum failure_code foresee_all(struct agent_standby *standby, struct failure *failure) {
    enum failure_code code = FAILURE_NONE;
    for (int rank = 0; rank < standby->settings.worker_count && code == FAILURE_NONE; rank++) {
        struct text_list *environment = &standby->places[rank].environment;
        text_list_clear(environment);
        code = standby->starter.foresee(standby->starter.context, rank, environment, failure);
    }
    return code;
}

/* Adds what another node has told. Returns how many modules were new. */
static size_t learn(struct agent_standby *standby, struct slice list_text) {
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        struct place *place = &standby->places[rank];
        (void)learned_list_add_told(&place->learned, list_text);
        place->lines = learned_list_lines(&place->learned);
    }
    return learned_list_add_told(&standby->learned, list_text);
}

bool agent_standby_invite(struct agent_standby *standby, struct slice list_text) {
    struct failure failure = {0};
    if (standby == NULL || standby->hook.path == NULL || standby->probe.pid != 0 ||
        learn(standby, list_text) == 0) {
        return false;
    }
    if (foresee_all(standby, &failure) != FAILURE_NONE ||
        renew_hook(standby, &failure) != FAILURE_NONE ||
        standby_probe_start(&standby->probe, &standby->starter, &standby->places[0].environment,
            standby->hook.path, &failure) != FAILURE_NONE) {
        log_record(standby->settings.log, level_of_none(standby), LOG_ORIGIN,
            "this node has no standby workers before it joins: %s", failure.message);
        return false;
    }
    log_info(standby->settings.log,
        "the job runs: this node makes its standby workers ready before it joins, for %g s at most "
        "(--standby-timeout)",
        duration_seconds(standby->settings.config->standby_timeout));
    return true;
}

void agent_standby_spare_exited(
    struct agent_standby *standby, pid_t pid, const struct process_exit *how) {
    if (standby->probe.pid == pid) {
        take_probe(standby);
        return;
    }
    if (standby->parent.process != NULL && standby_spare_pid(standby->parent.process) == pid) {
        parent_exited(standby, how);
        return;
    }
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        struct place *place = &standby->places[rank];
        if (place->spare == NULL || standby_spare_pid(place->spare) != pid) {
            continue;
        }
        standby_spare_drain(place->spare); /* what it said at last */
        if (place->spare != NULL) {
            forget_spare(place);
            post(standby,
                (struct standby_event){.kind = STANDBY_EVENT_SPARE_ENDED, .ended = {rank, *how}});
        }
        return;
    }
}

/* Going through the gate. */

static enum failure_code send(struct agent_standby *standby, struct place *place,
    const struct text_list *environment, const int streams[2], struct failure *failure) {
    const char *difference = standby_spare_difference(place->spare, environment);
    remember(place, environment);
    if (difference != NULL) {
        return failure_set(failure, FAILURE_INVALID,
            "%.*s is another one in the environment of the worker now",
            (int)strcspn(difference, "="), difference);
    }
    if (!renew_record(standby, place)) {
        return failure_set(failure, FAILURE_LIMIT, "there is no memory for its record");
    }
    return standby_spare_send(place->spare, environment, streams, place->record.fd, failure);
}

static void await_passage(struct agent_standby *standby) {
    event_timer_set(standby->passage, instant_after(event_loop_now(standby->loop),
                                          duration_from_milliseconds(PASSAGE_MILLISECONDS)));
}

pid_t agent_standby_give(struct agent_standby *standby, int local_rank,
    const struct text_list *environment, const int streams[2]) {
    struct place *place = standby == NULL ? NULL : &standby->places[local_rank];
    struct failure failure = {0};
    if (place != NULL && local_rank == 0 && /* once for all places */
        renew_hook(standby, &failure) != FAILURE_NONE) {
        log_record(standby->settings.log, level_of_none(standby), LOG_ORIGIN,
            "there may be no standby workers: %s", failure.message);
    }
    if (place == NULL || place->spare == NULL || !standby_spare_words(place->spare)->is_ready) {
        return 0;
    }
    if (send(standby, place, environment, streams, &failure) != FAILURE_NONE) {
        log_info(standby->settings.log,
            "the standby worker of local rank %d is not used: %s; the worker is started anew",
            local_rank, failure.message);
        end_spare(standby, local_rank);
        post_rank(standby, STANDBY_EVENT_SPARE_REFUSED, local_rank);
        return 0;
    }
    place->is_awaited = true;
    place->late_looks = 0;
    process_family_give(standby->starter.family, standby_spare_pid(place->spare), local_rank);
    await_passage(standby);
    return standby_spare_pid(place->spare);
}

/* Whether the spare has gone through its gate, which it can no longer do from now on. */
static bool shut(struct place *place) {
    place->is_awaited = false; /* nobody hears what it says */
    standby_spare_shut(place->spare);
    return standby_spare_words(place->spare)->has_gone_through;
}

void agent_standby_settle(struct agent_standby *standby, int local_rank) {
    settle_and_tell(standby, local_rank, shut(&standby->places[local_rank]));
}

bool agent_standby_give_up(struct agent_standby *standby, int local_rank) {
    bool has_gone_through = shut(&standby->places[local_rank]);
    settle(standby, local_rank, has_gone_through);
    return has_gone_through;
}

static bool is_at_work(const struct place *place) {
    struct kernel_process_stat stat;
    return process_table_read(standby_spare_pid(place->spare), &stat) &&
           (stat.state == 'R' || stat.state == 'D');
}

/* What it has said meanwhile counts: the loop may have stood still. */
static void give_up_late(struct agent_standby *standby, int local_rank) {
    struct place *place = &standby->places[local_rank];
    bool has_gone_through = shut(place);
    if (!has_gone_through && standby_spare_words(place->spare)->reason == NULL) {
        log_warning(standby->settings.log,
            "the standby worker of local rank %d does not answer; the worker is started anew",
            local_rank);
    }
    settle_and_tell(standby, local_rank, has_gone_through);
}

static void passage_is_late(void *context) {
    struct agent_standby *standby = context;
    for (int rank = 0; rank < standby->settings.worker_count; rank++) {
        struct place *place = &standby->places[rank];
        if (!place->is_awaited) {
            continue;
        }
        if (++place->late_looks == PASSAGE_LOOKS || !is_at_work(place)) {
            give_up_late(standby, rank);
            continue;
        }
        if (place->late_looks == 1) {
            log_info(standby->settings.log,
                "the standby worker of local rank %d takes long to become the worker; it runs, and "
                "is waited for",
                rank);
        }
        await_passage(standby);
    }
}

/* Effects. */

/* The workers of another node are none of the first ranks, and what not all import here may not be
 * theirs. */
static void publish(struct agent_standby *standby) {
    struct learned_list common;
    learned_list_init(&common);
    add_common(standby, &common);
    standby->settings.publish(standby->settings.context, learned_list_shared_text(&common));
    learned_list_clear(&common);
}

void agent_standby_perform(struct agent_standby *standby, const struct standby_effect *effect) {
    if (standby == NULL) {
        return;
    }
    switch (effect->kind) {
    case STANDBY_EFFECT_WARM:
        warm(standby, effect);
        break;
    case STANDBY_EFFECT_TEACH:
        teach(standby, effect->local_rank);
        break;
    case STANDBY_EFFECT_END_SPARE:
        end_spare(standby, effect->local_rank);
        break;
    case STANDBY_EFFECT_END_ALL:
        for (int rank = 0; rank < standby->settings.worker_count; rank++) {
            end_spare(standby, rank);
        }
        end_parent(standby);
        break;
    case STANDBY_EFFECT_LOOK:
        look(standby);
        break;
    case STANDBY_EFFECT_PUBLISH:
        publish(standby);
        break;
    case STANDBY_EFFECT_ARM_TIMER:
        event_timer_set(standby->timer, effect->deadline);
        break;
    case STANDBY_EFFECT_DISARM_TIMER:
        event_timer_stop(standby->timer);
        break;
    case STANDBY_EFFECT_TELL_AWAITED:
    case STANDBY_EFFECT_TELL_READY:
    case STANDBY_EFFECT_TELL_TAUGHT:
    case STANDBY_EFFECT_TELL_USED:
    case STANDBY_EFFECT_TELL_OFF:
    case STANDBY_EFFECT_TELL_SCARCE:
    case STANDBY_EFFECT_TELL_SILENT:
        standby_tell(standby->settings.log, standby->settings.config, effect);
        break;
    case STANDBY_EFFECT_WARMED: /* the rendezvous' */
    case STANDBY_EFFECT_COUNT:
        break;
    }
}

/* Evidence. */

struct hang_evidence_dump agent_standby_dump(
    const struct agent_standby *standby, int local_rank, pid_t pid) {
    if (standby == NULL || local_rank < 0 ||
        !worker_record_can_answer(&standby->places[local_rank].record, pid)) {
        return (struct hang_evidence_dump){0};
    }
    return (struct hang_evidence_dump){
        standby->places[local_rank].record.fd, standby->settings.config->evidence_signal};
}
