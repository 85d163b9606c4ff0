/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/register/http_client.h"

TEST(library_that_is_missing_is_named) {
    struct curl_library library;
    struct failure failure;
    assert_int_equal(curl_library_load("libmissing.so.4", &library, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "libcurl is needed for --rdzv-backend etcd and k8s"));
}

TEST(library_without_the_functions_is_refused) {
    struct curl_library library;
    struct failure failure;
    assert_int_equal(curl_library_load("libm.so.6", &library, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "libm.so.6 lacks functions"));
}

TEST(installed_library_has_all) {
    struct curl_library library;
    struct failure failure;
    if (curl_library_load(CURL_LIBRARY_NAME, &library, &failure) != FAILURE_NONE) {
        SKIP_BECAUSE("libcurl is not installed");
    }
    assert_non_null(library.multi_cleanup);
}
