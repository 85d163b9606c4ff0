# SPDX-License-Identifier: BSD-3-Clause
"""Whether a manifest has only fields that its kind has, with values of their types, and all that are required.

The kinds of Kubernetes itself, and their parts in other kinds, are judged by the schemas that Kubernetes publishes
(kubernetes_validate.js, with a package that `make peers` installs). No such package has JobSet, TrainJob with its runtime, and PyTorchJob. Their
fields, as far as the examples use them, are listed here by name and type, as the schemas say that those projects publish:
JobSet's v1alpha2, v1alpha1 of the Kubeflow Trainer, v1 of Kubeflow's training operator. They were read in 2026."""

import json
import os
import pathlib
import shutil
import subprocess

from support.peers import DEFAULT_ROOT, give_up

PROGRAM = pathlib.Path(__file__).with_suffix("").with_name("kubernetes_validate.js")

CORE, BATCH, ACCESS, META = "IoK8sApiCoreV1", "IoK8sApiBatchV1", "IoK8sApiRbacV1", "IoK8sApimachineryPkgApisMetaV1"
HEAD = {"apiVersion": "str", "kind": "str", "metadata": f"{META}ObjectMeta"}

# {type: ({field: its type}, the fields that are required), or another name of a type}
BY_HAND = {
    "JobSet": ({**HEAD, "spec": "JobSetSpec"}, {"metadata", "spec"}),
    "JobSetSpec": ({"replicatedJobs": "list[ReplicatedJob]", "network": "JobSetNetwork", "failurePolicy": "JobSetFailurePolicy"},
                   {"replicatedJobs"}),
    "ReplicatedJob": ({"name": "str", "replicas": "int", "template": f"{BATCH}JobTemplateSpec"}, {"name", "template"}),
    "JobSetNetwork": ({"enableDNSHostnames": "bool", "subdomain": "str", "publishNotReadyAddresses": "bool"}, set()),
    "JobSetFailurePolicy": ({"maxRestarts": "int", "rules": "list[JobSetFailurePolicyRule]"}, set()),
    "JobSetFailurePolicyRule": ({"name": "str", "targetReplicatedJobs": "list[str]", "onJobFailureReasons": "list[JobFailureReason]",
                                 "action": "one of FailJobSet RestartJobSet RestartJobSetAndIgnoreMaxRestarts"}, {"action"}),
    "JobFailureReason": "one of BackoffLimitExceeded DeadlineExceeded FailedIndexes MaxFailedIndexesExceeded PodFailurePolicy",
    "TrainingRuntime": ({**HEAD, "spec": "TrainingRuntimeSpec"}, {"metadata", "spec"}),
    "TrainingRuntimeSpec": ({"mlPolicy": "MlPolicy", "template": "JobSetTemplate"}, {"template"}),
    "MlPolicy": ({"numNodes": "int", "torch": "TorchPolicy"}, set()),
    "TorchPolicy": ({"numProcPerNode": "int"}, set()),
    "JobSetTemplate": ({"metadata": f"{META}ObjectMeta", "spec": "JobSetSpec"}, set()),
    "TrainJob": ({**HEAD, "spec": "TrainJobSpec"}, {"metadata", "spec"}),
    "TrainJobSpec": ({"runtimeRef": "RuntimeRef", "trainer": "Trainer"}, {"runtimeRef"}),
    "RuntimeRef": ({"name": "str", "apiGroup": "str", "kind": "str"}, {"name"}),
    "Trainer": ({"image": "str", "command": "list[str]", "args": "list[str]", "env": f"list[{CORE}EnvVar]", "numNodes": "int",
                 "numProcPerNode": "int", "resourcesPerNode": f"{CORE}ResourceRequirements"}, set()),
    "PyTorchJob": ({**HEAD, "spec": "PyTorchJobSpec"}, {"metadata", "spec"}),
    "PyTorchJobSpec": ({"pytorchReplicaSpecs": "dict(str, ReplicaSpec)", "elasticPolicy": "ElasticPolicy", "nprocPerNode": "str",
                        "runPolicy": "RunPolicy"},
                       {"pytorchReplicaSpecs"}),
    "RunPolicy": ({"backoffLimit": "int"}, set()),
    "ReplicaSpec": ({"replicas": "int", "restartPolicy": "one of Always OnFailure Never ExitCode",
                     "template": f"{CORE}PodTemplateSpec"}, set()),
    "ElasticPolicy": ({"rdzvBackend": "one of c10d etcd etcd-v2", "minReplicas": "int", "maxReplicas": "int", "maxRestarts": "int"}, set()),
}

KINDS = {
    ("v1", "Service"): f"{CORE}Service",
    ("v1", "PersistentVolumeClaim"): f"{CORE}PersistentVolumeClaim",
    ("v1", "ServiceAccount"): f"{CORE}ServiceAccount",
    ("v1", "ConfigMap"): f"{CORE}ConfigMap",
    ("coordination.k8s.io/v1", "Lease"): "IoK8sApiCoordinationV1Lease",
    ("rbac.authorization.k8s.io/v1", "Role"): f"{ACCESS}Role",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): f"{ACCESS}RoleBinding",
    ("batch/v1", "Job"): f"{BATCH}Job",
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): "JobSet",
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): "TrainJob",
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): "TrainingRuntime",
    ("kubeflow.org/v1", "PyTorchJob"): "PyTorchJob",
}

PLAIN = {"str": str, "int": int, "bool": bool}


def find_modules():
    """Where `make peers` has put the compiled schemas, or why they cannot be had: (path, None) or (None, why)."""
    modules = pathlib.Path(os.environ.get("PEER_ROOT", DEFAULT_ROOT)).parent / "kubernetes" / "node_modules"
    if shutil.which("node") is None:
        return None, "node is missing; run `make peers`"
    if not (modules / "kubernetes-models").exists():
        return None, f"Kubernetes' schemas are not in {modules}; run `make peers`"
    return modules, None


class Schemas:
    """A running kubernetes_validate.js. End it with end()."""

    def __init__(self):
        modules, obstacle = find_modules()
        if obstacle is not None:
            give_up(obstacle)
        self.program = subprocess.Popen(["node", PROGRAM, modules], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def end(self):
        self.program.stdin.close()
        self.program.wait(60)

    def complaints_of(self, document):
        """A line for each thing that is wrong."""
        kind = KINDS.get((document.get("apiVersion"), document.get("kind")))
        return [f"unknown kind {document.get('kind')}"] if kind is None else self.complaints(document, kind, document["kind"])

    def complaints(self, value, kind, where):
        if kind.startswith("IoK8s"):
            return [where + complaint for complaint in self.ask(kind, value)]
        if kind in PLAIN:
            is_right = isinstance(value, PLAIN[kind]) and (kind == "bool" or not isinstance(value, bool))
            return [] if is_right else [f"{where} is not of the type {kind}"]
        if kind.startswith("one of "):
            return [] if value in kind.split()[2:] else [f"{where} is not {kind}"]
        if isinstance(BY_HAND.get(kind), str):
            return self.complaints(value, BY_HAND[kind], where)
        if kind.startswith(("list[", "dict(")):
            return self.complaints_of_many(value, kind, where)
        return self.complaints_of_object(value, kind, where)

    def complaints_of_many(self, value, kind, where):
        container, inner = (list, kind[5:-1]) if kind.startswith("list[") else (dict, kind[5:-1].split(", ")[1])
        if not isinstance(value, container):
            return [f"{where} is not of the type {container.__name__}"]
        parts = enumerate(value) if container is list else value.items()
        return [line for key, part in parts for line in self.complaints(part, inner, f"{where}/{key}")]

    def complaints_of_object(self, value, kind, where):
        if not isinstance(value, dict):
            return [f"{where} is not of the type {kind}"]
        fields, required = BY_HAND[kind]
        found = [f"{where}/{name} is missing" for name in sorted(required - set(value))]
        for name, part in value.items():
            found += self.complaints(part, fields[name], f"{where}/{name}") if name in fields else [f"{where}/{name} is unknown"]
        return found

    def ask(self, schema, value):
        self.program.stdin.write(json.dumps([schema, value]) + "\n")
        self.program.stdin.flush()
        return json.loads(self.program.stdout.readline())
