# SPDX-License-Identifier: BSD-3-Clause
"""Tests that `tools/make_bad_input.py` makes from a header and a table, and what `tools/check_bad_input.py` misses in them."""

import importlib
import sys

import pytest

from support.binary import ROOT

HEADER = """struct muster_thing;
struct muster_settings {
    int count;
};
enum muster_error muster_thing_new(
    const struct muster_settings *settings, const char *name, struct muster_thing **out_thing, struct muster_failure *failure);
"""
TABLE = """% begin end
* out_*
    IS_NULL NULL -> INVALID
* name
    IS_NULL NULL -> INVALID
    EMPTY "" ok: there is a default
    TOO_LONG text; settings &larger -> LIMIT
    NOT_UTF8 NO_UTF8 -> INVALID
    NEWLINE "a\\n" -> INVALID
muster_thing_new(&good, "name", &thing)
    settings IS_NULL NULL -> INVALID
    name EMPTY elsewhere
muster_settings = WITH({name}, {value})
    count BELOW -1 -> INVALID
    count ABOVE 9 ok: as many as there are
"""


@pytest.fixture
def tools():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        yield importlib.import_module("make_bad_input"), importlib.import_module("check_bad_input")
    finally:
        sys.path.remove(str(ROOT / "tools"))


def made(tools, scratch, table):
    """The rows, and the complaints."""
    header = scratch / "thing.h"
    header.write_text(HEADER)
    (scratch / "bad_thing.rows").write_text(table)
    (scratch / "bad_thing_test.c").write_text("")
    text = tools[0].text_of_test(scratch / "bad_thing_test.c", [header])
    return text, tools[1].complaints([header], {"bad_thing_test.c": text})[0]


def test_each_row_is_a_call_with_one_mistake(tools, scratch):
    text, _ = made(tools, scratch, TABLE)
    assert "TEST_WITH(thing_new, begin, end) {" in text
    assert "REFUSED(muster_thing_new, settings, IS_NULL, MUSTER_ERROR_INVALID, muster_thing_new(NULL, \"name\", &thing, failure));" in text
    assert "MUSTER_ERROR_LIMIT, muster_thing_new(&larger, text, &thing, failure));" in text
    assert 'ALLOWED(muster_settings, count, ABOVE, "as many as there are", (WITH(count, 9)) == MUSTER_OK);' in text
    assert "REFUSED(muster_thing_new, name, NEWLINE," in text and "name, EMPTY" not in text


def test_what_the_table_leaves_out_is_missed(tools, scratch):
    _, complaints = made(tools, scratch, TABLE)
    assert complaints == ["bad input: muster_thing_new name EMPTY is not tried"]
    _, complaints = made(tools, scratch, TABLE.replace("    name EMPTY elsewhere\n", "").replace("    count BELOW -1 -> INVALID\n", ""))
    assert complaints == ["bad input: muster_settings count BELOW is not tried"]
    with pytest.raises(SystemExit, match="no row of muster_settings"):
        made(tools, scratch, TABLE.replace("count BELOW", "size BELOW"))
