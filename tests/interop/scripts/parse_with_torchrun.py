# SPDX-License-Identifier: BSD-3-Clause
"""Reads a JSON list of [arguments, variables] from stdin, says for each what torchrun makes of it.

Answers {"outcome": "accepted" | "usage" | "error", "command": [...], "workers": N}, one per line."""

import contextlib
import io
import json
import os
import string
import sys

from torch.distributed import run as torchrun


def outcome_of(arguments):
    try:
        config, program, program_arguments = torchrun.config_from_args(torchrun.parse_args(arguments))
        if config.nproc_per_node < 1 or config.max_restarts < 0 or config.monitor_interval <= 0:
            return {"outcome": "error"}
    except SystemExit as exit_request:
        return {"outcome": {0: "accepted", 2: "usage"}.get(exit_request.code, "error")}
    except Exception:
        return {"outcome": "error"}
    words = [string.Template(str(word)).safe_substitute(local_rank="0") for word in program_arguments]
    command = [program, *words] if callable(program) is False else ["run_path", *words]
    return {"outcome": "accepted", "command": command, "workers": config.nproc_per_node}


def main():
    for arguments, variables in json.load(sys.stdin):
        before = dict(os.environ)
        os.environ.update(variables)
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            answer = outcome_of(arguments)
        os.environ.clear()
        os.environ.update(before)
        print(json.dumps(answer), flush=True)


main()
