/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/chronicle.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "base/utf8.h"
#include "core/telling/round_reason.h"
#include "core/workers/signal_name.h"

#define NODE_NAME_MAXIMUM 200
#define BIT(field) (UINT64_C(1) << (field))

/* Forms. */

struct kind_form {
    const char *name;
    uint64_t fields;
};

static const struct kind_form kinds[CHRONICLE_KIND_COUNT] = {
    [CHRONICLE_JOINED] = {"joined", BIT(CHRONICLE_RANK) | BIT(CHRONICLE_FIRST_RANK) |
                                        BIT(CHRONICLE_WORKERS) | BIT(CHRONICLE_VERSION)},
    [CHRONICLE_NODE_LEFT] = {"node_left", BIT(CHRONICLE_REASON)},
    [CHRONICLE_NODE_LOST] = {"node_lost",
        BIT(CHRONICLE_SILENCE) | BIT(CHRONICLE_LAST_HEARD) | BIT(CHRONICLE_REASON)},
    [CHRONICLE_WORLD] = {"world", BIT(CHRONICLE_NODES) | BIT(CHRONICLE_WORKERS) |
                                      BIT(CHRONICLE_REASON) | BIT(CHRONICLE_CHARGED) |
                                      BIT(CHRONICLE_USED) | BIT(CHRONICLE_MAX)},
    [CHRONICLE_STARTED] = {"started",
        BIT(CHRONICLE_ATTEMPT) | BIT(CHRONICLE_FROM_STANDBY) | BIT(CHRONICLE_LAST)},
    [CHRONICLE_WORKER_FAILED] = {"worker_failed",
        BIT(CHRONICLE_RANK) | BIT(CHRONICLE_LOCAL_RANK) | BIT(CHRONICLE_PID) | BIT(CHRONICLE_EXIT) |
            BIT(CHRONICLE_SIGNAL) | BIT(CHRONICLE_TEXT) | BIT(CHRONICLE_FIRST)},
    [CHRONICLE_STOPPING] = {"stopping",
        BIT(CHRONICLE_REASON) | BIT(CHRONICLE_CAUSE) | BIT(CHRONICLE_LAST)},
    [CHRONICLE_STOPPED] = {"stopped", BIT(CHRONICLE_REASON) | BIT(CHRONICLE_LAST)},
    [CHRONICLE_WAITING] = {"waiting",
        BIT(CHRONICLE_HERE) | BIT(CHRONICLE_MIN) | BIT(CHRONICLE_MAX) | BIT(CHRONICLE_MISSING)},
    [CHRONICLE_RESTART] = {"restart",
        BIT(CHRONICLE_USED) | BIT(CHRONICLE_MAX) | BIT(CHRONICLE_CAUSE)},
    [CHRONICLE_PROGRESS] = {"progress",
        BIT(CHRONICLE_STEP) | BIT(CHRONICLE_RATE) | BIT(CHRONICLE_SOURCE)},
    [CHRONICLE_TRAINING] = {"training",
        BIT(CHRONICLE_TOOK) | BIT(CHRONICLE_LAST) | BIT(CHRONICLE_SOURCE)},
    [CHRONICLE_CHECKPOINT] = {"checkpoint", BIT(CHRONICLE_STEP)},
    [CHRONICLE_HANG] = {"hang",
        BIT(CHRONICLE_RANK) | BIT(CHRONICLE_WHAT) | BIT(CHRONICLE_WHERE) | BIT(CHRONICLE_SILENCE)},
    [CHRONICLE_SLOW] = {"slow", BIT(CHRONICLE_RANK) | BIT(CHRONICLE_RATIO)},
    [CHRONICLE_SPARES] = {"spares", BIT(CHRONICLE_READY) | BIT(CHRONICLE_OF)},
    [CHRONICLE_HOST] = {"host", BIT(CHRONICLE_TERM) | BIT(CHRONICLE_FROM)},
    [CHRONICLE_EXCLUDED] = {"excluded", BIT(CHRONICLE_REASON) | BIT(CHRONICLE_RESULT)},
    [CHRONICLE_ENDED] = {"ended", BIT(CHRONICLE_RESULT) | BIT(CHRONICLE_REASON)},
};

static const char *const field_names[CHRONICLE_FIELD_COUNT] = {"rank", "first_rank", "local_rank",
    "pid", "exit", "signal", "workers", "nodes", "attempt", "from_standby", "used", "max", "here",
    "min", "missing", "ready", "of", "step", "term", "last", "charged", "first", "silence",
    "last_heard", "took", "rate", "ratio", "version", "reason", "text", "cause", "what", "where",
    "result", "source", "from"};
static const char *const sources[] = {"none", "optimizer", "program"};
static const char *const severities[] = {"info", "warning", "error"};
static const char *const causes[] = {
    NULL, "worker_failed", "node_lost", "hang", "node_left", "scale_up", "signal"};

const char *chronicle_kind_name(enum chronicle_kind kind) {
    return kinds[kind].name;
}

enum chronicle_kind chronicle_kind_from_name(const char *name) {
    int kind = 0;
    while (kind < CHRONICLE_KIND_COUNT && !text_equals(kinds[kind].name, name)) {
        kind++;
    }
    return (enum chronicle_kind)kind;
}

const char *chronicle_severity_name(enum chronicle_severity severity) {
    return severities[severity];
}

enum chronicle_severity chronicle_severity_from_name(const char *name) {
    int severity = 0;
    while (severity < CHRONICLE_SEVERITY_COUNT && !text_equals(severities[severity], name)) {
        severity++;
    }
    return (enum chronicle_severity)severity;
}

const char *chronicle_cause_name(enum chronicle_cause cause) {
    return causes[cause];
}

enum chronicle_cause chronicle_cause_from_name(const char *name) {
    int cause = CHRONICLE_CAUSE_NONE + 1;
    if (name == NULL) {
        return CHRONICLE_CAUSE_NONE;
    }
    while (cause < CHRONICLE_CAUSE_COUNT && !text_equals(causes[cause], name)) {
        cause++;
    }
    return (enum chronicle_cause)cause;
}

const char *progress_source_name(enum progress_source source) {
    return sources[source];
}

enum progress_source progress_source_from_name(const char *name) {
    int source = name != NULL ? PROGRESS_SOURCE_COUNT - 1 : PROGRESS_NONE;
    while (source > PROGRESS_NONE && !text_equals(sources[source], name)) {
        source--;
    }
    return (enum progress_source)source;
}

const char *chronicle_field_name(enum chronicle_field field) {
    return field_names[field];
}

enum chronicle_type chronicle_field_type(enum chronicle_field field) {
    return field <= CHRONICLE_LAST    ? CHRONICLE_INTEGER
           : field <= CHRONICLE_FIRST ? CHRONICLE_FLAG
           : field <= CHRONICLE_TOOK  ? CHRONICLE_SECONDS
           : field <= CHRONICLE_RATIO ? CHRONICLE_RATE_TYPE
                                      : CHRONICLE_TEXT_TYPE;
}

bool chronicle_kind_has(enum chronicle_kind kind, enum chronicle_field field) {
    return (kinds[kind].fields & BIT(field)) != 0;
}

/* Entries. */

static const struct chronicle_value *find_value(
    const struct chronicle_entry *entry, enum chronicle_field field) {
    for (int i = 0; i < entry->value_count; i++) {
        if (entry->values[i].field == field) {
            return &entry->values[i];
        }
    }
    return NULL;
}

static struct chronicle_value *new_value(
    struct chronicle_entry *entry, enum chronicle_field field) {
    assert(entry->value_count < CHRONICLE_VALUES_MAXIMUM);
    assert(chronicle_kind_has(entry->kind, field));
    struct chronicle_value *value = &entry->values[entry->value_count++];
    value->field = field;
    return value;
}

void chronicle_entry_clear(struct chronicle_entry *entry) {
    for (int i = 0; i < entry->value_count; i++) {
        if (chronicle_field_type(entry->values[i].field) == CHRONICLE_TEXT_TYPE) {
            free(entry->values[i].text);
        }
    }
    free(entry->node);
    *entry = (struct chronicle_entry){0};
}

/* As JSON spells it. */
static size_t spelled_length(const char *text) {
    size_t length = 0;
    for (; *text != '\0'; text++) {
        length += *text == '"' || *text == '\\' ? 2 : 1;
    }
    return length;
}

char *chronicle_clean_text(const char *given, size_t most) {
    char *line = memory_duplicate_string(given);
    size_t kept = 0;
    size_t spelled = 0;
    utf8_make_line_printable(line);
    size_t length = strlen(line);
    while (kept < length) {
        const uint8_t *bytes = (const uint8_t *)line + kept;
        size_t size = utf8_character_length(bytes, length - kept);
        spelled += size + (*bytes == '"' || *bytes == '\\' ? 1 : 0);
        if (spelled > most) {
            break;
        }
        kept += size;
    }
    line[kept] = '\0';
    return line;
}

void chronicle_entry_add(
    struct chronicle_entry *entry, enum chronicle_field field, int64_t number) {
    new_value(entry, field)->number = number;
}

void chronicle_entry_add_rate(
    struct chronicle_entry *entry, enum chronicle_field field, double rate) {
    new_value(entry, field)->rate = rate;
}

/* All texts of an entry share the room. */
void chronicle_entry_add_text(
    struct chronicle_entry *entry, enum chronicle_field field, const char *text) {
    size_t most = CHRONICLE_TEXT_MAXIMUM;
    for (int i = 0; i < entry->value_count; i++) {
        if (chronicle_field_type(entry->values[i].field) == CHRONICLE_TEXT_TYPE) {
            size_t length = spelled_length(entry->values[i].text);
            most -= length < most ? length : most;
        }
    }
    if (text != NULL) {
        new_value(entry, field)->text = chronicle_clean_text(text, most);
    }
}

void chronicle_entry_set_node(struct chronicle_entry *entry, const char *name) {
    free(entry->node);
    entry->node = chronicle_clean_text(name, NODE_NAME_MAXIMUM);
}

int64_t chronicle_entry_number(
    const struct chronicle_entry *entry, enum chronicle_field field, int64_t absent) {
    const struct chronicle_value *value = find_value(entry, field);
    return value == NULL ? absent : value->number;
}

double chronicle_entry_rate(
    const struct chronicle_entry *entry, enum chronicle_field field, double absent) {
    const struct chronicle_value *value = find_value(entry, field);
    return value == NULL ? absent : value->rate;
}

const char *chronicle_entry_text(const struct chronicle_entry *entry, enum chronicle_field field) {
    const struct chronicle_value *value = find_value(entry, field);
    return value == NULL ? NULL : value->text;
}

/* The chronicle: a ring of entries. */

struct chronicle {
    struct chronicle_settings settings;
    struct chronicle_entry *entries;
    size_t capacity;
    size_t first; /* of those that are kept, in the ring */
    size_t count;
    size_t told_count; /* of them; the first that is not told is open */
    size_t bytes;
    int64_t next_seq;
    struct wall_time last_time;
    size_t failures_seen; /* of this attempt */
    int last_local_rank;  /* the worker that has ended last in it */
    int hung_local_rank;  /* the worker that hangs in it; -1: none does */
    char *hung;           /* what the job hangs on; or NULL */
    bool has_started;
    int restarts;               /* that the job had used when the last round was joined */
    uint64_t from_standby;      /* the workers that were, before this start */
    enum chronicle_cause cause; /* of the next world */
    char *reason;               /* of it, or NULL */
    enum agent_stop_reason stop_reason;
    char *ended_reason; /* or NULL */
};

static struct chronicle_entry *entry_at(const struct chronicle *chronicle, size_t index) {
    return &chronicle->entries[(chronicle->first + index) % chronicle->capacity];
}

static size_t size_of(const struct chronicle_entry *entry) {
    size_t size = sizeof *entry + strlen(entry->node) + 1;
    for (int i = 0; i < entry->value_count; i++) {
        if (chronicle_field_type(entry->values[i].field) == CHRONICLE_TEXT_TYPE) {
            size += strlen(entry->values[i].text) + 1;
        }
    }
    return size;
}

static void drop(struct chronicle *chronicle, size_t index) {
    struct chronicle_entry *entry = entry_at(chronicle, index);
    chronicle->bytes -= size_of(entry);
    chronicle_entry_clear(entry);
    for (; index > 0; index--) {
        *entry_at(chronicle, index) = *entry_at(chronicle, index - 1);
    }
    chronicle->first = (chronicle->first + 1) % chronicle->capacity;
    chronicle->count--;
    chronicle->told_count -= chronicle->told_count > 0 ? 1 : 0;
}

/* Of the told ones. Days of progress shall not push out why the job has restarted. */
static size_t least_needed(const struct chronicle *chronicle) {
    size_t first = 0;
    size_t count = 0;
    for (size_t i = chronicle->told_count; i-- > 0;) {
        if (entry_at(chronicle, i)->kind == CHRONICLE_PROGRESS) {
            first = i;
            count++;
        }
    }
    return count > CHRONICLE_PROGRESS_MAXIMUM ? first : 0;
}

static bool is_complete(
    const struct chronicle *chronicle, struct chronicle_entry *entry, bool is_late) {
    struct text words = {0};
    bool is_known =
        !entry->is_open || chronicle->settings.words(chronicle->settings.context,
                               (int)chronicle_entry_number(entry, CHRONICLE_LOCAL_RANK, -1),
                               chronicle_entry_number(entry, CHRONICLE_PID, 0), &words);
    if (is_known && words.length > 0) {
        chronicle_entry_add_text(entry, CHRONICLE_TEXT, text_string(&words));
    }
    text_clear(&words);
    entry->is_open = !is_known && !is_late;
    return !entry->is_open;
}

/* Open entries have a bound: one for each worker, and they are told within moments. */
bool chronicle_tell(struct chronicle *chronicle, bool is_late) {
    while (chronicle->told_count < chronicle->count &&
           is_complete(chronicle, entry_at(chronicle, chronicle->told_count), is_late)) {
        const struct chronicle_entry *entry = entry_at(chronicle, chronicle->told_count);
        chronicle->told_count++;
        chronicle->bytes += size_of(entry);
        if (chronicle->settings.told != NULL) {
            chronicle->settings.told(chronicle->settings.context, entry);
        }
    }
    while (chronicle->told_count > 0 && chronicle->bytes > CHRONICLE_BYTES_MAXIMUM) {
        drop(chronicle, least_needed(chronicle));
    }
    return chronicle->told_count == chronicle->count;
}

/* Room for one more. */
static void grow(struct chronicle *chronicle) {
    if (chronicle->count >= CHRONICLE_ENTRIES_MAXIMUM && chronicle->told_count > 0) {
        drop(chronicle, least_needed(chronicle));
    }
    if (chronicle->count < chronicle->capacity) {
        return;
    }
    size_t capacity = chronicle->capacity == 0 ? 16 : 2 * chronicle->capacity;
    struct chronicle_entry *entries = memory_allocate(capacity * sizeof *entries);
    for (size_t i = 0; i < chronicle->count; i++) {
        entries[i] = *entry_at(chronicle, i);
    }
    free(chronicle->entries);
    chronicle->entries = entries;
    chronicle->capacity = capacity;
    chronicle->first = 0;
}

struct wall_time chronicle_time(const struct chronicle *chronicle, struct instant now) {
    int64_t age = instant_until(chronicle->settings.began, now).nanoseconds;
    int64_t time = chronicle->settings.began_at.nanoseconds + age;
    return (struct wall_time){time - time % CHRONICLE_GRAIN_NANOSECONDS};
}

/* To be filled in before anything is told. */
static struct chronicle_entry *append(struct chronicle *chronicle, struct instant now,
    enum chronicle_kind kind, enum chronicle_severity severity) {
    struct wall_time time = chronicle_time(chronicle, now);
    grow(chronicle);
    if (time.nanoseconds > chronicle->last_time.nanoseconds) {
        chronicle->last_time = time; /* an event may have happened before what it was told after */
    }
    struct chronicle_entry *entry = entry_at(chronicle, chronicle->count++);
    *entry = (struct chronicle_entry){.seq = ++chronicle->next_seq,
        .time = chronicle->last_time,
        .kind = kind,
        .severity = severity,
        .has_round = chronicle->has_started,
        .round = chronicle->has_started ? chronicle->settings.placement->round : 0};
    chronicle_entry_set_node(entry, chronicle->settings.node);
    return entry;
}

struct chronicle *chronicle_new(const struct chronicle_settings *settings) {
    const struct chronicle initial = {.settings = *settings, .hung_local_rank = -1};
    return memory_duplicate(&initial, sizeof initial);
}

void chronicle_free(struct chronicle *chronicle) {
    if (chronicle != NULL) {
        for (size_t i = 0; i < chronicle->count; i++) {
            chronicle_entry_clear(entry_at(chronicle, i));
        }
        free(chronicle->entries);
        free(chronicle->reason);
        free(chronicle->ended_reason);
        free(chronicle->hung);
        free(chronicle);
    }
}

int64_t chronicle_last_told(const struct chronicle *chronicle) {
    return chronicle->next_seq - (int64_t)(chronicle->count - chronicle->told_count);
}

void chronicle_each_after(const struct chronicle *chronicle, int64_t after,
    void (*take)(void *context, const struct chronicle_entry *entry), void *context) {
    for (size_t i = 0; i < chronicle->told_count; i++) {
        if (entry_at(chronicle, i)->seq > after) {
            take(context, entry_at(chronicle, i));
        }
    }
}

/* Steps of the agent machine. */

struct step {
    struct chronicle *chronicle;
    enum agent_phase before;
    const struct agent_machine *machine;
    const struct agent_event *event;
    const struct agent_outcome *outcome;
};

static struct chronicle_entry *append_of_step(
    const struct step *step, enum chronicle_kind kind, enum chronicle_severity severity) {
    return append(step->chronicle, step->event->now, kind, severity);
}

static void know_cause(
    struct chronicle *chronicle, enum chronicle_cause cause, const char *reason) {
    free(chronicle->reason);
    chronicle->cause = cause;
    chronicle->reason = memory_duplicate_string(reason);
}

static int rank_of(const struct chronicle *chronicle, int local_rank) {
    return chronicle->settings.placement->ranks.base_rank + local_rank;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text);
    size_t size = strlen(end);
    return length >= size && text_equals(text + length - size, end);
}

/* A change for an unknown reason is a lost connection, or a node that is not heard any more. */
static enum chronicle_cause cause_of_change(const struct step *step) {
    const struct agent_event *event = step->event;
    const char *reason = event->reason != NULL ? event->reason : "";
    if (event->is_counted && event->restarts > step->chronicle->restarts) {
        return strstr(reason, ROUND_REASON_HANG) != NULL ? CHRONICLE_CAUSE_HANG
                                                         : CHRONICLE_CAUSE_WORKER_FAILED;
    }
    if (event->signal != 0) {
        return CHRONICLE_CAUSE_SIGNAL;
    }
    return ends_with(reason, ROUND_REASON_JOINED) ? CHRONICLE_CAUSE_SCALE_UP
           : ends_with(reason, ROUND_REASON_LEFT) || ends_with(reason, ROUND_REASON_LEFT_THE_ROUND)
               ? CHRONICLE_CAUSE_NODE_LEFT
               : CHRONICLE_CAUSE_NODE_LOST;
}

static void tell_lost(const struct step *step) {
    const char *reason = step->event->reason != NULL ? step->event->reason : "";
    const char *end = strstr(reason, ROUND_REASON_PID);
    static const char start[] = ROUND_REASON_NODE;
    if (!text_starts_with(reason, start) || end == NULL || !ends_with(reason, ROUND_REASON_GONE)) {
        return;
    }
    struct chronicle_entry *entry = append_of_step(step, CHRONICLE_NODE_LOST, CHRONICLE_ERROR);
    char *name =
        text_format("%.*s", (int)(end - reason - (int)strlen(start)), reason + strlen(start));
    chronicle_entry_set_node(entry, name);
    chronicle_entry_add_text(entry, CHRONICLE_REASON, reason);
    free(name);
}

static const char *why_stopping(const struct step *step) {
    switch (step->machine->stop_reason) {
    case AGENT_STOP_CLEAN_UP:
        return "all workers have succeeded";
    case AGENT_STOP_RESTART:
    case AGENT_STOP_DOUBTED_FAILURE:
        return step->event->kind == AGENT_EVENT_ROUND_OVER && step->event->reason != NULL
                   ? step->event->reason
               : step->event->kind == AGENT_EVENT_PEER_RESTART
                   ? "a worker of another node has failed"
                   : "a worker of this node has failed";
    case AGENT_STOP_FAILURE:
        return fruitless_attempts_are_enough(&step->machine->fruitless)
                   ? "a worker of this node has failed, and no attempt has got any further"
                   : "a worker of this node has failed, and no restart is left";
    case AGENT_STOP_PEER_FAILURE:
        return "another node has failed";
    case AGENT_STOP_SIGNAL:
        return "a signal has come";
    case AGENT_STOP_EXCLUDED:
        return "the others go on without this node";
    case AGENT_STOP_UNFIT:
        return "the check of this node has failed";
    case AGENT_STOP_NONE:
        break;
    }
    return "the job is over";
}

static bool is_end_of_hung(const struct step *step) {
    const struct agent_event *event = step->event;
    return (event->kind == AGENT_EVENT_WORKER_ENDING || event->kind == AGENT_EVENT_WORKER_EXITED) &&
           event->worker_exited.local_rank == step->chronicle->hung_local_rank;
}

/* NONE: the workers are not started anew, as far as is known. */
static enum chronicle_cause cause_of_stop(const struct step *step) {
    enum agent_stop_reason reason = step->machine->stop_reason;
    if (reason != AGENT_STOP_RESTART && reason != AGENT_STOP_DOUBTED_FAILURE) {
        return CHRONICLE_CAUSE_NONE;
    }
    return step->event->kind == AGENT_EVENT_ROUND_OVER ? cause_of_change(step)
           : step->event->kind == AGENT_EVENT_WORKER_STUCK || is_end_of_hung(step)
               ? CHRONICLE_CAUSE_HANG
               : CHRONICLE_CAUSE_WORKER_FAILED;
}

static void tell_stop(const struct step *step, const char *reason, enum chronicle_cause cause) {
    struct chronicle_entry *entry = append_of_step(step, CHRONICLE_STOPPING,
        cause == CHRONICLE_CAUSE_NONE ? CHRONICLE_INFO : CHRONICLE_WARNING);
    chronicle_entry_add_text(entry, CHRONICLE_REASON, reason);
    chronicle_entry_add_text(entry, CHRONICLE_CAUSE, chronicle_cause_name(cause));
    know_cause(step->chronicle, cause, reason);
}

/* What ends while all are being stopped is a consequence. */
static void tell_failures(const struct step *step) {
    struct chronicle *chronicle = step->chronicle;
    const struct worker_group *workers = &step->machine->workers;
    for (size_t i = chronicle->failures_seen; i < workers->failure_count; i++) {
        const struct worker_failure *failure = &workers->failures[i];
        if (step->before == AGENT_STOPPING || failure->is_from_our_signal) {
            continue;
        }
        struct chronicle_entry *entry =
            append_of_step(step, CHRONICLE_WORKER_FAILED, CHRONICLE_ERROR);
        chronicle_entry_add(entry, CHRONICLE_RANK, rank_of(chronicle, failure->local_rank));
        chronicle_entry_add(entry, CHRONICLE_LOCAL_RANK, failure->local_rank);
        chronicle_entry_add(entry, CHRONICLE_PID,
            chronicle->settings.pid(chronicle->settings.context, failure->local_rank));
        bool has_hung =
            chronicle->hung != NULL && failure->local_rank == chronicle->hung_local_rank;
        if (failure->start_message == NULL && failure->stuck.nanoseconds == 0) {
            chronicle_entry_add(entry, failure->exit.is_signal ? CHRONICLE_SIGNAL : CHRONICLE_EXIT,
                failure->exit.value);
            chronicle_entry_add_text(entry, CHRONICLE_TEXT, has_hung ? chronicle->hung : NULL);
            entry->is_open = !has_hung;
        } else {
            chronicle_entry_add_text(entry, CHRONICLE_TEXT,
                failure->start_message != NULL
                    ? failure->start_message
                    : "it has been in uninterruptible sleep for too long");
        }
        chronicle_entry_add(entry, CHRONICLE_FIRST, i == 0);
    }
    chronicle->failures_seen = workers->failure_count;
}

static void know_hang(struct chronicle *chronicle, int local_rank, const char *what) {
    free(chronicle->hung);
    chronicle->hung_local_rank = local_rank;
    chronicle->hung = memory_duplicate_string(what);
}

static void tell_joined(const struct step *step) {
    struct chronicle *chronicle = step->chronicle;
    const struct node_placement *placement = chronicle->settings.placement;
    int restarts = agent_machine_attempt(step->machine);
    bool is_charged = restarts > chronicle->restarts;
    bool is_first = !chronicle->has_started;
    chronicle->has_started = true;
    struct chronicle_entry *world = append_of_step(step, CHRONICLE_WORLD, CHRONICLE_INFO);
    chronicle_entry_add(world, CHRONICLE_NODES, placement->group_world_size);
    chronicle_entry_add(world, CHRONICLE_WORKERS, placement->ranks.world_size);
    chronicle_entry_add_text(world, CHRONICLE_REASON, chronicle->reason);
    chronicle_entry_add(world, CHRONICLE_CHARGED, is_charged && !is_first);
    chronicle_entry_add(world, CHRONICLE_USED, step->machine->restarts.counted);
    chronicle_entry_add(world, CHRONICLE_MAX, step->machine->restarts.maximum);
    struct chronicle_entry *joined = append_of_step(step, CHRONICLE_JOINED, CHRONICLE_INFO);
    chronicle_entry_add(joined, CHRONICLE_RANK, placement->group_rank);
    chronicle_entry_add(joined, CHRONICLE_FIRST_RANK, placement->ranks.base_rank);
    chronicle_entry_add(joined, CHRONICLE_WORKERS, placement->local_world_size);
    chronicle_entry_add_text(joined, CHRONICLE_VERSION, chronicle->settings.version);
    if (is_charged && !is_first) {
        struct chronicle_entry *restart =
            append_of_step(step, CHRONICLE_RESTART, CHRONICLE_WARNING);
        chronicle_entry_add(restart, CHRONICLE_USED, step->machine->restarts.counted);
        chronicle_entry_add(restart, CHRONICLE_MAX, step->machine->restarts.maximum);
        chronicle_entry_add_text(restart, CHRONICLE_CAUSE, chronicle_cause_name(chronicle->cause));
    }
    chronicle_note_end(chronicle, NULL);
    chronicle->restarts = restarts;
    chronicle->failures_seen = 0;
    chronicle->last_local_rank = -1;
    know_hang(chronicle, -1, NULL);
    chronicle->from_standby = chronicle->settings.from_standby(chronicle->settings.context);
    know_cause(chronicle, CHRONICLE_CAUSE_NONE, NULL);
}

static void tell_started(const struct step *step) {
    struct chronicle *chronicle = step->chronicle;
    uint64_t used = chronicle->settings.from_standby(chronicle->settings.context);
    struct chronicle_entry *entry = append_of_step(step, CHRONICLE_STARTED, CHRONICLE_INFO);
    chronicle_entry_add(entry, CHRONICLE_ATTEMPT, agent_machine_attempt(step->machine));
    chronicle_entry_add(entry, CHRONICLE_FROM_STANDBY, (int64_t)(used - chronicle->from_standby));
}

static void tell_stopped(const struct step *step) {
    struct chronicle_entry *entry = append_of_step(step, CHRONICLE_STOPPED, CHRONICLE_INFO);
    if (step->chronicle->last_local_rank >= 0) {
        chronicle_entry_add(
            entry, CHRONICLE_LAST, rank_of(step->chronicle, step->chronicle->last_local_rank));
    }
}

static void tell_end(const struct step *step) {
    const struct agent_outcome *outcome = step->outcome;
    const struct chronicle *chronicle = step->chronicle;
    bool is_signalled = outcome->kind == AGENT_OUTCOME_SIGNALLED;
    bool is_success = outcome->kind == AGENT_OUTCOME_SUCCEEDED;
    if (is_signalled && step->machine->has_peers) {
        struct chronicle_entry *left = append_of_step(step, CHRONICLE_NODE_LEFT, CHRONICLE_WARNING);
        chronicle_entry_add_text(left, CHRONICLE_REASON, signal_name_from_number(outcome->signal));
    }
    struct chronicle_entry *entry =
        append_of_step(step, CHRONICLE_ENDED, is_success ? CHRONICLE_INFO : CHRONICLE_ERROR);
    /* The others go on without a node that is unfit. */
    bool is_stopped = is_signalled || outcome->kind == AGENT_OUTCOME_EXCLUDED ||
                      (outcome->kind == AGENT_OUTCOME_UNFIT && step->machine->has_peers);
    chronicle_entry_add_text(entry, CHRONICLE_RESULT,
        is_stopped   ? "stopped"
        : is_success ? "succeeded"
                     : "failed");
    chronicle_entry_add_text(entry, CHRONICLE_REASON, chronicle->ended_reason);
}

static void tell_waiting(const struct step *step) {
    struct chronicle *chronicle = step->chronicle;
    struct chronicle_entry *entry = append_of_step(step, CHRONICLE_WAITING, CHRONICLE_INFO);
    chronicle_entry_add(entry, CHRONICLE_MIN, chronicle->settings.minimum_nodes);
    chronicle_entry_add(entry, CHRONICLE_MAX, chronicle->settings.maximum_nodes);
}

/* The workers of this node were done, and are called back. */
static void tell_called_back(const struct step *step) {
    enum chronicle_cause cause = step->event->kind == AGENT_EVENT_ROUND_OVER
                                     ? cause_of_change(step)
                                     : CHRONICLE_CAUSE_WORKER_FAILED;
    const char *reason = step->event->kind == AGENT_EVENT_ROUND_OVER ? step->event->reason : NULL;
    tell_stop(step, reason != NULL ? reason : "a worker of another node has failed", cause);
    tell_stopped(step);
}

static void change_phase(const struct step *step) {
    if (step->before == AGENT_STOPPING) {
        tell_stopped(step);
    }
    switch (step->machine->phase) {
    case AGENT_JOINING:
        if (step->before == AGENT_IDLE ||
            (step->before == AGENT_HELD && !step->chronicle->has_started)) {
            tell_waiting(step);
        } else if (step->before == AGENT_LEAVING) {
            tell_called_back(step);
        }
        break;
    case AGENT_STARTING:
        tell_joined(step);
        break;
    case AGENT_RUNNING:
        tell_started(step);
        break;
    case AGENT_STOPPING:
        tell_stop(step, why_stopping(step), cause_of_stop(step));
        break;
    case AGENT_DONE:
        if (step->outcome != NULL) {
            tell_end(step);
        }
        break;
    case AGENT_IDLE:
    case AGENT_HELD:
    case AGENT_LEAVING:
    case AGENT_DOUBTING:
    case AGENT_PHASE_COUNT:
        break;
    }
}

void chronicle_step(struct chronicle *chronicle, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event,
    const struct agent_outcome *outcome) {
    const struct step step = {chronicle, before, machine, event, outcome};
    if (event->kind == AGENT_EVENT_WORKER_EXITED) {
        chronicle->last_local_rank = event->worker_exited.local_rank;
    }
    if (event->kind == AGENT_EVENT_WORKER_STUCK && before != machine->phase) {
        chronicle_note_hang(chronicle, event->now, event->worker_stuck.local_rank,
            "uninterruptible sleep", NULL, (struct duration){0});
    }
    if (event->kind == AGENT_EVENT_ROUND_OVER && before != machine->phase) {
        tell_lost(&step);
    }
    if (machine->phase != AGENT_STARTING || before == AGENT_STARTING) {
        tell_failures(&step);
    }
    if (before != machine->phase) {
        change_phase(&step);
    } else if (before == AGENT_STOPPING && machine->stop_reason != chronicle->stop_reason) {
        tell_stop(&step, why_stopping(&step), cause_of_stop(&step));
    }
    chronicle->stop_reason = machine->stop_reason;
    (void)chronicle_tell(chronicle, false);
}

void chronicle_note_spares(struct chronicle *chronicle, struct instant now, int ready, int of) {
    struct chronicle_entry *entry = append(chronicle, now, CHRONICLE_SPARES, CHRONICLE_INFO);
    chronicle_entry_add(entry, CHRONICLE_READY, ready);
    chronicle_entry_add(entry, CHRONICLE_OF, of);
    (void)chronicle_tell(chronicle, false);
}

void chronicle_note_hang(struct chronicle *chronicle, struct instant now, int local_rank,
    const char *what, const char *where, struct duration silence) {
    struct chronicle_entry *entry = append(chronicle, now, CHRONICLE_HANG, CHRONICLE_ERROR);
    chronicle_entry_add(entry, CHRONICLE_RANK, rank_of(chronicle, local_rank));
    chronicle_entry_add_text(entry, CHRONICLE_WHAT, what);
    chronicle_entry_add_text(entry, CHRONICLE_WHERE, where);
    if (silence.nanoseconds > 0) {
        chronicle_entry_add(entry, CHRONICLE_SILENCE, silence.nanoseconds);
    }
    know_hang(chronicle, local_rank, silence.nanoseconds > 0 ? what : NULL);
    (void)chronicle_tell(chronicle, false);
}

void chronicle_note_excluded(struct chronicle *chronicle, struct instant now, const char *reason) {
    struct chronicle_entry *entry = append(chronicle, now, CHRONICLE_EXCLUDED, CHRONICLE_ERROR);
    chronicle_entry_add_text(entry, CHRONICLE_REASON, reason);
    chronicle_note_end(chronicle, reason);
    (void)chronicle_tell(chronicle, false);
}

void chronicle_note_kept(struct chronicle *chronicle, struct instant now, const char *reason) {
    struct chronicle_entry *entry = append(chronicle, now, CHRONICLE_EXCLUDED, CHRONICLE_WARNING);
    chronicle_entry_add_text(entry, CHRONICLE_REASON, reason);
    chronicle_entry_add_text(entry, CHRONICLE_RESULT, CHRONICLE_RESULT_STAYS);
    (void)chronicle_tell(chronicle, false);
}

void chronicle_note_end(struct chronicle *chronicle, const char *reason) {
    free(chronicle->ended_reason);
    chronicle->ended_reason = memory_duplicate_string(reason);
}

void chronicle_note_host(struct chronicle *chronicle, struct instant now) {
    (void)append(chronicle, now, CHRONICLE_HOST, CHRONICLE_INFO);
    (void)chronicle_tell(chronicle, false);
}

void chronicle_note_foreign(
    struct chronicle *chronicle, struct instant now, const char *name, int rank) {
    struct chronicle_entry *entry = append(chronicle, now, CHRONICLE_JOINED, CHRONICLE_INFO);
    chronicle_entry_set_node(entry, name);
    chronicle_entry_add(entry, CHRONICLE_RANK, rank);
    chronicle_entry_add_text(entry, CHRONICLE_VERSION, CHRONICLE_FOREIGN_VERSION);
    (void)chronicle_tell(chronicle, false);
}

void chronicle_note_waiting(struct chronicle *chronicle, struct instant now, int here) {
    int missing = chronicle->settings.minimum_nodes - here;
    struct chronicle_entry *entry = append(chronicle, now, CHRONICLE_WAITING, CHRONICLE_WARNING);
    chronicle_entry_add(entry, CHRONICLE_HERE, here);
    chronicle_entry_add(entry, CHRONICLE_MIN, chronicle->settings.minimum_nodes);
    chronicle_entry_add(entry, CHRONICLE_MAX, chronicle->settings.maximum_nodes);
    chronicle_entry_add(entry, CHRONICLE_MISSING, missing > 0 ? missing : 0);
    (void)chronicle_tell(chronicle, false);
}

static void note_slow(struct chronicle *chronicle, const struct progress_news *news) {
    struct chronicle_entry *entry = append(chronicle, news->at, news->kind, CHRONICLE_WARNING);
    chronicle_entry_add(entry, CHRONICLE_RANK, rank_of(chronicle, news->local_rank));
    chronicle_entry_add_rate(entry, CHRONICLE_RATIO, news->rate);
    (void)chronicle_tell(chronicle, false);
}

void chronicle_note_progress(struct chronicle *chronicle, const struct progress_news *news) {
    if (news->kind == CHRONICLE_SLOW) {
        note_slow(chronicle, news);
        return;
    }
    struct chronicle_entry *entry = append(chronicle, news->at, news->kind, CHRONICLE_INFO);
    if (news->kind == CHRONICLE_TRAINING) {
        chronicle_entry_add(entry, CHRONICLE_LAST, rank_of(chronicle, news->local_rank));
        chronicle_entry_add(entry, CHRONICLE_TOOK, news->took.nanoseconds);
    } else {
        chronicle_entry_add(entry, CHRONICLE_STEP, news->step);
    }
    if (news->kind == CHRONICLE_PROGRESS && news->rate >= 0) {
        chronicle_entry_add_rate(entry, CHRONICLE_RATE, news->rate);
    }
    if (news->kind != CHRONICLE_CHECKPOINT) {
        chronicle_entry_add_text(entry, CHRONICLE_SOURCE, progress_source_name(news->source));
    }
    (void)chronicle_tell(chronicle, false);
}
