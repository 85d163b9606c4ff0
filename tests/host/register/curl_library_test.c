/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/register/http_client.h"

static void library_that_is_missing_is_named(void **state) {
    (void)state;
    struct curl_library library;
    struct failure failure;
    assert_int_equal(curl_library_load("libmissing.so.4", &library, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "libcurl is needed for --rdzv-backend etcd and k8s"));
}

static void library_without_the_functions_is_refused(void **state) {
    (void)state;
    struct curl_library library;
    struct failure failure;
    assert_int_equal(curl_library_load("libm.so.6", &library, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "libm.so.6 lacks functions"));
}

static void installed_library_has_all(void **state) {
    (void)state;
    struct curl_library library;
    struct failure failure;
    if (curl_library_load(CURL_LIBRARY_NAME, &library, &failure) != FAILURE_NONE) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    assert_non_null(library.multi_cleanup);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(library_that_is_missing_is_named),
    cmocka_unit_test(library_without_the_functions_is_refused),
    cmocka_unit_test(installed_library_has_all),
};

UNIT_TESTS(tests)
