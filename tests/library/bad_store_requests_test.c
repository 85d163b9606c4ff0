/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of the requests of muster/store.h: an error, and the store is
 * as it was. Most are in bad_store_requests.rows. */
#include "unit.h"

#include "library/bad_input.h"
#include "library/store_fixture.h"

static struct fixture fixture;
static struct muster_store *store;
static char *long_key;
static char *long_value;
static size_t descriptors;

/* The keys "", NO_UTF8 and "k" have the value "1". */
static const char *const one[] = {"k"};
static const char *const odd[] = {"", NO_UTF8};
static const char *const with_null[] = {"k", NULL};
static const char *with_long[] = {"k", NULL};
static const struct muster_slice odd_values[] = {{"1", 1}, {NULL, 0}};
static const struct muster_slice null_values[] = {{"1", 1}, {NULL, 1}};
static struct muster_slice long_values[] = {{"1", 1}, {NULL, 0}};
static const struct muster_slice empty = {NULL, 0};
static const struct muster_slice null_slice = {NULL, 1};
static const struct muster_slice endless_slice = {"1", SIZE_MAX};

/* What errors leave alone. */
static struct muster_bytes value;
static struct muster_bytes values[2];
static int64_t number;
static int flag;

static void set_texts(void) {
    set_text(store, "k", "1");
    set_text(store, "", "1");
    set_text(store, NO_UTF8, "1");
}

static int begin(void **state) {
    (void)state;
    set_up(&fixture);
    store = fixture.store;
    set_texts();
    assert_text(store, "k", "1");
    long_key = bad_input_text(MUSTER_STORE_KEY_MAXIMUM + 1);
    long_value = bad_input_text(MUSTER_STORE_VALUE_MAXIMUM + 1);
    with_long[1] = long_key;
    long_values[1] = (struct muster_slice){long_value, MUSTER_STORE_VALUE_MAXIMUM + 1};
    number = 12345;
    flag = 12345;
    descriptors = process_descriptors();
    return 0;
}

/* Neither keys nor queues have come, nor have results, and the store is usable. */
static int end(void **state) {
    int64_t count = 0;
    (void)state;
    assert_null(value.data);
    assert_null(values[0].data);
    assert_int_equal(number, 12345);
    assert_int_equal(flag, 12345);
    assert_int_equal(muster_store_num_keys(store, &count, NULL), MUSTER_OK);
    assert_int_equal(count, 3);
    assert_int_equal(process_descriptors(), descriptors);
    free(long_key);
    free(long_value);
    tear_down(&fixture);
    return 0;
}

/* Whether it went well. What has come is dropped. */
static bool is_well(enum muster_error error) {
    muster_bytes_clear(&value);
    muster_bytes_clear(&values[0]);
    muster_bytes_clear(&values[1]);
    number = 12345;
    flag = 12345;
    return error == MUSTER_OK;
}

/* A request, and what is wrong with it. */
static struct muster_store_request request;
static const struct muster_store_request defaults = MUSTER_STORE_REQUEST;

static enum muster_error call(
    enum muster_store_operation operation, struct muster_failure *failure) {
    request.operation = operation;
    return muster_store_call(store, &request, NULL, NULL, failure);
}

/* A request with the key "k", and one member that is not as it should be. */
#define WITH(operation, member, given)                                                             \
    (request = defaults, request.key = "k", request.member = (given), call(operation, failure))

/* The same about keys, and their values. */
#define WITH_KEYS(operation, member, given)                                                        \
    (request = defaults, request.keys = odd, request.values = odd_values, request.count = 2,       \
        request.member = (given), call(operation, failure))

#include "bad_store_requests_rows.h"

static void forget_meeting(const char *prefix) {
    static const char *const parts[] = {
        "0", "/num_members", "/last_member", "/finished/num_members", "/finished/last_member"};
    char key[64];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(key, sizeof key, "%s%s", prefix, parts[i]);
        assert_int_equal(muster_store_delete_key(store, key, NULL, NULL), MUSTER_OK);
    }
}

TEST_WITH(meetings_that_are_well, begin, end) {
    ALLOWED(muster_store_barrier, key_prefix, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_barrier(store, 1, "", 5, failure)));
    ALLOWED(muster_store_barrier, key_prefix, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_barrier(store, 1, NO_UTF8, 5, failure)));
    ALLOWED(muster_store_barrier, timeout, BELOW, "negative is for ever",
        is_well(muster_store_barrier(store, 1, "below", -1, failure)));
    ALLOWED(muster_store_barrier, timeout, ABOVE, "so long is for ever",
        is_well(muster_store_barrier(store, 1, "above", INFINITY, failure)));
    assert_int_equal(muster_store_set(store, "0", "1", 1, NULL), MUSTER_OK);
    assert_int_equal(muster_store_set(store, NO_UTF8 "0", "1", 1, NULL), MUSTER_OK);
    assert_int_equal(muster_store_set(store, "below0", "1", 1, NULL), MUSTER_OK);
    assert_int_equal(muster_store_set(store, "above0", "1", 1, NULL), MUSTER_OK);
    ALLOWED(muster_store_get_all, prefix, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_get_all(store, 0, "", 1, 5, values, failure)));
    ALLOWED(muster_store_get_all, prefix, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_get_all(store, 0, NO_UTF8, 1, 5, values, failure)));
    ALLOWED(muster_store_get_all, timeout, BELOW, "negative is for ever",
        is_well(muster_store_get_all(store, 0, "below", 1, -1, values, failure)));
    ALLOWED(muster_store_get_all, timeout, ABOVE, "so long is for ever",
        is_well(muster_store_get_all(store, 0, "above", 1, INFINITY, values, failure)));
    ALLOWED(muster_store_synchronize, key_prefix, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_synchronize(store, "1", 1, 0, 1, "", 5, values, failure)));
    ALLOWED(muster_store_synchronize, key_prefix, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_synchronize(store, "1", 1, 0, 1, NO_UTF8, 5, values, failure)));
    ALLOWED(muster_store_synchronize, timeout, BELOW, "negative is for ever",
        is_well(muster_store_synchronize(store, "1", 1, 0, 1, "below", -1, values, failure)));
    ALLOWED(muster_store_synchronize, timeout, ABOVE, "so long is for ever",
        is_well(muster_store_synchronize(store, "1", 1, 0, 1, "above", INFINITY, values, failure)));
    ALLOWED(muster_store_synchronize, length, BELOW, "a value may be empty",
        is_well(muster_store_synchronize(store, NULL, 0, 0, 1, "empty", 5, values, failure)));
    forget_meeting("");
    forget_meeting(NO_UTF8);
    forget_meeting("below");
    forget_meeting("above");
    forget_meeting("empty");
}

/* Of keys that have a queue. */
TEST_WITH(queues_that_give, begin, end) {
    static const char *const keys[] = {"", NO_UTF8, "k"};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(muster_store_queue_push(store, keys[i], "1", 1, NULL), MUSTER_OK);
    }
    ALLOWED(muster_store_queue_pop, key, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_queue_pop(store, "", 0, &value, failure)));
    ALLOWED(muster_store_queue_pop, key, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_queue_pop(store, NO_UTF8, 0, &value, failure)));
    ALLOWED(muster_store_queue_pop, blocks, NO_FLAG, "anything but 0 blocks",
        is_well(muster_store_queue_pop(store, "k", -1, &value, failure)));
}

/* What goes well deletes the keys of the fixture. */
TEST_WITH(keys_that_are_deleted, begin, end) {
    ALLOWED(muster_store_delete_key, key, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_delete_key(store, "", &flag, failure)));
    ALLOWED(muster_store_delete_key, key, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_delete_key(store, NO_UTF8, &flag, failure)));
    ALLOWED(muster_store_delete_key, out_deleted, IS_NULL, "it may be left out",
        is_well(muster_store_delete_key(store, "k", NULL, failure)));
    set_texts();
}

TEST_WITH(a_newer_request, begin, end) {
    struct {
        struct muster_store_request known;
        int more;
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.known = defaults;
    newer.more = 1;
    REFUSED(muster_store_request, size, NEWER, MUSTER_ERROR_UNSUPPORTED,
        (newer.known.size = sizeof newer,
            muster_store_call(store, &newer.known, NULL, NULL, failure)));
    newer.more = 0;
    ALLOWED(muster_store_request, size, NEWER, "a field that is zero asks for nothing",
        muster_store_call(store, &newer.known, NULL, NULL, failure) == MUSTER_OK &&
            newer.known.size > 0);
}
