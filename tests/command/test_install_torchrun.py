# SPDX-License-Identifier: BSD-3-Clause
"""`muster install-torchrun`: a link, and a word about the one that a shell finds. It replaces nothing."""

import pytest


@pytest.fixture
def own(scratch):
    path = scratch / "own"
    path.mkdir()
    return path


def install(muster, directory, *path):
    return muster.run(["install-torchrun", directory], env={"PATH": ":".join(map(str, path))})


def put_another_torchrun(directory):
    directory.mkdir(exist_ok=True)
    other = directory / "torchrun"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    return other


def test_the_link_is_this_program_under_the_name_torchrun(muster, own, binary):
    result = install(muster, own, own, "/usr/bin")
    assert result.status == 0, result
    assert (own / "torchrun").resolve() == binary.resolve()
    assert result.out.splitlines()[-1] == f"torchrun is now Muster: {own}/torchrun is the first in PATH"
    assert result.err == ""


def test_another_torchrun_that_comes_first_is_named(muster, own, scratch):
    other = put_another_torchrun(scratch / "other")
    result = install(muster, own, other.parent, own)
    assert result.status == 0, result
    assert result.out.splitlines()[-1] == (
        f"{other} still comes first in PATH: put {own} before it, or call {own}/torchrun")


def test_a_directory_outside_of_path_is_said(muster, own, scratch):
    result = install(muster, own, scratch)
    assert result.out.splitlines()[-1] == f"{own} is not in PATH: add it, or call {own}/torchrun"


def test_a_second_call_changes_nothing(muster, own):
    install(muster, own, own)
    result = install(muster, own, own)
    assert result.status == 0, result
    assert result.out.startswith(f"{own}/torchrun is this program already\n")


def test_another_program_of_that_name_is_left_as_it_is(muster, own):
    other = put_another_torchrun(own)
    result = install(muster, own, own)
    assert result.status == 1
    assert result.err == (f"muster install-torchrun: error: {own}/torchrun is there already, and is another program: "
                          "remove it, or name another directory\n")
    assert other.read_text() == "#!/bin/sh\n"


def test_a_directory_that_is_not_there_is_said(muster, own):
    result = install(muster, own / "missing", own)
    assert result.status == 1
    assert result.err == (f"muster install-torchrun: error: cannot make the link {own}/missing/torchrun: "
                          "No such file or directory\n")


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--force"], [""]])
def test_it_takes_one_directory(muster, arguments):
    result = muster.run(["install-torchrun", *arguments])
    assert result.status == 2
    assert result.err.startswith("muster install-torchrun: error: expected one directory (for example ~/bin)\nusage: ")
