/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/store/store_thread.h"

static int setup(void **state) {
    struct store_mail *mail = calloc(1, sizeof *mail);
    store_mail_init(mail);
    *state = mail;
    return 0;
}

static int teardown(void **state) {
    struct store_mail *mail = *state;
    store_mail_clear(mail);
    free(mail);
    return 0;
}

static void post(
    struct store_mail *mail, enum store_letter_kind kind, const char *name, const char *value) {
    store_mail_post(mail, store_letter_new(kind, name, value));
}

static void post_connections(struct store_mail *mail, size_t count) {
    struct store_letter *letter = store_letter_new(STORE_LETTER_CONNECTIONS, NULL, NULL);
    letter->count = count;
    store_mail_post(mail, letter);
}

static void expect(
    struct store_mail *mail, enum store_letter_kind kind, const char *name, const char *value) {
    struct store_letter *letter = store_mail_take(mail);
    assert_non_null(letter);
    assert_int_equal(letter->kind, kind);
    assert_string_equal(letter->name, name);
    assert_string_equal(letter->value, value);
    store_letter_free(letter);
}

static void expect_connections(struct store_mail *mail, size_t count) {
    struct store_letter *letter = store_mail_take(mail);
    assert_non_null(letter);
    assert_int_equal(letter->kind, STORE_LETTER_CONNECTIONS);
    assert_int_equal(letter->count, count);
    store_letter_free(letter);
}

static void expect_nothing(struct store_mail *mail) {
    assert_true(store_mail_is_empty(mail));
    assert_null(store_mail_take(mail));
}

static void letters_come_out_in_the_order_they_went_in(void **state) {
    struct store_mail *mail = *state;
    post(mail, STORE_LETTER_RENEW, "/a/", "");
    post(mail, STORE_LETTER_DROP, "node", "");
    post(mail, STORE_LETTER_RENEW, "/b/", "");
    assert_false(store_mail_is_empty(mail));
    expect(mail, STORE_LETTER_RENEW, "/a/", "");
    expect(mail, STORE_LETTER_DROP, "node", "");
    expect(mail, STORE_LETTER_RENEW, "/b/", "");
    expect_nothing(mail);
    post(mail, STORE_LETTER_DROP, "again", "");
    expect(mail, STORE_LETTER_DROP, "again", "");
    expect_nothing(mail);
}

static void newer_beat_takes_the_place_of_an_unread_one(void **state) {
    struct store_mail *mail = *state;
    post(mail, STORE_LETTER_BEAT, "a", "1");
    post(mail, STORE_LETTER_BEAT, "b", "1");
    post(mail, STORE_LETTER_BEAT, "a", "2");
    expect(mail, STORE_LETTER_BEAT, "a", "2");
    expect(mail, STORE_LETTER_BEAT, "b", "1");
    expect_nothing(mail);
}

static void beat_after_a_read_one_is_a_letter_of_its_own(void **state) {
    struct store_mail *mail = *state;
    post(mail, STORE_LETTER_BEAT, "a", "1");
    expect(mail, STORE_LETTER_BEAT, "a", "1");
    post(mail, STORE_LETTER_BEAT, "a", "2");
    expect(mail, STORE_LETTER_BEAT, "a", "2");
    expect_nothing(mail);
}

static void beat_never_passes_an_end(void **state) {
    struct store_mail *mail = *state;
    post(mail, STORE_LETTER_BEAT, "a", "1");
    post(mail, STORE_LETTER_GONE, "a", "1");
    post(mail, STORE_LETTER_BEAT, "a", "2");
    post(mail, STORE_LETTER_BEAT, "a", "3");
    expect(mail, STORE_LETTER_BEAT, "a", "1");
    post(mail, STORE_LETTER_BEAT, "a", "4");
    expect(mail, STORE_LETTER_GONE, "a", "1");
    expect(mail, STORE_LETTER_BEAT, "a", "4");
    expect_nothing(mail);
}

static void only_the_last_number_of_connections_is_kept_for_the_end(void **state) {
    struct store_mail *mail = *state;
    post_connections(mail, 1);
    post_connections(mail, 2);
    post_connections(mail, 1);
    post(mail, STORE_LETTER_GONE, "a", "1");
    expect(mail, STORE_LETTER_GONE, "a", "1");
    expect_connections(mail, 1);
    expect_nothing(mail);
    post_connections(mail, 0);
    expect_connections(mail, 0);
    expect_nothing(mail);
}

static void unread_letters_go_with_the_box(void **state) {
    struct store_mail *mail = *state;
    post(mail, STORE_LETTER_BEAT, "a", "1");
    post(mail, STORE_LETTER_GONE, "a", "1");
    post_connections(mail, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(letters_come_out_in_the_order_they_went_in, setup, teardown),
    cmocka_unit_test_setup_teardown(newer_beat_takes_the_place_of_an_unread_one, setup, teardown),
    cmocka_unit_test_setup_teardown(beat_after_a_read_one_is_a_letter_of_its_own, setup, teardown),
    cmocka_unit_test_setup_teardown(beat_never_passes_an_end, setup, teardown),
    cmocka_unit_test_setup_teardown(
        only_the_last_number_of_connections_is_kept_for_the_end, setup, teardown),
    cmocka_unit_test_setup_teardown(unread_letters_go_with_the_box, setup, teardown),
};

UNIT_TESTS(tests)
