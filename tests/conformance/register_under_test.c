/* SPDX-License-Identifier: BSD-3-Clause */
#include "register_under_test.h"

#include <stdio.h>

#include "host/register/temporary_place.h"

static struct register_under_test chosen;

void register_under_test_choose(int argument_count, char **arguments) {
    chosen.engine = argument_count > 1 ? register_engine_named(arguments[1]) : NULL;
    if (chosen.engine == NULL) {
        (void)fprintf(
            stderr, "usage: register_conformance ENGINE [ENDPOINT [PATTERN [KEY=VALUE …]]]\n");
        exit(2);
    }
    if (argument_count > 2) {
        chosen.endpoint = arguments[2];
    }
    if (argument_count > 3) {
        cmocka_set_test_filter(arguments[3]);
    }
    for (int i = 4; i < argument_count; i++) {
        text_list_add(&chosen.conf, arguments[i]);
    }
}

int register_under_test_set_up(void **state) {
    assert_int_equal(event_loop_new(&chosen.loop, NULL), FAILURE_NONE);
    chosen.is_temporary = chosen.endpoint == NULL;
    if (chosen.is_temporary) {
        chosen.endpoint = temporary_place_new();
    }
    *state = &chosen;
    return 0;
}

int register_under_test_tear_down(void **state) {
    (void)state;
    if (chosen.is_temporary) {
        temporary_place_free(chosen.endpoint);
    }
    text_list_clear(&chosen.conf);
    return event_loop_free(chosen.loop) ? 0 : 1;
}

struct register_under_test *register_under_test_gone(void) {
    static char directory[] = "/nowhere/at/all";
    static char members[] = "127.0.0.1:1,[::1]:1";
    static char place[] = "ml/train";
    static struct register_under_test gone;
    gone = (struct register_under_test){.loop = chosen.loop,
        .engine = chosen.engine,
        .endpoint = text_equals(chosen.engine->name, "dir")    ? directory
                    : text_equals(chosen.engine->name, "etcd") ? members
                                                               : place};
    text_list_add(&gone.conf, "k8s_server=http://127.0.0.1:1");
    return &gone;
}

char *unused_run_id(void) {
    char name[17];
    random_seed_name(name, sizeof name - 1);
    return text_format("conformance %s", name);
}

struct instant far(const struct register_under_test *under_test) {
    return instant_after(event_loop_now(under_test->loop), duration_from_seconds(3600));
}

/* An engine around the engine knows which racer a request is of. The answers of the inner engine
 * pass through here, because each request has another `answer` while the inner engine has it. */

#define MOST_REQUESTS 8

struct faulty {
    struct racer *racer;
    void *inner;
    struct register_request *requests[MOST_REQUESTS]; /* which the inner engine has */
    struct register_request *swallowed[MOST_REQUESTS];
    struct faulty *next;
};

static struct racer *racer_of_open;
static struct faulty *all_faulty;

static bool replace(struct register_request **requests, const struct register_request *old,
    struct register_request *new) {
    for (size_t i = 0; i < MOST_REQUESTS; i++) {
        if (requests[i] == old) {
            requests[i] = new;
            return true;
        }
    }
    return false;
}

static bool loses_reply(struct faulty *faulty, const struct register_request *request) {
    return request->kind == REGISTER_REQUEST_APPEND &&
           random_below(&faulty->racer->random, 10) < faulty->racer->faults.lost_replies_in_ten;
}

static void (*answer_of_register)(
    struct register_request *request, const struct register_result *result);

static void faulty_answer(struct register_request *request, const struct register_result *result) {
    struct failure failure;
    struct faulty *faulty = all_faulty;
    while (!replace(faulty->requests, request, NULL)) {
        faulty = faulty->next;
    }
    request->answer = answer_of_register;
    if (faulty->racer->faults.is_silent) {
        assert_true(replace(faulty->swallowed, NULL, request));
    } else if (loses_reply(faulty, request)) {
        failure_set(&failure, FAILURE_DISCONNECTED, "the reply is lost");
        request->answer(request,
            &(struct register_result){.outcome = REGISTER_OUTCOME_UNKNOWN, .failure = &failure});
    } else {
        request->answer(request, result);
    }
}

static enum failure_code faulty_open(struct event_loop *loop,
    const struct register_settings *settings, void **out_state, struct failure *failure) {
    struct faulty *faulty = memory_allocate(sizeof *faulty);
    faulty->racer = racer_of_open;
    faulty->next = all_faulty;
    all_faulty = faulty;
    assert_int_equal(chosen.engine->open(loop, settings, &faulty->inner, failure), FAILURE_NONE);
    *out_state = faulty;
    return FAILURE_NONE;
}

static void faulty_close(void *state) {
    struct faulty *faulty = state;
    struct faulty **link = &all_faulty;
    while (*link != faulty) {
        link = &(*link)->next;
    }
    *link = faulty->next;
    chosen.engine->close(faulty->inner);
    free(faulty);
}

static void faulty_begin(void *state, struct register_request *request) {
    struct faulty *faulty = state;
    assert_true(replace(faulty->requests, NULL, request));
    answer_of_register = request->answer;
    request->answer = faulty_answer;
    chosen.engine->begin(faulty->inner, request);
}

static void faulty_cancel(void *state, struct register_request *request) {
    struct faulty *faulty = state;
    if (!replace(faulty->swallowed, request, NULL)) {
        assert_true(replace(faulty->requests, request, NULL));
        chosen.engine->cancel(faulty->inner, request);
    }
}

/* Racers. */

static void note_answer(struct racer *racer, const struct register_event *event) {
    struct answer *answer = &racer->answer;
    answer->is_there = true;
    answer->kind = event->kind;
    answer->is_final = event->is_final;
    answer->has_entry = event->entry != NULL;
    if (event->entry != NULL) {
        register_entry_copy(event->entry, &answer->entry);
    }
    if (event->renewal != NULL) {
        text_append(&answer->renewal, event->renewal);
    }
    if (event->failure != NULL) {
        answer->failure = *event->failure;
    }
    event_loop_stop(racer->under_test->loop);
}

static void told(void *context, const struct register_event *event) {
    struct racer *racer = context;
    if (racer->told != NULL) {
        racer->told(racer, event);
    } else {
        note_answer(racer, event);
    }
}

struct racer *racers_new(struct register_under_test *under_test, const char *run_id, int count,
    void (*told_instead)(void *context, const struct register_event *event)) {
    struct racer *racers = memory_allocate((size_t)count * sizeof *racers);
    static struct register_engine faulty_engine;
    faulty_engine = (struct register_engine){
        .name = "faulty",
        .watches = chosen.engine->watches,
        .open = faulty_open,
        .close = faulty_close,
        .begin = faulty_begin,
        .cancel = faulty_cancel,
    };
    for (int i = 0; i < count; i++) {
        struct racer *racer = &racers[i];
        const struct register_settings settings = {.endpoint = under_test->endpoint,
            .run_id = run_id,
            .node_name = "node",
            .conf = &under_test->conf,
            .observer = {told, racer}};
        *racer = (struct racer){.index = i, .under_test = under_test, .told = told_instead};
        random_init(&racer->random, (uint64_t)i + 1);
        racer_of_open = racer;
        assert_int_equal(
            register_open(under_test->loop, &faulty_engine, &settings, &racer->job_register, NULL),
            FAILURE_NONE);
    }
    return racers;
}

void racers_free(struct racer *racers, int count) {
    for (int i = 0; i < count; i++) {
        register_free(racers[i].job_register);
        answer_clear(&racers[i].answer);
    }
    free(racers);
}

static struct instant deadline_of(const struct racer *racer) {
    struct event_loop *loop = racer->under_test->loop;
    return racer->deadline_milliseconds == 0
               ? far(racer->under_test)
               : instant_after(event_loop_now(loop),
                     duration_from_milliseconds(racer->deadline_milliseconds));
}

static struct answer await(struct register_under_test *under_test, struct racer *racer) {
    while (!racer->answer.is_there) {
        event_loop_run(under_test->loop);
    }
    struct answer answer = racer->answer;
    racer->answer = (struct answer){0};
    return answer;
}

struct answer read_last(struct register_under_test *under_test, struct racer *racer) {
    register_read(racer->job_register, deadline_of(racer));
    return await(under_test, racer);
}

struct answer append(struct register_under_test *under_test, struct racer *racer,
    const struct register_entry *entry) {
    register_append(racer->job_register, entry, deadline_of(racer));
    return await(under_test, racer);
}

struct answer renew(struct register_under_test *under_test, struct racer *racer, int64_t term) {
    register_renew(racer->job_register, term, deadline_of(racer));
    return await(under_test, racer);
}

struct answer renewal(struct register_under_test *under_test, struct racer *racer, int64_t term) {
    register_renewal(racer->job_register, term, deadline_of(racer));
    return await(under_test, racer);
}

uint64_t watch(struct racer *racer, int64_t number) {
    return register_watch(racer->job_register, number, deadline_of(racer));
}

struct answer news(struct register_under_test *under_test, struct racer *racer) {
    return await(under_test, racer);
}

void answer_clear(struct answer *answer) {
    register_entry_clear(&answer->entry);
    text_clear(&answer->renewal);
    *answer = (struct answer){0};
}
