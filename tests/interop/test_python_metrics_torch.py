# SPDX-License-Identifier: BSD-3-Clause
"""muster.metrics beside torch.distributed.elastic.metrics: the same program puts the same metrics."""

import pytest

from support.installed_package import install

pytestmark = pytest.mark.plain_build

# PyTorch's module needs nothing of PyTorch, so it is loaded alone.
PROGRAM = """\
import importlib.util, json, sys
import muster.metrics
path = importlib.util.find_spec("torch").submodule_search_locations[0] + "/distributed/elastic/metrics/api.py"
specification = importlib.util.spec_from_file_location("api", path)
theirs = importlib.util.module_from_spec(specification)
specification.loader.exec_module(theirs)

def play(metrics):
    told = []
    class Handler(metrics.MetricHandler):
        def emit(self, data):
            told.append([data.group_name, data.name, None if data.name.endswith(".ms") else data.value, list(data._fields)])
    class Worker:
        @metrics.prof
        def run(self, fails):
            assert not fails
            return 5
        @staticmethod
        @metrics.prof(group="apart")
        def help():
            raise SystemExit
    def plain():
        pass
    plain.__qualname__, plain.__module__ = "plain", "one.two"
    metrics.put_metric("before", 1)
    metrics.configure(Handler())
    metrics.configure(metrics.NullMetricHandler(), "silent")
    metrics.put_metric("one", 1)
    metrics.put_metric("two", 2, "apart")
    metrics.put_metric("three", 3, "silent")
    metrics.getStream("apart").add_value("four", 4)
    for call in (lambda: Worker().run(False), lambda: Worker().run(True), Worker.help, metrics.prof(plain)):
        try:
            told.append(call())
        except BaseException as wrong:
            told.append(type(wrong).__name__)
    told.append(metrics.MetricsConfig().params)
    return told

assert play(muster.metrics) == play(theirs), (play(muster.metrics), play(theirs))
print("the same")
"""


def test_the_same_program_puts_the_same_metrics(muster, peer, scratch):
    end = muster.run(["-c", PROGRAM], program=peer.python, env=install(scratch / "package"))
    assert (end.status, end.out) == (0, "the same\n"), end
