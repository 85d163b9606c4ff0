/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of stores themselves: of making them, and of each function in
 * each situation of a store. bad_store_requests_test has what is asked of them. */
#include "unit.h"

#include <muster/rendezvous_state.h>

#include "library/bad_input.h"
#include "library/store_fixture.h"

#define DEFAULT_SECONDS 300

static struct fixture fixture;
static struct muster_store *store;

static void begin(void) {
    set_up(&fixture);
    store = fixture.store;
    fixture.store = NULL;
}

static void end(void) {
    muster_store_free(store);
    store = NULL;
    tear_down(&fixture);
}

/* Each function in each situation. */

static const char *const keys[] = {"k"};
static const struct muster_slice one_value[] = {{"1", 1}};
static const struct muster_store_request ping = MUSTER_STORE_REQUEST;

static struct muster_store *prefixed;
static struct muster_bytes value;
static int64_t number;
static int flag;
static struct muster_rendezvous_state *record;

/* What the functions give are dropped, so that what they give by mistake is seen. */
static int dropped(enum muster_error error) {
    bool is_untouched = prefixed == NULL && value.data == NULL && number == -1 && flag == -1;
    muster_bytes_clear(&value);
    muster_store_free(prefixed);
    prefixed = NULL;
    number = -1;
    flag = -1;
    return error == MUSTER_OK || is_untouched ? (int)error : -1;
}

/* Before it is known whether there will be a connection. */
static void renew(enum situation now) {
    if (now == TOO_EARLY) {
        muster_store_free(store);
        store = open_store(&fixture);
    }
}

static int forget(enum situation now) {
    if (now == IN_CALLBACK || now == TOO_EARLY || now == TOO_LATE) {
        store = NULL;
    }
    return 0;
}

/* Those that wait for an answer. */
static void play_waiting(enum situation now) {
    IN_EACH(muster_store_connect, dropped(muster_store_connect(store, NULL)), MUSTER_ERROR_INVALID,
        MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_get, dropped(muster_store_get(store, "k", &value, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_set, dropped(muster_store_set(store, "k", "1", 1, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_add, dropped(muster_store_add(store, "k", 1, &number, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_append, dropped(muster_store_append(store, "k", "1", 1, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_compare_set,
        dropped(muster_store_compare_set(store, "k", one_value[0], one_value[0], &value, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_check, dropped(muster_store_check(store, keys, 1, &flag, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_wait, dropped(muster_store_wait(store, keys, 1, 1, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_num_keys, dropped(muster_store_num_keys(store, &number, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_multi_get, dropped(muster_store_multi_get(store, keys, 1, &value, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_barrier, dropped(muster_store_barrier(store, 1, "barrier", 0, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_synchronize,
        dropped(muster_store_synchronize(store, "1", 1, 0, 1, "all", 0, &value, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_get_all,
        dropped(muster_store_get_all(store, 0, "all", 1, 0, &value, NULL)), MUSTER_ERROR_INVALID,
        MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_multi_set,
        dropped(muster_store_multi_set(store, keys, one_value, 1, NULL)), MUSTER_ERROR_INVALID,
        MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_queue_push, dropped(muster_store_queue_push(store, "q", "1", 1, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_queue_pop, dropped(muster_store_queue_pop(store, "q", 0, &value, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_queue_len, dropped(muster_store_queue_len(store, "q", &number, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_delete_key, dropped(muster_store_delete_key(store, "other", &flag, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_store_call, dropped(muster_store_call(store, &ping, NULL, NULL, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE,
        MUSTER_OK, MUSTER_ERROR_DISCONNECTED);
    IN_EACH(muster_rendezvous_state_get,
        dropped(muster_rendezvous_state_get(store, "job", &record, NULL)), MUSTER_ERROR_INVALID,
        MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE, MUSTER_ERROR_MISSING,
        MUSTER_ERROR_DISCONNECTED);
    assert_null(record);
}

static void play(enum situation now) {
    play_waiting(now);
    IN_EACH(muster_store_submit, dropped(muster_store_submit(store, &ping, NULL, NULL, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_OK);
    IN_EACH(muster_store_new_prefix, dropped(muster_store_new_prefix(store, "p", &prefixed, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_OK);
    IN_EACH(muster_store_set_timeout, dropped(muster_store_set_timeout(store, 300, NULL)),
        MUSTER_ERROR_INVALID, MUSTER_ERROR_FORKED, MUSTER_OK, MUSTER_ERROR_STATE, MUSTER_OK,
        MUSTER_OK);
    IN_EACH(muster_store_process, dropped(muster_store_process(store, NULL)), MUSTER_ERROR_INVALID,
        MUSTER_ERROR_FORKED, MUSTER_ERROR_STATE, MUSTER_ERROR_STATE, MUSTER_OK, MUSTER_OK);
    IN_EACH(muster_store_timeout, (int)muster_store_timeout(store), -1, DEFAULT_SECONDS,
        DEFAULT_SECONDS, DEFAULT_SECONDS, DEFAULT_SECONDS, DEFAULT_SECONDS);
    IN_EACH(muster_store_fd, muster_store_fd(store) < 0 ? -1 : 0, -1, -1, 0, -1, 0, 0);
    IN_EACH(muster_store_free, (muster_store_free(store), forget(now)), 0, 0, 0, 0, 0, 0);
}

static void fill(void) {
    set_text(store, "k", "1");
    assert_int_equal(muster_store_queue_push(store, "q", "1", 1, NULL), MUSTER_OK);
    (void)dropped(MUSTER_OK);
}

TEST(without_a_store) {
    (void)dropped(MUSTER_OK);
    play(IS_NULL);
}

TEST(in_a_child) {
    begin();
    fill();
    bad_input_play_in_child(play);
    assert_text(store, "k", "1");
    end();
}

static void play_in_callback(void *context, const struct muster_store_result *result) {
    (void)context;
    assert_int_equal(result->error, MUSTER_OK);
    play(IN_CALLBACK);
}

TEST(from_inside_a_callback) {
    begin();
    fill();
    assert_int_equal(muster_store_call(store, &ping, play_in_callback, NULL, NULL), MUSTER_OK);
    assert_null(store);
    end();
}

static void play_being_freed(void *context, const struct muster_store_result *result) {
    (void)context;
    assert_int_equal(result->error, MUSTER_ERROR_CANCELLED);
    play(BEING_FREED);
}

TEST(while_it_is_freed) {
    struct muster_store_request request = MUSTER_STORE_REQUEST;
    begin();
    fill();
    request.operation = MUSTER_STORE_GET;
    request.key = "missing";
    assert_int_equal(muster_store_submit(store, &request, play_being_freed, NULL, NULL), MUSTER_OK);
    muster_store_free(store);
    store = NULL;
    assert_true(bad_input_played[BEING_FREED]);
    end();
}

TEST(before_there_is_a_connection) {
    begin();
    fill();
    play(TOO_EARLY);
    end();
}

TEST(after_its_server_has_ended) {
    begin();
    fill();
    stop_server(&fixture);
    assert_int_equal(muster_store_num_keys(store, &number, NULL), MUSTER_ERROR_DISCONNECTED);
    play(TOO_LATE);
    end();
}

/* Making one. */

static struct muster_tcp_store_settings tcp;
static struct {
    struct muster_tcp_store_settings known;
    long more;
} tcp_and_more = {.more = 1};
/* With a field that the library does not know. */
static struct {
    struct muster_file_store_settings known;
    long more;
} file_and_more = {.more = 1};

/* The error, and that a store has come only without one. */
static enum muster_error taken(enum muster_error error, struct muster_store *made) {
    assert_true((error == MUSTER_OK) == (made != NULL));
    muster_store_free(made);
    return error;
}

static enum muster_error make_tcp(struct muster_failure *failure) {
    struct muster_store *made = NULL;
    enum muster_error error = muster_store_new_tcp(&tcp, &made, failure);
    return taken(error, made);
}

static enum muster_error make_file(struct muster_failure *failure) {
    struct muster_store *made = NULL;
    enum muster_error error = muster_store_new_file(&file_and_more.known, &made, failure);
    return taken(error, made);
}

static const struct muster_tcp_store_settings good_tcp = {
    .size = sizeof good_tcp, .host = "127.0.0.1", .port = 29500};

#define TCP(member, given) (tcp = good_tcp, tcp.member = (given), make_tcp(failure))
#define PATH(member, given)                                                                        \
    (file_and_more.known = (struct muster_file_store_settings)MUSTER_FILE_STORE_SETTINGS,          \
        file_and_more.known.path = fixture.path, file_and_more.known.member = (given),             \
        make_file(failure))

static enum muster_error make_newer(size_t size, struct muster_failure *failure) {
    struct muster_store *made = NULL;
    tcp_and_more.known = good_tcp;
    tcp_and_more.known.size = size;
    enum muster_error error = muster_store_new_tcp(&tcp_and_more.known, &made, failure);
    return taken(error, made);
}

static char odd[80];
static char *text;
static size_t descriptors;

static int begin_rows(void **state) {
    (void)state;
    text = bad_input_text(70000);
    begin();
    snprintf(odd, sizeof odd, "%s/" NO_UTF8, fixture.directory);
    descriptors = process_descriptors();
    return 0;
}

static int end_rows(void **state) {
    (void)state;
    assert_int_equal(process_descriptors(), descriptors);
    free(text);
    (void)unlink(odd);
    end();
    return 0;
}

#include "bad_store_rows.h"

TEST_WITH(newer_settings_of_a_server, begin_rows, end_rows) {
    REFUSED(muster_tcp_store_settings, size, NEWER, MUSTER_ERROR_UNSUPPORTED,
        make_newer(tcp_and_more.known.size = sizeof tcp_and_more, failure));
}

TEST(arguments_of_stores) {
    char *long_key = bad_input_text(MUSTER_STORE_KEY_MAXIMUM);
    struct muster_store *made = NULL;
    begin();
    tcp = good_tcp;
    file_and_more.known.path = fixture.path;
    REFUSED(muster_store_new_tcp, settings, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_new_tcp(NULL, &made, failure));
    REFUSED(muster_store_new_tcp, out_store, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_new_tcp(&tcp, NULL, failure));
    REFUSED(muster_store_new_file, settings, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_new_file(NULL, &made, failure));
    REFUSED(muster_store_new_file, out_store, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_new_file(&file_and_more.known, NULL, failure));
    REFUSED(muster_store_new_prefix, prefix, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_new_prefix(store, NULL, &made, failure));
    REFUSED(muster_store_new_prefix, prefix, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_new_prefix(store, long_key, &made, failure));
    REFUSED(muster_store_new_prefix, out_store, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_new_prefix(store, "p", NULL, failure));
    assert_null(made);
    ALLOWED(muster_store_new_prefix, prefix, EMPTY, "PyTorch's may be empty",
        muster_store_new_prefix(store, "", &prefixed, failure) == MUSTER_OK);
    (void)dropped(MUSTER_OK);
    ALLOWED(muster_store_new_prefix, prefix, NOT_UTF8, "a key is any bytes",
        muster_store_new_prefix(store, NO_UTF8, &prefixed, failure) == MUSTER_OK);
    (void)dropped(MUSTER_OK);
    ALLOWED(muster_bytes_clear, bytes, IS_NULL, "there is nothing to free",
        (muster_bytes_clear(NULL), true));
    REFUSED(muster_store_set_timeout, seconds, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        muster_store_set_timeout(store, NAN, failure));
    REFUSED(muster_store_set_timeout, seconds, BELOW, MUSTER_ERROR_INVALID,
        muster_store_set_timeout(store, 0, failure));
    assert_true(muster_store_timeout(store) == DEFAULT_SECONDS);
    ALLOWED(muster_store_set_timeout, seconds, BELOW, "negative is for ever",
        muster_store_set_timeout(store, -1, failure) == MUSTER_OK &&
            muster_store_timeout(store) == -1);
    ALLOWED(muster_store_set_timeout, seconds, ABOVE, "so long is for ever",
        muster_store_set_timeout(store, 1e300, failure) == MUSTER_OK &&
            muster_store_timeout(store) == -1);
    free(long_key);
    end();
}

/* The last one. */
TEST(each_situation_was_played) {
    bad_input_assert_all_played();
}
