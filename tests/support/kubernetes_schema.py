# SPDX-License-Identifier: BSD-3-Clause
"""Whether a manifest has only fields that its kind has, with values of their types, and all that are required.

The kinds of Kubernetes itself are taken from the models of its Python client, which are generated from the schema that
Kubernetes publishes. Debian's client is of Kubernetes 1.22, so what came later is added here. JobSet, TrainJob and PyTorchJob
are not in it. Their fields, as far as the examples use them, are listed here by name and type, as the types say that those projects
publish and make their schemas from: JobSet's v1alpha2, v1alpha1 of the Kubeflow Trainer, v1 of Kubeflow's training operator. They
were read in 2026, and not tried on a cluster."""

import kubernetes.client.models as models
from kubernetes.client import Configuration

# What is newer than the client: {type: {field: its type}}. A name without a model is one of the types below.
NEWER = {"V1JobSpec": {"podFailurePolicy": "PodFailurePolicy"}}

# {type: ({field: its type}, the fields that are required)}
BY_HAND = {
    "PodFailurePolicy": ({"rules": "list[PodFailurePolicyRule]"}, {"rules"}),
    "PodFailurePolicyRule": ({"action": "one of Ignore FailIndex FailJob Count", "onExitCodes": "OnExitCodes", "onPodConditions": "list[OnPodCondition]"}, {"action"}),
    "OnExitCodes": ({"containerName": "str", "operator": "one of In NotIn", "values": "list[int]"}, {"operator", "values"}),
    "OnPodCondition": ({"type": "str", "status": "str"}, {"type", "status"}),
    "JobSet": ({"apiVersion": "str", "kind": "str", "metadata": "V1ObjectMeta", "spec": "JobSetSpec"}, {"metadata", "spec"}),
    "JobSetSpec": ({"replicatedJobs": "list[ReplicatedJob]", "network": "JobSetNetwork", "failurePolicy": "JobSetFailurePolicy"},
                   {"replicatedJobs"}),
    "ReplicatedJob": ({"name": "str", "replicas": "int", "template": "V1JobTemplateSpec"}, {"name", "template"}),
    "JobSetNetwork": ({"enableDNSHostnames": "bool", "subdomain": "str", "publishNotReadyAddresses": "bool"}, set()),
    "JobSetFailurePolicy": ({"maxRestarts": "int"}, set()),
    "TrainJob": ({"apiVersion": "str", "kind": "str", "metadata": "V1ObjectMeta", "spec": "TrainJobSpec"}, {"metadata", "spec"}),
    "TrainJobSpec": ({"runtimeRef": "RuntimeRef", "trainer": "Trainer"}, {"runtimeRef"}),
    "RuntimeRef": ({"name": "str", "apiGroup": "str", "kind": "str"}, {"name"}),
    "Trainer": ({"image": "str", "command": "list[str]", "args": "list[str]", "env": "list[V1EnvVar]", "numNodes": "int",
                 "numProcPerNode": "int", "resourcesPerNode": "V1ResourceRequirements"}, set()),
    "PyTorchJob": ({"apiVersion": "str", "kind": "str", "metadata": "V1ObjectMeta", "spec": "PyTorchJobSpec"}, {"metadata", "spec"}),
    "PyTorchJobSpec": ({"pytorchReplicaSpecs": "dict(str, ReplicaSpec)", "elasticPolicy": "ElasticPolicy", "nprocPerNode": "str"},
                       {"pytorchReplicaSpecs"}),
    "ReplicaSpec": ({"replicas": "int", "restartPolicy": "one of Always OnFailure Never ExitCode",
                     "template": "V1PodTemplateSpec"}, set()),
    "ElasticPolicy": ({"rdzvBackend": "one of c10d etcd etcd-v2", "minReplicas": "int", "maxReplicas": "int", "maxRestarts": "int"}, set()),
}

KINDS = {
    ("v1", "Service"): "V1Service",
    ("v1", "PersistentVolumeClaim"): "V1PersistentVolumeClaim",
    ("v1", "ServiceAccount"): "V1ServiceAccount",
    ("rbac.authorization.k8s.io/v1", "Role"): "V1Role",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): "V1RoleBinding",
    ("batch/v1", "Job"): "V1Job",
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): "JobSet",
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): "TrainJob",
    ("kubeflow.org/v1", "PyTorchJob"): "PyTorchJob",
}

PLAIN = {"str": str, "int": int, "bool": bool, "float": (int, float), "datetime": str}


def fields_of(kind):
    """({field: its type}, the fields that are required)."""
    if kind in BY_HAND:
        return BY_HAND[kind]
    model = getattr(models, kind)
    fields = {model.attribute_map[name]: type_ for name, type_ in model.openapi_types.items()}
    empty = model.__new__(model)
    empty.local_vars_configuration = Configuration()
    required = set()
    for name, field in model.attribute_map.items():
        try:
            setattr(empty, name, None)
        except ValueError:  # "must not be None"
            required.add(field)
    return {**fields, **NEWER.get(kind, {})}, required


def complaints(value, kind, where):
    """A line for each field that is wrong."""
    if kind in PLAIN:
        is_right = isinstance(value, PLAIN[kind]) and (kind == "bool" or not isinstance(value, bool))
        return [] if is_right else [f"{where} is {value!r}, which is no {kind}"]
    if kind.startswith("one of "):
        return [] if value in kind.split()[2:] else [f"{where} is {value!r}, which is not {kind}"]
    if kind == "object":
        return []
    if kind.startswith(("list[", "dict(")):
        return complaints_of_many(value, kind, where)
    if not isinstance(value, dict):
        return [f"{where} is {value!r}, which is no {kind}"]
    fields, required = fields_of(kind)
    found = [f"{where}.{name} is missing" for name in sorted(required - set(value))]
    for name, part in value.items():
        found += complaints(part, fields[name], f"{where}.{name}") if name in fields else [f"{where}.{name} is unknown"]
    return found


def complaints_of_many(value, kind, where):
    container, inner = (list, kind[5:-1]) if kind.startswith("list[") else (dict, kind[5:-1].split(", ")[1])
    if not isinstance(value, container):
        return [f"{where} is {value!r}, which is no {container.__name__}"]
    parts = enumerate(value) if container is list else value.items()
    return [line for key, part in parts for line in complaints(part, inner, f"{where}[{key}]")]


def complaints_of_document(document):
    kind = KINDS.get((document.get("apiVersion"), document.get("kind")))
    return [f"unknown kind {document.get('kind')}"] if kind is None else complaints(document, kind, document["kind"])
