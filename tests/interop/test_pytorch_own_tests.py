# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own tests of its stores, rendezvous and timers, with the Python package's classes in the place of PyTorch's
(support.pytorch_own_tests). They are those of PyTorch 1.13, which `make peers` takes from the source of Debian 12's package, run
by the peer's Python on its newer PyTorch. What is left out is named here, with the reason."""

import json
import os
import shutil

import pytest

from support.binary import ROOT
from support.installed_package import install
from support.own_library import LIBRARY
from support.peers import give_up

pytestmark = [pytest.mark.timeout(120), pytest.mark.plain_build]

TESTS = "usr/local/share/pytorch-tests"

STORES = {
    "file": "test_store.py",
    "classes": ["FileStoreTest", "PrefixFileStoreTest", "TCPStoreTest", "PrefixTCPStoreTest"],
    "replaced": {"create_tcp_store", "dist"},
    "passed": 10,
    "left_out": {
        "FileStoreTest.test_set_get": "counts 5 keys; PyTorch's class of today counts its own key, too, and so does Muster's",
        "PrefixFileStoreTest.test_set_get": "the same",
        "TCPStoreTest.test_address_already_in_use": "the words of the error are PyTorch's",
        "TCPStoreTest.test_init_pg_and_rpc_with_same_socket": "process groups of PyTorch need PyTorch's stores",
    },
}  # fmt: skip

BACKENDS = {
    "file": "elastic/rendezvous/c10d_rendezvous_backend_test.py",
    "classes": ["TCPStoreBackendTest", "FileStoreBackendTest", "CreateBackendTest"],
    "replaced": {"C10dRendezvousBackend", "FileStore", "RendezvousBackend", "RendezvousStateError", "TCPStore", "create_backend"},
    "passed": 28,
    "left_out": {
        "CreateBackendTest.test_create_backend_raises_error_if_file_path_is_invalid": "puts a false store into PyTorch's module",
        "CreateBackendTest.test_create_backend_raises_error_if_endpoint_is_invalid": "passes, and waits for 20 s",
    },
}  # fmt: skip

HANDLERS = {
    "file": "elastic/rendezvous/dynamic_rendezvous_test.py",
    "classes": ["RendezvousTimeoutTest", "DynamicRendezvousHandlerFromBackendTest", "CreateHandlerTest"],
    "replaced": {"DynamicRendezvousHandler", "RendezvousBackend", "RendezvousParameters", "RendezvousTimeout", "create_handler"},
    "passed": 11,
    "left_out": {},  # of these classes; the others are of private parts of PyTorch's handler, or give it such parts
}

PARAMETERS = {
    "file": "elastic/rendezvous/api_test.py",
    "classes": ["RendezvousParametersTest", "RendezvousHandlerRegistryTest"],
    "replaced": {"RendezvousHandlerRegistry", "RendezvousParameters"},
    "passed": 22,
    "left_out": {},
}

STATIC = {
    "file": "elastic/rendezvous/static_rendezvous_test.py",
    "classes": ["StaticTCPRendezvousTest"],
    "replaced": {"RendezvousParameters", "create_rdzv_handler"},
    "passed": 3,
    "left_out": {
        "ElasticLaunchTest.test_launch_function": "its workers import the tests, which this PyTorch cannot",
        "ElasticLaunchTest.test_launch_dist_sum_with_static_rdzv": "the same",
        "StaticTCPRendezvousTest.test_static_rdzv_multiple_calls": "takes the tuple that PyTorch's handlers of today do not give",
    },
}

TIMERS = {
    "file": "elastic/timer/file_based_local_timer_test.py",
    "classes": ["FileTimerTest", "FileTimerServerTest", "FileTimerClientTest"],
    "replaced": {"timer"},
    "passed": 8,
    "left_out": {
        "FileTimerTest.test_multiple_clients_interaction": "reads a private count",
        "FileTimerServerTest.test_expired_timers": "sends by a private method, and for process -3",
        "FileTimerServerTest.test_send_request_release": "the same",
        "FileTimerServerTest.test_valid_timers": "the same",
        "FileTimerServerTest.test_watchdog_call_count": "counts the calls of a private method that polls",
    },
}  # fmt: skip


LOCAL_TIMERS = {
    "file": "elastic/timer/local_timer_test.py",
    "classes": ["LocalTimerTest", "MultiprocessingRequestQueueTest", "LocalTimerServerTest"],
    "replaced": {"timer", "TimerRequest", "MultiprocessingRequestQueue"},
    "passed": 11,
    "left_out": {
        "LocalTimerServerTest.test_watchdog_call_count": "counts how often it was polled in a tenth of a second",
        "MultiprocessingRequestQueueTest.test_get_less_than_size": "measures how quick another process is",
        "MultiprocessingRequestQueueTest.test_get_size": "the same",
    },
}  # fmt: skip

TIMER_CLASSES = {
    "file": "elastic/timer/api_test.py",
    "classes": ["TimerApiTest"],
    "replaced": {"TimerServer", "RequestQueue", "TimerRequest"},
    "passed": 1,
    "left_out": {},  # its own classes extend PyTorch's, so these are replaced before it is imported
}


METRICS = {
    "file": "elastic/metrics/api_test.py",
    "classes": ["MetricsApiTest"],
    "replaced": {"MetricData", "MetricHandler", "MetricStream", "prof"},
    "passed": 2,
    "left_out": {"MetricsApiTest.test_get_metric_name": "calls a private function"},
}


@pytest.fixture
def pytorch_tests(peer):
    root = peer.python.parent.parent / os.path.basename(os.environ.get("PEER_ROOT", "forky"))
    if not (root / TESTS / "test_store.py").exists():
        give_up(f"PyTorch's own tests are not in {root / TESTS}; run `make peers`")
    return "/" + TESTS


@pytest.mark.parametrize("group", [STORES, BACKENDS, HANDLERS, PARAMETERS, STATIC, TIMERS, LOCAL_TIMERS, TIMER_CLASSES, METRICS], ids=lambda group: group["file"])
def test_pytorchs_own(muster, peer, scratch, pytorch_tests, group):
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built (-Dlibrary=false)")
    runner = shutil.copy(ROOT / "tests/support/pytorch_own_tests.py", scratch)
    words = group["classes"] + ["-" + name for name in group["left_out"]]
    end = muster.run([runner, pytorch_tests, group["file"], *words], program=peer.python, env=install(scratch / "package"),
                     timeout=110)
    assert end.status == 0, end
    told = json.loads(end.out.splitlines()[-1])
    failed = {name: text for name, text in told["results"].items() if text != "passed"}
    assert not failed, "\n".join(f"{name}: {text}" for name, text in failed.items())
    assert group["replaced"] <= set(told["replaced"]), told["replaced"]
    assert len(told["results"]) == group["passed"], sorted(told["results"])


FORKED = """
import os
from muster.launcher import LaunchConfig, elastic_launch
def work():
    return 10 + int(os.environ["RANK"])
print(elastic_launch(LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, start_method="fork", max_restarts=0), work)())
"""


def test_functions_are_forked_under_the_peers_python(muster, peer, scratch):
    """A newer one than the system's, which ends a process that was not made ready for its fork."""
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built (-Dlibrary=false)")
    end = muster.run(["-c", FORKED], program=peer.python, env=install(scratch / "package"), timeout=110)
    assert end.out == "{0: 10, 1: 11}\n", end
