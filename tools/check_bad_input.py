# SPDX-License-Identifier: BSD-3-Clause
"""Which mistakes can be made with the functions of libmuster's headers, and which of them the tests make.

For tools/check_library.py. The rows of the tests are described in tests/library/bad_input.h. Those of a table beside a test
(bad_*.rows) are made by tools/make_bad_input.py.

    const char *             IS_NULL, EMPTY, TOO_LONG, NOT_UTF8
    const char *const *      IS_NULL, ITEM_TOO_LONG; ITEM_NULL where there is a count, else EMPTY, TOO_MANY
    const struct X *         IS_NULL; where there is a count also ITEM_TOO_LONG and ITEM_NULL
    struct X                 IS_NULL and TOO_LONG, of what is in it
    other pointers           IS_NULL
    a number, an enum        BELOW, ABOVE: what is below and above all that makes sense
    is_..., has_...          NO_FLAG: neither 0 nor 1
    double                   the same, and NOT_A_NUMBER
    char x[N]                UNENDED: without its zero byte
    a struct's own size      BELOW, ABOVE, NEWER: it has a field that the library does not know

The same holds for the members of each struct that a program fills in. An object, which is a struct that the headers only
name, has a row IN_EACH for each function that takes it. Nothing is asked of `failure`, which may be NULL everywhere, and of
the `context` of callbacks, which the library does not look at.
"""

import re

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:.*\\\n)*.*$", re.MULTILINE)
STRUCT = re.compile(r"^struct (muster_\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^struct (muster_\w+);", re.MULTILINE)
DECLARATION = re.compile(r"\b(muster_\w+)\(")
CALLBACK = re.compile(r"\(\*(\w+)\)\(")
PLAIN = re.compile(r"^(.*?)(\w+)(\[.*\])?$", re.DOTALL)
ROW = re.compile(r"\b(REFUSED|REFUSED_ERRNO|ALLOWED|IN_EACH|NEVER_HAPPENS)\(")
FLAG = re.compile(r"(is|has)_|(blocks|exists)$")
SITUATIONS = ("IS_NULL", "FORKED", "IN_CALLBACK", "BEING_FREED", "TOO_EARLY", "TOO_LATE")
# Structs that are partly private: what a program may set.
OPEN_MEMBERS = {"muster_timer": {"signal", "patience"}}


def declarations_of(header):
    return DIRECTIVE.sub("", COMMENT.sub("", header.read_text(encoding="utf-8"))).replace('extern "C" {', "")


def split(text, separator=","):
    """The parts of a text that stand outside of all brackets and strings."""
    parts, depth, quoted, start, position = [], 0, False, 0, 0
    while position < len(text):
        character = text[position]
        if quoted and character == "\\":
            position += 1
        elif character == '"':
            quoted = not quoted
        elif not quoted and character in "([{":
            depth += 1
        elif not quoted and character in ")]}":
            depth -= 1
        elif not quoted and depth == 0 and character == separator:
            parts.append(text[start:position].strip())
            start = position + 1
        position += 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def inside(text, start):
    """What stands in the brackets that have been opened before `start`."""
    depth, quoted, position = 1, False, start
    while depth:
        character = text[position]
        if quoted and character == "\\":
            position += 1
        elif character == '"':
            quoted = not quoted
        elif not quoted:
            depth += (character == "(") - (character == ")")
        position += 1
    return text[start:position - 1]


def named(declaration):
    """(name, type) of a parameter or a member; of a callback the type is its parameters."""
    callback = CALLBACK.search(declaration)
    if callback:
        return callback[1], "callback " + inside(declaration, callback.end())
    plain = PLAIN.match(declaration)
    return plain[2], " ".join((plain[1] + (plain[3] or "")).split())


class Headers:
    """functions: {name: [(parameter, type)]}; structs: {name: [(member, type)]}; objects: names."""

    def __init__(self, paths):
        texts = [declarations_of(path) for path in paths]
        self.structs = {}
        for text in texts:
            for name, body in STRUCT.findall(text):
                self.structs[name] = [named(part) for part in split(body, ";")]
        self.objects = {name for text in texts for name in NAMED.findall(text)} - set(self.structs)
        self.functions = {}
        for text in texts:
            rest = STRUCT.sub("", text)
            for found in DECLARATION.finditer(rest):
                parameters = split(inside(rest, found.end()))
                self.functions[found[1]] = [named(part) for part in parameters if part != "void"]

    def given_structs(self):
        """What a program fills in: a parameter, a member of such a struct, or what a callback is to fill in."""
        given = set()
        waiting = [pair for parameters in self.functions.values() for pair in parameters]
        while waiting:
            name, kind = waiting.pop()
            if kind.startswith("callback "):
                waiting += [(part, "const " + filled) for part, filled in map(named, split(kind[len("callback "):]))
                            if part.startswith("out_") or part == "failure"]  # fmt: skip
                continue
            found = re.match(r"(const )?struct (muster_\w+)( \*)?$", kind)
            is_given = found and found[2] in self.structs and (found[1] or not found[3] or found[2] in OPEN_MEMBERS)
            if is_given and found[2] not in given and found[2] != "muster_failure":
                given.add(found[2])
                waiting += self.structs[found[2]]
        return given

    def kinds_of(self, name, kind, names):
        """Which mistakes can be made with a parameter or member, beside those of the given names."""
        if name == "failure" or kind == "void *":
            return ()
        if kind.startswith("callback "):
            return ("IS_NULL",)
        has_count = "count" in names
        if kind == "const char *":
            return ("IS_NULL", "EMPTY", "TOO_LONG", "NOT_UTF8")
        if kind == "const char *const *":
            return ("IS_NULL", "ITEM_TOO_LONG", *(("ITEM_NULL",) if has_count else ("EMPTY", "TOO_MANY")))
        if "[" in kind:
            return ("UNENDED",)
        if "*" in kind:
            is_list = has_count and kind.startswith("const struct")
            return ("IS_NULL", "ITEM_NULL", "ITEM_TOO_LONG") if is_list else ("IS_NULL",)
        if kind.startswith("struct "):
            return ("IS_NULL", "TOO_LONG")
        if kind == "double":
            return ("BELOW", "ABOVE", "NOT_A_NUMBER")
        if name == "size" and "size_t" in kind and names[0] == "size":
            return ("BELOW", "ABOVE", "NEWER")
        return ("NO_FLAG",) if FLAG.match(name) else ("BELOW", "ABOVE")

    def object_of(self, function):
        """The object that a function takes, or None."""
        parameters = self.functions[function]
        found = parameters and re.match(r"(?:const )?struct (muster_\w+) \*$", parameters[0][1])
        return found[1] if found and found[1] in self.objects else None

    def rows(self):
        """{(function or struct, parameter or member, kind)}: all that there have to be."""
        wanted = set()
        lists = {**self.functions, **{name: self.structs[name] for name in self.given_structs()}}
        for owner, pairs in lists.items():
            names = [name for name, _ in pairs]
            if owner in self.functions and self.object_of(owner):
                pairs = pairs[1:]
            for name, kind in pairs:
                if name in OPEN_MEMBERS.get(owner, {name}):
                    wanted |= {(owner, name, mistake) for mistake in self.kinds_of(name, kind, names)}
        return wanted


def rows_of(text):
    """[(macro, arguments)] of the text of a test."""
    text = COMMENT.sub("", text)
    text = re.sub(r"^[ \t]*#[ \t]*define(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)
    return [(found[1], split(inside(text, found.end()))) for found in ROW.finditer(text)]


def complaints_about_object(name, rows, reasons):
    """A column of a table says NEVER in all its rows, with a reason, or in none."""
    for column, situation in enumerate(SITUATIONS):
        never = {function for function, results in rows.items() if results[column] == "NEVER"}
        if never and never != set(rows):
            yield f"{name}: {situation} is NEVER of some functions, but not of {', '.join(sorted(set(rows) - never))}"
        if bool(never) != ((name, situation) in reasons):
            yield f"{name}: {situation}: the rows and NEVER_HAPPENS differ"


def complaints(header_paths, tests):
    """And how many rows there are in the tests: {name of a file: its text}."""
    headers = Headers(header_paths)
    wanted, found, tables, reasons, said = headers.rows(), set(), {}, set(), []
    for test, text in tests.items():
        for macro, words in rows_of(text):
            where = f"{test}: {' '.join(words[:3])}"
            if macro == "IN_EACH":
                tables[words[0]] = words[2:]
            elif macro == "NEVER_HAPPENS":
                reasons.add((words[0], words[1]))
            else:
                found.add(tuple(words[:3]))
            if macro in ("ALLOWED", "NEVER_HAPPENS") and not re.match(r'"[^"]{8,}', words[3 if macro == "ALLOWED" else 2]):
                said.append(f"{where}: there is no reason")
            called = words[0] if words[0] in headers.functions else words[1]
            if macro != "NEVER_HAPPENS" and not re.search(rf"\b{called}\b", ", ".join(words[1 if macro == "IN_EACH" else 3:])):
                said.append(f"{where}: {called} is not in what is called")
    said += [f"bad input: {' '.join(row)} is not tried" for row in sorted(wanted - found)]
    said += [f"bad input: {owner} has no {subject}" for owner, subject, _ in sorted(found)
             if subject not in dict(headers.functions.get(owner) or headers.structs.get(owner) or {})]  # fmt: skip
    for name in sorted(headers.objects):
        functions = {function for function in headers.functions if headers.object_of(function) == name}
        said += [f"bad input: {function} is not tried in each situation" for function in sorted(functions - set(tables))]
        said += complaints_about_object(name, {function: tables[function] for function in functions & set(tables)}, reasons)
    return said, len(found) + len(SITUATIONS) * len(tables)

