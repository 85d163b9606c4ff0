/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/register/etcd_register.h"

static struct failure failure;

static struct grpc_result answered(int status, const char *words) {
    failure_set(&failure, FAILURE_SYSTEM, "%s", words);
    return (struct grpc_result){.is_answered = true, .status = status, .why = &failure};
}

static bool is_final(int status, const char *words) {
    struct grpc_result result = answered(status, words);
    return etcd_failure_is_final(&result);
}

static void what_only_the_user_can_mend_is_final(void **state) {
    (void)state;
    assert_true(is_final(GRPC_PERMISSION_DENIED, "permission denied"));
    assert_true(is_final(GRPC_UNAUTHENTICATED, "invalid auth token"));
    assert_true(is_final(GRPC_RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded"));
    struct grpc_result untrusted = {.is_trust_failure = true, .why = &failure};
    assert_true(etcd_failure_is_final(&untrusted));
}

static void what_may_pass_is_asked_again(void **state) {
    (void)state;
    assert_false(is_final(GRPC_UNAVAILABLE, "etcdserver: no leader"));
    assert_false(is_final(GRPC_RESOURCE_EXHAUSTED, "etcdserver: too many requests"));
    struct grpc_result silent = {.why = &failure};
    assert_false(etcd_failure_is_final(&silent));
}

static void words_that_are_known_come_with_advice(void **state) {
    (void)state;
    struct grpc_result full =
        answered(GRPC_RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded");
    assert_string_equal(
        etcd_failure_advice(&full), "; make room there (etcdctl compact, defrag, alarm disarm)");
    struct grpc_result other = answered(GRPC_UNAVAILABLE, "etcdserver: no leader");
    assert_string_equal(etcd_failure_advice(&other), "");
    full.is_answered = false; /* they are not etcd's */
    assert_string_equal(etcd_failure_advice(&full), "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_only_the_user_can_mend_is_final),
    cmocka_unit_test(what_may_pass_is_asked_again),
    cmocka_unit_test(words_that_are_known_come_with_advice),
};

UNIT_TESTS(tests)
