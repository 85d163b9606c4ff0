/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of the requests of muster/store.h: an error, and the store is
 * as it was. */
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

TEST_WITH(set, begin, end) {
    REFUSED(muster_store_set, key, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_set(store, NULL, "1", 1, failure));
    REFUSED(muster_store_set, key, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_set(store, long_key, "1", 1, failure));
    ALLOWED(muster_store_set, key, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_set(store, "", "1", 1, failure)));
    ALLOWED(muster_store_set, key, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_set(store, NO_UTF8, "1", 1, failure)));
    REFUSED(muster_store_set, value, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_set(store, "k", NULL, 1, failure));
    REFUSED(muster_store_set, length, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_set(store, "k", long_value, MUSTER_STORE_VALUE_MAXIMUM + 1, failure));
    REFUSED(muster_store_set, length, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_set(store, "k", "1", SIZE_MAX, failure));
    ALLOWED(muster_store_set, length, BELOW, "a value may be empty",
        is_well(muster_store_set(store, "k", NULL, 0, failure)));
}

TEST_WITH(get, begin, end) {
    REFUSED(muster_store_get, key, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_get(store, NULL, &value, failure));
    REFUSED(muster_store_get, key, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_get(store, long_key, &value, failure));
    ALLOWED(muster_store_get, key, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_get(store, "", &value, failure)));
    ALLOWED(muster_store_get, key, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_get(store, NO_UTF8, &value, failure)));
    REFUSED(muster_store_get, out_value, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_get(store, "k", NULL, failure));
}

TEST_WITH(add, begin, end) {
    REFUSED(muster_store_add, key, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_add(store, NULL, 1, &number, failure));
    REFUSED(muster_store_add, key, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_add(store, long_key, 1, &number, failure));
    ALLOWED(muster_store_add, key, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_add(store, "", 1, &number, failure)));
    ALLOWED(muster_store_add, key, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_add(store, NO_UTF8, 1, &number, failure)));
    REFUSED(muster_store_add, out_sum, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_add(store, "k", 1, NULL, failure));
    ALLOWED(muster_store_add, number, ABOVE, "a sum goes round as PyTorch's does",
        is_well(muster_store_add(store, "k", INT64_MAX, &number, failure)));
    ALLOWED(muster_store_add, number, BELOW, "a sum may be negative",
        is_well(muster_store_add(store, "k", INT64_MIN, &number, failure)));
}

TEST_WITH(append, begin, end) {
    REFUSED(muster_store_append, key, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_append(store, NULL, "1", 1, failure));
    REFUSED(muster_store_append, key, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_append(store, long_key, "1", 1, failure));
    ALLOWED(muster_store_append, key, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_append(store, "", "1", 1, failure)));
    ALLOWED(muster_store_append, key, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_append(store, NO_UTF8, "1", 1, failure)));
    REFUSED(muster_store_append, value, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_append(store, "k", NULL, 1, failure));
    REFUSED(muster_store_append, length, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_append(store, "k", long_value, MUSTER_STORE_VALUE_MAXIMUM + 1, failure));
    REFUSED(muster_store_append, length, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_append(store, "k", "1", SIZE_MAX, failure));
    ALLOWED(muster_store_append, length, BELOW, "a value may be empty",
        is_well(muster_store_append(store, "k", NULL, 0, failure)));
}

TEST_WITH(compare_set, begin, end) {
    REFUSED(muster_store_compare_set, key, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_compare_set(store, NULL, empty, empty, &value, failure));
    REFUSED(muster_store_compare_set, key, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_compare_set(store, long_key, empty, empty, &value, failure));
    ALLOWED(muster_store_compare_set, key, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_compare_set(store, "", empty, empty, &value, failure)));
    ALLOWED(muster_store_compare_set, key, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_compare_set(store, NO_UTF8, empty, empty, &value, failure)));
    REFUSED(muster_store_compare_set, expected, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_compare_set(store, "k", null_slice, empty, &value, failure));
    REFUSED(muster_store_compare_set, desired, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_compare_set(store, "k", empty, null_slice, &value, failure));
    REFUSED(muster_store_compare_set, expected, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_compare_set(store, "k", long_values[1], empty, &value, failure));
    REFUSED(muster_store_compare_set, desired, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_compare_set(store, "k", empty, long_values[1], &value, failure));
    REFUSED(muster_store_compare_set, out_value, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_compare_set(store, "k", empty, empty, NULL, failure));
    REFUSED(muster_slice, data, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_compare_set(
            store, "k", (struct muster_slice){.data = NULL, .length = 1}, empty, &value, failure));
    REFUSED(muster_slice, length, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_compare_set(store, "k", (struct muster_slice){.data = "1", .length = SIZE_MAX},
            empty, &value, failure));
    ALLOWED(muster_slice, length, BELOW, "a value may be empty",
        is_well(muster_store_compare_set(store, "k", empty, empty, &value, failure)) &&
            empty.length == 0);
}

TEST_WITH(check, begin, end) {
    REFUSED(muster_store_check, keys, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_check(store, NULL, 1, &flag, failure));
    REFUSED(muster_store_check, keys, ITEM_NULL, MUSTER_ERROR_INVALID,
        muster_store_check(store, with_null, 2, &flag, failure));
    REFUSED(muster_store_check, keys, ITEM_TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_check(store, with_long, 2, &flag, failure));
    REFUSED(muster_store_check, count, BELOW, MUSTER_ERROR_INVALID,
        muster_store_check(store, one, 0, &flag, failure));
    REFUSED(muster_store_check, count, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_check(store, one, MUSTER_STORE_KEYS_MAXIMUM + 1, &flag, failure));
    REFUSED(muster_store_check, count, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_check(store, one, SIZE_MAX, &flag, failure));
    ALLOWED(muster_store_check, keys, ITEM_EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_check(store, odd, 2, &flag, failure)));
    REFUSED(muster_store_check, out_exists, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_check(store, one, 1, NULL, failure));
}

TEST_WITH(wait_for_keys, begin, end) {
    REFUSED(muster_store_wait, keys, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_wait(store, NULL, 1, 0, failure));
    REFUSED(muster_store_wait, keys, ITEM_NULL, MUSTER_ERROR_INVALID,
        muster_store_wait(store, with_null, 2, 0, failure));
    REFUSED(muster_store_wait, keys, ITEM_TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_wait(store, with_long, 2, 0, failure));
    REFUSED(muster_store_wait, count, BELOW, MUSTER_ERROR_INVALID,
        muster_store_wait(store, one, 0, 0, failure));
    REFUSED(muster_store_wait, count, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_wait(store, one, MUSTER_STORE_KEYS_MAXIMUM + 1, 0, failure));
    REFUSED(muster_store_wait, count, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_wait(store, one, SIZE_MAX, 0, failure));
    ALLOWED(muster_store_wait, keys, ITEM_EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_wait(store, odd, 2, 0, failure)));
    REFUSED(muster_store_wait, timeout, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        muster_store_wait(store, one, 1, NAN, failure));
    ALLOWED(muster_store_wait, timeout, BELOW, "negative is for ever",
        is_well(muster_store_wait(store, one, 1, -INFINITY, failure)));
    ALLOWED(muster_store_wait, timeout, ABOVE, "so long is for ever",
        is_well(muster_store_wait(store, one, 1, INFINITY, failure)));
}

TEST_WITH(multi_get, begin, end) {
    REFUSED(muster_store_multi_get, keys, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_multi_get(store, NULL, 1, values, failure));
    REFUSED(muster_store_multi_get, keys, ITEM_NULL, MUSTER_ERROR_INVALID,
        muster_store_multi_get(store, with_null, 2, values, failure));
    REFUSED(muster_store_multi_get, keys, ITEM_TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_multi_get(store, with_long, 2, values, failure));
    REFUSED(muster_store_multi_get, count, BELOW, MUSTER_ERROR_INVALID,
        muster_store_multi_get(store, one, 0, values, failure));
    REFUSED(muster_store_multi_get, count, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_multi_get(store, one, MUSTER_STORE_KEYS_MAXIMUM + 1, values, failure));
    REFUSED(muster_store_multi_get, count, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_multi_get(store, one, SIZE_MAX, values, failure));
    ALLOWED(muster_store_multi_get, keys, ITEM_EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_multi_get(store, odd, 2, values, failure)));
    REFUSED(muster_store_multi_get, out_values, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_multi_get(store, one, 1, NULL, failure));
}

TEST_WITH(meetings, begin, end) {
    REFUSED(muster_store_barrier, key_prefix, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_barrier(store, 1, NULL, 5, failure));
    REFUSED(muster_store_barrier, key_prefix, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_barrier(store, 1, long_key, 5, failure));
    REFUSED(muster_store_barrier, world_size, BELOW, MUSTER_ERROR_INVALID,
        muster_store_barrier(store, 0, "all", 5, failure));
    REFUSED(muster_store_barrier, world_size, ABOVE, MUSTER_ERROR_INVALID,
        muster_store_barrier(store, INT_MAX, "all", 5, failure));
    REFUSED(muster_store_barrier, timeout, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        muster_store_barrier(store, 1, "all", NAN, failure));
    REFUSED(muster_store_get_all, prefix, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_get_all(store, 0, NULL, 1, 5, values, failure));
    REFUSED(muster_store_get_all, prefix, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_get_all(store, 0, long_key, 1, 5, values, failure));
    REFUSED(muster_store_get_all, world_size, BELOW, MUSTER_ERROR_INVALID,
        muster_store_get_all(store, 0, "all", 0, 5, values, failure));
    REFUSED(muster_store_get_all, world_size, ABOVE, MUSTER_ERROR_INVALID,
        muster_store_get_all(store, 0, "all", INT_MAX, 5, values, failure));
    REFUSED(muster_store_get_all, timeout, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        muster_store_get_all(store, 0, "all", 1, NAN, values, failure));
    REFUSED(muster_store_get_all, rank, BELOW, MUSTER_ERROR_INVALID,
        muster_store_get_all(store, -1, "all", 1, 5, values, failure));
    REFUSED(muster_store_get_all, rank, ABOVE, MUSTER_ERROR_INVALID,
        muster_store_get_all(store, 1, "all", 1, 5, values, failure));
    REFUSED(muster_store_get_all, out_values, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_get_all(store, 0, "all", 1, 5, NULL, failure));
    REFUSED(muster_store_synchronize, key_prefix, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_synchronize(store, "1", 1, 0, 1, NULL, 5, values, failure));
    REFUSED(muster_store_synchronize, key_prefix, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_synchronize(store, "1", 1, 0, 1, long_key, 5, values, failure));
    REFUSED(muster_store_synchronize, world_size, BELOW, MUSTER_ERROR_INVALID,
        muster_store_synchronize(store, "1", 1, 0, 0, "all", 5, values, failure));
    REFUSED(muster_store_synchronize, world_size, ABOVE, MUSTER_ERROR_INVALID,
        muster_store_synchronize(store, "1", 1, 0, INT_MAX, "all", 5, values, failure));
    REFUSED(muster_store_synchronize, timeout, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        muster_store_synchronize(store, "1", 1, 0, 1, "all", NAN, values, failure));
    REFUSED(muster_store_synchronize, rank, BELOW, MUSTER_ERROR_INVALID,
        muster_store_synchronize(store, "1", 1, -1, 1, "all", 5, values, failure));
    REFUSED(muster_store_synchronize, rank, ABOVE, MUSTER_ERROR_INVALID,
        muster_store_synchronize(store, "1", 1, 1, 1, "all", 5, values, failure));
    REFUSED(muster_store_synchronize, out_values, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_synchronize(store, "1", 1, 0, 1, "all", 5, NULL, failure));
    REFUSED(muster_store_synchronize, data, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_synchronize(store, NULL, 1, 0, 1, "all", 5, values, failure));
    REFUSED(muster_store_synchronize, length, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_synchronize(store, "1", SIZE_MAX, 0, 1, "all", 5, values, failure));
}

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

TEST_WITH(multi_set, begin, end) {
    REFUSED(muster_store_multi_set, keys, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_multi_set(store, NULL, odd_values, 1, failure));
    REFUSED(muster_store_multi_set, keys, ITEM_NULL, MUSTER_ERROR_INVALID,
        muster_store_multi_set(store, with_null, odd_values, 2, failure));
    REFUSED(muster_store_multi_set, keys, ITEM_TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_multi_set(store, with_long, odd_values, 2, failure));
    REFUSED(muster_store_multi_set, count, BELOW, MUSTER_ERROR_INVALID,
        muster_store_multi_set(store, one, odd_values, 0, failure));
    REFUSED(muster_store_multi_set, count, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_multi_set(store, one, odd_values, MUSTER_STORE_KEYS_MAXIMUM + 1, failure));
    REFUSED(muster_store_multi_set, count, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_multi_set(store, one, odd_values, SIZE_MAX, failure));
    ALLOWED(muster_store_multi_set, keys, ITEM_EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_multi_set(store, odd, odd_values, 2, failure)));
    REFUSED(muster_store_multi_set, values, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_multi_set(store, one, NULL, 1, failure));
    REFUSED(muster_store_multi_set, values, ITEM_NULL, MUSTER_ERROR_INVALID,
        muster_store_multi_set(store, odd, null_values, 2, failure));
    REFUSED(muster_store_multi_set, values, ITEM_TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_multi_set(store, odd, long_values, 2, failure));
}

TEST_WITH(queues, begin, end) {
    REFUSED(muster_store_queue_push, key, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_queue_push(store, NULL, "1", 1, failure));
    REFUSED(muster_store_queue_push, key, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_queue_push(store, long_key, "1", 1, failure));
    ALLOWED(muster_store_queue_push, key, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_queue_push(store, "", "1", 1, failure)));
    ALLOWED(muster_store_queue_push, key, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_queue_push(store, NO_UTF8, "1", 1, failure)));
    REFUSED(muster_store_queue_push, value, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_queue_push(store, "k", NULL, 1, failure));
    REFUSED(muster_store_queue_push, length, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_queue_push(store, "k", long_value, MUSTER_STORE_VALUE_MAXIMUM + 1, failure));
    REFUSED(muster_store_queue_push, length, ABOVE, MUSTER_ERROR_LIMIT,
        muster_store_queue_push(store, "k", "1", SIZE_MAX, failure));
    ALLOWED(muster_store_queue_push, length, BELOW, "a value may be empty",
        is_well(muster_store_queue_push(store, "k", NULL, 0, failure)));
    REFUSED(muster_store_queue_len, key, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_queue_len(store, NULL, &number, failure));
    REFUSED(muster_store_queue_len, key, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_queue_len(store, long_key, &number, failure));
    ALLOWED(muster_store_queue_len, key, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_queue_len(store, "", &number, failure)));
    ALLOWED(muster_store_queue_len, key, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_queue_len(store, NO_UTF8, &number, failure)));
    REFUSED(muster_store_queue_len, out_length, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_queue_len(store, "k", NULL, failure));
    REFUSED(muster_store_queue_pop, key, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_queue_pop(store, NULL, 0, &value, failure));
    REFUSED(muster_store_queue_pop, key, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_queue_pop(store, long_key, 0, &value, failure));
    ALLOWED(muster_store_queue_pop, key, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_queue_pop(store, "", 0, &value, failure)));
    ALLOWED(muster_store_queue_pop, key, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_queue_pop(store, NO_UTF8, 0, &value, failure)));
    REFUSED(muster_store_queue_pop, out_value, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_queue_pop(store, "k", 1, NULL, failure));
    ALLOWED(muster_store_queue_pop, blocks, NO_FLAG, "anything but 0 blocks",
        is_well(muster_store_queue_pop(store, "k", -1, &value, failure)));
}

TEST_WITH(delete_key_and_num_keys, begin, end) {
    REFUSED(muster_store_delete_key, key, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_delete_key(store, NULL, &flag, failure));
    REFUSED(muster_store_delete_key, key, TOO_LONG, MUSTER_ERROR_LIMIT,
        muster_store_delete_key(store, long_key, &flag, failure));
    ALLOWED(muster_store_delete_key, key, EMPTY, "a key of PyTorch may be empty",
        is_well(muster_store_delete_key(store, "", &flag, failure)));
    ALLOWED(muster_store_delete_key, key, NOT_UTF8, "a key of PyTorch is any bytes",
        is_well(muster_store_delete_key(store, NO_UTF8, &flag, failure)));
    ALLOWED(muster_store_delete_key, out_deleted, IS_NULL, "it may be left out",
        is_well(muster_store_delete_key(store, "k", NULL, failure)));
    REFUSED(muster_store_num_keys, out_count, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_num_keys(store, NULL, failure));
    set_texts();
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

TEST_WITH(size_and_operation_of_a_request, begin, end) {
    struct {
        struct muster_store_request known;
        int more;
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.known = defaults;
    newer.more = 1;
    REFUSED(
        muster_store_request, size, BELOW, MUSTER_ERROR_INVALID, WITH(MUSTER_STORE_PING, size, 0));
    REFUSED(muster_store_request, size, BELOW, MUSTER_ERROR_INVALID,
        WITH(MUSTER_STORE_PING, size, sizeof request - 1));
    REFUSED(muster_store_request, size, ABOVE, MUSTER_ERROR_INVALID,
        WITH(MUSTER_STORE_PING, size, SIZE_MAX));
    REFUSED(muster_store_request, size, NEWER, MUSTER_ERROR_UNSUPPORTED,
        (newer.known.size = sizeof newer,
            muster_store_call(store, &newer.known, NULL, NULL, failure)));
    newer.more = 0;
    ALLOWED(muster_store_request, size, NEWER, "a field that is zero asks for nothing",
        muster_store_call(store, &newer.known, NULL, NULL, failure) == MUSTER_OK &&
            newer.known.size > 0);
    REFUSED(muster_store_request, operation, BELOW, MUSTER_ERROR_INVALID,
        WITH((enum muster_store_operation)0, operation, (enum muster_store_operation)0));
    REFUSED(muster_store_request, operation, BELOW, MUSTER_ERROR_INVALID,
        WITH((enum muster_store_operation) - 1, operation, (enum muster_store_operation) - 1));
    REFUSED(muster_store_request, operation, BELOW, MUSTER_ERROR_INVALID,
        WITH(
            (enum muster_store_operation)INT_MIN, operation, (enum muster_store_operation)INT_MIN));
    REFUSED(muster_store_request, operation, ABOVE, MUSTER_ERROR_INVALID,
        WITH((enum muster_store_operation)(MUSTER_STORE_PING + 1), operation,
            (enum muster_store_operation)(MUSTER_STORE_PING + 1)));
    REFUSED(muster_store_request, operation, ABOVE, MUSTER_ERROR_INVALID,
        WITH(
            (enum muster_store_operation)INT_MAX, operation, (enum muster_store_operation)INT_MAX));
}

TEST_WITH(key_and_value_of_a_request, begin, end) {
    REFUSED(muster_store_request, key, IS_NULL, MUSTER_ERROR_INVALID,
        WITH(MUSTER_STORE_GET, key, NULL));
    REFUSED(muster_store_request, key, TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH(MUSTER_STORE_GET, key, long_key));
    ALLOWED(muster_store_request, key, EMPTY, "a key of PyTorch may be empty",
        WITH(MUSTER_STORE_GET, key, "") == MUSTER_OK);
    ALLOWED(muster_store_request, key, NOT_UTF8, "a key of PyTorch is any bytes",
        WITH(MUSTER_STORE_GET, key, NO_UTF8) == MUSTER_OK);
    REFUSED(muster_store_request, value, IS_NULL, MUSTER_ERROR_INVALID,
        WITH(MUSTER_STORE_SET, value, null_slice));
    REFUSED(muster_store_request, value, TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH(MUSTER_STORE_SET, value, long_values[1]));
    REFUSED(muster_store_request, expected, IS_NULL, MUSTER_ERROR_INVALID,
        WITH(MUSTER_STORE_COMPARE_SET, expected, null_slice));
    REFUSED(muster_store_request, expected, TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH(MUSTER_STORE_COMPARE_SET, expected, endless_slice));
    REFUSED(muster_store_request, number, BELOW, MUSTER_ERROR_INVALID,
        WITH(MUSTER_STORE_BARRIER, number, 0));
    REFUSED(muster_store_request, number, BELOW, MUSTER_ERROR_INVALID,
        WITH(MUSTER_STORE_BARRIER, number, INT64_MIN));
    ALLOWED(muster_store_request, number, ABOVE, "a sum goes round, as PyTorch's does",
        WITH(MUSTER_STORE_ADD, number, INT64_MAX) == MUSTER_OK);
}

TEST_WITH(keys_of_a_request_and_its_time, begin, end) {
    REFUSED(muster_store_request, keys, IS_NULL, MUSTER_ERROR_INVALID,
        WITH_KEYS(MUSTER_STORE_CHECK, keys, NULL));
    REFUSED(muster_store_request, keys, ITEM_NULL, MUSTER_ERROR_INVALID,
        WITH_KEYS(MUSTER_STORE_CHECK, keys, with_null));
    REFUSED(muster_store_request, keys, ITEM_TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH_KEYS(MUSTER_STORE_CHECK, keys, with_long));
    REFUSED(muster_store_request, values, IS_NULL, MUSTER_ERROR_INVALID,
        WITH_KEYS(MUSTER_STORE_MULTI_SET, values, NULL));
    REFUSED(muster_store_request, values, ITEM_NULL, MUSTER_ERROR_INVALID,
        WITH_KEYS(MUSTER_STORE_MULTI_SET, values, null_values));
    REFUSED(muster_store_request, values, ITEM_TOO_LONG, MUSTER_ERROR_LIMIT,
        WITH_KEYS(MUSTER_STORE_MULTI_SET, values, long_values));
    REFUSED(muster_store_request, count, BELOW, MUSTER_ERROR_INVALID,
        WITH_KEYS(MUSTER_STORE_CHECK, count, 0));
    REFUSED(muster_store_request, count, ABOVE, MUSTER_ERROR_LIMIT,
        WITH_KEYS(MUSTER_STORE_CHECK, count, SIZE_MAX));
    REFUSED(muster_store_request, timeout, NOT_A_NUMBER, MUSTER_ERROR_INVALID,
        WITH(MUSTER_STORE_GET, timeout, NAN));
    ALLOWED(muster_store_request, timeout, BELOW, "negative is for ever",
        WITH(MUSTER_STORE_GET, timeout, -INFINITY) == MUSTER_OK);
    ALLOWED(muster_store_request, timeout, ABOVE, "so long is for ever",
        WITH(MUSTER_STORE_GET, timeout, INFINITY) == MUSTER_OK);
    ALLOWED(muster_store_request, is_raw, NO_FLAG, "anything but 0 is raw",
        WITH(MUSTER_STORE_PING, is_raw, -1) == MUSTER_OK);
    REFUSED(muster_store_call, request, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_call(store, NULL, NULL, NULL, failure));
    REFUSED(muster_store_submit, request, IS_NULL, MUSTER_ERROR_INVALID,
        muster_store_submit(store, NULL, NULL, NULL, failure));
    ALLOWED(muster_store_call, done, IS_NULL, "the answer may be of no interest",
        muster_store_call(store, &defaults, NULL, NULL, failure) == MUSTER_OK);
    ALLOWED(muster_store_submit, done, IS_NULL, "the answer may be of no interest",
        muster_store_submit(store, &defaults, NULL, NULL, failure) == MUSTER_OK);
}
