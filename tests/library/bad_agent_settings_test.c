/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of what is handed to the functions of muster/agent.h. */
#include "unit.h"

#include <muster/rendezvous.h>

#include "library/agent_fixture.h"
#include "library/bad_input.h"

#define TEXT_MAXIMUM 65536
#define WORD_MAXIMUM 131071
#define LIST_MAXIMUM 65536

static struct fixture fixture;
static struct muster_agent *agent;

static struct {
    struct muster_agent_settings known;
    long more; /* a field that the library does not know */
} given = {.more = 1};

static char *text; /* one byte too long for a text, and … */
static char *word; /* … for an item of a list */
static const char *one_word[2];
static const char **many_words;
static const char *const no_words[] = {NULL};

static void begin_settings(void) {
    set_up(&fixture, 1, "exit 0");
    fixture.settings.metric = NULL;
    text = bad_input_text(TEXT_MAXIMUM + 1);
    word = bad_input_text(WORD_MAXIMUM + 1);
    one_word[0] = word;
    many_words = calloc(LIST_MAXIMUM + 2, sizeof *many_words);
    assert_non_null(many_words);
    for (size_t i = 0; i <= LIST_MAXIMUM; i++) {
        many_words[i] = "x";
    }
}

static void end_settings(void) {
    free(text);
    free(word);
    free(many_words);
    tear_down(&fixture);
}

/* Both functions refuse alike. An agent that starts, though, ends well. */
static enum muster_error make(struct muster_failure *failure) {
    size_t before = process_descriptors();
    enum muster_error error = muster_agent_start(&given.known, &agent, failure);
    assert_true((error == MUSTER_OK) == (agent != NULL));
    if (error != MUSTER_OK) {
        assert_int_equal(muster_agent_run(&given.known, NULL, NULL), error);
    } else {
        const struct muster_run_result *result = wait_for_result(agent);
        error = result->state == MUSTER_WORKER_STATE_SUCCEEDED ? MUSTER_OK : MUSTER_ERROR_PROTOCOL;
    }
    muster_agent_free(agent);
    agent = NULL;
    assert_int_equal(process_descriptors(), before);
    return error;
}

#define WITH(member, value)                                                                        \
    (given.known = fixture.settings, given.known.member = (value), make(failure))

static int do_nothing(void *context, struct muster_return_value *out_value) {
    (void)context;
    (void)out_value;
    return 0;
}

/* A program that needs no arguments. */
#define PROGRAM(member, value)                                                                     \
    (given.known = fixture.settings, given.known.entrypoint = "true", given.known.args = NULL,     \
        given.known.member = (value), make(failure))
#define ABSOLUTE(member, value)                                                                    \
    (given.known = fixture.settings, given.known.entrypoint = "/bin/true",                         \
        given.known.args = NULL, given.known.member = (value), make(failure))

/* A rendezvous of the program's own. */

static enum muster_error get_nothing(
    void *context, struct muster_rendezvous_record *record, struct muster_failure *failure) {
    (void)context;
    (void)record;
    (void)failure;
    return MUSTER_OK;
}

/* The record is gone when it is read again: the node goes on with what it has written. */
static enum muster_error set_nothing(void *context, const void *given_state, size_t length,
    const void *token, size_t token_length, struct muster_rendezvous_record *record,
    struct muster_failure *failure) {
    (void)given_state;
    (void)length;
    (void)token;
    (void)token_length;
    return get_nothing(context, record, failure);
}

static struct muster_rendezvous *make_rendezvous(int max_nodes, const char *endpoint) {
    struct muster_rendezvous_settings settings = MUSTER_RENDEZVOUS_SETTINGS;
    struct muster_rendezvous_backend backend = MUSTER_RENDEZVOUS_BACKEND;
    struct muster_rendezvous *made = NULL;
    backend.get_state = get_nothing;
    backend.set_state = set_nothing;
    settings.run_id = "job";
    settings.max_nodes = max_nodes;
    settings.endpoint = endpoint;
    settings.is_host = -1;
    settings.backend = endpoint == NULL ? &backend : NULL;
    assert_int_equal(muster_rendezvous_new(&settings, &made, NULL), MUSTER_OK);
    return made;
}

static void do_nobody(void *context) {
    (void)context;
}

static void do_next(void *context, int restarts) {
    (void)context;
    (void)restarts;
}

#define PLACED(member, value)                                                                      \
    (given.known = fixture.settings, given.known.next_rendezvous = do_next,                        \
        given.known.member = (value), make(failure))
#define LINE(member, value)                                                                        \
    (given.known = fixture.settings, given.known.entrypoint = NULL, given.known.args = NULL,       \
        given.known.options = one_word, given.known.member = (value), make(failure))

TEST(node_that_the_program_places) {
    begin_settings();
    REFUSED(muster_agent_settings, rdzv_endpoint, BOTH, MUSTER_ERROR_INVALID,
        PLACED(rdzv_endpoint, "localhost:29400"));
    REFUSED(muster_agent_settings, rdzv_configs, BOTH, MUSTER_ERROR_INVALID,
        PLACED(rdzv_configs, "timeout=1"));
    REFUSED(muster_agent_settings, max_nodes, BOTH, MUSTER_ERROR_INVALID, PLACED(max_nodes, 2));
    REFUSED(
        muster_agent_settings, rdzv_backend, EMPTY, MUSTER_ERROR_INVALID, PLACED(rdzv_backend, ""));
    REFUSED(muster_agent_settings, rdzv_backend, TOO_LONG, MUSTER_ERROR_LIMIT,
        PLACED(rdzv_backend, text));
    end_settings();
}

TEST(command_line_for_a_program) {
    begin_settings();
    one_word[0] = "--nope";
    REFUSED(muster_agent_settings, options, UNKNOWN, MUSTER_ERROR_INVALID, LINE(options, one_word));
    one_word[0] = "train.py";
    REFUSED(muster_agent_settings, args, BOTH, MUSTER_ERROR_INVALID, LINE(args, fixture.args));
    end_settings();
}

#define OWN(rendezvous_given, member, value)                                                       \
    (given.known = fixture.settings, given.known.rendezvous = (rendezvous_given),                  \
        given.known.member = (value), make(failure))

TEST(rendezvous_of_ones_own) {
    struct muster_rendezvous *pair;
    struct muster_rendezvous *placed;
    begin_settings();
    pair = make_rendezvous(2, NULL);
    placed = make_rendezvous(1, "127.0.0.1:29400");
    REFUSED(muster_agent_settings, rendezvous, OTHER, MUSTER_ERROR_UNSUPPORTED,
        OWN(placed, rendezvous, placed));
    REFUSED(muster_agent_settings, rdzv_backend, BOTH, MUSTER_ERROR_INVALID,
        OWN(pair, rdzv_backend, "c10d"));
    REFUSED(muster_agent_settings, run_id, BOTH, MUSTER_ERROR_INVALID, OWN(pair, run_id, "other"));
    REFUSED(muster_agent_settings, max_nodes, BOTH, MUSTER_ERROR_INVALID, OWN(pair, max_nodes, 2));
    REFUSED(muster_agent_settings, rdzv_store, IS_NULL, MUSTER_ERROR_INVALID,
        OWN(pair, rdzv_store, NULL));
    REFUSED(
        muster_agent_settings, rdzv_store, EMPTY, MUSTER_ERROR_INVALID, OWN(pair, rdzv_store, ""));
    REFUSED(muster_agent_settings, rdzv_store, TOO_LONG, MUSTER_ERROR_LIMIT,
        OWN(pair, rdzv_store, text));
    REFUSED(muster_agent_settings, rdzv_store, NOT_UTF8, MUSTER_ERROR_INVALID,
        OWN(pair, rdzv_store, NO_UTF8));
    muster_rendezvous_free(pair);
    muster_rendezvous_free(placed);
    end_settings();
}

/* Where workers write. */

static struct muster_worker_logs logs;

static enum muster_error give_logs(void *context, const struct muster_worker_group *group,
    struct muster_worker_logs *out_logs, struct muster_failure *failure) {
    (void)context;
    (void)group;
    (void)failure;
    out_logs[0] = logs;
    return MUSTER_OK;
}

/* Whether the agent has ended because of them, before it has started a worker. */
static enum muster_error write_to(struct muster_worker_logs paths) {
    logs = paths;
    given.known = fixture.settings;
    given.known.redirects = "3";
    given.known.reify_logs = give_logs;
    assert_int_equal(muster_agent_start(&given.known, &agent, NULL), MUSTER_OK);
    const struct muster_run_result *result = wait_for_result(agent);
    enum muster_error error = result->state == MUSTER_WORKER_STATE_SUCCEEDED ? MUSTER_OK
                              : strstr(result->message, "reify_logs: ") != NULL
                                  ? MUSTER_ERROR_INVALID
                                  : MUSTER_ERROR_PROTOCOL;
    muster_agent_free(agent);
    agent = NULL;
    return error;
}

TEST(where_workers_write) {
    char *odd;
    begin_settings();
    odd = text_format("%s/" NO_UTF8, fixture.directory);
    ALLOWED(muster_worker_logs, stdout_file, IS_NULL, "there is the log directory",
        write_to((struct muster_worker_logs){.stdout_file = NULL}) == MUSTER_OK);
    ALLOWED(muster_worker_logs, stdout_file, EMPTY, "the agent's failure, which says why",
        write_to((struct muster_worker_logs){.stdout_file = ""}) == MUSTER_ERROR_INVALID);
    ALLOWED(muster_worker_logs, stdout_file, TOO_LONG, "the agent's failure, which says why",
        write_to((struct muster_worker_logs){.stdout_file = text}) == MUSTER_ERROR_INVALID);
    ALLOWED(muster_worker_logs, stdout_file, NOT_UTF8, "a path is any bytes",
        write_to((struct muster_worker_logs){.stdout_file = odd}) == MUSTER_OK);
    ALLOWED(muster_worker_logs, stderr_file, IS_NULL, "there is the log directory",
        write_to((struct muster_worker_logs){.stderr_file = NULL}) == MUSTER_OK);
    ALLOWED(muster_worker_logs, stderr_file, EMPTY, "the agent's failure, which says why",
        write_to((struct muster_worker_logs){.stderr_file = ""}) == MUSTER_ERROR_INVALID);
    ALLOWED(muster_worker_logs, stderr_file, TOO_LONG, "the agent's failure, which says why",
        write_to((struct muster_worker_logs){.stderr_file = text}) == MUSTER_ERROR_INVALID);
    ALLOWED(muster_worker_logs, stderr_file, NOT_UTF8, "a path is any bytes",
        write_to((struct muster_worker_logs){.stderr_file = odd}) == MUSTER_OK);
    ALLOWED(muster_worker_logs, error_file, IS_NULL, "there is the log directory",
        write_to((struct muster_worker_logs){.error_file = NULL}) == MUSTER_OK);
    ALLOWED(muster_worker_logs, error_file, EMPTY, "the agent's failure, which says why",
        write_to((struct muster_worker_logs){.error_file = ""}) == MUSTER_ERROR_INVALID);
    ALLOWED(muster_worker_logs, error_file, TOO_LONG, "the agent's failure, which says why",
        write_to((struct muster_worker_logs){.error_file = text}) == MUSTER_ERROR_INVALID);
    ALLOWED(muster_worker_logs, error_file, NOT_UTF8, "a path is any bytes",
        write_to((struct muster_worker_logs){.error_file = odd}) == MUSTER_OK);
    free(odd);
    end_settings();
}

/* Only muster_agent_start looks at them. */
static enum muster_error start_given(struct muster_failure *failure) {
    enum muster_error error = muster_agent_start(&given.known, &agent, failure);
    assert_null(agent);
    return error;
}

#define STARTED(member, value)                                                                     \
    (given.known = fixture.settings, given.known.member = (value), start_given(failure))

static char *odd_program;
static char *odd;
static char *long_host;
static const char *const no_variable[] = {"no variable", NULL};
static const char *const *const with_odd[] = {no_variable};

static int begin_rows(void **state) {
    (void)state;
    begin_settings();
    odd_program = text_format("%s/program" NO_UTF8, fixture.directory);
    assert_int_equal(symlink("/bin/true", odd_program), 0);
    odd = text_format("%s/" NO_UTF8, fixture.directory);
    long_host = bad_input_text(256);
    return 0;
}

static int end_rows(void **state) {
    (void)state;
    free(odd_program);
    free(odd);
    free(long_host);
    end_settings();
    return 0;
}

#include "bad_agent_settings_rows.h"

TEST_WITH(arguments_of_a_function, begin_rows, end_rows) {
    static const char *const good[] = {"NAME=value", NULL};
    static const char *const *const with_good[] = {good};
    REFUSED(muster_agent_settings, rank_args, IS_NULL, MUSTER_ERROR_INVALID,
        (given.known = fixture.settings, given.known.function = do_nothing,
            given.known.entrypoint = NULL, given.known.args = NULL,
            given.known.rank_args = with_good, make(failure)));
}

/* What a function gives back. */

static int give(void *context, struct muster_return_value *out_value) {
    *out_value = *(const struct muster_return_value *)context;
    return 0;
}

/* Whether the worker ended as one that has failed, and its failure says why. */
static enum muster_error give_back(struct muster_return_value value) {
    given.known = fixture.settings;
    given.known.entrypoint = NULL;
    given.known.args = NULL;
    given.known.function = give;
    given.known.function_context = &value;
    agent = NULL;
    assert_int_equal(muster_agent_start(&given.known, &agent, NULL), MUSTER_OK);
    const struct muster_run_result *result = wait_for_result(agent);
    bool is_failure = result->state == MUSTER_WORKER_STATE_FAILED && result->failure_count == 1 &&
                      result->failures[0].exitcode == 1 && result->failures[0].message != NULL;
    bool is_well = result->state == MUSTER_WORKER_STATE_SUCCEEDED && result->worker_count == 1 &&
                   result->workers[0].return_value.length == 0;
    muster_agent_free(agent);
    agent = NULL;
    return is_well ? MUSTER_OK : is_failure ? MUSTER_ERROR_LIMIT : MUSTER_ERROR_PROTOCOL;
}

TEST(what_a_function_gives_back) {
    char *value;
    begin_settings();
    value = bad_input_text(MUSTER_RETURN_VALUE_MAXIMUM + 1);
    ALLOWED(muster_return_value, data, IS_NULL, "a worker's failure, which says why",
        give_back((struct muster_return_value){.data = NULL, .length = 1}) == MUSTER_ERROR_LIMIT);
    ALLOWED(muster_return_value, length, ABOVE, "a worker's failure, which says why",
        give_back((struct muster_return_value){
            .data = value, .length = MUSTER_RETURN_VALUE_MAXIMUM + 1}) == MUSTER_ERROR_LIMIT);
    ALLOWED(muster_return_value, length, ABOVE, "a worker's failure, which says why",
        give_back((struct muster_return_value){.data = value, .length = SIZE_MAX}) ==
            MUSTER_ERROR_LIMIT);
    ALLOWED(muster_return_value, length, BELOW, "None is a length of 0",
        give_back((struct muster_return_value){.data = value, .length = 0}) == MUSTER_OK);
    free(value);
    end_settings();
}
