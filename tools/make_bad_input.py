#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes tests of bad input from libmuster's headers and a table (tests/library/bad_*.rows).

    tools/make_bad_input.py TABLE OUTPUT HEADER...

tools/check_bad_input.py says which mistakes can be made with each parameter and member; the table says what is given then, and
what comes of it. What the table does not say is left out, and missed by that check. Lines of a table:

    % BEGIN END                     functions around each test
    % it_is_well({call})            whether a call is well, where that is more than MUSTER_OK
    * NAME ...                      rows of each parameter or member of such a name (`out_*`), where its owner says nothing
        KIND value -> LIMIT             refused with MUSTER_ERROR_LIMIT
        KIND value ok: reason           allowed, for that reason
    muster_f(a, b)                  a call of a function that is well, without `failure`
    muster_s = CALL({name}, {value})    what is done with a member of a struct; for the lines that follow
        name KIND value -> LIMIT        the same of one parameter or member
        name KIND value; other value -> LIMIT   with another argument, too
        name KIND elsewhere             its row is in the file's own tests
"""

import fnmatch
import pathlib
import re
import sys

import check_bad_input

KINDS = {"IS_NULL", "EMPTY", "TOO_LONG", "NOT_UTF8", "ITEM_NULL", "ITEM_TOO_LONG", "TOO_MANY", "UNENDED", "BELOW", "ABOVE",
         "NOT_A_NUMBER", "NEWER", "NO_FLAG"}  # fmt: skip
ROW = re.compile(r"(\w+) (.+?)(?: -> (\w+)| ok: (.+))$")


class Table:
    """owners: {name: (good arguments or None, [(subject, kind, values, code, reason, way)])}, in the table's order."""

    def __init__(self, path, headers):
        self.headers, self.around, self.well = headers, ("NULL", "NULL"), "({call}) == MUSTER_OK"
        self.named, self.owners = [], {}
        rows = owner = way = None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = line.split()
            if not words or words[0] == "#":
                continue
            if line.startswith("%"):
                if "{call}" in line:
                    self.well = line[1:].strip()
                else:
                    self.around = words[1:]
            elif line.startswith("*"):
                owner, rows = None, []
                self.named.append((words[1:], rows))
            elif not line.startswith(" "):
                call = re.match(r"(muster_\w+)(?:\((.*)\)| = (.*))$", line)
                if not call or not (call[1] in headers.functions or call[1] in headers.structs):
                    sys.exit(f"{path}:{number}: neither a function nor a struct of the headers: {line}")
                owner, way = call[1], call[3]
                arguments = check_bad_input.split(call[2]) if call[2] is not None else None
                self.owners.setdefault(owner, (arguments, [], way))
                rows = self.owners[owner][1]
            elif owner is None:
                found = ROW.match(line.strip())
                if not found:
                    sys.exit(f"{path}:{number}: no row: {line}")
                rows.append((None, *self.row(found), None))
            else:
                subject, rest = line.strip().split(" ", 1)
                if rest.endswith(" elsewhere"):
                    rows.append((subject, rest.split()[0], None, None, None, way))
                    continue
                found = ROW.match(rest)
                if not found or subject not in dict(headers.functions.get(owner) or headers.structs[owner]):
                    sys.exit(f"{path}:{number}: no row of {owner}: {line}")
                rows.append((subject, *self.row(found), way))

    def row(self, found):
        return found[1], [value.strip() for value in found[2].split(";")], found[3], found[4]

    def call(self, owner, subject, values, way):
        """What is called with the first of the values for the subject, and `name value` for others."""
        arguments = self.owners[owner][0]
        if arguments is None:
            return way.replace("{name}", subject).replace("{value}", values[0])
        names = [name for name, _ in self.headers.functions[owner]]
        given = dict(zip(names, arguments + ["failure"]))
        given[subject] = values[0]
        for other in values[1:]:
            name, value = other.split(" ", 1)
            given[name] = value
        return f"{owner}({', '.join(given[name] for name in names)})"

    def rows_of(self, owner, subject, kinds):
        """The owner's own rows of the subject; of the kinds that they lack those of its name."""
        own = [row for row in self.owners[owner][1] if row[0] == subject]
        have = {row[1] for row in own}
        for patterns, rows in self.named:
            if any(fnmatch.fnmatch(subject, pattern) or f"{owner}.{subject}" == pattern for pattern in patterns):
                more = [row for row in rows if row[1] not in have and (row[1] in kinds or row[1] not in KINDS)]
                own += [(subject, *row[1:5], self.owners[owner][2]) for row in more]
                have |= {row[1] for row in more}
        return [row for row in own if row[2] is not None]

    def text_of(self, owner):
        pairs = self.headers.functions.get(owner) or self.headers.structs[owner]
        names = [name for name, _ in pairs]
        skipped = 1 if owner in self.headers.functions and self.headers.object_of(owner) else 0
        lines = []
        for name, kind in pairs[skipped:]:
            for subject, mistake, values, code, reason, way in self.rows_of(owner, name, self.headers.kinds_of(name, kind, names)):
                call = self.call(owner, subject, values, way)
                if code:
                    lines.append(f"    REFUSED({owner}, {subject}, {mistake}, MUSTER_ERROR_{code}, {call});")
                else:
                    lines.append(f'    ALLOWED({owner}, {subject}, {mistake}, "{reason}", {self.well.replace("{call}", call)});')
        test = owner.removeprefix("muster_")
        return "\n".join([f"TEST_WITH({test}, {', '.join(self.around)}) {{", *lines, "}", ""])

    def text(self):
        return "\n".join(self.text_of(owner) for owner in self.owners)


def text_of(table, header_paths):
    return Table(table, check_bad_input.Headers(header_paths)).text()


def text_of_test(test, header_paths):
    """With the tests that are made from its table, where it has one."""
    table = test.with_name(test.name.replace("_test.c", ".rows"))
    return test.read_text(encoding="utf-8") + (text_of(table, header_paths) if table.exists() else "")


def main():
    table, output, *headers = map(pathlib.Path, sys.argv[1:])
    output.write_text(f"/* Made from {table.name} by tools/make_bad_input.py. */\n" + text_of(table, headers), encoding="utf-8")


if __name__ == "__main__":
    main()
