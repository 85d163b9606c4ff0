# SPDX-License-Identifier: BSD-3-Clause
"""The manifests of examples/kubernetes: what hangs together in them, and what Muster makes of the operators' variables. Their fields
are compared with the published schemas by interop/test_kubernetes_schemas.py."""

import re

import pytest

from support.binary import ROOT
from support.ports import free_port

yaml = pytest.importorskip("yaml", reason="python3-yaml is missing (Debian: apt install python3-yaml)")

# Those that start agents.
FILES = ["job.yaml", "jobset.yaml", "trainjob.yaml", "pytorchjob.yaml"]


def documents(name):
    return list(yaml.safe_load_all((ROOT / "examples/kubernetes" / name).read_text(encoding="utf-8")))


def of_kind(kind, name):
    (document,) = (document for document in documents(name) if document["kind"] == kind)
    return document


def dictionaries(value):
    """Every dictionary in it."""
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from dictionaries(part)


def job_specs(name):
    return [found for document in documents(name) for found in dictionaries(document) if "completionMode" in found]


def commands(name):
    found = [found["command"] for document in documents(name) for found in dictionaries(document) if "command" in found]
    assert found, name
    return found


@pytest.mark.parametrize("name", FILES)
def test_options_are_those_of_this_program(muster, name):
    shown = set(re.findall(r"--[a-z-]+", muster.run(["run", "--help"]).out))
    for command in commands(name):
        assert command[:2] == ["muster", "run"]
        script = next(i for i, word in enumerate(command[2:], 2) if not word.startswith("--"))
        assert {word.split("=")[0] for word in command[2:script]} - shown == set()
        assert command[script] == "train.py"


@pytest.mark.parametrize("name", ["job.yaml", "jobset.yaml"])
def test_rules_for_failed_pods_are_such_as_kubernetes_takes(name):
    (job,) = job_specs(name)
    rules = job["podFailurePolicy"]["rules"]
    pod = job["template"]["spec"]
    assert pod["restartPolicy"] == "Never"  # without it the rules are refused
    assert rules[0] == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    taken = []
    for rule in rules:
        assert rule["action"] in ("Ignore", "FailJob", "Count")
        assert len(rule) == 2  # an action, and one of the two kinds of requirement
        if "onExitCodes" in rule:
            assert rule["onExitCodes"]["operator"] == "In"
            assert rule["onExitCodes"]["containerName"] in [container["name"] for container in pod["containers"]]
            taken += rule["onExitCodes"]["values"]
    assert 0 not in taken and taken == sorted(set(taken)) and all(value <= 255 for value in taken)
    assert "--exit-code=worker" in commands(name)[0]


@pytest.mark.parametrize("name", ["job.yaml", "jobset.yaml"])
def test_nodes_are_as_many_as_pods_and_have_time_to_end(name):
    (job,) = job_specs(name)
    options = dict(word.split("=", 1) for word in commands(name)[0] if word.startswith("--"))
    least, most = map(int, options["--nnodes"].split(":"))
    assert least <= most == job["completions"] == job["parallelism"]
    assert int(options["--shutdown-timeout"]) < job["template"]["spec"]["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("name", ["job.yaml", "jobset.yaml"])
def test_every_mounted_volume_is_there(name):
    (job,) = job_specs(name)
    pod = job["template"]["spec"]
    mounted = {mount["name"] for container in pod["containers"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_pods_of_the_job_find_each_other_by_the_service():
    service, job = of_kind("Service", "job.yaml"), of_kind("Job", "job.yaml")
    options = dict(word.split("=", 1) for word in commands("job.yaml")[0] if word.startswith("--"))
    name = job["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": name}  # a label that Kubernetes gives to each pod of a Job
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert options["--rdzv-endpoint"].split(":")[0] == f"{name}-0.{service['metadata']['name']}"
    assert options["--local-addr"] == f"{name}-$(JOB_COMPLETION_INDEX).{service['metadata']['name']}"
    claims = [volume["persistentVolumeClaim"]["claimName"] for volume in job["spec"]["template"]["spec"]["volumes"]
              if "persistentVolumeClaim" in volume]
    assert claims == [of_kind("PersistentVolumeClaim", "job.yaml")["metadata"]["name"]]


def test_pods_of_the_set_find_each_other_by_its_names():
    spec = of_kind("JobSet", "jobset.yaml")["spec"]
    options = dict(word.split("=", 1) for word in commands("jobset.yaml")[0] if word.startswith("--"))
    start, subdomain = f"train-{spec['replicatedJobs'][0]['name']}-0-", spec["network"]["subdomain"]
    assert options["--rdzv-endpoint"].split(":")[0] == f"{start}0.{subdomain}"
    assert options["--local-addr"] == f"{start}$(JOB_COMPLETION_INDEX).{subdomain}"


def test_probes_and_token_are_where_the_agent_has_them():
    container = of_kind("Job", "job.yaml")["spec"]["template"]["spec"]["containers"][0]
    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
    (port,) = container["ports"]
    assert variables["TORCHELASTIC_HEALTH_CHECK_PORT"] == str(port["containerPort"])
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": port["name"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert f"--token-file={mounts['token']}/token" in container["command"]


def play(muster, environments):
    """Runs an agent in each of these environments; what their workers say."""
    script = ["run", "--no-python", "/bin/sh", "-c", "echo rank $RANK of $WORLD_SIZE, restarts $TORCHELASTIC_MAX_RESTARTS"]
    started = [muster.start(script, env=environment) for environment in environments]
    ends = [running.finish() for running in started]
    assert [end.status for end in ends] == [0] * len(ends), ends
    return sorted(line for end in ends for line in end.out.splitlines())


def test_the_variables_of_a_train_job_make_one_job(muster):
    port = free_port()
    common = {"PET_NNODES": 2, "PET_NPROC_PER_NODE": 2, "PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": port}
    said = play(muster, [{**common, "PET_NODE_RANK": rank} for rank in range(2)])
    assert said == [f"rank {rank} of 4, restarts 0" for rank in range(4)]


def test_the_variables_of_a_pytorch_job_make_one_job(muster):
    common = {"PET_NNODES": "2:2", "PET_NPROC_PER_NODE": 2, "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ID": "train",
              "PET_RDZV_ENDPOINT": f"127.0.0.1:{free_port()}", "PET_MAX_RESTARTS": 3}
    assert play(muster, [common, common]) == [f"rank {rank} of 4, restarts 3" for rank in range(4)]
