/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/kubernetes_register.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/register/register_entry.h"
#include "host/loop/random_seed.h"
#include "host/register/kubernetes_client.h"
#include "wire/register/register_entry_text.h"

/* How long the server may take; so long for each attempt, because it may be slow. */
#define PATIENCE_MILLISECONDS 1500
#define PATIENCE_ATTEMPTS 10
/* The pauses before it is asked again, when it is not there and when others are faster. */
#define ABSENCE_PAUSE_MILLISECONDS 100
#define CONFLICT_PAUSE_MILLISECONDS 10
#define LONGEST_PAUSE_MILLISECONDS 500
/* For so long a server is asked again that does not let this account in. */
#define REFUSALS_MILLISECONDS 3000

struct kubernetes_register {
    struct event_loop *loop;
    struct curl_library curl;
    struct kubernetes_settings settings;
    struct kubernetes_client *client;
    char *node_name;
    char *entry_name;
    char *renewal_start; /* the name of a renewal, without its term */
    /* As they were when they were last read or written; NULL: unknown. */
    struct kubernetes_object *known[2];
    uint64_t renewal_seed;
    uint64_t renewal_count;
};

struct work {
    struct kubernetes_register *state;
    struct register_request *request;
    struct kubernetes_question *question;
    struct event_timer *timer; /* of a pause; then the object is read */
    enum kubernetes_kind kind;
    enum kubernetes_verb verb; /* of the question */
    int64_t attempts;
    int64_t conflicts;
    struct instant refused_at; /* for the first time; 0: never */
    bool may_have_happened;    /* of an append: the server was asked, and has not said no */
};

static void answered(void *context, const struct kubernetes_answer *answer);

/* The end of a request. */

static void work_free(struct work *work) {
    if (work->question != NULL) {
        kubernetes_question_cancel(work->question);
    }
    event_timer_free(work->timer);
    free(work);
}

static void finish(struct work *work, const struct register_result *result) {
    register_request_answer(work->request, result);
    work_free(work);
}

static void finish_failed(struct work *work, const struct failure *failure) {
    finish(work,
        &(struct register_result){
            .outcome = work->may_have_happened ? REGISTER_OUTCOME_UNKNOWN : REGISTER_OUTCOME_FAILED,
            .failure = failure,
            .is_final = true});
}

static const char *kind_name(const struct work *work) {
    return work->kind == KUBERNETES_CONFIG_MAP ? "ConfigMap" : "Lease";
}

static void finish_with_text(
    struct work *work, enum register_outcome outcome, const char *name, const char *value) {
    const struct kubernetes_place *place = &work->state->settings.place;
    char *where =
        text_format("%s of ConfigMap %s in namespace %s", name, place->name, place->space);
    finish(work, &(struct register_result){.outcome = outcome,
                     .text = slice_from_string(value == NULL ? "" : value),
                     .place = where});
    free(where);
}

/* What is known. */

static void forget(struct work *work) {
    kubernetes_object_free(work->state->known[work->kind]);
    work->state->known[work->kind] = NULL;
}

static void keep(struct work *work, struct kubernetes_object *object) {
    forget(work);
    work->state->known[work->kind] = object;
}

static const char *known_entry(const struct kubernetes_register *state) {
    const struct kubernetes_object *object = state->known[KUBERNETES_CONFIG_MAP];
    return object == NULL ? NULL : kubernetes_object_value(object, state->entry_name);
}

/* 0: there is none. False: it cannot be read. */
static bool read_number(const char *entry_text, int64_t *out_number) {
    struct register_entry entry;
    *out_number = 0;
    if (entry_text == NULL) {
        return true;
    }
    if (register_entry_read(slice_from_string(entry_text), &entry, NULL) != FAILURE_NONE) {
        return false;
    }
    *out_number = entry.number;
    register_entry_clear(&entry);
    return true;
}

/* Asking. */

static void ask(struct work *work, enum kubernetes_verb verb, struct kubernetes_object *object) {
    struct failure failure;
    int64_t patience = work->attempts < PATIENCE_ATTEMPTS ? work->attempts + 1 : PATIENCE_ATTEMPTS;
    work->verb = verb;
    work->attempts++;
    work->question = kubernetes_ask(work->state->client, verb, work->kind, object,
        duration_from_milliseconds(patience * PATIENCE_MILLISECONDS), answered, work, &failure);
    if (work->question == NULL) {
        finish_failed(work, &failure);
    }
}

static void read_object(void *context) {
    ask(context, KUBERNETES_GET, NULL);
}

static void pause_for(struct work *work, struct duration pause) {
    event_timer_set(work->timer, instant_after(event_loop_now(work->state->loop), pause));
}

static void pause_milliseconds(struct work *work, int64_t milliseconds) {
    pause_for(work,
        duration_from_milliseconds(
            milliseconds < LONGEST_PAUSE_MILLISECONDS ? milliseconds : LONGEST_PAUSE_MILLISECONDS));
}

/* Writing. */

static void change_config_map(const struct work *work, struct kubernetes_object *object) {
    struct text text = {0};
    text_append_bytes(&text, (const char *)work->request->text.data, work->request->text.length);
    kubernetes_object_set_value(object, work->state->entry_name, text_string(&text));
    text_clear(&text);
}

/* The renewals of this term and the one before stay. */
static void change_lease(struct work *work, struct kubernetes_object *object) {
    struct kubernetes_register *state = work->state;
    int64_t term = work->request->term;
    char *name = text_format("%s%" PRId64, state->renewal_start, term);
    char value[64];
    snprintf(value, sizeof value, "%016" PRIx64 " %" PRIu64, state->renewal_seed,
        ++state->renewal_count);
    kubernetes_object_remove_below(object, state->renewal_start, term - 1);
    kubernetes_object_set_value(object, name, value);
    kubernetes_object_set_holder(object, state->node_name);
    free(name);
}

/* The object is not known from here on, until the answer comes. */
static void write_object(
    struct work *work, enum kubernetes_verb verb, struct kubernetes_object *object_taken) {
    if (work->kind == KUBERNETES_CONFIG_MAP) {
        change_config_map(work, object_taken);
    } else {
        change_lease(work, object_taken);
    }
    ask(work, verb, object_taken);
    kubernetes_object_free(object_taken);
}

static void update(struct work *work) {
    struct kubernetes_object *object = work->state->known[work->kind];
    work->state->known[work->kind] = NULL;
    write_object(work, KUBERNETES_UPDATE, object);
}

static void create(struct work *work) {
    write_object(work, KUBERNETES_CREATE,
        kubernetes_object_new(work->kind, work->state->settings.place.name));
}

/* What was read. */

static void finish_gone(struct work *work) {
    const struct kubernetes_place *place = &work->state->settings.place;
    struct failure failure;
    failure_set(&failure, FAILURE_MISSING,
        "entry %" PRId64
        " of this job's register is gone from ConfigMap %s in namespace %s: somebody has removed "
        "it while the job runs",
        work->request->number - 1, place->name, place->space);
    finish_failed(work, &failure);
}

/* The entry follows the last one, or it has lost. */
static void append(struct work *work) {
    const char *last = known_entry(work->state);
    int64_t number;
    if (!read_number(last, &number) || number >= work->request->number) {
        finish_with_text(work, REGISTER_OUTCOME_LOST, work->state->entry_name, last);
    } else if (number == work->request->number - 1) {
        update(work);
    } else {
        finish_gone(work);
    }
}

/* Watching. */

static bool has_later_entry(const struct work *work) {
    int64_t number;
    return read_number(known_entry(work->state), &number) && number > work->request->number;
}

static void finish_watch(struct work *work) {
    finish_with_text(
        work, REGISTER_OUTCOME_DONE, work->state->entry_name, known_entry(work->state));
}

/* The object may be of somebody else by now: it is looked at as any other that was read. */
static bool take_change(void *context, struct kubernetes_object *object_or_null) {
    struct work *work = context;
    bool is_own = object_or_null != NULL && kubernetes_object_has_label(object_or_null);
    if (object_or_null != NULL) {
        keep(work, object_or_null);
    }
    if (is_own && !has_later_entry(work)) {
        return true;
    }
    work->question = NULL;
    if (is_own) {
        finish_watch(work);
    } else {
        read_object(work);
    }
    return false;
}

static void watch(struct work *work) {
    struct failure failure;
    if (has_later_entry(work)) {
        finish_watch(work);
        return;
    }
    work->verb = KUBERNETES_WATCH;
    work->attempts++;
    work->question =
        kubernetes_watch(work->state->client, work->kind, work->state->known[work->kind],
            instant_until(event_loop_now(work->state->loop), work->request->deadline), take_change,
            answered, work, &failure);
    if (work->question == NULL) {
        finish_failed(work, &failure);
    }
}

static void finish_renewal(struct work *work, const struct kubernetes_object *lease) {
    char *name = text_format("%s%" PRId64, work->state->renewal_start, work->request->term);
    finish_with_text(work, REGISTER_OUTCOME_DONE, name,
        lease == NULL ? NULL : kubernetes_object_value(lease, name));
    free(name);
}

static void go_on_with_object(struct work *work) {
    switch (work->request->kind) {
    case REGISTER_REQUEST_READ:
        finish_with_text(
            work, REGISTER_OUTCOME_DONE, work->state->entry_name, known_entry(work->state));
        break;
    case REGISTER_REQUEST_APPEND:
        append(work);
        break;
    case REGISTER_REQUEST_RENEW:
        update(work);
        break;
    case REGISTER_REQUEST_RENEWAL:
        finish_renewal(work, work->state->known[KUBERNETES_LEASE]);
        break;
    case REGISTER_REQUEST_WATCH:
        watch(work);
        break;
    }
}

static void go_on_without_object(struct work *work) {
    switch (work->request->kind) {
    case REGISTER_REQUEST_READ:
        finish_with_text(work, REGISTER_OUTCOME_DONE, work->state->entry_name, NULL);
        break;
    case REGISTER_REQUEST_APPEND:
        if (work->request->number == 1) {
            create(work);
        } else {
            finish_gone(work);
        }
        break;
    case REGISTER_REQUEST_RENEW:
        create(work);
        break;
    case REGISTER_REQUEST_RENEWAL:
        finish_renewal(work, NULL);
        break;
    case REGISTER_REQUEST_WATCH: /* it may come */
        pause_milliseconds(work, LONGEST_PAUSE_MILLISECONDS);
        break;
    }
}

static void finish_foreign(struct work *work) {
    const struct kubernetes_place *place = &work->state->settings.place;
    struct failure failure;
    failure_set(&failure, FAILURE_INVALID,
        "%s %s in namespace %s is not Muster's: it lacks the label " KUBERNETES_LABEL
        "=" KUBERNETES_LABEL_VALUE "; give another name in --rdzv-endpoint, or label it",
        kind_name(work), place->name, place->space);
    finish_failed(work, &failure);
}

/* Answers. */

static void take_object(struct work *work, struct kubernetes_object *object) {
    keep(work, object);
    if (work->verb != KUBERNETES_GET) {
        finish(work, &(struct register_result){.outcome = REGISTER_OUTCOME_DONE});
    } else if (kubernetes_object_has_label(object)) {
        go_on_with_object(work);
    } else {
        forget(work); /* nothing is written there */
        finish_foreign(work);
    }
}

static void take_missing(struct work *work) {
    forget(work);
    if (work->verb == KUBERNETES_GET) {
        go_on_without_object(work);
    } else {
        pause_milliseconds(work, 0);
    }
}

/* Whoever was faster is found by reading. */
static void take_conflict(struct work *work) {
    forget(work);
    pause_milliseconds(work, CONFLICT_PAUSE_MILLISECONDS * work->conflicts);
    work->conflicts++;
}

static bool stays_wrong(struct work *work, const struct kubernetes_answer *answer) {
    struct instant now = event_loop_now(work->state->loop);
    bool may_pass = answer->may_pass && work->verb != KUBERNETES_WATCH;
    if (!answer->is_final || !may_pass) {
        return answer->is_final;
    }
    if (work->refused_at.nanoseconds == 0) {
        work->refused_at = now;
    }
    struct duration patience = duration_from_milliseconds(REFUSALS_MILLISECONDS);
    return !instant_is_before(now, instant_after(work->refused_at, patience));
}

static void take_failure(struct work *work, const struct kubernetes_answer *answer) {
    bool is_append = work->request->kind == REGISTER_REQUEST_APPEND;
    work->may_have_happened |= is_append && work->verb != KUBERNETES_GET && !answer->is_undone;
    if (stays_wrong(work, answer)) {
        finish_failed(work, answer->why);
        return;
    }
    work->request->trouble = *answer->why;
    if (answer->pause.nanoseconds > 0) {
        pause_for(work, answer->pause);
    } else {
        pause_milliseconds(work, ABSENCE_PAUSE_MILLISECONDS * work->attempts);
    }
}

static void answered(void *context, const struct kubernetes_answer *answer) {
    struct work *work = context;
    work->question = NULL;
    switch (answer->outcome) {
    case KUBERNETES_DONE:
        take_object(work, answer->object);
        break;
    case KUBERNETES_MISSING:
        take_missing(work);
        break;
    case KUBERNETES_CONFLICT:
        take_conflict(work);
        break;
    case KUBERNETES_FAILED:
        take_failure(work, answer);
        break;
    }
}

/* The engine. */

static void kubernetes_close(void *context) {
    struct kubernetes_register *state = context;
    kubernetes_client_free(state->client);
    kubernetes_settings_clear(&state->settings);
    kubernetes_object_free(state->known[KUBERNETES_CONFIG_MAP]);
    kubernetes_object_free(state->known[KUBERNETES_LEASE]);
    free(state->node_name);
    free(state->entry_name);
    free(state->renewal_start);
    free(state);
}

static enum failure_code kubernetes_open(struct event_loop *loop,
    const struct register_settings *settings, void **out_state, struct failure *failure) {
    struct kubernetes_register *state = memory_allocate(sizeof *state);
    const struct kubernetes_pod pod = kubernetes_pod_here();
    struct text job = {0};
    register_name_write_short(settings->run_id, &job);
    state->loop = loop;
    state->node_name = memory_duplicate_string(settings->node_name);
    state->entry_name = text_format("entry.%s", text_string(&job));
    state->renewal_start = text_format("renewal.%s.", text_string(&job));
    state->renewal_seed = random_seed();
    text_clear(&job);
    enum failure_code code = kubernetes_settings_read(
        settings->endpoint, settings->conf, &pod, &state->settings, failure);
    if (code == FAILURE_NONE) {
        code = curl_library_load(CURL_LIBRARY_NAME, &state->curl, failure);
    }
    if (code == FAILURE_NONE) {
        code = kubernetes_client_new(loop, &state->curl, &state->settings, &state->client, failure);
    }
    if (code == FAILURE_NONE) {
        *out_state = state;
    } else {
        kubernetes_close(state);
    }
    return code;
}

/* An append that follows the entry which is known, and a renewal, are written at once. */
static void kubernetes_begin(void *context, struct register_request *request) {
    struct work *work = memory_allocate(sizeof *work);
    struct kubernetes_register *state = context;
    bool has_entry =
        request->kind != REGISTER_REQUEST_RENEW && request->kind != REGISTER_REQUEST_RENEWAL;
    int64_t number;
    *work = (struct work){.state = state,
        .request = request,
        .kind = has_entry ? KUBERNETES_CONFIG_MAP : KUBERNETES_LEASE};
    work->timer = event_timer_new(state->loop, read_object, work);
    request->work = work;
    bool is_known = state->known[work->kind] != NULL;
    bool follows = is_known && request->kind == REGISTER_REQUEST_APPEND &&
                   read_number(known_entry(state), &number) && number == request->number - 1;
    if (follows || (is_known && request->kind == REGISTER_REQUEST_RENEW)) {
        update(work);
    } else if (is_known && request->kind == REGISTER_REQUEST_WATCH) {
        watch(work);
    } else {
        read_object(work);
    }
}

static void kubernetes_cancel(void *context, struct register_request *request) {
    (void)context;
    work_free(request->work);
}

const struct register_engine kubernetes_register_engine = {
    .name = "k8s",
    .watches = true,
    .open = kubernetes_open,
    .close = kubernetes_close,
    .begin = kubernetes_begin,
    .cancel = kubernetes_cancel,
};
