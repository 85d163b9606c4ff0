/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/network/health_endpoint.h"

static void the_installed_library_has_what_is_needed(void **state) {
    (void)state;
    struct http_library library;
    assert_int_equal(http_library_load(HTTP_LIBRARY_NAME, &library, NULL), FAILURE_NONE);
    assert_non_null(library.start_daemon);
    assert_non_null(library.destroy_response);
    http_library_unload(&library);
    assert_null(library.handle);
    http_library_unload(&library);
}

static void a_library_that_is_not_there_is_named(void **state) {
    (void)state;
    struct http_library library;
    struct failure failure = {0};
    assert_int_equal(http_library_load("libnowhere.so.12", &library, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "libmicrohttpd is needed"));
    assert_non_null(strstr(failure.message, "libnowhere.so.12"));
}

static void another_library_is_refused(void **state) {
    (void)state;
    struct http_library library;
    assert_int_equal(http_library_load("libc.so.6", &library, NULL), FAILURE_MISSING);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_installed_library_has_what_is_needed),
    cmocka_unit_test(a_library_that_is_not_there_is_named),
    cmocka_unit_test(another_library_is_refused),
};

UNIT_TESTS(tests)
