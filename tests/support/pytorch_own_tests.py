# SPDX-License-Identifier: BSD-3-Clause
"""Run by the peer's Python: `pytorch_own_tests.py DIRECTORY FILE CLASS... -CLASS.METHOD...` runs the tests of these classes of one of
PyTorch's own test files, without those methods, with Muster's classes in the place of PyTorch's, and prints what came of each
as JSON.

Where PyTorch's classes of today are called otherwise than those that the tests know, so are Muster's: they are called here as of old.
An etcd of today is started in the place of PyTorch's, which asks for API 2.

The names are replaced in the module of the tests after it was imported. Which ones were is printed, too."""

import ctypes
import importlib
import json
import multiprocessing
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import unittest

import muster.agent
import muster.launcher
import muster.local_timer
import muster.metrics
import muster.processes
import muster.rendezvous
import muster.rendezvous_registry
import muster.run
import muster.store
import muster.timer
import muster.timer_server

os.environ.pop("CI", None)  # on a CI PyTorch does not define some of the classes
import torch.testing._internal.common_utils  # noqa: E402

# What later versions do not have. A spawned worker imports this file, too.
torch.testing._internal.common_utils.sandcastle_skip_if = unittest.skipIf
sys.modules["torch._six"] = types.SimpleNamespace(string_classes=(str, bytes))


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


LAST_CALL = 3  # seconds, instead of 30, for which jobs that could have another node wait
ETCD = "/usr/local/bin/etcd"
PRCTL = ctypes.CDLL(None).prctl  # before there is a fork


class EtcdServer:
    def start(self, **_):
        self.place, self.port, peers = tempfile.mkdtemp(), *_free_ports(2)
        urls = [f"http://localhost:{port}" for port in (self.port, peers)]
        self.process = subprocess.Popen(
            [ETCD, "--data-dir", self.place, "--listen-client-urls", urls[0], "--advertise-client-urls", urls[0],
             "--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1], "--initial-cluster", f"default={urls[1]}",
             "--unsafe-no-fsync"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=_end_with_parent)  # fmt: skip
        while True:
            try:
                socket.create_connection(("localhost", self.port)).close()
                return
            except ConnectionRefusedError:
                assert self.process.poll() is None, "etcd has ended"
                time.sleep(0.02)

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.place)

    def get_endpoint(self):
        return f"localhost:{self.port}"


def _free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _end_with_parent():
    PRCTL(1, signal.SIGKILL)




def worker_spec(redirects=0, tee=0, **members):
    """What is written where was the spec's to say."""
    spec = muster.agent.WorkerSpec(**members)
    spec.logs = muster.launcher.DefaultLogsSpecs(redirects=redirects, tee=tee)
    return spec


class LocalElasticAgent(muster.agent.LocalElasticAgent):
    """The log directory was the agent's to say. Workers are copies of the agent, since each that is spawned loads PyTorch anew, which
    takes seconds. (launcher/api_test.py has some that are spawned.)"""

    def __init__(self, spec, log_dir, start_method, **options):
        spec.logs.log_dir = log_dir
        super().__init__(spec, spec.logs, start_method="fork", **options)


class Tail:
    """Copies lines as long as the agent runs; PyTorch's tests look at this private member."""

    def __init__(self, context):
        self.stopped = lambda: context._result is not None


def start_processes(name, entrypoint, args, envs, log_dir, redirects=0, tee=0, **options):
    """What is written where was said in arguments. Workers are copies, as above."""
    logs = muster.launcher.DefaultLogsSpecs(log_dir, redirects, tee)
    context = muster.processes.start_processes(name, entrypoint, args, envs, logs, **{**options, "start_method": "fork"})
    context._stdout_tail = context._stderr_tail = Tail(context)
    return context


def get_rendezvous_handler(params):
    params.config.setdefault("last_call_timeout", LAST_CALL)
    params.config.pop("is_host" if params.backend == "etcd" else "", None)  # etcd's had no such option, and did not mind
    return muster.rendezvous_registry.get_rendezvous_handler(params)


def launch_config(min_nodes, max_nodes, rdzv_configs, **members):
    if max_nodes > min_nodes:
        rdzv_configs = {"last_call_timeout": LAST_CALL, **rdzv_configs}
    return muster.launcher.LaunchConfig(min_nodes, max_nodes, rdzv_configs=rdzv_configs, **members)


def launch_main(words):
    muster.run.main([f"--rdzv-conf=last_call_timeout={LAST_CALL}", *words] if any(":" in word for word in words[:1]) else words)


OWN.update(
    {name: getattr(muster.agent, name) for name in ("RunResult", "WorkerGroup", "WorkerState")},
    **{name: getattr(muster.launcher, name) for name in ("ChildFailedError", "elastic_launch", "launch_agent", "ProcessFailure")},
    EtcdServer=EtcdServer, LaunchConfig=launch_config, LocalElasticAgent=LocalElasticAgent, RunProcsResult=muster.processes.RunProcsResult, WorkerSpec=worker_spec,
    launch=types.SimpleNamespace(main=launch_main),
    rdzv_registry=types.SimpleNamespace(get_rendezvous_handler=get_rendezvous_handler), start_processes=start_processes)


class Stores:
    """torch.distributed, but for its stores and their errors."""

    def __init__(self, real):
        self._real = real

    def __getattr__(self, name):
        return getattr(muster.store, name, None) or getattr(self._real, name)


def replace_in(module):
    replaced = {name: OWN[name] for name in vars(module) if name in OWN}
    if "record" in vars(module):  # PyTorch's, which knows PyTorch's exception
        replaced.pop("ChildFailedError")
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
    path = pathlib.Path(directory, file)
    sys.path[:0] = [str(path.parent), directory]
    for name in ("torch.distributed.elastic.timer", "torch.distributed.elastic.timer.api"):
        vars(importlib.import_module(name)).update(EXTENDED)
    replace_metrics()
    module = importlib.import_module(path.stem)
    replaced = replace(directory)
    suite, results = unittest.TestSuite(), Results()
    for name in (word for word in words if not word.startswith("-")):
        tests = unittest.defaultTestLoader.loadTestsFromName(name, module)
        tests = tests if isinstance(tests, unittest.TestSuite) else [tests]
        suite.addTests(test for test in tests if "-" + test.id().split(".", 1)[1] not in words)
    suite.run(results)
    print(json.dumps({"replaced": replaced, "results": results.told}))


if __name__ == "__main__":
    main(*sys.argv[1:])
