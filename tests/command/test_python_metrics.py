# SPDX-License-Identifier: BSD-3-Clause
"""muster.metrics: what a program puts reaches the handler of its group."""

import re
import time

import pytest

from support.own_library import import_module

pytestmark = pytest.mark.plain_build
metrics = import_module("muster.metrics")


class Kept(metrics.MetricHandler):
    def __init__(self):
        self.all = []

    def emit(self, metric_data):
        self.all.append(metric_data)

    def shown(self):
        return [(each.group_name, each.name, each.value if not each.name.endswith(".ms") else "ms") for each in self.all]


@pytest.fixture(autouse=True)
def handlers(monkeypatch):
    monkeypatch.setattr(metrics, "_handlers", {None: metrics.NullMetricHandler()})


def test_a_metric_goes_to_the_handler_of_its_group_else_to_that_of_all():
    own, rest = Kept(), Kept()
    metrics.put_metric("dropped", 1)
    metrics.configure(own, "train")
    metrics.configure(rest)
    before = time.time()
    metrics.put_metric("batches", 3, "train")
    metrics.put_metric("run_total", 1)
    metrics.getStream("other").add_value("loss", 0.5)
    assert own.shown() == [("train", "batches", 3)]
    assert rest.shown() == [("torchelastic", "run_total", 1), ("other", "loss", 0.5)]
    assert before <= own.all[0].timestamp <= time.time()


def test_the_console_has_one_line_for_each(capsys):
    metrics.configure(metrics.ConsoleMetricHandler())
    metrics.put_metric("my_metric", 7, "my_app")
    assert re.fullmatch(r"\[\d+\.\d+\]\[my_app\]: my_metric=7\n", capsys.readouterr().out)


@metrics.prof
def fine():
    return 4


class Agent:
    @metrics.prof(group="agent")
    def fail(self):
        raise ValueError("no")


def test_calls_are_profiled_by_their_names():
    kept = Kept()
    metrics.configure(kept)
    assert fine() == 4 and fine.__name__ == "fine"
    with pytest.raises(ValueError, match="no"):
        Agent().fail()
    assert kept.shown() == [
        ("torchelastic", "test_python_metrics.fine.success", 1), ("torchelastic", "test_python_metrics.fine.duration.ms", "ms"),
        ("agent", "Agent.fail.failure", 1), ("agent", "Agent.fail.duration.ms", "ms"),
    ]  # fmt: skip
    assert all(isinstance(each.value, int) and each.value >= 0 for each in kept.all)


def test_time_is_told_in_whole_milliseconds(monkeypatch):
    monkeypatch.setattr(metrics.time, "time", lambda: 12.3456)
    assert metrics.get_elapsed_time_ms(10) == 2345
