# SPDX-License-Identifier: BSD-3-Clause
"""The man pages of the public headers say all that the headers do."""

import re
import shutil
import subprocess
import sys

import pytest

from support.binary import ROOT

HEADERS = sorted((ROOT / "include/muster").glob("*.h"))
sys.path.insert(0, str(ROOT / "tools"))
import check_library  # noqa: E402
import make_manual  # noqa: E402


def plain(page):
    return page.replace("\\-", "-").replace("\\e", "\\").replace("\\fB", "").replace("\\fR", "").replace("\\&", "")


@pytest.fixture(params=HEADERS, ids=lambda header: header.stem)
def header(request):
    return request.param


def test_every_function_is_on_the_page_of_its_header(header):
    page = plain(make_manual.page_of(header, "1.0"))
    names = page.split(".SH NAME\n")[1].split("\n.SH ")[0]
    declarations = page.split(".SH DECLARATIONS\n")[1]
    functions = check_library.functions_of(header)
    assert functions
    for function in functions:
        assert re.search(rf"\b{function}\b", names.split(" - ")[0]), function
        assert re.search(rf"\b{function}\(", declarations), function


def test_every_word_of_a_comment_is_on_the_page(header):
    text = header.read_text(encoding="utf-8")
    said = make_manual.COMMENT.findall(text)[1:]
    words = re.findall(r"\w+", " ".join(said))
    shown = set(re.findall(r"\w+", plain(make_manual.page_of(header, "1.0"))))
    assert len(words) > 20
    assert set(words) - shown == set()


def test_braces_are_closed(header):
    declarations = make_manual.page_of(header, "1.0").split(".SH DECLARATIONS\n")[1]
    assert declarations.count("{") == declarations.count("}")
    assert declarations.count(".nf") == declarations.count(".fi")
    assert declarations.count(".RS 4") == declarations.count(".RE")


def test_the_page_is_good_roff(header, scratch):
    if shutil.which("groff") is None:
        pytest.skip("groff is missing (Debian: apt install groff-base)")
    end = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", "-Kutf8"], input=make_manual.page_of(header, "1.0"),
                         capture_output=True, text=True, check=False)  # fmt: skip
    assert (end.returncode, end.stderr) == (0, "")
