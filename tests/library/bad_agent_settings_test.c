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

TEST(what_is_run) {
    char *odd_program;
    (void)state;
    begin_settings();
    odd_program = text_format("%s/" NO_UTF8, fixture.directory);
    assert_int_equal(symlink("/bin/true", odd_program), 0);
    REFUSED(muster_agent_settings, size, BELOW, MUSTER_ERROR_INVALID, WITH(size, 0));
    REFUSED(muster_agent_settings, size, BELOW, MUSTER_ERROR_INVALID,
        WITH(size, offsetof(struct muster_agent_settings, master_addr) - 1));
    REFUSED(muster_agent_settings, size, ABOVE, MUSTER_ERROR_INVALID, WITH(size, SIZE_MAX));
    REFUSED(muster_agent_settings, size, NEWER, MUSTER_ERROR_UNSUPPORTED, WITH(size, sizeof given));
    REFUSED(
        muster_agent_settings, entrypoint, IS_NULL, MUSTER_ERROR_INVALID, WITH(entrypoint, NULL));
    REFUSED(muster_agent_settings, entrypoint, EMPTY, MUSTER_ERROR_INVALID, WITH(entrypoint, ""));
    REFUSED(
        muster_agent_settings, entrypoint, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(entrypoint, text));
    ALLOWED(muster_agent_settings, entrypoint, NOT_UTF8, "a path is any bytes",
        PROGRAM(entrypoint, odd_program) == MUSTER_OK);
    ALLOWED(muster_agent_settings, args, IS_NULL, "there need not be any",
        PROGRAM(args, NULL) == MUSTER_OK);
    ALLOWED(muster_agent_settings, args, EMPTY, "there need not be any",
        PROGRAM(args, no_words) == MUSTER_OK);
    REFUSED(muster_agent_settings, args, ITEM_TOO_LONG, MUSTER_ERROR_LIMIT, WITH(args, one_word));
    REFUSED(muster_agent_settings, args, TOO_MANY, MUSTER_ERROR_LIMIT, WITH(args, many_words));
    ALLOWED(muster_agent_settings, function, IS_NULL, "there is a program",
        WITH(function, NULL) == MUSTER_OK);
    REFUSED(
        muster_agent_settings, function, BOTH, MUSTER_ERROR_INVALID, WITH(function, do_nothing));
    ALLOWED(muster_agent_settings, env, IS_NULL, "it is that of the program",
        PROGRAM(env, NULL) == MUSTER_OK);
    ALLOWED(muster_agent_settings, env, EMPTY, "workers need none",
        ABSOLUTE(env, no_words) == MUSTER_OK);
    REFUSED(muster_agent_settings, env, ITEM_TOO_LONG, MUSTER_ERROR_LIMIT, WITH(env, one_word));
    REFUSED(muster_agent_settings, env, TOO_MANY, MUSTER_ERROR_LIMIT, WITH(env, many_words));
    free(odd_program);
    end_settings();
}

TEST(texts) {
    char *odd;
    (void)state;
    begin_settings();
    odd = text_format("%s/" NO_UTF8, fixture.directory);
    ALLOWED(
        muster_agent_settings, role, IS_NULL, "there is a default", WITH(role, NULL) == MUSTER_OK);
    REFUSED(muster_agent_settings, role, EMPTY, MUSTER_ERROR_INVALID, WITH(role, ""));
    REFUSED(muster_agent_settings, role, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(role, text));
    REFUSED(muster_agent_settings, role, NOT_UTF8, MUSTER_ERROR_INVALID, WITH(role, NO_UTF8));
    ALLOWED(muster_agent_settings, rdzv_backend, IS_NULL, "there is a default",
        WITH(rdzv_backend, NULL) == MUSTER_OK);
    REFUSED(
        muster_agent_settings, rdzv_backend, EMPTY, MUSTER_ERROR_INVALID, WITH(rdzv_backend, ""));
    REFUSED(muster_agent_settings, rdzv_backend, TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH(rdzv_backend, text));
    REFUSED(muster_agent_settings, rdzv_backend, NOT_UTF8, MUSTER_ERROR_INVALID,
        WITH(rdzv_backend, NO_UTF8));
    ALLOWED(muster_agent_settings, rdzv_endpoint, IS_NULL, "there is a default",
        WITH(rdzv_endpoint, NULL) == MUSTER_OK);
    REFUSED(
        muster_agent_settings, rdzv_endpoint, EMPTY, MUSTER_ERROR_INVALID, WITH(rdzv_endpoint, ""));
    REFUSED(muster_agent_settings, rdzv_endpoint, TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH(rdzv_endpoint, text));
    REFUSED(muster_agent_settings, rdzv_endpoint, NOT_UTF8, MUSTER_ERROR_INVALID,
        WITH(rdzv_endpoint, NO_UTF8));
    ALLOWED(muster_agent_settings, run_id, IS_NULL, "there is a default",
        WITH(run_id, NULL) == MUSTER_OK);
    REFUSED(muster_agent_settings, run_id, EMPTY, MUSTER_ERROR_INVALID, WITH(run_id, ""));
    REFUSED(muster_agent_settings, run_id, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(run_id, text));
    REFUSED(muster_agent_settings, run_id, NOT_UTF8, MUSTER_ERROR_INVALID, WITH(run_id, NO_UTF8));
    ALLOWED(muster_agent_settings, rdzv_configs, IS_NULL, "there is a default",
        WITH(rdzv_configs, NULL) == MUSTER_OK);
    REFUSED(
        muster_agent_settings, rdzv_configs, EMPTY, MUSTER_ERROR_INVALID, WITH(rdzv_configs, ""));
    REFUSED(muster_agent_settings, rdzv_configs, TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH(rdzv_configs, text));
    REFUSED(muster_agent_settings, rdzv_configs, NOT_UTF8, MUSTER_ERROR_INVALID,
        WITH(rdzv_configs, NO_UTF8));
    ALLOWED(muster_agent_settings, log_dir, IS_NULL, "there is a default",
        WITH(log_dir, NULL) == MUSTER_OK);
    REFUSED(muster_agent_settings, log_dir, EMPTY, MUSTER_ERROR_INVALID, WITH(log_dir, ""));
    REFUSED(muster_agent_settings, log_dir, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(log_dir, text));
    ALLOWED(muster_agent_settings, log_dir, NOT_UTF8, "a path is any bytes",
        WITH(log_dir, odd) == MUSTER_OK);
    ALLOWED(muster_agent_settings, redirects, IS_NULL, "there is a default",
        WITH(redirects, NULL) == MUSTER_OK);
    REFUSED(muster_agent_settings, redirects, EMPTY, MUSTER_ERROR_INVALID, WITH(redirects, ""));
    REFUSED(muster_agent_settings, redirects, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(redirects, text));
    REFUSED(
        muster_agent_settings, redirects, NOT_UTF8, MUSTER_ERROR_INVALID, WITH(redirects, NO_UTF8));
    ALLOWED(
        muster_agent_settings, tee, IS_NULL, "there is a default", WITH(tee, NULL) == MUSTER_OK);
    REFUSED(muster_agent_settings, tee, EMPTY, MUSTER_ERROR_INVALID, WITH(tee, ""));
    REFUSED(muster_agent_settings, tee, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(tee, text));
    REFUSED(muster_agent_settings, tee, NOT_UTF8, MUSTER_ERROR_INVALID, WITH(tee, NO_UTF8));
    free(odd);
    end_settings();
}

TEST(what_each_worker_is_told) {
    static const char *const odd[] = {"no variable", NULL};
    static const char *const good[] = {"NAME=value", NULL};
    static const char *const *const with_odd[] = {odd};
    static const char *const *const with_good[] = {good};
    char *long_host = bad_input_text(256);
    (void)state;
    begin_settings();
    ALLOWED(muster_agent_settings, size, BELOW, "a program of 0.2 knows no later members",
        WITH(size, offsetof(struct muster_agent_settings, master_addr)) == MUSTER_OK);
    ALLOWED(muster_agent_settings, master_addr, IS_NULL, "then it is that of the rendezvous",
        WITH(master_addr, NULL) == MUSTER_OK);
    REFUSED(muster_agent_settings, master_addr, EMPTY, MUSTER_ERROR_INVALID, WITH(master_addr, ""));
    REFUSED(muster_agent_settings, master_addr, TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH(master_addr, long_host));
    REFUSED(muster_agent_settings, master_addr, NOT_UTF8, MUSTER_ERROR_INVALID,
        WITH(master_addr, NO_UTF8));
    REFUSED(muster_agent_settings, master_port, BELOW, MUSTER_ERROR_INVALID, WITH(master_port, -1));
    REFUSED(
        muster_agent_settings, master_port, ABOVE, MUSTER_ERROR_INVALID, WITH(master_port, 65536));
    ALLOWED(muster_agent_settings, rank_env, IS_NULL, "then all have the same variables",
        WITH(rank_env, NULL) == MUSTER_OK);
    REFUSED(
        muster_agent_settings, rank_env, IS_NULL, MUSTER_ERROR_INVALID, WITH(rank_env, with_odd));
    ALLOWED(muster_agent_settings, rank_args, IS_NULL, "then all have the same arguments",
        WITH(rank_args, NULL) == MUSTER_OK);
    REFUSED(muster_agent_settings, rank_args, IS_NULL, MUSTER_ERROR_INVALID,
        (given.known = fixture.settings, given.known.function = do_nothing,
            given.known.entrypoint = NULL, given.known.args = NULL,
            given.known.rank_args = with_good, make(failure)));
    free(long_host);
    end_settings();
}

TEST(numbers_lists_and_callbacks) {
    begin_settings();
    REFUSED(muster_agent_settings, local_world_size, BELOW, MUSTER_ERROR_INVALID,
        WITH(local_world_size, 0));
    REFUSED(muster_agent_settings, local_world_size, BELOW, MUSTER_ERROR_INVALID,
        WITH(local_world_size, INT_MIN));
    REFUSED(muster_agent_settings, local_world_size, ABOVE, MUSTER_ERROR_INVALID,
        WITH(local_world_size, 4097));
    REFUSED(muster_agent_settings, local_world_size, ABOVE, MUSTER_ERROR_INVALID,
        WITH(local_world_size, INT_MAX));
    REFUSED(
        muster_agent_settings, max_restarts, BELOW, MUSTER_ERROR_INVALID, WITH(max_restarts, -1));
    REFUSED(muster_agent_settings, max_restarts, ABOVE, MUSTER_ERROR_INVALID,
        WITH(max_restarts, INT_MAX));
    REFUSED(muster_agent_settings, monitor_interval, BELOW, MUSTER_ERROR_INVALID,
        WITH(monitor_interval, 0));
    REFUSED(muster_agent_settings, monitor_interval, BELOW, MUSTER_ERROR_INVALID,
        WITH(monitor_interval, -INFINITY));
    REFUSED(muster_agent_settings, monitor_interval, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        WITH(monitor_interval, NAN));
    ALLOWED(muster_agent_settings, monitor_interval, ABOVE, "so long is never",
        WITH(monitor_interval, 1e300) == MUSTER_OK);
    REFUSED(muster_agent_settings, monitor_interval, ABOVE, MUSTER_ERROR_INVALID,
        WITH(monitor_interval, INFINITY));
    REFUSED(muster_agent_settings, min_nodes, BELOW, MUSTER_ERROR_INVALID, WITH(min_nodes, 0));
    REFUSED(muster_agent_settings, min_nodes, ABOVE, MUSTER_ERROR_INVALID, WITH(min_nodes, 2));
    REFUSED(muster_agent_settings, max_nodes, BELOW, MUSTER_ERROR_INVALID, WITH(max_nodes, 0));
    REFUSED(muster_agent_settings, max_nodes, ABOVE, MUSTER_ERROR_INVALID, WITH(max_nodes, 65537));
    REFUSED(
        muster_agent_settings, max_nodes, ABOVE, MUSTER_ERROR_INVALID, WITH(max_nodes, INT_MAX));
    ALLOWED(muster_agent_settings, options, IS_NULL, "there need not be any",
        WITH(options, NULL) == MUSTER_OK);
    ALLOWED(muster_agent_settings, options, EMPTY, "there need not be any",
        WITH(options, no_words) == MUSTER_OK);
    REFUSED(
        muster_agent_settings, options, ITEM_TOO_LONG, MUSTER_ERROR_LIMIT, WITH(options, one_word));
    REFUSED(
        muster_agent_settings, options, TOO_MANY, MUSTER_ERROR_LIMIT, WITH(options, many_words));
    ALLOWED(muster_agent_settings, event, IS_NULL, "each callback may be NULL",
        WITH(event, NULL) == MUSTER_OK);
    ALLOWED(muster_agent_settings, metric, IS_NULL, "each callback may be NULL",
        WITH(metric, NULL) == MUSTER_OK);
    ALLOWED(muster_agent_settings, ended, IS_NULL, "each callback may be NULL",
        WITH(ended, NULL) == MUSTER_OK);
    end_settings();
}

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

#define OWN(rendezvous_given, member, value)                                                       \
    (given.known = fixture.settings, given.known.rendezvous = (rendezvous_given),                  \
        given.known.member = (value), make(failure))

TEST(rendezvous_of_ones_own) {
    struct muster_rendezvous *pair;
    struct muster_rendezvous *placed;
    (void)state;
    begin_settings();
    pair = make_rendezvous(2, NULL);
    placed = make_rendezvous(1, "127.0.0.1:29400");
    ALLOWED(muster_agent_settings, rendezvous, IS_NULL, "then the backend has a name",
        WITH(rendezvous, NULL) == MUSTER_OK);
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
    REFUSED(muster_agent_settings, rdzv_store, ALONE, MUSTER_ERROR_INVALID,
        WITH(rdzv_store, "node0:29400"));
    muster_rendezvous_free(pair);
    muster_rendezvous_free(placed);
    end_settings();
}

TEST(hooks) {
    begin_settings();
    ALLOWED(muster_agent_settings, start_workers, IS_NULL, "each hook may be NULL",
        WITH(start_workers, NULL) == MUSTER_OK);
    ALLOWED(muster_agent_settings, restart_workers, IS_NULL, "each hook may be NULL",
        WITH(restart_workers, NULL) == MUSTER_OK);
    ALLOWED(muster_agent_settings, stop_workers, IS_NULL, "each hook may be NULL",
        WITH(stop_workers, NULL) == MUSTER_OK);
    ALLOWED(muster_agent_settings, monitor_workers, IS_NULL, "each hook may be NULL",
        WITH(monitor_workers, NULL) == MUSTER_OK);
    ALLOWED(muster_agent_settings, shutdown, IS_NULL, "each hook may be NULL",
        WITH(shutdown, NULL) == MUSTER_OK);
    ALLOWED(muster_agent_settings, alive_callback, IS_NULL, "each hook may be NULL",
        WITH(alive_callback, NULL) == MUSTER_OK);
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

TEST(descriptors) {
    begin_settings();
    REFUSED(muster_agent_settings, stdout_fd, BELOW, MUSTER_ERROR_INVALID, STARTED(stdout_fd, -2));
    REFUSED(
        muster_agent_settings, stdout_fd, BELOW, MUSTER_ERROR_INVALID, STARTED(stdout_fd, INT_MIN));
    REFUSED(
        muster_agent_settings, stdout_fd, ABOVE, MUSTER_ERROR_SYSTEM, STARTED(stdout_fd, 12345));
    REFUSED(
        muster_agent_settings, stdout_fd, ABOVE, MUSTER_ERROR_SYSTEM, STARTED(stdout_fd, INT_MAX));
    REFUSED(muster_agent_settings, stderr_fd, BELOW, MUSTER_ERROR_INVALID, STARTED(stderr_fd, -2));
    REFUSED(
        muster_agent_settings, stderr_fd, BELOW, MUSTER_ERROR_INVALID, STARTED(stderr_fd, INT_MIN));
    REFUSED(
        muster_agent_settings, stderr_fd, ABOVE, MUSTER_ERROR_SYSTEM, STARTED(stderr_fd, 12345));
    REFUSED(
        muster_agent_settings, stderr_fd, ABOVE, MUSTER_ERROR_SYSTEM, STARTED(stderr_fd, INT_MAX));
    end_settings();
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
    (void)state;
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
