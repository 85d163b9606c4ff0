/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/pickle/pickle_document.h"

static bool is_known(const char *module, const char *name) {
    enum pickle_class of_class;
    return pickle_class_find(slice_from_string(module), slice_from_string(name), &of_class);
}

static void every_class_is_found_under_its_own_name(void **state) {
    (void)state;
    for (int i = PICKLE_CLASS_RENDEZVOUS_STATE; i <= PICKLE_CLASS_ENCODE; i++) {
        enum pickle_class each = (enum pickle_class)i;
        enum pickle_class found;
        assert_true(pickle_class_find(slice_from_string(pickle_class_module(each)),
            slice_from_string(pickle_class_name(each)), &found));
        assert_int_equal(found, each);
    }
    enum pickle_class found;
    assert_true(
        pickle_class_find(slice_from_string("__builtin__"), slice_from_string("set"), &found));
    assert_int_equal(found, PICKLE_CLASS_SET);
}

static void nothing_else_is_known(void **state) {
    (void)state;
    assert_false(is_known("os", "system"));
    assert_false(is_known("builtins", "eval"));
    assert_false(is_known("__builtin__", "datetime"));
    assert_false(is_known("datetime", "datetime.now"));
    assert_false(is_known("datetime", "date"));
    assert_false(is_known("_codecs", "lookup"));
    assert_false(is_known("", ""));
    assert_false(is_known("torch.distributed.elastic.rendezvous.dynamic_rendezvous", "pickle"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_class_is_found_under_its_own_name),
    cmocka_unit_test(nothing_else_is_known),
};

UNIT_TESTS(tests)
