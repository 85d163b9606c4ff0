#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes a C source that holds the bytes of a file: NAME[] and NAME_length, which HEADER declares.

    tools/embed_text.py FILE HEADER NAME OUTPUT
"""

import pathlib
import sys


def main():
    file, header, name, output = sys.argv[1:]
    content = pathlib.Path(file).read_bytes()
    lines = [", ".join(str(byte) for byte in content[at:at + 20]) for at in range(0, len(content), 20)]
    pathlib.Path(output).write_text(
        f'#include "{header}"\n\nconst uint8_t {name}[] = {{\n'
        + "".join(f"    {line},\n" for line in lines)
        + f"}};\nconst size_t {name}_length = sizeof {name};\n",
        encoding="ascii",
    )


if __name__ == "__main__":
    main()
