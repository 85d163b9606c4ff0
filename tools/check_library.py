#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fails when libmuster is not what its headers say.

    tools/check_library.py --include DIRECTORY --map FILE --shared FILE --archive FILE HEADER...
        [--compiler COMMAND] [--abi FILE | --write-abi FILE]
        [--bad-input-test FILE]... [--client-header FILE]...

The functions of the headers, the names of the version script, and what can be seen from outside in the shared
library and in the archive are the same. Each header includes only others of muster and two of the C library,
and can be compiled alone, as C17 and (where there is a C++ compiler) as C++11. The shared library needs only
the libraries named here.

The tests of bad input (--bad-input-test) try each mistake that can be made with a function of these headers, and with those of
the small libraries (--client-header).

With --abi the binary interface is compared with that of FILE, by abidiff (Debian: abigail-tools). Whoever
changes it on purpose writes the file anew, with --write-abi instead.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

import check_bad_input
import make_bad_input

ALLOWED_HEADERS = {"stddef.h", "stdint.h"}
ALLOWED_LIBRARIES = re.compile(r"lib(c|m|uv|jansson|protobuf-c|pthread|dl|rt|gcc_s)\.so\.|ld-linux.*\.so\.|linux-vdso")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
DIRECTIVE = re.compile(r"^\s*#(?:.*\\\n)*.*$", re.MULTILINE)
FUNCTION = re.compile(r"\b(muster_\w+)\(")


def functions_of(header):
    text = DIRECTIVE.sub("", COMMENT.sub("", header.read_text(encoding="utf-8")))
    return set(FUNCTION.findall(text))


def names_in_map(path):
    return set(re.findall(r"^\s*(muster_\w+);", COMMENT.sub("", path.read_text(encoding="utf-8")), re.MULTILINE))


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols_of(path, *options):
    """{name: version or ""} of what can be seen from outside."""
    found = {}
    for line in output_of("nm", "--format=posix", "--defined-only", *options, str(path)).splitlines():
        words = line.split()
        if len(words) >= 2 and not line.endswith(":") and words[1] != "A":
            name, _, version = words[0].partition("@")
            found[name] = version.lstrip("@")
    return found


def differences(what, found, expected):
    for name in sorted(set(found) - set(expected)):
        yield f"{what}: {name} is in no header"
    for name in sorted(set(expected) - set(found)):
        yield f"{what}: {name} is missing"


def complaints_about_includes(header):
    for included in INCLUDE.findall(header.read_text(encoding="utf-8")):
        if not included.startswith("muster/") and included not in ALLOWED_HEADERS:
            yield f"{header.name}: a program is not to need <{included}>"


def complaints_of_compiler(command, language, header, include):
    end = subprocess.run(
        [*command, f"-x{language[0]}", f"-std={language[1]}", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
         "-fsyntax-only", f"-I{include}", "-"],
        input=f"#include <muster/{header.name}>\nint main(void);\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    if end.returncode != 0:
        yield f"{header.name}: as {language[1]}: {end.stderr.strip()}"


def complaints_about_libraries(shared):
    for line in output_of("readelf", "--dynamic", "--wide", str(shared)).splitlines():
        needed = re.search(r"\(NEEDED\).*\[(.*)\]", line)
        # The runtime of a sanitizer is no part of what ships.
        if needed and not ALLOWED_LIBRARIES.match(needed[1]) and "san" not in needed[1]:
            yield f"{shared.name}: needs {needed[1]}"
        soname = re.search(r"\(SONAME\).*\[(.*)\]", line)
        if soname and soname[1] != "libmuster.so.0":
            yield f"{shared.name}: is called {soname[1]}"


# Not named by their headers' directory when they are compared: abidiff would take every type of FILE for a private one.
ABIDW = ["abidw", "--drop-private-types", "--exported-interfaces-only", "--no-corpus-path", "--no-comp-dir-path",
         "--no-show-locs", "--no-elf-needed", "--type-id-style", "hash"]


def complaints_of_abidiff(abi, shared):
    if shutil.which("abidiff") is None:
        reason = "abidiff is missing, the binary interface is not compared (Debian: abigail-tools)"
        if os.environ.get("CI") == "true":
            yield f"{reason} (not skipped: CI=true)"
        print(f"library: {reason}")
        return
    end = subprocess.run(["abidiff", "--no-added-syms", str(abi), str(shared)], capture_output=True, text=True, check=False)
    if end.returncode != 0:
        yield (f"{shared.name}: not the binary interface of {abi.name} (on purpose? then --write-abi {abi}):\n"
               f"{end.stdout}{end.stderr}")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("include", "map", "shared", "archive"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--abi", type=pathlib.Path)
    parser.add_argument("--write-abi", type=pathlib.Path)
    for name in ("bad-input-test", "client-header"):
        parser.add_argument(f"--{name}", type=pathlib.Path, action="append", default=[])
    parser.add_argument("headers", type=pathlib.Path, nargs="+")
    options = parser.parse_args()

    functions = set().union(*(functions_of(header) for header in options.headers))
    exported = symbols_of(options.shared, "--dynamic")
    complaints = list(differences("the version script", names_in_map(options.map), functions))
    complaints += differences("the shared library", exported, functions)
    complaints += differences("the archive", symbols_of(options.archive, "--extern-only"), functions)
    complaints += [f"{name} has no version" for name, version in exported.items() if not version]
    complaints += complaints_about_libraries(options.shared)
    languages = [(options.compiler.split(), ("c", "c17"))]
    if shutil.which("c++"):
        languages.append((["c++"], ("c++", "c++11")))
    for header in options.headers:
        complaints += complaints_about_includes(header)
        for command, language in languages:
            complaints += complaints_of_compiler(command, language, header, options.include)
    if options.bad_input_test:
        headers = [*options.headers, *options.client_header]
        tests = {test.name: make_bad_input.text_of_test(test, headers) for test in options.bad_input_test}
        said, rows = check_bad_input.complaints(headers, tests)
        complaints += said
        print(f"library: {rows} rows of bad input")
    if options.abi:
        complaints += complaints_of_abidiff(options.abi, options.shared)
    if options.write_abi:
        output_of(*ABIDW, "--headers-dir", options.include / "muster", "--out-file", options.write_abi, options.shared)
    for complaint in complaints:
        print(complaint)
    print(f"library: {len(functions)} functions in {len(options.headers)} headers, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
