# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own tests of its stores, rendezvous, timers, agents and launchers, with the Python package's classes in the place of PyTorch's
(support.pytorch_own_tests). They are those of PyTorch 1.13, which `make peers` takes from the source of Debian 12's package, run
by the peer's Python on its newer PyTorch. What is left out is named here, with the reason; docs/compatibility.md counts the same."""

import json
import os
import shutil

import pytest

from support.binary import ROOT
from support.installed_package import install
from support.own_library import BUILD, LIBRARY
from support.peers import give_up

pytestmark = [pytest.mark.timeout(240), pytest.mark.plain_build]

TESTS = "usr/local/share/pytorch-tests"

STORES = {
    "file": "test_store.py",
    "classes": ["FileStoreTest", "PrefixFileStoreTest", "TCPStoreTest", "PrefixTCPStoreTest"],
    "replaced": {"create_tcp_store", "dist"},
    "passed": 11,
    "left_out": {
        "FileStoreTest.test_set_get": "counts 5 keys; PyTorch's class of today counts its own key, too, and so does Muster's",
        "PrefixFileStoreTest.test_set_get": "the same",
        "TCPStoreTest.test_init_pg_and_rpc_with_same_socket": "process groups of PyTorch need PyTorch's stores",
    },
}  # fmt: skip

BACKENDS = {
    "file": "elastic/rendezvous/c10d_rendezvous_backend_test.py",
    "classes": ["TCPStoreBackendTest", "FileStoreBackendTest", "CreateBackendTest"],
    "replaced": {"C10dRendezvousBackend", "FileStore", "RendezvousBackend", "RendezvousStateError", "TCPStore", "create_backend"},
    "passed": 29,
    "left_out": {
        "CreateBackendTest.test_create_backend_raises_error_if_file_path_is_invalid": "puts a false store into PyTorch's module",
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
    "passed": 5,
    "left_out": {
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

AGENTS = {
    "file": "elastic/agent/server/test/local_elastic_agent_test.py",
    "classes": ["LocalElasticAgentTest"],
    "replaced": {"LocalElasticAgent", "RendezvousParameters", "RunResult", "WorkerSpec", "WorkerState", "rdzv_registry"},
    "passed": 26,
    "left_out": {
        **dict.fromkeys((f"LocalElasticAgentTest.test_{name}_etcd_v2" for name in (
            "barrier_failed", "check_master_addr_port_override", "correct_rank_assignment_heterogeneous",
            "correct_rank_assignment_homogeneous", "double_agent_elastic", "double_agent_fault_tolerance", "dummy_compute",
            "run_bipolar_function", "run_distributed_sum_heterogeneous", "run_distributed_sum_homogeneous",
            "run_function_with_return_value", "run_happy_function", "run_sad_function", "shutdown_called", "simple_dist_sum",
            "torch_rpc", "workers_drift_fail", "workers_drift_success")), "is of an API that etcd no longer has"),
        **dict.fromkeys((f"LocalElasticAgentTest.test_{name}_{backend}" for name in ("barrier_failed", "shutdown_called")
                         for backend in ("c10d", "etcd")), "puts a mock into a private place of PyTorch's agent"),
        **dict.fromkeys((f"LocalElasticAgentTest.test_{name}" for name in ("run_bipolar_function_c10d", "run_bipolar_function_etcd")),
                        "reads a private count"),
        "LocalElasticAgentTest.test_double_agent_elastic_c10d": "kills a node that fails as soon, since both are told to host the store",
        **dict.fromkeys((f"LocalElasticAgentTest.test_{name}" for name in ("torch_rpc_c10d", "torch_rpc_etcd")),
                        "Debian's PyTorch is built without TensorPipe"),
        **dict.fromkeys((f"LocalElasticAgentTest.test_run_check_{name}" for name in (
            "env_function_etcd", "nccl_async_error_handling_env_default_c10d")), "PyTorch has given NCCL's variable another name"),
    },
}  # fmt: skip

AGENT_CLASSES = {
    "file": "elastic/agent/server/test/api_test.py",
    "classes": ["WorkerStateTest", "WorkerGroupTest"],
    "replaced": {"WorkerGroup", "WorkerSpec", "WorkerState"},
    "passed": 2,
    "left_out": {},  # of these classes; the others are of private methods of PyTorch's agent
}

PROCESSES = {
    "file": "elastic/multiprocessing/api_test.py",
    "classes": ["RunProcResultsTest", "StartProcessesListTest", "StartProcessesNotCITest.test_binary_signal",
                "StartProcessesNotCITest.test_function", "StartProcessesNotCITest.test_function_redirect_and_tee"],
    "replaced": {"ProcessFailure", "RunProcsResult", "start_processes"},
    "passed": 17,
    "left_out": {
        **dict.fromkeys(("StartProcessesListTest.test_to_map", "StartProcessesListTest.test_validate_full_rank",
                         "StartProcessesListTest.test_multiprocessing_context_poll_raises_exception"),
                        "is of private functions of PyTorch's"),
        "StartProcessesListTest.test_function_raise": "wants the error file where PyTorch of today has it no more",
        "StartProcessesListTest.test_function_with_tensor": "starts no process",
        "StartProcessesListTest.test_invalid_log_dir": "wants an error that PyTorch of today does not raise",
    },  # of the last class: two wait for 20 s, one is of a private function, one wants PyTorch's words, the others are repeated
}  # fmt: skip

LAUNCHERS = {
    "file": "launcher/api_test.py",
    "classes": ["ElasticLaunchTest"],
    "replaced": {"ChildFailedError", "LaunchConfig", "elastic_launch", "launch_agent"},
    "passed": 6,
    "left_out": {**dict.fromkeys((f"ElasticLaunchTest.test_{name}" for name in (
        "get_entrypoint_name", "launch_elastic_agent_raise_exception", "launch_elastic_worker_raise_exception", "launch_shutdown",
        "rdzv_handler_shutdown_on_agent_error", "rdzv_handler_shutdown_on_agent_signal")),
        "puts a mock into PyTorch's modules, or calls a private function"),
        "ElasticLaunchTest.test_launch_elastic_multiple_agents": "one node is a program in which PyTorch's classes are"},
}  # fmt: skip

RUNS = {
    "file": "launcher/run_test.py",
    "classes": ["ElasticLaunchTest"],
    "replaced": {"launch"},
    "passed": 15,
    "left_out": {
        **dict.fromkeys((f"ElasticLaunchTest.test_{name}" for name in (
            "launch_elastic_agent_raise_exception", "launch_elastic_worker_raise_exception", "launch_shutdown",
            "nproc_gpu_launch_configurations")), "puts a mock into PyTorch's modules"),
        **dict.fromkeys((f"ElasticLaunchTest.test_{name}" for name in (
            "init_method_env", "init_method_tcp", "is_not_torchelastic_launched")), "launches nothing"),
        "ElasticLaunchTest.test_min_max_nodes_parse": "is of a function of PyTorch's command line",
    },
}  # fmt: skip

METRICS = {
    "file": "elastic/metrics/api_test.py",
    "classes": ["MetricsApiTest"],
    "replaced": {"MetricData", "MetricHandler", "MetricStream", "prof"},
    "passed": 2,
    "left_out": {"MetricsApiTest.test_get_metric_name": "calls a private function"},
}

GROUPS = [STORES, BACKENDS, HANDLERS, PARAMETERS, STATIC, TIMERS, LOCAL_TIMERS, TIMER_CLASSES, METRICS, AGENTS, AGENT_CLASSES, PROCESSES,
          LAUNCHERS, RUNS]  # fmt: skip


@pytest.fixture
def pytorch_tests(peer):
    root = peer.python.parent.parent / os.path.basename(os.environ.get("PEER_ROOT", "forky"))
    if not (root / TESTS / "launcher/run_test.py").exists():
        give_up(f"PyTorch's own tests are not in {root / TESTS}; run `make peers`")
    return "/" + TESTS


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group["file"])
def test_pytorchs_own(muster, peer, scratch, pytorch_tests, group):
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built (-Dlibrary=false)")
    runner = shutil.copy(ROOT / "tests/support/pytorch_own_tests.py", scratch)
    package = install(scratch / "package")
    (package["PYTHONPATH"] / "muster/bin").mkdir()
    shutil.copy(BUILD / "src/main/muster", package["PYTHONPATH"] / "muster/bin")
    words = group["classes"] + ["-" + name for name in group["left_out"]]
    end = muster.run([runner, pytorch_tests, group["file"], *words], program=peer.python, env=package,
                     timeout=230)
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
