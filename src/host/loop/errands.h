/* SPDX-License-Identifier: BSD-3-Clause */
/* Errands: tasks that may never end, because a dead disk holds them up. They are carried out on
 * threads of their own. An errand owns its subject and uses nothing else, so a thread that hangs is
 * left behind together with the subject, and nobody waits for it. This module knows nothing of
 * files: the caller gives the function that does the work. */
#ifndef MUSTER_HOST_LOOP_ERRANDS_H
#define MUSTER_HOST_LOOP_ERRANDS_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"
#include "host/loop/event_loop.h"

/* The maximum number of errands at a time. While that many hang, the others wait. They can still be
 * dropped. */
#define ERRANDS_MAXIMUM_THREADS 4

struct errands;
struct errand;

struct errand_task {
    void (*run)(void *subject);  /* called on an errand's thread */
    void (*free)(void *subject); /* called on any thread, when the subject is not needed any more */
    void *subject;
};

/* The loop calls `done` once, never from within a function below, and not if the errand was
 * dropped. `done` may take things out of the subject. The rest is freed after the call. */
struct errand_answer {
    void (*done)(void *context, void *subject);
    void *context;
};

__attribute__((warn_unused_result)) enum failure_code errands_new(
    struct event_loop *loop, struct errands **out_errands, struct failure *failure);

/* Drops all errands. Accepts NULL. Must not be called from within an answer. */
void errands_free(struct errands *errands);

/* Errands begin in the order in which they were sent. `*out_errand` is valid until the answer. When
 * no thread can be started, this fails and frees the subject. */
__attribute__((warn_unused_result)) enum failure_code errands_send(struct errands *errands,
    const struct errand_task *task, const struct errand_answer *answer, struct errand **out_errand,
    struct failure *failure);

/* Answers now what the loop would answer in its next turn. Not from within an answer. */
void errands_answer_finished(struct errands *errands);

/* Gives the errand up: there will be no answer. */
void errands_drop(struct errands *errands, struct errand *errand);

/* What a caller does while it waits: its loop runs. Whoever does not want to wait any longer stops
 * it (event_loop_stop). */
struct errand_watch {
    struct event_loop *loop;
    struct duration silence;          /* after so long … */
    void (*is_silent)(void *context); /* … this is called once */
    void *context;
};

/* For a caller whose loop does not run yet, or no longer: waits until the task is done, and then
 * leaves the subject to the caller. `watch` may be NULL. FAILURE_TIMEOUT when that takes longer
 * than `patience`, FAILURE_CANCELLED when the watch's loop was stopped, FAILURE_SYSTEM when no
 * thread can be started or no loop be woken. The subject is not the caller's any more after a
 * failure. */
__attribute__((warn_unused_result)) enum failure_code errand_run_within(
    const struct errand_task *task, struct duration patience, const struct errand_watch *watch,
    struct failure *failure);

#endif
