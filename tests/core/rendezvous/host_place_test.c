/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdlib.h>

#include "core/rendezvous/endpoint_match.h"

TEST(what_is_written_is_read) {
    static const char *const names[] = {
        "node7", "node-7_a.example.org 10.0.0.7", "10.0.0.7 fd00::7 fe80::1%eth0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CLEARED_BY(text_clear) struct text text = {0};
        struct host_place place;
        host_place_write(29400, names[i], &text);
        assert_int_equal(host_place_parse(text_string(&text), &place), FAILURE_NONE);
        assert_int_equal(place.port, 29400);
        assert_string_equal(place.names, names[i]);
        host_place_clear(&place);
    }
}

TEST(odd_texts_are_refused) {
    static const char *const odd[] = {"", "29400", "29400 ", " 29400 a", "0 a", "029400 a",
        "65536 a", "123456789012345678901 a", "29400  a", "29400 a ", "29400 a  b", "29400 a\nb",
        "29400 a;b", "29400 /etc", "-1 a", "29400\ta", "a 29400", "29400 \303\266"};
    struct host_place place;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        assert_int_equal(host_place_parse(odd[i], &place), FAILURE_MALFORMED);
    }
}

TEST(a_text_has_a_limit) {
    char text[HOST_PLACE_TEXT_MAXIMUM + 2];
    struct host_place place;
    memset(text, 'a', sizeof text - 1);
    memcpy(text, "1 ", 2);
    text[sizeof text - 1] = '\0';
    assert_int_equal(host_place_parse(text, &place), FAILURE_LIMIT);
    text[sizeof text - 2] = '\0';
    assert_int_equal(host_place_parse(text, &place), FAILURE_NONE);
    host_place_clear(&place);
}
