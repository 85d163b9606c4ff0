# SPDX-License-Identifier: BSD-3-Clause
"""Processes with arguments and variables of their own each: start_processes, PContext and RunProcsResult.    python3 two_processes.py"""

import os

from muster.processes import start_processes


def greet(name):
    return f"{os.environ['GREETING']}, {name}"


if __name__ == "__main__":
    with start_processes("greeters", greet, {0: ("Ada",), 1: ("Alan",)}, {0: {"GREETING": "hello"}, 1: {"GREETING": "hi"}}) as context:
        print(len(context.pids()), "processes")
        print(context.wait().return_values)
