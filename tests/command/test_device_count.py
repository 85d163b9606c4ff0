# SPDX-License-Identifier: BSD-3-Clause
"""How many workers a device gets that only a plug-in of PyTorch knows: the workers' Python is asked, here with a false torch."""

import pytest

# A module for the device "npu", and torch.accelerator where a number of its devices is given.
TORCH = """
import os
print("a plug-in says hello, and an unfinished line", end="")
if os.environ.get("FAKE_IMPORT") == "fails":
    raise ImportError("libfake.so is not here")
if os.environ.get("FAKE_IMPORT") == "misses":
    raise ModuleNotFoundError("No module named 'torch'", name="torch")
if os.environ.get("FAKE_IMPORT") == "ends":
    os._exit(0)
class Device:
    def __init__(self, name, count):
        self.type, self.count = name, count
    def is_available(self):
        return self.count > 0
    def device_count(self):
        return self.count
    def current_accelerator(self):
        return self
npu = Device("npu", int(os.environ.get("FAKE_NPUS", 0)))
accelerator = Device("hpu", int(os.environ.get("FAKE_HPUS", 0)))
"""


@pytest.fixture
def run(muster, scratch):
    modules = scratch / "modules"
    (modules / "fake-1.0.dist-info").mkdir(parents=True)
    (modules / "torch.py").write_text(TORCH)
    (scratch / "worker.py").write_text("import os\nprint('worker of', os.environ['LOCAL_WORLD_SIZE'])\n")
    plug_in = modules / "fake-1.0.dist-info/entry_points.txt"

    def run_it(word, *options, has_plug_in=False, program=("worker.py",), **fakes):
        plug_in.write_text("[torch.backends]\nfake = torch:npu\n" if has_plug_in else "")
        env = {"PYTHONPATH": str(modules), **{f"FAKE_{name.upper()}": str(value) for name, value in fakes.items()}}
        return muster.run(["run", "--nproc-per-node", word, *options, *program], env=env, cwd=scratch)

    return run_it


def workers(end):
    assert end.status == 0, end
    return end.out.count("worker of")


def test_a_plug_ins_device_is_counted(run):
    assert workers(run("npu", npus=3)) == 3


def test_pytorchs_accelerator_is_counted_by_its_name(run):
    assert workers(run("hpu", hpus=2)) == 2


def test_it_is_counted_for_a_program_that_is_no_python_too(run):
    assert workers(run("npu", "--no-python", program=("sh", "-c", "echo worker of $LOCAL_WORLD_SIZE"), npus=2)) == 2


def test_auto_counts_the_devices_of_a_plug_in_where_there_is_no_gpu(run):
    assert workers(run("auto", has_plug_in=True, hpus=3)) == 3


def test_auto_imports_no_torch_where_there_is_no_plug_in(run):
    end = run("auto", **{"import": "fails"})
    assert workers(end) > 0
    assert "libfake" not in end.err


def test_auto_counts_cpus_and_says_why_where_a_plug_in_cannot_be_asked(run):
    end = run("auto", has_plug_in=True, **{"import": "fails"})
    assert workers(end) > 0
    assert "--nproc-per-node auto counts CPUs: " in end.err and "libfake.so is not here" in end.err, end


@pytest.mark.parametrize(
    ("word", "fakes", "why", "status"),
    [
        ("npu", {}, "no such device is visible", 1),
        ("npux", {}, "knows no device of this name", 2),
        ("two", {}, "knows no device of this name", 2),
        ("two", {"import": "misses"}, "ModuleNotFoundError: No module named 'torch'", 2),
        ("npu", {"npus": 5000}, "at most 4096", 1),
        ("npu", {"npus": 1, "import": "fails"}, "ImportError: libfake.so is not here", 1),
        ("npu", {"npus": 1, "import": "ends"}, "has given no number", 1),
    ],
)
def test_a_device_that_cannot_be_counted_is_named_with_the_reason(run, word, fakes, why, status):
    end = run(word, **fakes)
    assert end.status == status, end
    assert f"--nproc-per-node {word}" in end.err and why in end.err, end
    assert "worker of" not in end.out
