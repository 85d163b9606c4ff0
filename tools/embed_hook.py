#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the C source that holds the files of the hook of standby workers, as src/host/standby/hook_directory.h declares.

    tools/embed_hook.py DIRECTORY OUTPUT NAME...        names of files, as they are below the directory
"""

import pathlib
import sys


def main():
    directory, output, *names = sys.argv[1:]
    arrays, entries, directories = [], [], set()
    for at, name in enumerate(names):
        for parent in reversed(list(pathlib.PurePath(name).parents)[:-1]):
            if parent not in directories:
                directories.add(parent)
                entries.append(f'    {{"{parent}", NULL, 0}},')
        content = pathlib.Path(directory, name).read_bytes()
        lines = (", ".join(map(str, content[at:at + 20])) for at in range(0, len(content), 20))
        arrays.append(f"static const uint8_t text_{at}[] = {{\n" + "".join(f"    {line},\n" for line in lines) + "};\n")
        entries.append(f'    {{"{name}", text_{at}, sizeof text_{at}}},')
    pathlib.Path(output).write_text(
        '#include "host/standby/hook_directory.h"\n\n' + "\n".join(arrays)
        + "\nconst struct hook_file hook_files[] = {\n" + "\n".join(entries)
        + "\n};\nconst size_t hook_file_count = sizeof hook_files / sizeof *hook_files;\n",
        encoding="ascii",
    )


if __name__ == "__main__":
    main()
