# SPDX-License-Identifier: BSD-3-Clause
"""The manifests of examples/kubernetes, and the objects that a register keeps in Kubernetes, by the schemas that Kubernetes
publishes (support.kubernetes_schema)."""

import copy
import os
import pathlib
import re
import signal
import subprocess

import pytest

from support.binary import ROOT
from support.kubernetes import Kubernetes
from support.kubernetes_schema import KINDS, Schemas

yaml = pytest.importorskip("yaml", reason="python3-yaml is missing (Debian: apt install python3-yaml)")

EXAMPLES = ROOT / "examples/kubernetes"
CONFORMANCE = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build")) / "tests/register_conformance"
# What the agent makes itself is in no example.
MADE_BY_THE_AGENT = {("v1", "ConfigMap"), ("coordination.k8s.io/v1", "Lease")}


@pytest.fixture(scope="module")
def schemas():
    running = Schemas()
    yield running
    running.end()


def documents(path):
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_a_manifest_keeps_to_the_published_schema(schemas, path):
    for document in documents(path):
        assert schemas.complaints_of(document) == []


def test_the_rule_in_the_documents_is_one_that_kubernetes_takes(schemas):
    page = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^    - action: .*\n(?:     +.*\n)+", page, re.MULTILINE)
    (rule,) = yaml.safe_load(block)
    assert rule["onExitCodes"]["values"] == [17, 128 + signal.SIGBUS]
    assert schemas.complaints(rule, "IoK8sApiBatchV1PodFailurePolicyRule", "rule") == []


def test_every_kind_that_is_known_has_an_example():
    found = {(document["apiVersion"], document["kind"]) for path in EXAMPLES.glob("*.yaml") for document in documents(path)}
    assert found == set(KINDS) - MADE_BY_THE_AGENT


POD_OF_JOB = ("spec", "template", "spec")
CONTAINER_OF_JOB = (*POD_OF_JOB, "containers", 0)
JOB_OF_SET = ("spec", "replicatedJobs", 0, "template", "spec")
POD_OF_SET = (*JOB_OF_SET, "template", "spec")
POD_OF_RUNTIME = ("spec", "template", *POD_OF_SET)
POD_OF_PYTORCH_JOB = ("spec", "pytorchReplicaSpecs", "Worker", "template", "spec")


def broken(document, path, value):
    """The document with another value at the end of the path, or without it."""
    other = copy.deepcopy(document)
    at = other
    for step in path[:-1]:
        at = at[step]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return other


@pytest.mark.parametrize("kind, path, value, complaint", [
    ("Job", ("spec", "template"), None, "is missing"),
    ("Job", ("spec", "completion"), 4, "is unknown"),
    ("Job", ("spec", "completions"), "4", "is not of the type integer"),
    ("Job", ("spec", "podFailurePolicy", "rules", 0, "action"), None, "is missing"),
    ("Job", ("spec", "podFailurePolicy", "rules", 1, "onExitCodes", "values", 0), "2", "is not of the type integer"),
    ("Job", ("spec", "podFailurePolicy", "rules", 1, "onExitCodes", "value"), 2, "is unknown"),
    ("Job", (*CONTAINER_OF_JOB, "name"), None, "is missing"),
    ("Job", (*CONTAINER_OF_JOB, "env", 1, "value"), 8080, "is not of the type string"),
    ("Job", (*CONTAINER_OF_JOB, "livenessProbe", "httpGet", "pathe"), "/health", "is unknown"),
    ("Job", (*CONTAINER_OF_JOB, "resources", "limit"), {}, "is unknown"),
    ("Job", (*POD_OF_JOB, "volumes"), {"name": "x"}, "is not of the type array"),
    ("Job", ("metadata", "label"), {}, "is unknown"),
    ("Service", ("spec", "publishNotReadyAdresses"), True, "is unknown"),
    ("PersistentVolumeClaim", ("spec", "accessModes"), "ReadWriteMany", "is not of the type array"),
    ("Role", ("rules", 0, "verbs"), None, "is missing"),
    ("RoleBinding", ("roleRef",), None, "is missing"),
    ("ServiceAccount", ("automountServiceAccountToken",), "no", "is not of the type boolean"),
    ("JobSet", ("spec", "network", "domain"), "train", "is unknown"),
    ("JobSet", (*JOB_OF_SET, "backoffLimits"), 3, "is unknown"),
    ("JobSet", ("spec", "failurePolicy", "rules", 0, "action"), "FailJob",
     "is not one of FailJobSet RestartJobSet RestartJobSetAndIgnoreMaxRestarts"),
    ("JobSet", ("spec", "failurePolicy", "rules", 0, "onJobFailureReasons", 0), "ExitCode",
     "is not one of BackoffLimitExceeded DeadlineExceeded FailedIndexes MaxFailedIndexesExceeded PodFailurePolicy"),
    ("TrainingRuntime", ("spec", "mlPolicy", "numNode"), 4, "is unknown"),
    ("TrainingRuntime", (*POD_OF_RUNTIME, "volume"), [], "is unknown"),
    ("JobSet", (*JOB_OF_SET, "backoffLimit"), "3", "is not of the type integer"),
    ("JobSet", (*POD_OF_SET, "terminationGraceSeconds"), 60, "is unknown"),
    ("JobSet", (*POD_OF_SET, "containers", 0, "volumeMounts", 0, "mountPath"), None, "is missing"),
    ("TrainJob", ("spec", "trainer", "nodes"), 4, "is unknown"),
    ("TrainJob", ("spec", "trainer", "resourcesPerNode", "limit"), {}, "is unknown"),
    ("PyTorchJob", ("spec", "nprocPerNode"), 4, "is not of the type str"),
    ("PyTorchJob", ("spec", "elasticPolicy", "rdzvBackend"), "static", "is not one of c10d etcd etcd-v2"),
    ("PyTorchJob", (*POD_OF_PYTORCH_JOB, "container"), [], "is unknown"),
    ("PyTorchJob", (*POD_OF_PYTORCH_JOB, "containers"), None, "is missing"),
], ids=lambda value: value if isinstance(value, str) else None)  # fmt: skip
def test_a_mistake_is_found(schemas, kind, path, value, complaint):
    document = next(document for file in sorted(EXAMPLES.glob("*.yaml")) for document in documents(file) if document["kind"] == kind)
    assert schemas.complaints_of(broken(document, path, value)) == [f"{'/'.join([kind, *map(str, path)])} {complaint}"]


def test_an_unknown_kind_is_found(schemas):
    assert schemas.complaints_of({"apiVersion": "batch/v1", "kind": "Jobs"}) == ["unknown kind Jobs"]


@pytest.mark.timeout(900)  # on a machine that does much else
def test_a_register_keeps_objects_of_the_published_schemas(schemas, tmp_path):
    """What a conformance test of the register leaves at a server."""
    kubernetes = Kubernetes(tmp_path)
    try:
        for pattern in ("reader_sees_a_chain_that_only_grows", "renewal_changes_each_time_and_only_then"):
            subprocess.run([CONFORMANCE, "k8s", "ml/train", pattern, *kubernetes.conf], check=True, stdout=subprocess.DEVNULL)
        for kind in ("configmaps", "leases"):
            kept = kubernetes.find(kind, "ml", "train")
            kept["metadata"].pop("managedFields")  # the server's own, of no fixed form
            assert schemas.complaints_of(kept) == []
    finally:
        kubernetes.end()
