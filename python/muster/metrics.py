# SPDX-License-Identifier: BSD-3-Clause
"""Metrics of a program's own, as it puts them with torch.distributed.elastic.metrics, without PyTorch: put_metric, prof,
configure, and the handlers.

    configure(ConsoleMetricHandler())

    @prof(group="train")
    def step():
        put_metric("batches", 1, "train")

Each group has its handler, else that of configure() without a group, else none. The metrics of an agent of Muster do not come
here, since it is another process: muster/metrics.h says how a program in C gets them. The names that PyTorch has deprecated
(profile, publish_metric) are left out. Nothing here needs libmuster."""

import abc
import collections
import functools
import time

GROUP = "torchelastic"

MetricData = collections.namedtuple("MetricData", ["timestamp", "group_name", "name", "value"])


class MetricHandler(abc.ABC):
    @abc.abstractmethod
    def emit(self, metric_data):
        """Takes one metric."""


class ConsoleMetricHandler(MetricHandler):
    def emit(self, metric_data):
        print("[{0.timestamp}][{0.group_name}]: {0.name}={0.value}".format(metric_data))


class NullMetricHandler(MetricHandler):
    def emit(self, metric_data):
        pass


class MetricsConfig:
    __slots__ = ["params"]

    def __init__(self, params=None):
        self.params = {} if params is None else params


class MetricStream:
    """What is put into one group goes to this handler."""

    def __init__(self, group_name, handler):
        self.group_name, self.handler = group_name, handler

    def add_value(self, metric_name, metric_value):
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


_handlers = {None: NullMetricHandler()}  # by group; None: of all other groups


def configure(handler, group=None):
    """The handler of this group from now on, or of all groups that have none."""
    _handlers[group] = handler


def initialize_metrics(cfg=None):
    """Does nothing, as in PyTorch: a place that is called before the first metric."""


def getStream(group):  # noqa: N802 (PyTorch's name)
    return MetricStream(group, _handlers.get(group) or _handlers[None])


def put_metric(metric_name, metric_value, metric_group=GROUP):
    getStream(metric_group).add_value(metric_name, metric_value)


def get_elapsed_time_ms(start_time_in_seconds):
    """The milliseconds since then, which is a time as of time.time()."""
    return int(1000 * (time.time() - start_time_in_seconds))


def _name_of(function):
    """Of a method with its class; of other functions with the last part of the module's name."""
    if "." in function.__qualname__ or not function.__module__:
        return function.__qualname__
    return f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"


def prof(fn=None, group=GROUP):
    """A decorator, with or without a group: puts NAME.success or NAME.failure, and NAME.duration.ms, of each call."""
    if fn is None:
        return functools.partial(prof, group=group)
    name = _name_of(fn)

    @functools.wraps(fn)
    def call(*args, **kwargs):
        start = time.time()
        try:
            result = fn(*args, **kwargs)
            put_metric(f"{name}.success", 1, group)
            return result
        except Exception:
            put_metric(f"{name}.failure", 1, group)
            raise
        finally:
            put_metric(f"{name}.duration.ms", get_elapsed_time_ms(start), group)

    return call
