/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/fake_munge.h"

#include "host/store/munge.h"

#define NOWHERE "/nowhere/munge.socket"
static const char payload[] = "what is said";

static struct munge_library load(void) {
    struct munge_library library;
    assert_int_equal(munge_library_load(FAKE_MUNGE, &library, NULL), FAILURE_NONE);
    return library;
}

static struct bytes encode(const struct munge_library *library, const char *socket) {
    struct bytes credential;
    assert_int_equal(
        munge_library_encode(library, socket, slice_from_string(payload), &credential, NULL),
        FAILURE_NONE);
    return credential;
}

static void a_credential_comes_back_with_payload_and_user(void **state) {
    (void)state;
    const struct munge_library library = load();
    struct bytes credential = encode(&library, "/red.1234");
    struct bytes said = {0};
    uid_t user = 0;
    assert_int_equal(
        munge_library_decode(&library, "/red.1", bytes_slice(&credential), &said, &user, NULL),
        STORE_CREDENTIAL_ACCEPTED);
    assert_int_equal(user, 1234);
    assert_true(slice_equals(bytes_slice(&said), slice_from_string(payload)));
    bytes_clear(&said);
    bytes_clear(&credential);
}

static void each_refusal_has_its_verdict_and_words(void **state) {
    (void)state;
    static const struct {
        const char *socket;
        enum store_credential_verdict verdict;
    } cases[] = {
        {"/blue.1", STORE_CREDENTIAL_OTHER_KEY},
        {"/red.1.8", STORE_CREDENTIAL_OTHER_KEY},
        {"/red.1.14", STORE_CREDENTIAL_OTHER_KEY},
        {"/red.1.15", STORE_CREDENTIAL_OLD},
        {"/red.1.16", STORE_CREDENTIAL_FUTURE},
        {"/red.1.17", STORE_CREDENTIAL_USED},
        {"/red.1.18", STORE_CREDENTIAL_OTHER_USER},
        {"/red.1.6", STORE_CREDENTIAL_UNCHECKED},
        {"/red.1.1", STORE_CREDENTIAL_UNCHECKED},
        {"/red.1.99", STORE_CREDENTIAL_UNCHECKED},
    };
    const struct munge_library library = load();
    struct bytes credential = encode(&library, "/red.1");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes said = {0};
        struct failure failure = {0};
        uid_t user = 0;
        assert_int_equal(munge_library_decode(&library, cases[i].socket, bytes_slice(&credential),
                             &said, &user, &failure),
            cases[i].verdict);
        assert_non_null(strstr(failure.message, "made-up munge"));
        assert_null(said.data);
    }
    bytes_clear(&credential);
}

static void a_daemon_that_is_away_makes_nothing(void **state) {
    (void)state;
    const struct munge_library library = load();
    struct bytes credential = {0};
    struct failure failure = {0};
    assert_int_equal(munge_library_encode(
                         &library, "/red.1.6", slice_from_string(payload), &credential, &failure),
        FAILURE_SYSTEM);
    assert_string_equal(failure.message, "made-up munge is away");
}

static void a_library_that_is_not_there_is_named(void **state) {
    (void)state;
    struct munge_library library;
    struct failure failure = {0};
    assert_int_equal(munge_library_load("libnowhere.so.2", &library, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "libmunge2"));
    assert_non_null(strstr(failure.message, "libnowhere.so.2"));
    assert_int_equal(munge_library_load("libc.so.6", &library, &failure), FAILURE_MISSING);
    assert_non_null(strstr(failure.message, "libc.so.6 lacks"));
}

/* That it has what is needed, and takes our calls. */
static void the_installed_library_says_that_nobody_listens(void **state) {
    (void)state;
    struct munge_library library;
    if (munge_library_load(NULL, &library, NULL) != FAILURE_NONE) {
        SKIP_BECAUSE("needs munge's library (Debian: libmunge2)");
    }
    struct bytes credential = {0};
    struct failure failure = {0};
    assert_int_equal(
        munge_library_encode(&library, NOWHERE, slice_from_string(payload), &credential, &failure),
        FAILURE_SYSTEM);
    assert_non_null(strstr(failure.message, NOWHERE));
    uid_t user = 0;
    assert_int_equal(munge_library_decode(&library, NOWHERE, slice_from_string("MUNGE:x:"),
                         &credential, &user, &failure),
        STORE_CREDENTIAL_UNCHECKED);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_credential_comes_back_with_payload_and_user),
    cmocka_unit_test(each_refusal_has_its_verdict_and_words),
    cmocka_unit_test(a_daemon_that_is_away_makes_nothing),
    cmocka_unit_test(a_library_that_is_not_there_is_named),
    cmocka_unit_test(the_installed_library_says_that_nobody_listens),
};

UNIT_TESTS(tests)
