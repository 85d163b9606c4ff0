/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_node_settings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/random.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/rendezvous/rendezvous_transcript.h"
#include "host/loop/clock.h"
#include "host/machine/machine.h"
#include "host/network/network_address.h"
#include "options/slurm/slurm_step.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* munge's library itself gives up after some seconds. */
#define MUNGE_PATIENCE_SECONDS 15
#define MUNGE_SILENCE_SECONDS 3

/* One of the two pointers is not NULL. */
struct agent_proof {
    struct job_token *token;
    struct munge_identity *munge;
};

struct waiting {
    const struct log *log;
};

static void munge_is_silent(void *context) {
    const struct waiting *waiting = context;
    log_warning(waiting->log, "waiting for munge's daemon, which does not answer");
}

static enum failure_code open_munge(const struct agent_proof_settings *settings,
    struct munge_identity **out_munge, struct failure *failure) {
    struct waiting waiting = {settings->log};
    const struct blocking_watch watch = {
        settings->loop, duration_from_seconds(MUNGE_SILENCE_SECONDS), munge_is_silent, &waiting};
    const struct munge_identity_settings munge = {
        .library = settings->munge_library,
        .socket = settings->config->munge_socket,
        .job = settings->run_id,
        .persistence = settings->munge_persistence,
        .patience = duration_from_seconds(MUNGE_PATIENCE_SECONDS),
        .watch = &watch,
    };
    return munge_identity_open(&munge, out_munge, failure);
}

/* Where nobody asked for munge a machine need not have it. But where its socket is, any user of the
 * machine can keep the daemon busy, so that it does not answer: a job does not become open by that.
 */
static enum failure_code go_on_without_munge(
    const struct log *log, enum failure_code code, struct failure *failure) {
    if (code == FAILURE_CANCELLED) {
        return code;
    }
    if (code != FAILURE_MISSING && code != FAILURE_UNSUPPORTED) {
        struct failure cause = *failure;
        return failure_set(failure, code,
            "this machine has munge, by which the nodes of this job would prove themselves (--auth "
            "auto), but %s; with --auth none on all nodes they prove nothing",
            cause.message);
    }
    log_record(log, code == FAILURE_MISSING ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, LOG_ORIGIN,
        "the nodes of this job do not prove themselves to each other: there is no job token, and "
        "munge is not to be had: %s",
        failure->message);
    return FAILURE_NONE;
}

static enum failure_code open_kind(const struct agent_proof_settings *settings,
    struct agent_proof *proof, struct failure *failure) {
    const struct launch_config *config = settings->config;
    enum failure_code code = FAILURE_NONE;
    switch (config->auth) {
    case LAUNCH_AUTH_OPEN:
    case LAUNCH_AUTH_NONE:
        break;
    case LAUNCH_AUTH_TOKEN:
        code = job_token_open(config->job_token, config->token_file, &proof->token, failure);
        break;
    case LAUNCH_AUTH_MUNGE:
        code = open_munge(settings, &proof->munge, failure);
        code = code == FAILURE_NONE ? code : failure_wrap(failure, "--auth munge");
        break;
    case LAUNCH_AUTH_MUNGE_HERE:
        code = open_munge(settings, &proof->munge, failure);
        code = code == FAILURE_NONE ? code : go_on_without_munge(settings->log, code, failure);
        break;
    }
    return code;
}

enum failure_code agent_proof_open(const struct agent_proof_settings *settings,
    struct agent_proof **out_proof, struct failure *failure) {
    struct agent_proof *proof = memory_allocate(sizeof *proof);
    enum failure_code code = open_kind(settings, proof, failure);
    if (code != FAILURE_NONE || agent_proof_key(proof) == NULL) {
        agent_proof_free(proof);
        proof = NULL;
    }
    if (code == FAILURE_NONE) {
        *out_proof = proof;
    }
    return code;
}

void agent_proof_free(struct agent_proof *proof) {
    if (proof != NULL) {
        job_token_free(proof->token);
        munge_identity_free(proof->munge);
        free(proof);
    }
}

const struct store_key *agent_proof_key(const struct agent_proof *proof) {
    if (proof == NULL) {
        return NULL;
    }
    return proof->token != NULL ? job_token_key(proof->token) : munge_identity_key(proof->munge);
}

/* Joining. */

/* A shorter wait is not worth a word. */
#define TOLD_SECONDS 1
#define ADMISSION_NO_VALUE "?" /* as in agent_neighbours.c */
#define MILLISECONDS_PER_SECOND 1000
#define DIGITS_MAXIMUM 24
/* A node whose clock is wrong, or a stranger, may have written any time. */
#define BELIEVED_SECONDS 86400

struct agent_admission {
    struct event_loop *loop;
    struct rendezvous_backend *backend;
    struct agent_admission_settings settings;
    struct text key;
    struct instant told; /* the time of the admission that was told last */
    bool is_asked;
    /* What was answered: a wall clock time, negative where no pause is the reason; 0: nothing. */
    int64_t answer;
};

struct agent_admission *agent_admission_new(struct event_loop *loop,
    struct rendezvous_backend *backend, const struct agent_admission_settings *settings) {
    struct agent_admission initial = {.loop = loop, .backend = backend, .settings = *settings};
    rendezvous_key_write_admission(settings->run_id, &initial.key);
    return memory_duplicate(&initial, sizeof initial);
}

void agent_admission_free(struct agent_admission *admission) {
    if (admission != NULL) {
        text_clear(&admission->key);
        free(admission);
    }
}

static bool admission_ask(struct agent_admission *admission, struct store_request request,
    void (*admission_answered)(void *context, const struct store_client_result *result)) {
    request.key = slice_from_string(text_string(&admission->key));
    struct store_client_call call = {
        .request = request,
        .is_raw = true,
        .timeout = admission->settings.answer_timeout,
        .done = admission_answered,
        .context = admission,
    };
    return rendezvous_backend_ask(admission->backend, &call);
}

/* By the node that admits. */

static int64_t wall_milliseconds(const struct agent_admission *admission) {
    return event_loop_wall_time(admission->loop).nanoseconds /
           (NANOSECONDS_PER_SECOND / MILLISECONDS_PER_SECOND);
}

static void tell(struct agent_admission *admission, struct duration left, bool is_paused) {
    struct text value = {0};
    struct text line = {0};
    int64_t at = wall_milliseconds(admission) +
                 left.nanoseconds / (NANOSECONDS_PER_SECOND / MILLISECONDS_PER_SECOND);
    text_append_format(&value, "%" PRId64, is_paused ? at : -at);
    (void)admission_ask(admission,
        (struct store_request){
            .operation = STORE_SET, .value = slice_from_string(text_string(&value))},
        NULL);
    rendezvous_waiting_describe_admission(left, is_paused, &line);
    log_info(
        admission->settings.log, "a node waits for a place in the world: %s", text_string(&line));
    text_clear(&value);
    text_clear(&line);
}

void agent_admission_note(
    struct agent_admission *admission, const struct rendezvous_admission *planned) {
    struct duration left = instant_until(event_loop_now(admission->loop), planned->at);
    if (!planned->is_awaited || planned->at.nanoseconds == admission->told.nanoseconds ||
        left.nanoseconds < TOLD_SECONDS * NANOSECONDS_PER_SECOND) {
        return;
    }
    admission->told = planned->at;
    tell(admission, left, planned->is_paused);
}

/* By the node that waits. */

static void admission_answered(void *context, const struct store_client_result *result) {
    struct agent_admission *admission = context;
    admission->is_asked = false;
    admission->answer = 0;
    if (result->code == FAILURE_NONE && result->reply->blob.length <= DIGITS_MAXIMUM) {
        struct text text = {0};
        text_append_bytes(
            &text, (const char *)result->reply->blob.data, result->reply->blob.length);
        if (text_parse_integer(text_string(&text), &admission->answer) != FAILURE_NONE) {
            admission->answer = 0;
        }
        text_clear(&text);
    }
}

bool agent_admission_look(struct agent_admission *admission) {
    struct slice none = slice_from_string(ADMISSION_NO_VALUE);
    if (!admission->is_asked) {
        admission->is_asked = admission_ask(admission,
            (struct store_request){.operation = STORE_COMPARE_SET, .expected = none, .value = none},
            admission_answered);
    }
    return admission->is_asked;
}

void agent_admission_describe(const struct agent_admission *admission, struct text *out) {
    int64_t most = (int64_t)BELIEVED_SECONDS * MILLISECONDS_PER_SECOND;
    int64_t now = wall_milliseconds(admission);
    bool is_paused = admission->answer > 0;
    if (admission->answer > INT64_MAX - most || admission->answer < most - INT64_MAX) {
        return;
    }
    int64_t left = (is_paused ? admission->answer : -admission->answer) - now;
    if (left > 0 && left <= most) {
        text_append(out, "; ");
        rendezvous_waiting_describe_admission(duration_from_milliseconds(left), is_paused, out);
    }
}

/* Program. */

/* A GET of what is not there would wait. A COMPARE_SET of what no key has reads as well: a store
 * answers with the value that is there, or with this one. */
#define PROGRAM_NO_VALUE "?"
/* Longer than what a node says; a stranger may have written more. */
#define PROGRAM_MAXIMUM 64
#define SAID_MAXIMUM 4096

struct agent_program {
    struct rendezvous_backend *backend;
    struct agent_program_settings settings;
    struct text own;    /* what this node runs */
    struct text theirs; /* what the job runs, as the store says */
    struct text key;
    struct text record_key;
    enum rendezvous_parking parking;
    bool is_spare_said;
    bool is_other_said; /* that another program runs in the same world */
    bool has_asked;     /* who says for all what this node would say */
};

struct agent_program *agent_program_new(
    struct rendezvous_backend *backend, const struct agent_program_settings *settings) {
    struct agent_program initial = {.backend = backend, .settings = *settings};
    rendezvous_spare_write_program(settings->config, &initial.own);
    rendezvous_key_write_program(settings->run_id, &initial.key);
    rendezvous_key_write_record(settings->run_id, &initial.record_key);
    return memory_duplicate(&initial, sizeof initial);
}

void agent_program_free(struct agent_program *program) {
    if (program != NULL) {
        text_clear(&program->own);
        text_clear(&program->theirs);
        text_clear(&program->key);
        text_clear(&program->record_key);
        free(program);
    }
}

static struct slice slice_of(const struct text *text) {
    return slice_from_string(text_string(text));
}

static void program_ask(struct agent_program *program, struct store_request request,
    void (*answered)(void *context, const struct store_client_result *result)) {
    struct store_client_call call = {
        .request = request,
        .is_raw = true,
        .timeout = program->settings.answer_timeout,
        .done = answered,
        .context = program,
    };
    (void)rendezvous_backend_ask(program->backend, &call);
}

static void compare_set(struct agent_program *program, const struct text *key,
    struct slice expected, struct slice value,
    void (*answered)(void *context, const struct store_client_result *result)) {
    program_ask(program,
        (struct store_request){.operation = STORE_COMPARE_SET,
            .key = slice_of(key),
            .expected = expected,
            .value = value},
        answered);
}

/* What the job runs. */

static void keep_theirs(void *context, const struct store_client_result *result) {
    struct agent_program *program = context;
    if (result->code == FAILURE_NONE && result->reply->blob.length <= PROGRAM_MAXIMUM) {
        text_clear(&program->theirs);
        text_append_bytes(
            &program->theirs, (const char *)result->reply->blob.data, result->reply->blob.length);
    }
}

static void hear(void *context, const struct store_client_result *result) {
    const struct agent_said *said = context;
    bool is_known = result->code == FAILURE_NONE && result->reply->blob.length <= SAID_MAXIMUM;
    if (result->code != FAILURE_CANCELLED) {
        said->heard(said->context, is_known ? result->reply->blob : (struct slice){0});
    }
}

struct store_client_call agent_said_call(
    struct agent_said *said, const struct text *key, struct duration timeout) {
    return (struct store_client_call){
        .request = {.operation = STORE_COMPARE_SET,
            .key = slice_of(key),
            .value = slice_from_string(said->text)},
        .is_raw = true,
        .timeout = timeout,
        .done = hear,
        .context = said,
    };
}

static void ask_who_says(struct agent_program *program) {
    struct text key = {0};
    if (program->settings.said == NULL || program->has_asked) {
        return;
    }
    program->has_asked = true;
    rendezvous_key_write_said(program->settings.run_id, &key);
    struct store_client_call call =
        agent_said_call(program->settings.said, &key, program->settings.answer_timeout);
    (void)rendezvous_backend_ask(program->backend, &call);
    text_clear(&key);
}

void agent_program_take_connected(struct agent_program *program) {
    compare_set(program, &program->key, (struct slice){0}, slice_of(&program->own), keep_theirs);
    ask_who_says(program);
}

static void warn_of_other(struct agent_program *program, const struct rendezvous_effect *told) {
    if (!program->is_other_said &&
        rendezvous_spare_is_mixed(told->world.state, &told->world.identity,
            slice_of(&program->theirs), text_string(&program->own))) {
        program->is_other_said = true;
        log_warning(program->settings.log,
            "this node runs another program, or with other arguments, than other nodes of job '%s' "
            "at %s, and they are one world now; if these are two jobs, give each an --rdzv-id of "
            "its own",
            program->settings.run_id, program->settings.where);
    }
}

/* The job runs what its rank 0 does, also where that node came later. */
void agent_program_take_world(struct agent_program *program, const struct rendezvous_effect *told) {
    bool is_said = text_equals(text_string(&program->theirs), text_string(&program->own));
    warn_of_other(program, told);
    if (told->world.group_rank == 0 && !is_said) {
        program_ask(program,
            (struct store_request){.operation = STORE_SET,
                .key = slice_of(&program->key),
                .value = slice_of(&program->own)},
            NULL);
        text_clear(&program->theirs);
        text_append(&program->theirs, text_string(&program->own));
    }
}

/* Beside a job. */

/* Who is let in at once does not wait for long. */
static bool may_wait_long(const struct agent_program *program) {
    const struct rendezvous_settings *settings = &program->settings.config->dynamic.settings;
    return settings->scale_up == RENDEZVOUS_SCALE_UP_NEVER ||
           settings->scale_up_interval.nanoseconds > 0;
}

static void program_say(struct agent_program *program, const char *misplaced) {
    struct text line = {0};
    bool is_spare = program->parking == RENDEZVOUS_IS_SPARE;
    bool is_worth_it = is_spare || (misplaced != NULL && may_wait_long(program));
    if (!is_worth_it || program->is_spare_said) {
        return;
    }
    program->is_spare_said = true;
    rendezvous_spare_describe(program->settings.config, program->settings.run_id,
        program->settings.where, is_spare, misplaced, &line);
    log_warning(program->settings.log, "%s", text_string(&line));
    text_clear(&line);
}

/* A record that makes no sense says nothing of where its nodes are. */
static void judge(void *context, const struct store_client_result *result) {
    struct agent_program *program = context;
    struct rendezvous_state record = {0};
    struct text misplaced = {0};
    bool is_absent = true;
    if (result->code != FAILURE_NONE || program->parking == RENDEZVOUS_NOT_PARKED) {
        return;
    }
    (void)!rendezvous_state_read_text(result->reply->blob, &is_absent, &record, NULL);
    bool is_misplaced = rendezvous_spare_find_misplaced(&record, program->settings.address,
        slice_of(&program->theirs), text_string(&program->own), &misplaced);
    const char *reason = is_misplaced ? text_string(&misplaced) : NULL;
    program_say(program, reason);
    program->settings.judged(program->settings.context, reason);
    rendezvous_state_clear(&record);
    text_clear(&misplaced);
}

/* Both are asked at once, so that the answers are there before this node reads that the job is
 * over. A node that delegates does not know the record. */
void agent_program_take_parking(struct agent_program *program, enum rendezvous_parking parking) {
    if (parking == program->parking) {
        return;
    }
    program->parking = parking;
    if (parking == RENDEZVOUS_NOT_PARKED) {
        program->is_spare_said = false;
        program->settings.judged(program->settings.context, NULL);
        return;
    }
    struct slice none = slice_from_string(PROGRAM_NO_VALUE);
    compare_set(program, &program->key, none, none, keep_theirs);
    compare_set(program, &program->record_key, none, none, judge);
}

/* Joining. */

/* What is asked for before something is said has been answered after so long, as a rule. */
#define ANSWER_MILLISECONDS 200

struct agent_joining {
    struct agent_joining_settings settings;
    struct event_loop *loop;
    struct event_timer *timer;
    struct instant begun;
    int count; /* how often it was said */
    bool has_asked;
    bool has_named; /* the node that speaks for all */
};

static void set_timer(struct agent_joining *joining) {
    event_timer_set(
        joining->timer, instant_after(joining->begun, joining->settings.moment(joining->count)));
}

/* What the record says is waited for. */
static void describe_record(
    const struct agent_joining *joining, struct duration waited, struct text *out) {
    const struct agent_joining_settings *settings = &joining->settings;
    const struct rendezvous_state *state = settings->state(settings->context);
    struct text_list unready = {0};
    if (settings->in_round != NULL && settings->in_round(settings->context, &unready)) {
        rendezvous_waiting_describe_round(state, &unready, waited, out);
    } else {
        rendezvous_waiting_describe(state, settings->rendezvous, settings->expected, waited,
            event_loop_wall_time(joining->loop), out);
        if (settings->admission != NULL && state->is_complete) {
            settings->admission(settings->context, out);
        }
    }
    text_list_clear(&unready);
}

/* Whether another node says what is waited for. */
static bool names_speaker(
    const struct agent_joining *joining, struct duration waited, struct text *out) {
    const struct agent_joining_settings *settings = &joining->settings;
    bool is_host_of_delegates = false;
    if (settings->fixed != NULL) {
        return rendezvous_waiting_describe_fixed_speaker(settings->fixed, waited, out);
    }
    if (settings->me == NULL) {
        return false;
    }
    const struct node_identity *me = settings->me(settings->context, &is_host_of_delegates);
    return rendezvous_waiting_describe_speaker(
        settings->state(settings->context), me, is_host_of_delegates, waited, out);
}

/* Returns false when another node says it, and `out` names that one. */
static bool describe(const struct agent_joining *joining, struct duration waited, bool is_terminal,
    struct text *out) {
    const struct agent_joining_settings *settings = &joining->settings;
    struct text obstacle = {0};
    bool is_own = true;
    if (settings->obstacle != NULL) {
        settings->obstacle(settings->context, &obstacle);
    }
    if (obstacle.length > 0) {
        rendezvous_waiting_describe_obstacle(
            settings->fixed, settings->rendezvous, text_string(&obstacle), waited, out);
    } else if (!is_terminal && names_speaker(joining, waited, out)) {
        is_own = false;
    } else if (settings->fixed != NULL) {
        rendezvous_waiting_describe_fixed(settings->fixed, waited, out);
    } else {
        describe_record(joining, waited, out);
    }
    text_clear(&obstacle);
    return is_own;
}

/* Whole seconds, on which the line is renewed. */
static struct duration waited_for(const struct agent_joining *joining, struct instant now) {
    int64_t waited = instant_until(joining->begun, now).nanoseconds;
    return (struct duration){waited - waited % NANOSECONDS_PER_SECOND};
}

/* On a terminal the moments pass between the renewals. */
static void pass_moment(struct agent_joining *joining) {
    joining->count++;
    if (joining->settings.waited != NULL) {
        joining->settings.waited(joining->settings.context);
    }
}

static bool is_past_moment(const struct agent_joining *joining) {
    int64_t moment = joining->settings.moment(joining->count).nanoseconds;
    return instant_until(joining->begun, event_loop_now(joining->loop)).nanoseconds >= moment;
}

/* Returns false where stderr is no terminal. */
static bool renew_line(struct agent_joining *joining) {
    struct log_sink *sink = joining->settings.sink;
    struct duration waited = waited_for(joining, event_loop_now(joining->loop));
    struct text line = {0};
    if (sink == NULL) {
        return false;
    }
    (void)describe(joining, waited, true, &line);
    bool is_shown = log_sink_show_status(sink, text_string(&line));
    text_clear(&line);
    if (is_shown) {
        waited.nanoseconds += NANOSECONDS_PER_SECOND;
        event_timer_set(joining->timer, instant_after(joining->begun, waited));
    }
    return is_shown;
}

/* Returns whether an answer is waited for. */
static bool ask_before(struct agent_joining *joining) {
    const struct agent_joining_settings *settings = &joining->settings;
    joining->has_asked = !joining->has_asked && settings->ask_before != NULL &&
                         settings->ask_before(settings->context);
    if (joining->has_asked) {
        event_timer_set(joining->timer, instant_after(event_loop_now(joining->loop),
                                            duration_from_milliseconds(ANSWER_MILLISECONDS)));
    }
    return joining->has_asked;
}

static void say(void *context) {
    struct agent_joining *joining = context;
    struct text line = {0};
    if (ask_before(joining)) {
        return;
    }
    if (renew_line(joining)) {
        if (is_past_moment(joining)) {
            pass_moment(joining);
        }
        return;
    }
    bool is_own = describe(joining, joining->settings.moment(joining->count), false, &line);
    if (is_own || !joining->has_named) {
        log_warning(joining->settings.log, "%s", text_string(&line));
    }
    joining->has_named = joining->has_named || !is_own;
    text_clear(&line);
    pass_moment(joining);
    set_timer(joining);
}

static void fall_silent(struct agent_joining *joining) {
    event_timer_stop(joining->timer);
    if (joining->settings.sink != NULL) {
        (void)log_sink_show_status(joining->settings.sink, NULL);
    }
}

void agent_joining_expect(const struct launch_config *config, const struct text_list *environment,
    struct text_list *out_expected) {
    const char *list = text_list_variable(environment, "SLURM_STEP_NODELIST");
    const char *host = config->dynamic.host;
    if (list == NULL || host == NULL || hostlist_expand(list, out_expected) != FAILURE_NONE ||
        out_expected->count != (size_t)config->maximum_nodes ||
        !text_equals(out_expected->items[0], host)) {
        text_list_clear(out_expected);
    }
}

struct agent_joining *agent_joining_new(
    struct event_loop *loop, const struct agent_joining_settings *settings) {
    struct agent_joining *joining = memory_allocate(sizeof *joining);
    *joining = (struct agent_joining){.settings = *settings, .loop = loop};
    if (settings->moment == NULL) {
        joining->settings.moment = rendezvous_waiting_moment;
    }
    joining->timer = event_timer_new(loop, say, joining);
    return joining;
}

void agent_joining_free(struct agent_joining *joining) {
    if (joining != NULL) {
        fall_silent(joining);
        event_timer_free(joining->timer);
        free(joining);
    }
}

void agent_joining_follow(
    struct agent_joining *joining, enum agent_phase before, enum agent_phase after) {
    if (joining == NULL || before == after) {
        return;
    }
    if (after == AGENT_JOINING) {
        joining->begun = event_loop_now(joining->loop);
        joining->count = 0;
        joining->has_asked = false;
        joining->has_named = false;
        set_timer(joining);
    } else {
        fall_silent(joining);
        if (before == AGENT_JOINING && joining->settings.ended != NULL) {
            joining->settings.ended(joining->settings.context);
        }
    }
}

/* Node settings. */

static enum membership_kind kind_of(const struct launch_config *config) {
    if (config->rendezvous == LAUNCH_RENDEZVOUS_DYNAMIC) {
        return MEMBERSHIP_CHANGING;
    }
    return config->maximum_nodes > 1 ? MEMBERSHIP_FIXED : MEMBERSHIP_ALONE;
}

static enum failure_code find_address(const struct launch_config *config, char **out_address,
    struct text *leads_to, struct failure *failure) {
    if (config->local_address != NULL) {
        *out_address = memory_duplicate_string(config->local_address);
        return FAILURE_NONE;
    }
    return local_address_for_many_nodes(out_address, leads_to, failure);
}

static char *name_store(const struct launch_config *config, enum membership_kind kind) {
    if (kind == MEMBERSHIP_FIXED) {
        return text_format("%s:%d", config->master_host, config->master_port);
    }
    if (kind == MEMBERSHIP_CHANGING && config->dynamic.register_engine != NULL) {
        return text_format(
            "%s %s", config->dynamic.register_engine, config->dynamic.register_endpoint);
    }
    if (kind == MEMBERSHIP_CHANGING && config->dynamic.file == NULL) {
        return text_format("%s:%d", config->dynamic.host, config->dynamic.port);
    }
    return memory_duplicate_string(config->dynamic.file);
}

static void name_node(
    struct node_settings *node, const char *address, const struct launch_config *config) {
    struct rendezvous_machine_settings *settings = &node->rendezvous;
    struct random random;
    random_init(&random, random_seed());
    settings->seed = random_next(&random); /* the machine's next name must not be this one again */
    node_identity_init(&settings->identity, address, getpid(),
        node_identity_muster_local_id((uint32_t)random_next(&random)));
    if (config->dynamic.register_engine != NULL) {
        settings->identity.process = (struct node_process){random_seed(), random_seed()};
    }
    node->succession = (struct succession_settings){
        .identity = settings->identity,
        .silence_timeout = config->dynamic.settings.silence_timeout,
        .fence_timeout = config->dynamic.settings.fence_timeout,
    };
}

/* Its address need not be one that other nodes can use, so no name server is asked. */
static enum failure_code write_claim(
    const struct launch_config *config, char **out_claim, struct failure *failure) {
    struct random random;
    struct node_identity identity;
    struct text claim = {0};
    char *name = NULL;
    if (config->local_address == NULL) {
        enum failure_code code = local_address_host_name(&name, failure);
        if (code != FAILURE_NONE) {
            return code;
        }
    }
    random_init(&random, random_seed());
    node_identity_init(&identity, name != NULL ? name : config->local_address, getpid(),
        node_identity_muster_local_id((uint32_t)random_next(&random)));
    identity.process = (struct node_process){random_seed(), random_seed()};
    node_identity_write(&identity, &claim);
    *out_claim = text_take(&claim);
    free(name);
    return FAILURE_NONE;
}

/* What other nodes are to know this one by. Leaves alone what a node of its kind has not. */
static enum failure_code find_names(const struct launch_config *config, enum membership_kind kind,
    char **out_address, struct text *leads_to, char **out_claim, struct failure *failure) {
    if (kind == MEMBERSHIP_CHANGING) {
        return find_address(config, out_address, leads_to, failure);
    }
    return kind == MEMBERSHIP_FIXED ? write_claim(config, out_claim, failure) : FAILURE_NONE;
}

static struct agent_settings agent_settings_of(const struct launch_config *config,
    const struct agent_preparation *preparation, enum membership_kind kind) {
    return (struct agent_settings){
        .worker_count = preparation->worker_count,
        .max_restarts = config->max_restarts,
        .shutdown_timeout = config->shutdown_timeout,
        .has_peers = kind != MEMBERSHIP_ALONE || config->is_placed,
        .looks_before_killing = config->evidence != LAUNCH_EVIDENCE_OFF,
        .checks_node = config->node_check != NULL,
        .restart_window = config->restart_window,
        .no_progress_restarts = config->no_progress_restarts,
        .restart_backoff = config->restart_backoff,
        .may_lose_peers = kind == MEMBERSHIP_CHANGING,
    };
}

static struct standby_settings choose_standby(const struct launch_config *config,
    const struct agent_preparation *preparation, struct agent_node_settings *settings) {
    struct cpu_set_bits cpus = {0};
    (void)!machine_topology_allowed_cpus(&cpus, NULL);
    settings->cpu_count = (int)cpu_set_count(&cpus);
    uint64_t assumed =
        config->has_standby_parent ? STANDBY_ASSUMED_FORKED_MIB : STANDBY_ASSUMED_MIB;
    settings->standby = standby_choose(config, preparation->worker_count, settings->cpu_count);
    return (struct standby_settings){
        .is_wanted = settings->standby == STANDBY_CHOICE_WANTED,
        .is_auto = config->standby == LAUNCH_STANDBY_AUTO,
        .worker_count = preparation->worker_count,
        .assumed = assumed << 20,
        .after = config->standby_after,
    };
}

static bool are_nodes_uniform(const struct text_list *environment) {
    const char *word = text_list_variable(environment, "TORCH_ELASTIC_WORKER_IDENTICAL");
    return word != NULL && text_equals(word, "1");
}

enum failure_code agent_node_settings_make(const struct launch_config *config,
    const struct agent_preparation *preparation, const struct text_list *environment,
    struct agent_node_settings *out_settings, struct failure *failure) {
    enum membership_kind kind = kind_of(config);
    const struct rendezvous_settings *rendezvous = &config->dynamic.settings;
    bool is_uniform = are_nodes_uniform(environment);
    char *address = NULL;
    char *claim = NULL;
    struct text leads_to = {0};
    enum failure_code code = find_names(config, kind, &address, &leads_to, &claim, failure);
    if (code != FAILURE_NONE) {
        text_clear(&leads_to);
        return code;
    }
    struct agent_node_settings settings = {
        .address = address,
        .address_leads_to = text_take(&leads_to),
        .where = name_store(config, kind),
        .claim = claim,
    };
    settings.node = (struct node_settings){
        .agent = agent_settings_of(config, preparation, kind),
        .membership =
            {
                .kind = kind,
                .is_placed = config->is_placed,
                .run_id = preparation->run_id,
                .role = config->role,
                .local_world_size = preparation->worker_count,
                .address = settings.address,
                .where = settings.where,
                .master_address = preparation->master_address,
                .master_port = config->master_port,
                .node_rank = config->node_rank,
                .node_count = config->maximum_nodes,
                .settling_time = config->settling_time,
                .is_hasty = config->dynamic.register_engine != NULL && !config->has_settling_time,
                .has_succession = config->dynamic.register_engine != NULL,
                .ignores_losses = !rendezvous_settings_heed_losses(rendezvous),
            },
        .rendezvous = {.rendezvous = *rendezvous,
            .has_succession = config->dynamic.register_engine != NULL},
        .round =
            {
                .role = config->role,
                .local_world_size = preparation->worker_count,
                .is_uniform = is_uniform,
                .has_succession = config->dynamic.register_engine != NULL,
                .timeout =
                    kind == MEMBERSHIP_CHANGING ? rendezvous->join_timeout : config->store_timeout,
                .where = settings.where,
                .claim = settings.claim,
                .exit_barrier_timeout = config->exit_barrier_timeout,
            },
    };
    settings.node.standby = choose_standby(config, preparation, &settings);
    if (kind == MEMBERSHIP_CHANGING) {
        name_node(&settings.node, settings.address, config);
        settings.node.rendezvous.warming_patience =
            settings.node.standby.is_wanted ? config->standby_timeout : (struct duration){0};
    }
    *out_settings = settings;
    return FAILURE_NONE;
}

void agent_node_settings_clear(struct agent_node_settings *settings) {
    free(settings->address);
    free(settings->address_leads_to);
    free(settings->where);
    free(settings->claim);
    *settings = (struct agent_node_settings){0};
}
