/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "options/launch/rendezvous_options.h"

static void expect_place(const char *text, const char *space, const char *name) {
    CLEARED_BY(kubernetes_place_clear) struct kubernetes_place place = {0};
    CLEARED_BY(text_clear) struct text reason = {0};
    assert_int_equal(kubernetes_place_parse(text, &place, &reason), FAILURE_NONE);
    if (space == NULL) {
        assert_null(place.space);
    } else {
        assert_string_equal(place.space, space);
    }
    assert_string_equal(place.name, name);
    assert_int_equal(reason.length, 0);
}

static void expect_refused(const char *text, const char *words) {
    struct kubernetes_place place = {0};
    CLEARED_BY(text_clear) struct text reason = {0};
    assert_int_equal(kubernetes_place_parse(text, &place, &reason), FAILURE_INVALID);
    if (strstr(text_string(&reason), words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text_string(&reason), words);
    }
}

TEST(names_have_a_namespace_or_none) {
    expect_place("train", NULL, "train");
    expect_place("t", NULL, "t");
    expect_place("0-train.v1.x", NULL, "0-train.v1.x");
    expect_place("ml/train", "ml", "train");
    FREED char *longest = text_format("%063d/%0253d", 0, 0);
    FREED char *space = text_format("%063d", 0);
    expect_place(longest, space, longest + 64);
}

TEST(names_that_kubernetes_refuses_are_refused) {
    static const char *const names[] = {"", "Train", "-train", "train-", "tra_in", "a..b", ".a",
        "a.", "a.-b", "a-.b", "a b", "a/", "a/b/c", "tr\xc3\xa4in"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        expect_refused(names[i], "give [NAMESPACE/]NAME of a ConfigMap");
    }
    FREED char *longer = text_format("%0254d", 0);
    expect_refused(longer, "at most 253 lower-case letters");
}

TEST(namespaces_that_kubernetes_refuses_are_refused) {
    static const char *const names[] = {"/train", "a.b/train", "ML/train", "-/train", "m_l/train"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        expect_refused(names[i], "the name of a namespace: at most 63");
    }
    FREED char *longer = text_format("%064d/train", 0);
    expect_refused(longer, "the name of a namespace");
}
