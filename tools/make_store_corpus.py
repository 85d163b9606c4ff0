#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the seed corpora of the store's fuzz harnesses from the conversations in
tests/wire/store_vectors.h, and a few hand-made sequences for the table."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VECTOR = re.compile(
    r'\{"(?P<name>\w+)",\s*(?P<request>(?:"[0-9a-f ]*"\s*)+),.*?'
    r'(?P<reply>(?:"[0-9a-f ]*"\s*)+),\s*\{\.kind',
    re.DOTALL,
)
HANDSHAKE = bytes.fromhex("00cef7853c")
MULTI_GET = 10

# A step of the table harness: choice, operation, client + 4 * count, keys, value, number.
SET, COMPARE_SET, ADD, CHECK, WAIT = 1, 2, 4, 5, 6
PUSH, POP, BARRIER, CANCEL, APPEND, MULTI_SET = 14, 15, 18, 12, 9, 11


def step(operation, client, keys, value=1, number=1, is_list=False):
    count = len(keys) if is_list else 0
    return bytes([255, operation, client + 4 * count, *keys, value, number])


TABLE = {
    "waits": step(WAIT, 0, [0, 1, 0], is_list=True) + step(WAIT, 1, [1], is_list=True)
    + step(SET, 2, [1]) + step(ADD, 2, [0]),
    "barrier": step(BARRIER, 0, [0], number=2) + step(WAIT, 2, [1], is_list=True)
    + step(BARRIER, 1, [0], number=2) + step(BARRIER, 3, [0], number=3) + step(CANCEL, 3, [0]),
    "queue": step(WAIT, 0, [2, 2], is_list=True) + step(WAIT, 1, [2], is_list=True)
    + step(PUSH, 2, [2]) + step(PUSH, 2, [2]) + step(POP, 0, [2]) + step(POP, 1, [2]),
    "compare_set": step(WAIT, 1, [3], is_list=True) + step(COMPARE_SET, 0, [3], value=6)
    + step(COMPARE_SET, 0, [3], value=1) + step(COMPARE_SET, 0, [3], value=9),
    "counters": step(SET, 0, [0], value=4) + step(ADD, 0, [0]) + step(SET, 0, [0], value=3)
    + step(ADD, 0, [0]) + step(SET, 0, [0], value=5) + step(ADD, 0, [0]),
    "renew": step(WAIT, 0, [0, 2], is_list=True) + step(WAIT, 1, [3], is_list=True)
    + step(SET, 2, [2]) + bytes([9]) + step(MULTI_SET, 2, [3, 4], is_list=True) + bytes([0, 11]),
    "full": b"".join(step(APPEND, 0, [k % 5], value=4) for k in range(200))
    + step(MULTI_SET, 0, [0, 1, 2, 3], value=4, is_list=True),
}


def read_vectors():
    text = (ROOT / "tests/wire/store_vectors.h").read_text()
    for match in VECTOR.finditer(text):
        yield match["name"], *(
            bytes.fromhex("".join(re.findall(r'"([0-9a-f ]*)"', match[part])))
            for part in ("request", "reply")
        )


def write(harness, name, data):
    directory = ROOT / "fuzz/corpus" / harness
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(data)


def main():
    vectors = list(read_vectors())
    if len(vectors) < 25:
        sys.exit("tests/wire/store_vectors.h no longer looks as expected")
    for number, (name, request, reply) in enumerate(vectors):
        write("store_decoder", name, bytes([number]) + HANDSHAKE + request)
        count = request[1] if request[0] == MULTI_GET else 0
        write("store_reply", name, bytes([request[0], count]) + reply)
    conversation = HANDSHAKE + b"".join(request for _, request, _ in vectors)
    write("store_decoder", "conversation", bytes([7]) + conversation)
    for name, data in TABLE.items():
        write("store_table", name, data)


if __name__ == "__main__":
    main()
