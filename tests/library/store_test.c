/* SPDX-License-Identifier: BSD-3-Clause */
/* muster/store.h: what each function does, over a server and over a file. What goes wrong is in
 * store_misuse_test.c, requests that are not waited for in store_submit_test.c. */
#include "unit.h"

#include "library/store_fixture.h"

/* Each of these is played over a server and over a file. */
static void play_values(struct muster_store *store) {
    int64_t sum = 0;
    int answer = -1;
    set_text(store, "key", "value");
    assert_text(store, "key", "value");
    assert_int_equal(muster_store_append(store, "key", "!", 1, NULL), MUSTER_OK);
    assert_text(store, "key", "value!");
    assert_int_equal(muster_store_add(store, "number", 5, &sum, NULL), MUSTER_OK);
    assert_int_equal(muster_store_add(store, "number", -7, &sum, NULL), MUSTER_OK);
    assert_int_equal(sum, -2);
    assert_text(store, "number", "-2");
    assert_int_equal(muster_store_delete_key(store, "key", &answer, NULL), MUSTER_OK);
    assert_int_equal(answer, 1);
    assert_int_equal(muster_store_delete_key(store, "key", &answer, NULL), MUSTER_OK);
    assert_int_equal(answer, 0);
    assert_int_equal(muster_store_delete_key(store, "key", NULL, NULL), MUSTER_OK);
    set_text(store, "", "an empty key");
    assert_text(store, "", "an empty key");
    assert_int_equal(muster_store_set(store, "empty", NULL, 0, NULL), MUSTER_OK);
    assert_text(store, "empty", "");
}

static void play_comparisons(struct muster_store *store) {
    struct muster_bytes value = {0};
    const struct muster_slice none = {0};
    const struct muster_slice one = {"1", 1};
    const struct muster_slice two = {"2", 1};
    assert_int_equal(
        muster_store_compare_set(store, "compared", none, one, &value, NULL), MUSTER_OK);
    assert_string_equal(value.data, "1");
    muster_bytes_clear(&value);
    assert_int_equal(
        muster_store_compare_set(store, "compared", two, two, &value, NULL), MUSTER_OK);
    assert_string_equal(value.data, "1");
    muster_bytes_clear(&value);
    assert_int_equal(
        muster_store_compare_set(store, "compared", one, two, &value, NULL), MUSTER_OK);
    assert_string_equal(value.data, "2");
    muster_bytes_clear(&value);
}

static void play_several(struct muster_store *store) {
    static const char *const keys[] = {"left", "right"};
    static const char *const others[] = {"left", "nowhere"};
    const struct muster_slice values[] = {{"l", 1}, {"r\0r", 3}};
    struct muster_bytes got[2] = {{0}};
    int exists = -1;
    assert_int_equal(muster_store_multi_set(store, keys, values, 2, NULL), MUSTER_OK);
    assert_int_equal(muster_store_wait(store, keys, 2, 0, NULL), MUSTER_OK);
    assert_int_equal(muster_store_check(store, keys, 2, &exists, NULL), MUSTER_OK);
    assert_int_equal(exists, 1);
    assert_int_equal(muster_store_check(store, others, 2, &exists, NULL), MUSTER_OK);
    assert_int_equal(exists, 0);
    assert_int_equal(muster_store_multi_get(store, keys, 2, got, NULL), MUSTER_OK);
    assert_string_equal(got[0].data, "l");
    assert_int_equal(got[1].length, 3);
    assert_memory_equal(got[1].data, "r\0r", 4);
    muster_bytes_clear(&got[0]);
    muster_bytes_clear(&got[1]);
}

static void play_prefixes(struct muster_store *store) {
    struct muster_store *outer;
    struct muster_store *inner;
    assert_int_equal(muster_store_new_prefix(store, "outer", &outer, NULL), MUSTER_OK);
    assert_int_equal(muster_store_new_prefix(outer, "inner", &inner, NULL), MUSTER_OK);
    set_text(inner, "key", "from inside");
    assert_text(store, "outer/inner/key", "from inside");
    assert_text(outer, "inner/key", "from inside");
    muster_store_free(outer);
    assert_text(inner, "key", "from inside");
    muster_store_free(inner);
}

static void play_time_limits(struct muster_store *store) {
    static const char *const never = "never";
    struct muster_bytes value = {0};
    struct muster_failure failure = {0};
    assert_int_equal(muster_store_wait(store, &never, 1, 0.02, &failure), MUSTER_ERROR_TIMEOUT);
    assert_int_equal(failure.error, MUSTER_ERROR_TIMEOUT);
    assert_string_not_equal(failure.message, "");
    double before = muster_store_timeout(store);
    assert_int_equal(muster_store_set_timeout(store, 0.02, NULL), MUSTER_OK);
    assert_int_equal(muster_store_get(store, never, &value, NULL), MUSTER_ERROR_TIMEOUT);
    assert_null(value.data);
    assert_int_equal(muster_store_set_timeout(store, before, NULL), MUSTER_OK);
    set_text(store, "still", "usable");
    assert_text(store, "still", "usable");
}

/* By a process that is alone: it is the last one of each meeting. */
static void play_meetings(struct muster_store *store) {
    struct muster_bytes value = {0};
    assert_int_equal(muster_store_barrier(store, 1, "alone", 5, NULL), MUSTER_OK);
    assert_text(store, "alone/num_members", "1");
    assert_int_equal(muster_store_barrier(store, 2, "other", 0.02, NULL), MUSTER_ERROR_TIMEOUT);
    assert_int_equal(
        muster_store_synchronize(store, "data", 4, 0, 1, "sync", 5, &value, NULL), MUSTER_OK);
    assert_string_equal(value.data, "data");
    muster_bytes_clear(&value);
    assert_text(store, "sync0", "data");
    assert_text(store, "sync/finished/num_members", "1");
}

/* The second of two does not wait for the first one, which the first one does for it. */
static void play_meetings_of_two(struct muster_store *store) {
    struct muster_bytes values[2] = {{0}};
    int64_t count = 0;
    set_text(store, "pair0", "left");
    assert_int_equal(
        muster_store_get_all(store, 1, "pair", 2, 0.02, values, NULL), MUSTER_ERROR_TIMEOUT);
    assert_null(values[0].data);
    assert_int_equal(
        muster_store_synchronize(store, "right", 5, 1, 2, "pair", 5, values, NULL), MUSTER_OK);
    assert_string_equal(values[0].data, "left");
    assert_string_equal(values[1].data, "right");
    muster_bytes_clear(&values[0]);
    muster_bytes_clear(&values[1]);
    assert_int_equal(muster_store_get_all(store, 0, "pair", 2, 5, values, NULL), MUSTER_OK);
    muster_bytes_clear(&values[0]);
    muster_bytes_clear(&values[1]);
    assert_int_equal(
        muster_store_add(store, "pair/finished/num_members", 0, &count, NULL), MUSTER_OK);
    assert_int_equal(count, 2);
}

static void (*const plays[])(struct muster_store *store) = {play_values, play_comparisons,
    play_several, play_prefixes, play_time_limits, play_meetings, play_meetings_of_two};

FIXTURE_TEST(store_of_a_server_does_what_its_functions_say) {
    for (size_t i = 0; i < sizeof plays / sizeof *plays; i++) {
        plays[i](fixture->store);
    }
}

FIXTURE_TEST(store_in_a_file_does_what_its_functions_say) {
    struct muster_store *file = open_file(fixture);
    for (size_t i = 0; i < sizeof plays / sizeof *plays; i++) {
        plays[i](file);
    }
    muster_store_free(file);
}

FIXTURE_TEST(number_of_keys_counts_the_whole_store) {
    struct muster_store *prefixed;
    int64_t before = -1;
    int64_t after = -1;
    assert_int_equal(muster_store_new_prefix(fixture->store, "p", &prefixed, NULL), MUSTER_OK);
    assert_int_equal(muster_store_num_keys(prefixed, &before, NULL), MUSTER_OK);
    set_text(fixture->store, "outside", "1");
    set_text(prefixed, "inside", "1");
    assert_int_equal(muster_store_num_keys(prefixed, &after, NULL), MUSTER_OK);
    assert_int_equal(after, before + 2);
    muster_store_free(prefixed);
}

FIXTURE_TEST(queue_gives_back_in_order) {
    struct muster_bytes value = {0};
    int64_t length = -1;
    assert_int_equal(muster_store_queue_push(fixture->store, "queue", "first", 5, NULL), MUSTER_OK);
    assert_int_equal(
        muster_store_queue_push(fixture->store, "queue", "second", 6, NULL), MUSTER_OK);
    assert_int_equal(muster_store_queue_len(fixture->store, "queue", &length, NULL), MUSTER_OK);
    assert_int_equal(length, 2);
    assert_int_equal(muster_store_queue_pop(fixture->store, "queue", 1, &value, NULL), MUSTER_OK);
    assert_string_equal(value.data, "first");
    muster_bytes_clear(&value);
    assert_int_equal(muster_store_queue_pop(fixture->store, "queue", 0, &value, NULL), MUSTER_OK);
    assert_string_equal(value.data, "second");
    muster_bytes_clear(&value);
    assert_int_equal(
        muster_store_queue_pop(fixture->store, "queue", 0, &value, NULL), MUSTER_ERROR_MISSING);
    assert_int_equal(muster_store_set_timeout(fixture->store, 0.02, NULL), MUSTER_OK);
    assert_int_equal(
        muster_store_queue_pop(fixture->store, "queue", 1, &value, NULL), MUSTER_ERROR_TIMEOUT);
}

FIXTURE_TEST(file_has_no_queues_and_stays_usable) {
    int64_t length = -1;
    struct muster_store *file = open_file(fixture);
    assert_int_equal(
        muster_store_queue_len(file, "queue", &length, NULL), MUSTER_ERROR_UNSUPPORTED);
    assert_int_equal(length, -1);
    set_text(file, "key", "value");
    assert_text(file, "key", "value");
    muster_store_free(file);
}

FIXTURE_TEST(two_stores_in_one_process_see_each_other) {
    struct muster_store *second = open_store(fixture);
    assert_int_equal(muster_store_connect(second, NULL), MUSTER_OK);
    set_text(fixture->store, "key", "of the first");
    /* A request without an answer may come after one of another connection. */
    assert_text(fixture->store, "key", "of the first");
    assert_text(second, "key", "of the first");
    muster_store_free(second);
}
