/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/register.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/register/register_entry_text.h"

/* How long an append waits before it is tried again, when its reply was lost. */
#define FIRST_PAUSE_MILLISECONDS 20
#define LONGEST_PAUSE_MILLISECONDS 500

/* A request from its call to its event. */
struct entrance {
    struct register_request request; /* the first member: the engine's requests are found by it */
    struct job_register *owner;
    struct entrance *next;
    uint64_t number;
    struct text text;
    struct event_timer *timer; /* its deadline, or the end of a pause */
    int64_t pause_milliseconds;
    bool is_begun; /* the engine has it */
    /* The answer that waits for the loop's next turn. */
    bool is_answered;
    struct register_event answer;
    struct register_entry entry;
    char *renewal;
    char *note;
    struct failure failure;
};

struct job_register {
    struct event_loop *loop;
    const struct register_engine *engine;
    struct register_observer observer;
    void *state;
    struct entrance *entrances;
    uint64_t last_number;
};

static const struct register_engine *const engines[] = {
    &dir_register_engine, &etcd_register_engine, &kubernetes_register_engine};

const struct register_engine *register_engine_named(const char *name) {
    if (text_equals(name, "etcd-v3")) {
        name = "etcd";
    }
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
        if (text_equals(engines[i]->name, name)) {
            return engines[i];
        }
    }
    return NULL;
}

enum failure_code register_open(struct event_loop *loop, const struct register_engine *engine,
    const struct register_settings *settings, struct job_register **out_register,
    struct failure *failure) {
    struct job_register *job_register = memory_allocate(sizeof *job_register);
    job_register->loop = loop;
    job_register->engine = engine;
    job_register->observer = settings->observer;
    enum failure_code code = engine->open(loop, settings, &job_register->state, failure);
    if (code == FAILURE_NONE) {
        *out_register = job_register;
    } else {
        free(job_register);
    }
    return code;
}

static void entrance_free(struct entrance *entrance) {
    event_timer_free(entrance->timer);
    register_entry_clear(&entrance->entry);
    text_clear(&entrance->text);
    free(entrance->renewal);
    free(entrance->note);
    free(entrance);
}

static void unlink_entrance(struct entrance *entrance) {
    struct entrance **link = &entrance->owner->entrances;
    while (*link != entrance) {
        link = &(*link)->next;
    }
    *link = entrance->next;
}

static void withdraw(struct entrance *entrance) {
    if (entrance->is_begun) {
        entrance->is_begun = false;
        entrance->owner->engine->cancel(entrance->owner->state, &entrance->request);
    }
}

void register_free(struct job_register *job_register) {
    if (job_register == NULL) {
        return;
    }
    while (job_register->entrances != NULL) {
        struct entrance *entrance = job_register->entrances;
        withdraw(entrance);
        unlink_entrance(entrance);
        entrance_free(entrance);
    }
    job_register->engine->close(job_register->state);
    free(job_register);
}

/* Tells the answer, after which the request is gone; the register may be, too. */
static void tell(struct entrance *entrance) {
    struct register_observer observer = entrance->owner->observer;
    unlink_entrance(entrance);
    entrance->answer.request = entrance->number;
    observer.told(observer.context, &entrance->answer);
    entrance_free(entrance);
}

/* The event waits for the loop's next turn: whoever hears it may free the register, and the engine
 * with it. */
static void settle(struct entrance *entrance, struct register_event event) {
    entrance->answer = event;
    entrance->is_begun = false;
    entrance->is_answered = true;
    event_timer_set(entrance->timer, event_loop_now(entrance->owner->loop));
}

static void settle_failed(struct entrance *entrance, enum register_event_kind kind, bool is_final) {
    settle(entrance,
        (struct register_event){.kind = kind, .failure = &entrance->failure, .is_final = is_final});
}

static void begin(struct entrance *entrance) {
    struct job_register *job_register = entrance->owner;
    event_timer_set(entrance->timer, entrance->request.deadline);
    entrance->is_begun = true;
    job_register->engine->begin(job_register->state, &entrance->request);
}

static void time_out(struct entrance *entrance) {
    withdraw(entrance);
    if (entrance->request.trouble.code != FAILURE_NONE) {
        entrance->failure = entrance->request.trouble;
    }
    if (entrance->failure.code == FAILURE_NONE) {
        failure_set(&entrance->failure, FAILURE_TIMEOUT,
            "the register (--rdzv-backend %s) has not answered in time",
            entrance->owner->engine->name);
    }
    bool is_append = entrance->request.kind == REGISTER_REQUEST_APPEND;
    settle_failed(entrance, is_append ? REGISTER_UNKNOWN : REGISTER_FAILED, false);
}

static void timer_fired(void *context) {
    struct entrance *entrance = context;
    struct instant now = event_loop_now(entrance->owner->loop);
    if (entrance->is_answered) {
        tell(entrance);
    } else if (!instant_is_before(now, entrance->request.deadline)) {
        time_out(entrance);
    } else {
        begin(entrance); /* again, after a pause */
    }
}

/* An append that may have taken effect is tried again: the engine finds its own entry then. */
static void pause_append(struct entrance *entrance, const struct failure *failure) {
    struct instant now = event_loop_now(entrance->owner->loop);
    struct instant then =
        instant_after(now, duration_from_milliseconds(entrance->pause_milliseconds));
    if (failure != NULL) {
        entrance->failure = *failure;
    }
    entrance->is_begun = false;
    entrance->pause_milliseconds *= 2;
    if (entrance->pause_milliseconds > LONGEST_PAUSE_MILLISECONDS) {
        entrance->pause_milliseconds = LONGEST_PAUSE_MILLISECONDS;
    }
    event_timer_set(entrance->timer, instant_earlier(then, entrance->request.deadline));
}

/* Returns false when the text is no entry; the entrance has the failure then. */
static bool take_entry(struct entrance *entrance, const struct register_result *result) {
    struct text reason = {0};
    enum failure_code code = register_entry_read(result->text, &entrance->entry, &reason);
    if (code != FAILURE_NONE) {
        failure_set(&entrance->failure, FAILURE_INVALID,
            "%s cannot be used as an entry of this job's register: it %s; give the job another "
            "--rdzv-id or --rdzv-endpoint, or remove what is there",
            result->place == NULL ? "what the register holds" : result->place,
            text_string(&reason));
    }
    text_clear(&reason);
    return code == FAILURE_NONE;
}

static void take_read(struct entrance *entrance, const struct register_result *result) {
    bool is_there = result->text.length > 0;
    if (is_there && !take_entry(entrance, result)) {
        settle_failed(entrance, REGISTER_FAILED, true);
        return;
    }
    entrance->note = memory_duplicate_string(result->note);
    settle(entrance, (struct register_event){.kind = REGISTER_READ,
                         .entry = is_there ? &entrance->entry : NULL,
                         .note = entrance->note});
}

static void take_news(struct entrance *entrance, const struct register_result *result) {
    if (take_entry(entrance, result)) {
        settle(entrance, (struct register_event){.kind = REGISTER_NEWS, .entry = &entrance->entry});
    } else {
        settle_failed(entrance, REGISTER_FAILED, true);
    }
}

static void take_lost(struct entrance *entrance, const struct register_result *result) {
    const struct register_request *request = &entrance->request;
    if (!take_entry(entrance, result)) {
        settle_failed(entrance, REGISTER_FAILED, true);
    } else if (entrance->entry.number < request->number) { /* an engine may have read too early */
        register_entry_clear(&entrance->entry);
        pause_append(entrance, NULL);
    } else if (entrance->entry.number == request->number &&
               text_equals(entrance->entry.nonce, request->nonce)) {
        settle(entrance, (struct register_event){.kind = REGISTER_WON});
    } else {
        settle(entrance, (struct register_event){.kind = REGISTER_LOST, .entry = &entrance->entry});
    }
}

static void take_renewal(struct entrance *entrance, const struct register_result *result) {
    struct text renewal = {0};
    text_append_bytes(&renewal, (const char *)result->text.data, result->text.length);
    entrance->renewal = memory_duplicate_string(text_string(&renewal));
    text_clear(&renewal);
    settle(
        entrance, (struct register_event){.kind = REGISTER_RENEWAL, .renewal = entrance->renewal});
}

static void take_done(struct entrance *entrance, const struct register_result *result) {
    switch (entrance->request.kind) {
    case REGISTER_REQUEST_READ:
        take_read(entrance, result);
        break;
    case REGISTER_REQUEST_APPEND:
        settle(entrance, (struct register_event){.kind = REGISTER_WON});
        break;
    case REGISTER_REQUEST_RENEW:
        settle(entrance, (struct register_event){.kind = REGISTER_RENEWED});
        break;
    case REGISTER_REQUEST_RENEWAL:
        take_renewal(entrance, result);
        break;
    case REGISTER_REQUEST_WATCH:
        take_news(entrance, result);
        break;
    }
}

static void take_answer(struct register_request *request, const struct register_result *result) {
    struct entrance *entrance = (struct entrance *)(void *)request;
    switch (result->outcome) {
    case REGISTER_OUTCOME_DONE:
        take_done(entrance, result);
        break;
    case REGISTER_OUTCOME_LOST:
        take_lost(entrance, result);
        break;
    case REGISTER_OUTCOME_UNKNOWN:
        pause_append(entrance, result->failure);
        break;
    case REGISTER_OUTCOME_FAILED:
        entrance->failure = *result->failure;
        settle_failed(entrance, REGISTER_FAILED, result->is_final);
        break;
    }
}

/* Requests. */

static struct entrance *entrance_new(
    struct job_register *job_register, enum register_request_kind kind, struct instant deadline) {
    struct entrance *entrance = memory_allocate(sizeof *entrance);
    entrance->owner = job_register;
    entrance->request.kind = kind;
    entrance->request.answer = take_answer;
    entrance->request.deadline = deadline;
    entrance->number = ++job_register->last_number;
    entrance->pause_milliseconds = FIRST_PAUSE_MILLISECONDS;
    entrance->timer = event_timer_new(job_register->loop, timer_fired, entrance);
    entrance->next = job_register->entrances;
    job_register->entrances = entrance;
    return entrance;
}

static uint64_t start(struct entrance *entrance) {
    uint64_t number = entrance->number;
    begin(entrance);
    return number;
}

uint64_t register_read(struct job_register *job_register, struct instant deadline) {
    return start(entrance_new(job_register, REGISTER_REQUEST_READ, deadline));
}

uint64_t register_append(struct job_register *job_register, const struct register_entry *entry,
    struct instant deadline) {
    struct entrance *entrance = entrance_new(job_register, REGISTER_REQUEST_APPEND, deadline);
    register_entry_write(entry, &entrance->text);
    entrance->request.text = slice_from_string(text_string(&entrance->text));
    entrance->request.number = entry->number;
    entrance->request.term = entry->term;
    memcpy(entrance->request.nonce, entry->nonce, sizeof entry->nonce);
    return start(entrance);
}

uint64_t register_renew(struct job_register *job_register, int64_t term, struct instant deadline) {
    struct entrance *entrance = entrance_new(job_register, REGISTER_REQUEST_RENEW, deadline);
    entrance->request.term = term;
    return start(entrance);
}

uint64_t register_renewal(
    struct job_register *job_register, int64_t term, struct instant deadline) {
    struct entrance *entrance = entrance_new(job_register, REGISTER_REQUEST_RENEWAL, deadline);
    entrance->request.term = term;
    return start(entrance);
}

uint64_t register_watch(
    struct job_register *job_register, int64_t number, struct instant deadline) {
    if (!job_register->engine->watches) {
        return 0;
    }
    struct entrance *entrance = entrance_new(job_register, REGISTER_REQUEST_WATCH, deadline);
    entrance->request.number = number;
    return start(entrance);
}

void register_cancel(struct job_register *job_register, uint64_t request) {
    struct entrance *entrance = job_register->entrances;
    while (entrance != NULL && entrance->number != request) {
        entrance = entrance->next;
    }
    if (entrance != NULL) {
        withdraw(entrance);
        unlink_entrance(entrance);
        entrance_free(entrance);
    }
}
