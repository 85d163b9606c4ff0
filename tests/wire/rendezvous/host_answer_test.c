/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "wire/rendezvous/host_answer.h"

static char names[] = "node7.local 10.0.0.7";

TEST(it_is_spelled_as_the_header_says) {
    CLEARED_BY(text_clear) struct text text = {0};
    host_answer_write(&(struct host_answer){3, {29400, names}}, &text);
    assert_string_equal(text_string(&text),
        "{\"muster_host\": 1, \"term\": 3, \"place\": \"29400 node7.local 10.0.0.7\"}");
    text_clear(&text);
    host_answer_write(&(struct host_answer){0}, &text);
    assert_string_equal(text_string(&text), "{\"muster_host\": 1, \"term\": 0}");
}
