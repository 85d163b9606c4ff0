# SPDX-License-Identifier: BSD-3-Clause
"""The register of a job at a real API server of Kubernetes, over a real etcd. It needs kube-apiserver, and kubectl, etcd, curl and
openssl in PATH (Debian: kubernetes-client, etcd-server, curl, openssl):

    MUSTER_KUBE_APISERVER=/path/to/kube-apiserver /usr/bin/python3 -m pytest tests/by_hand

Debian has kube-apiserver as source only. It was built from Debian 12's source package `kubernetes` with its golang-1.19-go, in a
GOPATH with that source as src/k8s.io/kubernetes, and there with GO111MODULE=off and CGO_ENABLED=0:

    go build -o /tmp/openapi-gen k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen
    packages=$({ grep -rl --include='*.go' '+k8s:openapi-gen=' pkg
                 cd staging/src && grep -rl --include='*.go' '+k8s:openapi-gen=' k8s.io | sed 's#^#vendor/#'
               } | grep -v 'code-generator\\|sample-apiserver' | xargs -n 1 dirname | sort -u | sed 's#^#k8s.io/kubernetes/#' | paste -sd ,)
    /tmp/openapi-gen -i "$packages" -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi -r /tmp/violations \\
        -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt
    go build -tags providerless -o /tmp/kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver

docs/succession.md says what was seen.
"""

import signal
import time

import pytest

from support.kube_apiserver import ROLE, KubeApiserver, require_kube_apiserver
from support.nodes import Job, start_nodes, wait_until
from support.registers import RACE, Suite

pytestmark = pytest.mark.timeout(900)
PATIENCE = 240
ABSENCE = 20  # seconds
PLACE = "ml/train"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    server = KubeApiserver(tmp_path_factory.mktemp("cluster"), require_kube_apiserver())
    yield server
    server.end()


@pytest.fixture
def kubernetes(cluster):
    """The server, without what an earlier test has left in it."""
    cluster.kubectl("delete", "-n", "ml", "configmap,lease", "train", "--ignore-not-found")
    return cluster


@pytest.fixture
def make_kubernetes_job(muster, kubernetes):
    def make(nnodes, *options, **how):
        return Job(muster, nnodes, "--rdzv-backend", "k8s", *options, path=PLACE, conf=kubernetes.conf, **how)

    return make


def suite_of(kubernetes, place=PLACE):
    return Suite("k8s", place, kubernetes.conf)


def refusal(kubernetes, conf=None, place=PLACE):
    """What the first read is answered with; it stays so."""
    return suite_of(kubernetes, place).refusal(conf)


def test_the_server_keeps_a_register(kubernetes):
    suite_of(kubernetes).conform()
    assert list(kubernetes.find("configmap", "ml", "train")["metadata"]["labels"].values()) == ["muster"]
    assert kubernetes.find("lease", "ml", "train")["spec"]["holderIdentity"] == "node"


def test_the_server_may_go_and_come_during_a_race(kubernetes):
    race = suite_of(kubernetes).begin(RACE)
    for _ in range(3):
        time.sleep(0.5)
        kubernetes.kill()
        kubernetes.start()
    suite_of(kubernetes).finish(race)


def test_others_that_change_the_config_map_do_not_matter(kubernetes):
    race = suite_of(kubernetes).begin(RACE)
    count = 0
    while race.poll() is None:
        count += kubernetes.try_kubectl("annotate", "-n", "ml", "configmap", "train", f"count={count}", "--overwrite").returncode == 0
    suite_of(kubernetes).finish(race)
    found = kubernetes.find("configmap", "ml", "train")["metadata"]
    assert count > 0 and found["annotations"]["count"] == str(count - 1), found


def test_a_killed_host_is_succeeded(kubernetes, make_kubernetes_job):
    job = make_kubernetes_job("2:3")
    start_nodes(job, 3, PATIENCE)
    job.started[0].kill()
    world = job.wait_for_world("node2", "node3", timeout=PATIENCE)
    assert world.restarts == {0} and len(job.worlds()) == 2, job.tell()
    world.end()
    assert job.succeeds(PATIENCE)
    assert list(kubernetes.find("configmap", "ml", "train")["data"]) == ["entry.job"]


def test_others_go_on_when_the_host_is_told_to_end(make_kubernetes_job):
    job = make_kubernetes_job("2:3")
    start_nodes(job, 3, PATIENCE)
    job.started[0].signal(signal.SIGTERM)
    world = job.wait_for_world("node2", "node3", timeout=PATIENCE)
    assert world.restarts == {0}, job.tell()
    world.end()
    assert [node.finish(PATIENCE).status for node in job.started] == [1, 0, 0], job.tell()


def test_workers_run_on_while_the_server_is_away(kubernetes, make_kubernetes_job):
    """And a host that dies meanwhile is succeeded when it is back."""
    job = make_kubernetes_job("2:3")
    first = start_nodes(job, 3, PATIENCE)
    kubernetes.kill()
    time.sleep(ABSENCE)
    assert all(worker.is_running() for worker in first.workers) and len(job.worlds()) == 1, job.tell()
    job.started[0].kill()
    kubernetes.start()
    world = job.wait_for_world("node2", "node3", timeout=PATIENCE)
    assert world.restarts == {0}, job.tell()
    world.end()
    assert job.succeeds(PATIENCE)


def test_all_nodes_may_be_killed_and_started_again(make_kubernetes_job):
    job = make_kubernetes_job("2")
    start_nodes(job, 2, PATIENCE).of("node2").end(3)
    assert job.wait_for_world("node1", "node2", timeout=PATIENCE).restarts == {1}
    for node in job.started:
        node.kill()
    for number in (1, 2):
        job.start(f"node{number}", address="127.0.0.1")
    world = job.wait_for_world("node1", "node2", timeout=PATIENCE)
    assert world.restarts == {1}, job.tell()
    world.end()
    assert job.succeeds(PATIENCE)


def test_a_token_that_is_not_known_is_refused(kubernetes, tmp_path):
    (tmp_path / "token").write_text("a.b.c", encoding="utf-8")
    told = refusal(kubernetes, conf=[f"k8s_server={kubernetes.url}", f"k8s_token_file={tmp_path}/token", kubernetes.conf[2]])
    assert f"Kubernetes ({kubernetes.url}): Unauthorized (HTTP status 401); it does not accept the token" in told


def test_an_account_without_the_role_is_refused(kubernetes, tmp_path):
    kubernetes.kubectl("apply", "-n", "ml", "-f", "-", sent='{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"other"}}')
    (tmp_path / "token").write_text(kubernetes.make_token("other"), encoding="utf-8")
    told = refusal(kubernetes, conf=[f"k8s_server={kubernetes.url}", f"k8s_token_file={tmp_path}/token", kubernetes.conf[2]])
    assert 'configmaps "train" is forbidden: User "system:serviceaccount:ml:other" cannot get resource "configmaps"' in told
    assert "(HTTP status 403); apply the Role and RoleBinding of examples/kubernetes/role.yaml" in told


def test_another_name_than_that_of_the_role_is_refused(kubernetes):
    assert "apply the Role and RoleBinding" in refusal(kubernetes, place="ml/other")


def test_a_config_map_of_somebody_else_is_left_alone(kubernetes):
    kubernetes.kubectl("create", "configmap", "-n", "ml", "train", "--from-literal=a=b")
    assert "ConfigMap train in namespace ml is not Muster's" in refusal(kubernetes)
    assert kubernetes.find("configmap", "ml", "train")["data"] == {"a": "b"}


def test_the_certificate_of_another_authority_is_refused(kubernetes):
    conf = [*kubernetes.conf[:2], f"k8s_ca={kubernetes.place}/other.pem"]
    assert "certificate" in refusal(kubernetes, conf=conf)


def test_plain_http_to_the_server_is_refused(kubernetes):
    conf = [f"k8s_server={kubernetes.url.replace('https', 'http')}", *kubernetes.conf[1:]]
    assert "write https:// in k8s_server" in refusal(kubernetes, conf=conf)


def run_one(muster, kubernetes, endpoint):
    return muster.run(
        ["run", "--nnodes", "2", "--rdzv-backend", "k8s", "--rdzv-endpoint", endpoint, "--rdzv-id", "job", "--local-addr",
         "127.0.0.1", "--rdzv-conf", ",".join(kubernetes.conf), "--no-python", "true"], timeout=PATIENCE)  # fmt: skip


def test_a_namespace_that_is_missing_is_one_error(muster, kubernetes):
    """To an account that may look there: to others it is one that they may not see."""
    end = run_one(muster, kubernetes, "nowhere/train")
    assert end.status == 1 and 'in the namespace "nowhere" (HTTP status 403)' in end.err, end
    kubernetes.kubectl("create", "clusterrole", "wide", "--verb=get,create,update", "--resource=configmaps,leases.coordination.k8s.io")
    kubernetes.kubectl("create", "clusterrolebinding", "wide", "--clusterrole=wide", "--serviceaccount=ml:train")
    try:
        wait_until(lambda: kubernetes.may("get", "configmaps", "nowhere"), "the permission")
        end = run_one(muster, kubernetes, "nowhere/train")
    finally:
        kubernetes.kubectl("delete", "clusterrolebinding,clusterrole", "wide")
    assert end.status == 1 and "there is no namespace 'nowhere'" in end.err, end


def test_the_role_is_accepted(kubernetes):
    said = kubernetes.kubectl("apply", "--dry-run=server", "-n", "ml", "-f", ROLE)
    assert len(said.splitlines()) == 3, said
