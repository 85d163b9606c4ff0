#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the C source that holds the page of `muster report` and `muster dashboard`, as src/main/telling/page_text.h declares.

    tools/embed_page.py HTML CSS JS OUTPUT

Style and script are put into the page, and named in its policy by their hashes.
"""

import base64
import hashlib
import pathlib
import sys

LIMIT = 80 * 1024
DATA = "@data@"


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def declare(name, text):
    content = text.encode() + b"\0"
    lines = (", ".join(f"'\\x{byte:02x}'" for byte in content[at:at + 20]) for at in range(0, len(content), 20))
    return f"const char {name}[] = {{\n" + "".join(f"    {line},\n" for line in lines) + "};\n"


def main():
    html, css, script = (pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[1:4])
    policy = (f"default-src 'none'; script-src {hash_of(script)}; style-src {hash_of(css)}; connect-src 'self'; img-src data:; "
              "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'")
    page = html.replace("@policy@", policy).replace("@style@", css).replace("@script@", script)
    if len(page.encode()) > LIMIT:
        sys.exit(f"the page has {len(page.encode())} bytes (limit {LIMIT})")
    before, after = page.split(DATA)
    pathlib.Path(sys.argv[4]).write_text(
        '#include "main/telling/page_text.h"\n\n' + declare("page_text_before", before) + declare("page_text_after", after)
        + declare("page_text_policy", policy + "; frame-ancestors 'none'"),
        encoding="ascii",
    )


if __name__ == "__main__":
    main()
