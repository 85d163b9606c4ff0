# SPDX-License-Identifier: BSD-3-Clause
"""From the namespace that torch.distributed.run's argument parser makes to the arguments of `muster run`.

Launchers such as `accelerate launch` fill such a namespace themselves and give it to `torch.distributed.run.run`."""

# All that PyTorch 2.14's parser knows but --print-completion, --help, and the script with its arguments.
FLAGS = ("standalone", "run_path", "module", "no_python", "virtual_local_rank")
TEXTS = ("nnodes", "nproc_per_node", "rdzv_backend", "rdzv_endpoint", "rdzv_id", "rdzv_conf", "max_restarts",
         "monitor_interval", "start_method", "event_log_handler", "role", "log_dir", "redirects", "tee",
         "log_line_prefix_template", "local_ranks_filter", "node_rank", "master_addr", "master_port", "local_addr",
         "logs_specs", "numa_binding", "signals_to_handle", "shutdown_timeout")
SHORT = {"-h": "--help", "-m": "--module", "-r": "--redirects", "-t": "--tee"}
LISTS = ("duplicate_stdout_filters", "duplicate_stderr_filters")


def arguments_of(namespace):
    """The arguments of `muster run` for this namespace. What it lacks, and what is None or empty, is left to its default."""
    given = vars(namespace)
    if not given.get("training_script"):
        raise ValueError("the namespace has no training_script")
    arguments = [_option(name) for name in FLAGS if given.get(name)]
    arguments += [f"{_option(name)}={given[name]}" for name in TEXTS if given.get(name) not in (None, "")]
    arguments += [f"{_option(name)}={_listed(given[name])}" for name in LISTS if given.get(name)]
    script_arguments = given.get("training_script_args") or []
    return [*arguments, "--", str(given["training_script"]), *map(str, script_arguments)]


def environment_of(namespace, environment):
    """This environment without the PET_ variables that would set what the namespace leaves unset."""
    unset = {f"PET_{name.upper()}" for name, value in vars(namespace).items() if not value and (value is False or value != 0)}
    return {name: value for name, value in environment.items() if name not in unset}


def options_of(arguments):
    """([(option, its value or None), …], the rest from the program on) of arguments of `muster run`. An abbreviation stays one."""
    flags, found, place = {"--help", "--version", *map(_option, FLAGS)}, [], 0
    while place < len(arguments) and arguments[place].startswith("-") and arguments[place] not in ("-", "--"):
        name, sign, value = arguments[place].partition("=")
        if not name.startswith("--"):
            name, value = SHORT.get(arguments[place][:2], arguments[place][:2]), arguments[place][2:]
            sign = value
        name, place = "--" + name.lstrip("-").replace("_", "-"), place + 1
        if name in flags or (not sign and place == len(arguments)):
            value = None
        elif not sign:
            value, place = arguments[place], place + 1
        found.append((name, value))
    return found, arguments[place:]


def words_of(options):
    return [name if value is None else f"{name}={value}" for name, value in options]


def _option(name):
    return "--" + name.replace("_", "-")


def _listed(texts):
    """As PyTorch's parser reads it: a comma stands between texts, and two for one that is part of a text."""
    return ",".join(text.replace(",", ",,") for text in texts)
