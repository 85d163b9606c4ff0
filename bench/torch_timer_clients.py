#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own file timer clients, for the bench: COUNT processes acquire and release through the FIFO for
some SECONDS; prints how many requests went through.

    torch_timer_clients.py FILE COUNT SECONDS

A client whose server does not keep up gets an exception and its request is lost; those are not counted."""

import os
import struct
import sys
import time

from torch.distributed.elastic.timer import FileTimerClient


def send_requests(path, seconds):
    client, done, end = FileTimerClient(path), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(10):
            try:
                client.acquire("a step of the training", time.time() + 100000)
                done += 1
                client.release("a step of the training")
                done += 1
            except OSError:
                time.sleep(0.001)
    return done


def main():
    path, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    reports, report = os.pipe()
    for _ in range(count):
        if os.fork() == 0:
            os.write(report, struct.pack("q", send_requests(path, seconds)))
            os._exit(0)
    print(sum(struct.unpack("q", os.read(reports, 8))[0] for _ in range(count)))


if __name__ == "__main__":
    main()
