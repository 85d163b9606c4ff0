#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write inputs of the largest size for the fuzz harnesses that read records, too large for the repository.

    tools/make_large_records.py HARNESS DIRECTORY

HARNESS is one of pickle_reader, rendezvous_state and record_reply. Other harnesses get nothing. A reader whose
time grows with more than the size of its input does not get through them within the fuzzer's time limit."""

import base64
import pathlib
import struct
import sys

NODES = 65536  # RENDEZVOUS_NODES_MAXIMUM
CEILING = 48 << 20  # of a pickle, PICKLE_MAXIMUM_BYTES
VALUES = NODES * 32  # of a document
READ_RECORD = b"\x01"  # what record_reply's first byte chooses
MODULE = "torch.distributed.elastic.rendezvous.dynamic_rendezvous"


def text(string):
    data = string.encode()
    return (b"\x8c" + bytes([len(data)]) if len(data) < 256 else b"X" + struct.pack("<I", len(data))) + data


def recall(number):
    return b"j" + struct.pack("<I", number)


def node(number, width):
    """Kept in the memo. The names differ only at their end."""
    address = str(number).rjust(width, "x")
    fields = text("addr") + text(address) + text("pid") + b"K\x01" + text("local_id") + b"K\x00"
    return text(MODULE) + text("_NodeDesc") + b"\x93)\x81}(" + fields + b"ub\x94"


def record(count, width, before=b""):
    """All nodes are participants, and are on both lists, in another order."""
    participants = b"".join(node(number, width) + b"K\x00" for number in range(count))
    others = b"".join(recall((number * 7919 + 1) % count) for number in range(count))
    return (
        b"\x80\x04" + before + text(MODULE) + text("_RendezvousState") + b"\x93)\x81}("
        + text("round") + b"K\x01" + text("complete") + b"\x88" + text("deadline") + b"N" + text("closed") + b"\x89"
        + text("participants") + b"}(" + participants + b"u"
        + text("wait_list") + b"\x8f(" + others + b"\x90"
        + text("redundancy_list") + b"\x8f(" + others + b"\x90"
        + text("last_heartbeats") + b"}ub."
    )  # fmt: skip


def wide_nodes():
    """Each use of the one node looks through 64 attributes."""
    fields = b"".join(text(f"attribute{number}") + b"N" for number in range(61))
    one = node(0, 1).replace(b"}(", b"}(" + fields, 1)
    return record(1, 1).replace(node(0, 1), one).replace(recall(0), recall(0) * 60000)


PICKLES = {
    "largest": lambda: record(NODES, 200),
    "one_too_many": lambda: record(NODES + 1, 8),
    "cut_off": lambda: record(NODES, 200)[:-1],
    "wide_nodes": wide_nodes,
    "many_values": lambda: b"\x80\x04" + b"K\x01\x94" * (VALUES - 1) + b".",
    "too_many_values": lambda: b"\x80\x04" + b"K\x01\x94" * (VALUES + 1) + b".",
    "pushed_and_dropped": lambda: b"\x80\x04" + b"N0" * (VALUES - 1) + b"N.",
    "distant_memo": lambda: b"\x80\x04N" + b"r" + struct.pack("<I", VALUES - 1) + b"r\0\0\0\0" * 1000000 + b".",
    "many_small_puts": lambda: b"\x80\x04]" + b"(Ne" * NODES + b".",
    "too_long": lambda: b"\x80\x04" + b"N0" * (CEILING // 2),
}
PREFIXES = {"pickle_reader": b"", "rendezvous_state": b"", "record_reply": READ_RECORD}


def main():
    harness, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    for name, make in PICKLES.items() if harness in PREFIXES else ():
        content = base64.b64encode(make()) if harness == "record_reply" else make()
        (directory / name).write_bytes(PREFIXES[harness] + content)


if __name__ == "__main__":
    main()
