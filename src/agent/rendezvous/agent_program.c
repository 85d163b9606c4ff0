/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_program.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/rendezvous/rendezvous_waiting.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* A GET of what is not there would wait. A COMPARE_SET of what no key has reads as well: a store
 * answers with the value that is there, or with this one. */
#define NO_VALUE "?"
/* Longer than what a node says; a stranger may have written more. */
#define PROGRAM_MAXIMUM 64

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

static void ask(struct agent_program *program, struct store_request request,
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
    ask(program,
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

void agent_program_take_connected(struct agent_program *program) {
    compare_set(program, &program->key, (struct slice){0}, slice_of(&program->own), keep_theirs);
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
        ask(program,
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

static void say(struct agent_program *program, const char *misplaced) {
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
    say(program, reason);
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
    struct slice none = slice_from_string(NO_VALUE);
    compare_set(program, &program->key, none, none, keep_theirs);
    compare_set(program, &program->record_key, none, none, judge);
}
