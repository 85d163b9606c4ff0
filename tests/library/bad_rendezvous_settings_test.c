/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of what a rendezvous is made of: its settings, a backend of
 * the program's own, and what that gives. */
#include "unit.h"

#include <fcntl.h>

#include "library/bad_input.h"
#include "library/rendezvous_fixture.h"

static struct fixture fixture;
static size_t descriptors;

/* With a field that the library does not know. */
static struct {
    struct muster_rendezvous_settings known;
    long more;
} given = {.more = 1};
static struct {
    struct muster_rendezvous_backend known;
    long more;
} given_backend = {.more = 1};

/* Where it is made a round is taken part in, so that what is unusual about it is used. */
static enum muster_error make(struct muster_failure *failure) {
    struct muster_rendezvous *made = NULL;
    const struct muster_rendezvous_info *info;
    enum muster_error error = muster_rendezvous_new(&given.known, &made, failure);
    assert_true((error == MUSTER_OK) == (made != NULL));
    if (made != NULL && given.known.min_nodes <= 1) {
        error = muster_rendezvous_next(made, 0, &info, failure);
    }
    muster_rendezvous_free(made);
    free(fixture.memory.state);
    fixture.memory = (struct memory){0};
    return error;
}

/* Of a job of its own: nobody is missed who was there before. */
static void begin_given(void) {
    static char run_id[32];
    static int number;
    snprintf(run_id, sizeof run_id, "job%d", number++);
    given.known = settings_of(&fixture, 1, 1);
    given.known.run_id = run_id;
    given.known.round_over = NULL;
}

/* The settings of a node at an endpoint, with one that is not as it should be. */
#define WITH(member, value) (begin_given(), given.known.member = (value), make(failure))

/* And by a backend. */
static void begin_given_backend(void) {
    begin_given();
    given_backend.known = fixture.backend;
    given.known.endpoint = NULL;
    given.known.backend = &given_backend.known;
}

#define BACKEND(member, value)                                                                     \
    (begin_given_backend(), given_backend.known.member = (value), make(failure))

static void begin(void) {
    set_up(&fixture);
    begin_given();
    (void)make(NULL); /* what the first one of a process opens stays open */
    descriptors = process_descriptors();
}

static void end(void) {
    if (process_descriptors() > descriptors) { /* the server's side of a connection lags behind */
        usleep(200000);
    }
    assert_true(process_descriptors() <= descriptors);
    tear_down(&fixture);
}

#define WITHOUT_ENDPOINT(member, value)                                                            \
    (begin_given(), given.known.endpoint = NULL, given.known.member = (value), make(failure))

TEST(texts_of_settings) {
    char *text = bad_input_text(70000);
    (void)state;
    begin();
    REFUSED(muster_rendezvous_settings, size, BELOW, MUSTER_ERROR_INVALID, WITH(size, 0));
    REFUSED(muster_rendezvous_settings, size, BELOW, MUSTER_ERROR_INVALID,
        WITH(size, offsetof(struct muster_rendezvous_settings, use_agent_store) - 1));
    ALLOWED(muster_rendezvous_settings, size, BELOW, "a program of 0.2 knows no later members",
        WITH(size, offsetof(struct muster_rendezvous_settings, use_agent_store)) == MUSTER_OK);
    REFUSED(muster_rendezvous_settings, size, ABOVE, MUSTER_ERROR_INVALID, WITH(size, SIZE_MAX));
    REFUSED(muster_rendezvous_settings, size, NEWER, MUSTER_ERROR_UNSUPPORTED,
        WITH(size, sizeof given));
    REFUSED(muster_rendezvous_settings, run_id, IS_NULL, MUSTER_ERROR_INVALID, WITH(run_id, NULL));
    REFUSED(muster_rendezvous_settings, run_id, EMPTY, MUSTER_ERROR_INVALID, WITH(run_id, ""));
    REFUSED(muster_rendezvous_settings, run_id, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(run_id, text));
    REFUSED(
        muster_rendezvous_settings, run_id, NOT_UTF8, MUSTER_ERROR_INVALID, WITH(run_id, NO_UTF8));
    ALLOWED(muster_rendezvous_settings, run_id, NEWLINE, "a run id of TorchElastic is any text",
        WITH(run_id, "one\ntwo") == MUSTER_OK);
    REFUSED(
        muster_rendezvous_settings, endpoint, IS_NULL, MUSTER_ERROR_INVALID, WITH(endpoint, NULL));
    REFUSED(muster_rendezvous_settings, endpoint, EMPTY, MUSTER_ERROR_INVALID, WITH(endpoint, ""));
    REFUSED(
        muster_rendezvous_settings, endpoint, TOO_LONG, MUSTER_ERROR_LIMIT, WITH(endpoint, text));
    REFUSED(muster_rendezvous_settings, endpoint, NOT_UTF8, MUSTER_ERROR_INVALID,
        WITH(endpoint, NO_UTF8));
    REFUSED(muster_rendezvous_settings, endpoint, NEWLINE, MUSTER_ERROR_INVALID,
        WITH(endpoint, "127.0.0.1\n"));
    REFUSED(muster_rendezvous_settings, endpoint, NO_PORT, MUSTER_ERROR_INVALID,
        WITH(endpoint, "host:70000"));
    REFUSED(muster_rendezvous_settings, endpoint, NO_PORT, MUSTER_ERROR_INVALID,
        WITH(endpoint, "host:port"));
    REFUSED(muster_rendezvous_settings, backend, IS_NULL, MUSTER_ERROR_INVALID,
        WITHOUT_ENDPOINT(backend, NULL));
    REFUSED(muster_rendezvous_settings, backend, BOTH, MUSTER_ERROR_INVALID,
        WITH(backend, &fixture.backend));
    free(text);
    end();
}

TEST(places_of_settings) {
    char *text = bad_input_text(70000);
    (void)state;
    begin();
    ALLOWED(muster_rendezvous_settings, local_addr, IS_NULL, "there is a default",
        WITH(local_addr, NULL) == MUSTER_OK);
    REFUSED(
        muster_rendezvous_settings, local_addr, EMPTY, MUSTER_ERROR_INVALID, WITH(local_addr, ""));
    REFUSED(muster_rendezvous_settings, local_addr, TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH(local_addr, text));
    REFUSED(muster_rendezvous_settings, local_addr, NOT_UTF8, MUSTER_ERROR_INVALID,
        WITH(local_addr, NO_UTF8));
    REFUSED(muster_rendezvous_settings, local_addr, NEWLINE, MUSTER_ERROR_INVALID,
        WITH(local_addr, "node\n0"));
    ALLOWED(muster_rendezvous_settings, master_addr, IS_NULL, "there is a default",
        WITH(master_addr, NULL) == MUSTER_OK);
    REFUSED(muster_rendezvous_settings, master_addr, EMPTY, MUSTER_ERROR_INVALID,
        WITH(master_addr, ""));
    REFUSED(muster_rendezvous_settings, master_addr, TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH(master_addr, text));
    REFUSED(muster_rendezvous_settings, master_addr, NOT_UTF8, MUSTER_ERROR_INVALID,
        WITH(master_addr, NO_UTF8));
    REFUSED(muster_rendezvous_settings, master_addr, NEWLINE, MUSTER_ERROR_INVALID,
        WITH(master_addr, "node\n0"));
    ALLOWED(muster_rendezvous_settings, token_file, IS_NULL, "there need not be a token",
        WITH(token_file, NULL) == MUSTER_OK);
    REFUSED(
        muster_rendezvous_settings, token_file, EMPTY, MUSTER_ERROR_INVALID, WITH(token_file, ""));
    REFUSED(muster_rendezvous_settings, token_file, TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH(token_file, text));
    REFUSED(muster_rendezvous_settings, token_file, NOT_UTF8, MUSTER_ERROR_SYSTEM,
        WITH(token_file, NO_UTF8));
    ALLOWED(muster_rendezvous_settings, round_over, IS_NULL, "it need not be told",
        WITH(round_over, NULL) == MUSTER_OK);
    ALLOWED(muster_rendezvous_settings, log, IS_NULL, "it need not be told",
        WITH(log, NULL) == MUSTER_OK);
    ALLOWED(muster_rendezvous_settings, event, IS_NULL, "it need not be told",
        WITH(event, NULL) == MUSTER_OK);
    free(text);
    end();
}

TEST(numbers_of_settings) {
    begin();
    REFUSED(
        muster_rendezvous_settings, min_nodes, BELOW, MUSTER_ERROR_INVALID, WITH(min_nodes, -1));
    REFUSED(muster_rendezvous_settings, min_nodes, ABOVE, MUSTER_ERROR_INVALID,
        WITH(min_nodes, MUSTER_RENDEZVOUS_NODES_MAXIMUM + 1));
    REFUSED(muster_rendezvous_settings, min_nodes, ABOVE, MUSTER_ERROR_INVALID, WITH(min_nodes, 2));
    REFUSED(
        muster_rendezvous_settings, max_nodes, BELOW, MUSTER_ERROR_INVALID, WITH(max_nodes, -1));
    REFUSED(muster_rendezvous_settings, max_nodes, ABOVE, MUSTER_ERROR_INVALID,
        WITH(max_nodes, MUSTER_RENDEZVOUS_NODES_MAXIMUM + 1));
    REFUSED(muster_rendezvous_settings, max_nodes, ABOVE, MUSTER_ERROR_INVALID,
        WITH(max_nodes, INT_MAX));
    REFUSED(muster_rendezvous_settings, join_timeout, BELOW, MUSTER_ERROR_INVALID,
        WITH(join_timeout, -1));
    REFUSED(muster_rendezvous_settings, join_timeout, BELOW, MUSTER_ERROR_INVALID,
        WITH(join_timeout, 1e-9));
    REFUSED(muster_rendezvous_settings, join_timeout, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        WITH(join_timeout, NAN));
    ALLOWED(muster_rendezvous_settings, join_timeout, ABOVE, "so long is for ever",
        WITH(join_timeout, INFINITY) == MUSTER_OK);
    REFUSED(muster_rendezvous_settings, last_call_timeout, BELOW, MUSTER_ERROR_INVALID,
        WITH(last_call_timeout, -1));
    REFUSED(muster_rendezvous_settings, last_call_timeout, BELOW, MUSTER_ERROR_INVALID,
        WITH(last_call_timeout, 1e-9));
    REFUSED(muster_rendezvous_settings, last_call_timeout, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        WITH(last_call_timeout, NAN));
    ALLOWED(muster_rendezvous_settings, last_call_timeout, ABOVE, "so long is for ever",
        WITH(last_call_timeout, INFINITY) == MUSTER_OK);
    REFUSED(muster_rendezvous_settings, close_timeout, BELOW, MUSTER_ERROR_INVALID,
        WITH(close_timeout, -1));
    REFUSED(muster_rendezvous_settings, close_timeout, BELOW, MUSTER_ERROR_INVALID,
        WITH(close_timeout, 1e-9));
    REFUSED(muster_rendezvous_settings, close_timeout, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        WITH(close_timeout, NAN));
    ALLOWED(muster_rendezvous_settings, close_timeout, ABOVE, "so long is for ever",
        WITH(close_timeout, INFINITY) == MUSTER_OK);
    REFUSED(muster_rendezvous_settings, keep_alive_interval, BELOW, MUSTER_ERROR_INVALID,
        WITH(keep_alive_interval, -1));
    REFUSED(muster_rendezvous_settings, keep_alive_interval, BELOW, MUSTER_ERROR_INVALID,
        WITH(keep_alive_interval, 1e-9));
    REFUSED(muster_rendezvous_settings, keep_alive_interval, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        WITH(keep_alive_interval, NAN));
    REFUSED(muster_rendezvous_settings, keep_alive_interval, ABOVE, MUSTER_ERROR_INVALID,
        WITH(keep_alive_interval, 86401));
    REFUSED(muster_rendezvous_settings, keep_alive_interval, ABOVE, MUSTER_ERROR_INVALID,
        WITH(keep_alive_interval, INFINITY));
    REFUSED(muster_rendezvous_settings, keep_alive_max_attempt, ABOVE, MUSTER_ERROR_INVALID,
        WITH(keep_alive_max_attempt, 100001));
    end();
}

TEST(further_numbers_of_settings) {
    begin();
    REFUSED(muster_rendezvous_settings, keep_alive_max_attempt, BELOW, MUSTER_ERROR_INVALID,
        WITH(keep_alive_max_attempt, -1));
    REFUSED(muster_rendezvous_settings, keep_alive_max_attempt, ABOVE, MUSTER_ERROR_INVALID,
        WITH(keep_alive_max_attempt, INT_MAX));
    REFUSED(muster_rendezvous_settings, linger_timeout, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        WITH(linger_timeout, NAN));
    ALLOWED(muster_rendezvous_settings, linger_timeout, BELOW, "negative is not at all",
        WITH(linger_timeout, -INFINITY) == MUSTER_OK);
    ALLOWED(muster_rendezvous_settings, linger_timeout, ABOVE, "so long is for ever",
        WITH(linger_timeout, INFINITY) == MUSTER_OK);
    ALLOWED(muster_rendezvous_settings, is_host, NO_FLAG, "anything below 0 is no",
        WITH(is_host, INT_MIN) == MUSTER_OK);
    ALLOWED(muster_rendezvous_settings, is_torchrun, NO_FLAG, "anything but 0 is yes",
        WITH(is_torchrun, -1) == MUSTER_OK);
    REFUSED(muster_rendezvous_settings, master_port, BELOW, MUSTER_ERROR_INVALID,
        WITH(master_port, -1));
    REFUSED(muster_rendezvous_settings, master_port, ABOVE, MUSTER_ERROR_INVALID,
        WITH(master_port, 65536));
    ALLOWED(muster_rendezvous_settings, use_agent_store, BELOW, "anything but 0 is yes",
        WITH(use_agent_store, -1) == MUSTER_OK);
    ALLOWED(muster_rendezvous_settings, use_agent_store, ABOVE, "anything but 0 is yes",
        WITH(use_agent_store, INT_MAX) == MUSTER_OK);
    REFUSED(muster_rendezvous_settings, use_agent_store, ABOVE, MUSTER_ERROR_INVALID,
        (begin_given(), given.known.is_torchrun = 1, given.known.use_agent_store = 1,
            make(failure)));
    end();
}

static enum muster_error be_present(
    void *context, const char *node, struct muster_failure *failure) {
    (void)context;
    (void)node;
    (void)failure;
    return MUSTER_OK;
}

static int never_gone(void *context, const char *node) {
    (void)context;
    (void)node;
    return 0;
}

static int watched_fd;

static void begin_watched(void) {
    begin_given_backend();
    given_backend.known.has_watch = 1;
    given_backend.known.watch_fd = watched_fd;
}

static void begin_present(void) {
    begin_given_backend();
    given_backend.known.present = be_present;
    given_backend.known.is_gone = never_gone;
}

#define WATCHED(member, value)                                                                     \
    (begin_watched(), given_backend.known.member = (value), make(failure))
#define PRESENT(member, value)                                                                     \
    (begin_present(), given_backend.known.member = (value), make(failure))
#define BAD_WATCH(member, value)                                                                   \
    (begin_watched(), given_backend.known.watch_fd = -1, given_backend.known.member = (value),     \
        make(failure))

TEST(members_of_a_backend) {
    char *text = bad_input_text(300);
    int ends[2];
    (void)state;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    watched_fd = ends[0];
    begin();
    REFUSED(muster_rendezvous_backend, size, BELOW, MUSTER_ERROR_INVALID, BACKEND(size, 0));
    REFUSED(muster_rendezvous_backend, size, ABOVE, MUSTER_ERROR_INVALID, BACKEND(size, SIZE_MAX));
    REFUSED(muster_rendezvous_backend, size, NEWER, MUSTER_ERROR_UNSUPPORTED,
        BACKEND(size, sizeof given_backend));
    ALLOWED(muster_rendezvous_backend, name, IS_NULL, "there is a default",
        BACKEND(name, NULL) == MUSTER_OK);
    REFUSED(muster_rendezvous_backend, name, EMPTY, MUSTER_ERROR_INVALID, BACKEND(name, ""));
    REFUSED(muster_rendezvous_backend, name, TOO_LONG, MUSTER_ERROR_LIMIT, BACKEND(name, text));
    REFUSED(
        muster_rendezvous_backend, name, NOT_UTF8, MUSTER_ERROR_INVALID, BACKEND(name, NO_UTF8));
    REFUSED(muster_rendezvous_backend, get_state, IS_NULL, MUSTER_ERROR_INVALID,
        BACKEND(get_state, NULL));
    REFUSED(muster_rendezvous_backend, set_state, IS_NULL, MUSTER_ERROR_INVALID,
        BACKEND(set_state, NULL));
    REFUSED(
        muster_rendezvous_backend, present, IS_NULL, MUSTER_ERROR_INVALID, PRESENT(present, NULL));
    REFUSED(
        muster_rendezvous_backend, is_gone, IS_NULL, MUSTER_ERROR_INVALID, PRESENT(is_gone, NULL));
    REFUSED(
        muster_rendezvous_backend, watch_fd, BELOW, MUSTER_ERROR_INVALID, WATCHED(watch_fd, -1));
    REFUSED(muster_rendezvous_backend, watch_fd, BELOW, MUSTER_ERROR_INVALID,
        WATCHED(watch_fd, INT_MIN));
    REFUSED(muster_rendezvous_backend, watch_fd, ABOVE, MUSTER_ERROR_SYSTEM,
        WATCHED(watch_fd, INT_MAX));
    REFUSED(
        muster_rendezvous_backend, watch_fd, ABOVE, MUSTER_ERROR_SYSTEM, WATCHED(watch_fd, 12345));
    REFUSED(muster_rendezvous_backend, has_watch, NO_FLAG, MUSTER_ERROR_INVALID,
        BAD_WATCH(has_watch, -1));
    ALLOWED(muster_rendezvous_backend, changed, IS_NULL, "the record is looked at all the same",
        WATCHED(changed, NULL) == MUSTER_OK);
    free(text);
    end();
    close(ends[0]);
    close(ends[1]);
}

/* What a backend fills in. */

static struct muster_rendezvous_record bad;
/* Which member is that of `bad`. */
static size_t bad_offset;
static size_t bad_size;

static enum muster_error get_bad(
    void *context, struct muster_rendezvous_record *record, struct muster_failure *failure) {
    enum muster_error error = get_state(context, record, failure);
    memcpy((char *)record + bad_offset, (const char *)&bad + bad_offset, bad_size);
    return error;
}

static enum muster_error set_bad(void *context, const void *state, size_t length, const void *token,
    size_t token_length, struct muster_rendezvous_record *record, struct muster_failure *failure) {
    enum muster_error error =
        set_state(context, state, length, token, token_length, record, failure);
    memcpy((char *)record + bad_offset, (const char *)&bad + bad_offset, bad_size);
    return error;
}

/* A node that comes to the record of another one. */
static enum muster_error meet(size_t offset, size_t size, struct muster_failure *failure) {
    struct muster_rendezvous *first = NULL;
    struct muster_rendezvous *second = NULL;
    const struct muster_rendezvous_info *info = NULL;
    begin_given_backend();
    given.known.max_nodes = 2;
    given.known.min_nodes = 2;
    assert_int_equal(muster_rendezvous_new(&given.known, &first, NULL), MUSTER_OK);
    assert_int_equal(
        muster_rendezvous_submit_next(first, take_round, fixture.nodes, NULL), MUSTER_OK);
    while (fixture.memory.version == 0) {
        assert_int_equal(muster_rendezvous_process(first, NULL), MUSTER_OK);
    }
    muster_rendezvous_free(first);
    bad_offset = offset;
    bad_size = size;
    given_backend.known.get_state = get_bad;
    given_backend.known.set_state = set_bad;
    assert_int_equal(muster_rendezvous_new(&given.known, &second, NULL), MUSTER_OK);
    enum muster_error error = muster_rendezvous_next(second, 1, &info, failure);
    muster_rendezvous_free(second);
    free(fixture.memory.state);
    fixture.memory = (struct memory){0};
    return error;
}

/* What was set is said not to exist. */
static enum muster_error set_and_lose(void *context, const void *state, size_t length,
    const void *token, size_t token_length, struct muster_rendezvous_record *record,
    struct muster_failure *failure) {
    (void)context;
    (void)state;
    (void)length;
    (void)token;
    (void)token_length;
    (void)failure;
    *record = bad;
    return MUSTER_OK;
}

static enum muster_error lose(int is_set, struct muster_failure *failure) {
    bad = (struct muster_rendezvous_record){.is_set = is_set};
    begin_given_backend();
    given_backend.known.set_state = set_and_lose;
    given.known.join_timeout = 1;
    return make(failure);
}

#define RECORD(member, value)                                                                      \
    (bad.member = (value),                                                                         \
        meet(offsetof(struct muster_rendezvous_record, member), sizeof bad.member, failure))

TEST(what_a_backend_fills_in) {
    begin();
    REFUSED(muster_rendezvous_record, state, IS_NULL, MUSTER_ERROR_PROTOCOL, RECORD(state, NULL));
    REFUSED(muster_rendezvous_record, state_length, BELOW, MUSTER_ERROR_PROTOCOL,
        RECORD(state_length, 0));
    REFUSED(muster_rendezvous_record, state_length, ABOVE, MUSTER_ERROR_PROTOCOL,
        RECORD(state_length, SIZE_MAX));
    REFUSED(muster_rendezvous_record, state_length, ABOVE, MUSTER_ERROR_PROTOCOL,
        RECORD(state_length, MUSTER_RENDEZVOUS_STATE_MAXIMUM + 1));
    REFUSED(muster_rendezvous_record, token, IS_NULL, MUSTER_ERROR_PROTOCOL, RECORD(token, NULL));
    REFUSED(muster_rendezvous_record, token_length, BELOW, MUSTER_ERROR_PROTOCOL,
        RECORD(token_length, 0));
    REFUSED(muster_rendezvous_record, token_length, ABOVE, MUSTER_ERROR_PROTOCOL,
        RECORD(token_length, MUSTER_RENDEZVOUS_TOKEN_MAXIMUM + 1));
    REFUSED(muster_rendezvous_record, token_length, ABOVE, MUSTER_ERROR_PROTOCOL,
        RECORD(token_length, SIZE_MAX));
    REFUSED(muster_rendezvous_record, is_set, UNTRUE, MUSTER_ERROR_PROTOCOL,
        lose(bad.is_set = 1, failure));
    ALLOWED(muster_rendezvous_record, exists, NO_FLAG, "anything but 0 is yes",
        RECORD(exists, -1) == MUSTER_OK);
    ALLOWED(muster_rendezvous_record, is_set, NO_FLAG, "anything but 0 is yes",
        RECORD(is_set, -1) == MUSTER_OK);
    end();
}
