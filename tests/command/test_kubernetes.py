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


def text_of(name):
    return (ROOT / "examples/kubernetes" / name).read_text(encoding="utf-8")


def documents(name):
    return list(yaml.safe_load_all(text_of(name)))


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


def pods(name):
    """The `spec` of each kind of pod that the manifest makes."""
    found = [found for document in documents(name) for found in dictionaries(document) if "containers" in found]
    assert len(found) == 1, name
    return found


def options_of(name):
    (command,) = commands(name)
    return dict(word.split("=", 1) for word in command if word.startswith("--"))


@pytest.mark.parametrize("name", FILES)
def test_checkpoints_are_kept_in_a_volume_that_the_manifest_claims(name):
    (pod,) = pods(name)
    (container,) = pod["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert set(mounts) == set(volumes)
    claim = of_kind("PersistentVolumeClaim", name)
    assert volumes["checkpoints"]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert options_of(name)["--checkpoint"].startswith(mounts["checkpoints"] + "/")


@pytest.mark.parametrize("name", FILES)
def test_workers_of_a_pod_have_shared_memory(name):
    (pod,) = pods(name)
    (mount,) = (mount for mount in pod["containers"][0]["volumeMounts"] if mount["mountPath"] == "/dev/shm")
    (volume,) = (volume for volume in pod["volumes"] if volume["name"] == mount["name"])
    assert volume["emptyDir"]["medium"] == "Memory"


@pytest.mark.parametrize("name", FILES)
def test_strangers_are_kept_out_by_a_token_from_a_secret(name):
    (pod,) = pods(name)
    (volume,) = (volume for volume in pod["volumes"] if "secret" in volume)
    (mount,) = (mount for mount in pod["containers"][0]["volumeMounts"] if mount["name"] == volume["name"])
    assert options_of(name)["--token-file"] == f"{mount['mountPath']}/token" and mount["readOnly"]
    made = re.search(r"^#     kubectl create secret generic (\S+) --from-literal=token=", text_of(name), re.MULTILINE)
    assert made[1] == volume["secret"]["secretName"]


@pytest.mark.parametrize("name", FILES)
def test_probes_ask_where_the_agent_answers(name):
    (container,) = pods(name)[0]["containers"]
    variables = {variable["name"]: variable.get("value") for variable in container["env"]}
    (port,) = container["ports"]
    assert variables["TORCHELASTIC_HEALTH_CHECK_PORT"] == str(port["containerPort"])
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": port["name"]}


@pytest.mark.parametrize("name", FILES)
def test_a_pod_that_is_told_to_end_has_time_to_save(name):
    (pod,) = pods(name)
    assert int(options_of(name)["--shutdown-timeout"]) < pod["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("name", FILES)
def test_a_pod_may_rendezvous_by_the_api_server(name):
    """Each manifest is applied alone, so it brings what role.yaml has."""
    role = documents("role.yaml")
    assert [document for document in documents(name) if document["kind"] in ("ServiceAccount", "Role", "RoleBinding")] == role
    assert pods(name)[0]["serviceAccountName"] == of_kind("ServiceAccount", name)["metadata"]["name"]


@pytest.mark.parametrize("name", FILES)
def test_the_status_of_a_pod_is_that_of_the_worker_that_failed_first(name):
    assert options_of(name)["--exit-code"] == "worker"


@pytest.mark.parametrize("name", ["job.yaml", "jobset.yaml", "trainjob.yaml"])
def test_rules_for_failed_pods_are_such_as_kubernetes_takes(name):
    (rules,) = (found["podFailurePolicy"]["rules"] for document in documents(name) for found in dictionaries(document)
                if "podFailurePolicy" in found)
    (pod,) = pods(name)
    assert pod["restartPolicy"] == "Never"  # without it the rules are refused
    assert rules[0] == {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    taken = {}
    for rule in rules[1:]:
        assert set(rule) == {"action", "onExitCodes"}  # an action, and one of the two kinds of requirement
        assert rule["onExitCodes"]["operator"] == "In"
        assert rule["onExitCodes"]["containerName"] in [container["name"] for container in pod["containers"]]
        taken[rule["action"]] = rule["onExitCodes"]["values"]
    assert taken == {"FailJob": [2], "Count": [128 + number for number in (4, 6, 7, 9, 11)]}


@pytest.mark.parametrize("name", ["jobset.yaml", "trainjob.yaml"])
def test_a_set_does_not_try_a_mistake_again(name):
    """Its Job fails by its rule for status 2, which is the reason that the set goes by."""
    (policy,) = (found["failurePolicy"] for document in documents(name) for found in dictionaries(document) if "failurePolicy" in found)
    (rule,) = policy["rules"]
    assert policy["maxRestarts"] > 0
    assert (rule["action"], rule["onJobFailureReasons"]) == ("FailJobSet", ["PodFailurePolicy"])


def test_a_pytorch_job_does_not_try_a_mistake_again():
    """The operator tries statuses of 128 and more again with this policy, and no others."""
    worker = of_kind("PyTorchJob", "pytorchjob.yaml")["spec"]["pytorchReplicaSpecs"]["Worker"]
    assert worker["restartPolicy"] == "ExitCode"
    assert "restartPolicy" not in worker["template"]["spec"]  # the operator sets it, and warns of another


@pytest.mark.parametrize("name", ["job.yaml", "jobset.yaml"])
def test_nodes_are_as_many_as_pods(name):
    (job,) = job_specs(name)
    least, most = map(int, options_of(name)["--nnodes"].split(":"))
    assert least <= most == job["completions"] == job["parallelism"]


def test_the_runtime_of_a_train_job_is_the_one_beside_it():
    reference = of_kind("TrainJob", "trainjob.yaml")["spec"]["runtimeRef"]
    runtime = of_kind("TrainingRuntime", "trainjob.yaml")
    assert (reference["kind"], reference["name"]) == (runtime["kind"], runtime["metadata"]["name"])
    assert runtime["apiVersion"].startswith(reference["apiGroup"] + "/")
    (replicated,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert replicated["template"]["metadata"]["labels"] == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    assert replicated["name"] == pods("trainjob.yaml")[0]["containers"][0]["name"] == "node"  # the Trainer looks for both


def test_pods_of_the_job_find_each_other_by_the_service():
    service, job = of_kind("Service", "job.yaml"), of_kind("Job", "job.yaml")
    options = options_of("job.yaml")
    name = job["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"job-name": name}  # a label that Kubernetes gives to each pod of a Job
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert options["--rdzv-endpoint"].split(":")[0] == f"{name}-0.{service['metadata']['name']}"
    assert options["--local-addr"] == f"{name}-$(JOB_COMPLETION_INDEX).{service['metadata']['name']}"


def test_pods_of_the_set_find_each_other_by_its_names():
    spec = of_kind("JobSet", "jobset.yaml")["spec"]
    options = options_of("jobset.yaml")
    start, subdomain = f"train-{spec['replicatedJobs'][0]['name']}-0-", spec["network"]["subdomain"]
    assert options["--rdzv-endpoint"].split(":")[0] == f"{start}0.{subdomain}"
    assert options["--local-addr"] == f"{start}$(JOB_COMPLETION_INDEX).{subdomain}"


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
