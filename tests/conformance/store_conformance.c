/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rendezvous relies on in a store, whichever it is: Muster's server, PyTorch's, a file.
 *
 *     store_conformance own | tcp HOST PORT | file [PATH] */
#include "store_under_test.h"

#include <stdio.h>

#define COUNTERS 4
#define ROUNDS 25

static struct slice slice(const char *string) {
    return slice_from_string(string);
}

static void expect_compare_set(struct store_under_test *store, const char *key,
    const char *expected, const char *desired, const char *answered) {
    struct answer answer = compare_set(store, store->first, key, slice(expected), slice(desired));
    assert_true(slice_equals(bytes_slice(&answer.blob), slice(answered)));
    answer_clear(&answer);
}

static void value_is_seen_by_every_client(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("value");
    set(store, store->first, key, "one");
    expect_stored(store, store->second, key, "one");
    set(store, store->second, key, "two");
    expect_stored(store, store->first, key, "two");
    set(store, store->first, key, "");
    expect_stored(store, store->second, key, "");
    free(key);
}

static void values_are_bytes(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("bytes");
    uint8_t every[256];
    for (size_t i = 0; i < sizeof every; i++) {
        every[i] = (uint8_t)i;
    }
    struct answer answer;
    begin(store->first,
        &(struct store_request){
            .operation = STORE_SET, .key = slice(key), .value = {every, sizeof every}},
        &answer);
    await(store, &answer);
    begin_get(
        store->second, &(struct store_request){.operation = STORE_GET, .key = slice(key)}, &answer);
    await(store, &answer);
    assert_true(slice_equals(bytes_slice(&answer.blob), (struct slice){every, sizeof every}));
    answer_clear(&answer);
    free(key);
}

static void compare_set_makes_a_key_when_nothing_is_expected(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("made");
    expect_compare_set(store, key, "", "first", "first");
    expect_stored(store, store->second, key, "first");
    expect_compare_set(store, key, "", "second", "first");
    expect_stored(store, store->second, key, "first");
    free(key);
}

static void compare_set_makes_no_key_when_something_is_expected(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("unmade");
    expect_compare_set(store, key, "something", "new", "something");
    assert_false(exists(store, store->second, key));
    free(key);
}

static void compare_set_replaces_the_expected_value(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("replaced");
    set(store, store->second, key, "old");
    expect_compare_set(store, key, "old", "new", "new");
    expect_stored(store, store->second, key, "new");
    free(key);
}

static void compare_set_leaves_another_value_and_tells_it(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("left");
    set(store, store->second, key, "other");
    expect_compare_set(store, key, "old", "new", "other");
    expect_compare_set(store, key, "othe", "new", "other");
    expect_compare_set(store, key, "other ", "new", "other");
    expect_stored(store, store->second, key, "other");
    free(key);
}

/* Several clients count up one value by compare-and-set: no step may be lost. The value also names
 * who counted, as the answer to one's own success and to another's like it would be the same. */
struct counting {
    struct store_access *client;
    int number;
    struct answer answer;
    char seen[32];
    char wanted[32];
    int done;
};

static void try_to_count(const char *key, struct counting *counting) {
    (void)snprintf(counting->wanted, sizeof counting->wanted, "%d by %d", atoi(counting->seen) + 1,
        counting->number);
    begin(counting->client,
        &(struct store_request){.operation = STORE_COMPARE_SET,
            .key = slice(key),
            .expected = slice(counting->seen),
            .value = slice(counting->wanted)},
        &counting->answer);
}

static void take_count(struct counting *counting) {
    struct slice current = bytes_slice(&counting->answer.blob);
    assert_int_equal(counting->answer.code, FAILURE_NONE);
    assert_true(current.length < sizeof counting->seen);
    counting->done += slice_equals(current, slice(counting->wanted));
    memcpy(counting->seen, current.data, current.length);
    counting->seen[current.length] = '\0';
    answer_clear(&counting->answer);
}

static void of_clients_that_compare_and_set_at_once_one_wins(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("contended");
    struct counting counters[COUNTERS] = {0};
    set(store, store->first, key, "0");
    for (int i = 0; i < COUNTERS; i++) {
        counters[i].client = store_client_open(store);
        counters[i].number = i;
        (void)snprintf(counters[i].seen, sizeof counters[i].seen, "0");
        try_to_count(key, &counters[i]);
    }
    for (int running = COUNTERS; running > 0;) {
        (void)event_loop_run_ready(store->loop);
        for (int i = 0; i < COUNTERS; i++) {
            if (counters[i].answer.calls > 0) {
                take_count(&counters[i]);
                running -= counters[i].done == ROUNDS;
                if (counters[i].done < ROUNDS) {
                    try_to_count(key, &counters[i]);
                }
            }
        }
    }
    int last = 0;
    for (int i = 0; i < COUNTERS; i++) {
        last = atoi(counters[i].seen) > last ? atoi(counters[i].seen) : last;
        store_access_free(counters[i].client);
    }
    assert_int_equal(last, COUNTERS * ROUNDS);
    free(key);
}

static void add_counts_from_zero_for_all(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("counter");
    assert_int_equal(add(store, store->first, key, 0), 0);
    assert_int_equal(add(store, store->first, key, 1), 1);
    assert_int_equal(add(store, store->second, key, 5), 6);
    assert_int_equal(add(store, store->first, key, -10), -4);
    expect_stored(store, store->second, key, "-4");
    free(key);
}

static void added_numbers_are_given_out_once(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("tickets");
    struct answer answers[2 * ROUNDS];
    bool is_taken[2 * ROUNDS + 1] = {false};
    for (int i = 0; i < 2 * ROUNDS; i++) {
        begin(i % 2 == 0 ? store->first : store->second,
            &(struct store_request){.operation = STORE_ADD, .key = slice(key), .number = 1},
            &answers[i]);
    }
    for (int i = 0; i < 2 * ROUNDS; i++) {
        await(store, &answers[i]);
        int64_t number = answers[i].reply.integer;
        assert_true(number >= 1 && number <= 2 * ROUNDS);
        assert_false(is_taken[number]);
        is_taken[number] = true;
    }
    free(key);
}

static void check_needs_every_key(void **state) {
    struct store_under_test *store = *state;
    char *there = unused_key("there");
    char *missing = unused_key("missing");
    set(store, store->first, there, "");
    assert_true(exists(store, store->second, there));
    assert_false(exists(store, store->second, missing));
    struct slice keys[] = {slice(there), slice(missing)};
    struct answer answer;
    begin(store->first, &(struct store_request){.operation = STORE_CHECK, .keys = keys, .count = 2},
        &answer);
    await(store, &answer);
    assert_int_equal(answer.reply.byte, STORE_NOT_READY);
    free(there);
    free(missing);
}

static void several_values_are_set_and_got_in_order(void **state) {
    struct store_under_test *store = *state;
    char *first = unused_key("several-1");
    char *second = unused_key("several-2");
    char *third = unused_key("several-3");
    struct slice keys[] = {slice(first), slice(second), slice(third)};
    struct slice values[] = {slice("a"), slice(""), slice("ccc")};
    struct answer answer;
    begin(store->first,
        &(struct store_request){
            .operation = STORE_MULTI_SET, .keys = keys, .values = values, .count = 3},
        &answer);
    await(store, &answer);
    struct slice reversed[] = {keys[2], keys[1], keys[0]};
    begin_get(store->second,
        &(struct store_request){.operation = STORE_MULTI_GET, .keys = reversed, .count = 3},
        &answer);
    await(store, &answer);
    assert_int_equal(answer.reply.list.count, 3);
    assert_int_equal(answer.lengths[0], 3);
    assert_int_equal(answer.lengths[1], 0);
    assert_int_equal(answer.lengths[2], 1);
    assert_true(slice_equals(bytes_slice(&answer.blob), slice("ccca")));
    answer_clear(&answer);
    free(first);
    free(second);
    free(third);
}

static void deleted_key_is_gone_until_it_is_made_again(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("deleted");
    assert_false(remove_key(store, store->first, key));
    set(store, store->first, key, "v");
    assert_true(remove_key(store, store->second, key));
    assert_false(exists(store, store->first, key));
    assert_false(remove_key(store, store->first, key));
    expect_compare_set(store, key, "", "again", "again");
    expect_stored(store, store->second, key, "again");
    free(key);
}

static void large_values_pass_unharmed(void **state) {
    struct store_under_test *store = *state;
    char *key = unused_key("large");
    size_t length = (size_t)1 << 20;
    uint8_t *data = malloc(2 * length);
    for (size_t i = 0; i < 2 * length; i++) {
        data[i] = (uint8_t)(i * 31 + i / 4093);
    }
    struct slice old = {data, length};
    struct slice new = {data + length, length};
    struct answer answer = compare_set(store, store->first, key, slice(""), old);
    assert_true(slice_equals(bytes_slice(&answer.blob), old));
    answer_clear(&answer);
    answer = compare_set(store, store->second, key, old, new);
    assert_true(slice_equals(bytes_slice(&answer.blob), new));
    answer_clear(&answer);
    begin_get(
        store->first, &(struct store_request){.operation = STORE_GET, .key = slice(key)}, &answer);
    await(store, &answer);
    assert_true(slice_equals(bytes_slice(&answer.blob), new));
    answer_clear(&answer);
    free(data);
    free(key);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(value_is_seen_by_every_client),
    cmocka_unit_test(values_are_bytes),
    cmocka_unit_test(compare_set_makes_a_key_when_nothing_is_expected),
    cmocka_unit_test(compare_set_makes_no_key_when_something_is_expected),
    cmocka_unit_test(compare_set_replaces_the_expected_value),
    cmocka_unit_test(compare_set_leaves_another_value_and_tells_it),
    cmocka_unit_test(of_clients_that_compare_and_set_at_once_one_wins),
    cmocka_unit_test(add_counts_from_zero_for_all),
    cmocka_unit_test(added_numbers_are_given_out_once),
    cmocka_unit_test(check_needs_every_key),
    cmocka_unit_test(several_values_are_set_and_got_in_order),
    cmocka_unit_test(deleted_key_is_gone_until_it_is_made_again),
    cmocka_unit_test(large_values_pass_unharmed),
};

int main(int argument_count, char **arguments) {
    if (!store_under_test_parse(argument_count, arguments)) {
        return 2;
    }
    return cmocka_run_group_tests_name(
        "store", tests, store_under_test_set_up, store_under_test_tear_down);
}
