/* SPDX-License-Identifier: BSD-3-Clause */
/* The chronicle of a job: one entry for each thing that has happened, as one node knows it. It is
 * the one truth of which all that is told of a job is a fold (core/telling/chronicle_status) or a
 * rendering (wire/telling/chronicle_json).
 *
 * Entries are made from the steps of the agent machine. Their times follow the monotonic clock from
 * the beginning on, so that no difference of two times is ever wrong. An entry about a failed
 * worker is open until the words of the worker's error file are known; it and all after it are not
 * told before. */
#ifndef MUSTER_CORE_TELLING_CHRONICLE_H
#define MUSTER_CORE_TELLING_CHRONICLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"
#include "core/agent/agent_machine.h"
#include "core/workers/worker_group.h"

/* What a node keeps; the oldest entries go first. */
#define CHRONICLE_ENTRIES_MAXIMUM ((size_t)1024)
/* Of them: so many of progress may push others out. */
#define CHRONICLE_PROGRESS_MAXIMUM ((size_t)256)
#define CHRONICLE_BYTES_MAXIMUM ((size_t)256 * 1024)
/* Of one text, in bytes; a longer one is cut. */
#define CHRONICLE_TEXT_MAXIMUM ((size_t)512)
#define CHRONICLE_VALUES_MAXIMUM 7
/* What a node of torchrun's has for a version. */
#define CHRONICLE_FOREIGN_VERSION "torchrun"
/* Times are whole microseconds, as they are spelled. */
#define CHRONICLE_GRAIN_NANOSECONDS 1000

enum chronicle_kind {
    CHRONICLE_JOINED,
    CHRONICLE_NODE_LEFT,
    CHRONICLE_NODE_LOST, /* its node is the one that is lost */
    CHRONICLE_WORLD,
    CHRONICLE_STARTED,
    CHRONICLE_WORKER_FAILED,
    CHRONICLE_STOPPING,
    CHRONICLE_STOPPED,
    CHRONICLE_WAITING,
    CHRONICLE_RESTART,
    CHRONICLE_PROGRESS,
    CHRONICLE_TRAINING,
    CHRONICLE_CHECKPOINT,
    CHRONICLE_HANG,
    CHRONICLE_SLOW,
    CHRONICLE_SPARES,
    CHRONICLE_HOST,
    CHRONICLE_EXCLUDED,
    CHRONICLE_ENDED,
    CHRONICLE_KIND_COUNT,
};

enum chronicle_severity {
    CHRONICLE_INFO,
    CHRONICLE_WARNING,
    CHRONICLE_ERROR,
    CHRONICLE_SEVERITY_COUNT,
};

/* Why workers are started anew. */
enum chronicle_cause {
    CHRONICLE_CAUSE_NONE,
    CHRONICLE_CAUSE_WORKER_FAILED,
    CHRONICLE_CAUSE_NODE_LOST,
    CHRONICLE_CAUSE_HANG,
    CHRONICLE_CAUSE_NODE_LEFT,
    CHRONICLE_CAUSE_SCALE_UP,
    CHRONICLE_CAUSE_SIGNAL,
    CHRONICLE_CAUSE_COUNT,
};

enum chronicle_field {
    CHRONICLE_RANK,
    CHRONICLE_FIRST_RANK, /* joined: the first of this node's workers */
    CHRONICLE_LOCAL_RANK,
    CHRONICLE_PID,
    CHRONICLE_EXIT,
    CHRONICLE_SIGNAL,
    CHRONICLE_WORKERS,
    CHRONICLE_NODES,
    CHRONICLE_ATTEMPT,
    CHRONICLE_FROM_STANDBY,
    CHRONICLE_USED,
    CHRONICLE_MAX,
    CHRONICLE_HERE,
    CHRONICLE_MIN,
    CHRONICLE_MISSING,
    CHRONICLE_READY,
    CHRONICLE_OF,
    CHRONICLE_STEP,
    CHRONICLE_TERM,
    CHRONICLE_LAST, /* stopped: the worker that has ended last, by its rank */
    CHRONICLE_CHARGED,
    CHRONICLE_FIRST,
    CHRONICLE_SILENCE,
    CHRONICLE_LAST_HEARD,
    CHRONICLE_TOOK,
    CHRONICLE_RATE,
    CHRONICLE_RATIO,
    CHRONICLE_VERSION,
    CHRONICLE_REASON,
    CHRONICLE_TEXT,
    CHRONICLE_CAUSE,
    CHRONICLE_WHAT,
    CHRONICLE_WHERE,
    CHRONICLE_RESULT,
    CHRONICLE_SOURCE,
    CHRONICLE_FROM,
    CHRONICLE_FIELD_COUNT,
};

enum chronicle_type {
    CHRONICLE_INTEGER,
    CHRONICLE_FLAG,
    CHRONICLE_SECONDS, /* in nanoseconds here */
    CHRONICLE_RATE_TYPE,
    CHRONICLE_TEXT_TYPE,
};

struct chronicle_value {
    enum chronicle_field field;
    union {
        int64_t number; /* INTEGER, FLAG, SECONDS */
        double rate;
        char *text; /* the entry's */
    };
};

/* A zeroed struct is valid. */
struct chronicle_entry {
    int64_t seq; /* of its node, from 1 on */
    struct wall_time time;
    char *node; /* the entry's, or NULL */
    enum chronicle_kind kind;
    enum chronicle_severity severity;
    int64_t round;
    bool has_round;
    bool is_open;
    unsigned char value_count;
    struct chronicle_value values[CHRONICLE_VALUES_MAXIMUM];
};

void chronicle_entry_clear(struct chronicle_entry *entry);
/* The entry has room for what a kind may have. A text is copied, cut and made one line that may be
 * shown; NULL adds nothing. */
void chronicle_entry_add(struct chronicle_entry *entry, enum chronicle_field field, int64_t number);
void chronicle_entry_add_rate(
    struct chronicle_entry *entry, enum chronicle_field field, double rate);
void chronicle_entry_add_text(
    struct chronicle_entry *entry, enum chronicle_field field, const char *text);
void chronicle_entry_set_node(struct chronicle_entry *entry, const char *name);
/* One line that may be shown, of no more bytes than `most` as JSON spells it; the caller frees it.
 */
char *chronicle_clean_text(const char *given, size_t most);
/* What it has of the field; `absent` and NULL where it has nothing. */
int64_t chronicle_entry_number(
    const struct chronicle_entry *entry, enum chronicle_field field, int64_t absent);
double chronicle_entry_rate(
    const struct chronicle_entry *entry, enum chronicle_field field, double absent);
const char *chronicle_entry_text(const struct chronicle_entry *entry, enum chronicle_field field);

/* Names, as they are spelled; the COUNT of each for an unknown one. */
const char *chronicle_kind_name(enum chronicle_kind kind);
enum chronicle_kind chronicle_kind_from_name(const char *name);
const char *chronicle_severity_name(enum chronicle_severity severity);
enum chronicle_severity chronicle_severity_from_name(const char *name);
const char *chronicle_cause_name(enum chronicle_cause cause);
enum chronicle_cause chronicle_cause_from_name(const char *name); /* NULL: NONE */
const char *chronicle_field_name(enum chronicle_field field);
enum chronicle_type chronicle_field_type(enum chronicle_field field);
/* Whether entries of this kind have it. */
bool chronicle_kind_has(enum chronicle_kind kind, enum chronicle_field field);

/* What the chronicle hears. Begin with the first members, which are borrowed. */
struct chronicle_settings {
    const char *node; /* its one name */
    const char *version;
    const struct node_placement *placement; /* of the round that was joined last */
    int minimum_nodes;
    int maximum_nodes;
    struct instant began;
    struct wall_time began_at;
    int64_t (*pid)(void *context, int local_rank); /* 0: it was not started */
    uint64_t (*from_standby)(void *context);       /* so many workers have been, in all attempts */
    /* Appends the words of a worker that has failed, if it left any. False: it is not known yet. */
    bool (*words)(void *context, int local_rank, int64_t pid, struct text *out);
    void (*told)(void *context, const struct chronicle_entry *entry);
    void *context;
};

enum progress_source {
    PROGRESS_NONE,
    PROGRESS_OPTIMIZER, /* steps of an optimizer are counted, from 1 in each attempt */
    PROGRESS_PROGRAM,   /* the program tells the number of its step */
    PROGRESS_SOURCE_COUNT,
};

/* The kinds PROGRESS, TRAINING, CHECKPOINT and SLOW. */
struct progress_news {
    enum chronicle_kind kind;
    enum progress_source source;
    struct instant at; /* when the worker did it */
    int64_t step;
    double rate;          /* PROGRESS: steps a second; negative: not known yet. SLOW: how many times
                             as long a step it is busy as the others of its node */
    struct duration took; /* TRAINING: from the start of the workers on … */
    int local_rank;       /* … for the worker that was last; SLOW: of the worker */
};

const char *progress_source_name(enum progress_source source);
enum progress_source progress_source_from_name(const char *name); /* NONE for another one */

struct chronicle;

struct chronicle *chronicle_new(const struct chronicle_settings *settings);
void chronicle_free(struct chronicle *chronicle);

/* `machine` has taken `event`; before it was in the phase `before`. `outcome`: of a machine that
 * finishes with this step; else NULL. */
void chronicle_step(struct chronicle *chronicle, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event,
    const struct agent_outcome *outcome);

/* Tells what can be told by now; with `is_late` the words of failed workers are waited for no
 * longer. Returns whether nothing is left to tell. */
bool chronicle_tell(struct chronicle *chronicle, bool is_late);

/* What no step of the agent machine says. */
void chronicle_note_spares(struct chronicle *chronicle, struct instant now, int ready, int of);
/* A worker hangs. Where the whole job does, also where that worker is, and for how long none has
 * taken a step; else NULL and zero. */
void chronicle_note_hang(struct chronicle *chronicle, struct instant now, int local_rank,
    const char *what, const char *where, struct duration silence);
void chronicle_note_host(struct chronicle *chronicle, struct instant now);
/* This node is to stay out of the job, for this reason. */
void chronicle_note_excluded(struct chronicle *chronicle, struct instant now, const char *reason);
/* It was to, and stays: `excluded` with this result. */
#define CHRONICLE_RESULT_STAYS "stays"
void chronicle_note_kept(struct chronicle *chronicle, struct instant now, const char *reason);
/* Why it will end. */
void chronicle_note_end(struct chronicle *chronicle, const char *reason);
/* Another node of this world, which is one of torchrun's, and tells nothing itself. */
void chronicle_note_foreign(
    struct chronicle *chronicle, struct instant now, const char *name, int rank);
void chronicle_note_waiting(struct chronicle *chronicle, struct instant now, int here);
/* What workers have said of their steps. */
void chronicle_note_progress(struct chronicle *chronicle, const struct progress_news *news);

struct wall_time chronicle_time(const struct chronicle *chronicle, struct instant now);

/* The number of the last that is told; 0: none is. */
int64_t chronicle_last_told(const struct chronicle *chronicle);
/* Those that are told and still kept, from the first on whose number is larger than `after`. */
void chronicle_each_after(const struct chronicle *chronicle, int64_t after,
    void (*take)(void *context, const struct chronicle_entry *entry), void *context);

#endif
