# SPDX-License-Identifier: BSD-3-Clause
"""torchrun's command line restated with Python's argparse, to compare Muster's parser with.

Also a program: JSON requests on stdin, one answer per line, in the terms of tests/probes/option_probe.c.
The rules of "--" and of abbreviations behind the script are those of Python 3.14; where the tests run
under an older Python they ask a newer one through this program, or use answers it gave before.
"""

import argparse
import contextlib
import io
import json
import os
import sys
import textwrap

MATCHES_MUSTER = sys.version_info >= (3, 14)

WORDS = {"type": str}
NUMBER = {"type": int}

# Destination -> short names, keywords. Both long spellings follow from the destination.
OPTIONS = {
    "nnodes": ([], WORDS | {"default": "1:1"}),
    "nproc_per_node": ([], WORDS | {"default": "1"}),
    "rdzv_backend": ([], WORDS | {"default": "static"}),
    "rdzv_endpoint": ([], WORDS | {"default": ""}),
    "rdzv_id": ([], WORDS | {"default": "none"}),
    "rdzv_conf": ([], WORDS | {"default": ""}),
    "standalone": ([], None),
    "max_restarts": ([], NUMBER | {"default": 0}),
    "monitor_interval": ([], {"type": float, "default": 0.1}),
    "start_method": ([], WORDS | {"default": "spawn", "choices": ["spawn", "fork", "forkserver"]}),
    "event_log_handler": ([], WORDS | {"default": "null"}),
    "role": ([], WORDS | {"default": "default"}),
    "module": (["-m"], None),
    "no_python": ([], None),
    "run_path": ([], None),
    "log_dir": ([], WORDS),
    "redirects": (["-r"], WORDS | {"default": "0"}),
    "tee": (["-t"], WORDS | {"default": "0"}),
    "log_line_prefix_template": ([], WORDS | {"default": ""}),
    "local_ranks_filter": ([], WORDS | {"default": ""}),
    "duplicate_stdout_filters": ([], {"default": []}),
    "duplicate_stderr_filters": ([], {"default": []}),
    "node_rank": ([], NUMBER | {"default": 0}),
    "master_addr": ([], WORDS | {"default": "127.0.0.1"}),
    "master_port": ([], NUMBER),
    "local_addr": ([], WORDS),
    "logs_specs": ([], WORDS),
    "numa_binding": ([], WORDS | {"choices": ["node", "socket", "exclusive", "core-complex"]}),
    "signals_to_handle": ([], WORDS | {"default": "SIGTERM,SIGINT,SIGHUP,SIGQUIT"}),
    "shutdown_timeout": ([], {"type": float}),  # torchrun: whole seconds
    "virtual_local_rank": ([], None),
    "slurm": ([], WORDS | {"default": "auto", "choices": ["auto", "off"]}),  # Muster's own
    "token_file": ([], WORDS),  # Muster's own
    "auth": ([], WORDS | {"choices": ["auto", "token", "munge", "none"]}),  # Muster's own
    "worker_store_from": ([], WORDS | {"choices": ["user", "round", "any"]}),  # Muster's own
    "exit_barrier_timeout": ([], {"type": float}),  # proposed for torchrun
    "on_node_loss": ([], WORDS | {"default": "restart", "choices": ["restart", "wait", "torchrun"]}),  # Muster's own
    "scale_up": ([], WORDS | {"default": "immediate"}),  # Muster's own
    "settling_time": ([], {"type": float, "default": 2.0}),  # Muster's own
    "host_timeout": ([], {"type": float}),  # Muster's own
    "store_memory": ([], {"type": str, "default": ""}),  # Muster's own
    "scratch": ([], {"type": str, "default": ""}),  # Muster's own
    "on_timer_expiry": ([], WORDS | {"default": "restart-worker", "choices": ["restart-worker", "exit-agent"]}),
    "evidence": ([], WORDS | {"default": "basic", "choices": ["off", "basic", "full"]}),  # Muster's own
    "evidence_timeout": ([], {"type": float, "default": 2.0}),  # Muster's own
    "evidence_signal": ([], {"type": str, "default": "50"}),  # Muster's own
    "standby": ([], WORDS | {"default": "auto", "choices": ["off", "auto", "on"]}),  # Muster's own
    "standby_parent": ([], WORDS | {"default": "on", "choices": ["on", "off"]}),  # Muster's own
    "standby_after": ([], {"type": float, "default": 2.5}),  # Muster's own
    "standby_timeout": ([], {"type": float, "default": 30.0}),  # Muster's own
    "standby_rest": ([], {"type": float, "default": 10.0}),  # Muster's own
    "progress": ([], WORDS | {"default": "auto", "choices": ["auto", "off"]}),  # Muster's own
    "chronicle": ([], WORDS | {"default": ""}),  # Muster's own
    "node_check": ([], WORDS | {"default": ""}),  # Muster's own
    "node_check_timeout": ([], {"type": float, "default": 60.0}),  # Muster's own
    "restart_window": ([], {"type": float, "default": 0.0}),  # Muster's own
    "no_progress_restarts": ([], NUMBER | {"default": 0}),  # Muster's own
    "restart_backoff": ([], {"type": float, "default": 0.0}),  # Muster's own
    "exclude_after": ([], NUMBER | {"default": 0}),  # Muster's own
    "metrics_file": ([], WORDS | {"default": ""}),  # Muster's own
    "hang_after": ([], WORDS | {"default": "off"}),  # Muster's own
    "hang_action": ([], WORDS | {"default": "tell", "choices": ["tell", "restart"]}),  # Muster's own
    "exit_on": ([], WORDS | {"default": ""}),  # Muster's own
    "exit_code": ([], WORDS | {"default": "torchrun", "choices": ["torchrun", "worker"]}),  # Muster's own
    "print_completion": ([], WORDS | {"choices": ["bash", "zsh", "tcsh"], "action": "print"}),
    "version": ([], {"action": "version", "version": "muster"}),  # Muster's own
}
ADDITIONS = {
    "slurm", "token_file", "auth", "worker_store_from", "exit_barrier_timeout", "on_node_loss", "scale_up",
    "settling_time", "host_timeout", "store_memory", "scratch", "on_timer_expiry", "evidence", "evidence_timeout",
    "evidence_signal", "standby", "standby_parent", "standby_after", "standby_timeout", "standby_rest", "progress", "chronicle",
    "node_check", "node_check_timeout", "restart_window", "no_progress_restarts", "restart_backoff", "exclude_after", "metrics_file",
    "hang_after", "hang_action", "exit_on",
    "exit_code", "version",
}  # fmt: skip
NOT_FROM_ENVIRONMENT = {"logs_specs", "numa_binding", "print_completion", "version"}


def items_between_commas(text):
    return [item.replace("\0", ",") for item in text.replace(",,", "\0").split(",")]


class PrintAction(argparse.Action):
    def __call__(self, parser, namespace, values, option_string=None):
        parser.exit()


def spellings(destination):
    dashed = "--" + destination.replace("_", "-")
    return [dashed] if "_" not in destination else [dashed, "--" + destination]


class WholeWords(argparse.HelpFormatter):
    """Lines break between words only, as Muster's do."""

    def _split_lines(self, text, width):
        return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)

    def _fill_text(self, text, width, indent):
        return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


class Parser(argparse.ArgumentParser):
    """What abbreviates an option of torchrun's means that one, whatever Muster adds."""

    def _get_option_tuples(self, option_string):
        found = super()._get_option_tuples(option_string)
        return [match for match in found if match[0].dest not in ADDITIONS] or found


def new_parser(**keywords):
    colours = {"color": False} if sys.version_info >= (3, 14) else {}
    return Parser(prog="torchrun", formatter_class=WholeWords, **colours, **keywords)


def torchrun_parser(environment):
    parser = new_parser()
    for destination, (short, keywords) in OPTIONS.items():
        given = None if destination in NOT_FROM_ENVIRONMENT else environment.get("PET_" + destination.upper())
        if keywords is None:
            keywords = {"action": "store_true", "default": given is not None and int(given) != 0}
        else:
            keywords = dict(keywords)
            if destination.startswith("duplicate"):
                keywords["type"] = items_between_commas
            if keywords.get("action") == "print":
                keywords["action"] = PrintAction
            if given is not None:
                keywords["default"] = given
        parser.add_argument(*short, *spellings(destination), dest=destination, **keywords)
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def positionals_parser(arities):
    counts = {"one": None, "optional": "?", "any": "*", "some": "+", "remainder": argparse.REMAINDER}
    parser = new_parser(add_help=False)
    parser.add_argument("-v", action="store_true")
    parser.add_argument("-s", "--size")
    for number, arity in enumerate(arities):
        nargs = counts[arity]
        parser.add_argument(f"p{number}", nargs=nargs, **({"default": []} if arity == "any" else {}))
    return parser


def help_page(table, columns):
    """The help argparse makes of a table that the probe described."""
    os.environ["COLUMNS"] = columns
    parser = new_parser(add_help=False, description=table["description"])
    for entry in table["definitions"]:
        keywords = {"help": entry["help"], "dest": entry["destination"]}
        if not entry["names"]:
            nargs = argparse.REMAINDER if entry["arity"] == "remainder" else None
            parser.add_argument(entry["destination"], nargs=nargs, help=entry["help"])
        elif entry["takes_value"]:
            parser.add_argument(*entry["names"], choices=entry["choices"], **keywords)
        else:
            parser.add_argument(*entry["names"], action="store_true", **keywords)
    return {"text": parser.format_help()}


def answer(request):
    if "table" in request:
        return help_page(request["table"], request["columns"])
    arities = request.get("arities")
    environment = request.get("environment", {})
    os.environ["COLUMNS"] = environment.get("COLUMNS", "80")
    parser = positionals_parser(arities) if arities is not None else torchrun_parser(environment)
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
            values = vars(parser.parse_args(request["arguments"]))
    except SystemExit as end:
        return {"outcome": "mistake", "text": errors.getvalue()} if end.code else {"outcome": "print"}
    return {"outcome": "values", "values": values}


def main():
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
