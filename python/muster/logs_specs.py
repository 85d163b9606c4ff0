# SPDX-License-Identifier: BSD-3-Clause
"""A class of the program's own that says where workers write, by the name of an entry point of the group `torchrun.logs_specs`, as
`--logs-specs NAME` of torchrun does (_get_logs_specs_class in torch/distributed/run.py)."""

from importlib import metadata

GROUP = "torchrun.logs_specs"


def _entry_points():
    """Before Python 3.10 they are asked for by group."""
    found = metadata.entry_points()
    return found.select(group=GROUP) if hasattr(found, "select") else found.get(GROUP, ())


def logs_specs_of(name, log_dir=None, redirects=None, tee=None, local_ranks_filter=None):
    """An instance of the class of that name, made of the values of the options, as PyTorch's launcher makes it."""
    points = {point.name: point for point in _entry_points()}
    if name not in points:
        raise ValueError(f"--logs-specs {name}: no package has an entry point of this name in the group {GROUP}; those there are: "
                         f"{', '.join(sorted(points)) or 'none'}. `default` is PyTorch's own")
    try:
        kind = points[name].load()
    except Exception as wrong:
        raise ValueError(f"--logs-specs {name}: {points[name].value} cannot be had: {type(wrong).__name__}: {wrong}") from wrong
    number = _number_of(kind)
    try:
        ranks = {int(rank) for rank in local_ranks_filter.split(",")} if local_ranks_filter else None
        redirects, tee = _streams(redirects, number), _streams(tee, number)
    except ValueError as wrong:
        raise ValueError(f"--redirects {redirects}, --tee {tee} and --local-ranks-filter {local_ranks_filter}: one of them is no "
                         "number 0 to 3, no RANK:NUMBER,… or no list of ranks") from wrong
    return kind(log_dir=log_dir, redirects=redirects, tee=tee, local_ranks_filter=ranks)


def _number_of(kind):
    """What a class of PyTorch's takes for a number: its Std."""
    if any(base.__module__.startswith("torch.") for base in getattr(kind, "__mro__", ())):
        from torch.distributed.elastic.multiprocessing import Std

        return Std
    return int


def _streams(text, number):
    """A value of --redirects or --tee."""
    if not text or ":" not in text:
        return number(int(text or 0))
    return {int(rank): number(int(value)) for rank, value in (each.split(":") for each in text.split(","))}
