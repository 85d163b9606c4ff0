# SPDX-License-Identifier: BSD-3-Clause
"""Run by the peer's Python: `pytorch_own_tests.py DIRECTORY FILE CLASS... -CLASS.METHOD...` runs the tests of these classes of one of
PyTorch's own test files, without those methods, with Muster's classes in the place of PyTorch's, and prints what came of each
as JSON.

The names are replaced in the module of the tests after it was imported. Which ones were is printed, too."""

import importlib
import json
import multiprocessing
import pathlib
import sys
import types
import unittest

import muster.local_timer
import muster.metrics
import muster.rendezvous
import muster.rendezvous_registry
import muster.store
import muster.timer
import muster.timer_server


def names_of(module):
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


OWN = {name: getattr(muster.rendezvous, name) for name in muster.rendezvous.__all__}
OWN.update({name: getattr(muster.store, name) for name in ("Store", "TCPStore", "FileStore", "PrefixStore")})
OWN["create_rdzv_handler"] = muster.rendezvous_registry.create_static_handler
OWN["create_tcp_store"] = lambda addr="localhost", world_size=1, **settings: muster.store.TCPStore(
    addr, 0, world_size, is_master=True, **{name: settings[name] for name in ("timeout", "wait_for_workers") if name in settings})
# Those that tests extend are replaced in PyTorch's modules, before the tests are imported.
EXTENDED = {name: getattr(muster.local_timer, name) for name in ("RequestQueue", "TimerClient", "TimerRequest", "TimerServer")}
OWN.update(EXTENDED, MultiprocessingRequestQueue=muster.local_timer.MultiprocessingRequestQueue)
OWN.update((name, getattr(muster.metrics, name)) for name in ("MetricData", "MetricHandler", "MetricStream", "prof"))
TIMER = types.SimpleNamespace(**{**names_of(muster.timer), **names_of(muster.timer_server), **names_of(muster.local_timer)})


class Stores:
    """torch.distributed, but for its stores and their errors."""

    def __init__(self, real):
        self._real = real

    def __getattr__(self, name):
        return getattr(muster.store, name, None) or getattr(self._real, name)


def replace_in(module):
    replaced = {name: OWN[name] for name in vars(module) if name in OWN}
    if "timer" in vars(module):
        replaced["timer"] = TIMER
    if "dist" in vars(module):
        replaced["dist"] = Stores(module.dist)
    vars(module).update(replaced)
    return set(replaced)


def replace_metrics():
    """As a whole, since its tests put a stream of their own into that module. What they ask it for that is private stays PyTorch's."""
    package, name = importlib.import_module("torch.distributed.elastic.metrics"), "torch.distributed.elastic.metrics.api"
    muster.metrics._get_metric_name = importlib.import_module(name)._get_metric_name
    sys.modules[name] = package.api = muster.metrics


def replace(directory):
    """Returns the names that are Muster's now, in the module of the tests and in those of their directory that it imports."""
    replaced = set()
    for module in list(sys.modules.values()):
        if str(getattr(module, "__file__", None) or "").startswith(directory):
            replaced |= replace_in(module)
    return sorted(replaced)


class Results(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.told = {}

    def stopTest(self, test):  # noqa: N802
        super().stopTest(test)
        self.told.setdefault(test.id().split(".", 1)[1], "passed")

    def note(self, test, text):
        self.told[getattr(test, "test_case", test).id().split(".", 1)[1]] = text

    def addError(self, test, wrong):  # noqa: N802
        self.note(test, self._exc_info_to_string(wrong, test))

    def addSkip(self, test, reason):  # noqa: N802
        self.note(test, "skipped: " + reason)

    def addSubTest(self, test, subtest, wrong):  # noqa: N802
        if wrong is not None:
            self.note(test, self._exc_info_to_string(wrong, test))

    addFailure = addError  # noqa: N815


def main(directory, file, *words):
    multiprocessing.set_start_method("fork")  # which the tests were written for
    sys.modules["torch._six"] = types.SimpleNamespace(string_classes=(str, bytes))  # which later versions do not have
    path = pathlib.Path(directory, file)
    sys.path[:0] = [str(path.parent), directory]
    for name in ("torch.distributed.elastic.timer", "torch.distributed.elastic.timer.api"):
        vars(importlib.import_module(name)).update(EXTENDED)
    replace_metrics()
    module = importlib.import_module(path.stem)
    replaced = replace(directory)
    suite, results = unittest.TestSuite(), Results()
    for name in (word for word in words if not word.startswith("-")):
        tests = unittest.defaultTestLoader.loadTestsFromTestCase(getattr(module, name))
        suite.addTests(test for test in tests if "-" + test.id().split(".", 1)[1] not in words)
    suite.run(results)
    print(json.dumps({"replaced": replaced, "results": results.told}))


if __name__ == "__main__":
    main(*sys.argv[1:])
