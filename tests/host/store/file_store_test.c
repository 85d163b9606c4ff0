/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/memory.h"
#include "host/loop/files.h"
#include "host/store/store_access.h"
#include "host/store_answers.h"
#include "temporary_tree.h"

#define SOON duration_from_milliseconds(20)
#define LONG duration_from_milliseconds(60000)

struct user {
    struct store_access *store;
    int connected;
    int lost;
    struct failure failure; /* of `connected` or `lost` */
};

struct fixture {
    struct temporary_tree tree;
    char *path;
    struct event_loop *loop;
    struct user first;
    struct user second;
};

static void connected(void *context, const struct failure *failure) {
    struct user *user = context;
    user->connected++;
    if (failure != NULL) {
        user->failure = *failure;
    }
}

static void lost(void *context, const struct failure *failure) {
    struct user *user = context;
    user->lost++;
    user->failure = *failure;
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    temporary_tree_init(&fixture->tree);
    fixture->path = temporary_tree_path(&fixture->tree, "store");
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    store_access_free(fixture->first.store);
    store_access_free(fixture->second.store);
    assert_true(event_loop_free(fixture->loop));
    free(fixture->path);
    temporary_tree_clear(&fixture->tree);
}

static void start(struct fixture *fixture, struct user *user, struct duration connect_timeout) {
    user->store = store_access_over_file(fixture->loop, &(struct file_store_settings){
                                                            .path = fixture->path,
                                                            .connect_timeout = connect_timeout,
                                                            .connected = connected,
                                                            .lost = lost,
                                                            .context = user,
                                                        });
}

static void stop_loop(void *context) {
    event_loop_stop(context);
}

/* Runs the loop until the counter has changed. A timer keeps the loop running. */
static void turn_until(struct fixture *fixture, const int *counter) {
    struct event_timer *timer = event_timer_new(fixture->loop, stop_loop, fixture->loop);
    while (*counter == 0) {
        event_timer_set(
            timer, instant_after(event_loop_now(fixture->loop), duration_from_milliseconds(1)));
        event_loop_run(fixture->loop);
    }
    event_timer_free(timer);
}

static void begin(struct user *user, const struct store_request *request, struct duration timeout,
    struct store_answer *answer) {
    *answer = (struct store_answer){0};
    store_access_send(user->store, &(struct store_client_call){.request = *request,
                                       .timeout = timeout,
                                       .done = store_answer_remember,
                                       .context = answer});
    assert_int_equal(answer->calls, 0);
}

static struct store_answer ask(
    struct fixture *fixture, struct user *user, struct store_request request) {
    struct store_answer answer;
    begin(user, &request, LONG, &answer);
    turn_until(fixture, &answer.calls);
    assert_int_equal(answer.calls, 1);
    return answer;
}

static struct store_request set_request(const char *key, const char *value) {
    return (struct store_request){
        .operation = STORE_SET, .key = slice_from_string(key), .value = slice_from_string(value)};
}

static struct store_request get_request(const char *key) {
    return (struct store_request){.operation = STORE_GET, .key = slice_from_string(key)};
}

static struct store_request wait_request(const struct slice *key) {
    return (struct store_request){.operation = STORE_WAIT, .keys = key, .count = 1};
}

static void assert_bytes(struct fixture *fixture, const void *bytes, size_t length) {
    struct bytes found = {0};
    assert_int_equal(whole_file_read(fixture->path, false, 1 << 20, &found, NULL), FAILURE_NONE);
    assert_int_equal(found.length, length);
    assert_memory_equal(found.data, bytes, length);
    bytes_clear(&found);
}

FIXTURE_TEST(users_are_counted_in_and_out_as_pytorch_counts) {
    start(fixture, &fixture->first, LONG);
    turn_until(fixture, &fixture->first.connected);
    assert_int_equal(fixture->first.failure.code, FAILURE_NONE);
    static const char came[] = "\x09\0\0\0refcount/\1\0\0\0"
                               "1";
    assert_bytes(fixture, came, sizeof came - 1);
    store_access_free(fixture->first.store);
    fixture->first.store = NULL;
    static const char left[] = "\x09\0\0\0refcount/\1\0\0\0"
                               "1\x08\0\0\0cleanup/\1\0\0\0"
                               "1\x09\0\0\0refcount/\1\0\0\0"
                               "0";
    assert_bytes(fixture, left, sizeof left - 1);
}

FIXTURE_TEST(a_visitor_neither_makes_a_file_nor_is_counted) {
    struct file_store_settings settings = {.path = fixture->path,
        .is_visitor = true,
        .connect_timeout = LONG,
        .connected = connected,
        .context = &fixture->first};
    fixture->first.store = store_access_over_file(fixture->loop, &settings);
    turn_until(fixture, &fixture->first.connected);
    assert_int_equal(fixture->first.failure.system_error, ENOENT);
    temporary_tree_write_bytes(&fixture->tree, "store", "\2\0\0\0/k\1\0\0\0v", 11);
    settings.context = &fixture->second;
    fixture->second.store = store_access_over_file(fixture->loop, &settings);
    assert_string_equal(ask(fixture, &fixture->second, get_request("k")).text, "v");
    store_access_free(fixture->second.store);
    fixture->second.store = NULL;
    assert_bytes(fixture, "\2\0\0\0/k\1\0\0\0v", 11);
}

FIXTURE_TEST(a_wait_that_takes_too_long_leaves_the_store_usable) {
    start(fixture, &fixture->first, LONG);
    struct slice key = slice_from_string("k");
    struct store_request request = wait_request(&key);
    struct store_answer waited;
    struct store_answer queued;
    begin(&fixture->first, &request, SOON, &waited);
    request = set_request("k", "v");
    begin(&fixture->first, &request, LONG, &queued);
    turn_until(fixture, &waited.calls);
    assert_int_equal(waited.code, FAILURE_TIMEOUT);
    turn_until(fixture, &queued.calls);
    assert_int_equal(queued.code, FAILURE_NONE);
    assert_int_equal(fixture->first.lost, 0);
}

FIXTURE_TEST(a_lock_that_stays_taken_is_named_and_costs_one_request) {
    start(fixture, &fixture->first, LONG);
    turn_until(fixture, &fixture->first.connected);
    int other = open(fixture->path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(other, LOCK_EX), 0);
    struct store_request request = set_request("k", "v");
    struct store_answer answer;
    begin(&fixture->first, &request, SOON, &answer);
    turn_until(fixture, &answer.calls);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    assert_non_null(strstr(answer.text, "locked"));
    begin(&fixture->first, &request, LONG, &answer);
    (void)event_loop_run_ready(fixture->loop);
    assert_int_equal(answer.calls, 0);
    close(other);
    turn_until(fixture, &answer.calls);
    assert_int_equal(answer.code, FAILURE_NONE);
    assert_int_equal(fixture->first.lost, 0);
}

FIXTURE_TEST(opening_gives_up_on_a_lock_that_stays_taken) {
    temporary_tree_write(&fixture->tree, "store", "");
    int other = open(fixture->path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(other, LOCK_EX), 0);
    start(fixture, &fixture->first, SOON);
    struct store_request request = get_request("k");
    struct store_answer answer;
    begin(&fixture->first, &request, LONG, &answer);
    turn_until(fixture, &fixture->first.connected);
    assert_int_equal(fixture->first.failure.code, FAILURE_TIMEOUT);
    assert_non_null(strstr(fixture->first.failure.message, "locked"));
    assert_int_equal(answer.calls, 1);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    assert_int_equal(fixture->first.lost, 0);
    assert_int_equal(ask(fixture, &fixture->first, get_request("k")).code, FAILURE_DISCONNECTED);
    close(other);
}

FIXTURE_TEST(a_file_that_is_no_filestore_is_refused) {
    temporary_tree_write(&fixture->tree, "store", "#!/bin/sh\n");
    start(fixture, &fixture->first, LONG);
    turn_until(fixture, &fixture->first.connected);
    assert_int_equal(fixture->first.failure.code, FAILURE_MALFORMED);
    assert_non_null(strstr(fixture->first.failure.message, fixture->path));
    assert_bytes(fixture, "#!/bin/sh\n", 10);
}

FIXTURE_TEST(a_user_count_that_is_no_number_is_refused) {
    temporary_tree_write_bytes(&fixture->tree, "store", "\x09\0\0\0refcount/\1\0\0\0x", 18);
    start(fixture, &fixture->first, LONG);
    turn_until(fixture, &fixture->first.connected);
    assert_int_equal(fixture->first.failure.code, FAILURE_MALFORMED);
}

FIXTURE_TEST(a_removed_file_is_a_lost_store) {
    start(fixture, &fixture->first, LONG);
    struct slice key = slice_from_string("k");
    struct store_request request = wait_request(&key);
    struct store_answer waited;
    (void)ask(fixture, &fixture->first, set_request("other", "v"));
    begin(&fixture->first, &request, LONG, &waited);
    (void)event_loop_run_ready(fixture->loop);
    assert_int_equal(unlink(fixture->path), 0);
    turn_until(fixture, &fixture->first.lost);
    assert_int_equal(waited.calls, 1);
    assert_int_equal(waited.code, FAILURE_DISCONNECTED);
    assert_non_null(strstr(fixture->first.failure.message, "removed"));
    assert_int_equal(ask(fixture, &fixture->first, get_request("k")).code, FAILURE_DISCONNECTED);
    store_access_free(fixture->first.store);
    fixture->first.store = NULL;
    assert_false(temporary_tree_has(&fixture->tree, "store"));
}

FIXTURE_TEST(what_is_not_offered_costs_only_the_request) {
    start(fixture, &fixture->first, LONG);
    struct store_request pop = {.operation = STORE_QUEUE_POP, .key = slice_from_string("q")};
    assert_int_equal(ask(fixture, &fixture->first, pop).code, FAILURE_UNSUPPORTED);
    (void)ask(fixture, &fixture->first, set_request("n", "many"));
    struct store_request add = {.operation = STORE_ADD, .key = slice_from_string("n"), .number = 1};
    assert_int_equal(ask(fixture, &fixture->first, add).code, FAILURE_PROTOCOL);
    assert_string_equal(ask(fixture, &fixture->first, get_request("n")).text, "many");
    assert_int_equal(fixture->first.lost, 0);
}

FIXTURE_TEST(a_request_beyond_the_limits_costs_only_itself) {
    start(fixture, &fixture->first, LONG);
    size_t length = ((size_t)64 << 10) + 1;
    char *key = memory_allocate(length + 1);
    memset(key, 'k', length);
    assert_int_equal(ask(fixture, &fixture->first, set_request(key, "v")).code, FAILURE_LIMIT);
    free(key);
    assert_int_equal(ask(fixture, &fixture->first, set_request("k", "v")).code, FAILURE_NONE);
    assert_string_equal(ask(fixture, &fixture->first, get_request("k")).text, "v");
}

FIXTURE_TEST(a_raw_key_is_taken_as_it_is_but_never_as_a_removal) {
    start(fixture, &fixture->first, LONG);
    struct store_answer answer = {0};
    struct store_client_call call = {.request = get_request("refcount/"),
        .is_raw = true,
        .timeout = LONG,
        .done = store_answer_remember,
        .context = &answer};
    store_access_send(fixture->first.store, &call);
    turn_until(fixture, &answer.calls);
    assert_string_equal(answer.text, "1");
    answer = (struct store_answer){0};
    call.request = set_request("-refcount/", "");
    store_access_send(fixture->first.store, &call);
    turn_until(fixture, &answer.calls);
    assert_int_equal(answer.code, FAILURE_INVALID);
    assert_int_equal(fixture->first.lost, 0);
}

FIXTURE_TEST(freeing_cancels_what_is_pending) {
    start(fixture, &fixture->first, LONG);
    struct slice key = slice_from_string("k");
    struct store_request request = wait_request(&key);
    struct store_answer waited;
    struct store_answer queued;
    (void)ask(fixture, &fixture->first, set_request("other", "v"));
    begin(&fixture->first, &request, LONG, &waited);
    request = get_request("other");
    begin(&fixture->first, &request, LONG, &queued);
    (void)event_loop_run_ready(fixture->loop);
    store_access_free(fixture->first.store);
    fixture->first.store = NULL;
    assert_int_equal(waited.code, FAILURE_CANCELLED);
    assert_int_equal(queued.code, FAILURE_CANCELLED);
    assert_int_equal(waited.calls + queued.calls, 2);
}

static void free_store(void *context, const struct store_client_result *result) {
    struct user *user = context;
    assert_int_equal(result->code, FAILURE_NONE);
    store_access_free(user->store);
    user->store = NULL;
    user->lost++; /* lets the test see the call */
}

FIXTURE_TEST(a_store_may_be_freed_by_whom_it_answers) {
    start(fixture, &fixture->first, LONG);
    store_access_send(
        fixture->first.store, &(struct store_client_call){.request = set_request("k", "v"),
                                  .timeout = LONG,
                                  .done = free_store,
                                  .context = &fixture->first});
    turn_until(fixture, &fixture->first.lost);
    assert_null(fixture->first.store);
}

static void append_bytes(struct fixture *fixture, const void *bytes, size_t length) {
    FILE *stream = fopen(fixture->path, "ab");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, length, stream), length);
    assert_int_equal(fclose(stream), 0);
}

/* A visitor reads before half a record; a writer waits until it is whole. */
FIXTURE_TEST(half_a_record_hinders_writers_alone) {
    start(fixture, &fixture->first, LONG);
    (void)ask(fixture, &fixture->first, set_request("k", "v"));
    append_bytes(fixture, "\2\0\0\0/l", 6);
    assert_string_equal(ask(fixture, &fixture->first, get_request("k")).text, "v");
    struct store_request request = set_request("m", "v");
    struct store_answer answer;
    begin(&fixture->first, &request, SOON, &answer);
    turn_until(fixture, &answer.calls);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    assert_non_null(strstr(answer.text, "byte "));
    begin(&fixture->first, &request, LONG, &answer);
    (void)event_loop_run_ready(fixture->loop);
    assert_int_equal(answer.calls, 0);
    append_bytes(fixture, "\1\0\0\0w", 5);
    turn_until(fixture, &answer.calls);
    assert_int_equal(answer.code, FAILURE_NONE);
    assert_string_equal(ask(fixture, &fixture->first, get_request("l")).text, "w");
}

FIXTURE_TEST(readers_share_the_lock_and_writers_do_not) {
    start(fixture, &fixture->first, LONG);
    (void)ask(fixture, &fixture->first, set_request("k", "v"));
    int other = open(fixture->path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(other, LOCK_SH), 0);
    append_bytes(fixture, "\2\0\0\0/l\1\0\0\0w", 11);
    assert_string_equal(ask(fixture, &fixture->first, get_request("l")).text, "w");
    struct store_request request = set_request("k", "w");
    struct store_answer answer;
    begin(&fixture->first, &request, SOON, &answer);
    turn_until(fixture, &answer.calls);
    assert_int_equal(answer.code, FAILURE_TIMEOUT);
    close(other);
}

FIXTURE_TEST(paths_that_cannot_hold_a_store_are_named) {
    char *fifo = temporary_tree_path(&fixture->tree, "fifo");
    char *missing = temporary_tree_path(&fixture->tree, "no/such/store");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    const struct {
        const char *path;
        const char *words;
    } rows[] = {{missing, "No such file or directory"}, {fixture->tree.root, "Is a directory"},
        {fifo, "no regular file"}, {"", "No such file"}};
    free(fixture->path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct user user = {0};
        fixture->path = memory_duplicate_string(rows[i].path);
        start(fixture, &user, LONG);
        turn_until(fixture, &user.connected);
        assert_non_null(strstr(user.failure.message, rows[i].path));
        assert_non_null(strstr(user.failure.message, rows[i].words));
        store_access_free(user.store);
        free(fixture->path);
    }
    fixture->path = fifo;
    free(missing);
}

FIXTURE_TEST(a_file_that_is_cut_short_is_a_lost_store) {
    start(fixture, &fixture->first, LONG);
    (void)ask(fixture, &fixture->first, set_request("k", "v"));
    assert_int_equal(truncate(fixture->path, 0), 0);
    (void)ask(fixture, &fixture->first, set_request("k", "w"));
    assert_int_equal(fixture->first.lost, 1);
    assert_non_null(strstr(fixture->first.failure.message, "was replaced or cut short"));
}

FIXTURE_TEST(a_write_that_finds_no_room_is_taken_back) {
    struct rlimit old;
    struct bytes before = {0};
    start(fixture, &fixture->first, LONG);
    (void)ask(fixture, &fixture->first, set_request("k", "v"));
    assert_int_equal(whole_file_read(fixture->path, false, 1 << 20, &before, NULL), FAILURE_NONE);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit small = {.rlim_cur = before.length + 9, .rlim_max = old.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct store_answer answer = ask(fixture, &fixture->first, set_request("k", "a longer value"));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_int_not_equal(answer.code, FAILURE_NONE);
    assert_int_equal(fixture->first.failure.system_error, EFBIG);
    assert_bytes(fixture, before.data, before.length);
    bytes_clear(&before);
}

static bool lacks_inotify;

/* In the place of the C library's. */
int inotify_init1(int flags) {
    errno = EMFILE;
    return lacks_inotify ? -1 : (int)syscall(SYS_inotify_init1, flags);
}

/* The kernel has no watch left; or it is a network file system, of which inotify tells nothing. */
FIXTURE_TEST(a_user_that_is_not_told_of_changes_finds_them) {
    struct slice key = slice_from_string("k");
    struct store_request request = wait_request(&key);
    struct store_answer waited;
    lacks_inotify = true;
    start(fixture, &fixture->first, LONG);
    turn_until(fixture, &fixture->first.connected);
    lacks_inotify = false;
    begin(&fixture->first, &request, LONG, &waited);
    (void)event_loop_run_ready(fixture->loop);
    append_bytes(fixture, "\2\0\0\0/k\1\0\0\0v", 11);
    turn_until(fixture, &waited.calls);
    assert_int_equal(waited.code, FAILURE_NONE);
}

/* One visit reads so much that the loop is not held up, and the next goes on. */
FIXTURE_TEST(a_long_file_is_read_in_several_visits) {
    size_t length = (size_t)5 << 20;
    uint8_t *bytes = memory_allocate(10 + length);
    memcpy(bytes, "\2\0\0\0/k\0\0\x50\0", 10);
    memset(bytes + 10, 'x', length);
    temporary_tree_write_bytes(&fixture->tree, "store", bytes, 10 + length);
    append_bytes(fixture, bytes, 10 + length);
    append_bytes(fixture, "\2\0\0\0/k\1\0\0\0v", 11);
    start(fixture, &fixture->first, LONG);
    assert_string_equal(ask(fixture, &fixture->first, get_request("k")).text, "v");
    free(bytes);
}
