/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/store/job_token.h"

static void the_installed_library_has_what_is_needed(void **state) {
    (void)state;
    struct crypto_library library;
    assert_int_equal(crypto_library_load(NULL, &library, NULL), FAILURE_NONE);
    assert_int_equal(library.compare("same", "same", 4), 0);
    assert_int_not_equal(library.compare("same", "some", 4), 0);
    crypto_library_unload(&library);
    assert_null(library.handle);
    crypto_library_unload(&library);
}

/* RFC 4231, test case 2. */
static void its_codes_are_those_of_the_standard(void **state) {
    (void)state;
    static const unsigned char expected[] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a,
        0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83,
        0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
    struct crypto_library library;
    assert_int_equal(crypto_library_load(NULL, &library, NULL), FAILURE_NONE);
    unsigned char code[64];
    unsigned int length = 0;
    const char *message = "what do ya want for nothing?";
    assert_non_null(library.hmac(library.sha256(), "Jefe", 4, (const unsigned char *)message,
        strlen(message), code, &length));
    assert_int_equal(length, sizeof expected);
    assert_memory_equal(code, expected, sizeof expected);
    crypto_library_unload(&library);
}

static void a_library_that_is_not_there_is_named(void **state) {
    (void)state;
    struct crypto_library library;
    struct failure failure = {0};
    assert_int_equal(crypto_library_load("libnowhere.so.3", &library, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "libssl3"));
    assert_non_null(strstr(failure.message, "libnowhere.so.3"));
}

static void another_library_is_refused(void **state) {
    (void)state;
    struct crypto_library library;
    assert_int_equal(crypto_library_load("libc.so.6", &library, NULL), FAILURE_MISSING);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_installed_library_has_what_is_needed),
    cmocka_unit_test(its_codes_are_those_of_the_standard),
    cmocka_unit_test(a_library_that_is_not_there_is_named),
    cmocka_unit_test(another_library_is_refused),
};

UNIT_TESTS(tests)
