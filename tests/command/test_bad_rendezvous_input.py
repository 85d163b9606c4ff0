# SPDX-License-Identifier: BSD-3-Clause
"""Bad input about several nodes that is found before any of them is looked for: usage and status 2, with the
value, what was expected and what to write instead."""

import pytest

C10D = ["run", "--rdzv-backend", "c10d", "--nnodes", "1:2", "--no-python"]


def refused(muster, *arguments):
    """The error line."""
    end = muster.run([*C10D, *arguments, "true"])
    assert end.status == 2, end
    return end.err.splitlines()[0]


@pytest.mark.parametrize(
    "nodes, expected",
    [
        ("4:2", "comes first, as in 2:4"),
        ("0:2", "at least 1 node"),
        ("1:2:3", "MIN:MAX as in 2:4"),
        ("1:", "MIN:MAX as in 2:4"),
        ("1:65537", "at most 65536 nodes"),
        ("1:99999999999999999999", "at most 65536 nodes"),
    ],
)
def test_a_range_of_nodes_that_makes_no_sense_is_refused(muster, nodes, expected):
    error = refused(muster, "--nnodes", nodes)
    assert f"argument --nnodes: invalid value '{nodes}': " in error
    assert expected in error


@pytest.mark.parametrize(
    "endpoint, expected",
    [
        (":29400", "give HOST:PORT"),
        ("node0:", "a port from 0 to 65535 has to follow the last colon"),
        ("node0:65536", "a port from 0 to 65535"),
        ("node0:-1", "a port from 0 to 65535"),
        ("node0:http", "a port from 0 to 65535"),
        ("http://node0:29400", "give HOST:PORT"),
        ("fe80::1:2940", "write [fe80::1:2940] or [fe80::1]:2940"),
        ("fe80::1%eth0:29400", "give HOST:PORT"),
        ("a:b:29400", "or an IPv6 address in brackets"),
        ("h" * 254, "a name of at most 253 bytes"),
        ("a:29400,b:29400", "no second one can take its place; for a job that survives any node"),
        ("a,b:29400", "--rdzv-backend dir --rdzv-endpoint /PATH"),
        ("a:29400,", "give one HOST:PORT"),
    ],
)
def test_an_endpoint_that_is_none_is_refused(muster, endpoint, expected):
    error = refused(muster, "--rdzv-endpoint", endpoint)
    assert f"argument --rdzv-endpoint/--rdzv_endpoint: invalid value '{endpoint}': " in error
    assert expected in error


@pytest.mark.parametrize(
    "members, expected",
    [
        ("a:2379,,b:2379", "one of its members is empty"),
        ("a:2379,", "one of its members is empty"),
        ("a:2379,b:", "'b:': a port from 0 to 65535 has to follow the last colon"),
        ("a:2379,b:65536", "'b:65536': a port from 0 to 65535"),
        ("a:0", "'a:0': a member of etcd listens on a port from 1 to 65535"),
        ("https://a:2379,b:2379", "some of its members have https:// and others have not"),
        (",".join(["a:2379"] * 17), "it names 17 members of etcd, more than the 16 allowed"),
    ],
)
def test_members_of_etcd_that_are_none_are_refused(muster, members, expected):
    error = refused(muster, "--rdzv-backend", "etcd", "--rdzv-endpoint", members)
    assert "argument --rdzv-endpoint/--rdzv_endpoint: invalid value " in error
    assert expected in error


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (["--nnodes", "2:4"], "port 0 (any free one) cannot be found by the other nodes; give a number"),
        (["--rdzv-conf", "is_host=false"], "(is_host=false) cannot find it at port 0 (any free one); give a number"),
    ],
)
def test_a_free_port_that_must_be_found_is_refused(muster, arguments, expected):
    error = refused(muster, *arguments, "--rdzv-endpoint", "node0:0")
    assert "argument --rdzv-endpoint/--rdzv_endpoint: invalid value 'node0:0': " in error
    assert expected in error


def test_a_file_store_needs_a_path(muster):
    error = refused(muster, "--rdzv-conf", "store_type=file")
    assert "argument --rdzv-endpoint/--rdzv_endpoint: is missing" in error


@pytest.mark.parametrize("run_id, expected", [("", "is empty"), ("x" * 257, "at most 256"), ("x" * 4096, "4096 bytes")])
def test_a_run_id_that_is_none_or_too_long_is_refused(muster, run_id, expected):
    error = refused(muster, f"--rdzv-id={run_id}")
    assert "argument --rdzv-id/--rdzv_id: " in error
    assert expected in error
    assert len(error) < 300


@pytest.mark.parametrize(
    "setting, expected",
    [
        ("join_timeout=0", "'0': the setting join_timeout takes a whole number of seconds from 1"),
        ("join_timeout=5.5", "'5.5': the setting join_timeout takes a whole number"),
        ("last_call_timeout=-1", "last_call_timeout"),
        ("close_timeout=1e3", "close_timeout"),
        ("heartbeat_timeout=soon", "heartbeat_timeout"),
        ("read_timeout=99999999999", "from 1 to 2147483647"),
        ("silence_timeout=0", "silence_timeout"),
        ("exit_barrier_timeout=0", "exit_barrier_timeout"),
        ("host_timeout=0", "host_timeout"),
        ("is_host=on", "'on': the setting is_host takes true or false"),
        ("store_type=redis", "'redis': the setting store_type takes tcp or file"),
        ("join_timeout", "the setting join_timeout has no value"),
        ("join_timeout=60,", "give KEY=VALUE,KEY=VALUE"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(muster, setting, expected):
    error = refused(muster, "--rdzv-conf", setting)
    assert "argument --rdzv-conf/--rdzv_conf: invalid value " in error
    assert expected in error


def test_a_password_is_not_shown(muster):
    error = refused(muster, "--rdzv-conf", "password=hunter2,join_timeout=")
    assert "invalid value 'password=***,join_timeout=': the setting join_timeout has no value" in error
    error = refused(muster, "--rdzv-conf", "user=me,password=a,hunter2")
    assert "'user=me,password=***,***': a comma ends the value of the setting password;" in error
    assert "hunter2" not in error


def test_settings_that_cannot_work_together_are_refused(muster):
    pair = "join_timeout=20,last_call_timeout=30"
    error = refused(muster, "--nnodes", "1:4", "--rdzv-backend", "c10d", "--rdzv-conf", pair)
    assert "argument --rdzv-conf/--rdzv_conf: join_timeout=20 is shorter than last_call_timeout=30: " in error


@pytest.mark.parametrize(
    "option, value, expected",
    [
        ("--on-node-loss", "panic", "'restart'"),
        ("--scale-up", "often", "give immediate, never, or the seconds"),
        ("--scale-up", "", "give immediate, never, or the seconds"),
        ("--local-addr", "a b", "give a host name"),
    ],
)
def test_a_policy_or_address_that_is_none_is_refused(muster, option, value, expected):
    error = refused(muster, f"{option}={value}")
    assert f"argument {option}/" in error
    assert expected in error
    assert repr(value) in error


def test_a_mistake_in_a_variable_names_it(muster):
    end = muster.run([*C10D, "true"], env={"PET_SCALE_UP": "often"})
    assert end.status == 2, end
    assert "PET_SCALE_UP" in end.err.splitlines()[0]
