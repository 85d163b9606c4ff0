# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of real agents whose register is kept by a server of Kubernetes' rules: the host of the job's store is killed, the server
goes and comes, and what a user may get wrong."""

import pytest

from support.kubernetes import Kubernetes
from support.nodes import Job, start_nodes, wait_until

pytestmark = pytest.mark.timeout(900)
PATIENCE = 240


@pytest.fixture
def kubernetes(tmp_path):
    server = Kubernetes(tmp_path)
    yield server
    server.end()


@pytest.fixture
def make_kubernetes_job(muster, kubernetes):
    """make_kubernetes_job("2:3"): nodes of this machine, whose register is at the server of the test."""

    def make(nnodes, *options, conf=(), **how):
        return Job(muster, nnodes, "--rdzv-backend", "k8s", *options, path="ml/train", conf=[*kubernetes.conf, *conf], **how)

    return make


def test_a_killed_host_is_succeeded(kubernetes, make_kubernetes_job):
    job = make_kubernetes_job("2:3")
    start_nodes(job, 3, PATIENCE)
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3", timeout=PATIENCE)
    assert world.restarts == {0}, job.tell()
    assert len(job.worlds()) == 2, job.tell()
    world.end()
    assert job.succeeds(PATIENCE)
    assert list(kubernetes.find("configmaps", "ml", "train")["data"]) == ["entry.job"]
    assert "knows no setting" not in job.tell() and "first-token" not in job.tell()


@pytest.mark.parametrize("may_watch", [True, False], ids=["watching", "without permission to watch"])
def test_the_others_hear_of_the_next_host_or_ask_for_it(kubernetes, make_kubernetes_job, may_watch):
    """An older Role does not let them watch: then each asks after its turn."""
    if not may_watch:
        kubernetes.forbidden = {("watch", "configmaps")}
    job = make_kubernetes_job("2:4")
    start_nodes(job, 4, PATIENCE)
    job.started[0].kill()
    job.wait_for_world("node2", "node3", "node4", timeout=PATIENCE).end()
    assert job.succeeds(PATIENCE)
    assert kubernetes.watches > 0 and any("watch_register" in node.err() for node in job.started), job.tell()
    assert may_watch == any("news " in node.err() for node in job.started), job.tell()


def test_workers_run_on_while_the_server_is_away(kubernetes, make_kubernetes_job):
    """And the round that a failed worker asks for is begun when it is back."""
    job = make_kubernetes_job("2", conf=["fence_timeout=4"])
    world = start_nodes(job, 2, PATIENCE)
    kubernetes.stop()
    job.wait_for_log_of_any("this node's term is not renewed", timeout=PATIENCE)
    assert all(worker.is_running() for worker in world.workers), job.tell()
    world.of("node2").end(3)
    world.of("node1").wait_until_gone()
    kubernetes.start()
    again = job.wait_for_world("node1", "node2", timeout=PATIENCE)
    assert again.restarts == {1}, job.tell()
    assert len(job.worlds()) == 2, job.tell()
    again.end()
    assert job.succeeds(PATIENCE)


def test_two_jobs_may_share_a_config_map(kubernetes, make_kubernetes_job):
    jobs = [make_kubernetes_job("1", "--rdzv-id", name) for name in ("a/1", "b" * 80)]
    for job in jobs:
        job.start("node1", address="127.0.0.1").wait_for_log("this node hosts the store", timeout=PATIENCE)
    names = sorted(kubernetes.find("configmaps", "ml", "train")["data"])
    assert names[0] == "entry.a_2f1" and names[1].startswith("entry." + "b" * 24 + "__"), names
    for job in jobs:
        job.started[0].kill()


def run_one(muster, *options, endpoint="ml/train", env=None):
    return muster.run(
        ["run", "--nnodes", "2", "--rdzv-backend", "k8s", "--rdzv-endpoint", endpoint, "--rdzv-id", "job", "--local-addr",
         "127.0.0.1", *options, "--no-python", "true"], env=env, timeout=PATIENCE)  # fmt: skip


@pytest.mark.parametrize("endpoint", ["Train", "ml/", "m.l/train", "a/b/c", "https://host:6443"])
def test_names_that_kubernetes_refuses_are_usage_errors(muster, endpoint):
    end = run_one(muster, endpoint=endpoint)
    assert end.status == 2, end
    assert f"argument --rdzv-endpoint/--rdzv_endpoint: invalid value '{endpoint}': " in end.err.splitlines()[0]


def test_outside_of_a_pod_the_server_has_to_be_named(muster):
    end = run_one(muster, env={"KUBERNETES_SERVICE_HOST": ""})
    assert end.status == 1 and "give --rdzv-conf k8s_server=https://HOST:PORT" in end.err, end


def test_a_missing_permission_is_one_error(muster, kubernetes):
    kubernetes.forbidden = {("create", "configmaps")}
    end = run_one(muster, "--rdzv-conf", ",".join(kubernetes.conf))
    assert end.status == 1 and "examples/kubernetes/role.yaml" in end.err and 'cannot create resource "configmaps"' in end.err, end


def test_a_namespace_that_is_missing_is_one_error(muster, kubernetes):
    end = run_one(muster, "--rdzv-conf", ",".join(kubernetes.conf), endpoint="nowhere/train")
    assert end.status == 1 and "there is no namespace 'nowhere'" in end.err, end


def test_a_server_that_is_not_there_is_named_in_the_end(muster, kubernetes):
    kubernetes.stop()
    end = run_one(muster, "--rdzv-conf", ",".join([*kubernetes.conf, "join_timeout=8"]))
    assert end.status == 1 and f"Kubernetes ({kubernetes.url}): " in end.err, end
    kubernetes.start()


def test_the_status_is_asked_of_the_host_that_the_server_names(muster, kubernetes, make_kubernetes_job, scratch):
    job = make_kubernetes_job("2:3")
    start_nodes(job, 3, PATIENCE)
    words = ["--rdzv-backend", "k8s", "--rdzv-endpoint", "ml/train", "--rdzv-id", "job", "--rdzv-conf", ",".join(kubernetes.conf)]

    def ask(nodes):
        told = muster.run(["status", *words], env={"MUSTER_RUNTIME_DIR": scratch / "nobody"})
        return told if told.status == 0 and f"{nodes} of 3 nodes" in told.out else None

    wait_until(lambda: ask(3), "the status", PATIENCE)
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3", timeout=PATIENCE)
    told = wait_until(lambda: ask(2), "the status from the next host", PATIENCE)
    assert "before the host changed, " in told.out, told
    world.end()
    assert job.succeeds(PATIENCE)
