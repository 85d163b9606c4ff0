/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of what a rendezvous is made of: its settings, a backend of
 * the program's own, and what that gives. Most are in bad_rendezvous_settings.rows. */
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

static int watched_ends[2];
static char *text;

static int begin_rows(void **state) {
    (void)state;
    assert_int_equal(pipe2(watched_ends, O_CLOEXEC), 0);
    watched_fd = watched_ends[0];
    text = bad_input_text(70000);
    begin();
    return 0;
}

static int end_rows(void **state) {
    (void)state;
    end();
    free(text);
    close(watched_ends[0]);
    close(watched_ends[1]);
    return 0;
}

#include "bad_rendezvous_settings_rows.h"

TEST_WITH(what_does_not_fit_together, begin_rows, end_rows) {
    REFUSED(muster_rendezvous_settings, use_agent_store, ABOVE, MUSTER_ERROR_INVALID,
        (begin_given(), given.known.is_torchrun = 1, given.known.use_agent_store = 1,
            make(failure)));
    REFUSED(muster_rendezvous_record, is_set, UNTRUE, MUSTER_ERROR_PROTOCOL,
        lose(bad.is_set = 1, failure));
}
