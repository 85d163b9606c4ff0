/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/text.h"

TEST(strings_look_as_python_shows_them) {
    static const struct {
        const char *string;
        const char *shown;
    } cases[] = {
        {"x", "'x'"},
        {"", "''"},
        {"it's", "\"it's\""},
        {"it's \"both\"", "'it\\'s \"both\"'"},
        {"a\\b", "'a\\\\b'"},
        {"\t\n\r\x01\x7f", "'\\t\\n\\r\\x01\\x7f'"},
        {"gr\xc3\xbc\xc3\x9f", "'gr\xc3\xbc\xc3\x9f'"},
        {"\xc2\xa0\xc2\x85\xc2\xad", "'\\xa0\\x85\\xad'"},
        {"\xff", "'\\udcff'"},
        {"\xe2\x82", "'\\udce2\\udc82'"},            /* cut short */
        {"\xc0\x80", "'\\udcc0\\udc80'"},            /* longer than needed */
        {"\xed\xa0\x80", "'\\udced\\udca0\\udc80'"}, /* a surrogate */
        {"\xf0\x9f\x98\x80", "'\xf0\x9f\x98\x80'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CLEARED_BY(text_clear) struct text out = {0};
        python_repr_append(&out, cases[i].string);
        assert_string_equal(text_string(&out), cases[i].shown);
    }
}
