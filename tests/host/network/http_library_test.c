/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/network/health_endpoint.h"

TEST(the_installed_library_has_what_is_needed) {
    struct http_library library;
    assert_int_equal(http_library_load(HTTP_LIBRARY_NAME, &library, NULL), FAILURE_NONE);
    assert_non_null(library.start_daemon);
    assert_non_null(library.destroy_response);
    http_library_unload(&library);
    assert_null(library.handle);
    http_library_unload(&library);
}

TEST(a_library_that_is_not_there_is_named) {
    struct http_library library;
    struct failure failure = {0};
    assert_int_equal(http_library_load("libnowhere.so.12", &library, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "libmicrohttpd is needed"));
    assert_non_null(strstr(failure.message, "libnowhere.so.12"));
}

TEST(another_library_is_refused) {
    struct http_library library;
    assert_int_equal(http_library_load("libc.so.6", &library, NULL), FAILURE_MISSING);
}
