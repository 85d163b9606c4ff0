# SPDX-License-Identifier: BSD-3-Clause
"""The register of a job at a server that keeps to Kubernetes' rules: the cases of all registers, faults of the server, and clients
that are not let in."""

import json
import os
import shutil

import pytest

from support.etcd import make_certificates
from support.kubernetes import Kubernetes
from support.registers import RACE, READ, RegisterCases, Suite

# On a machine that does much else, a race may take its time.
pytestmark = pytest.mark.timeout(900)

PLACE = "ml/train"


@pytest.fixture
def make_kubernetes(tmp_path):
    started = []

    def make(**how):
        place = tmp_path / f"kubernetes{len(started)}"
        place.mkdir()
        started.append(Kubernetes(place, **how))
        return started[-1]

    yield make
    for kubernetes in started:
        kubernetes.end()


@pytest.fixture
def trust(tmp_path):
    if shutil.which("openssl") is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("openssl not found (Debian: apt install openssl)")
    make_certificates(tmp_path)
    return tmp_path


def suite_of(kubernetes):
    return Suite("k8s", PLACE, kubernetes.conf)


def conform(kubernetes, pattern):
    suite_of(kubernetes).conform(pattern)


def refusal(kubernetes, conf=None):
    output = suite_of(kubernetes).refusal(conf)
    assert "first-token" not in output, output
    return output


class Served:
    def __init__(self, kubernetes):
        self.kubernetes, self.suite, self.name = kubernetes, suite_of(kubernetes), f"Kubernetes ({kubernetes.url}): "
        self.start, self.go_on = kubernetes.start, kubernetes.speak
        kubernetes.sends_bookmarks = True  # others are told how far they are

    def stop(self):
        """Once it was asked, if it is."""
        self.kubernetes.heard.wait(5)
        self.kubernetes.stop()

    def stand_still(self):
        self.kubernetes.fall_silent()

    def forget(self):
        self.kubernetes.forget_changes()
        self.kubernetes.heard.wait(1)
        self.kubernetes.heard.clear()
        return self.kubernetes.watches > 6

    def forbid_writes(self):
        self.kubernetes.forbidden = {("create", "configmaps"), ("update", "configmaps")}
        return ['cannot create resource "configmaps" in API group "" in the namespace "ml" (HTTP status 403)',
                "apply the Role and RoleBinding of examples/kubernetes/role.yaml"]  # fmt: skip

    def fill(self):
        labels = {"app.kubernetes.io/managed-by": "muster"}
        self.kubernetes.put("configmaps", "ml", "train", metadata={"labels": labels}, data={"a": "x" * ((1 << 20) - 10)})
        return ["(HTTP status 422); a ConfigMap holds 1 MiB: remove the entries of jobs that are over"]


class TestKubernetesAsAnyRegister(RegisterCases):
    @pytest.fixture
    def served(self, make_kubernetes):
        return Served(make_kubernetes())


def test_objects_say_whose_they_are(make_kubernetes):
    kubernetes = make_kubernetes()
    conform(kubernetes, READ)
    conform(kubernetes, "renewal_changes_each_time_and_only_then")
    config_map, lease = (kubernetes.find(kind, "ml", "train") for kind in ("configmaps", "leases"))
    assert config_map["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "muster"}
    assert all(name.startswith("entry.conformance_20") for name in config_map["data"]), config_map["data"].keys()
    assert lease["spec"]["holderIdentity"] == "node"


def test_replies_of_the_server_may_be_lost(make_kubernetes):
    """The change is made; who asked for it does not hear so."""
    kubernetes = make_kubernetes()
    kubernetes.lost_in_ten = 3
    conform(kubernetes, RACE)
    conform(kubernetes, "old_number_is_never_won_again")
    assert any(code is None for _, _, code in kubernetes.requests)


@pytest.mark.parametrize("refusals", [
    [(503, {}), (500, {}), (504, {})],
    [(429, {"Retry-After": "1"}), (429, {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}), (408, {})],
])  # fmt: skip
def test_a_server_that_cannot_answer_now_is_asked_again(make_kubernetes, refusals):
    kubernetes = make_kubernetes()
    kubernetes.refusals = refusals * 3
    conform(kubernetes, READ)
    assert not kubernetes.refusals


def test_a_server_that_has_just_started_may_know_no_token_and_no_role_yet(make_kubernetes):
    kubernetes = make_kubernetes()
    kubernetes.refusals = [(401, {}), (403, {}), (403, {})]
    conform(kubernetes, READ)
    assert not kubernetes.refusals


def test_others_that_change_the_config_map_do_not_matter(make_kubernetes):
    """What they have put there stays. After some changes they rest: on a slow machine each of them would meet an append."""
    kubernetes = make_kubernetes()
    labels = {"app.kubernetes.io/managed-by": "muster", "team": "vision"}
    kubernetes.put("configmaps", "ml", "train", metadata={"labels": labels, "ownerReferences": [{"uid": "x"}]}, data={"a": "é"})
    race = suite_of(kubernetes).begin(RACE)
    count = 0
    while race.poll() is None and count < 100:
        kubernetes.heard.wait(60)
        kubernetes.heard.clear()
        count += 1
        kubernetes.annotate("configmaps", "ml", "train", str(count))
    suite_of(kubernetes).finish(race)
    found = kubernetes.find("configmaps", "ml", "train")
    assert found["metadata"]["labels"] == labels and found["metadata"]["ownerReferences"] == [{"uid": "x"}]
    assert found["data"]["a"] == "é" and found["metadata"]["annotations"] == {"count": str(count)}


def test_a_token_that_is_replaced_is_read_again(make_kubernetes):
    kubernetes = make_kubernetes()
    kubernetes.tokens.add("the-second-token")

    def replace(count):
        if count == 20:
            kubernetes.write_token("the-second-token")

    kubernetes.before_request = replace
    conform(kubernetes, RACE)
    assert kubernetes.seen_tokens[0] == "the-first-token" and kubernetes.seen_tokens[-1] == "the-second-token"


def test_tls_wants_the_right_authority(make_kubernetes, trust):
    kubernetes = make_kubernetes(trust=trust)
    conform(kubernetes, READ)
    token = f"k8s_token_file={kubernetes.token_file}"
    assert "certificate" in refusal(kubernetes, [f"k8s_server={kubernetes.url}", token, f"k8s_ca={trust}/other.pem"])
    assert "certificate" in refusal(kubernetes, [f"k8s_server={kubernetes.url}", token])
    plain = kubernetes.url.replace("https", "http")
    assert "write https:// in k8s_server" in refusal(kubernetes, [f"k8s_server={plain}", token])


def test_tls_to_a_server_without_it_is_refused(make_kubernetes):
    kubernetes = make_kubernetes()
    server = kubernetes.url.replace("http", "https")
    assert server in refusal(kubernetes, [f"k8s_server={server}", f"k8s_token_file={kubernetes.token_file}"])


def test_who_is_not_known_is_told(make_kubernetes):
    kubernetes = make_kubernetes()
    told = refusal(kubernetes, [f"k8s_server={kubernetes.url}"])
    assert f"Kubernetes ({kubernetes.url}): Unauthorized (HTTP status 401)" in told
    kubernetes.write_token("another-token")
    told = refusal(kubernetes)
    assert "the token of the service account" in told and "another-token" not in told


def test_who_may_not_is_told_what_is_missing(make_kubernetes):
    kubernetes = make_kubernetes()
    kubernetes.forbidden = {("get", "configmaps")}
    told = refusal(kubernetes)
    assert 'cannot get resource "configmaps" in API group "" in the namespace "ml" (HTTP status 403)' in told
    assert "apply the Role and RoleBinding of examples/kubernetes/role.yaml" in told


def test_a_config_map_of_somebody_else_is_left_alone(make_kubernetes):
    kubernetes = make_kubernetes()
    kubernetes.put("configmaps", "ml", "train", data={"settings.ini": "[a]"})
    told = refusal(kubernetes)
    assert "ConfigMap train in namespace ml is not Muster's: it lacks the label app.kubernetes.io/managed-by=muster" in told
    assert kubernetes.find("configmaps", "ml", "train")["data"] == {"settings.ini": "[a]"}
    assert all(method == "GET" for method, _, _ in kubernetes.requests)


def test_other_servers_are_found_out(make_kubernetes):
    kubernetes = make_kubernetes()
    kubernetes.page = b"<html>welcome</html>"
    assert "what answers there is no API server of Kubernetes (HTTP status 200)" in refusal(kubernetes)


def test_the_server_itself_keeps_the_rules(make_kubernetes):
    """What the tests rely on: no update without the version, no object twice, no object in a namespace that is missing."""
    kubernetes = make_kubernetes()
    headers = {"authorization": "Bearer the-first-token"}

    def ask(method, path, **sent):
        code, reply, _ = kubernetes.decide(method, path, headers, json.dumps(sent).encode())
        return code, json.loads(reply)

    folder = "/apis/coordination.k8s.io/v1/namespaces/ml/leases"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "train"}}
    assert ask("GET", f"{folder}/train")[0] == 404
    assert ask("GET", f"{folder}/other")[0] == 403
    code, made = ask("POST", folder, **lease)
    assert code == 201
    assert ask("POST", folder, **lease)[1]["reason"] == "AlreadyExists"
    assert ask("POST", folder.replace("ml", "nowhere"), **lease)[0] == 404
    assert ask("PUT", f"{folder}/train", **lease)[0] == 422
    changed = {**made, "spec": {"holderIdentity": "x"}}
    code, now = ask("PUT", f"{folder}/train", **changed)
    assert code == 200 and int(now["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert ask("PUT", f"{folder}/train", **changed)[1]["reason"] == "Conflict"
    assert ask("PUT", f"{folder}/train", **now) == (200, now)
    kubernetes.delete("leases", "ml", "train")
    assert ask("PUT", f"{folder}/train", **now)[0] == 404
    assert ask("POST", folder, **lease)[0] == 201
    assert ask("PUT", f"{folder}/train", **now)[1]["reason"] == "Conflict"
