/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/store/store_client.h"

static struct store_call *make(const struct store_client_call *call) {
    return store_call_new(call, (struct instant){1000});
}

static void expect_bytes(const struct bytes *bytes, const char *expected, size_t length) {
    assert_int_equal(bytes->length, length);
    assert_memory_equal(bytes->data, expected, length);
}

static void key_gets_a_slash(void **state) {
    (void)state;
    struct store_call *call = make(&(struct store_client_call){
        .request = {.operation = STORE_GET, .key = slice_from_string("k")}});
    expect_bytes(&call->bytes, "\x03\x02\0\0\0\0\0\0\0/k", 11);
    assert_int_equal(call->wait_bytes.length, 0);
    store_call_free(call);
}

static void raw_key_is_left_as_it_is(void **state) {
    (void)state;
    struct store_call *call = make(&(struct store_client_call){
        .is_raw = true, .request = {.operation = STORE_GET, .key = slice_from_string("k")}});
    expect_bytes(&call->bytes, "\x03\x01\0\0\0\0\0\0\0k", 10);
    store_call_free(call);
}

static void keys_of_a_list_get_a_slash_each(void **state) {
    (void)state;
    struct slice keys[] = {slice_from_string("a"), slice_from_string("")};
    struct store_call *call = make(&(struct store_client_call){
        .request = {.operation = STORE_CHECK, .keys = keys, .count = 2}});
    expect_bytes(&call->bytes, "\x05\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0/a\x01\0\0\0\0\0\0\0/", 28);
    store_call_free(call);
}

static void get_that_waits_first_carries_the_wait(void **state) {
    (void)state;
    struct store_call *call = make(&(struct store_client_call){
        .waits_first = true, .request = {.operation = STORE_GET, .key = slice_from_string("k")}});
    expect_bytes(&call->wait_bytes, "\x06\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0/k", 19);
    store_call_free(call);
}

static void multi_get_that_waits_first_waits_for_all(void **state) {
    (void)state;
    struct slice keys[] = {slice_from_string("a"), slice_from_string("b")};
    struct store_call *call = make(&(struct store_client_call){
        .waits_first = true, .request = {.operation = STORE_MULTI_GET, .keys = keys, .count = 2}});
    expect_bytes(
        &call->wait_bytes, "\x06\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0/a\x02\0\0\0\0\0\0\0/b", 29);
    store_call_free(call);
}

static void only_waits_may_take_their_time(void **state) {
    (void)state;
    struct store_call *wait =
        make(&(struct store_client_call){.request = {.operation = STORE_WAIT}});
    struct store_call *get =
        make(&(struct store_client_call){.request = {.operation = STORE_GET}, .waits_first = true});
    assert_false(store_call_is_waiting(wait));
    wait->stage = STORE_CALL_SENT;
    assert_true(store_call_is_waiting(wait));
    wait->stage = STORE_CALL_CANCELLING;
    assert_false(store_call_is_waiting(wait));
    get->stage = STORE_CALL_WAITING_FIRST;
    assert_true(store_call_is_waiting(get));
    get->stage = STORE_CALL_SENT;
    assert_false(store_call_is_waiting(get));
    store_call_free(wait);
    store_call_free(get);
}

static struct store_call *due_after(int64_t nanoseconds) {
    return make(&(struct store_client_call){
        .request = {.operation = STORE_COUNT_KEYS}, .timeout = {nanoseconds}});
}

static void queue_keeps_order_and_knows_who_is_due(void **state) {
    (void)state;
    struct store_call_queue queue = {0};
    assert_int_equal(store_call_queue_deadline(&queue).nanoseconds, INT64_MAX);
    assert_null(store_call_queue_pop(&queue));
    struct store_call *calls[] = {due_after(30), due_after(10), due_after(20)};
    for (int i = 0; i < 3; i++) {
        store_call_queue_push(&queue, calls[i]);
    }
    assert_int_equal(store_call_queue_deadline(&queue).nanoseconds, 1010);
    assert_null(store_call_queue_pop_expired(&queue, (struct instant){1009}));
    assert_ptr_equal(store_call_queue_pop_expired(&queue, (struct instant){1010}), calls[1]);
    assert_ptr_equal(store_call_queue_pop_expired(&queue, (struct instant){1020}), calls[2]);
    store_call_queue_push(&queue, calls[1]);
    assert_ptr_equal(store_call_queue_pop(&queue), calls[0]);
    assert_ptr_equal(store_call_queue_pop(&queue), calls[1]);
    assert_null(store_call_queue_pop(&queue));
    for (int i = 0; i < 3; i++) {
        store_call_free(calls[i]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(key_gets_a_slash),
    cmocka_unit_test(raw_key_is_left_as_it_is),
    cmocka_unit_test(keys_of_a_list_get_a_slash_each),
    cmocka_unit_test(get_that_waits_first_carries_the_wait),
    cmocka_unit_test(multi_get_that_waits_first_waits_for_all),
    cmocka_unit_test(only_waits_may_take_their_time),
    cmocka_unit_test(queue_keeps_order_and_knows_who_is_due),
};

UNIT_TESTS(tests)
