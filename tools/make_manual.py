#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the man page of a public header, from the header itself, so that the page says what the header says.

    tools/make_manual.py HEADER VERSION > PAGE.3

The first comment of the header is the description. What follows is shown in its order: each declaration with the comment
in front of it, and a comment that stands alone as a heading or a paragraph. All functions are in the page's names."""

import pathlib
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
# Guards, and what is there for C++ and for the linker.
MACHINERY = re.compile(
    r"^#ifdef __cplusplus\n(?:.*\n)*?#endif\n|^#(?:include|pragma)\b.*\n|^#ifndef MUSTER_\w+_H\n#define MUSTER_\w+_H\n|^#endif\n",
    re.MULTILINE)
FUNCTION = re.compile(r"\b(muster_\w+)\(")
MACRO = re.compile(r"^#define (MUSTER_\w+[A-Z])\(", re.MULTILINE)
HEADING_LENGTH = 50


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.MULTILINE)


def prose_of(comment):
    """The lines of a comment without its stars."""
    lines = comment[2:-2].strip().split("\n")
    return [lines[0].strip(), *(re.sub(r"^\s*\* ?", "", line).rstrip() for line in lines[1:])]


def paragraphs(lines):
    """Roff of prose in which indented lines are code."""
    is_code = is_after_empty_line = False
    for line in lines:
        if not line:
            is_after_empty_line = True
            continue
        if line.startswith("    ") != is_code:
            is_code = not is_code
            yield ".PP\n.RS 4\n.nf" if is_code else ".fi\n.RE\n.PP"
        elif is_after_empty_line:
            yield ".sp" if is_code else ".PP"
        is_after_empty_line = False
        yield escape(line[4:] if is_code else line)
    if is_code:
        yield ".fi\n.RE"


def code(text):
    """Roff of declarations, without the backslashes of long macros."""
    lines = [re.sub(r"\s+\\$", " \\\\", line) for line in text.strip("\n").split("\n")]
    return [".PP", ".nf", *("\\fB" + escape(line) + "\\fR" if line else ".sp" for line in lines), ".fi"]


def blocks(text):
    """[(comment or None, declarations)] in their order. Comments inside a struct or behind code belong to the code."""
    for block in re.split(r"\n\s*\n|\n(?=/\*)", text):
        block = block.strip("\n")
        comment = COMMENT.match(block)
        if comment:
            yield comment[0], block[comment.end():].strip("\n")
        elif block.strip():
            yield None, block


def joined(parts):
    """Blocks, with those of one struct together, which may have empty lines."""
    result = []
    for comment, declarations in parts:
        if result and result[-1][1].count("{") > result[-1][1].count("}"):
            inner = "\n".join(part for part in (comment, declarations) if part)
            result[-1] = (result[-1][0], result[-1][1] + "\n\n" + inner)
        else:
            result.append((comment, declarations))
    return result


def page_of(header, version):
    text = header.read_text(encoding="utf-8")
    comments = COMMENT.finditer(text)
    next(comments)  # the license
    first = next(comments)
    rest = MACHINERY.sub("", text[first.end():])
    lines = prose_of(first[0])
    names = sorted(set(FUNCTION.findall(COMMENT.sub("", rest)))) + sorted(
        name for name in set(MACRO.findall(rest)) if "JOIN" not in name and "TEXT" not in name)
    sentence = re.split(r"[.:] |[.:]$", " ".join(lines), maxsplit=1)[0]
    title = f"muster_{header.stem}"
    summary = sentence[0].lower() + sentence[1:]
    output = [f'.TH {title} 3 "" "Muster {version}" "libmuster"', ".SH NAME",
              escape(", ".join([title, *(name for name in names if name != title)])) + " \\- " + escape(summary),
              ".SH SYNOPSIS", ".nf", f"\\fB#include <muster/{header.name}>\\fR", ".fi", ".SH DESCRIPTION",
              *paragraphs(lines), ".SH DECLARATIONS"]  # fmt: skip
    for comment, declarations in joined(blocks(rest)):
        prose = prose_of(comment) if comment else []
        if declarations:
            output += [*code(declarations), ".RS 4", *paragraphs(prose), ".RE"] if prose else code(declarations)
        elif len(prose) == 1 and len(prose[0]) <= HEADING_LENGTH:
            output.append(".SS " + escape(prose[0].rstrip(".")))
        else:
            output += [".PP", *paragraphs(prose)]
    others = sorted(path.stem for path in header.parent.glob("*.h") if path.stem != header.stem)
    output += [".SH SEE ALSO", escape(", ".join(["muster(1)", *(f"muster_{other}(3)" for other in others)]))]
    return "\n".join(output) + "\n"


if __name__ == "__main__":
    sys.stdout.buffer.write(page_of(pathlib.Path(sys.argv[1]), sys.argv[2]).encode("utf-8"))
