/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/dir_register.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "host/loop/errands.h"
#include "host/loop/random_seed.h"
#include "host/register/register_directory.h"

struct dir_register {
    struct errands *errands;
    struct register_directory directory;
    uint64_t renewal_seed; /* tells the renewals of this process from those of others */
    uint64_t renewal_count;
};

/* What a thread works on; it has its own copy of everything. */
struct work {
    struct register_directory directory;
    enum register_request_kind kind;
    int64_t number;
    int64_t term;
    char *text; /* of an entry, or a renewal */
    bool is_tidying;
    /* The loop's. */
    struct dir_register *state;
    /* The result. */
    struct register_finding finding;
    enum failure_code code;
};

static enum failure_code dir_open(struct event_loop *loop, const struct register_settings *settings,
    void **out_state, struct failure *failure) {
    struct dir_register *state = memory_allocate(sizeof *state);
    state->renewal_seed = random_seed();
    enum failure_code code = register_directory_init(
        &state->directory, settings->endpoint, settings->run_id, settings->node_name, failure);
    if (code == FAILURE_NONE) {
        code = errands_new(loop, &state->errands, failure);
    }
    if (code == FAILURE_NONE) {
        *out_state = state;
    } else {
        register_directory_clear(&state->directory);
        free(state);
    }
    return code;
}

static void dir_close(void *context) {
    struct dir_register *state = context;
    errands_free(state->errands);
    register_directory_clear(&state->directory);
    free(state);
}

/* The thread. */

static void work_run(void *subject) {
    struct work *work = subject;
    if (work->is_tidying) {
        register_directory_tidy(&work->directory, work->number, work->term);
        return;
    }
    switch (work->kind) {
    case REGISTER_REQUEST_READ:
        work->code = register_directory_read(&work->directory, &work->finding);
        break;
    case REGISTER_REQUEST_APPEND:
        work->code = register_directory_append(
            &work->directory, work->number, slice_from_string(work->text), &work->finding);
        break;
    case REGISTER_REQUEST_RENEW:
        work->code =
            register_directory_renew(&work->directory, work->term, work->text, &work->finding);
        break;
    case REGISTER_REQUEST_RENEWAL:
        work->code = register_directory_renewal(&work->directory, work->term, &work->finding);
        break;
    case REGISTER_REQUEST_WATCH:
        break; /* is not asked: no file system tells what other machines do there */
    }
}

static void work_free(void *subject) {
    struct work *work = subject;
    register_directory_clear(&work->directory);
    register_finding_clear(&work->finding);
    free(work->text);
    free(work);
}

/* The loop. */

static struct work *work_new(struct dir_register *state, const struct register_request *request) {
    struct work *work = memory_allocate(sizeof *work);
    register_directory_copy(&state->directory, &work->directory);
    work->state = state;
    work->kind = request->kind;
    work->number = request->number;
    work->term = request->term;
    return work;
}

static void forget_tidying(void *context, void *subject) {
    (void)context;
    (void)subject;
}

/* Nobody waits for it. */
static void send_tidying(struct dir_register *state, const struct register_request *request) {
    struct work *work = work_new(state, request);
    struct errand *errand;
    work->is_tidying = true;
    enum failure_code code =
        errands_send(state->errands, &(struct errand_task){work_run, work_free, work},
            &(struct errand_answer){forget_tidying, NULL}, &errand, NULL);
    (void)code; /* the next one tidies */
}

static enum register_outcome outcome_of(const struct work *work) {
    if (work->code != FAILURE_NONE) {
        return work->finding.is_unknown ? REGISTER_OUTCOME_UNKNOWN : REGISTER_OUTCOME_FAILED;
    }
    bool has_lost = work->kind == REGISTER_REQUEST_APPEND && !work->finding.has_won;
    return has_lost ? REGISTER_OUTCOME_LOST : REGISTER_OUTCOME_DONE;
}

static void work_done(void *context, void *subject) {
    struct register_request *request = context;
    const struct work *work = subject;
    const struct register_finding *finding = &work->finding;
    bool has_note = *text_string(&finding->note) != '\0';
    const struct register_result result = {
        .outcome = outcome_of(work),
        .text = bytes_slice(&finding->text),
        .place = text_string(&finding->place),
        .note = has_note ? text_string(&finding->note) : NULL,
        .failure = &finding->why,
        .is_final = finding->is_final,
    };
    if (finding->has_won && work->code == FAILURE_NONE) {
        send_tidying(work->state, request);
    }
    register_request_answer(request, &result);
}

static void dir_begin(void *context, struct register_request *request) {
    struct dir_register *state = context;
    struct work *work = work_new(state, request);
    struct errand *errand = NULL;
    struct failure failure;
    if (request->kind == REGISTER_REQUEST_RENEW) {
        work->text = text_format(
            "%016" PRIx64 " %" PRIu64 "\n", state->renewal_seed, ++state->renewal_count);
    } else if (request->kind == REGISTER_REQUEST_APPEND) {
        work->text = memory_duplicate_string((const char *)request->text.data);
    }
    enum failure_code code =
        errands_send(state->errands, &(struct errand_task){work_run, work_free, work},
            &(struct errand_answer){work_done, request}, &errand, &failure);
    request->work = errand;
    if (code != FAILURE_NONE) {
        register_request_answer(request,
            &(struct register_result){
                .outcome = REGISTER_OUTCOME_FAILED, .failure = &failure, .is_final = true});
    }
}

static void dir_cancel(void *context, struct register_request *request) {
    struct dir_register *state = context;
    errands_drop(state->errands, request->work);
}

const struct register_engine dir_register_engine = {
    .name = "dir",
    .open = dir_open,
    .close = dir_close,
    .begin = dir_begin,
    .cancel = dir_cancel,
};
